"""The release manager over a helm and an API server in memory."""

import asyncio
import contextlib
import json
import pathlib
import uuid
from collections.abc import Callable

import pytest
from msgspec import structs

from addon_operator.helm import helm_errors, release_types, remembered
from addon_operator.helm.releases import record_lists, releases
from addon_operator.kernel import json_types, names
from addon_operator.kube import api_errors, paths
from addon_operator.modules import manifests, model, release
from tests.unit.helm import fakes

WEB = names.ModuleName("web")


def asked(
    directory: pathlib.Path,
    size: int = 1,
    absent: tuple[str, ...] = (),
    fresh: bool = False,
    redact: Callable[[str], str] = str,
) -> release_types.ReleaseRequest:
    values: json_types.JsonObject = {"global": {}, "web": {"size": size}}
    return release_types.ReleaseRequest(WEB, directory, values, absent, fresh, redact)


async def test_the_first_run_installs(world: fakes.World, module_dir: pathlib.Path) -> None:
    outcome = await world.manager().ensure(asked(module_dir))
    assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.INSTALLED, 1)
    assert world.helm.verbs == ["upgrade"]
    assert world.api.labels("web", 1)[release.MANAGED_LABEL] == "true"
    assert world.api.labels("web", 1)[release.MANIFEST_LABEL] == outcome.manifest_checksum


async def test_an_unchanged_module_starts_no_helm(world: fakes.World, module_dir: pathlib.Path) -> None:
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    outcome = await manager.ensure(asked(module_dir))
    assert (outcome.action, outcome.by) == (release_types.ReleaseAction.SKIPPED, release.SkippedBy.INPUTS)
    assert outcome.revision == 1
    assert world.helm.verbs == ["upgrade"]


@pytest.mark.parametrize(
    ("template", "verbs"),
    [("{{ .Values.global.enabledModules }}", ["template", "upgrade"]), ("{{ 1 }}", [])],
)
async def test_another_enabled_module_renders_only_charts_that_read_the_list(
    world: fakes.World, module_dir: pathlib.Path, template: str, verbs: list[str]
) -> None:
    (module_dir / "templates" / "list.yaml").write_text(template)
    manager = world.manager()
    for listed in (["web"], ["db", "web"]):
        world.helm.calls.clear()
        await manager.ensure(structs.replace(asked(module_dir), enabled_modules=listed))
    assert world.helm.verbs == verbs


