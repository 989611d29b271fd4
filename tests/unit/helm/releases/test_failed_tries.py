"""What failed tries of a release left, and whether the next one is an installation."""

import json
import pathlib
from collections.abc import Sequence

import pytest
from msgspec import structs

from addon_operator.helm import helm_errors, release_types
from addon_operator.helm.releases import releases
from addon_operator.kernel import json_types, names
from addon_operator.kube import api_errors, paths
from tests.unit.helm import fakes

WEB = names.ModuleName("web")
INSTALLED, UPGRADED = release_types.ReleaseAction.INSTALLED, release_types.ReleaseAction.UPGRADED
UNINSTALLED = {"info": {"deleted": "2026-11-20T10:00:00Z"}}


def rendered(*objects: str, kind: str = "ConfigMap", **data: str) -> str:
    return "".join(
        f"---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: {each}}}\ndata: {json.dumps(data)}\n"
        for each in objects
    )


def asked(directory: pathlib.Path) -> release_types.ReleaseRequest:
    values: json_types.JsonObject = {"global": {}, "web": {}}
    return release_types.ReleaseRequest(WEB, directory, values, (), True)


def of_history(world: fakes.World, *statuses: str) -> None:
    """Leave revisions; ``removed`` is one with which the release was uninstalled before it was replaced."""
    for number, status in enumerate(statuses, 1):
        is_removed = status == "removed"
        world.api.put("web", number, "superseded" if is_removed else status, {})
        if is_removed:
            world.api.rewrite("web", number, UNINSTALLED)


@pytest.mark.parametrize(
    ("statuses", "action"),
    [
        (["failed"], INSTALLED),
        (["failed", "failed"], INSTALLED),
        (["failed", "pending-install"], INSTALLED),
        (["pending-install"], INSTALLED),
        (["uninstalled", "failed"], INSTALLED),
        (["superseded", "removed", "failed"], INSTALLED),
        (["superseded", "removed", "failed", "pending-install"], INSTALLED),
        (["deployed", "failed"], UPGRADED),
        (["deployed", "failed", "pending-upgrade"], UPGRADED),
        (["superseded", "failed"], UPGRADED),
        (["removed", "deployed", "failed"], UPGRADED),
    ],
    ids=" ".join,
)
async def test_a_release_is_installed_until_that_worked_once(
    world: fakes.World, module_dir: pathlib.Path, statuses: Sequence[str], action: release_types.ReleaseAction
) -> None:
    of_history(world, *statuses)
    planned = await world.manager().preview(asked(module_dir))
    await world.manager().render(asked(module_dir))
    assert ("--is-upgrade" in world.helm.calls[-1]) is (action is UPGRADED)
    outcome = await world.manager().ensure(asked(module_dir))
    assert outcome.action is action
    assert outcome.revision == len(statuses) + 1
    assert planned.action == world.helm.verbs[-1] == {INSTALLED: "install", UPGRADED: "upgrade"}[action]


