"""A release that has to wait gets no revision that changes what runs."""

import pathlib

import pytest

from addon_operator.helm import helm_errors, release_types
from addon_operator.kernel import json_types, names
from addon_operator.modules import release
from tests.unit.helm import fakes

WEB = names.ModuleName("web")
INSTALLED, UPGRADED, SKIPPED, HELD_BACK = release_types.ReleaseAction


def asked(
    directory: pathlib.Path, size: int = 1, *, waits: bool = True, absent: tuple[str, ...] = ()
) -> release_types.ReleaseRequest:
    values: json_types.JsonObject = {"global": {}, "web": {"size": size}}
    return release_types.ReleaseRequest(
        WEB,
        directory,
        values,
        absent=absent,
        fresh=True,
        waits=waits,
        redact=lambda text: text.replace("s3cret", "***"),
    )


@pytest.fixture
def world(world: fakes.World) -> fakes.World:
    world.helm.render = lambda values: "".join(
        f"---\nkind: ConfigMap\nmetadata: {{name: s3cret-{number}}}\n"
        f"data: {{size: '{values['web']['size']}'}}\n"
        for number in range(values["web"]["size"] + 3)
    )
    return world


async def test_a_first_install_does_not_wait(world: fakes.World, module_dir: pathlib.Path) -> None:
    outcome = await world.manager().ensure(asked(module_dir))
    assert (outcome.action, outcome.held_back) == (INSTALLED, "")


async def test_another_try_of_a_first_install_does_not_wait(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    world.helm.fail["upgrade"] = "no quota"
    with pytest.raises(helm_errors.HelmError):
        await world.manager().ensure(asked(module_dir))
    world.helm.fail.clear()
    outcome = await world.manager().ensure(asked(module_dir, size=2))
    assert (outcome.action, outcome.revision) == (INSTALLED, 2)


async def test_a_change_waits_and_says_what_it_is_without_values(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    world.helm.calls.clear()
    outcome = await manager.ensure(asked(module_dir, size=2))
    assert (outcome.action, outcome.revision, outcome.is_broken) == (HELD_BACK, 1, False)
    assert outcome.held_back == (
        "upgrade to revision 2: 5 resources change: "
        "ConfigMap ***-0, ConfigMap ***-1, ConfigMap ***-2 and 2 more"
    )
    assert world.helm.verbs == ["template"]
    assert world.api.last("web") == 1
    # Nothing of it counts as done.
    assert (await manager.ensure(asked(module_dir, size=2))).action is HELD_BACK
    assert (await manager.ensure(asked(module_dir, size=2, waits=False))).action is UPGRADED
    assert (await manager.ensure(asked(module_dir, size=2))).action is SKIPPED


async def test_another_try_of_a_revision_that_failed_waits_and_the_release_is_broken(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    world.helm.fail["upgrade"] = "no quota"
    with pytest.raises(helm_errors.HelmError):
        await manager.ensure(asked(module_dir, size=2, waits=False))
    world.helm.fail.clear()
    outcome = await manager.ensure(asked(module_dir, size=2))
    assert (outcome.action, outcome.is_broken) == (HELD_BACK, True)
    assert outcome.held_back == "upgrade to revision 3: revision 2 is failed"


async def test_a_revision_that_only_brings_back_what_is_absent_does_not_wait(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    outcome = await manager.ensure(asked(module_dir, absent=("ConfigMap s3cret-0",)))
    assert (outcome.action, outcome.revision) == (UPGRADED, 2)
    outcome = await manager.ensure(asked(module_dir, size=2, absent=("ConfigMap s3cret-0",)))
    assert (outcome.action, outcome.revision) == (HELD_BACK, 2), "it would bring the change, too"


@pytest.mark.parametrize(
    ("status", "labels"),
    [("deployed", {}), ("pending-upgrade", {release.MANAGED_LABEL: "true"})],
    ids=["of somebody else", "interrupted"],
)
async def test_a_revision_that_somebody_else_made_or_nobody_finished_is_followed_in_a_window_only(
    world: fakes.World, module_dir: pathlib.Path, status: str, labels: dict[str, str]
) -> None:
    manager = world.manager()
    await manager.ensure(asked(module_dir))
    world.api.set_status("web", 1, "deployed" if status != "deployed" else "superseded")
    world.api.put("web", 2, status, labels, "kind: Other\nmetadata: {name: other}\n")
    outcome = await manager.ensure(asked(module_dir, size=2))
    assert outcome.action is HELD_BACK
    assert len(outcome.recovered) == (status != "deployed")


async def test_a_preview_says_whether_it_may_wait(world: fakes.World, module_dir: pathlib.Path) -> None:
    manager = world.manager()
    may_wait = []
    for size in (1, 1, 2):
        may_wait.append((await manager.preview(asked(module_dir, size))).may_wait)
        await manager.ensure(asked(module_dir, size, waits=False))
    assert may_wait == [False, False, True]
