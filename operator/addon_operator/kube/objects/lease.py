"""Elect a leader by a Lease of ``coordination.k8s.io/v1``.

The rules are those of client-go's ``leaderelection``, so that replicas of the Go operator and of this one
agree on who leads: a Lease is free when its holder is empty, or when it has not changed for as long as its
``leaseDurationSeconds`` say. Clocks of two machines are never compared: each replica measures with its own
how long ago it saw the last change. Two things are stricter here:

* The time of a renewal counts from before it was sent, on a clock that goes on while the machine is suspended
  or the process stopped; leadership ends ``renew_deadline`` after that, before anybody else may begin.
* A Lease is taken for one's own only by what this process has written, not by the name alone, so two replicas
  that were given the same name do not both lead.
"""

import asyncio
import datetime as dt
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from addon_operator.aio import waiting
from addon_operator.kernel import clock, errors, fencing
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.kube.informers import watch_health

API_VERSION: Final = "coordination.k8s.io/v1"
PLURAL: Final = "leases"
_RELEASED_SECONDS: Final = 1
_RELEASE_TIMEOUT: Final = 2.0
_LOOKS_PER_RETRY: Final = 2
_JITTER: Final = 0.1
_TRIES_PER_DEADLINE: Final = 2


IDENTITY: Final = re.compile(
    r"(?P<pod>.+)(_[0-9a-f]{8}|_(?P<mark>[0-9a-f]+-\d+-\d+)|\.[0-9a-f-]+\.[^.]+\.pod)"
)
"""All forms in which an operator names itself in the Lease; the Go operator uses the last one."""


def pod_of(holder: str) -> str:
    """Return the pod, or the machine, that an identity in the Lease belongs to: what a user can ask."""
    named = IDENTITY.fullmatch(holder)
    return named["pod"] if named else holder


class LeaseLostError(errors.AddonOperatorError):
    """Another replica leads now, or may soon, since the Lease was not renewed in time."""


class LeaseWaiting(msgspec.Struct, frozen=True):
    """Another replica leads; reported once for each holder."""

    holder: str


class LeaseHeld(msgspec.Struct, frozen=True):
    """The Lease was taken or renewed."""

    since: float
    """When the request was sent, on the Lease's clock."""


class LeaseTroubled(msgspec.Struct, frozen=True):
    """A try failed; there will be another one."""

    problem: str


LeaseEvent = LeaseWaiting | LeaseHeld | LeaseTroubled


class BootTime(waiting.SystemTime):
    """A clock that goes on while the machine is suspended or the process stopped."""

    def monotonic(self) -> float:
        """Return the seconds since the machine was started."""
        return clock.boottime()


class Timing(msgspec.Struct, frozen=True):
    """Durations in seconds."""

    duration: float = 15.0
    """How long others wait after the last renewal; whole seconds, as the API has them."""
    renew_deadline: float = 10.0
    """How long the leader goes on after the last renewal; infinite for one that goes on until another holder
    is seen.
    """
    retry_period: float = 2.0
    """Between two renewals, and between tries; those who wait look twice as often."""

    @property
    def try_timeout(self) -> float:
        """How long one try may take, so that another fits in before the deadline."""
        return min(self.renew_deadline, self.duration) / _TRIES_PER_DEADLINE


class LeaseName(msgspec.Struct, frozen=True):
    """Which Lease, and what this replica calls itself in it."""

    namespace: str
    name: str
    identity: str


