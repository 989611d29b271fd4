"""Keeps the Module objects of the cluster true, in the background and never on the path of a run.

Changes are gathered for a moment and written together: at once after a quiet time, and in turns otherwise.
What is stored is remembered, and only what differs is sent. From time to time all objects are listed: what
others changed is put right, and the objects of modules that are gone are deleted. Without the definition or
the rights there is one warning, and a look now and then.
"""

import asyncio
import collections
import contextlib
import pathlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import msgspec

from addon_operator.aio import waiting, warn_once
from addon_operator.engine import state
from addon_operator.helm import release_types
from addon_operator.kernel import names
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.kube.objects import events, suspension
from addon_operator.modules import model, windows
from addon_operator.status import (
    condition_times,
    module_conditions,
    module_definition,
    module_status,
    told_events,
)

GATHER_SECONDS: Final = 0.1
"""From the first change of a batch until it is written."""
PAUSE_SECONDS: Final = 1.4
"""Between two batches on average at least."""
BATCHES_AT_ONCE: Final = 3
"""That are written without a pause after a quiet time: a run that begins, that ends, and its health."""
RESYNC_SECONDS: Final = 300.0
"""Between two looks at all objects."""
RETRIES: Final = waiting.Backoff(1.0, 30.0)
"""After errors of the API server, and while the definition or a right is missing."""

_MOMENTS_MAX: Final = 8
_SERVED_ATTEMPTS: Final = 30
_SERVED_PAUSE_SECONDS: Final = 0.1


class _Stored(msgspec.Struct, frozen=True):
    """A Module as it stands in the cluster."""

    is_kept: bool
    """Whether an operator made it."""
    uid: str
    generation: int
    status: module_conditions.Stored

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "_Stored":
        metadata = body.get("metadata") or {}
        return cls(
            module_status.LABELS.items() <= (metadata.get("labels") or {}).items(),
            str(metadata.get("uid") or ""),
            int(metadata.get("generation") or 0),
            body.get("status") or {},
        )


