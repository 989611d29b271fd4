"""What a benchmark found, and how samples become numbers."""

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One line of the report: what was measured, beside its baseline in the same run."""

    benchmark: str
    case: str
    quantity: str
    """What is measured, with its unit."""
    value: float
    baseline_name: str
    baseline: float | None = None
    aim: str = ""
    met: bool | None = None
    """Whether the aim was reached; ``None`` without one."""


def percentile(samples: Sequence[float], percent: float) -> float:
    """The smallest sample that at least this share of all samples does not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, -(-len(ordered) * int(percent * 10) // 1000) - 1)]


def milliseconds(samples: Sequence[float], percent: float) -> float:
    """A percentile of samples in seconds, in milliseconds."""
    return percentile(samples, percent) * 1000
