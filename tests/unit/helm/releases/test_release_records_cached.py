"""What is known of releases, while lists and changes overlap."""

import asyncio

import pytest
from typing_extensions import override

from addon_operator.helm import messages
from addon_operator.helm.releases import record_lists, release_records
from addon_operator.kube.client import client
from tests.support import clocks
from tests.unit.helm import fakes


class SlowApi(fakes.FakeApi):
    """Answers a list of everything with what was true when it was asked, but only when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = asyncio.Event()

    @override
    async def list_all(
        self,
        path: str,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        metadata_only: bool = False,
        page_size: int = client.PAGE_SIZE,
    ) -> client.ObjectList:
        listed = await super().list_all(path, label_selector=label_selector, metadata_only=metadata_only)
        if "name=" not in str(label_selector):
            await self.answer.wait()
        return listed


@pytest.fixture
def api() -> SlowApi:
    return SlowApi()


@pytest.fixture
def observed(api: SlowApi) -> release_records.ReleaseRecords:
    return fakes.records(api)


async def begin_list(observed: release_records.ReleaseRecords) -> asyncio.Task[object]:
    task: asyncio.Task[object] = asyncio.create_task(observed.read_all())
    await clocks.settle()
    return task


async def number(observed: release_records.ReleaseRecords, name: str) -> int | None:
    record = await observed.get(name)
    return record.revision.number if record else None


async def test_before_the_first_list_each_release_is_read(
    api: SlowApi, observed: release_records.ReleaseRecords
) -> None:
    api.put("web", 1, "deployed", {})
    assert await number(observed, "web") == 1
    assert await number(observed, "web") == 1
    assert len(api.lists) == 2


async def test_after_the_first_list_nothing_is_read(
    api: SlowApi, observed: release_records.ReleaseRecords
) -> None:
    api.put("web", 1, "deployed", {})
    api.answer.set()
    await observed.read_all()
    assert (await number(observed, "web"), await number(observed, "other")) == (1, None)
    assert len(api.lists) == 1


async def test_a_list_does_not_undo_what_was_learnt_while_it_was_under_way(
    api: SlowApi, observed: release_records.ReleaseRecords
) -> None:
    api.put("web", 1, "deployed", {})
    api.put("gone", 1, "deployed", {})
    listing = await begin_list(observed)
    api.put("web", 2, "deployed", {})
    api.remove("gone")
    await observed.read("web")
    await observed.read("gone")
    api.answer.set()
    await listing
    assert (await number(observed, "web"), await number(observed, "gone")) == (2, None)
    assert len(api.lists) == 3, "nothing was read again"


async def test_a_doubt_that_came_up_while_a_list_was_under_way_stays(
    api: SlowApi, observed: release_records.ReleaseRecords
) -> None:
    api.put("web", 1, "deployed", {})
    listing = await begin_list(observed)
    observed.doubt("web")
    api.put("web", 2, "failed", {})
    api.answer.set()
    await listing
    assert await number(observed, "web") == 2


async def test_a_later_list_ends_a_doubt(api: SlowApi, observed: release_records.ReleaseRecords) -> None:
    observed.doubt("web")
    api.answer.set()
    await observed.read_all()
    await number(observed, "web")
    assert api.lists == [record_lists.OWNED_BY_HELM]


@pytest.mark.parametrize("status", ["failed", "superseded"])
async def test_what_the_last_revision_failed_to_change_is_reported_with_the_deployed_one(
    api: SlowApi, observed: release_records.ReleaseRecords, status: str
) -> None:
    api.put("web", 1, "deployed", {}, "kind: X\n")
    said = (
        'Upgrade "web" failed: cannot patch "a" with kind Job: Job.batch "a" is invalid: field is immutable'
    )
    api.put("web", 2, status, {}, description=said)
    deployed = await observed.deployed("web")
    assert deployed is not None
    named = [messages.ObjectName("Job", "a", None)]
    assert deployed.revision == 1
    assert list(deployed.unchangeable) == (named if status == "failed" else [])


async def test_a_failed_revision_that_cannot_be_read_does_not_hide_the_deployed_one(
    api: SlowApi, observed: release_records.ReleaseRecords
) -> None:
    api.put("web", 1, "deployed", {}, "kind: X\n")
    api.put("web", 2, "failed", {})
    api.objects["sh.helm.release.v1.web.v2"]["data"] = {"release": "broken"}
    deployed = await observed.deployed("web")
    assert deployed is not None
    assert (deployed.manifest, deployed.unchangeable) == ("kind: X\n", frozenset())
