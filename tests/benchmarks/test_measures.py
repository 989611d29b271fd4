"""How samples become numbers."""

import pytest

from tests.benchmarks import measures


@pytest.mark.parametrize(
    ("samples", "percent", "found"),
    [([3.0, 1.0, 2.0], 50, 2.0), ([float(n) for n in range(1, 101)], 99, 99.0), ([7.0], 99, 7.0),
     ([1.0, 2.0], 50, 1.0), ([1.0, 2.0], 99, 2.0)],
    ids=["the middle", "one in a hundred is above", "one sample", "half of two", "most of two"],
)  # fmt: skip
def test_a_percentile_is_a_sample(samples: list[float], percent: float, found: float) -> None:
    assert measures.percentile(samples, percent) == found
