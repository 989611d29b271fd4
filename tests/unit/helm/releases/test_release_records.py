"""Helm's records of its releases."""

import base64
import gzip
import json
import tracemalloc

import pytest

from addon_operator.helm import helm_errors
from addon_operator.helm.releases import release_records
from addon_operator.modules import release
from tests.unit.helm import fakes


@pytest.fixture
def api() -> fakes.FakeApi:
    return fakes.FakeApi()


@pytest.fixture
def records(api: fakes.FakeApi) -> release_records.ReleaseRecords:
    return fakes.records(api)


async def read(records: release_records.ReleaseRecords, name: str) -> release_records.Record:
    found = await records.read(name)
    assert found is not None
    return found


async def test_the_highest_number_is_the_last_revision_whatever_the_order(
    api: fakes.FakeApi, records: release_records.ReleaseRecords
) -> None:
    for number in (9, 11, 10):
        api.put("web", number, "superseded", {})
    found = await records.read_all()
    assert {name: record.revision.number for name, record in found.items()} == {"web": 11}
    assert found["web"].object_name == "sh.helm.release.v1.web.v11"


async def test_one_release_is_asked_for_by_its_label(
    api: fakes.FakeApi, records: release_records.ReleaseRecords
) -> None:
    api.put("web", 1, "deployed", {"x": "y"})
    api.put("dns", 1, "deployed", {})
    assert (await read(records, "web")).revision.labels["x"] == "y"
    assert api.lists == ["owner=helm,name=web"]
    assert await records.read("other") is None


@pytest.mark.parametrize(
    "labels",
    [
        {},
        {"name": "web"},
        {"name": "web", "version": "x"},
        {"name": "web", "version": str(2**63)},
        {"version": "1"},
    ],
)
async def test_an_object_that_only_looks_like_helms_is_skipped(
    api: fakes.FakeApi, records: release_records.ReleaseRecords, labels: dict[str, str]
) -> None:
    metadata = {"name": "x", "labels": {"owner": "helm"} | labels, "resourceVersion": "1"}
    api.objects["x"] = {"metadata": metadata}
    assert await records.read_all() == {}


async def test_labels_are_added_to_a_record_that_nobody_touched(
    api: fakes.FakeApi, records: release_records.ReleaseRecords
) -> None:
    api.put("web", 1, "deployed", {"a": "1"})
    changed = await records.add_labels(await read(records, "web"), {"b": "2"})
    assert changed is not None
    assert changed.revision.labels["b"] == "2"
    assert await records.add_labels(changed, {"c": "3"}) is not None


async def test_a_release_holds_what_it_was_made_with_and_where_hooks_wrote_to(
    api: fakes.FakeApi, records: release_records.ReleaseRecords
) -> None:
    labels = {"createdAt": "10", "modifiedAt": "12"}
    api.put("web", 1, "deployed", labels, values={"web": {"key": "hunter2"}})
    rendered = release.Rendered(*map(release.Checksum, "abc"))
    await records.save(await read(records, "web"), rendered, '{"section": ["/web/key"]}')
    found = await records.revision_inputs("web")
    assert found is not None
    assert (found.revision, found.made_at, found.by_go_operator) == (1, 12, False)
    assert (found.values, found.hook_places) == ({"web": {"key": "hunter2"}}, '{"section": ["/web/key"]}')
    assert "hunter2" not in repr(found)
    assert await records.revision_inputs("other") is None


async def test_places_that_helm_copies_to_a_revision_made_by_hand_do_not_count(
    api: fakes.FakeApi, records: release_records.ReleaseRecords
) -> None:
    rendered = release.Rendered(*map(release.Checksum, "abc"))
    api.put("web", 1, "deployed", {}, values={"web": {"key": 1}})
    await records.save(await read(records, "web"), rendered, "some places")
    copied = api.labels("web", 1)
    for labels, places in ((rendered.labels(2), "some places"), ({}, None)):
        api.put("web", 2, "deployed", copied | labels, values={"web": {"key": 2}})
        await records.read("web")
        found = await records.revision_inputs("web")
        assert found is not None
        assert (found.revision, found.hook_places) == (2, places)


