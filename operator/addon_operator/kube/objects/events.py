"""Record Kubernetes Events: what ``kubectl describe`` shows about objects.

Nobody waits for an Event: :meth:`EventWriter.record` returns at once,
:meth:`EventWriter.run` writes, and a failure to write is logged. The same Event again only
raises its ``count``, and each object has the budget of client-go: 25 Events at once and then one every 5
minutes. What is remembered is bounded.
"""

import asyncio
import collections
import logging
import re
from collections.abc import Hashable
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from addon_operator.kernel import clock, shown_texts
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client

COMPONENT: Final = "addon-operator"
_MESSAGE_MAX: Final = 1024
_REASON_MAX: Final = 128
_NAME_MAX: Final = 200
_DEFAULT_NAMESPACE: Final = "default"
BURST: Final = 25
REFILL_SECONDS: Final = 300.0
REMEMBERED: Final = 4096
_NOT_IN_NAME: Final = re.compile(r"[^a-z0-9.-]")

V = TypeVar("V")

EventType = Literal["Normal", "Warning"]

_log = logging.getLogger(__name__)


class ObjectReference(msgspec.Struct, frozen=True):
    """The object that an Event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str | None = None
    """``None`` for an object of the cluster; its Events are in the namespace ``default``."""
    uid: str = ""
    resource_version: str = ""

    @property
    def event_namespace(self) -> str:
        """Where Events about it are kept."""
        return self.namespace or _DEFAULT_NAMESPACE

    @property
    def identity(self) -> tuple[str, ...]:
        """What makes it the same object, whatever was changed in it."""
        return (self.api_version, self.kind, self.namespace or "", self.name, self.uid)

    def as_json(self) -> dict[str, str]:
        """Return the object as ``involvedObject``."""
        fields = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
            "resourceVersion": self.resource_version,
        }
        return {key: text for key, text in fields.items() if text}


class _Waiting(msgspec.Struct, frozen=True):
    about: ObjectReference
    type: EventType
    reason: str
    message: str
    component: str
    at: float
    """Seconds since the epoch."""


class _Written(msgspec.Struct):
    """An Event as it stands in the cluster; ``name`` is empty as long as it does not."""

    name: str = ""
    count: int = 0


class _Tokens(msgspec.Struct):
    tokens: float
    refilled: float


class _Recent(Generic[V]):
    """A mapping that forgets what was not used for the longest time."""

    def __init__(self) -> None:
        self._items: collections.OrderedDict[Hashable, V] = collections.OrderedDict()

    def get_or(self, key: Hashable, new: V) -> V:
        value = self._items.setdefault(key, new)
        self._items.move_to_end(key)
        if len(self._items) > REMEMBERED:
            self._items.popitem(last=False)
        return value


class EventBudget:
    """Decides over Events; keeps what it needs for that in memory."""

    def __init__(self, time: clock.Clock) -> None:
        self._clock = time
        self._buckets: _Recent[_Tokens] = _Recent()
        self._written: _Recent[_Written] = _Recent()

    def admit(self, about: Hashable, event: Hashable) -> _Written | None:
        """Return the Event to count up or write; ``None`` if the object has too many."""
        return self._written.get_or(event, _Written()) if self._take_token(about) else None

    def _take_token(self, about: Hashable) -> bool:
        now = self._clock.monotonic()
        bucket = self._buckets.get_or(about, _Tokens(BURST, now))
        bucket.tokens = min(BURST, bucket.tokens + (now - bucket.refilled) / REFILL_SECONDS)
        bucket.refilled = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


class EventWriter:
    """Writes Events about objects; to be used in one event loop."""

    def __init__(
        self, kube: client.KubeClient, time: clock.Clock, *, instance: str = "", waiting_max: int = 1000
    ) -> None:
        """``instance`` is the pod's name, ``waiting_max`` how many Events may wait to be written."""
        self._kube = kube
        self._clock = time
        self._instance = instance
        self._budget = EventBudget(time)
        self._waiting: collections.deque[_Waiting] = collections.deque(maxlen=waiting_max)
        self._arrived = asyncio.Event()
        self._serial = 0

    def record(
        self,
        about: ObjectReference,
        type_: EventType,
        reason: str,
        message: str,
        *,
        component: str = COMPONENT,
    ) -> None:
        """Tell something about an object; never raises, never waits.

        ``reason`` is a CamelCase word for machines, ``message`` a sentence for people, ``component`` what
        ``kubectl describe`` shows as the source. When writing is too slow, the oldest that wait are dropped.
        """
        self._waiting.append(
            _Waiting(about, type_, reason[:_REASON_MAX], cut(message), component, self._clock.time())
        )
        self._arrived.set()

    async def run(self) -> None:
        """Write Events as they come, until cancelled."""
        while True:
            # First: whoever begins again after a defect may find some that wait.
            await self.flush()
            await self._arrived.wait()

    async def flush(self) -> None:
        """Write everything that waits now."""
        self._arrived.clear()
        while self._waiting:
            await self._write(self._waiting.popleft())

    async def _write(self, event: _Waiting) -> None:
        # As in client-go the budget is that of an object and a source.
        about = (*event.about.identity, event.component)
        written = self._budget.admit(about, (about, event.type, event.reason, event.message))
        if written is None:
            return
        try:
            await self._send(event, written)
        except api_errors.KubernetesError as error:
            _log.warning(
                "an Event about %s %s was not written: %s", event.about.kind, event.about.name, error
            )

    async def _send(self, event: _Waiting, written: _Written) -> None:
        if written.name:
            at = clock.rfc3339(event.at)
            patch = {"count": written.count + 1, "lastTimestamp": at}
            try:
                await self._kube.patch(self._path(event, written.name), patch)
            except api_errors.NotFound:
                # The API server has forgotten it: Events live for an hour.
                written.name = ""
            else:
                written.count += 1
                return
        body = self._body(event)
        await self._kube.create(self._path(event), body)
        written.name, written.count = body["metadata"]["name"], 1

    @staticmethod
    def _path(event: _Waiting, name: str | None = None) -> str:
        return paths.of("v1", "events", namespace=event.about.event_namespace, name=name)

    def _body(self, event: _Waiting) -> dict[str, Any]:
        self._serial += 1
        # Some objects, such as ClusterRoles, have names that an Event cannot have.
        stem = _NOT_IN_NAME.sub("-", event.about.name[:_NAME_MAX]).strip(".-") or "event"
        name = f"{stem}.{int(event.at * 1e6):x}{self._serial:x}"
        at = clock.rfc3339(event.at)
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": event.about.event_namespace},
            "involvedObject": event.about.as_json(),
            "type": event.type,
            "reason": event.reason,
            "message": event.message,
            "source": {"component": event.component} | ({"host": self._instance} if self._instance else {}),
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }


def cut(message: str) -> str:
    """Return a message as an Event may have it."""
    short = message if len(message) <= _MESSAGE_MAX else message[: _MESSAGE_MAX - 1] + "…"
    return shown_texts.shown(short)
