"""Pointers as tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addon_operator.documents import json_pointers
from tests.support import rows


@rows.each(
    ("pointer", "tokens"),
    [
        ("", ()),
        ("/", ("",)),
        ("/a/b", ("a", "b")),
        ("/a~1b/c~0d", ("a/b", "c~d")),
        ("/~01", ("~1",)),
        ("/a//0", ("a", "", "0")),
    ],
)
def test_a_pointer_is_its_tokens(pointer: str, tokens: json_pointers.Tokens) -> None:
    assert json_pointers.parse(pointer) == tokens
    assert json_pointers.render(tokens) == pointer


@given(st.lists(st.text("ab/~01-")).map(tuple))
def test_any_tokens_survive_the_way_through_a_pointer(tokens: json_pointers.Tokens) -> None:
    assert json_pointers.parse(json_pointers.render(tokens)) == tokens


@rows.each("pointer", ["a", "a/b", "/~", "/~2", "/a~"])
def test_what_is_not_a_pointer_is_refused(pointer: str) -> None:
    with pytest.raises(ValueError, match="must"):
        json_pointers.parse(pointer)


@rows.each(
    ("path", "tokens"),
    [
        ("spec.containers[0].image", ("spec", "containers", "0", "image")),
        ("spec.containers.0", ("spec", "containers", "0")),
        (r"annotations.a\.b/c", ("annotations", "a.b/c")),
        ("*.key", ("*", "key")),
        ("/a~1b/0", ("a/b", "0")),
        ("whole", ("whole",)),
    ],
)
def test_a_path_with_dots_has_the_tokens_of_a_pointer(path: str, tokens: json_pointers.Tokens) -> None:
    assert json_pointers.of_path(path) == tokens


@rows.each("path", ["", ".", ".a", "a..b", "a.", "a[", "a[b]", "a]", "a[0", "a.[0]", "a[0]b"])
def test_a_path_with_a_part_that_names_no_key_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="names no key"):
        json_pointers.of_path(path)


@rows.each(
    ("token", "index"),
    [("0", True), ("10", True), ("-", True), ("01", False), ("-1", False), ("a", False), ("", False)],
)
def test_tokens_that_could_be_places_in_a_list_are_known(token: str, index: bool) -> None:
    assert json_pointers.is_index(token) is index


@rows.each(
    ("pointer", "stable"),
    [("/m/a/b", "/m/a/b"), ("/m/a/0/b", "/m/a"), ("/m/a/-", "/m/a"), ("/42/a", "/42/a"), ("/m", "/m")],
)
def test_a_place_is_stable_up_to_the_first_list(pointer: str, stable: str) -> None:
    assert json_pointers.stable_prefix(json_pointers.parse(pointer)) == json_pointers.parse(stable)


@rows.each(
    ("left", "right", "overlap"),
    [
        ("/m/a", "/m/a", True),
        ("/m/a", "/m/a/b", True),
        ("/m/a/b", "/m", True),
        ("/m/a", "/m/ab", False),
        ("/m/a", "/m/b", False),
    ],
)
def test_places_overlap_if_one_contains_the_other(left: str, right: str, overlap: bool) -> None:
    assert json_pointers.overlap(json_pointers.parse(left), json_pointers.parse(right)) is overlap
