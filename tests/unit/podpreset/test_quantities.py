"""Resource quantities."""

import pytest

from addon_operator.podpreset import quantities


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    "text", ["", "one", "1 Gi", "1gi", "1KB", "1e", "--1", "1.2.3", "9" * 1000, "1e99999"]
)
def test_what_is_no_quantity_equals_only_itself(text: str) -> None:
    assert quantities.parse(text) is None
    assert quantities.canonical(text) == text
