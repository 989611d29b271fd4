"""What failed is taken back, unless that would cost data, and is not tried again as it was."""

import json
import pathlib

import pytest
from msgspec import structs

from addon_operator.helm import helm_errors, release_types
from addon_operator.helm.releases import releases
from addon_operator.kernel import json_types, names
from addon_operator.modules import release
from tests.unit.helm import fakes

WEB = names.ModuleName("web")
ERROR = 'secrets "db" not found'
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"


def asked(directory: pathlib.Path, size: int = 1) -> release_types.ReleaseRequest:
    values: json_types.JsonObject = {"global": {}, "web": {"size": size}}
    return release_types.ReleaseRequest(WEB, directory, values, (), True)


def failing(world: fakes.World, manifest: str = MAP) -> None:
    world.helm.render = lambda _: manifest
    world.helm.fail |= dict.fromkeys(("install", "upgrade"), ERROR)


async def fail(manager: releases.ReleaseManager, request: release_types.ReleaseRequest) -> Exception:
    """Try it, and take it back; what is told."""
    with pytest.raises(helm_errors.HelmError) as raised:
        await manager.ensure(request)
    told = await manager.roll_back(request, raised.value, unhealthy=False)
    assert told is not None
    return told


async def installed(world: fakes.World, module_dir: pathlib.Path) -> releases.ReleaseManager:
    manager = world.manager()
    world.helm.render = lambda values: MAP + json.dumps(values)
    await manager.ensure(asked(module_dir))
    return manager


async def test_a_failed_upgrade_goes_back_to_the_revision_before(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await installed(world, module_dir)
    failing(world)
    told = await fail(manager, asked(module_dir, size=2))
    assert isinstance(told, helm_errors.RolledBackError)
    assert f"{ERROR}; revision 2 is taken back to revision 1" in str(told)
    assert world.helm.calls[-1][:3] == ["rollback", "web", "1"]
    assert world.api.labels("web", 3)["status"] == "deployed"


async def test_it_is_not_tried_again_as_it_was_and_a_restart_knows_what_it_failed_of(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await installed(world, module_dir)
    failing(world)
    await fail(manager, asked(module_dir, size=2))
    world.helm.calls.clear()
    for each in (manager, world.manager()):
        with pytest.raises(helm_errors.RolledBackError) as raised:
            await each.ensure(asked(module_dir, size=2))
        assert raised.value.is_old
        assert str(raised.value).endswith(f"; it failed with: helm upgrade: {ERROR}")
        assert ERROR not in raised.value.without_values
    assert world.helm.calls == []
    world.helm.fail.clear()
    insisting = structs.replace(asked(module_dir, size=2), insists=True)
    assert (await manager.ensure(insisting)).revision == 4
    assert release.REJECTED_LABEL not in world.api.labels("web", 4)


async def test_the_values_of_before_need_no_other_revision(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await installed(world, module_dir)
    failing(world)
    await fail(manager, asked(module_dir, size=2))
    world.helm.calls.clear()
    for each in (manager, world.manager()):
        outcome = await each.ensure(asked(module_dir))
        assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.SKIPPED, 3)
    assert world.helm.calls == []


async def test_other_values_are_tried(world: fakes.World, module_dir: pathlib.Path) -> None:
    manager = await installed(world, module_dir)
    failing(world)
    await fail(manager, asked(module_dir, size=2))
    world.helm.fail.clear()
    assert (await manager.ensure(asked(module_dir, size=3))).revision == 4


async def test_a_chart_that_was_put_right_while_it_failed_is_tried(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await installed(world, module_dir)
    failing(world)
    with pytest.raises(helm_errors.HelmError) as raised:
        await manager.ensure(asked(module_dir, size=2))
    (module_dir / "templates" / "config.yaml").write_text("kind: ConfigMap # right\n")
    assert await manager.roll_back(asked(module_dir, size=2), raised.value, unhealthy=False)
    world.helm.fail.clear()
    assert (await manager.ensure(asked(module_dir, size=2))).revision == 4


@pytest.mark.parametrize("tries", [1, 2], ids=["once", "after a kill between"])
async def test_an_install_that_never_worked_is_uninstalled(
    world: fakes.World, module_dir: pathlib.Path, tries: int
) -> None:
    manager = world.manager()
    failing(world)
    for _ in range(tries - 1):
        with pytest.raises(helm_errors.HelmError):
            await manager.ensure(asked(module_dir))
    told = await fail(manager, asked(module_dir))
    assert "the release is uninstalled, as there was none before" in str(told)
    assert world.api.last("web") == 0


def kept(kind: str) -> str:
    return f"{MAP}---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: data}}\n"


@pytest.mark.parametrize(
    ("kind", "plural"),
    [("PersistentVolumeClaim", "persistentvolumeclaims"), ("ConfigMap", "configmaps")],
)
async def test_what_holds_data_is_marked_before_it_is_taken_back(
    world: fakes.World, module_dir: pathlib.Path, kind: str, plural: str
) -> None:
    manager = await installed(world, module_dir)
    failing(world, kept(kind))
    request = asked(module_dir, size=2)
    with pytest.raises(helm_errors.HelmError) as raised:
        await manager.ensure(request)
    world.live.put_own("data", plural=plural)
    told = await manager.roll_back(request, raised.value, unhealthy=False)
    assert isinstance(told, helm_errors.RolledBackError)
    mark = {
        "labels": {"addon-operator.io/kept-from": "web"},
        "annotations": {"helm.sh/resource-policy": "keep"},
    }
    assert world.live.changed == ([("data", {"metadata": mark})] if kind != "ConfigMap" else [])


async def test_a_rollback_that_fails_tells_both_errors(world: fakes.World, module_dir: pathlib.Path) -> None:
    manager = await installed(world, module_dir)
    failing(world)
    world.helm.fail["rollback"] = 'configmaps "more" not found'
    told = await fail(manager, asked(module_dir, size=2))
    assert isinstance(told, helm_errors.RollbackRefusedError)
    assert ERROR in str(told)
    assert "the rollback failed, too: " in str(told)
    assert 'configmaps "more" not found' in str(told)


async def test_what_failed_before_it_made_a_revision_leaves_nothing_to_take_back(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await installed(world, module_dir)
    error = helm_errors.HelmError(WEB, "the chart does not render")
    assert await manager.roll_back(asked(module_dir, size=2), error, unhealthy=False) is None


async def test_what_did_not_become_healthy_goes_back_to_a_revision_that_was(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await installed(world, module_dir)
    await manager.mark(WEB, release.HEALTHY_LABEL)
    for size in (2, 3):
        await manager.ensure(asked(module_dir, size=size))
    error = helm_errors.HelmError(WEB, "not healthy within 5m")
    told = await manager.roll_back(asked(module_dir, size=3), error, unhealthy=True)
    assert "revision 3 is taken back to revision 1" in str(told)


async def test_without_a_revision_that_was_healthy_it_stays(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = await installed(world, module_dir)
    await manager.ensure(asked(module_dir, size=2))
    error = helm_errors.HelmError(WEB, "not healthy within 5m")
    told = await manager.roll_back(asked(module_dir, size=2), error, unhealthy=True)
    assert isinstance(told, helm_errors.RollbackRefusedError)
    assert "no earlier revision was deployed and healthy" in str(told)
