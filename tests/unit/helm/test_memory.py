"""What the operator remembers: one Secret, which the leader alone writes."""

import asyncio
import base64
import dataclasses
import random
import zlib
from typing import Any, Final

import msgspec
import pytest
from typing_extensions import override

from addon_operator.helm import memory, places
from addon_operator.helm import remembered as shapes
from addon_operator.kernel import errors
from addon_operator.kube import api_errors, paths
from tests.support import clocks
from tests.unit.helm import fakes

WEB = places.ReleaseLocation("addons", "web")


@pytest.fixture
def api() -> fakes.SecretApi:
    return fakes.SecretApi()


async def started(api: fakes.SecretApi) -> memory.Memory:
    remembered = fakes.memory_of(api)
    await remembered.load()
    return remembered


def stored(api: fakes.SecretApi) -> dict[str, Any]:
    assert api.secret is not None
    content: dict[str, Any] = msgspec.json.decode(
        zlib.decompress(base64.b64decode(api.secret["data"]["state"]))
    )
    return content


def store(api: fakes.SecretApi, **fields: object) -> None:
    """Have the content say something else."""
    assert api.secret is not None
    packed = zlib.compress(msgspec.json.encode(stored(api) | fields))
    api.change({**api.secret["data"], "state": base64.b64encode(packed).decode()})


async def test_the_first_leader_makes_a_key_and_later_ones_keep_it(api: fakes.SecretApi) -> None:
    api.change({})
    first = await started(api)
    second = await started(api)
    assert first.digest(["a"]) == second.digest(["a"])
    assert api.writes == ["patch", "patch"]
    other = await started(fakes.SecretApi())
    assert other.digest(["a"]) != first.digest(["a"])


async def test_without_the_secret_it_is_created(api: fakes.SecretApi) -> None:
    await started(api)
    assert api.secret is not None
    assert api.secret["metadata"]["name"] == "addon-operator-state"


async def test_what_is_remembered_is_there_after_a_restart(api: fakes.SecretApi) -> None:
    before = await started(api)
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
    after = await started(api)
    assert after.of(WEB) == release
    assert (after.taken_over, after.uid("ConfigMap"), after.uid("Secret")) == (True, "one", "")
    assert after.locations == [WEB]


async def test_who_does_not_lead_reads_and_writes_nothing(api: fakes.SecretApi) -> None:
    for is_known in (False, True):
        outside = fakes.memory_of(api)
        await outside.read()
        assert outside.is_known == is_known
        await started(api)
    assert api.writes == ["create", "patch"]


async def test_a_release_of_which_nothing_is_left_is_forgotten(api: fakes.SecretApi) -> None:
    remembered = await started(api)
    remembered.change(WEB, last=1)
    remembered.change(WEB, last=0)
    assert remembered.locations == []


async def test_changes_at_the_same_time_share_a_request(api: fakes.SecretApi) -> None:
    remembered = await started(api)
    api.writes.clear()

    async def change(number: int) -> None:
        remembered.change(places.ReleaseLocation("addons", f"r{number}"), last=number)
        await remembered.write()

    await asyncio.gather(*map(change, range(1, 50)))
    assert len(api.writes) <= 2
    assert len((await started(api)).locations) == 49


async def test_without_changes_nothing_is_written(api: fakes.SecretApi) -> None:
    remembered = await started(api)
    remembered.change(WEB, last=1)
    await remembered.write()
    api.writes.clear()
    remembered.change(WEB, last=1)
    remembered.remember_uid("Secret", "")
    await remembered.write()
    assert api.writes == []


async def test_what_others_write_or_delete_meanwhile_does_not_count(api: fakes.SecretApi) -> None:
    told: list[str] = []
    remembered = memory.Memory(api, fakes.NAMESPACE, "addon-operator", told.append)
    await remembered.load()
    digest = remembered.digest(["a"])
    assert api.secret is not None
    older = dict(api.secret["data"])
    for foreign in ({}, {"key": "", "state": "x"}, older, None):
        remembered.change(WEB, last=remembered.of(WEB).last + 1)
        if foreign is None:
            api.secret = None
        else:
            api.change(foreign)
        await remembered.write()
        again = fakes.memory_of(api)
        await again.read()
        assert again.of(WEB) == remembered.of(WEB)
        assert again.digest(["a"]) == digest
    assert len(told) == 4


