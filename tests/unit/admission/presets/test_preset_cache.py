"""Presets in memory: events and lists that come in any order."""

import asyncio

import pytest

from addon_operator.admission.presets import preset_cache
from addon_operator.podpreset import model
from tests.unit.admission.objects import LABELS, Object, Seen, preset


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def cache(seen: Seen) -> preset_cache.PresetCache:
    return preset_cache.PresetCache(seen)


def versions(cache: preset_cache.PresetCache, namespace: str = "shop") -> dict[str, str]:
    return {each.name: each.resource_version for each in cache.match(namespace, LABELS)}


def test_a_cache_is_filled_by_the_first_list_of_everything(cache: preset_cache.PresetCache) -> None:
    cache.watched("ADDED", preset())
    cache.listed("shop", [preset()], "5")
    assert not cache.filled
    cache.listed(None, [preset()], "5")
    assert cache.filled


def test_presets_are_found_in_their_namespace_alone(cache: preset_cache.PresetCache) -> None:
    cache.watched("ADDED", preset("a"))
    cache.watched(None, preset("b", namespace="other"))
    assert versions(cache) == {"a": "1"}


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (preset(version=3), {"p": "3"}),
        (preset(version=1), {"p": "2"}),
        (preset(version=10), {"p": "10"}),
    ],
    ids=["newer", "older", "more digits"],
)
def test_the_newest_version_wins(
    cache: preset_cache.PresetCache, second: Object, expected: dict[str, str]
) -> None:
    cache.watched("ADDED", preset(version=2))
    cache.watched("MODIFIED", second)
    assert versions(cache) == expected


def test_a_late_event_does_not_bring_a_deleted_preset_back(cache: preset_cache.PresetCache) -> None:
    cache.watched("ADDED", preset(version=2))
    cache.watched("DELETED", preset(version=5))
    cache.watched("MODIFIED", preset(version=4))
    assert versions(cache) == {}


def test_a_late_deletion_does_not_remove_a_preset_that_was_created_again(
    cache: preset_cache.PresetCache,
) -> None:
    cache.watched("ADDED", preset(version=9, uid="second"))
    cache.watched("DELETED", preset(version=5, uid="first"))
    assert versions(cache) == {"p": "9"}


def test_a_preset_can_be_created_again(cache: preset_cache.PresetCache) -> None:
    cache.watched("ADDED", preset(version=2))
    cache.watched("DELETED", preset(version=5))
    cache.watched("ADDED", preset(version=6))
    assert versions(cache) == {"p": "6"}


def test_what_a_list_lacks_is_gone_although_no_event_said_so(
    cache: preset_cache.PresetCache, seen: Seen
) -> None:
    cache.watched("ADDED", preset("a", 2))
    cache.watched("ADDED", preset("b", 3))
    cache.listed(None, [preset("b", 3)], "7")
    assert versions(cache) == {"b": "3"}
    assert seen.gone == ["shop/a"]


def test_a_list_that_is_older_than_an_event_removes_nothing(cache: preset_cache.PresetCache) -> None:
    cache.watched("ADDED", preset("a", 8))
    cache.listed(None, [], "7")
    assert versions(cache) == {"a": "8"}


def test_a_list_that_is_older_than_a_deletion_brings_nothing_back(cache: preset_cache.PresetCache) -> None:
    cache.watched("ADDED", preset("a", 2))
    cache.watched("DELETED", preset("a", 8))
    cache.listed(None, [preset("a", 2)], "7")
    assert versions(cache) == {}


def test_a_list_of_one_namespace_says_nothing_of_others(cache: preset_cache.PresetCache) -> None:
    cache.watched("ADDED", preset("a", namespace="other"))
    cache.listed("shop", [], "7")
    assert versions(cache, "other") == {"a": "1"}


def test_without_comparable_versions_everything_is_taken_as_it_comes(cache: preset_cache.PresetCache) -> None:
    for version in ("x2", "x1"):
        cache.watched("MODIFIED", preset(metadata={"resourceVersion": version}))
    assert versions(cache) == {"p": "x1"}
    cache.listed(None, [], "y")
    assert versions(cache) == {}


def test_an_invalid_preset_is_ignored_and_reported(cache: preset_cache.PresetCache, seen: Seen) -> None:
    cache.watched("ADDED", preset(version=1))
    cache.watched("MODIFIED", preset(version=2, selector={}))
    assert versions(cache) == {}
    assert seen.stored == [("p", model.Preset), ("p", model.InvalidPreset)]


def test_a_known_preset_is_not_reported_again(cache: preset_cache.PresetCache, seen: Seen) -> None:
    cache.watched("ADDED", preset(version=4))
    cache.watched(None, preset(version=4))
    cache.listed(None, [preset(version=4)], "9")
    assert len(seen.stored) == 1


def test_a_preset_being_deleted_is_no_longer_held(cache: preset_cache.PresetCache) -> None:
    cache.watched("ADDED", preset(version=1))
    assert cache.holds("p")
    cache.watched("MODIFIED", preset(version=2, metadata={"deletionTimestamp": "2026-01-02T00:00:00Z"}))
    assert not cache.holds("p")
    assert versions(cache) == {}


@pytest.mark.parametrize("uids", [("first", "second")])
def test_only_the_uid_of_today_is_held(cache: preset_cache.PresetCache, uids: tuple[str, str]) -> None:
    for version, uid in enumerate(uids, 1):
        cache.watched("ADDED", preset(version=version, uid=uid))
    assert [cache.holds(uid) for uid in uids] == [False, True]


def test_everything_can_be_forgotten(cache: preset_cache.PresetCache, seen: Seen) -> None:
    cache.watched("ADDED", preset(version=5))
    cache.clear()
    assert (versions(cache), cache.holds("p"), seen.gone) == ({}, False, ["shop/p"])
    cache.watched("ADDED", preset(version=1))
    assert versions(cache) == {"p": "1"}


def test_a_preset_with_a_type_of_volume_that_is_not_allowed_is_invalid(seen: Seen) -> None:
    cache = preset_cache.PresetCache(seen, ["emptyDir"])
    mount = {"name": "v", "mountPath": "/v"}
    cache.watched(
        "ADDED", preset("host", volumes=[{"name": "v", "hostPath": {"path": "/"}}], volumeMounts=[mount])
    )
    cache.watched("ADDED", preset("empty", volumes=[{"name": "v"}], volumeMounts=[mount]))
    assert versions(cache) == {"empty": "1"}
    assert seen.stored == [("host", model.InvalidPreset), ("empty", model.Preset)]


async def test_many_presets_are_read_while_others_have_their_turns() -> None:
    cache = preset_cache.PresetCache(Seen())
    turns: list[bool] = []

    async def others() -> None:
        while not cache.filled:
            turns.append(cache.filled)
            await asyncio.sleep(0)

    presets = [preset(f"p{number}") for number in range(10 * preset_cache.AT_ONCE)]
    await asyncio.gather(others(), cache.fill(presets, "5"))
    assert len(turns) >= 10
    assert len(versions(cache)) == len(presets)


async def test_what_the_watch_tells_while_presets_are_read_is_newer() -> None:
    cache = preset_cache.PresetCache(Seen())

    async def watch() -> None:
        cache.watched("DELETED", preset("p0", version=7))
        cache.watched("DELETED", preset("p40", version=8))
        cache.watched("MODIFIED", preset("p41", version=9))

    presets = [preset(f"p{number}", version=2) for number in range(50)]
    await asyncio.gather(cache.fill(presets, "6"), watch())
    found = versions(cache)
    assert (len(found), found["p41"]) == (48, "9")
