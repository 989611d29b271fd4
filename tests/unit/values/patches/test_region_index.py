"""Finding the latest entry that concerns a place."""

from hypothesis import given
from hypothesis import strategies as st

from addon_operator.documents import json_pointers
from addon_operator.values.patches import region_index
from tests.support import rows

_REGIONS = st.lists(st.sampled_from("ab"), max_size=3).map(tuple)


def index_of(*entries: str) -> region_index.RegionIndex[str]:
    index: region_index.RegionIndex[str] = region_index.RegionIndex()
    for entry in entries:
        index.add(entry, [json_pointers.parse(entry)])
    return index


@rows.each(
    ("region", "entry"),
    [("/m/a", "/m/a"), ("/m/a/x/y", "/m/a"), ("/m", "/m/b"), ("/m/c", None), ("/other", None), ("", "/m/b")],
    ids=["same place", "something around it", "something in it", "sibling", "elsewhere", "everything"],
)
def test_the_latest_entry_at_around_or_in_a_place_is_found(region: str, entry: str | None) -> None:
    found = index_of("/m/a/x", "/m/a", "/m/a/x", "/m/a", "/m/b").latest([json_pointers.parse(region)])
    assert (None if found is None else found[1]) == entry


def test_a_discarded_entry_is_found_no_more() -> None:
    index = index_of("/m/a", "/m/a/b")
    found = index.latest([("m", "a")])
    assert found is not None
    index.discard(found[0])
    assert list(index) == ["/m/a"]
    assert index.latest([("m", "a", "b")]) == (0, "/m/a")


def test_an_entry_can_come_to_concern_more_places() -> None:
    index = index_of("/m/a")
    index.register(0, [("m", "b"), ("m", "a")])
    assert index.latest([("m", "b")]) == (0, "/m/a")
    index.discard(0)
    assert index.latest([("m",)]) is None


@given(st.lists(_REGIONS, max_size=8), st.sets(st.integers(0, 7)), _REGIONS)
def test_the_index_agrees_with_a_search_through_all_entries(
    regions: list[json_pointers.Tokens], discarded: set[int], wanted: json_pointers.Tokens
) -> None:
    index: region_index.RegionIndex[int] = region_index.RegionIndex()
    for number, region in enumerate(regions):
        index.add(number, [region])
    kept = [number for number in range(len(regions)) if number not in discarded]
    for number in discarded.intersection(range(len(regions))):
        index.discard(number)
    expected = max(
        (number for number in kept if json_pointers.overlap(regions[number], wanted)), default=None
    )
    found = index.latest([wanted])
    assert (None if found is None else found[1]) == expected
