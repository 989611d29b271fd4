"""What the operator remembers: one Secret, which the leader alone writes."""

import asyncio
import base64
import dataclasses
import random
import zlib
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from addon_operator.helm import memory, places
from addon_operator.helm import remembered as shapes
from addon_operator.kernel import errors
from tests.support import clocks
from tests.support.api_server import Answer, ApiServer, an_object, client_of
from tests.unit.helm import fakes

WEB = places.ReleaseLocation("addons", "web")


async def started(server: ApiServer) -> memory.Memory:
    remembered = fakes.memory_of(server)
    await remembered.load()
    return remembered


def data_of(server: ApiServer) -> dict[str, str]:
    data: dict[str, str] = server.get("Secret", fakes.MEMORY)["data"]
    return data


def change(server: ApiServer, data: Mapping[str, str]) -> None:
    """Write it as somebody else."""
    server.put(an_object("Secret", fakes.MEMORY, data=dict(data)))


def methods(server: ApiServer) -> list[str]:
    return [asked.method for asked in server.asked if asked.is_write]


def stored(server: ApiServer) -> dict[str, Any]:
    content: dict[str, Any] = msgspec.json.decode(zlib.decompress(base64.b64decode(data_of(server)["state"])))
    return content


def store(server: ApiServer, **fields: object) -> None:
    """Have the content say something else."""
    packed = zlib.compress(msgspec.json.encode(stored(server) | fields))
    change(server, {**data_of(server), "state": base64.b64encode(packed).decode()})


async def test_the_first_leader_makes_a_key_and_later_ones_keep_it(server: ApiServer) -> None:
    change(server, {})
    first = await started(server)
    second = await started(server)
    assert first.digest(["a"]) == second.digest(["a"])
    assert methods(server) == ["PATCH", "PATCH"]
    other = await started(ApiServer())
    assert other.digest(["a"]) != first.digest(["a"])


async def test_without_the_secret_it_is_created(server: ApiServer) -> None:
    await started(server)
    assert server.names("Secret") == ["addon-operator-state"]


async def test_what_is_remembered_is_there_after_a_restart(server: ApiServer) -> None:
    before = await started(server)
    before.has_taken_over()
    before.remember_uid("ConfigMap", "one")
    claim = shapes.RememberedObject(api_version="v1", kind="PersistentVolumeClaim", name="data", since=3.5)
    job = shapes.RememberedObject(api_version="batch/v1", kind="Job", name="setup", uid="x")
    release = shapes.RememberedRelease(
        last=7,
        deployed=6,
        call=shapes.CallUnderWay(verb="upgrade", number=8),
        removal=shapes.Removal(data="delete", confirm=True),
        adopted=(claim,),
        kept=(claim,),
        ended=(job,),
    )
    before.put(WEB, release)
    await before.write()
    after = await started(server)
    assert after.of(WEB) == release
    assert (after.taken_over, after.uid("ConfigMap"), after.uid("Secret")) == (True, "one", "")
    assert after.locations == [WEB]


async def test_who_does_not_lead_reads_and_writes_nothing(server: ApiServer) -> None:
    for is_known in (False, True):
        outside = fakes.memory_of(server)
        await outside.read()
        assert outside.is_known == is_known
        await started(server)
    assert methods(server) == ["POST", "PATCH"]


async def test_a_release_of_which_nothing_is_left_is_forgotten(server: ApiServer) -> None:
    remembered = await started(server)
    remembered.change(WEB, last=1)
    remembered.change(WEB, last=0)
    assert remembered.locations == []


async def test_changes_at_the_same_time_share_a_request(server: ApiServer) -> None:
    remembered = await started(server)
    server.asked.clear()

    async def change(number: int) -> None:
        remembered.change(places.ReleaseLocation("addons", f"r{number}"), last=number)
        await remembered.write()

    await asyncio.gather(*map(change, range(1, 50)))
    assert len(server.writes) <= 2
    assert len((await started(server)).locations) == 49


async def test_without_changes_nothing_is_written(server: ApiServer) -> None:
    remembered = await started(server)
    remembered.change(WEB, last=1)
    await remembered.write()
    server.asked.clear()
    remembered.change(WEB, last=1)
    remembered.remember_uid("Secret", "")
    await remembered.write()
    assert server.writes == []


async def test_what_others_write_or_delete_meanwhile_does_not_count(server: ApiServer) -> None:
    told: list[str] = []
    remembered = memory.Memory(client_of(server), fakes.NAMESPACE, "addon-operator", told.append)
    await remembered.load()
    digest = remembered.digest(["a"])
    older = dict(data_of(server))
    for foreign in ({}, {"key": "", "state": "x"}, older, None):
        remembered.change(WEB, last=remembered.of(WEB).last + 1)
        if foreign is None:
            server.delete("Secret", fakes.MEMORY)
        else:
            change(server, foreign)
        await remembered.write()
        again = fakes.memory_of(server)
        await again.read()
        assert again.of(WEB) == remembered.of(WEB)
        assert again.digest(["a"]) == digest
    assert len(told) == 4


