"""Who leads, as a Lease in a fake API server tells it, on clocks that tests move."""

import asyncio
import math
from typing import Any

import pytest
from typing_extensions import override

from addon_operator.kernel import fencing
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.objects import lease
from tests.support import clocks
from tests.support.api_server import Answer, ApiServer, Asked, an_object

PATH = "/apis/coordination.k8s.io/v1/namespaces/addons/leases/leader"
TIMING = lease.Timing()


def hold(
    server: ApiServer,
    holder: str,
    *,
    seconds: int | None = 15,
    renewed: str = "2026-01-01T00:00:00.000000Z",
    **fields: object,
) -> None:
    """Somebody else writes the Lease."""
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseTransitions": 3, **fields}
    if seconds is not None:
        spec["leaseDurationSeconds"] = seconds
    server.put(an_object("Lease", "leader", "addons", "coordination.k8s.io/v1", spec=spec))


def label(server: ApiServer) -> None:
    """Somebody changes something that is not the question."""
    stored = server.get("Lease", "leader")
    stored["metadata"]["labels"] = {"seen": "yes"}
    server.put(stored)


def spec_of(server: ApiServer) -> dict[str, Any]:
    spec: dict[str, Any] = server.get("Lease", "leader")["spec"]
    return spec


def away(server: ApiServer) -> None:
    server.refuse(403, times=99)


