"""Which process leads: the holder of a Lease.

With ``ADDON_OPERATOR_HA`` it leads no longer than it can renew the Lease. Without, it is the only one that is
meant to run: the Lease shows it to a second one, which waits, and it goes on while the API server is away.
"""

import asyncio
import contextlib
import ipaddress
import math
import socket
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Final

import structlog

from addon_operator.aio import warn_once
from addon_operator.kernel import clock, errors, fencing
from addon_operator.kube import api_errors
from addon_operator.kube.access import auth
from addon_operator.kube.client import client
from addon_operator.kube.objects import lease
from addon_operator.process import process_marks
from addon_operator.process.children import launcher
from addon_operator.settings import settings as settings_module
from addon_operator.status import health
from addon_operator.telemetry import metrics

_TERM_SHARE: Final = 0.2
_KILL_SHARE: Final = 0.8
_SHORT_ID: Final = 8
_RETRY_SHARE: Final = 0.25
_CONFIG_MAP: Final = "addon-operator"
"""The ConfigMap of whom nobody names another one."""

Logger = structlog.typing.FilteringBoundLogger


class Leadership:
    """The part of this replica in the question of who leads; by itself, that of the only one."""

    def __init__(self, meters: metrics.Metrics) -> None:
        self._meters = meters
        self.fence: fencing.Fence = fencing.OPEN
        """What is asked before each effect."""

    async def acquire(self) -> bool:
        """Wait until this replica leads; return whether it had to wait for another one."""
        self._meters.process.leader.set(1)
        return False

    async def lost(self) -> None:
        """Never return; raise :class:`.LeaseLostError` when another may lead."""
        await asyncio.get_running_loop().create_future()

    async def release(self) -> None:
        """Let another replica lead; nothing that leads runs any more."""
        self._meters.process.leader.set(0)


class Candidate(Leadership, health.Part):
    """A replica that leads while it holds the Lease, and stands by until then."""

    def __init__(
        self, held: lease.Lease, status: health.OperatorStatus, meters: metrics.Metrics, log: Logger
    ) -> None:
        super().__init__(meters)
        self._lease = held
        self._status = status
        self._log = log
        self._keeping: asyncio.Task[None] | None = None
        self.fence = held

    async def acquire(self) -> bool:
        """Wait for the Lease, and renew it from then on; whether another replica held it at first."""
        self._meters.process.leader.set(0)
        self._stand_by()
        waited = await self._lease.acquire()
        self._keeping = asyncio.create_task(self._lease.keep(), name="lease")
        self._status.stand_by(None)
        self._meters.process.leader.set(1)
        if text := self._beginning(waited=waited):
            self._log.info(text)
        return waited

    def trouble(self) -> str | None:
        """Return why the Lease cannot be renewed, or ``None``."""
        return self._lease.health.trouble

    @staticmethod
    def _beginning(*, waited: bool) -> str:  # noqa: ARG004 - a lone operator has news only then
        """Return what to say when it leads."""
        return "this replica leads"

    def _stand_by(self) -> None:
        self._status.stand_by(lambda: lease.pod_of(self._lease.holder))

    async def lost(self) -> None:
        """Raise :class:`.LeaseLostError` when the Lease is lost."""
        if self._keeping is None:
            raise RuntimeError("the Lease was never held")
        await asyncio.shield(self._keeping)

    async def release(self) -> None:
        """Give the Lease up if it is held."""
        self._meters.process.leader.set(0)
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        await self._lease.release()


class _LoneFence(fencing.Fence):
    """Asks the Lease, unless it must not be used."""

    def __init__(self, held: lease.Lease) -> None:
        self._asked: fencing.Fence = held

    def open(self) -> None:
        """Ask nobody from now on."""
        self._asked = fencing.OPEN

    def check(self) -> None:
        self._asked.check()

    def remaining(self) -> float:
        return self._asked.remaining()