async def test_labels_that_a_chart_changes_are_no_reason_to_warn(server: ApiServer) -> None:
    told: list[str] = []
    remembered = memory.Memory(client_of(server), fakes.NAMESPACE, "addon-operator", told.append)
    await remembered.load()
    change(server, data_of(server))
    remembered.change(WEB, last=1)
    await remembered.write()
    assert told == []


async def test_an_operator_that_began_earlier_does_not_write_any_more(server: ApiServer) -> None:
    earlier = await started(server)
    later = await started(server)
    later.change(WEB, last=2)
    await later.write()
    earlier.change(WEB, last=1)
    with pytest.raises(memory.MemoryTakenError, match="another operator"):
        await earlier.write()
    assert (await started(server)).of(WEB).last == 2


async def test_what_a_newer_version_wrote_beside_it_stays(server: ApiServer) -> None:
    before = await started(server)
    before.change(WEB, last=1)
    await before.write()
    store(server, later={"a": 1}, releases={"addons/web": {"last": 1, "colour": "red"}})
    after = await started(server)
    after.change(WEB, last=2)
    await after.write()
    assert stored(server)["later"] == {"a": 1}
    assert stored(server)["releases"]["addons/web"] == {"last": 2, "colour": "red"}


async def test_a_format_of_a_newer_version_is_refused(server: ApiServer) -> None:
    await started(server)
    store(server, version=shapes.FORMAT + 1)
    with pytest.raises(errors.ConfigurationError, match="newer version of the operator"):
        await started(server)


@pytest.mark.parametrize("state", ["x", "", base64.b64encode(zlib.compress(b"[]")).decode()])
async def test_content_that_cannot_be_read_is_a_first_start_with_the_same_key(
    server: ApiServer, state: str
) -> None:
    before = await started(server)
    before.has_taken_over()
    await before.write()
    change(server, {**data_of(server), "state": state})
    after = await started(server)
    assert not after.taken_over
    assert after.digest(["a"]) == before.digest(["a"])


async def test_the_right_to_read_it_is_waited_for_and_named(
    server: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    before = await started(server)
    server.refuse(403, lambda asked: asked.method == "GET", times=2)
    clock = clocks.Clock()
    remembered = memory.Memory(client_of(server), "addons", "addon-operator", print, clock)
    loading = asyncio.create_task(remembered.load())
    for _ in range(2):
        await clocks.settle()
        assert not loading.done()
        await clock.advance(60)
    await loading
    assert remembered.digest(["a"]) == before.digest(["a"])
    assert capsys.readouterr().out.count("get, update and patch this Secret") == 1


async def test_what_cannot_be_written_at_a_start_is_written_before_the_first_call(
    server: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.refuse(403, lambda asked: asked.is_write)
    remembered = await started(server)
    assert "cannot be saved, and is tried again" in capsys.readouterr().out
    remembered.change(WEB, last=1)
    await remembered.write()
    assert stored(server)["releases"]["addons/web"]["last"] == 1
    assert remembered.digest(["a"]) == (await started(server)).digest(["a"])


async def test_more_than_a_secret_takes_is_an_error_that_says_what_to_do(server: ApiServer) -> None:
    remembered = await started(server)
    dice = random.Random(1)
    for number in range(20):
        place = places.ReleaseLocation("addons", str(number))
        remembered.put(place, shapes.RememberedRelease(digests=(dice.randbytes(100_000).hex(),)))
    with pytest.raises(errors.AddonOperatorError, match="run a second operator"):
        await remembered.write()


@dataclasses.dataclass
class Pauses:
    """Time that stands still; a sleep gives the others a turn."""

    slept: list[float] = dataclasses.field(default_factory=list)

    def monotonic(self) -> float:
        return 0.0

    def time(self) -> float:
        return 0.0

    def jitter(self) -> float:
        return 0.5

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


async def test_changes_are_written_soon_and_tried_again(server: ApiServer) -> None:
    told: list[str] = []
    pauses = Pauses()
    remembered = memory.Memory(client_of(server), fakes.NAMESPACE, "addon-operator", told.append, pauses)
    await remembered.load()
    server.refuse(Answer(hang_up=True), lambda asked: asked.is_write, times=2)
    remembered.change(WEB, last=1)
    keeping = asyncio.create_task(remembered.keep())
    await clocks.settle()
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    assert pauses.slept == [1.0, 2.0, 4.0]
    assert "releases" in stored(server)
    assert len(told) == 1


async def test_what_something_else_changes_all_the_time_is_given_up_on(server: ApiServer) -> None:
    remembered = await started(server)
    remembered.change(WEB, last=1)
    server.refuse(409, lambda asked: asked.is_write, times=100)
    with pytest.raises(errors.AddonOperatorError, match="something else changes it all the time"):
        await remembered.write()


def test_digests_fit_into_labels_and_tell_all_texts_apart() -> None:
    remembered = fakes.memory_of()
    assert remembered.digest(["a"]) == ""
    asyncio.run(remembered.load())
    texts = [["ab"], ["a", "b"], ["", "ab"], ["ab", ""], ["a", "b", ""], ["\udcff"], []]
    digests = {remembered.digest(each) for each in texts}
    assert len(digests) == len(texts)
    assert all(len(each) < 63 and each.isalnum() for each in digests)
