"""Records that others wrote, changed, copied or put back: nothing is done by them."""

import base64
import contextlib
import copy
import gzip
import itertools
import json
import pathlib
from typing import Any

import pytest
from msgspec import structs

from addon_operator.helm import helm_errors, places, release_types
from addon_operator.helm.releases import (
    record_format,
    record_lists,
    record_proofs,
    release_records,
    releases,
)
from addon_operator.kernel import json_types, names
from addon_operator.modules import model, release
from tests.support import engine
from tests.unit.helm import fakes

WEB = names.ModuleName("web")
PLACE = places.ReleaseLocation(fakes.NAMESPACE, "web")
FORGED = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: victim}\n"
HOOK = "apiVersion: v1\nkind: Pod\nmetadata: {name: evil, annotations: {helm.sh/hook: pre-delete}}\n"


def render(values: Any) -> str:  # noqa: ANN401 - JSON
    size = values["web"]["size"]
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web}}\ndata: {{size: '{size}'}}\n"


def asked(directory: pathlib.Path, size: int = 1) -> release_types.ReleaseRequest:
    values: json_types.JsonObject = {"global": {}, "web": {"size": size}}
    return release_types.ReleaseRequest(WEB, directory, values)


@pytest.fixture
def forging(world: fakes.World) -> fakes.World:
    world.helm.render = render
    return world


async def begun(world: fakes.World, *, knows_module: bool = True) -> releases.ReleaseManager:
    modules = [model.Module(WEB, 10, pathlib.Path("web"))] if knows_module else []
    return await world.restarted(*modules)


def forge(world: fakes.World, number: int) -> None:
    """Have a record list what is not of the release; what else it says stays."""
    content = world.api.content("web", number)
    hooks = [{"manifest": HOOK, "events": ["pre-delete"]}]
    world.api.rewrite("web", number, {**content, "manifest": FORGED, "hooks": hooks})


def told(world: fakes.World) -> str:
    return "; ".join(text for _, text in world.warnings)


