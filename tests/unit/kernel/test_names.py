"""Module names, values keys and the way between them."""

import pytest

from addon_operator.kernel import names
from tests.support import rows


@rows.each(
    ("name", "key"),
    [("some-module", "someModule"), ("nginx", "nginx"), ("a-b-c", "aBC"), ("cert-manager2", "certManager2")],
)
def test_a_kebab_name_and_its_camel_key_round_trip(name: str, key: str) -> None:
    assert names.values_key(names.ModuleName(name)) == key
    assert names.module_name(key) == name


def test_flags_are_the_key_with_a_suffix() -> None:
    module = names.ModuleName("ingress-nginx")
    assert names.enabled_key(module) == "ingressNginxEnabled"
    assert names.maintenance_key(module) == "ingressNginxMaintenance"


@rows.each(
    ("directory", "order", "name"),
    [("001-some-module", 1, "some-module"), ("some-module", None, "some-module"), ("42-x", 42, "x")],
)
def test_the_directory_name_gives_order_and_name(directory: str, order: int | None, name: str) -> None:
    assert names.parse_module_directory(directory) == (order, name)


@rows.each(
    "directory", ["SomeModule", "some--module", "some-1", "some_Module", "001-Upper", "a-", "-a", "global"]
)
def test_a_name_that_does_not_round_trip_is_refused_and_the_directory_named(directory: str) -> None:
    with pytest.raises(names.ModuleNameError, match=directory):
        names.parse_module_directory(directory)


def test_a_name_that_is_nearly_one_gets_the_name_that_is_meant() -> None:
    with pytest.raises(names.ModuleNameError, match=r"rename it to '010-hello-world': lower-case"):
        names.parse_module_directory("010-Hello_World")


def test_a_name_with_a_number_as_a_word_gets_one_with_the_same_values_key() -> None:
    with pytest.raises(names.ModuleNameError, match=r"rename it to '000-with-values1': lower-case"):
        names.parse_module_directory("000-with-values-1")


@rows.each(
    ("name", "meant"),
    [
        ("nmae", "name"), ("replicaCoutn", "replicaCount"), ("Replicacount", "replicaCount"),
        ("imag", "image"), ("imagee", "image"), ("imgge", "image"),
        ("minAvailable", None), ("tga", None), ("igmea", None), ("", None),
    ],
)  # fmt: skip
def test_a_slip_of_the_keyboard_is_one_letter_or_two_swapped_ones(name: str, meant: str | None) -> None:
    assert names.misspelt(name, ["tag", "name", "replicaCount", "image", "maxUnavailable"]) == meant


def test_long_names_are_like_no_other() -> None:
    assert names.nearest("a" * 201, ["a" * 200]) is None
    assert names.nearest("a" * 200, ["a" * 201, "a" * 199]) == "a" * 199


def test_a_name_too_long_for_a_release_is_refused() -> None:
    with pytest.raises(names.ModuleNameError, match="53"):
        names.parse_module_directory("a" * 54)


@rows.each(
    ("most", "text"), [(3, "a, b, c"), (4, "a, b, c"), (2, "a, b and 1 more")], ids=["all", "fewer", "more"]
)
def test_a_long_list_is_cut_and_the_rest_counted(most: int, text: str) -> None:
    assert names.listed(["a", "b", "c"], most) == text


def test_a_directory_whose_name_has_a_new_line_has_a_number_all_the_same() -> None:
    assert names.directory_order("010-x\ny") == 10
    with pytest.raises(names.ModuleNameError):
        names.parse_module_directory("010-x\ny")