class Lone(Candidate):
    """The only operator that is meant to work on a ConfigMap, as long as it finds no other one.

    It waits for one that it finds. A Lease that it must not use is no reason not to work.
    """

    def __init__(
        self, held: lease.Lease, status: health.OperatorStatus, meters: metrics.Metrics, log: Logger
    ) -> None:
        super().__init__(held, status, meters, log)
        self.fence = self._fence = _LoneFence(held)

    async def acquire(self) -> bool:
        """Wait until nobody else holds the Lease; whether somebody did."""
        try:
            return await super().acquire()
        except api_errors.Forbidden as error:
            self._log.warning(
                "a second operator for the same ConfigMap would not be noticed: the Lease cannot be used: "
                f"{error}; allow get, create and update of leases"
            )
        self._fence.open()
        self._meters.process.leader.set(1)
        return False

    def _stand_by(self) -> None:
        """Nobody else is expected: :meth:`found` says it if there is one."""

    @staticmethod
    def _beginning(*, waited: bool) -> str:
        return "the other operator has ended: this one begins" if waited else ""

    def found(self, event: lease.LeaseEvent) -> None:
        """Stand by for the other one."""
        if isinstance(event, lease.LeaseWaiting):
            super()._stand_by()

    async def lost(self) -> None:
        """Raise :class:`.LeaseLostError` when another operator holds the Lease."""
        if self._keeping is None:
            await asyncio.get_running_loop().create_future()
        await super().lost()


class LeaseLog:
    """Shows what happens to the Lease in the log, and limits children by it."""

    def __init__(self, timing: lease.Timing, children: launcher.Launcher, log: Logger) -> None:
        self._deadline = timing.renew_deadline
        self._margin = timing.duration - timing.renew_deadline
        self._children = children
        self._log = log
        self._trouble = warn_once.WarnOnce(log)

    def __call__(self, event: lease.LeaseEvent) -> None:
        """Show the event."""
        match event:
            case lease.LeaseWaiting():
                self._log.info(f"standing by: {lease.pod_of(event.holder)} leads")
            case lease.LeaseHeld():
                self._limit_children(event.since + self._deadline)
                self._trouble.over("the Lease can be renewed again")
            case lease.LeaseTroubled():
                self._trouble.warn(event.problem)

    def _limit_children(self, end: float) -> None:
        """Let children run on: they must be gone before another replica may lead."""
        self._children.limit(end + _TERM_SHARE * self._margin, end + _KILL_SHARE * self._margin)


class LoneLog:
    """Shows what happens to the Lease of an operator that expects no other one."""

    def __init__(self, settings: settings_module.Settings, log: Logger) -> None:
        self._source = f"{settings.namespace}/{settings.config_map}"
        self._log = log
        self._trouble = warn_once.WarnOnce(log)

    def __call__(self, event: lease.LeaseEvent) -> None:
        """Show the event."""
        match event:
            case lease.LeaseWaiting():
                other = lease.pod_of(event.holder)
                self._log.warning(
                    f"another operator works for ConfigMap {self._source}: {other}; this one "
                    "begins when that one has ended: end it, or give this one a namespace of its own"
                )
            case lease.LeaseHeld():
                self._trouble.over("the Lease can be renewed again")
            case lease.LeaseTroubled():
                self._trouble.warn(event.problem)


def lease_name(settings: settings_module.Settings) -> str:
    """Return the name of the Lease: without replicas, each ConfigMap has its own."""
    is_named = settings.origins.get("lease_name", "default") != "default"
    if settings.ha or is_named or settings.config_map == _CONFIG_MAP:
        return settings.lease_name
    return f"{settings.lease_name}-{settings.config_map}"


def timing_of(settings: settings_module.Settings) -> lease.Timing:
    """Return the durations of the settings.

    Raises :class:`.ConfigurationError` when they do not fit each other.
    """
    timing = lease.Timing(settings.lease_duration, settings.lease_renew_deadline, settings.lease_retry_period)
    if timing.renew_deadline >= timing.duration:
        raise errors.ConfigurationError(
            f"LEASE_RENEW_DEADLINE is {clock.duration_text(timing.renew_deadline)} and LEASE_DURATION "
            f"{clock.duration_text(timing.duration)}: make the deadline shorter, as the leader has to give "
            "up before another replica may lead"
        )
    if 2 * timing.retry_period >= timing.renew_deadline:
        raise errors.ConfigurationError(
            f"LEASE_RETRY_PERIOD is {clock.duration_text(timing.retry_period)} and LEASE_RENEW_DEADLINE "
            f"{clock.duration_text(timing.renew_deadline)}: make the period less than half of the deadline, "
            "so that one failed renewal does not lose the Lease"
        )
    return timing