class Times(clocks.Pauses):
    """A clock that moves when somebody sleeps, and what happens meanwhile; the test ends with its script."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.chance = 0.0
        self.script: list[Any] = []

    @override
    def jitter(self) -> float:
        return self.chance

    @override
    async def sleep(self, seconds: float) -> None:
        if not self.script:
            raise EndOfScriptError
        await super().sleep(seconds)
        step = self.script.pop(0)
        if step is not None:
            step()


class EndOfScriptError(Exception):
    pass


class Reported:
    def __init__(self) -> None:
        self.holders: list[str] = []
        self.since: list[float] = []
        self.problems: list[str] = []

    def __call__(self, event: lease.LeaseEvent) -> None:
        match event:
            case lease.LeaseWaiting():
                self.holders.append(event.holder)
            case lease.LeaseHeld():
                self.since.append(event.since)
            case lease.LeaseTroubled():
                self.problems.append(event.problem)


@pytest.fixture
def times() -> Times:
    return Times()


@pytest.fixture
def reported() -> Reported:
    return Reported()


@pytest.fixture
def mine(kube: client.KubeClient, times: Times, reported: Reported) -> lease.Lease:
    return replica(kube, times, reported, "me")


def replica(
    kube: client.KubeClient, times: Times, reported: Reported, name: str, timing: lease.Timing = TIMING
) -> lease.Lease:
    which = lease.LeaseName("addons", "leader", name)
    return lease.Lease(kube, which, timing, reported, times)


async def lost(held: lease.Lease) -> str:
    with pytest.raises(lease.LeaseLostError) as raised:
        await held.keep()
    return str(raised.value)


async def kept(held: lease.Lease) -> None:
    """The Lease is still held when the script is over."""
    with pytest.raises(EndOfScriptError):
        await held.keep()
    held.check()


async def test_a_lease_that_is_not_there_is_made(
    mine: lease.Lease, server: ApiServer, reported: Reported
) -> None:
    assert await mine.acquire() is False
    stored = server.get("Lease", "leader")
    assert (stored["apiVersion"], stored["metadata"]["namespace"]) == ("coordination.k8s.io/v1", "addons")
    assert spec_of(server)["holderIdentity"] == "me"
    assert spec_of(server)["leaseDurationSeconds"] == 15
    assert spec_of(server)["leaseTransitions"] == 0
    assert spec_of(server)["acquireTime"] == spec_of(server)["renewTime"]
    assert reported.since == [1000.0]
    mine.check()


async def test_nobody_leads_before_the_lease_is_held(mine: lease.Lease) -> None:
    assert mine.remaining() == 0
    with pytest.raises(fencing.FencedError, match="does not hold the Lease leader"):
        mine.check()


async def test_a_released_lease_is_taken_at_once(mine: lease.Lease, server: ApiServer, times: Times) -> None:
    hold(server, "", seconds=1)
    assert await mine.acquire() is False
    assert times.seconds == []
    assert spec_of(server)["leaseTransitions"] == 4


async def test_another_holder_is_waited_for_and_reported_once(
    mine: lease.Lease, server: ApiServer, times: Times, reported: Reported
) -> None:
    hold(server, "other")
    times.script = [None] * 15
    assert await mine.acquire() is True
    assert times.seconds == [1.0] * 15
    assert reported.holders == ["other"]
    assert mine.holder == "me"


async def test_a_renewal_of_another_holder_starts_the_wait_anew(
    mine: lease.Lease, server: ApiServer, times: Times
) -> None:
    hold(server, "other")
    times.script = (
        [None] * 13 + [lambda: hold(server, "other", renewed="2026-01-01T00:00:10.000000Z")] + [None] * 15
    )
    await mine.acquire()
    assert times.now == 1000 + 14 + 15


async def test_an_edit_that_is_not_a_renewal_does_not_prolong_the_wait(
    mine: lease.Lease, server: ApiServer, times: Times
) -> None:
    hold(server, "other")
    times.script = [None] * 10 + [lambda: label(server)] + [None] * 4
    await mine.acquire()
    assert times.now == 1015


@pytest.mark.parametrize(("written", "waited"), [(35, 35), (3, 3), (None, 15)])
async def test_the_duration_that_the_holder_wrote_counts(
    mine: lease.Lease, server: ApiServer, times: Times, written: int | None, waited: int
) -> None:
    hold(server, "other", seconds=written)
    times.script = [None] * waited
    await mine.acquire()
    assert times.now == 1000 + waited


async def test_clocks_of_other_machines_mean_nothing(
    mine: lease.Lease, server: ApiServer, times: Times
) -> None:
    hold(server, "other", renewed="1999-01-01T00:00:00.000000Z")
    times.script = [None] * 15
    await mine.acquire()
    assert times.now == 1015


async def test_a_process_with_the_same_name_is_somebody_else(
    mine: lease.Lease, server: ApiServer, times: Times
) -> None:
    hold(server, "me")
    times.script = [None] * 15
    assert await mine.acquire() is True
    assert times.now == 1015


async def test_the_lease_is_renewed_with_each_period(
    mine: lease.Lease, server: ApiServer, times: Times, reported: Reported
) -> None:
    await mine.acquire()
    acquired = spec_of(server)["acquireTime"]
    times.script = [None] * 3
    await kept(mine)
    assert reported.since == [1000.0, 1002.0, 1004.0, 1006.0]
    assert spec_of(server)["acquireTime"] == acquired < spec_of(server)["renewTime"]
    assert spec_of(server)["leaseTransitions"] == 0


async def test_fields_and_labels_of_others_are_kept(
    mine: lease.Lease, server: ApiServer, times: Times
) -> None:
    hold(server, "", strategy="OldestEmulationVersion")
    await mine.acquire()
    times.script = [lambda: label(server), None]
    await kept(mine)
    assert spec_of(server)["strategy"] == "OldestEmulationVersion"
    assert server.get("Lease", "leader")["metadata"]["labels"] == {"seen": "yes"}


async def test_a_deleted_lease_is_made_anew(mine: lease.Lease, server: ApiServer, times: Times) -> None:
    await mine.acquire()
    times.script = [lambda: server.delete("Lease", "leader")]
    await kept(mine)
    assert spec_of(server)["holderIdentity"] == "me"


@pytest.mark.parametrize(
    ("holder", "told_so"), [("other", "other holds it now"), ("", "somebody has emptied it now")]
)
async def test_a_lease_that_was_taken_away_is_lost_at_once(
    mine: lease.Lease, server: ApiServer, times: Times, holder: str, told_so: str
) -> None:
    await mine.acquire()
    times.script = [lambda: hold(server, holder)]
    assert told_so in await lost(mine)
    with pytest.raises(fencing.FencedError):
        mine.check()
    assert spec_of(server)["holderIdentity"] == holder


async def test_a_lease_that_cannot_be_renewed_is_lost_at_the_deadline(
    mine: lease.Lease, server: ApiServer, times: Times, reported: Reported
) -> None:
    await mine.acquire()
    away(server)
    times.script = [None] * 9
    assert await lost(mine) == (
        "the Lease leader could not be renewed for 10 s, so another replica may lead now"
    )
    assert times.now == 1010
    assert "can be neither taken nor renewed" in reported.problems[0]


async def test_without_a_deadline_only_another_holder_is_a_loss(
    kube: client.KubeClient, server: ApiServer, times: Times, reported: Reported
) -> None:
    alone = replica(kube, times, reported, "me", lease.Timing(15, math.inf, 2))
    await alone.acquire()
    away(server)
    times.script = [None] * 20
    await kept(alone)
    assert (alone.remaining(), len(reported.problems)) == (math.inf, 20)
    server.accept()
    times.script = [None, lambda: hold(server, "other")]
    assert await lost(alone) == "the Lease leader was taken away: other holds it now"
    with pytest.raises(fencing.FencedError):
        alone.check()


async def test_a_holder_that_has_ended_for_sure_is_not_waited_for(
    kube: client.KubeClient, server: ApiServer, times: Times, reported: Reported
) -> None:
    hold(server, "dead")
    which = lease.LeaseName("addons", "leader", "me")
    mine = lease.Lease(kube, which, TIMING, reported, times, has_ended="dead".__eq__)
    assert await mine.acquire() is False
    assert spec_of(server)["holderIdentity"] == "me"


async def test_a_single_failed_renewal_is_not_a_loss(
    mine: lease.Lease, server: ApiServer, times: Times
) -> None:
    await mine.acquire()
    times.script = [lambda: away(server), None, server.accept]
    await kept(mine)
    assert mine.remaining() == 10


async def test_a_process_that_was_stopped_does_not_lead_when_it_goes_on(
    mine: lease.Lease, server: ApiServer, times: Times
) -> None:
    await mine.acquire()
    before = server.version

    def stopped() -> None:
        times.now += 60

    times.script = [stopped]
    assert "could not be renewed" in await lost(mine)
    assert server.version == before, "it writes nothing"


async def test_a_renewal_counts_from_when_it_was_sent(
    mine: lease.Lease, times: Times, server: ApiServer
) -> None:
    await mine.acquire()

    def slow(asked: Asked) -> Answer:
        times.now += 4
        return Answer(server.given.put(asked.body))

    server.on("PUT", PATH, slow)
    times.script = [None]
    with pytest.raises(EndOfScriptError):
        await mine.keep()
    assert mine.remaining() == 6


async def test_a_write_whose_answer_got_lost_is_known_again(
    mine: lease.Lease, times: Times, server: ApiServer
) -> None:
    await mine.acquire()

    def is_taken_in(asked: Asked) -> bool:
        if asked.method == "PUT":
            server.given.put(asked.body)
        return asked.method == "PUT"

    server.refuse(Answer(hang_up=True), is_taken_in)
    times.script = [None, None]
    await kept(mine)
    assert mine.remaining() == 10


async def test_of_two_replicas_one_gets_the_lease(
    kube: client.KubeClient, server: ApiServer, times: Times, reported: Reported
) -> None:
    hold(server, "")
    both = [replica(kube, times, reported, name) for name in ("a", "b")]
    times.script = [None] * 5
    ended = await asyncio.gather(*(each.acquire() for each in both), return_exceptions=True)
    assert [type(result) for result in ended].count(bool) == 1
    assert sum(each.remaining() > 0 for each in both) == 1


async def test_a_release_lets_the_next_one_in_at_once(
    mine: lease.Lease, kube: client.KubeClient, server: ApiServer, times: Times, reported: Reported
) -> None:
    await mine.acquire()
    await mine.release()
    assert (spec_of(server)["holderIdentity"], spec_of(server)["leaseDurationSeconds"]) == ("", 1)
    with pytest.raises(fencing.FencedError):
        mine.check()
    other = replica(kube, times, reported, "other")
    assert await other.acquire() is False
    assert spec_of(server)["leaseTransitions"] == 1


async def test_a_release_takes_nothing_from_another_holder(
    mine: lease.Lease, server: ApiServer, reported: Reported
) -> None:
    await mine.acquire()
    hold(server, "other")
    await mine.release()
    assert spec_of(server)["holderIdentity"] == "other"


async def test_what_was_never_held_or_is_lost_is_not_released(
    mine: lease.Lease, times: Times, server: ApiServer
) -> None:
    await mine.release()
    assert server.requests == []
    await mine.acquire()
    times.now += 10
    before = len(server.requests)
    await mine.release()
    assert len(server.requests) == before


async def test_a_release_that_fails_is_reported_and_no_error(
    mine: lease.Lease, server: ApiServer, reported: Reported
) -> None:
    await mine.acquire()
    away(server)
    await mine.release()
    assert "was not released" in reported.problems[0]


async def test_a_missing_right_is_an_error_at_the_first_try(mine: lease.Lease, server: ApiServer) -> None:
    away(server)
    with pytest.raises(api_errors.Forbidden):
        await mine.acquire()


async def test_a_right_that_is_missing_for_a_while_is_waited_for(
    mine: lease.Lease, server: ApiServer, times: Times, reported: Reported
) -> None:
    hold(server, "other", seconds=2)

    def later() -> None:
        assert mine.health.is_up, "a moment is no trouble"
        times.now += 60
        assert "has been down for 6" in (mine.health.trouble or "")
        server.accept()

    times.script = [lambda: away(server), None, later]
    assert await mine.acquire() is True
    assert len(reported.problems) == 2
    assert mine.health.is_up


async def test_pauses_differ_by_a_little(
    kube: client.KubeClient, server: ApiServer, times: Times, reported: Reported
) -> None:
    which = lease.LeaseName("addons", "leader", "me")
    times.chance = 1.0
    held = lease.Lease(kube, which, TIMING, reported, times)
    await held.acquire()
    times.script = [None]
    await kept(held)
    assert times.seconds == [pytest.approx(1.8)]
