"""Ranges of versions of Kubernetes, as Helm reads them."""

import pytest

from addon_operator.kernel import version_ranges
from tests.support import rows


@rows.each(
    ("text", "inside", "outside"),
    [
        (">= 1.30", "1.30.0 1.36.3", "1.29.9"),
        (">1.30", "1.31.0", "1.30.4 1.30.0"),
        ("<=1.31", "1.31.9 1.30.0", "1.32.0"),
        ("=<1.31.2 => 1.30", "1.31.2 1.30.0", "1.31.3 1.29.0"),
        (">=1.29 <1.34", "1.29.0 1.33.9", "1.34.0 1.28.9"),
        (">=1.29, <1.34", "1.29.0 1.33.9", "1.34.0 1.28.9"),
        (">=1.29.0-0,<1.34.0-0", "1.29.0 1.33.9", "1.34.0"),
        (">= 1.29-0", "1.29.0", "1.28.9"),
        ("^1.30", "1.30.0 1.99.0", "1.29.0 2.0.0"),
        ("^v1.30.2", "1.30.2", "1.30.1"),
        ("~1.31", "1.31.9", "1.32.0 1.30.0"),
        ("~> 1.31.4", "1.31.9", "1.31.3 1.32.0"),
        ("1.30.x", "1.30.7", "1.31.0"),
        ("1.30.*", "1.30.7", "1.31.0"),
        ("= 1.30.7", "1.30.7", "1.30.8"),
        ("1.30", "1.30.7", "1.31.0"),
        ("1.29 || ^1.31", "1.29.3 1.33.0", "1.30.0"),
        (">=1.29 !=1.30 <1.40", "1.29.3 1.31.0", "1.30.4 1.40.0"),
        ("!=1.30.4", "1.30.5", "1.30.4"),
        ("1.29 - 1.31", "1.29.0 1.31.9", "1.28.0 1.32.0"),
        ("*", "1.29.0", ""),
    ],
)
def test_a_range_holds_what_helm_would_say_it_holds(text: str, inside: str, outside: str) -> None:
    version_ranges.check(text)
    assert [version_ranges.fits(text, version) for version in inside.split()] == [True] * len(inside.split())
    assert not any(version_ranges.fits(text, version) for version in outside.split())


@rows.each("version", ["v1.31.2-gke.1200", "v1.31.2+k3s1", "v1.31.2-eks-1a2b3c", "v1.31.2-rc.1"])
def test_of_a_vendors_version_the_numbers_count(version: str) -> None:
    assert version_ranges.fits(">=1.31.2 <1.31.3", version)


@rows.each(
    "text",
    ["banana", ">= banana", ">=1.30 or so", ">=", "1.30.0.1", "^1.30 ||", " ", "1.29 - >1.31", ">>1.30"],
)
def test_what_is_no_range_is_an_error_that_shows_one(text: str) -> None:
    with pytest.raises(
        version_ranges.VersionRangeError, match=r"is not a range of versions; write one such as"
    ):
        version_ranges.check(text)


@rows.each("text", ["1" + " " * 200_000 + "x", ">=1 <2 " * 10_000], ids=["spaces", "clauses"])
def test_a_range_is_short(text: str) -> None:
    with pytest.raises(version_ranges.VersionRangeError, match=r"characters, and may have 256"):
        version_ranges.check(text)
