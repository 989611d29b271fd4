"""Annotations of Module objects, with which people ask for a run of a module or suspend it.

They are the operator's own objects, which others annotate. What it writes itself is in their status, which
is read once, at the start, and not watched: which runs were done, and what waits for a window.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from addon_operator.aio import waiting
from addon_operator.engine import events, intents, module_requests, module_states, state
from addon_operator.helm.releases import releases
from addon_operator.kernel import clock, names
from addon_operator.kube import api_errors
from addon_operator.kube import cluster as cluster_module
from addon_operator.kube.informers import informers, object_changes, object_selections, projections
from addon_operator.kube.objects import module_objects, suspension
from addon_operator.modules import findings, windows
from addon_operator.values import store

_OFTEN_SECONDS: Final = 2.0
"""Between two looks at whether a confirmation of a removal has been used."""
_LOOK_SECONDS: Final = 30.0
"""Between two looks at the clock, which somebody may set, and at objects that could not be listed."""


class ModuleAnnotations(object_changes.ObjectListener):
    """Follows them: suspends modules, ends that in time, and has modules run."""

    def __init__(
        self,
        cluster: cluster_module.Cluster,
        states: module_states.ModuleStates,
        values: store.ValuesStore,
        inbox: intents.Inbox,
        tell: events.Listener,
        time: clock.Clock,
        manager: releases.ReleaseManager,
    ) -> None:
        self._manager = manager
        self._confirmations: dict[names.ModuleName, str] = {}
        self._cluster = cluster
        self._states = states
        self._values = values
        self._inbox = inbox
        self._tell = tell
        self._time = time
        self.requests: Final = module_requests.ModuleRequests(states, inbox, cluster.kube, cluster.namespace)
        """What else can be asked of modules."""
        self._subscription: informers.Subscription | None = None
        self._suspended: dict[names.ModuleName, suspension.Suspension] = {}
        self._seen: dict[names.ModuleName, dict[str, str]] = {}
        self._asked: dict[tuple[names.ModuleName, str], str] = {}
        self._unknown: dict[names.ModuleName, str] = {}
        self._runs: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()

    async def begin(self) -> None:
        """Find out which modules are suspended, and which runs were asked for and done before.

        Without Module objects, or the right to list them, none are. Raises what the client raises otherwise.
        """
        try:
            listed = await self._cluster.kube.list_all(module_objects.path_of(self._cluster.namespace))
        except (api_errors.NotServed, api_errors.Forbidden):
            return
        for found in listed.items:
            status = found.get("status") or {}
            if (module := self._state(found)) is not None:
                module.handled_run = str(status.get("lastHandledRun") or "")
                module.handled_now = str(status.get("lastHandledNow") or "")
                if not module.discovered:
                    module.held_back = _held_back(status)
                    module.note(findings.WARNED, *map(str, status.get("warnings") or ()))
            self._take(found, _since(status))
        selection = object_selections.ObjectSelection(
            module_objects.KIND,
            module_objects.API_VERSION,
            namespaces=(self._cluster.namespace,),
            metadata_only=True,
        )
        self._subscription = self._cluster.watches.subscribe(selection, projections.FullObject(), self)

    def synced(self) -> None:
        """Look at all of them: there may be news since :meth:`begin`."""
        entries = [] if self._subscription is None else self._subscription.snapshot()
        found = [_object(entry) for entry in entries]
        for each in found:
            self._take(each)
        for name in self._suspended.keys() - {_name(each) for each in found}:
            self._set(name, None)

    def changed(self, changes: Sequence[object_changes.Change]) -> None:
        """Take annotations that changed; without the object, a module is looked after again."""
        for change in changes:
            if change.type is object_changes.ChangeType.DELETED:
                self._unknown.pop(names.ModuleName(change.key.name), None)
                self._set(names.ModuleName(change.key.name), None)
                self._tell(events.ModuleObjectLost(names.ModuleName(change.key.name)))
            else:
                self._take(_object(change.entry))

    def trouble(self, reason: str | None) -> None:
        """Report why they cannot be followed just now."""
        if reason is not None:
            text = f"annotations of Module objects (suspended, run) are not followed now: {reason}"
            self._tell(events.Warned(text))

    async def work(self) -> None:
        """End suspensions in time, until cancelled."""
        while True:
            self._wake.clear()
            if self._subscription is None:
                with contextlib.suppress(api_errors.KubernetesError):
                    await self.begin()
            await self._end_what_is_over()
            now = self._time.time()
            ends = [each.until - now for each in self._suspended.values() if each.until is not None]
            ends += [_OFTEN_SECONDS] if self._confirmations else []
            await waiting.wait_within(self._wake, min([*ends, _LOOK_SECONDS]))

    async def _end_what_is_over(self) -> None:
        now = self._time.time()
        over = [name for name, each in self._suspended.items() if each.is_over(now)]
        for name in over:
            self._set(name, None)
            await self._remove(name, self._seen.get(name, {}))
        served = [name for name in self._confirmations if self._is_served(name)]
        for name in served:
            await self._remove(name, {suspension.CONFIRM: self._confirmations.pop(name)})

    def _is_served(self, name: names.ModuleName) -> bool:
        """Say whether a confirmation has no effect any more: the release is gone, or it is not to go."""
        return name not in self._manager.to_confirm or name in self._states.enabled

    async def _remove(self, name: names.ModuleName, annotations: Mapping[str, str]) -> None:
        # What somebody has changed meanwhile is news, which the watch brings.
        with contextlib.suppress(api_errors.Invalid, api_errors.NotFound, api_errors.NotServed):
            try:
                await module_objects.remove_annotations(
                    self._cluster.kube, self._cluster.namespace, name, annotations
                )
            except api_errors.Forbidden as error:
                self._tell(events.Warned(f"annotations of module {name} that are over stay: {error}"))

    def _take(self, found: Mapping[str, Any], since: float | None = None) -> None:
        name = names.ModuleName(_name(found))
        annotations = {str(key): str(value) for key, value in _annotations(found).items()}
        before = self._suspended.get(name)
        seen = before.since if before is not None else since
        now = self._time.time()
        self._seen[name] = {key: annotations[key] for key in suspension.ALL if key in annotations}
        self._set(name, suspension.read(annotations, now if seen is None else seen))
        self._warn(name, suspension.unknown(annotations))
        self._confirm(name, annotations.get(suspension.CONFIRM, ""))
        for annotation in (suspension.RUN, suspension.NOW):
            if value := annotations.get(annotation):
                self._run(name, annotation, value)

    def _confirm(self, name: names.ModuleName, value: str) -> None:
        """Have a removal begin that waits for that, if the value is the last revision of the release."""
        self._confirmations.pop(name, None)
        if not value:
            return
        self._confirmations[name] = value
        self._wake.set()
        if value.isdecimal() and self._manager.confirm(name, int(value)):
            self._inbox.put_nowait(intents.ConvergeWanted(module_requests.ACTIVATION_COMMAND))

    def _warn(self, name: names.ModuleName, unknown: str) -> None:
        """Say once what somebody asks for with an annotation that is spelled wrong."""
        if unknown and unknown != self._unknown.get(name):
            self._tell(events.Warned(f"Module {name}: annotation {unknown}"))
        self._unknown[name] = unknown

    def _set(self, name: names.ModuleName, wanted: suspension.Suspension | None) -> None:
        """Suspend the module, or look after it again."""
        if wanted == self._suspended.get(name):
            return
        if wanted is None:
            del self._suspended[name]
        else:
            self._suspended[name] = wanted
        change = self._values.suspend(self._suspended.keys())
        self._tell(state.SuspensionChanged(name, wanted))
        if change:
            self._inbox.put_nowait(intents.ConfigEdited(change, module_objects.KIND))
        self._wake.set()

    def _run(self, name: names.ModuleName, annotation: str, value: str) -> None:
        """Have the module run, unless that was done for this value."""
        module = self._states.get(name)
        if module is None or value in (module.handled(annotation), self._asked.get((name, annotation))):
            return
        self._asked[name, annotation] = value
        task = asyncio.create_task(self._serve(name, annotation, value), name=f"run of module {name}")
        self._runs.add(task)
        task.add_done_callback(self._runs.discard)

    async def _serve(self, name: names.ModuleName, annotation: str, value: str) -> None:
        """Have the module run to its end, and note for which value."""
        if not await self._is_discovered(name):
            return
        try:
            ended = self.requests.run(name, past_windows=annotation == suspension.NOW)
        except module_requests.CannotRunError as error:
            self._tell(events.Warned(f"{error}; its annotation {annotation} is not tried again"))
        else:
            await ended()
        self._states.handled(name, annotation, value)

    async def _is_discovered(self, name: names.ModuleName) -> bool:
        """Wait until it is known whether the module is enabled; whether it is still there then."""
        while (module := self._states.get(name)) is not None and not module.discovered:  # noqa: ASYNC110
            await asyncio.sleep(module_requests.LOOK_SECONDS)
        return module is not None

    def _state(self, found: Mapping[str, Any]) -> state.ModuleState | None:
        return self._states.get(names.ModuleName(_name(found)))


def _object(entry: bytes) -> Mapping[str, Any]:
    found: Mapping[str, Any] = orjson.loads(entry)["object"]
    return found


def _name(found: Mapping[str, Any]) -> str:
    return str(found["metadata"]["name"])


def _annotations(found: Mapping[str, Any]) -> Mapping[str, Any]:
    return found["metadata"].get("annotations") or {}


def _since(status: Mapping[str, Any]) -> float | None:
    """Return since when an operator before this one had the module suspended."""
    with contextlib.suppress(ValueError, TypeError, KeyError):
        return clock.parse_rfc3339(status["suspended"]["since"])
    return None


def _held_back(status: Mapping[str, Any]) -> windows.HeldBack | None:
    """Return what waited for a window when an operator before this one ended."""
    with contextlib.suppress(ValueError, TypeError, KeyError):
        # What waits for a confirmation is held back by the first converge again.
        held = status["heldBack"]
        until, since = clock.parse_rfc3339(held["until"]), clock.parse_rfc3339(held["since"])
        is_removal, is_broken = bool(held.get("isRemoval")), bool(held.get("isBroken"))
        return windows.HeldBack(str(held["what"]), until, since, is_removal, is_broken)
    return None
