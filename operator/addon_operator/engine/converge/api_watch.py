"""Notices when an API that modules require comes or goes."""

import asyncio
from collections.abc import Sequence
from typing import Final

from addon_operator.aio import waiting
from addon_operator.engine import events, intents
from addon_operator.kernel import errors
from addon_operator.kube.discovery import discovery, presence, served_apis
from addon_operator.kube.informers import informers, object_changes, object_selections, projections
from addon_operator.modules import requirements

_SELECTION: Final = object_selections.ObjectSelection(
    served_apis.API_SERVICE.kind, served_apis.API_SERVICE.api_version
)
_PAUSES: Final = waiting.Backoff(0.1, 30.0)
"""Seconds between looks at APIs that are registered and not served yet: discovery is a little late."""
_POLL: Final = 30.0
"""Seconds between two looks where the watch is not allowed."""


async def ask(
    kinds: discovery.Catalog, probe: presence.ObjectProbe, apis: frozenset[str]
) -> requirements.ClusterFacts:
    """Ask the cluster for everything now; of these ``apis`` also whether they are unclear."""
    answer = await served_apis.look(kinds, probe, apis)
    return requirements.ClusterFacts(answer.version, answer.served, answer.unclear)


class ApiWatch(object_changes.ObjectListener):
    """Follows the APIServices of the cluster as long as a module requires an API."""

    def __init__(
        self,
        kinds: discovery.Catalog,
        probe: presence.ObjectProbe,
        watches: informers.Informers,
        inbox: intents.Inbox,
        tell: events.Listener,
    ) -> None:
        """``inbox`` gets an intent when another discovery of modules would find something else."""
        self._kinds = kinds
        self._probe = probe
        self._watches = watches
        self._inbox = inbox
        self._tell = tell
        self._subscription: informers.Subscription | None = None
        self._is_troubled = False
        self._looks = 0
        self._wake = asyncio.Event()
        self._apis: frozenset[str] = frozenset()
        self._seen = requirements.ClusterFacts()

    def synced(self) -> None:
        """Look: something may have come since the last discovery of modules."""
        self._look_soon()

    def changed(self, changes: Sequence[object_changes.Change]) -> None:
        """Look when APIs came, went, or changed whether they answer."""
        wanted = set(map(served_apis.api_service_of, self._apis))
        if any(change.key.name in wanted for change in changes):
            self._look_soon()

    def trouble(self, reason: str | None) -> None:
        """Look from time to time without a watch."""
        if reason is not None and not self._is_troubled:
            text = f"APIs that modules require are looked for every {_POLL:.0f} s only: {reason}"
            self._tell(events.Warned(text))
        self._is_troubled = reason is not None
        self._look_soon()

    async def work(self) -> None:
        """Look whenever something happened, until cancelled."""
        while True:
            self._wake.clear()
            await waiting.wait_within(self._wake, await self.look())

    async def look(self) -> float | None:
        """Look once; seconds until the next look if it does not wait for an event."""
        if self._subscription is None:
            return None
        try:
            now = await self.ask()
        except errors.AddonOperatorError:
            # The API server is away, which others report.
            return _POLL
        if self._differs(now):
            self._looks = 0
            self._inbox.put_nowait(intents.ApisChanged())
        elif now.unclear:
            self._looks += 1
            return _PAUSES.after(self._looks)
        # What was served and is missing counts as served until a second look.
        waits = (self._kinds.settles_in, _POLL if self._is_troubled else None)
        return min((each for each in waits if each is not None), default=None)

    def _differs(self, now: requirements.ClusterFacts) -> bool:
        seen = self._seen
        clear = self._apis - now.unclear
        return any(api in seen.unclear or (api in seen.served) != (api in now.served) for api in clear)

    def _look_soon(self) -> None:
        self._looks = 0
        self._wake.set()

    async def ask(self) -> requirements.ClusterFacts:
        """Ask for the APIs that modules require; raises what the API client raises."""
        return await ask(self._kinds, self._probe, self._apis)

    def follow(self, apis: frozenset[str], seen: requirements.ClusterFacts) -> None:
        """Follow these APIs, which modules require; ``seen`` is what the last discovery knew of them."""
        self._apis, self._seen = apis, seen
        if self._apis and self._subscription is None:
            projection = projections.FullObject(keep=False)
            self._subscription = self._watches.subscribe(_SELECTION, projection, self)
        elif not self._apis and self._subscription is not None:
            self._subscription.close()
            self._subscription = None
            self._is_troubled = False
        if self._seen.unclear:
            self._look_soon()