def identity(settings: settings_module.Settings, environ: Mapping[str, str]) -> str:
    """Return what this replica calls itself in the Lease.

    With the pod's address as ``LISTEN_ADDRESS`` it is the pod's DNS name, as a replica of the Go operator
    writes it and looks it up; otherwise the pod's or machine's name and something that no other process has.
    """
    pod = _own_name(settings, environ)
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(settings.listen_address)
        if not address.is_unspecified and not address.is_loopback:
            dashed = settings.listen_address.replace(".", "-").replace(":", "-")
            return f"{pod}.{dashed}.{settings.namespace}.pod"
    return f"{pod}_{uuid.uuid4().hex[:_SHORT_ID]}"


def lone_identity(settings: settings_module.Settings, environ: Mapping[str, str]) -> str:
    """Return what an operator without replicas calls itself: others find out that it has ended."""
    return f"{_own_name(settings, environ)}_{process_marks.own() or uuid.uuid4().hex[:_SHORT_ID]}"


def has_ended(holder: str, pod: str | None) -> bool:
    """Say whether an operator without replicas is gone for sure; ``pod`` is the name of one's own pod.

    In a pod runs one at a time: what another container of this pod has written is what was restarted.
    """
    named = lease.IDENTITY.fullmatch(holder)
    if named is None or named["mark"] is None:
        return False
    is_of_this_pod = pod is not None and named["pod"] == pod
    return process_marks.has_ended(named["mark"]) or (
        is_of_this_pod and not process_marks.is_seen(named["mark"])
    )


def _own_name(settings: settings_module.Settings, environ: Mapping[str, str]) -> str:
    return settings.pod or environ.get("HOSTNAME") or socket.gethostname()


@contextlib.asynccontextmanager
async def standing(
    settings: settings_module.Settings,
    access: auth.ClusterAccess,
    children: launcher.Launcher,
    status: health.OperatorStatus,
    meters: metrics.Metrics,
    log: Logger,
    environ: Mapping[str, str],
) -> AsyncIterator[Leadership]:
    """Give the leadership that the settings ask for, until the end of the context.

    Raises :class:`.ConfigurationError` for durations that do not fit each other.
    """
    if not settings.ha:
        async with _standing_alone(settings, access, status, meters, log, environ) as lone:
            yield lone
        return
    timing = timing_of(settings)
    # A client of its own: renewals must not wait behind the requests of modules.
    async with client.KubeClient(access, done=meters.request_done) as kube:
        which = lease.LeaseName(settings.namespace, lease_name(settings), identity(settings, environ))
        held = lease.Lease(kube, which, timing, LeaseLog(timing, children, log))
        candidate = Candidate(held, status, meters, log)
        status.add(candidate)
        meters.show_watch("lease", lambda: held.health.is_up)
        try:
            yield candidate
        finally:
            await candidate.release()


@contextlib.asynccontextmanager
async def _standing_alone(
    settings: settings_module.Settings,
    access: auth.ClusterAccess,
    status: health.OperatorStatus,
    meters: metrics.Metrics,
    log: Logger,
    environ: Mapping[str, str],
) -> AsyncIterator[Leadership]:
    shown = LoneLog(settings, log)
    duration = settings.lease_duration
    timing = lease.Timing(duration, math.inf, min(settings.lease_retry_period, duration * _RETRY_SHARE))
    async with client.KubeClient(access, done=meters.request_done) as kube:
        which = lease.LeaseName(settings.namespace, lease_name(settings), lone_identity(settings, environ))

        def tell(event: lease.LeaseEvent) -> None:
            shown(event)
            lone.found(event)

        held = lease.Lease(
            kube, which, timing, tell, has_ended=lambda holder: has_ended(holder, settings.pod)
        )
        lone = Lone(held, status, meters, log)
        try:
            yield lone
        finally:
            await lone.release()