async def test_after_a_failed_upgrade_the_deployed_revision_counts(
    api: fakes.FakeApi, records: release_records.ReleaseRecords
) -> None:
    api.put("web", 1, "deployed", {"moduleChecksum": "x"}, values={"web": {"a": 1}})
    api.put("web", 2, "failed", {}, values={"web": {"a": 2}})
    found = await records.revision_inputs("web")
    assert found is not None
    assert (found.revision, found.values, found.by_go_operator) == (1, {"web": {"a": 1}}, True)


async def test_a_record_that_changed_meanwhile_is_left_alone(
    api: fakes.FakeApi, records: release_records.ReleaseRecords
) -> None:
    api.put("web", 1, "pending-upgrade", {})
    before = await read(records, "web")
    api.put("web", 1, "deployed", {})
    assert await records.add_labels(before, {"b": "2"}) is None
    await records.drop(before)
    assert (await read(records, "web")).revision.status == "deployed"


async def test_a_dropped_record_makes_the_one_before_it_the_last(
    api: fakes.FakeApi, records: release_records.ReleaseRecords
) -> None:
    api.put("web", 1, "deployed", {})
    api.put("web", 2, "pending-upgrade", {})
    stuck = await read(records, "web")
    await records.drop(stuck)
    await records.drop(stuck)
    assert (await read(records, "web")).revision.number == 1


async def test_the_manifest_is_decoded(api: fakes.FakeApi, records: release_records.ReleaseRecords) -> None:
    api.put("web", 1, "deployed", {}, "kind: X\n")
    assert await records.manifest(await read(records, "web")) == "kind: X\n"


async def test_a_release_without_any_object_has_an_empty_manifest(
    api: fakes.FakeApi, records: release_records.ReleaseRecords
) -> None:
    api.put("web", 1, "deployed", {}, "")
    assert await records.manifest(await read(records, "web")) == ""


@pytest.mark.parametrize(
    "data",
    [{}, None, {"release": "%%%"}, {"release": "YWJj"}, {"release": "SDRzSQ=="},
     {"release": fakes.storage_text("x")[:40]}, {"release": "VzEwPQ=="}],
    ids=["nothing", "no data", "no base64", "no JSON", "no gzip", "cut off", "no object"],
)  # fmt: skip
async def test_a_broken_record_is_reported_by_name(
    api: fakes.FakeApi, records: release_records.ReleaseRecords, data: dict[str, str] | None
) -> None:
    api.put("web", 1, "deployed", {})
    api.objects["sh.helm.release.v1.web.v1"]["data"] = data
    with pytest.raises(
        helm_errors.ReleaseRecordError, match=r"record addons/sh\.helm\.release\.v1\.web\.v1 of release web"
    ):
        await records.manifest(await read(records, "web"))


async def test_the_deployed_revision_is_found_below_failed_ones(
    api: fakes.FakeApi, records: release_records.ReleaseRecords
) -> None:
    for number, status in enumerate(("superseded", "deployed", "failed"), start=1):
        api.put("web", number, status, {})
    api.put("new", 1, "failed", {})
    found = await records.read_deployed("web")
    assert found is not None
    assert [record.revision.number for record in found] == [2, 3]
    assert await records.read_deployed("new") is None
    assert await records.read_deployed("none") is None


def stored(content: bytes) -> str:
    return base64.b64encode(base64.b64encode(content)).decode()


@pytest.mark.slow
async def test_a_record_that_unpacks_to_more_than_a_release_can_be_is_refused(
    api: fakes.FakeApi, records: release_records.ReleaseRecords
) -> None:
    api.put("web", 1, "deployed", {})
    packed = gzip.compress(b" " * (65 * 1024 * 1024), compresslevel=1)
    api.objects["sh.helm.release.v1.web.v1"]["data"]["release"] = stored(packed)
    tracemalloc.start()
    with pytest.raises(helm_errors.ReleaseRecordError, match=r"web\.v1 .* cannot be decoded"):
        await records.content(await read(records, "web"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200 * 1024 * 1024


async def test_what_helm_tells_of_a_revision_is_read(
    api: fakes.FakeApi, records: release_records.ReleaseRecords
) -> None:
    api.put("web", 1, "failed", {})
    told = {"apply_method": "ssa", "info": {"description": "Upgrade failed"}}
    api.objects["sh.helm.release.v1.web.v1"]["data"]["release"] = stored(json.dumps(told).encode())
    content = await records.content(await read(records, "web"))
    assert (content.manifest, content.is_server_side, content.description) == ("", True, "Upgrade failed")