async def test_a_release_whose_good_revisions_are_pruned_is_upgraded(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    world.api.put("web", 2, "failed", world.api.labels("web", 1))
    del world.api.objects["sh.helm.release.v1.web.v1"]
    assert (await manager.ensure(asked(module_dir))).action is UPGRADED


async def test_a_superseded_revision_that_cannot_be_read_counts_as_one_that_worked(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    of_history(world, "removed", "failed")
    world.api.objects["sh.helm.release.v1.web.v1"]["data"] = {"release": "!!"}
    assert (await world.manager().ensure(asked(module_dir))).action is UPGRADED


async def test_a_pending_record_that_cannot_be_read_is_removed(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    of_history(world, "pending-install")
    world.api.objects["sh.helm.release.v1.web.v1"]["data"] = {"release": "!!"}
    outcome = await world.manager().ensure(asked(module_dir))
    assert (outcome.action, outcome.revision) == (INSTALLED, 1)


async def test_a_record_that_says_something_else_than_its_label_is_told_with_what_to_do(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    world.api.rewrite("web", 1, {"info": {"status": "pending-upgrade"}})
    (module_dir / "templates" / "more.yaml").write_text("more: true\n")
    world.helm.render = lambda _: rendered("other")
    world.helm.fail["upgrade"] = "another operation is in progress"
    world.api.set_status("web", 1, "deployed")
    stored = len(world.api.objects)
    world.helm.stores_failed = False
    with pytest.raises(helm_errors.HelmError, match="set the label to pending-upgrade"):
        await manager.ensure(asked(module_dir))
    assert len(world.api.objects) == stored


async def failed(world: fakes.World, module_dir: pathlib.Path, *manifests: str) -> releases.ReleaseManager:
    """Try to install these manifests, one after the other."""
    manager = world.manager()
    world.helm.fail = {"install": "no", "upgrade": "no"}
    for manifest in manifests:
        world.helm.render = lambda _, manifest=manifest: manifest  # type: ignore[misc]
        with pytest.raises(helm_errors.HelmError):
            await manager.ensure(asked(module_dir))
    world.helm.fail.clear()
    return manager


async def test_what_only_failed_tries_made_is_deleted_before_the_next_one(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await failed(world, module_dir, rendered("a", "b", "c"), rendered("a", "b"))
    for name in ("a", "b", "c"):
        world.live.put_own(name)
    world.helm.render = lambda _: rendered("a")
    assert (await manager.ensure(asked(module_dir))).action is INSTALLED
    assert sorted(world.live.deleted) == ["b", "c"]


async def test_what_others_have_what_is_kept_and_what_holds_data_is_not_deleted(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    volumes = rendered("data", kind="PersistentVolumeClaim")
    manager = await failed(
        world, module_dir, rendered("moved", "stranger", "kept", "shared", "gone", "made") + volumes
    )
    helms = {"app.kubernetes.io/managed-by": "Helm"}
    world.live.put("moved", helms, release_name="other", release_namespace=fakes.NAMESPACE)
    world.live.put("stranger")
    world.live.put_own("shared")
    world.live.put_own("kept", policy="keep")
    # By a controller, for an object of the release, as a ReplicaSet is.
    world.live.put_own("made")
    owner = {"kind": "Web", "name": "a", "uid": "1", "controller": True}
    world.live.objects[f"/api/v1/namespaces/{fakes.NAMESPACE}/configmaps/made"]["metadata"][
        "ownerReferences"
    ] = [owner]
    world.live.put_own("data", plural="persistentvolumeclaims")
    world.helm.render = lambda _: rendered("web")
    await manager.ensure(structs.replace(asked(module_dir), others=fakes.Others("shared")))
    assert world.live.deleted == []
    (told,) = (text for _, text in world.warnings if "stays" in text)
    assert "PersistentVolumeClaim data stays: it holds data" in told
    assert "ConfigMap kept stays: its annotation helm.sh/resource-policy says keep" in told


async def test_what_cannot_be_deleted_stops_the_try_and_is_named(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await failed(world, module_dir, rendered("a", "b"))
    world.live.put_own("b")
    target = paths.target("DELETE", f"/api/v1/namespaces/{fakes.NAMESPACE}/configmaps/b")
    world.live.refusal = api_errors.Invalid(target, 422, "Invalid", "denied by the guard")
    world.helm.render = lambda _: rendered("a")
    with pytest.raises(helm_errors.HelmError) as raised:
        await manager.ensure(asked(module_dir))
    assert "denied by the guard" in str(raised.value)
    assert "(ConfigMap b, which revision 1 made and the chart no longer has, cannot be deleted)" in str(
        raised.value
    )
    assert world.api.last("web") == 1, "what it made is not forgotten"
    world.live.refusal = None
    assert (await manager.ensure(asked(module_dir))).action is INSTALLED
    assert world.live.deleted == ["b"]


async def test_an_upgrade_deletes_what_only_failed_upgrades_made_and_leaves_the_rest_to_helm(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = world.manager()
    world.helm.render = lambda _: rendered("a", "old")
    await manager.ensure(asked(module_dir))
    (module_dir / "templates" / "more.yaml").write_text("more: true\n")
    manager = await failed(world, module_dir, rendered("a", "new"))
    for name in ("a", "old", "new"):
        world.live.put_own(name)
    (module_dir / "templates" / "more.yaml").write_text("more: false\n")
    world.helm.render = lambda _: rendered("a")
    assert (await manager.ensure(asked(module_dir))).action is UPGRADED
    assert world.live.deleted == ["new"]


@pytest.mark.parametrize("version", ["v3.19.0", "v4.1.0"])
async def test_helm_3_gets_help_to_change_what_failed_tries_made(
    world: fakes.World, module_dir: pathlib.Path, version: str
) -> None:
    world.version = version
    manager = await failed(
        world, module_dir, rendered("a", one="1", same="s"), rendered("a", two="2", same="s")
    )
    world.live.put_own("a")
    world.live.changed.clear()
    world.helm.render = lambda _: rendered("a", three="3", same="s") + rendered("new")
    await manager.ensure(asked(module_dir))
    expected = [
        ("a", {"data": {"one": None, "three": "3"}}),
        ("a", {"data": {"two": None, "three": "3"}}),
    ]
    assert world.live.changed == (expected if version.startswith("v3") else [])


async def test_tries_of_an_installation_are_kept_as_revisions_are(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    world.helm.render = lambda _: rendered("a")
    await failed(world, module_dir, *[rendered("a")] * 13)
    numbers = [int(each["metadata"]["labels"]["version"]) for each in world.api.objects.values()]
    assert sorted(numbers) == list(range(4, 14))
