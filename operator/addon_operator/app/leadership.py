"""Which replica leads: with ``ADDON_OPERATOR_HA`` the holder of a Lease, without it this one."""

import asyncio
import contextlib
import ipaddress
import re
import socket
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Final

import structlog

from addon_operator.aio import warn_once
from addon_operator.kernel import clock, errors, fencing
from addon_operator.kube.access import auth
from addon_operator.kube.client import client
from addon_operator.kube.objects import lease
from addon_operator.process.children import launcher
from addon_operator.settings import settings as settings_module
from addon_operator.status import health
from addon_operator.telemetry import metrics

_TERM_SHARE: Final = 0.2
_KILL_SHARE: Final = 0.8
_SHORT_ID: Final = 8
_IDENTITY: Final = re.compile(r"(?P<pod>.+)(_[0-9a-f]{8}|\.[0-9a-f-]+\.[^.]+\.pod)")
"""Both forms that :func:`identity` gives."""

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


class Candidate(Leadership):
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
        self._status.stand_by(lambda: pod_of(self._lease.holder))
        waited = await self._lease.acquire()
        self._keeping = asyncio.create_task(self._lease.keep(), name="lease")
        self._status.stand_by(None)
        self._meters.process.leader.set(1)
        self._log.info("this replica leads")
        return waited

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
                self._log.info(f"standing by: {pod_of(event.holder)} leads")
            case lease.LeaseHeld():
                self._limit_children(event.since + self._deadline)
                self._trouble.over("the Lease can be renewed again")
            case lease.LeaseTroubled():
                self._trouble.warn(event.problem)

    def _limit_children(self, end: float) -> None:
        """Let children run on: they must be gone before another replica may lead."""
        self._children.limit(end + _TERM_SHARE * self._margin, end + _KILL_SHARE * self._margin)


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
    pod = settings.pod or environ.get("HOSTNAME") or socket.gethostname()
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(settings.listen_address)
        if not address.is_unspecified and not address.is_loopback:
            dashed = settings.listen_address.replace(".", "-").replace(":", "-")
            return f"{pod}.{dashed}.{settings.namespace}.pod"
    return f"{pod}_{uuid.uuid4().hex[:_SHORT_ID]}"


def pod_of(holder: str) -> str:
    """Return the pod, or the machine, that an identity in the Lease belongs to: what a user can ask."""
    named = _IDENTITY.fullmatch(holder)
    return named["pod"] if named else holder


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
        yield Leadership(meters)
        return
    timing = timing_of(settings)
    # A client of its own: renewals must not wait behind the requests of modules.
    async with client.KubeClient(access, done=meters.request_done) as kube:
        which = lease.LeaseName(settings.namespace, settings.lease_name, identity(settings, environ))
        held = lease.Lease(kube, which, timing, LeaseLog(timing, children, log))
        candidate = Candidate(held, status, meters, log)
        status.require_for_work(lambda: held.health.trouble)
        meters.show_watch("lease", lambda: held.health.is_up)
        try:
            yield candidate
        finally:
            await candidate.release()
