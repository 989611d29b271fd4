"""Leading and standing by, as the operator's other parts see it."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator

import pytest
import structlog
from structlog.testing import capture_logs
from typing_extensions import override

from addon_operator.app import leadership
from addon_operator.kernel import errors, fencing
from addon_operator.kube.objects import lease
from addon_operator.process import process_marks
from addon_operator.process.children import launcher
from addon_operator.settings import settings, settings_loading
from addon_operator.status import health
from addon_operator.telemetry import metrics
from tests.support import api_server, clocks, rows
from tests.support.api_server import ApiServer

LEASE = "addon-operator-leader-election"
NOW = "2026-01-01T00:00:00.000000Z"


class Limits(launcher.Launcher):
    """Starts nothing, and takes down when children would be ended."""

    def __init__(self) -> None:
        self.set: list[tuple[float, float]] = []

    @override
    def limit(self, term_at: float, kill_at: float) -> None:
        self.set.append((term_at, kill_at))


class World:
    """An API server without the Lease, and what a replica tells."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.status = health.OperatorStatus()
        self.meters = metrics.Metrics()
        self.limits = Limits()

    def hold(self, holder: str) -> None:
        """Another operator has the Lease, or nobody."""
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "renewTime": "2026-01-01T00:00:00.000000Z",
        }
        self.server.put(api_server.an_object("Lease", LEASE, "addons", "coordination.k8s.io/v1", spec=spec))

    @property
    def holder(self) -> str:
        return str(self.server.get("Lease", LEASE)["spec"]["holderIdentity"])

    @property
    def leads(self) -> float | None:
        return self.meters.registry.get_sample_value("addon_operator_leader")

    def standing(self, **environ: str) -> contextlib.AbstractAsyncContextManager[leadership.Leadership]:
        return leadership.standing(
            loaded(**environ),
            api_server.access_to(self.server.url),
            self.limits,
            self.status,
            self.meters,
            structlog.get_logger(),
            {"HOSTNAME": "pod-1"},
        )


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with api_server.running() as server:
        yield World(server)


def loaded(**environ: str) -> settings.Settings:
    return settings_loading.load({}, {"ADDON_OPERATOR_NAMESPACE": "addons"} | environ)


async def test_an_operator_without_replicas_leads_at_once_and_shows_it_to_others(world: World) -> None:
    async with world.standing() as part:
        with pytest.raises(fencing.FencedError):
            part.fence.check()
        assert await part.acquire() is False
        assert world.leads == 1
        assert part.fence.remaining() == math.inf, "it works on while the API server is away"
        assert world.status.unready_reason() == "the operator is starting", "it never stood by"
        assert world.holder.startswith("pod-1_")
    assert world.leads == 0
    assert (world.holder, world.limits.set) == ("", [])


async def test_a_second_operator_says_whom_it_found_and_waits_until_that_one_has_ended(world: World) -> None:
    world.hold("pod-0_4c1f09ab")
    async with world.standing(LEASE_RETRY_PERIOD="10ms") as part:
        with capture_logs() as lines:
            waiting = asyncio.create_task(part.acquire())
            async with asyncio.timeout(60):
                while not lines:  # noqa: ASYNC110 - the log tells nobody
                    await asyncio.sleep(0.001)
            assert world.status.converge() == ("STANDBY: pod-0 leads", 0)
            world.hold("")
            assert await waiting is True
    (found, begins) = lines
    assert found["log_level"] == "warning"
    assert found["event"].startswith("another operator works for ConfigMap addons/addon-operator: pod-0; ")
    assert begins["event"] == "the other operator has ended: this one begins"


