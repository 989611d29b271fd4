"""Hooks that a standing-by replica holds: what makes them go, and when they are read again."""

import pathlib
from collections.abc import AsyncIterator

import pytest

from addon_operator.engine import state
from addon_operator.engine.bindings import kubernetes_binding, standby_loaded
from addon_operator.hook_contract.configuration import bindings, hook_config, webhook_bindings
from addon_operator.kernel import errors, names
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.kube.informers import informers, projections
from tests.support import api_server, clocks, listeners

PLACE = ("shop", "guard.sh")
HOSTS = bindings.KubernetesBinding(name="hosts", api_version="v1", kind="Host")
OTHERS = bindings.KubernetesBinding(name="others", api_version="v1", kind="Other")
GUARD = webhook_bindings.WebhookBinding(
    webhook_bindings.ReviewType.VALIDATING, "guard.shop.example", include_snapshots_from=("hosts",)
)


class Disk:
    """Hooks as files, and the watches for them."""

    def __init__(self, path: pathlib.Path, kube: client.KubeClient) -> None:
        self.path = path
        self.clock = clocks.Clock()
        kinds = discovery.Catalog(kube, self.clock)
        self.watches = informers.Informers(kube, kinds, self.clock, listeners.Failures().watch_failed)
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
        return self.watches.subscribe(
            kubernetes_binding.selection_of(binding), projections.Presence(), listeners.Recorder()
        )

    async def followed(self) -> list[str]:
        await clocks.settle()
        return self.watches.watches


@pytest.fixture
async def disk(
    tmp_path: pathlib.Path, server: api_server.ApiServer, kube: client.KubeClient
) -> AsyncIterator[Disk]:
    for kind in ("Host", "Other"):
        server.serve(kind, "v1")
    path = tmp_path / "guard.sh"
    path.write_text("one")
    made = Disk(path, kube)
    yield made
    await made.watches.close()


async def test_a_hook_is_asked_once_and_only_the_snapshots_of_its_answers_are_followed(disk: Disk) -> None:
    first = await disk.hooks.get(PLACE)
    assert await disk.hooks.get(PLACE) is first
    assert (disk.reads, await disk.followed()) == (1, ["hosts"])


async def test_a_changed_file_is_read_again_and_the_old_snapshots_stay_for_requests_that_need_them(
    disk: Disk,
) -> None:
    first = await disk.hooks.get(PLACE)
    disk.path.write_text("another")
    assert await disk.hooks.get(PLACE) is not first
    disk.hooks.keep_only([PLACE])
    assert (disk.reads, await disk.followed()) == (2, ["hosts"])
    await disk.clock.advance(standby_loaded.ANSWERED_SECONDS)
    disk.hooks.keep_only([PLACE])
    assert await disk.followed() == ["hosts"]
    assert not first.subscriptions[0].synced


async def test_what_is_not_needed_any_more_goes_when_no_request_needs_it(disk: Disk) -> None:
    await disk.hooks.get(PLACE)
    disk.hooks.keep_only([])
    assert await disk.followed() == ["hosts"]
    await disk.clock.advance(standby_loaded.ANSWERED_SECONDS)
    disk.hooks.keep_only([])
    assert (await disk.followed(), len(disk.hooks)) == ([], 0)
    await disk.hooks.get(PLACE)
    assert (disk.reads, await disk.followed()) == (2, ["hosts"])


async def test_a_hook_whose_file_is_gone_does_not_answer_with_what_it_was(disk: Disk) -> None:
    await disk.hooks.get(PLACE)
    disk.path.unlink()
    with pytest.raises(errors.ConfigurationError, match="there is no hook"):
        await disk.hooks.get(PLACE)
