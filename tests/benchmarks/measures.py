"""What a benchmark found, and how samples become numbers."""

import dataclasses
from collections.abc import Sequence
from typing import Final


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


_WORSE: Final = 1.1
"""Times the figure before."""


def worse(before: Sequence[Row], now: Sequence[Row]) -> list[str]:
    """A sentence for each figure that got worse by a tenth, beside its baseline if it has one."""
    known = {_key(row): _relative(row) for row in before}
    found = []
    for row in now:
        was, is_ = known.get(_key(row)), _relative(row)
        if was and is_ and (was / is_ if "per second" in row.quantity else is_ / was) > _WORSE:
            found.append(f"{row.benchmark}, {row.case}: {row.quantity} is {is_:.3g}, and was {was:.3g}")
    return found


def _key(row: Row) -> tuple[str, ...]:
    return row.benchmark, row.case, row.quantity, row.baseline_name


def _relative(row: Row) -> float:
    return row.value / row.baseline if row.baseline else row.value


def percentile(samples: Sequence[float], percent: float) -> float:
    """The smallest sample that at least this share of all samples does not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, -(-len(ordered) * int(percent * 10) // 1000) - 1)]


def milliseconds(samples: Sequence[float], percent: float) -> float:
    """A percentile of samples in seconds, in milliseconds."""
    return percentile(samples, percent) * 1000