class Lease(fencing.Fence):
    """One Lease and this replica's part in it."""

    def __init__(
        self,
        kube: client.KubeClient,
        which: LeaseName,
        timing: Timing,
        tell: Callable[[LeaseEvent], None],
        time: waiting.Time | None = None,
        has_ended: Callable[[str], bool] = lambda _holder: False,
    ) -> None:
        """``time`` is a clock that never stands still, by default :class:`BootTime`; ``has_ended`` says of a
        holder's identity that its process is gone for sure.
        """
        self._kube = kube
        self._which = which
        self._timing = timing
        self._tell = tell
        self._time = time or BootTime()
        self._has_ended = has_ended
        self._collection = paths.of(API_VERSION, PLURAL, namespace=which.namespace)
        self._path = paths.of(API_VERSION, PLURAL, namespace=which.namespace, name=which.name)
        self._known: client.Object | None = None
        self._seen: Mapping[str, Any] | None = None
        self._seen_at = 0.0
        self._written: set[str] = set()
        self._held_since: float | None = None
        self.health = watch_health.WatchHealth(
            f"the watch of the Lease {which.name}", elapsed=self._time.monotonic
        )
        """Whether this replica knows who leads."""

    @property
    def holder(self) -> str:
        """Who led when it was last looked at; empty for nobody."""
        return str((self._seen or {}).get("holderIdentity") or "")

    def remaining(self) -> float:
        """Return seconds for which this replica leads even without renewal; 0 if it does not lead."""
        if self._held_since is None:
            return 0.0
        return max(0.0, self._held_since + self._timing.renew_deadline - self._time.monotonic())

    def check(self) -> None:
        """Return if this replica leads; raises :class:`.fencing.FencedError` otherwise."""
        if not self.remaining():
            raise fencing.FencedError(
                f"this replica does not hold the Lease {self._which.name}, so it changes nothing"
            )

    async def acquire(self) -> bool:
        """Wait until this replica leads; whether it had to.

        Raises :class:`.Forbidden` when the first try shows that a right is missing.
        """
        if await self._try_once(self._take):
            return False
        reported, held = "", False
        while not held:
            if self.holder and self.holder != reported:
                reported = self.holder
                self._tell(LeaseWaiting(reported))
            await self._pause(self._timing.retry_period / _LOOKS_PER_RETRY)
            held = await self._try_once(self._take, patient=True)
        return True

    async def keep(self) -> None:
        """Renew the Lease until it is lost.

        Raises :class:`LeaseLostError` then; from that moment on :meth:`check` refuses.
        """
        try:
            while True:
                await self._pause(self._timing.retry_period)
                if not self.remaining():
                    raise LeaseLostError(self._expired())
                await self._try_once(self._renew, patient=True)
        except LeaseLostError:
            self._held_since = None
            self._written.clear()
            raise

    async def release(self) -> None:
        """Give the Lease up, if it is held, so that another replica can take it at once.

        Nothing that leads may run any more, :meth:`keep` included.
        """
        expired = self._held_since is not None and not self.remaining()
        if expired or not self._written:
            return
        self._held_since = None
        try:
            async with asyncio.timeout(_RELEASE_TIMEOUT):
                await self._empty()
        except (api_errors.KubernetesError, TimeoutError) as error:
            self._tell(LeaseTroubled(f"the Lease {self._which.name} was not released: {_reason(error)}"))

    async def _empty(self) -> None:
        # Not what was last seen: a request may have been on its way when its task was cancelled.
        lease = await self._look()
        if lease is not None and self._is_mine():
            await self._kube.replace(self._path, _emptied(lease))

    async def _pause(self, seconds: float) -> None:
        pause = seconds * (1 - _JITTER * self._time.jitter())
        left = self.remaining()
        await self._time.sleep(min(pause, left) if left else pause)

    async def _try_once(self, work: Callable[[], Awaitable[bool]], *, patient: bool = False) -> bool:
        """Try once; report, and do not raise, what may be different at the next try."""
        limit = self._timing.try_timeout
        try:
            async with asyncio.timeout(min(limit, self.remaining() or limit)):
                done = await work()
        except (api_errors.KubernetesError, TimeoutError) as error:
            if isinstance(error, api_errors.Forbidden) and not patient:
                raise
            self.health.falls(_reason(error))
            self._tell(
                LeaseTroubled(
                    f"the Lease {self._which.name} can be neither taken nor renewed: {_reason(error)}"
                )
            )
            return False
        self.health.stands()
        return done

    async def _take(self) -> bool:
        lease = await self._look()
        if lease is not None and not self._is_free():
            return False
        try:
            await self._write(lease)
        except (api_errors.Conflict, api_errors.NotFound):
            return False
        return True

    async def _renew(self) -> bool:
        try:
            await self._write(self._known)
        except (api_errors.Conflict, api_errors.NotFound):
            # Neither an edit, such as a label, nor a deletion loses anything if nobody was faster.
            lease = await self._look()
            if lease is not None and not self._is_mine():
                raise LeaseLostError(self._taken()) from None
            await self._write(lease)
        return True

    def _expired(self) -> str:
        return (
            f"the Lease {self._which.name} could not be renewed for {self._timing.renew_deadline:g} s, "
            "so another replica may lead now"
        )

    def _taken(self) -> str:
        by = f"{self.holder} holds it" if self.holder else "somebody has emptied it"
        return f"the Lease {self._which.name} was taken away: {by} now"

    async def _look(self) -> client.Object | None:
        try:
            lease = await self._kube.get(self._path)
        except api_errors.NotFound:
            self._seen = None
            return None
        spec = lease.get("spec") or {}
        if spec != self._seen:
            self._seen, self._seen_at = spec, self._time.monotonic()
        return lease

    def _is_free(self) -> bool:
        if not self.holder or self._is_mine() or self._has_ended(self.holder):
            return True
        lasts = (self._seen or {}).get("leaseDurationSeconds") or self._timing.duration
        return self._time.monotonic() >= self._seen_at + float(lasts)

    def _is_mine(self) -> bool:
        """Say whether this replica wrote it, perhaps by a request whose answer got lost."""
        return self.holder == self._which.identity and (self._seen or {}).get("renewTime") in self._written

    async def _write(self, before: client.Object | None) -> None:
        sent = self._time.monotonic()
        spec = self._spec((before or {}).get("spec") or {})
        self._written.add(spec["renewTime"])
        if before is None:
            metadata = {"name": self._which.name, "namespace": self._which.namespace}
            body = {"apiVersion": API_VERSION, "kind": "Lease", "metadata": metadata, "spec": spec}
            self._known = await self._kube.create(self._collection, body)
        else:
            self._known = await self._kube.replace(self._path, {**before, "spec": spec})
        self._seen, self._seen_at, self._written = self._known["spec"], sent, {spec["renewTime"]}
        self._held_since = sent
        self._tell(LeaseHeld(sent))

    def _spec(self, before: Mapping[str, Any]) -> dict[str, Any]:
        now = _micro_time()
        same = before.get("holderIdentity") == self._which.identity and self._held_since is not None
        transitions = int(before.get("leaseTransitions") or 0)
        return {
            **before,
            "holderIdentity": self._which.identity,
            "leaseDurationSeconds": math.ceil(self._timing.duration),
            "acquireTime": before.get("acquireTime") if same else now,
            "renewTime": now,
            "leaseTransitions": transitions if same or not before else transitions + 1,
        }


def _emptied(lease: client.Object) -> client.Object:
    """Free for anybody; the duration is for a Go replica that has a look."""
    now = _micro_time()
    spec = {
        **lease["spec"],
        "holderIdentity": "",
        "leaseDurationSeconds": _RELEASED_SECONDS,
        "acquireTime": now,
        "renewTime": now,
    }
    return {**lease, "spec": spec}


def _micro_time() -> str:
    """Return the time for people who look at the Lease: no replica decides by it."""
    return dt.datetime.now(tz=dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _reason(error: Exception) -> str:
    return str(error) or "the API server did not answer in time"