async def test_labels_that_a_chart_changes_are_no_reason_to_warn(api: fakes.SecretApi) -> None:
    told: list[str] = []
    remembered = memory.Memory(api, fakes.NAMESPACE, "addon-operator", told.append)
    await remembered.load()
    assert api.secret is not None
    api.change(api.secret["data"])
    remembered.change(WEB, last=1)
    await remembered.write()
    assert told == []


async def test_an_operator_that_began_earlier_does_not_write_any_more(api: fakes.SecretApi) -> None:
    earlier = await started(api)
    later = await started(api)
    later.change(WEB, last=2)
    await later.write()
    earlier.change(WEB, last=1)
    with pytest.raises(memory.MemoryTakenError, match="another operator"):
        await earlier.write()
    assert (await started(api)).of(WEB).last == 2


async def test_what_a_newer_version_wrote_beside_it_stays(api: fakes.SecretApi) -> None:
    before = await started(api)
    before.change(WEB, last=1)
    await before.write()
    store(api, later={"a": 1}, releases={"addons/web": {"last": 1, "colour": "red"}})
    after = await started(api)
    after.change(WEB, last=2)
    await after.write()
    assert stored(api)["later"] == {"a": 1}
    assert stored(api)["releases"]["addons/web"] == {"last": 2, "colour": "red"}


async def test_a_format_of_a_newer_version_is_refused(api: fakes.SecretApi) -> None:
    await started(api)
    store(api, version=shapes.FORMAT + 1)
    with pytest.raises(errors.ConfigurationError, match="newer version of the operator"):
        await started(api)


@pytest.mark.parametrize("state", ["x", "", base64.b64encode(zlib.compress(b"[]")).decode()])
async def test_content_that_cannot_be_read_is_a_first_start_with_the_same_key(
    api: fakes.SecretApi, state: str
) -> None:
    before = await started(api)
    before.has_taken_over()
    await before.write()
    assert api.secret is not None
    api.change({**api.secret["data"], "state": state})
    after = await started(api)
    assert not after.taken_over
    assert after.digest(["a"]) == before.digest(["a"])


FORBIDDEN: Final = api_errors.Forbidden(paths.target("GET", "/x"), 403, "Forbidden", "no")


async def test_the_right_to_read_it_is_waited_for_and_named(
    api: fakes.SecretApi, capsys: pytest.CaptureFixture[str]
) -> None:
    before = await started(api)
    api.unread = [FORBIDDEN, FORBIDDEN]
    clock = clocks.Clock()
    remembered = memory.Memory(api, "addons", "addon-operator", print, clock)
    loading = asyncio.create_task(remembered.load())
    for _ in range(2):
        await clocks.settle()
        assert not loading.done()
        await clock.advance(60)
    await loading
    assert remembered.digest(["a"]) == before.digest(["a"])
    assert capsys.readouterr().out.count("get, update and patch this Secret") == 1


async def test_what_cannot_be_written_at_a_start_is_written_before_the_first_call(
    api: fakes.SecretApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.refusals = [FORBIDDEN]
    remembered = await started(api)
    assert "cannot be saved, and is tried again" in capsys.readouterr().out
    remembered.change(WEB, last=1)
    await remembered.write()
    assert stored(api)["releases"]["addons/web"]["last"] == 1
    assert remembered.digest(["a"]) == (await started(api)).digest(["a"])


async def test_more_than_a_secret_takes_is_an_error_that_says_what_to_do(api: fakes.SecretApi) -> None:
    remembered = await started(api)
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


async def test_changes_are_written_soon_and_tried_again(api: fakes.SecretApi) -> None:
    told: list[str] = []
    pauses = Pauses()
    remembered = memory.Memory(api, fakes.NAMESPACE, "addon-operator", told.append, pauses)
    await remembered.load()
    refusal = api_errors.Unreachable("nobody answers")
    api.refusals = [refusal, refusal]
    remembered.change(WEB, last=1)
    keeping = asyncio.create_task(remembered.keep())
    await clocks.settle()
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    assert pauses.slept == [1.0, 2.0, 4.0]
    assert "releases" in stored(api)
    assert len(told) == 1


class Interrupting(fakes.SecretApi):
    """Has somebody else write just before each write."""

    @override
    async def patch(self, *args: Any, **query: Any) -> dict[str, Any]:
        self.change({})
        return await super().patch(*args, **query)


async def test_what_something_else_changes_all_the_time_is_given_up_on() -> None:
    api = Interrupting()
    remembered = await started(api)
    remembered.change(WEB, last=1)
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