async def test_a_restarted_operator_makes_one_list_call_and_starts_no_helm(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    first = await world.manager().ensure(asked(module_dir))
    world.api.lists.clear()
    world.helm.calls.clear()
    restarted = world.manager()
    await restarted.observe_all()
    outcome = await restarted.ensure(asked(module_dir))
    assert outcome.by is release.SkippedBy.INPUTS
    assert outcome.manifest_checksum == first.manifest_checksum
    assert world.helm.calls == []
    assert world.api.lists == [record_lists.OWNED_BY_HELM]
    assert world.capability_reads == 0, "an unchanged chart needs no discovery"


async def test_changed_values_upgrade_without_validation(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    outcome = await manager.ensure(asked(module_dir, size=2))
    assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.UPGRADED, 2)
    assert outcome.reason == "the values, Helm or the cluster changed"
    assert "--disable-openapi-validation" not in world.helm.calls[0]
    assert "--disable-openapi-validation" in world.helm.calls[2]


async def test_upgrades_save_where_hooks_wrote_to_without_a_request_of_their_own(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = world.manager()

    async def released(size: int, places: str) -> list[str]:
        world.api.patches.clear()
        request = structs.replace(asked(module_dir, size=size), hook_places=places)
        await manager.ensure(request)
        given = await manager.revision_inputs(WEB)
        assert given is not None
        assert (given.hook_places or "") == places
        return [name.rpartition(".")[2] for name in world.api.patches]

    assert await released(1, "") == ["v1"], "the checksums of an install are saved afterwards"
    assert await released(2, "") == []
    assert await released(3, "here") == []
    assert await released(4, "here") == []
    assert await released(5, "at other places") == []
    assert await released(6, "") == [], "Helm takes the labels away that it would copy"
    long = "".join(map(chr, range(33, 1533)))
    assert await released(7, long) == ["v7"], "it is too long for labels"
    assert await released(8, "here") == []


async def test_a_changed_chart_is_validated(world: fakes.World, module_dir: pathlib.Path) -> None:
    world.helm.render = lambda _: (module_dir / "templates" / "config.yaml").read_text()
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    (module_dir / "templates" / "config.yaml").write_text("kind: Secret\n")
    outcome = await manager.ensure(asked(module_dir))
    assert outcome.reason == "files of the chart changed, such as templates or values.yaml"
    assert "--disable-openapi-validation" not in world.helm.calls[-1]


async def test_values_without_effect_make_no_revision(world: fakes.World, module_dir: pathlib.Path) -> None:
    world.helm.render = lambda _: "kind: ConfigMap\n"
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    outcome = await manager.ensure(asked(module_dir, size=2))
    assert (outcome.action, outcome.by) == (release_types.ReleaseAction.SKIPPED, release.SkippedBy.MANIFEST)
    assert world.api.last("web") == 1


async def test_after_a_render_without_effect_a_restart_needs_no_helm(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    world.helm.render = lambda _: "kind: ConfigMap\n"
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    await manager.ensure(asked(module_dir, size=2))
    await manager.ensure(asked(module_dir, size=3))
    world.helm.calls.clear()
    outcome = await world.manager().ensure(asked(module_dir, size=3))
    assert outcome.by is release.SkippedBy.INPUTS
    assert world.helm.calls == []


async def test_checksums_that_cannot_be_saved_are_reported_and_remembered(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    world.helm.render = lambda _: "kind: ConfigMap\n"
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    target = paths.target("PATCH", f"{fakes.SECRETS}/x")
    world.api.patch_error = api_errors.Forbidden(target, 403, "Forbidden", "no")
    await manager.ensure(asked(module_dir, size=2))
    world.helm.calls.clear()
    assert (await manager.ensure(asked(module_dir, size=2))).by is release.SkippedBy.INPUTS
    assert world.helm.calls == []
    assert [module for module, text in world.warnings if "could not be saved" in text] == ["web"]


async def test_a_chart_that_is_not_reproducible_does_not_loop(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    world.helm.render = lambda _: f"password: {uuid.uuid4()}\n"
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    await manager.ensure(asked(module_dir))
    await world.manager().ensure(asked(module_dir))
    assert world.api.last("web") == 1


async def test_an_absent_resource_is_restored_although_nothing_changed(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    outcome = await manager.ensure(asked(module_dir, absent=("ConfigMap web",)))
    assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.UPGRADED, 2)
    assert outcome.reason == "absent in the cluster: ConfigMap web"


async def test_a_failed_upgrade_is_tried_again(world: fakes.World, module_dir: pathlib.Path) -> None:
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    world.helm.fail["upgrade"] = "no\n\tgood: not found"
    with pytest.raises(helm_errors.HelmError, match="module web: helm upgrade: no good: not found"):
        await manager.ensure(asked(module_dir, size=2))
    world.helm.fail.clear()
    outcome = await manager.ensure(asked(module_dir, size=3))
    assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.UPGRADED, 3)
    assert outcome.reason == "revision 2 is failed"


async def test_after_a_failure_the_record_is_read_again(world: fakes.World, module_dir: pathlib.Path) -> None:
    manager = world.manager()
    await manager.observe_all()
    world.helm.fail["upgrade"] = "no"
    with pytest.raises(helm_errors.HelmError):
        await manager.ensure(asked(module_dir))
    world.api.lists.clear()
    world.helm.fail.clear()
    await manager.ensure(asked(module_dir))
    assert world.api.lists[0] == "owner=helm,name=web"


async def test_a_fresh_run_sees_what_somebody_did_by_hand(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = world.manager()
    await manager.observe_all()
    await manager.ensure(asked(module_dir))
    world.api.put("web", 2, "deployed", world.api.labels("web", 1))
    outcome = await manager.ensure(asked(module_dir, fresh=True))
    assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.UPGRADED, 3)
    assert outcome.reason == "revision 2 was not made by this operator"


async def test_a_stuck_upgrade_counts_as_failed_whatever_it_changed_until_then(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    world.api.put("web", 2, "pending-upgrade", world.api.labels("web", 1))
    outcome = await world.manager().ensure(asked(module_dir))
    assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.UPGRADED, 3)
    assert outcome.recovered == ("revision 2 is stuck in pending-upgrade: it counts as failed",)
    failed = world.api.content("web", 2)["info"]
    assert (world.api.labels("web", 2)["status"], failed["status"]) == ("failed", "failed")
    assert failed["description"] == "interrupted: it was pending-upgrade when its Helm was gone"


async def test_a_removal_that_had_begun_is_taken_back_without_a_revision(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    world.api.put("web", 1, "uninstalling", world.api.labels("web", 1))
    before = len(world.helm.verbs)
    outcome = await manager.ensure(asked(module_dir, fresh=True))
    assert world.helm.verbs[before:] == []
    assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.SKIPPED, 1)
    assert outcome.recovered == ("the removal of revision 1 is taken back",)
    assert world.api.labels("web", 1)["status"] == "deployed"
    assert world.api.content("web", 1)["info"]["status"] == "deployed"


async def test_a_release_that_stays_stuck_is_an_error_not_an_endless_loop(
    world: fakes.World, module_dir: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.api.put("web", 4, "pending-upgrade", {})

    async def ignore(*_: object, **__: object) -> dict[str, object]:
        return {}

    monkeypatch.setattr(world.api, "patch", ignore)
    with pytest.raises(helm_errors.HelmError, match="revision 4 is stuck in pending-upgrade"):
        await world.manager().ensure(asked(module_dir))


async def test_a_release_of_the_go_operator_is_taken_over_once(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    world.api.put("web", 7, "deployed", {release.GO_OPERATOR_LABEL: "abc"})
    manager = world.manager()
    outcome = await manager.ensure(asked(module_dir))
    assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.UPGRADED, 8)
    assert (await manager.ensure(asked(module_dir))).action is release_types.ReleaseAction.SKIPPED


async def test_two_runs_of_one_release_wait_for_each_other(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = world.manager()
    runs = [manager.ensure(asked(module_dir, size=size)) for size in (1, 2, 3)]
    outcomes, removed = await asyncio.gather(asyncio.gather(*runs), manager.remove(WEB))
    assert [outcome.revision for outcome in outcomes] == [1, 2, 3]
    assert removed is True


async def test_values_are_gone_after_a_run(world: fakes.World, module_dir: pathlib.Path) -> None:
    await world.manager().ensure(asked(module_dir))
    assert world.helm.values_files
    assert not any(path.exists() for path in world.helm.values_files)
    assert list(world.workspace.iterdir()) == []


async def test_values_are_gone_after_a_failed_run(world: fakes.World, module_dir: pathlib.Path) -> None:
    world.helm.fail["upgrade"] = "no"
    with pytest.raises(helm_errors.HelmError):
        await world.manager().ensure(asked(module_dir))
    assert list(world.workspace.iterdir()) == []


async def test_sensitive_values_are_hidden_in_errors_and_warnings(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    await world.manager().ensure(asked(module_dir))
    world.helm.stderr = ["WARNING: hunter2 is short"]
    world.helm.fail["template"] = "execution error at (web/x.yaml:1:3): hunter2 is not a number"
    request = asked(module_dir, size=2, redact=lambda text: text.replace("hunter2", "***"))
    with pytest.raises(helm_errors.HelmError, match=r"\*\*\* is not a number"):
        await world.manager().ensure(request)
    assert world.warnings == [("web", "*** is short")]


SERVICES = """\
---
# Source: web/templates/services.yaml
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {porrts: [], ports: [{port: 80, prot: TCP}]}
---
# Source: web/templates/other.yaml
apiVersion: v1
kind: Service
metadata: {name: other}
spec: {porrts: []}
"""


@pytest.mark.parametrize("fails", [False, True])
async def test_the_objects_are_named_that_have_a_field_which_the_api_server_does_not_know(
    fails: bool, world: fakes.World, module_dir: pathlib.Path
) -> None:
    world.helm.render = lambda values: SERVICES.replace("TCP", "".join(filter(str.isalnum, str(values))))
    await world.manager().ensure(asked(module_dir))
    said = ("spec.porrts", "spec.ports[0].prot", "spec.nowhere[7]")
    klog = "I1121 11:12:52.051989   26041 warnings.go:107]"
    world.helm.stderr = [f'{klog} "Warning: unknown field \\"{each}\\""' for each in said]
    if fails:
        world.helm.fail["upgrade"] = "no"
    with pytest.raises(helm_errors.HelmError) if fails else contextlib.nullcontext():
        await world.manager().ensure(asked(module_dir, size=2))
    told = [text for _, text in world.warnings if "unknown field" in text]
    assert [text for text in world.doubts if "unknown field" in text] == told
    in_chart = f"({module_dir}/templates"
    assert told[-3:] == [
        (
            f"Service/web {in_chart}/services.yaml), Service/other {in_chart}/other.yaml): "
            'unknown field "spec.porrts"'
        ),
        f'Service/web {in_chart}/services.yaml): unknown field "spec.ports[0].prot"',
        'unknown field "spec.nowhere[7]"',
    ]


FOREIGN = (
    "Unable to continue with install: Service web exists and cannot be imported into the current release"
)


async def test_an_upgrade_that_takes_over_and_fails_tells_all_that_it_said(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    await world.manager().ensure(asked(module_dir))
    world.helm.fail["upgrade"], world.helm.stores_failed = FOREIGN, False
    world.helm.stderr = ['I1121 11:12:52.051989   26041 warnings.go:107] "Warning: unknown field \\"x.y\\""']
    with pytest.raises(helm_errors.HelmError) as failed:
        await world.manager().ensure(asked(module_dir, size=2))
    assert ("web", 'unknown field "x.y"') in world.warnings
    assert failed.value.__cause__ is not failed.value


@pytest.mark.parametrize("makes", [True, False])
async def test_a_call_that_made_a_revision_is_not_made_again_in_the_same_run(
    world: fakes.World, module_dir: pathlib.Path, *, makes: bool
) -> None:
    await world.manager().ensure(asked(module_dir))
    world.helm.fail["upgrade"], world.helm.stores_failed = FOREIGN, makes
    world.helm.calls.clear()
    with pytest.raises(helm_errors.HelmError, match="cannot be imported"):
        await world.manager().ensure(asked(module_dir, size=2))
    assert world.helm.verbs.count("upgrade") == (1 if makes else 2)


async def test_a_first_install_that_took_objects_over_waits_for_no_cause_if_helm_was_not_called(
    world: fakes.World, module_dir: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = await world.restarted(model.Module(WEB, 10, module_dir))
    assert world.remembered is not None
    place = manager.places.of(WEB)
    adopted = remembered.RememberedObject(api_version="v1", kind="ConfigMap", name="web", uid="1")
    world.remembered.change(place, adopted=(adopted,))
    planner = world.planner()

    async def changed(*_: object) -> None:
        raise helm_errors.NotCalledError(WEB, "others changed a record")

    monkeypatch.setattr(planner.calls, "check_again", changed)
    with pytest.raises(helm_errors.NotCalledError):
        await releases.ReleaseManager(planner).ensure(asked(module_dir))
    known = world.remembered.of(place)
    assert planner.adoptions.has(WEB)
    assert (known.rejected.inputs, known.failed) == ("", ())


async def test_a_chart_that_looks_at_capabilities_is_rendered_again_when_the_cluster_changes(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    (module_dir / "templates" / "config.yaml").write_text("{{ .Capabilities.KubeVersion }}")
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    world.cluster = type(world.cluster)("v1.37.0", world.cluster.api_versions)
    world.helm.calls.clear()
    outcome = await manager.ensure(asked(module_dir))
    assert outcome.by is release.SkippedBy.MANIFEST
    arguments = world.helm.calls[0]
    assert arguments[arguments.index("--kube-version") + 1] == "v1.37.0"
    assert arguments.count("--api-versions") == 2


async def test_another_helm_renders_again(world: fakes.World, module_dir: pathlib.Path) -> None:
    await world.manager().ensure(asked(module_dir))
    world.version = "v4.3.1"
    assert (await world.manager().ensure(asked(module_dir))).by is release.SkippedBy.MANIFEST


async def test_the_time_of_each_operation_is_reported(world: fakes.World, module_dir: pathlib.Path) -> None:
    await world.manager().ensure(asked(module_dir))
    outcome = await world.manager().ensure(asked(module_dir, size=2))
    assert set(outcome.seconds) == set(release_types.Operation)
    assert all(seconds > 0 for seconds in outcome.seconds.values())


async def test_remove_uninstalls(world: fakes.World, module_dir: pathlib.Path) -> None:
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    assert await manager.remove(WEB) is True
    assert await manager.observe_all() == {}
    assert (await manager.ensure(asked(module_dir))).action is release_types.ReleaseAction.INSTALLED


async def test_a_record_tells_the_next_start_that_a_removal_is_unfinished(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    assert await manager.remove(WEB, keep_record=True) is True
    manager = world.manager()
    kept = (await manager.observe_all())["web"]
    assert (kept.exists, kept.half_removed, kept.ours) == (False, True, True)
    assert await manager.remove(WEB) is False, "the release itself was removed before"
    assert await manager.observe_all() == {}
    assert world.api.objects == {}


async def test_a_module_that_is_wanted_again_before_its_removal_ended_is_installed(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    await manager.remove(WEB, keep_record=True)
    assert (await manager.ensure(asked(module_dir))).action is release_types.ReleaseAction.INSTALLED
    assert (await manager.observe_all())["web"].exists


async def test_a_removal_that_cannot_be_noted_down_is_none_the_worse(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    target = paths.target("PATCH", fakes.SECRETS)
    world.api.patch_error = api_errors.Forbidden(target, 403, "Forbidden", "no")
    assert await manager.remove(WEB, keep_record=True) is True
    assert world.api.objects == {}
    assert any("it is not continued" in text for _, text in world.warnings)


@pytest.mark.parametrize("status", [None, "uninstalled"], ids=["no release", "kept history"])
async def test_remove_starts_no_helm_when_nothing_is_installed(
    world: fakes.World, status: str | None
) -> None:
    if status:
        world.api.put("web", 1, status, {})
    assert await world.manager().remove(WEB) is False
    assert world.helm.calls == []


async def test_all_releases_are_distinguished_by_their_labels(world: fakes.World) -> None:
    world.api.put("ours", 1, "superseded", {release.MANAGED_LABEL: "true"})
    world.api.put("ours", 2, "deployed", {release.MANAGED_LABEL: "true"})
    world.api.put("foreign", 1, "deployed", {})
    world.api.put("gone", 1, "uninstalled", {release.MANAGED_LABEL: "true"})
    found = await world.manager().observe_all()
    assert {name: revision.ours for name, revision in found.items()} == {"ours": True, "foreign": False}
    assert found["ours"].number == 2


async def test_the_applied_manifest_can_be_read_back(world: fakes.World, module_dir: pathlib.Path) -> None:
    world.helm.render = lambda _: "kind: ConfigMap\n"
    manager = world.manager()
    assert await manager.manifest(WEB) is None
    await manager.ensure(asked(module_dir))
    assert await manager.manifest(WEB) == "kind: ConfigMap\n"


async def test_relative_directories_do_for_helm(
    world: fakes.World, module_dir: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(module_dir.parent)
    world.workspace = pathlib.Path("workspace")
    await world.manager().ensure(asked(pathlib.Path(module_dir.name)))
    for call in world.helm.calls:
        assert pathlib.Path(call[2]).is_absolute()
        assert pathlib.Path(call[call.index("--values") + 1]).is_absolute()


async def test_a_render_gives_the_manifest_and_touches_no_release(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    world.helm.render = lambda _: "kind: ConfigMap\n"
    assert await world.manager().render(asked(module_dir)) == "kind: ConfigMap\n"
    assert world.helm.verbs == ["template"]
    assert "--is-upgrade" not in world.helm.calls[0]
    await world.manager().ensure(asked(module_dir))
    await world.manager().render(asked(module_dir))
    assert "--is-upgrade" in world.helm.calls[-1]
    assert world.api.last("web") == 1


async def test_a_chart_that_looks_at_the_cluster_is_rendered_once_more_after_each_call(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    (module_dir / "templates" / "config.yaml").write_text('{{ lookup "v1" "Secret" "" "web" }}')
    # What the lookup finds follows from what is installed.
    world.helm.render = lambda values: (
        f"kind: X\nsize: {values['web']['size']}\nlast: {world.api.last('web')}\n"
    )
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    assert world.helm.verbs == ["upgrade", "template"]
    assert "--is-upgrade" in world.helm.calls[1]
    await manager.ensure(asked(module_dir, size=2))
    assert world.helm.verbs[2:] == ["template", "upgrade", "template"]
    # Another input that changes nothing makes no revision.
    world.version = "v3.20.0"
    assert (await world.manager().ensure(asked(module_dir, size=2))).by is release.SkippedBy.MANIFEST


async def test_a_chart_whose_upgrade_fails_is_installed_all_the_same_and_that_is_reported(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    (module_dir / "templates" / "config.yaml").write_text("{{ if .Release.IsUpgrade }}{{ fail }}{{ end }}")
    world.helm.fail["template"] = "execution error at (web:1:1): the password is missing"
    manager = world.manager()
    assert (await manager.ensure(asked(module_dir))).action is release_types.ReleaseAction.INSTALLED
    ((_, warning),) = world.warnings
    assert (
        "an upgrade of it would fail: the password is missing, says the chart at web:1:1 (helm template)"
        in warning
    )
    assert (await world.manager().ensure(asked(module_dir))).by is release.SkippedBy.INPUTS


async def test_a_record_that_cannot_be_decoded_after_the_install_makes_a_render(
    world: fakes.World, module_dir: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fakes, "storage_text", lambda *_: "???")
    outcome = await world.manager().ensure(asked(module_dir))
    assert world.helm.verbs == ["upgrade", "template"]
    assert outcome.manifest_checksum


HOOK = 'kind: Job\nmetadata: {{name: {name}, annotations: {{helm.sh/hook: "{event}"}}}}\nimage: app:{tag}\n'


@pytest.mark.parametrize(
    ("event", "tag", "is_random", "revisions"),
    [
        pytest.param("test", 2, True, 1, id="a test"),
        pytest.param("test-success", 2, False, 1, id="a test of Helm 2"),
        pytest.param("pre-upgrade", 1, True, 1, id="a random name"),
        pytest.param("pre-upgrade", 2, True, 2, id="a random name and another image"),
        pytest.param("pre-upgrade", 1, False, 2, id="another name that is not random"),
        pytest.param("test,pre-upgrade", 2, False, 2, id="a test that is more"),
    ],
)
async def test_hooks_of_helm_make_a_revision_unless_they_are_tests_or_their_name_is_random(
    world: fakes.World, module_dir: pathlib.Path, event: str, tag: int, is_random: bool, revisions: int
) -> None:
    (module_dir / "templates" / "config.yaml").write_text("{{ randAlphaNum 5 }}")

    def render(values: json_types.JsonObject) -> str:
        size = values["web"]["size"]  # type: ignore[index, call-overload]
        name = uuid.uuid4() if is_random else f"run-{size}"
        return HOOK.format(name=name, event=event, tag=tag if size == 2 else 1)

    world.helm.render = render
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    await manager.ensure(asked(module_dir, size=2))
    assert world.api.last("web") == revisions


async def test_a_release_whose_checksums_are_of_an_older_kind_is_compared_with_its_record(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    await world.manager().ensure(asked(module_dir))
    labels = world.api.labels("web", 1)
    labels["addon-operator.io/manifest-checksum"] = labels.pop(release.MANIFEST_LABEL)
    assert (await world.manager().ensure(asked(module_dir))).by is release.SkippedBy.MANIFEST
    assert world.api.labels("web", 1)[release.MANIFEST_LABEL]


UNREAD = 'cannot patch "web" with kind ConfigMap:  "" is invalid: patch: Invalid value: "{}": json'
UNTYPED = (
    "failed to create typed patch object (addons/web; v1, Kind=ConfigMap): .data: expected map, got &{x}"
)
UNHANDLED = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal string'
REFUSED = 'Release "web" failed: ConfigMap "web" is invalid: size: Invalid value: 0'
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
CONFIG_MAP += "---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\n"


async def failed_once(world: fakes.World, module_dir: pathlib.Path, reason: str = REFUSED) -> None:
    world.helm.render = lambda _: CONFIG_MAP
    await world.manager().ensure(asked(module_dir))
    world.api.put("web", 2, "failed", world.api.labels("web", 1), CONFIG_MAP, description=reason)


def refusal(status: int, message: str) -> api_errors.ApiError:
    target = paths.target("PATCH", "/api/v1/namespaces/addons/configmaps/web")
    body = json.dumps({"message": message}).encode()
    return api_errors.from_answer(target, status, body)


@pytest.mark.parametrize("exists", [True, False])
async def test_what_the_api_server_refuses_still_makes_no_other_revision(
    world: fakes.World, module_dir: pathlib.Path, exists: bool
) -> None:
    await failed_once(world, module_dir)
    world.live.refusal = refusal(422, "ConfigMap is invalid in other words")
    if exists:
        world.live.put("web")
    with pytest.raises(
        helm_errors.HelmError, match="revision 2 failed because of this, and no further one is made"
    ):
        await world.manager().ensure(asked(module_dir, size=2))
    assert world.api.last("web") == 2
    assert all("configmaps" in path for path in world.live.asked), "the other object has no part in it"
    world.live.refusal = None
    assert (await world.manager().ensure(asked(module_dir, size=2))).revision == 3


@pytest.mark.parametrize(
    ("reason", "answer"),
    [
        pytest.param(UNREAD, refusal(422, '"" is invalid: patch: Invalid value: "{}": json'), id="unread"),
        pytest.param(
            f"server-side apply failed for object addons/web /v1, Kind=ConfigMap: {UNTYPED}",
            refusal(500, UNTYPED.replace("addons/", "/")),
            id="untyped",
        ),
        pytest.param(f"failed to create resource: {UNHANDLED}", refusal(400, UNHANDLED), id="unhandled"),
    ],
)
async def test_what_the_api_server_cannot_read_still_makes_no_other_revision(
    world: fakes.World, module_dir: pathlib.Path, reason: str, answer: api_errors.ApiError
) -> None:
    await failed_once(world, module_dir, reason)
    world.live.refusal = answer
    with pytest.raises(
        helm_errors.HelmError, match="revision 2 failed because of this, and no further one is made"
    ):
        await world.manager().ensure(asked(module_dir, size=2))
    assert world.api.last("web") == 2


async def test_a_standing_refusal_is_reported_without_values_where_no_values_are_shown(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    await failed_once(world, module_dir)
    world.live.refusal = refusal(422, 'ConfigMap "web" is invalid: size: Invalid value: 7: must be more')
    with pytest.raises(helm_errors.HelmError) as raised:
        await world.manager().ensure(asked(module_dir, size=2))
    assert (
        "size: Invalid value: ***: must be more (revision 2 failed because of this"
        in raised.value.without_values
    )


@pytest.mark.parametrize(
    "answer",
    [refusal(403, "a quota of which nothing was said"), refusal(500, "in trouble"), refusal(409, "conflict")],
    ids=["another refusal", "trouble", "conflict"],
)
async def test_another_answer_to_the_dry_run_leaves_it_to_helm(
    world: fakes.World, module_dir: pathlib.Path, answer: api_errors.ApiError
) -> None:
    await failed_once(world, module_dir)
    world.live.refusal = answer
    assert (await world.manager().ensure(asked(module_dir, size=2))).revision == 3


async def test_what_is_spared_is_taken_out_of_the_record_before_the_uninstallation(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    items = "".join(f"- {{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}}}\n" for name in "cd")
    world.helm.render = lambda _: f"{CONFIG_MAP}---\napiVersion: v1\nkind: List\nitems:\n{items}"
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    assert await manager.remove(WEB, keep_record=True, others=fakes.Others("web", "c"))
    assert world.api.labels("web", 1)[release.REMOVAL_LABEL] == release.REMOVAL_BEGUN
    left = manifests.resources(await manager.manifest(WEB) or "")
    assert [each.name for each in left] == ["b", "d"]


@pytest.mark.parametrize("broken", [[2], [1, 2]])
async def test_of_records_that_cannot_be_decoded_only_failed_ones_are_left_out_of_a_removal(
    world: fakes.World, broken: list[int]
) -> None:
    for number, status in ((1, "deployed"), (2, "failed")):
        world.api.put("web", number, status, {})
    for number in broken:
        world.api.objects[f"sh.helm.release.v1.web.v{number}"]["data"] = {"release": "!!"}
    removal = world.manager().remove(WEB)
    if 1 in broken:
        with pytest.raises(helm_errors.HelmError, match="cannot be decoded"):
            await removal
    else:
        assert await removal
    assert world.helm.verbs == ([] if 1 in broken else ["uninstall"])
    assert any("it failed, and is left out" in text for _, text in world.warnings)


async def test_what_an_upgrade_would_take_from_other_releases_is_taken_out_of_the_record_before(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    def document(name: str) -> str:
        return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"

    others = fakes.Others("shared")
    world.helm.render = lambda values: "---\n".join(
        map(document, ["kept", "own", "shared"] if values["web"]["size"] == 1 else ["kept"])
    )
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    request = structs.replace(asked(module_dir, size=2), others=others)
    world.helm.fail["upgrade"] = "not now"
    with pytest.raises(helm_errors.HelmError, match="helm upgrade failed"):
        await manager.ensure(request)
    assert others.asked == ["own", "shared"]
    deployed = await manager.deployed(WEB)
    assert deployed is not None
    assert [each.name for each in manifests.resources(deployed.manifest)] == ["kept", "own"]
    # With the old values again the record is no longer what they render to.
    world.helm.fail.clear()
    again = await manager.ensure(asked(module_dir))
    assert again.action is release_types.ReleaseAction.UPGRADED
