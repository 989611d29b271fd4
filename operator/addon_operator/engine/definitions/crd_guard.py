"""Brings back CustomResourceDefinitions of modules that somebody deletes."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from addon_operator.aio import waiting
from addon_operator.engine import events
from addon_operator.engine.definitions import module_crds
from addon_operator.engine.drift import drift_backoff, followed_releases
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors
from addon_operator.kube.informers import informers, object_changes, object_selections, projections
from addon_operator.modules import crd_files, model
from addon_operator.values import store

RETRY: Final = 5.0
"""Seconds until a definition that could not be applied is tried again."""


class CrdGuard(object_changes.ObjectListener, module_crds.DefinitionListener):
    """Follows the definitions of the cluster, as soon as a module has some."""

    def __init__(
        self,
        definitions: module_crds.ModuleCrds,
        watches: informers.Informers,
        followed: followed_releases.FollowedReleases,
        values: store.ValuesStore,
        tell: events.Listener,
        clock: clocks.Clock,
    ) -> None:
        self._definitions = definitions
        self._watches = watches
        self._followed = followed
        self._values = values
        self._tell = tell
        self._clock = clock
        self._backoffs = drift_backoff.DriftBackoffs()
        self._due: dict[str, float] = {}
        self._subscription: informers.Subscription | None = None
        self._wake = asyncio.Event()
        definitions.subscribe(self)

    def applied(self) -> None:
        """Look again for resources whose kinds were not there."""
        self._followed.look_again()

    def synced(self) -> None:
        """Restore what was applied and is not in the first list: it went before anybody looked."""
        if self._subscription is not None:
            keys = self._subscription.keys()
            self._gone(sorted(self._definitions.in_force.difference(key.name for key in keys)))

    def changed(self, changes: Sequence[object_changes.Change]) -> None:
        """Note when definitions of modules that are gone are to be restored."""
        deleted = object_changes.ChangeType.DELETED
        self._gone(change.key.name for change in changes if change.type is deleted)

    def _gone(self, definitions: Iterable[str]) -> None:
        for name in definitions:
            if self._definitions.owners(name):
                now = self._clock.monotonic()
                self._due[name] = now + self._backoffs.wait(name, now)
                self._wake.set()

    def trouble(self, reason: str | None) -> None:
        """Report why definitions are not watched; without a watch they come back at the next start."""
        if reason is not None:
            text = f"deleted CustomResourceDefinitions of modules cannot be restored now: {reason}"
            self._tell(events.Warned(text))

    async def work(self) -> None:
        """Apply what is gone, until cancelled."""
        while True:
            self._wake.clear()
            await self.look()
            soonest = min(self._due.values(), default=None)
            await waiting.wait_until(self._wake, soonest, self._clock)

    async def look(self) -> None:
        """Apply the definitions whose time has come."""
        now = self._clock.monotonic()
        due = [name for name, when in self._due.items() if when <= now]
        for name in due:
            del self._due[name]
        owners = {each.name: each for name in due for each in self._definitions.owners(name)}
        await asyncio.gather(*(self._restore(module, due) for module in owners.values()))
        self._backoffs.restored(due, self._clock.monotonic())

    async def _restore(self, module: model.Module, due: Sequence[str]) -> None:
        if self._values.maintenance(module.name):
            # The run at the end of the maintenance will look.
            self._definitions.forget(module.name)
            return
        try:
            await self._definitions.restore(module)
        except errors.AddonOperatorError as error:
            self._tell(events.Warned(f"{error}; it is tried again"))
            self._due.update(dict.fromkeys(due, self._clock.monotonic() + RETRY))
        except Exception as error:  # noqa: BLE001 - a defect at one must not hold up others
            self._tell(events.PartFailed("definitions", error, RETRY))
            self._due.update(dict.fromkeys(due, self._clock.monotonic() + RETRY))

    def defined(self) -> None:
        """Follow definitions from now on: there are some."""
        if self._subscription is None:
            selection = object_selections.ObjectSelection(
                crd_files.KIND, crd_files.API_VERSION, metadata_only=True
            )
            self._subscription = self._watches.subscribe(selection, projections.Presence(), self)
