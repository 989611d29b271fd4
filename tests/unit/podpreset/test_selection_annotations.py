"""The annotations of PodPresets on pods."""

import re

from addon_operator.podpreset import selection
from tests.support import rows

VALID = re.compile(r"podpreset\.admission\.kubernetes\.io/[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")


@rows.each("name", ["p", "allow-database", "exclude", "a.b", "x" * 53])
def test_a_name_that_fits_is_used_as_it_is(name: str) -> None:
    assert selection.applied_key(name) == f"podpreset.admission.kubernetes.io/podpreset-{name}"


@rows.each("name", ["x" * 54, "x" * 253, "a" * 41 + "." + "b" * 60, "a" * 41 + "-.-" + "b" * 60])
def test_a_long_name_is_cut_and_still_a_valid_key(name: str) -> None:
    key = selection.applied_key(name)
    assert VALID.fullmatch(key)
    assert key.startswith(f"podpreset.admission.kubernetes.io/podpreset-{name[:40]}")


def test_long_names_that_begin_alike_have_different_keys() -> None:
    assert selection.applied_key("x" * 100 + "a") != selection.applied_key("x" * 100 + "b")


def test_the_key_of_a_long_name_never_changes() -> None:
    assert selection.applied_key("x" * 60) == (
        "podpreset.admission.kubernetes.io/podpreset-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-42f2d97335"
    )


def test_the_opt_out_cannot_be_the_key_of_a_preset() -> None:
    assert selection.applied_key("exclude") != selection.EXCLUDE
