"""What counts as growth."""

import pytest

from tests.benchmarks import soak


@pytest.mark.parametrize(
    ("values", "grown"),
    [
        ([80.0] * 10 + [100.0] * 20, ""),
        ([100.0] * 20 + [103.0] * 20, ""),
        ([100.0 + minute for minute in range(40)], "memory of the operator grew from 116.0 to 135.0 MiB"),
        ([100.0] * 30 + [500.0] + [100.0] * 9, ""),
    ],
    ids=["warm-up", "little", "steadily", "once"],
)
def test_what_grows_after_the_warm_up_is_named(values: list[float], grown: str) -> None:
    assert soak.growth("memory of the operator", values) == grown
