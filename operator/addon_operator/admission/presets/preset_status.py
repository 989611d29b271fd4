"""The status of presets, written in batches and never while a pod waits.

Several replicas add to the same counts: each adds what it has counted to what is stored, and does so again
when another one was faster.
"""

import asyncio
import collections
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from addon_operator.admission import events as admission_events
from addon_operator.aio import waiting
from addon_operator.kernel import clock
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client, retries
from addon_operator.kube.objects import events
from addon_operator.podpreset import model

FIRST_SECONDS: Final = 1.0
"""How long after the first change of a batch it is written."""
PAUSE_SECONDS: Final = 4.0
"""How long after a batch the next one begins at the earliest."""

_AT_ONCE: Final = 8
_MESSAGE_MAX: Final = 32768
_VALID: Final = "Valid"
_COUNTS: Final = ("injected", "conflicts")

_Key = tuple[str, model.PresetName]

_log = logging.getLogger(__name__)


class _Change(msgspec.Struct):
    """What is to be written about one preset."""

    counts: collections.Counter[str] = msgspec.field(default_factory=collections.Counter)
    """How often it was ``injected``, and in ``conflicts``."""
    reasons: tuple[str, ...] | None = None
    """Why it is invalid, empty if it is valid; ``None`` when that is written already."""

    def add(self, other: "_Change") -> None:
        self.counts += other.counts
        self.reasons = other.reasons if self.reasons is None else self.reasons


class PresetStatuses:
    """Collects what becomes of presets, and writes it."""

    def __init__(
        self,
        kube: client.KubeClient,
        recorder: events.EventWriter,
        time: waiting.Time,
    ) -> None:
        self._kube = kube
        self._recorder = recorder
        self._time = time
        self._changes: collections.defaultdict[_Key, _Change] = collections.defaultdict(_Change)
        self._changed = asyncio.Event()
        self._warned = False

    def note(self, event: admission_events.Event) -> None:
        """Note what becomes of presets; other events do not matter here."""
        match event:
            case admission_events.PresetStored(stored, parsed):
                reasons = parsed.reasons if isinstance(parsed, model.InvalidPreset) else ()
                if not _says(stored, reasons):
                    self._changes[parsed.namespace, parsed.name].reasons = reasons
                    self._changed.set()
            case admission_events.PresetGone():
                self._changes.pop((event.namespace, event.name), None)
            case admission_events.PresetsAnswered():
                for name in event.presets:
                    self._changes[event.namespace, name].counts[event.outcome] += 1
                self._changed.set()

    async def run(self) -> None:
        """Write batches, until cancelled."""
        while True:
            await self._changed.wait()
            await self._time.sleep(FIRST_SECONDS)
            await self.flush()
            await self._time.sleep(PAUSE_SECONDS)

    async def flush(self) -> None:
        """Write everything that waits now; what cannot be written waits for the next time."""
        self._changed.clear()
        batch, self._changes = self._changes, collections.defaultdict(_Change)
        left = iter(batch.items())
        # Not a task for each: thousands of them would hold the loop while they are made.
        await asyncio.gather(*(self._write_all(left) for _ in range(_AT_ONCE)))

    async def _write_all(self, left: Iterator[tuple[_Key, _Change]]) -> None:
        """Write what others have not taken from the batch."""
        for key, change in left:
            await self._write_one(key, change)

    async def _write_one(self, key: _Key, change: _Change) -> None:
        try:
            await self._write(key, change)
        except api_errors.NotFound:
            return
        except api_errors.Forbidden as error:
            if not self._warned:
                self._warned = True
                _log.warning("the status of PodPresets is not written: %s", error)
        except api_errors.KubernetesError as error:
            _log.info("the status of PodPreset %s/%s waits: %s", *key, error)
            change.add(self._changes[key])
            self._changes[key] = change
            self._changed.set()

    async def _write(self, key: _Key, change: _Change) -> None:
        namespace, name = key
        path = paths.of(model.API_VERSION, model.PLURAL, namespace=namespace, name=name)

        async def attempt() -> None:
            stored = await self._kube.get(path)
            patch = self._patch(stored, change)
            if patch is not None:
                await self._kube.patch(f"{path}/status", patch)
                self._tell(stored, change)

        await retries.until_written(attempt, self._time.sleep)

    def _patch(self, stored: admission_events.Stored, change: _Change) -> dict[str, Any] | None:
        status = stored.get("status") or {}
        new: dict[str, Any] = {
            name: int(status.get(name) or 0) + change.counts[name]
            for name in _COUNTS
            if change.counts[name] or name not in status
        }
        if change.reasons is not None and not _says(stored, change.reasons):
            new["observedGeneration"] = _generation(stored)
            new["conditions"] = self._conditions(stored, change.reasons)
        if not new:
            return None
        return {"metadata": {"resourceVersion": stored["metadata"]["resourceVersion"]}, "status": new}

    def _conditions(self, stored: admission_events.Stored, reasons: Iterable[str]) -> list[Mapping[str, Any]]:
        others = [each for each in _conditions(stored) if each.get("type") != _VALID]
        now = clock.rfc3339(self._time.time())
        text = "; ".join(reasons)
        condition = {
            "type": _VALID,
            "status": "False" if text else "True",
            "reason": "InvalidSpec" if text else "Accepted",
            "message": _message(text),
            "observedGeneration": _generation(stored),
            "lastTransitionTime": _since(stored, text) or now,
        }
        return [*others, condition]

    def _tell(self, stored: admission_events.Stored, change: _Change) -> None:
        """Warn of an invalid preset; only whoever wrote the condition does."""
        if not change.reasons or _says(stored, change.reasons):
            return
        metadata = stored["metadata"]
        about = events.ObjectReference(
            model.API_VERSION,
            model.KIND,
            metadata["name"],
            metadata["namespace"],
            metadata.get("uid", ""),
        )
        text = f"The preset is ignored: {'; '.join(change.reasons)}"
        self._recorder.record(about, "Warning", "InvalidSpec", text)


def _says(stored: admission_events.Stored, reasons: Sequence[str]) -> bool:
    """Say whether the stored status says so already, about this generation."""
    text = "; ".join(reasons)
    return any(
        each.get("type") == _VALID
        and each.get("status") == ("False" if text else "True")
        and each.get("observedGeneration") == _generation(stored)
        and each.get("message") == _message(text)
        for each in _conditions(stored)
    )


def _message(text: str) -> str:
    return (text or "The preset is used.")[:_MESSAGE_MAX]


def _since(stored: admission_events.Stored, text: str) -> str | None:
    """Return when the condition took its status, if that is not now."""
    wanted = "False" if text else "True"
    same = (each for each in _conditions(stored) if each.get("type") == _VALID and each["status"] == wanted)
    return next((each.get("lastTransitionTime") for each in same), None)


def _conditions(stored: admission_events.Stored) -> list[Mapping[str, Any]]:
    return list((stored.get("status") or {}).get("conditions") or ())


def _generation(stored: admission_events.Stored) -> int:
    return int((stored.get("metadata") or {}).get("generation") or 0)