class ModuleStatusWriter:
    """Takes changes of modules from the engine, which never waits for it."""

    def __init__(
        self,
        kube: client.KubeClient,
        recorder: events.EventWriter,
        namespace: str,
        log: warn_once.Log,
        *,
        known: Callable[[], Collection[str]],
        stays: Callable[[], Collection[str]] = frozenset,
        time: waiting.Time,
    ) -> None:
        """``known`` gives the names of all modules on disk, ``namespace`` is where the objects are.

        ``stays`` gives those of releases whose objects stay as long as the releases do.
        """
        self._stays = stays
        self._purges: dict[str, state.ModuleState] = {}
        self._kube = kube
        self._recorder = recorder
        self._namespace = namespace
        self._log = log
        self._known = known
        self._collection = paths.of(module_status.API_VERSION, module_status.PLURAL, namespace=namespace)
        self._time = time
        self._definition = module_definition.ModuleDefinition(kube, log, sleep=time.sleep)
        self._trouble = warn_once.WarnOnce(log)
        self._states: dict[str, state.ModuleState] = {}
        self._releases: dict[str, module_status.ShownRelease] = {}
        self._notified: dict[str, Mapping[str, Any]] = {}
        self._moments: dict[str, collections.deque[module_status.Moment]] = {}
        self._phases: dict[str, module_status.Moment | None] = {}
        self._stored: dict[str, _Stored] = {}
        self._times: dict[str, condition_times.Times] = {}
        self._has_looked = False
        self._dirty: dict[str, None] = {}
        self._to_tell: dict[str, dict[module_status.Notice, None]] = {}
        self.told: Final = told_events.ToldEvents(kube, namespace, time)
        """The last Events about modules."""
        self._changed = asyncio.Event()
        self._paid_until = 0.0
        """The moment at which a pause would have followed each batch."""
        self._synced_at: float | None = None
        self._failures = 0
        self._gone: set[str] = set()

    def module_gone(self, module: names.ModuleName) -> None:
        """Note that the directory of a module is gone; returns at once."""
        self._gone.add(module)
        self._states.pop(module, None)
        self._times.pop(module, None)
        self._synced_at = None
        self._changed.set()

    def purge_held(self, release: str, held: windows.HeldBack | None) -> None:
        """Show in the object of a module that is gone that the purge of its release waits for somebody."""
        name = names.ModuleName(release.rpartition("/")[2])
        if held is not None and held.confirm and name not in self._states:
            gone = state.ModuleState(
                model.Module(name, 0, pathlib.Path(name)),
                status=state.ModuleStatus.DELETING,
                reason=held.what,
                discovered=True,
                held_back=held,
            )
            self.module_changed(gone)
            self._purges[name] = gone
        elif held is None and self._purges.pop(name, None) is self._states.get(name, ...):
            self.module_gone(name)

    def shown(self, module: str) -> module_status.Shown | None:
        """Return what the cluster shows of a module; ``None`` as long as that is not known."""
        stored = self._stored.get(module)
        if stored is None:
            return None
        since = self._times.get(module) or condition_times.stored(stored.status)
        return module_status.shown(stored.status, since, self.told.of(module))

    def module_changed(self, module: state.ModuleState) -> None:
        """Note that the status of a module changed; returns at once."""
        name = module.module.name
        self._gone.discard(name)
        self._states[name] = module
        self._note_times(name)
        if module.status is state.ModuleStatus.DISABLED:
            self._releases.pop(name, None)
        now = module_status.moment(module)
        waiting = self._moments.setdefault(name, collections.deque(maxlen=_MOMENTS_MAX))
        if now is not None and (not waiting or waiting[-1] != now):
            waiting.append(now)
        self._wake(name)

    def _note_times(self, name: str) -> None:
        """Note since when the conditions of a module are as they are, before they are written.

        Not before it is known what an operator before this one left.
        """
        if self._has_looked:
            stored = self._stored.get(name)
            before = self._times.get(name) or condition_times.stored({} if stored is None else stored.status)
            self._times[name] = module_conditions.times(self._states[name], before, self._time.time())

    def release_ensured(self, module: names.ModuleName, outcome: release_types.ReleaseOutcome) -> None:
        """Note that the release of a module is as it should be; returns at once."""
        self._releases[module] = module_status.ShownRelease(
            revision=outcome.revision, checksum=outcome.manifest_checksum
        )
        if outcome.adopted:
            text = f"The release took over objects that existed already: {', '.join(outcome.adopted)}."
            self.tell(module, "TookOwnership", text)
        if module in self._states:
            self._wake(module)

    def object_lost(self, module: names.ModuleName) -> None:
        """Make the object of a module that is there anew, as somebody deleted it; returns at once."""
        if module in self._states:
            self._stored.pop(module, None)
            self._wake(module)

    def revision_seen(self, module: names.ModuleName, revision: int) -> None:
        """Note which revision the release of a module has, whoever made it; returns at once."""
        stored = self._stored.get(module)
        known = self._releases.get(module) or (stored.status.get("release") if stored is not None else None)
        if known is not None and known["revision"] != revision:
            self._releases[module] = {**known, "revision": revision}
            if module in self._states:
                self._wake(module)

    def notified(self, name: str, told: Mapping[str, Any]) -> None:
        """Keep what targets of notifications were told of a module; returns at once."""
        if self._notified.get(name) != told:
            self._notified[name] = told
            if name in self._states:
                self._wake(name)

    def tell(
        self, module: names.ModuleName, reason: str, text: str, type_: events.EventType = "Warning"
    ) -> None:
        """Write an Event about a module with the next look at it; returns at once."""
        self._notice(module, module_status.Notice(type_, reason, text))

    def suspended(self, module: names.ModuleName, now: suspension.Suspension | None) -> None:
        """Write an Event about a module that somebody suspended, or resumed; returns at once."""
        reason, text = ("Resumed", "no longer suspended") if now is None else ("Suspended", str(now))
        self._notice(module, module_status.Notice("Normal", reason, f"The module is {text}."))

    def _notice(self, module: names.ModuleName, notice: module_status.Notice) -> None:
        self._to_tell.setdefault(module, {})[notice] = None
        if module in self._states:
            self._wake(module)

    def _wake(self, name: str) -> None:
        self._dirty[name] = None
        self._changed.set()

    async def prepare(self) -> None:
        """Apply the definition and wait until it is served; whatever hinders that becomes one warning."""
        try:
            await self._definition.apply()
            await self._served()
        except api_errors.Forbidden as error:
            self._log.info(f"the CustomResourceDefinition of Modules is not kept up to date: {error}")
        except module_definition.InTheWayError as error:
            self._trouble.warn(_not_shown(error))
        except api_errors.KubernetesError as error:
            self._trouble.warn(f"the CustomResourceDefinition of Modules was not applied: {error}")

    async def _served(self) -> client.ObjectList:
        """Return all objects as soon as the definition is served; raises ``NotServed`` if it never is."""
        for _ in range(_SERVED_ATTEMPTS):
            with contextlib.suppress(api_errors.NotServed):
                return await self._list()
            await self._time.sleep(_SERVED_PAUSE_SECONDS)
        return await self._list()

    async def run(self) -> None:
        """Write, until cancelled."""
        while True:
            pause = await self.turn()
            if pause:
                await self._time.sleep(pause)
            else:
                await self._time.sleep(self._rest())
                await waiting.wait_within(self._changed, RESYNC_SECONDS)
                await self._time.sleep(GATHER_SECONDS)

    def _rest(self) -> float:
        """Return the seconds to rest after a batch."""
        now = self._time.monotonic()
        self._paid_until = max(self._paid_until, now) + PAUSE_SECONDS
        return max(self._paid_until - now - (BATCHES_AT_ONCE - 1) * PAUSE_SECONDS, 0.0)

    async def turn(self) -> float:
        """Write what waits, after a look at all objects when that is due; seconds to rest after trouble."""
        try:
            await self._bring_in_step()
        except (
            api_errors.NotFound,
            api_errors.NotServed,
            api_errors.Forbidden,
            module_definition.InTheWayError,
        ) as error:
            trouble = _not_shown(error)
        except api_errors.KubernetesError as error:
            trouble = f"the status of modules waits: {error}"
        else:
            self._trouble.over("the status of modules is shown as Module objects")
            self._failures = 0
            return 0.0
        self._synced_at = None
        self._trouble.warn(trouble)
        self._failures += 1
        return RETRIES.after(self._failures)

    async def _bring_in_step(self) -> None:
        if self._is_sync_due():
            await self._sync()
        self._changed.clear()
        for name in list(self._dirty):
            # What changes while it is written is written again.
            del self._dirty[name]
            try:
                await self._write(name)
            except api_errors.Invalid as error:
                self._trouble.warn(f"the status of module {name} is not shown: {error}")
            except Exception:
                # Behind the others, which a defect at one object must not hold up.
                self._dirty[name] = None
                raise

    async def finish(self) -> None:
        """Write what waits for the last time, unless that did not work before."""
        if self._synced_at is not None:
            await self.turn()

    def _is_sync_due(self) -> bool:
        return self._synced_at is None or self._time.monotonic() - self._synced_at >= RESYNC_SECONDS

    async def _sync(self) -> None:
        """Look at what is stored, mark what has to be written, and delete what nobody needs."""
        listed = await self._listed()
        self._stored = {str(body["metadata"]["name"]): _Stored.of(body) for body in listed.items}
        self._has_looked = True
        for name in self._states:
            self._note_times(name)
        modules = (
            {str(name) for name in self._known()} - self._gone | self._states.keys() | set(self._stays())
        )
        for name, stored in list(self._stored.items()):
            if name not in modules and stored.is_kept:
                await self._delete(name, stored)
        self._dirty.update(dict.fromkeys(self._states))
        self._synced_at = self._time.monotonic()

    async def _listed(self) -> client.ObjectList:
        try:
            return await self._list()
        except api_errors.NotServed:
            # Somebody has removed the definition, or has put that of an older version in its place.
            await self._definition.apply()
            return await self._served()

    async def _list(self) -> client.ObjectList:
        return await self._kube.list_all(self._collection)

    async def _delete(self, name: str, stored: _Stored) -> None:
        with contextlib.suppress(api_errors.NotFound, api_errors.Conflict):
            await self._kube.delete(self._path(name), uid=stored.uid)
        self._stored.pop(name, None)
        self._forget(name)

    def _forget(self, name: str) -> None:
        for kept in (
            self._states,
            self._times,
            self._releases,
            self._notified,
            self._moments,
            self._phases,
            self._dirty,
        ):
            kept.pop(name, None)
        self.told.forget(name)

    async def _write(self, name: str) -> None:
        if name not in self._states:
            return
        stored = self._stored.get(name)
        if stored is None or not stored.is_kept:
            stored = await self._create(name)
        self._phases.setdefault(name, module_status.stored_moment(stored.status))
        try:
            await self._write_status(name, stored)
        except api_errors.NotFound:
            # Somebody has deleted the object.
            await self._write_status(name, await self._create(name))
        self._tell(name)

    async def _create(self, name: str) -> _Stored:
        body = self._body(name)
        body["metadata"]["labels"] = module_status.LABELS
        return self._keep(name, await self._kube.apply(self._path(name), body, force=True))

    async def _write_status(self, name: str, stored: _Stored) -> None:
        self._note_times(name)
        wanted = module_status.document(
            self._states[name],
            self._releases.get(name),
            stored.status,
            stored.generation,
            self._times[name],
            self._notified.get(name),
        )
        if not module_status.is_stored(wanted, stored.status):
            body = self._body(name) | {"status": wanted}
            self._keep(name, await self._kube.apply(f"{self._path(name)}/status", body, force=True))

    def _keep(self, name: str, body: Mapping[str, Any]) -> _Stored:
        self._stored[name] = _Stored.of(body)
        return self._stored[name]

    def _tell(self, name: str) -> None:
        """Write Events for what happened since the last time."""
        moments = list(self._moments.get(name, ()))
        self._moments.pop(name, None)
        made, self._phases[name] = module_status.notices(self._phases.get(name), moments)
        about = events.ObjectReference(
            module_status.API_VERSION,
            module_status.KIND,
            name,
            self._namespace,
            uid=self._stored[name].uid,
        )
        for notice in (*made, *self._to_tell.pop(name, {})):
            self._recorder.record(about, notice.type, notice.reason, notice.message)
            self.told.add(name, module_status.told(notice, self._time.time()))

    def _path(self, name: str) -> str:
        return f"{self._collection}/{name}"

    def _body(self, name: str) -> dict[str, Any]:
        return {
            "apiVersion": module_status.API_VERSION,
            "kind": module_status.KIND,
            "metadata": {"name": name, "namespace": self._namespace},
        }


def _not_shown(error: Exception) -> str:
    return f"the status of modules is not shown as Module objects: {error}"