@pytest.mark.parametrize(
    ("holder", "own_pod"),
    [
        (f"pod-0_{process_marks.own().rsplit('-', 1)[0]}-1", None),
        ("pod-0_4c1f09ab4effffffc-7-1000", "pod-0"),
    ],
    ids=["killed on this machine", "an earlier container of this pod"],
)
async def test_an_operator_that_was_killed_is_not_waited_for(
    world: World, holder: str, own_pod: str | None
) -> None:
    world.hold(holder)
    environ = {} if own_pod is None else {"ADDON_OPERATOR_POD": own_pod}
    async with world.standing(**environ) as part:
        assert await part.acquire() is False


@rows.each(
    ("holder", "own_pod"),
    [
        (f"pod-0_{process_marks.own()}", "pod-0"),
        ("pod-0_4c1f09ab4effffffc-7-1000", "pod-1"),
        ("pod-0_4c1f09ab4effffffc-7-1000", None),
        ("pod-0_4c1f09ab", "pod-0"),
        ("pod-0.10-0-3-7.addons.pod", "pod-0"),
    ],
    ids=["it lives", "another pod's", "another machine's", "a replica's", "a Go operator's"],
)
def test_of_nobody_else_is_known_that_it_was_killed(holder: str, own_pod: str | None) -> None:
    assert leadership.has_ended(holder, own_pod) is False
    assert lease.pod_of(holder) == "pod-0"


async def test_without_a_right_to_leases_an_operator_works_and_says_what_it_will_not_notice(
    world: World,
) -> None:
    world.server.refuse(api_server.status(403, "Forbidden", "no leases for you"), times=99)
    with capture_logs() as lines:
        async with world.standing() as part:
            assert await part.acquire() is False
            assert world.leads == 1
            part.fence.check()
            lost = asyncio.create_task(part.lost())
            await clocks.settle()
            assert not lost.done()
            lost.cancel()
    (line,) = lines
    assert line["event"].startswith(
        "a second operator for the same ConfigMap would not be noticed: the Lease"
    )
    assert "no leases for you" in line["event"]


@rows.each(
    ("environ", "name"),
    [
        ({}, "addon-operator-leader-election"),
        ({"ADDON_OPERATOR_CONFIG_MAP": "mine"}, "addon-operator-leader-election-mine"),
        ({"ADDON_OPERATOR_CONFIG_MAP": "mine", "LEASE_NAME": "one"}, "one"),
        (
            {"ADDON_OPERATOR_CONFIG_MAP": "mine", "ADDON_OPERATOR_HA": "true"},
            "addon-operator-leader-election",
        ),
    ],
    ids=["usual", "another ConfigMap", "a name that was given", "replicas"],
)
def test_operators_for_different_config_maps_do_not_wait_for_each_other(
    environ: dict[str, str], name: str
) -> None:
    assert leadership.lease_name(loaded(**environ)) == name


async def test_a_replica_that_gets_the_lease_leads_and_gives_it_up_at_the_end(world: World) -> None:
    async with world.standing(ADDON_OPERATOR_HA="true") as part:
        with pytest.raises(fencing.FencedError):
            part.fence.check()
        await part.acquire()
        assert world.leads == 1
        part.fence.check()
    assert world.leads == 0
    assert world.holder == ""


async def test_children_end_between_the_leaders_deadline_and_the_next_leader(world: World) -> None:
    async with world.standing(ADDON_OPERATOR_HA="true") as part:
        await part.acquire()
        remaining = part.fence.remaining()
    ((term_at, kill_at),) = world.limits.set
    assert kill_at - term_at == pytest.approx(3)
    assert 9 < remaining <= 10


def observed(timing: lease.Timing) -> tuple[leadership.LeaseLog, Limits]:
    limits = Limits()
    return leadership.LeaseLog(timing, limits, structlog.get_logger()), limits


def test_the_limit_of_children_moves_with_each_renewal() -> None:
    told, limits = observed(lease.Timing(duration=15, renew_deadline=10, retry_period=2))
    told(lease.LeaseHeld(100))
    told(lease.LeaseHeld(102))
    assert limits.set == [(111, 114), (113, 116)]


