"""Hooks that a standing-by replica holds: what makes them go, and when they are read again."""

import pathlib
from collections.abc import Sequence

import pytest
from typing_extensions import override

from addon_operator.engine import state
from addon_operator.engine.bindings import kubernetes_binding, standby_loaded
from addon_operator.hook_contract.configuration import bindings, hook_config, webhook_bindings
from addon_operator.kernel import errors, names
from addon_operator.kube.informers import informers, object_changes
from tests.support import clocks
from tests.unit.engine import bound_fakes

PLACE = ("shop", "guard.sh")
HOSTS = bindings.KubernetesBinding(name="hosts", api_version="v1", kind="Host")
OTHERS = bindings.KubernetesBinding(name="others", api_version="v1", kind="Other")
GUARD = webhook_bindings.WebhookBinding(
    webhook_bindings.ReviewType.VALIDATING, "guard.shop.example", include_snapshots_from=("hosts",)
)


class Unheard(object_changes.ObjectListener):
    """Only the snapshots count."""

    @override
    def synced(self) -> None: ...

    @override
    def changed(self, changes: Sequence[object_changes.Change]) -> None: ...

    @override
    def trouble(self, reason: str | None) -> None: ...


class Disk:
    """Hooks as files, and the cluster that they follow."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.cluster = bound_fakes.Cluster()
        self.clock = clocks.Clock()
        self.reads = 0
        self.hooks = standby_loaded.LoadedHooks(self._read, self._follow, self.clock)

    async def _read(self, owner: str, name: str) -> tuple[state.Hook, standby_loaded.Stamp]:
        stamp = standby_loaded.stamp(self.path)
        if stamp is None:
            raise errors.ConfigurationError(f"there is no hook {name}")
        self.reads += 1
        config = hook_config.HookConfig(kubernetes=(HOSTS, OTHERS), webhooks=(GUARD,))
        return state.Hook(name, self.path, config, names.ModuleName(owner)), stamp

    def _follow(self, binding: bindings.KubernetesBinding) -> informers.Subscription:
        return self.cluster.subscribe(
            kubernetes_binding.selection_of(binding),
            kubernetes_binding.projection_of(binding, bound_fakes.NoJq()),
            Unheard(),
        )

    @property
    def followed(self) -> list[str]:
        return [each.kind for each in self.cluster.subscriptions]


@pytest.fixture
def disk(tmp_path: pathlib.Path) -> Disk:
    path = tmp_path / "guard.sh"
    path.write_text("one")
    return Disk(path)


async def test_a_hook_is_asked_once_and_only_the_snapshots_of_its_answers_are_followed(disk: Disk) -> None:
    first = await disk.hooks.get(PLACE)
    assert await disk.hooks.get(PLACE) is first
    assert (disk.reads, disk.followed) == (1, ["Host"])


async def test_a_changed_file_is_read_again_and_the_old_snapshots_stay_for_requests_that_need_them(
    disk: Disk,
) -> None:
    first = await disk.hooks.get(PLACE)
    disk.path.write_text("another")
    assert await disk.hooks.get(PLACE) is not first
    disk.hooks.keep_only([PLACE])
    assert (disk.reads, disk.followed) == (2, ["Host", "Host"])
    await disk.clock.advance(standby_loaded.ANSWERED_SECONDS)
    disk.hooks.keep_only([PLACE])
    assert disk.followed == ["Host"]
    assert first.subscriptions[0] not in disk.cluster.subscriptions


async def test_what_is_not_needed_any_more_goes_when_no_request_needs_it(disk: Disk) -> None:
    await disk.hooks.get(PLACE)
    disk.hooks.keep_only([])
    assert disk.followed == ["Host"]
    await disk.clock.advance(standby_loaded.ANSWERED_SECONDS)
    disk.hooks.keep_only([])
    assert (disk.followed, len(disk.hooks)) == ([], 0)
    await disk.hooks.get(PLACE)
    assert (disk.reads, disk.followed) == (2, ["Host"])


async def test_a_hook_whose_file_is_gone_does_not_answer_with_what_it_was(disk: Disk) -> None:
    await disk.hooks.get(PLACE)
    disk.path.unlink()
    with pytest.raises(errors.ConfigurationError, match="there is no hook"):
        await disk.hooks.get(PLACE)
