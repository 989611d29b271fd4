"""What a run would do to a release, found out without doing it."""

import pathlib
from collections.abc import Callable

import pytest

from addon_operator.helm import helm_errors, release_types
from addon_operator.kernel import json_types, names
from addon_operator.modules import release
from tests.unit.helm import fakes

WEB = names.ModuleName("web")
INSTALL, UPGRADE, NOTHING = release_types.PlannedAction
OTHER = {"web": {"size": 9}}


def asked(
    directory: pathlib.Path, size: int = 1, redact: Callable[[str], str] = str
) -> release_types.ReleaseRequest:
    values: json_types.JsonObject = {"global": {}, "web": {"size": size}}
    return release_types.ReleaseRequest(WEB, directory, values, redact=redact)


@pytest.fixture
def world(world: fakes.World) -> fakes.World:
    world.helm.render = lambda values: (
        f"kind: ConfigMap\nmetadata: {{name: web}}\ndata: {{size: '{values['web']['size']}'}}\n"
    )
    return world


def frozen(world: fakes.World) -> str:
    """Everything that the cluster holds."""
    return repr(world.api.objects)


async def test_a_missing_release_would_be_installed(world: fakes.World, module_dir: pathlib.Path) -> None:
    made = await world.manager().preview(asked(module_dir))
    assert (made.action, made.revision, made.reason) == (INSTALL, None, "first revision")
    assert [(change.kind, str(change.key)) for change in made.changes] == [("added", "ConfigMap web")]
    assert world.helm.verbs == ["template"]
    assert world.api.objects == {}


async def test_an_unchanged_release_is_left_alone_without_helm(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    await world.manager().ensure(asked(module_dir))
    world.helm.calls.clear()
    made = await world.manager().preview(asked(module_dir))
    assert (made.action, made.revision, made.changes) == (NOTHING, 1, ())
    assert made.reason == "chart and values are those of revision 1"
    assert world.helm.calls == []


async def test_an_upgrade_is_shown_as_the_difference_of_the_manifests(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    await world.manager().ensure(asked(module_dir))
    before = frozen(world)
    made = await world.manager().preview(asked(module_dir, size=2))
    assert (made.action, made.revision) == (UPGRADE, 1)
    assert made.reason == "the values, Helm or the cluster changed"
    (change,) = made.changes
    assert {"-  size: '1'", "+  size: '2'"} <= set(change.diff)
    assert frozen(world) == before


async def test_the_plan_is_what_a_run_does_then(world: fakes.World, module_dir: pathlib.Path) -> None:
    for size in (1, 1, 2):
        made = await world.manager().preview(asked(module_dir, size))
        done = await world.manager().ensure(asked(module_dir, size))
        assert made.reason == done.reason


async def test_a_release_of_the_go_operator_with_the_same_manifest_is_left_alone(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manifest = world.helm.render({"web": {"size": 1}})
    world.api.put("web", 7, "deployed", {release.GO_OPERATOR_LABEL: "abc"}, manifest)
    made = await world.manager().preview(asked(module_dir))
    assert (made.action, made.reason) == (NOTHING, "the manifest is that of revision 7")
    assert release.MANAGED_LABEL not in world.api.labels("web", 7)


async def test_a_stuck_revision_is_reported_and_compared_as_it_may_be_in_the_cluster(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    await world.manager().ensure(asked(module_dir))
    world.api.put("web", 2, "pending-upgrade", world.api.labels("web", 1), world.helm.render(OTHER))
    before = frozen(world)
    made = await world.manager().preview(asked(module_dir, size=2))
    assert made.recoveries == ("revision 2 is stuck in pending-upgrade: it counts as failed",)
    assert (made.action, made.revision, made.reason) == (UPGRADE, 2, "revision 2 is failed")
    (change,) = made.changes
    assert {"-  size: '9'", "+  size: '2'"} <= set(change.diff)
    assert frozen(world) == before


@pytest.mark.parametrize("status", ["pending-install", "uninstalling"])
async def test_a_stuck_first_revision_ends_in_an_install(
    world: fakes.World, module_dir: pathlib.Path, status: str
) -> None:
    world.api.put("web", 1, status, {})
    made = await world.manager().preview(asked(module_dir))
    assert made.action is INSTALL
    assert len(made.recoveries) == 1
    assert world.helm.verbs == ["template"]
    assert world.api.last("web") == 1


async def test_a_record_that_cannot_be_decoded_is_reported_and_all_is_new(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    world.api.put("web", 7, "failed", {})
    world.api.objects["sh.helm.release.v1.web.v7"]["data"] = {"release": "!!"}
    made = await world.manager().preview(asked(module_dir))
    assert [change.kind for change in made.changes] == ["added"]
    assert any("cannot be decoded" in text for _, text in world.warnings)


async def test_sensitive_values_are_hidden_in_the_difference(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    made = await world.manager().preview(asked(module_dir, redact=lambda line: line.replace("'1'", "***")))
    assert "+  size: ***" in made.changes[0].diff


async def test_an_error_of_the_chart_is_the_error_of_a_run(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    world.helm.fail["template"] = 'template: web:1: executing "web" at <.x>: nil pointer'
    with pytest.raises(helm_errors.HelmError, match=r"nil pointer at <.x> in web:1, says helm template"):
        await world.manager().preview(asked(module_dir))


async def test_hooks_of_helm_are_part_of_the_difference(world: fakes.World, module_dir: pathlib.Path) -> None:
    job = "kind: Job\nmetadata: {name: migrate, annotations: {helm.sh/hook: pre-upgrade}}\n"
    config = world.helm.render({"web": {"size": 1}})
    labels = {release.GO_OPERATOR_LABEL: "abc"}
    world.api.put("web", 1, "deployed", labels, config, hooks=(job,))
    world.helm.render = lambda _: f"{config}---\n{job}"
    assert (await world.manager().preview(asked(module_dir))).action is NOTHING
    world.helm.render = lambda _: f"{config}---\n{job.replace('migrate', 'move')}"
    made = await world.manager().preview(asked(module_dir))
    assert [(change.kind, str(change.key)) for change in made.changes] == [
        ("added", "Job move"),
        ("removed", "Job migrate"),
    ]