def test_a_problem_is_reported_once_and_when_it_is_over() -> None:
    told, _ = observed(lease.Timing())
    with capture_logs() as lines:
        told(lease.LeaseTroubled("it cannot be renewed"))
        told(lease.LeaseTroubled("it cannot be renewed"))
        told(lease.LeaseHeld(1))
        told(lease.LeaseHeld(2))
    assert [line["event"] for line in lines] == ["it cannot be renewed", "the Lease can be renewed again"]


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"LEASE_RENEW_DEADLINE": "15s"}, "LEASE_RENEW_DEADLINE is 15s and LEASE_DURATION 15s"),
        ({"LEASE_RETRY_PERIOD": "5s"}, "LEASE_RETRY_PERIOD is 5s and LEASE_RENEW_DEADLINE 10s"),
    ],
)
async def test_durations_that_do_not_fit_are_refused_at_the_start(
    world: World, environ: dict[str, str], said: str
) -> None:
    with pytest.raises(errors.ConfigurationError, match=said):
        async with world.standing(ADDON_OPERATOR_HA="true", **environ):
            pytest.fail("it started")


def test_durations_of_the_settings_count() -> None:
    given = loaded(LEASE_DURATION="35s", LEASE_RENEW_DEADLINE="30s", LEASE_RETRY_PERIOD="10s")
    assert leadership.timing_of(given) == lease.Timing(35, 30, 10)


def test_the_identity_is_the_pods_dns_name_where_the_address_is_known() -> None:
    given = loaded(ADDON_OPERATOR_POD="op-1", ADDON_OPERATOR_LISTEN_ADDRESS="10.0.3.7")
    assert leadership.identity(given, {}) == "op-1.10-0-3-7.addons.pod"


@rows.each("address", ["0.0.0.0", "127.0.0.1", "::", "localhost"])
def test_without_a_pods_address_each_process_has_a_name_of_its_own(address: str) -> None:
    given = loaded(ADDON_OPERATOR_LISTEN_ADDRESS=address)
    names = {leadership.identity(given, {"HOSTNAME": "op-1"}) for _ in range(5)}
    assert len(names) == 5
    assert all(name.startswith("op-1_") for name in names)


async def test_a_standby_says_who_leads() -> None:
    found = health.OperatorStatus()
    found.stand_by(lambda: "op-1")
    assert found.converge() == ("STANDBY: op-1 leads", 0)
    found.stand_by(lambda: "")
    assert found.converge() == ("STANDBY: nobody leads", 0)


class Unlisted(health.Part):
    """Admission that has not listed the presets."""

    @override
    def unready_reason(self) -> str | None:
        return "the PodPresets have not been listed yet"


async def test_a_standby_is_ready_when_it_admits_pods() -> None:
    found = health.OperatorStatus()
    found.stand_by(lambda: "op-1")
    assert found.unready_reason() is None
    found.add(Unlisted())
    assert found.unready_reason() == "the PodPresets have not been listed yet"


async def test_a_replica_that_begins_to_lead_is_no_longer_ready_by_standing_by() -> None:
    found = health.OperatorStatus()
    found.stand_by(lambda: "op-1")
    found.stand_by(None)
    assert found.unready_reason() == "the operator is starting"
    assert found.converge() == ("STARTUP_CONVERGE_NOT_STARTED", 0)


@rows.each(
    ("holder", "pod"),
    [
        ("op-1_4c1f09ab", "op-1"),
        ("op-1.10-0-3-7.addons.pod", "op-1"),
        ("op-1.fd00--7.addons.pod", "op-1"),
        ("my_host", "my_host"),
        ("", ""),
    ],
    ids=["name and number", "DNS name", "DNS name of IPv6", "another one's", "nobody"],
)
def test_a_standby_names_the_pod_behind_an_identity(holder: str, pod: str) -> None:
    assert lease.pod_of(holder) == pod