async def test_what_helm_made_is_our_own_also_after_a_restart(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    await manager.ensure(asked(module_dir, size=2))
    assert forging.remembered is not None
    await forging.remembered.write()
    found = await (await begun(forging)).deployed(WEB)
    assert found is not None
    assert found.manifest == render({"web": {"size": 2}})
    assert forging.remembered is not None
    known = forging.remembered.of(PLACE)
    assert (known.last, known.deployed, known.call) == (2, 2, None)
    assert forging.api.labels("web", 2)[release.CONFIG_MAP_LABEL] == "addon-operator"


async def test_what_helm_adds_to_a_hook_that_it_has_run_makes_no_record_another(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    hook = {"manifest": HOOK, "events": ["pre-delete"]}
    made = {**forging.api.content("web", 1), "hooks": [hook]}
    forging.api.rewrite("web", 1, made)
    assert forging.remembered is not None
    forging.remembered.change(PLACE, digests=())
    labels = forging.api.labels("web", 1)
    labels[release.DIGEST_LABEL] = record_proofs.RecordProofs(
        forging.remembered, places.ReleaseLocations(fakes.NAMESPACE)
    ).digest("web", 1, made)
    ran = {**hook, "weight": 0, "delete_policies": ["before-hook-creation"], "last_run": {"phase": "Failed"}}
    forging.api.rewrite("web", 1, {**made, "hooks": [ran]})
    assert await manager.deployed(WEB) is not None
    forging.api.rewrite("web", 1, {**made, "hooks": [{**ran, "delete_policies": ["hook-failed"]}]})
    with pytest.raises(helm_errors.ForeignRecordError):
        await manager.deployed(WEB)


SIGNED: dict[str, Any] = {
    "config": {"size": 12345678901234567, "more": [1, None]},
    "chart": {"metadata": {"name": "web"}, "values": {"a": 1}, "templates": [{"name": "a", "data": "YQ=="}]},
    "hooks": [{"name": "a", "kind": "Job", "path": "a.yaml", "manifest": HOOK, "events": ["pre-delete"]}],
}
EDITS: dict[str, dict[str, Any]] = {
    "values": {"config": {"size": 2, "more": [1, None]}},
    "no values": {"config": None},
    "a template": {"chart": {**SIGNED["chart"], "templates": [{"name": "a", "data": "Yg=="}]}},
    "defaults": {"chart": {**SIGNED["chart"], "values": {"a": True}}},
    "files that are none": {"chart": {**SIGNED["chart"], "files": [1]}},
    "kind of a hook": {"hooks": [{**SIGNED["hooks"][0], "kind": "CustomResourceDefinition"}]},
    "weight of a hook": {"hooks": [{**SIGNED["hooks"][0], "weight": 5}]},
}


async def test_a_record_is_another_one_whatever_of_it_others_edit(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    made = {**forging.api.content("web", 1), **SIGNED}
    assert forging.remembered is not None
    proofs = record_proofs.RecordProofs(forging.remembered, places.ReleaseLocations(fakes.NAMESPACE))
    forging.api.labels("web", 1)[release.DIGEST_LABEL] = proofs.digest("web", 1, made)
    forging.remembered.change(PLACE, digests=())
    # As another Helm writes it once more: numbers are floating ones for it, and it knows no times of files.
    chart = copy.deepcopy(SIGNED["chart"]) | {"schemamodtime": "0001-01-01T00:00:00Z"}
    chart["templates"][0]["modtime"] = "2026-11-28T09:47:50.758922476Z"
    config = {"more": [1.0, None], "size": float(SIGNED["config"]["size"])}
    hook = {**SIGNED["hooks"][0], "last_run": {"phase": "Failed"}}
    status = {"status": "deployed", "description": "by Helm"}
    forging.api.rewrite("web", 1, {**made, "chart": chart, "config": config, "hooks": [hook], "info": status})
    assert await manager.deployed(WEB) is not None
    for edit, changed in EDITS.items():
        forging.api.rewrite("web", 1, {**made, **changed})
        with pytest.raises(helm_errors.ReleaseRecordError):
            pytest.fail(f"{edit}: {await manager.deployed(WEB)}")


async def test_that_a_call_begins_is_written_before_it_does(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    forging.helm.fail = {"upgrade": "no"}
    manager = await begun(forging)
    written: list[int] = []

    def rendering(values: Any) -> str:  # noqa: ANN401 - JSON
        written.append(len(forging.server.writes))
        return render(values)

    forging.helm.render = rendering
    with pytest.raises(helm_errors.HelmError):
        await manager.ensure(asked(module_dir))
    assert written[0] == len(["create", "taken over", "call"])


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_an_edited_record_is_input_of_nothing_and_the_next_revision_is_made_from_chart_and_values(
    forging: fakes.World, module_dir: pathlib.Path, is_restarted: bool
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    forge(forging, 1)
    if is_restarted:
        manager = await begun(forging)
    with pytest.raises(helm_errors.ForeignRecordError, match="made or changed by others"):
        await manager.deployed(WEB)
    outcome = await manager.ensure(asked(module_dir))
    assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.UPGRADED, 2)
    assert (forging.api.content("web", 1)["manifest"], forging.api.content("web", 1)["hooks"]) == ("", [])
    assert "ConfigMap victim" in told(forging)
    assert (await manager.deployed(WEB)) is not None
    calls = len(forging.helm.calls)
    await manager.ensure(asked(module_dir))
    assert len(forging.helm.calls) == calls


async def test_a_failed_revision_that_others_changed_is_rolled_back_and_nothing_is_deleted_by_it(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    forging.helm.fail = {"upgrade": "no"}
    with pytest.raises(helm_errors.HelmError) as failed:
        await manager.ensure(asked(module_dir, size=2))
    forge(forging, 2)
    outcome = await manager.roll_back(asked(module_dir, size=2), failed.value, unhealthy=False)
    assert isinstance(outcome, helm_errors.RolledBackError)
    assert (forging.api.content("web", 2)["manifest"], forging.api.content("web", 2)["hooks"]) == ("", [])
    assert "revision 2 was made or changed by others: nothing is deleted by it" in told(forging)
    assert forging.doubts == [], "that is over, and true of no release as it is"


WIPES = """\
apiVersion: v1
kind: Pod
metadata: {name: wipe, annotations: {helm.sh/hook: "test-success, post-upgrade", helm.sh/hook-weight: "-5"}}
"""
CLAIM = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"
EVENTS = ["test", "post-upgrade"]
MADE: dict[str, Any] = {
    "name": "wipe",
    "kind": "Pod",
    "path": "web/templates/wipe.yaml",
    "manifest": WIPES,
    "events": EVENTS,
    "weight": -5,
    "delete_policies": ["before-hook-creation"],
    "last_run": {"phase": "Failed"},
}
CLAIMED: dict[str, Any] = {"name": "data", "kind": "PersistentVolumeClaim", "manifest": CLAIM}


@pytest.mark.parametrize(
    ("in_manifest", "hooks", "is_ours"),
    [
        (CLAIM, [MADE], True),
        (CLAIM, [{**MADE, "events": [*EVENTS, "pre-delete"]}], False),
        (CLAIM, [{**MADE, "weight": 5}], False),
        (CLAIM, [{**MADE, "name": "a"}], False),
        (CLAIM, [{**MADE, "kind": "CustomResourceDefinition"}], False),
        (CLAIM, [{**MADE, "output_log_policies": ["hook-failed"]}], False),
        (CLAIM, [{**MADE, "delete_policies": ["hook-failed"]}], False),
        ("", [MADE, {**CLAIMED, "events": ["pre-delete"]}], False),
        ("", [MADE, CLAIMED], False),
        ("", [{**MADE, "manifest": f"{WIPES}---\n{CLAIM}"}], False),
        (f"{CLAIM}---\n{WIPES}", [], False),
    ],
    ids=[
        "as made",
        "at a removal",
        "in another order",
        "by another name",
        "as what Helm does not delete",
        "with its log",
        "left",
        "deleted as a hook",
        "no event",
        "two in one",
        "deleted with all",
    ],
)
async def test_a_failed_revision_counts_as_ours_only_if_helm_would_run_its_hooks_as_the_chart_says(
    forging: fakes.World,
    module_dir: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    in_manifest: str,
    hooks: list[dict[str, Any]],
    is_ours: bool,
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    forging.helm.render = lambda values: f"{render(values)}---\n{CLAIM}---\n{WIPES}"
    put = forging.api.put

    def quickly(name: str, number: int, *arguments: Any, **more: Any) -> None:  # noqa: ANN401 - as put
        """Change what Helm has just written, before the operator can look at it."""
        put(name, number, *arguments, **more)
        held = {"manifest": f"{render({'web': {'size': 2}})}---\n{in_manifest}", "hooks": hooks}
        forging.api.rewrite(name, number, {**forging.api.content(name, number), **held})

    monkeypatch.setattr(forging.api, "put", quickly)
    forging.helm.fail = {"upgrade": "no"}
    with pytest.raises(helm_errors.HelmError):
        await manager.ensure(asked(module_dir, size=2))
    assert (release.DIGEST_LABEL in forging.api.labels("web", 2)) is is_ours


async def test_what_others_change_while_a_failed_revision_is_looked_at_is_not_signed(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    del forging.api.labels("web", 1)[release.DIGEST_LABEL]
    assert forging.remembered is not None
    where = places.ReleaseLocations(fakes.NAMESPACE)
    records = release_records.ReleaseRecords(forging.api, where, forging.remembered)
    record = await records.read(WEB)
    assert record is not None

    async def change(_held: record_format.Release) -> bool:
        changed = copy.deepcopy(forging.api.objects[record.object_name])
        changed["metadata"]["resourceVersion"] = "99"
        forging.api.objects[record.object_name] = changed
        return True

    assert await records.sign(record, change) is None
    assert release.DIGEST_LABEL not in forging.api.labels("web", 1)


@pytest.mark.parametrize("unhealthy", [False, True])
async def test_a_release_that_was_deployed_is_not_removed_because_others_say_that_its_revision_failed(
    forging: fakes.World, module_dir: pathlib.Path, unhealthy: bool
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    await manager.mark(WEB, release.HEALTHY_LABEL)
    if unhealthy:
        await manager.ensure(asked(module_dir, size=2))
        del forging.api.objects["sh.helm.release.v1.web.v1"]
    else:
        forging.api.set_status("web", 1, "failed")
        del forging.api.labels("web", 1)[release.REVISION_LABEL]
    failed = helm_errors.HelmError(WEB, "it does not render")
    outcome = await manager.roll_back(asked(module_dir, size=2), failed, unhealthy=unhealthy)
    assert "there is no rollback: no earlier revision was deployed and healthy" in str(outcome)
    assert "uninstall" not in forging.helm.verbs
    assert len(forging.api.objects) == 1


async def test_a_copied_digest_proves_nothing(forging: fakes.World, module_dir: pathlib.Path) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    forging.api.set_status("web", 1, "superseded")
    forging.api.put("web", 2, "deployed", forging.api.labels("web", 1), FORGED)
    manager = await begun(forging)
    with pytest.raises(helm_errors.ForeignRecordError, match="another content or revision"):
        await manager.deployed(WEB)
    assert (await manager.ensure(asked(module_dir))).revision == 3


async def test_an_earlier_state_or_revision_put_back_is_not_our_own(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    await manager.ensure(asked(module_dir, size=2))
    stored = copy.deepcopy(forging.api.objects)
    del forging.api.objects["sh.helm.release.v1.web.v2"]
    forging.api.set_status("web", 1, "deployed")
    with pytest.raises(helm_errors.ForeignRecordError, match="revision 2 was deployed after it"):
        await manager.deployed(WEB)
    forging.api.objects = stored
    assert await manager.deployed(WEB) is not None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"manifest": "a", "Manifest": "b"}', id="capitals"),
        pytest.param('{"manifest": "a", "hook\u017f": []}', id="a letter that counts as s"),
        pytest.param('{"manifest": "a", "manifest": "b"}', id="twice"),
        pytest.param('{"manifest": "a", "hooks": [{"Events": ["pre-delete"]}]}', id="of a hook"),
    ],
)
async def test_what_helm_might_read_otherwise_cannot_be_decoded(
    forging: fakes.World, module_dir: pathlib.Path, text: str
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    stored = base64.b64encode(base64.b64encode(gzip.compress(text.encode()))).decode()
    forging.api.objects["sh.helm.release.v1.web.v1"]["data"] = {"release": stored}
    with pytest.raises(helm_errors.ReleaseRecordError, match="cannot be decoded"):
        await manager.deployed(WEB)
    forging.helm.calls.clear()
    for change in (manager.ensure(asked(module_dir, size=2)), manager.remove(WEB)):
        with pytest.raises(helm_errors.HelmError, match="cannot be decoded"):
            await change
    assert set(forging.helm.verbs) <= {"template"}


def many(value: str, count: int) -> str:
    return "[" + ",".join([value] * count) + "]"


@pytest.fixture
def _a_hundredth_of_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_format, "_MOST_VALUES", 2500)


TOO_MUCH = {
    "lists": {"config": {"a": [[]] * 3000}},
    "numbers": {"config": {"a": [1] * 3000}},
    "levels": '{"manifest": "", "chart": {"a": ' + "[" * 2000 + "]" * 2000 + "}}",
    "half a letter": '{"manifest": "", "chart": {"a": "\\ud800"}}',
    "values in its manifest": {"manifest": f"a: {json.dumps([[]] * 1300)}"},
    "documents": {"manifest": "a: {}\n---\n" * 300},
    "documents of hooks": {"hooks": [{"manifest": "a: {}\n---\n" * 300}]},
}


@pytest.mark.parametrize("content", TOO_MUCH.values(), ids=TOO_MUCH)
@pytest.mark.usefixtures("_a_hundredth_of_the_values")
async def test_a_record_of_others_costs_no_more_than_its_bound(
    forging: fakes.World, module_dir: pathlib.Path, content: str | dict[str, object]
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    text = content if isinstance(content, str) else json.dumps({"manifest": "", **content})
    stored = base64.b64encode(base64.b64encode(gzip.compress(text.encode()))).decode()
    forging.api.objects["sh.helm.release.v1.web.v1"]["data"] = {"release": stored}
    forging.helm.calls.clear()
    with pytest.raises(helm_errors.HelmError, match=r"web\.v1 of release web .*: restore it, or delete it"):
        await manager.ensure(asked(module_dir, size=2))
    assert set(forging.helm.verbs) <= {"template"}


@pytest.mark.usefixtures("_a_hundredth_of_the_values")
async def test_a_large_release_is_read_as_ever(forging: fakes.World, module_dir: pathlib.Path) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    dashboard = "[{1,2}]," * 3000
    forge(forging, 1)
    forged = forging.api.content("web", 1)
    more = f"{FORGED}data: {{a: '{dashboard}'}}\n"
    forging.api.rewrite("web", 1, {**forged, "manifest": more, "config": {"a": 10**20, "b": dashboard}})
    assert (await manager.ensure(asked(module_dir, size=2))).revision == 2
    assert "ConfigMap victim" in told(forging)


async def test_records_of_an_earlier_life_prove_nothing(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    await manager.ensure(asked(module_dir, size=2))
    stored = copy.deepcopy(forging.api.objects)
    assert await manager.remove(WEB)
    await manager.ensure(asked(module_dir))
    forging.api.objects = stored
    with pytest.raises(helm_errors.ForeignRecordError):
        await (await begun(forging)).deployed(WEB)


async def test_a_memory_that_is_older_than_the_records_learns_from_them(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    older = forging.server.get("Secret", fakes.MEMORY)
    await manager.ensure(asked(module_dir, size=2))
    forging.server.put(older)
    assert await (await begun(forging)).deployed(WEB) is not None
    assert forging.remembered is not None
    assert forging.remembered.of(PLACE).deployed == 2


async def test_what_a_call_left_that_was_cut_off_is_made_again(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    assert forging.remembered is not None
    await forging.remembered.write()
    before = forging.server.get("Secret", fakes.MEMORY)
    await manager.ensure(asked(module_dir, size=2))
    # Killed between Helm's last write and the digest.
    forging.server.put(before)
    del forging.api.labels("web", 2)[release.DIGEST_LABEL]
    manager = await begun(forging)
    assert forging.remembered is not None
    forging.remembered.change(PLACE, call=fakes.call_of("upgrade", 2))
    outcome = await manager.ensure(asked(module_dir, size=2))
    assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.UPGRADED, 2)
    assert "was left by a call of Helm that was cut off" in outcome.recovered[0]
    assert await manager.deployed(WEB) is not None


async def test_a_record_that_its_call_left_pending_is_put_right(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    forging.helm.leaves_pending = True
    outcome = await manager.ensure(asked(module_dir, size=2))
    assert outcome.revision == 2
    assert [forging.api.labels("web", each)["status"] for each in (1, 2)] == ["superseded", "deployed"]
    assert (await manager.deployed(WEB)) is not None


async def test_a_disabled_module_with_a_forged_record_is_removed_without_helm(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    forge(forging, 1)
    forging.live.put("victim")
    forging.live.put_own("web")
    content = forging.api.content("web", 1)
    forging.api.rewrite("web", 1, {**content, "manifest": f"{FORGED}---\n{render({'web': {'size': 1}})}"})
    forging.helm.calls.clear()
    assert await manager.remove(WEB)
    assert (forging.helm.verbs, forging.live.deleted) == ([], ["web"])
    assert forging.api.objects == {}
    assert "without the hooks of its chart" in told(forging)


@pytest.mark.parametrize("has_failed", [False, True])
async def test_values_that_others_write_into_a_record_let_no_secret_go_that_a_claim_needs(
    forging: fakes.World, module_dir: pathlib.Path, has_failed: bool
) -> None:
    drawn = itertools.count()

    def with_password(values: Any) -> str:  # noqa: ANN401 - JSON
        if values["web"].get("size") == 3:
            return render(values)
        password = values["web"].get("password") or next(drawn)
        secret = f"kind: Secret\nmetadata: {{name: db}}\nstringData: {{password: '{password}'}}\n"
        return f"{CLAIM}---\napiVersion: v1\n{secret}"

    manager = await begun(forging)
    if has_failed:
        await manager.ensure(asked(module_dir))
        forging.helm.fail = {"upgrade": "no"}
    forging.helm.render = with_password
    number = 2 if has_failed else 1
    with contextlib.suppress(helm_errors.HelmError):
        await manager.ensure(asked(module_dir, size=2))
    forging.live.put_own("data", plural="persistentvolumeclaims")
    forging.live.put_own("db", plural="secrets")
    content = forging.api.content("web", number)
    forging.api.rewrite("web", number, {**content, "config": {"web": {"password": "known"}}})
    if has_failed:
        forging.helm.fail = {}
        await manager.ensure(asked(module_dir, size=3))
    else:
        assert await manager.remove(WEB, directory=module_dir)
    assert forging.live.deleted == []


async def test_a_release_without_a_module_whose_record_was_changed_stays(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    await (await begun(forging)).ensure(asked(module_dir))
    forge(forging, 1)
    manager = await begun(forging, knows_module=False)
    forging.helm.calls.clear()
    assert not await manager.remove(WEB)
    assert forging.helm.verbs == []
    assert "stays: others made or changed revision 1" in told(forging)


async def test_a_label_alone_makes_no_release_ours(forging: fakes.World, module_dir: pathlib.Path) -> None:
    await (await begun(forging)).ensure(asked(module_dir))
    forging.api.put("guest", 1, "deployed", {release.MANAGED_LABEL: "true"}, FORGED)
    manager = await begun(forging)
    revisions = await manager.observe_all()
    assert {name: manager.is_ours(revision) for name, revision in revisions.items()} == {
        "web": True,
        "guest": False,
    }


async def test_the_first_time_releases_of_ours_are_taken_over_and_others_are_not(
    forging: fakes.World,
) -> None:
    forging.api.put("web", 3, "deployed", {release.MANAGED_LABEL: "true"}, FORGED)
    forging.api.put("go", 2, "deployed", {release.GO_OPERATOR_LABEL: "x"}, FORGED)
    forging.api.put("guest", 1, "deployed", {}, FORGED)
    claim = {release.MANAGED_LABEL: "true", release.CONFIG_MAP_LABEL: "another"}
    forging.api.put("theirs", 1, "deployed", claim, FORGED)
    manager = await begun(forging)
    revisions = await manager.observe_all()
    assert {name for name, revision in revisions.items() if manager.is_ours(revision)} == {"web", "go"}
    assert manager.taken_over == {"web", "go"}
    assert "go and web" in told(forging) or "go, web" in told(forging)
    assert await manager.deployed(WEB) is not None
    assert release.DIGEST_LABEL not in forging.api.labels("guest", 1)
    assert release.DIGEST_LABEL not in forging.api.labels("theirs", 1)
    assert (await begun(forging)).taken_over == frozenset()


async def test_a_release_that_another_operator_claims_is_refused_with_what_to_do(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    claim = {release.MANAGED_LABEL: "true", release.CONFIG_MAP_LABEL: "another"}
    forging.api.put("web", 1, "deployed", claim, FORGED)
    manager = await begun(forging)
    with pytest.raises(helm_errors.HelmError, match="with the ConfigMap another"):
        await manager.ensure(asked(module_dir))
    assert forging.helm.verbs == []


async def test_what_became_of_a_record_is_told_from_what_the_operator_wrote(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await begun(forging)
    judged: list[str] = []
    manager.judged = lambda _module, text, _is_first: judged.append(text)
    await manager.ensure(asked(module_dir))
    await manager.ensure(asked(module_dir, size=2))

    def knows(number: int, *, is_last: bool = False) -> bool:
        stored = forging.api.objects.get(f"sh.helm.release.v1.web.v{number}")
        version = "" if stored is None else stored["metadata"]["resourceVersion"]
        return manager.knows(WEB, number, version, is_last=is_last)

    assert knows(2)
    assert knows(1), "an earlier revision"
    assert not knows(1, is_last=True)
    assert await manager.look_at_record(WEB) == ""

    forge(forging, 2)
    forging.api.labels("web", 2)["by"] = "others"
    forging.api.objects["sh.helm.release.v1.web.v2"]["metadata"]["resourceVersion"] = "999"
    assert not knows(2)
    assert await manager.look_at_record(WEB) == ""
    assert "revision 2 of release web was made or changed by others" in judged[-1]

    del forging.api.objects["sh.helm.release.v1.web.v2"]
    assert not knows(2)
    assert await manager.look_at_record(WEB) == "the record addons/sh.helm.release.v1.web.v2 is gone"
    forging.api.remove("web")
    assert await manager.look_at_record(WEB) == "the record addons/sh.helm.release.v1.web.v1 is gone"
    assert knows(1)
    assert (await manager.ensure(asked(module_dir, size=2))).reason == (
        "the records of the release are gone, and revision 2 was deployed"
    )


async def test_a_release_that_others_uninstalled_has_to_be_put_in_order_when_they_are_done(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    found = {}
    for status in ("pending-upgrade", "uninstalling", "uninstalled"):
        forging.api.set_status("web", 1, status)
        found[status] = await manager.look_at_record(WEB)
    says = "the record addons/sh.helm.release.v1.web.v1 says uninstalled"
    assert found == {"pending-upgrade": "", "uninstalling": "", "uninstalled": says}


EDGE = "edge"
OURS = {
    release.MANAGED_LABEL: "true",
    release.REVISION_LABEL: "1",
    release.OPERATOR_LABEL: "addons",
    release.DIGEST_LABEL: "a" * 52,
}


def others_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have records be in a namespace where others write them; those of a :class:`.World` name no release."""

    async def as_labelled(*_: object) -> None:
        pass

    monkeypatch.setattr(record_lists.RecordLists, "is_private", lambda *_: False)
    monkeypatch.setattr(record_lists.RecordLists, "check_labels", as_labelled)


def restated(op: engine.Operator, number: int, status: str) -> None:
    """Have a revision say that it ended otherwise, in its label and inside; no digest is made over that."""
    held = op.helm.content("web", number, EDGE)
    labels = dict(op.helm.records("web", EDGE)[number]["metadata"]["labels"])
    del labels[release.REVISION_LABEL]
    more = {
        key: value for key, value in held.items() if key not in ("name", "namespace", "version", "manifest")
    }
    info = {**held.get("info", {}), "status": status}
    op.helm.put("web", number, status, labels, held["manifest"], EDGE, **{**more, "info": info})


@pytest.mark.parametrize(
    ("status", "more"),
    [("deployed", {}), ("uninstalled", {release.REMOVAL_LABEL: release.REMOVAL_BEGUN})],
    ids=["deployed", "half removed"],
)
async def test_no_hook_of_a_disabled_module_runs_for_a_release_that_nothing_is_remembered_of(
    op: engine.Operator, status: str, more: dict[str, str]
) -> None:
    op.modules.add("web", {"module.yaml": "namespace: edge", "values.yaml": "webEnabled: false"})
    hook = op.hook("web/a.sh", {"beforeDeleteHelm": 1, "afterDeleteHelm": 1})
    await op.start()
    op.helm.put("web", 1, status, {**OURS, **more}, FORGED, EDGE, info={"status": status})
    await op.stop()
    await op.start()
    assert (hook.told, op.helm.changes) == ([], [])
    assert op.helm.statuses("web", EDGE) == {1: status}
    assert len([text for text in op.heard.warnings if "stays: nothing is remembered of it" in text]) == 1
    await op.edit(webEnabled="true")
    assert op.statuses == {"web": "Ready"}
    await op.edit(webEnabled="false")
    assert hook.told[:1] == ["beforeDeleteHelm"], "what was installed is removed as ever"


async def test_what_was_deployed_is_not_installed_again_because_its_revisions_say_that_they_failed(
    op: engine.Operator,
) -> None:
    op.modules.add("web", {"module.yaml": "namespace: edge"})
    await op.start()
    restated(op, 1, "failed")
    await op.edit(web={"size": 2})
    assert op.helm.changes == ["upgrade web", "upgrade web"]
    assert op.statuses == {"web": "Ready"}


async def test_what_hooks_left_of_a_revision_that_worked_stays_although_that_says_that_it_failed(
    forging: fakes.World, module_dir: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    made = {**forging.api.content("web", 1), "hooks": [{"manifest": HOOK, "events": ["pre-delete"]}]}
    forging.api.rewrite("web", 1, made)
    assert forging.remembered is not None
    where = places.ReleaseLocations(fakes.NAMESPACE)
    proofs = record_proofs.RecordProofs(forging.remembered, where)
    forging.api.labels("web", 1)[release.DIGEST_LABEL] = proofs.digest("web", 1, made)
    forging.api.set_status("web", 1, "failed")
    annotations = {"helm.sh/hook": "pre-delete"}
    pod = {"kind": "Pod", "metadata": {"name": "evil", "annotations": annotations}}
    forging.live.objects[f"/api/v1/namespaces/{fakes.NAMESPACE}/pods/evil"] = pod
    await forging.remembered.write()
    manager = await begun(forging)
    others_write(monkeypatch)
    await manager.ensure(asked(module_dir, size=2))
    assert (forging.helm.verbs[-1], forging.live.deleted) == ("upgrade", [])


@pytest.mark.parametrize("has_failed", [False, True])
async def test_a_release_of_which_no_good_revision_is_known_is_not_removed_because_records_are_gone(
    forging: fakes.World,
    module_dir: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    has_failed: bool,
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    await manager.ensure(asked(module_dir, size=2))
    monkeypatch.setattr(record_lists.RecordLists, "is_private", lambda *_: False)
    del forging.api.objects["sh.helm.release.v1.web.v1"]
    if has_failed:
        # The memory is lost, and the next revision fails.
        forging.server.delete("Secret", fakes.MEMORY)
        manager = await begun(forging)
        forging.api.set_status("web", 2, "failed")
    failed = helm_errors.HelmError(WEB, "it does not render")
    outcome = await manager.roll_back(asked(module_dir, size=3), failed, unhealthy=not has_failed)
    assert "there is no rollback: no earlier revision was deployed and healthy" in str(outcome)
    assert "uninstall" not in forging.helm.verbs


async def test_a_revision_that_failed_and_says_deployed_is_none_of_ours(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    forging.helm.fail = {"upgrade": "no"}
    with pytest.raises(helm_errors.HelmError):
        await manager.ensure(asked(module_dir, size=2))
    forging.api.set_status("web", 1, "superseded")
    forging.api.set_status("web", 2, "deployed")
    with pytest.raises(helm_errors.ForeignRecordError, match="it failed"):
        await manager.deployed(WEB)


async def test_no_label_says_by_which_chart_a_secret_is_told_from_one_by_chance(
    forging: fakes.World, module_dir: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory may have another chart by now."""
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: '1'}\n"
    forging.helm.render = lambda _: f"{CLAIM}---\n{secret}"
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    forging.live.put_own("data", plural="persistentvolumeclaims")
    forging.live.put_own("db", plural="secrets")
    forging.helm.calls.clear()
    others_write(monkeypatch)
    assert await manager.remove(WEB, directory=module_dir)
    rendered = [call[2] for call in forging.helm.calls if call[0] == "template"]
    assert not [path for path in rendered if not path.endswith("/recorded")]


async def test_what_was_removed_and_failed_since_is_installed_anew_although_its_record_stays(
    forging: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await begun(forging)
    await manager.ensure(asked(module_dir))
    assert await manager.remove(WEB, keep_record=True)
    forging.helm.fail = {"upgrade": "no", "install": "no"}
    with pytest.raises(helm_errors.HelmError):
        await manager.ensure(asked(module_dir, size=2))
    for number in (1, 2):
        forging.api.labels("web", number).pop(release.REVISION_LABEL, None)
    forging.helm.fail = {}
    forging.helm.calls.clear()
    await manager.ensure(structs.replace(asked(module_dir, size=2), fresh=True))
    assert "install" in forging.helm.verbs
