"""Quantities: what they stand for, which are equal, and how often one goes into another."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from addon_operator.kernel import quantities
from tests.support import rows


def number(text: str) -> Fraction:
    parsed = quantities.parse(text)
    assert parsed is not None
    return parsed


EXACT = [
    ("0", Fraction(0)),
    ("2", Fraction(2)),
    ("+2", Fraction(2)),
    ("-2", Fraction(-2)),
    ("007", Fraction(7)),
    ("0.1", Fraction(1, 10)),
    (".5", Fraction(1, 2)),
    ("5.", Fraction(5)),
    ("500m", Fraction(1, 2)),
    ("3u", Fraction(3, 10**6)),
    ("7n", Fraction(7, 10**9)),
    ("1k", Fraction(1000)),
    ("2M", Fraction(2 * 10**6)),
    ("2G", Fraction(2 * 10**9)),
    ("2T", Fraction(2 * 10**12)),
    ("2P", Fraction(2 * 10**15)),
    ("2E", Fraction(2 * 10**18)),
    ("1Ki", Fraction(1024)),
    ("1.5Mi", Fraction(3 * 2**19)),
    ("1Gi", Fraction(2**30)),
    ("1Ti", Fraction(2**40)),
    ("1Pi", Fraction(2**50)),
    ("1Ei", Fraction(2**60)),
    ("12e6", Fraction(12 * 10**6)),
    ("12E6", Fraction(12 * 10**6)),
    ("1e-3", Fraction(1, 1000)),
    ("1e+2", Fraction(100)),
]


def test_a_quantity_stands_for_its_exact_number() -> None:
    assert {text: quantities.parse(text) for text, _ in EXACT} == dict(EXACT)


NONE = [
    "",
    "one",
    "lots",
    "1K",
    "1ki",
    "1mi",
    "1gi",
    "1KB",
    "1 Gi",
    " 1Gi ",
    "1e",
    "1e9999",
    "1e99999",
    "0x10",
    "1,5",
    ".",
    "--1",
    "inf",
    "nan",
    "1.2.3",
    "٣",
    "9" * 1000,
]


def test_what_is_not_a_quantity_has_no_number_and_equals_only_itself() -> None:
    assert [text for text in NONE if quantities.parse(text) is not None] == []
    assert [quantities.canonical(text) for text in NONE] == NONE


def test_a_quantity_of_absurd_length_is_refused_at_once() -> None:
    assert quantities.parse("9" * 1_000_000) is None


@rows.each(
    "same",
    [
        ("1Gi", "1024Mi", "1073741824", 1073741824, "1.0Gi"),
        ("1", "1000m", "1e0", "1.", "+1", "1000000u", "1000000000n"),
        ("0", "0Gi", "-0", ".0"),
        ("1k", "1e3", "1E3", "1000"),
        ("1E", "1000P", "1e18"),
        ("0.5", "500m", ".5", "5e-1"),
    ],
    ids=lambda same: str(same[0]),
)
def test_amounts_that_are_equal_have_one_text(same: tuple[str | int, ...]) -> None:
    assert len({quantities.canonical(one) for one in same}) == 1


def test_amounts_that_differ_have_different_texts() -> None:
    assert len({quantities.canonical(one) for one in ("1", "1m", "1k", "1Ki", "1M", "-1", "1E")}) == 7


RATIOS = [
    ("1", "1", "1"),
    ("100m", "1", "1"),
    ("1001m", "1", "2"),
    ("1500m", "1m", "1500"),
    ("1u", "1m", "1"),
    ("0", "1", "0"),
    ("1Gi", "1Mi", "1024"),
    ("1G", "1Mi", "954"),
    ("1Gi", "1", "1073741824"),
    ("2Mi", "1Gi", "1"),
    ("9223372036854775807", "1", "9223372036854775807"),
    ("9007199254740993", "1", "9007199254740993"),
    ("1e20", "1", "9223372036854775807"),
    ("-1", "1", "0"),
    ("1", "-1", "0"),
]


def test_a_ratio_is_rounded_up_exactly() -> None:
    found = [(one, other, quantities.ratio(number(one), number(other))) for one, other, _ in RATIOS]
    assert found == RATIOS


@given(
    st.integers(0, 10**15),
    st.sampled_from(["", "m", "k", "Ki", "Gi"]),
    st.sampled_from(["1m", "1", "1Ki", "1Mi"]),
)
def test_a_ratio_is_the_smallest_whole_number_of_divisors_that_covers_the_quantity(
    amount: int, suffix: str, unit: str
) -> None:
    quantity, divisor = number(f"{amount}{suffix}"), number(unit)
    count = int(quantities.ratio(quantity, divisor))
    if count < 2**63 - 1:
        assert count * divisor >= quantity > (count - 1) * divisor
