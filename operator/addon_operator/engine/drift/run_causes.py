"""Wakes failed runs when what refused them is gone: just that is watched, and only while a run waits."""

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from addon_operator.aio import waiting
from addon_operator.engine import events, intents, tasks
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import names, quantities
from addon_operator.kube.informers import informers, object_changes, object_selections, projections
from addon_operator.modules import failure_causes
from addon_operator.modules.failure_causes import Cause, CauseKind

PAUSES: Final = waiting.Backoff(10.0, 300.0)
"""Seconds between two times that the same cause seems to be gone: perhaps it is not what was refused."""
_EVEN: Final = 0.5
_FORGOTTEN: Final = 2 * PAUSES.longest
"""Seconds after which a cause is a new one."""
PROBES: Final = waiting.Backoff(0.5, 1.5)
"""Seconds between two tries to connect to a repository that is away."""
PROBE_SECONDS: Final = 2.0
_INLINE_BYTES: Final = 1 << 15
"""Below this much JSON a thread costs more than it spares the event loop."""
_DEFINITIONS: Final = object_selections.ObjectSelection("CustomResourceDefinition", "apiextensions.k8s.io/v1")


@dataclasses.dataclass(frozen=True, slots=True)
class _Gist(projections.Projection):
    """Keeps of each object what says whether a cause is gone."""

    cause: Cause

    async def reduce(self, objects: Sequence[bytes]) -> Sequence[projections.Reduced]:
        """See :class:`.Projection`."""
        if sum(map(len, objects)) < _INLINE_BYTES:
            return self._all_reduced(objects)
        return await asyncio.to_thread(self._all_reduced, objects)

    def _all_reduced(self, objects: Sequence[bytes]) -> list[projections.Reduced]:
        return [self._reduced(orjson.loads(data)) for data in objects]

    def _reduced(self, found: Mapping[str, Any]) -> projections.Reduced:
        gist = orjson.dumps(_GISTS[self.cause.kind](found))
        return projections.Reduced(gist, gist)


def _has_endpoints(found: Mapping[str, Any]) -> bool:
    endpoints = found.get("endpoints") or ()
    return any((each.get("conditions") or {}).get("ready") is not False for each in endpoints)


def _is_served(found: Mapping[str, Any]) -> list[str]:
    spec, conditions = found.get("spec") or {}, (found.get("status") or {}).get("conditions") or ()
    is_there = any((one.get("type"), one.get("status")) == ("Established", "True") for one in conditions)
    kind = str((spec.get("names") or {}).get("kind") or "")
    return [kind, str(spec.get("group") or "")] if is_there else ["", ""]


def _quota(found: Mapping[str, Any]) -> list[dict[str, str]]:
    hard = (found.get("spec") or {}).get("hard") or {}
    return [hard, (found.get("status") or {}).get("used") or {}]


def _is_alive(found: Mapping[str, Any]) -> bool:
    return not (found.get("metadata") or {}).get("deletionTimestamp")


_GISTS: Final[Mapping[CauseKind, Callable[[Mapping[str, Any]], object]]] = {
    CauseKind.ENDPOINTS: _has_endpoints,
    CauseKind.NAMESPACE_ENDS: _is_alive,
    CauseKind.NAMESPACE: _is_alive,
    CauseKind.QUOTA: _quota,
    CauseKind.DEFINITION: _is_served,
    CauseKind.OBJECT: _is_alive,
    CauseKind.REPOSITORY: _is_alive,
}


def selection_of(cause: Cause) -> object_selections.ObjectSelection:
    """Return the objects that say whether a cause is gone."""
    match cause.kind:
        case CauseKind.ENDPOINTS:
            return object_selections.ObjectSelection(
                "EndpointSlice",
                "discovery.k8s.io/v1",
                label_selector=f"kubernetes.io/service-name={cause.name}",
                namespaces=(cause.namespace,),
            )
        case CauseKind.NAMESPACE | CauseKind.NAMESPACE_ENDS:
            return object_selections.ObjectSelection(
                "Namespace", "v1", names=(cause.name,), metadata_only=True
            )
        case CauseKind.DEFINITION:
            return _DEFINITIONS
    kind = "ResourceQuota" if cause.kind is CauseKind.QUOTA else cause.resource
    return object_selections.ObjectSelection(
        kind, "v1", names=(cause.name,), namespaces=(cause.namespace,), metadata_only=kind != "ResourceQuota"
    )


class Awaited(object_changes.ObjectListener):
    """One cause that is watched for a module."""

    def __init__(self, cause: Cause, watches: informers.Informers, gone: Callable[[Cause], None]) -> None:
        self.cause = cause
        self._gone = gone
        self._entries: dict[object_changes.ObjectKey, Any] = {}
        self.projection = _Gist(cause)
        """What is kept of the objects."""
        self._subscription = watches.subscribe(selection_of(cause), self.projection, self)

    def close(self) -> None:
        """Watch no more."""
        self._subscription.close()

    def synced(self) -> None:
        """Look at what is there already: it may have come since the run failed."""
        keys = self._subscription.keys()
        self._entries = {key: orjson.loads(self._subscription.entry(key) or b"null") for key in keys}
        if self._is_gone():
            self._gone(self.cause)

    def changed(self, changes: Sequence[object_changes.Change]) -> None:
        """Look at what came, changed or went."""
        for change in changes:
            before = self._entries.pop(change.key, None)
            if change.type is object_changes.ChangeType.DELETED:
                if self.cause.kind in (CauseKind.NAMESPACE_ENDS, CauseKind.QUOTA):
                    self._gone(self.cause)
                continue
            self._entries[change.key] = now = orjson.loads(change.entry)
            is_eased = self.cause.kind is CauseKind.QUOTA and before is not None and _is_eased(before, now)
            if is_eased or self._is_cure(now):
                self._gone(self.cause)

    def trouble(self, reason: str | None) -> None:
        """Wait for the next try: what cannot be watched tells nothing."""

    def _is_gone(self) -> bool:
        entries = self._entries.values()
        match self.cause.kind:
            case CauseKind.NAMESPACE_ENDS:
                return not entries
            case CauseKind.QUOTA:
                return any(_is_raised(self.cause.limits, hard) for hard, _ in entries)
            case _:
                return any(map(self._is_cure, entries))

    def _is_cure(self, entry: Any) -> bool:  # noqa: ANN401 - JSON
        match self.cause.kind:
            case CauseKind.DEFINITION:
                return bool(entry == [self.cause.resource, self.cause.group])
            case CauseKind.QUOTA | CauseKind.NAMESPACE_ENDS:
                return False
            case _:
                return entry is True


def _is_eased(before: Any, now: Any) -> bool:  # noqa: ANN401 - JSON
    """Say whether a quota allows more of something than before, or less of it is used."""
    (hard, used), (hard_now, used_now) = before, now
    if hard.keys() - hard_now.keys():
        return True
    return any(_more(hard_now.get(key), hard.get(key)) for key in hard) or any(
        _more(used.get(key), used_now.get(key)) for key in used
    )


def _is_raised(limits: Iterable[tuple[str, str]], hard: Mapping[str, str]) -> bool:
    """Say whether a quota allows more of something than when it refused a run, or does not limit it."""
    return any(key not in hard or _more(hard[key], limit) for key, limit in limits)


def _more(first: str | None, second: str | None) -> bool:
    amounts = quantities.parse(str(first)), quantities.parse(str(second))
    return amounts[0] is not None and amounts[1] is not None and amounts[0] > amounts[1]


class _Probed:
    """A repository that is tried now and then, until it takes connections."""

    def __init__(self, cause: Cause, gone: Callable[[Cause], None]) -> None:
        self._cause = cause
        self._gone = gone
        self._task = asyncio.create_task(self._probe(), name=f"wait for {cause}")

    def close(self) -> None:
        """Try no more."""
        self._task.cancel()

    async def _probe(self) -> None:
        host, _, port = self._cause.name.rpartition(":")
        for pause in PROBES.pauses():
            await asyncio.sleep(pause)
            with contextlib.suppress(OSError, TimeoutError, ValueError):
                async with asyncio.timeout(PROBE_SECONDS):
                    _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
                writer.close()
                self._gone(self._cause)
                return


class RunCauses:
    """Knows what each failed run waits for."""

    def __init__(
        self,
        watches: informers.Informers,
        namespace_of: Callable[[names.ModuleName], str],
        inbox: intents.Inbox,
        tell: events.Listener,
        clock: clocks.Clock,
    ) -> None:
        """``namespace_of`` gives the namespace of a module's release."""
        self._watches = watches
        self._namespace_of = namespace_of
        self._inbox = inbox
        self._tell = tell
        self._clock = clock
        self._awaited: dict[names.ModuleName, list[Awaited | _Probed]] = {}
        self._woken: dict[tuple[names.ModuleName, Cause], tuple[int, float]] = {}
        self._later: dict[names.ModuleName, asyncio.TimerHandle] = {}

    def listen(self, event: events.Event) -> None:
        """Begin to wait when a run has failed, and end when the next one begins; a listener."""
        match event:
            case events.TaskFailed(task=task, error=error, delay=float()):
                if task.kind in (tasks.TaskKind.MODULE_RUN, tasks.TaskKind.MODULE_ENSURE_CRDS):
                    self._wait(names.ModuleName(task.owner), str(error))
            case events.TaskStarted(task=task) if task.owner in self._awaited and not task.hook:
                self._end(names.ModuleName(task.owner))

    def _wait(self, module: names.ModuleName, error: str) -> None:
        self._end(module)
        found = failure_causes.causes(error, self._namespace_of(module))
        if not found:
            return
        self._awaited[module] = [self._waiting(module, cause) for cause in found]
        self._tell(events.CureAwaited(module, tuple(map(str, found))))

    def _waiting(self, module: names.ModuleName, cause: Cause) -> Awaited | _Probed:
        def gone(_: Cause) -> None:
            self._cured(module, cause)

        if cause.kind is CauseKind.REPOSITORY:
            return _Probed(cause, gone)
        return Awaited(cause, self._watches, gone)

    def _end(self, module: names.ModuleName) -> None:
        for each in self._awaited.pop(module, ()):
            each.close()

    def _cured(self, module: names.ModuleName, cause: Cause) -> None:
        """Have the run begin; if the same cause seemed to be gone before, only after a pause that grows."""
        if module not in self._awaited or module in self._later:
            return
        now = self._clock.monotonic()
        self._woken = {key: woken for key, woken in self._woken.items() if woken[1] + _FORGOTTEN > now}
        times, last = self._woken.get((module, cause), (0, now))
        pause = last + PAUSES.after(times, _EVEN) - now if times else 0.0
        self._woken[module, cause] = (times + 1, now + max(0.0, pause))
        if pause <= 0:
            self._inbox.put_nowait(intents.RetryWanted(module))
            return
        # However its tries go until then: what was taken back is not tried again without being woken.
        self._later[module] = asyncio.get_running_loop().call_later(pause, self._wake, module)

    def _wake(self, module: names.ModuleName) -> None:
        del self._later[module]
        self._inbox.put_nowait(intents.RetryWanted(module))
