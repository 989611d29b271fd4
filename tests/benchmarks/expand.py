"""Speed of ``$(VAR)`` expansion, beside ``str.replace`` called once for each variable."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Final

from addon_operator import expansion
from tests.benchmarks import measures

BASELINE: Final = "str.replace"
_ROUNDS: Final = 9
_SECONDS: Final = 0.1
_HOSTILE: Final = 1_000_000


def _replace(text: str, variables: Mapping[str, str]) -> str:
    for name, value in variables.items():
        text = text.replace(f"$({name})", value)
    return text


def run() -> list[measures.Row]:
    """All measurements; takes about five seconds."""
    return [
        _speed("an argument with 2 of 2 variables", "--db=$(V0):$(V1)/shop?sslmode=require", 2, 2),
        _speed("an argument with 2 of 50 variables", "--db=$(V0):$(V49)/shop?sslmode=require", 2, 50),
        _speed("a script with 100 references to 50 variables", _script(100, 50), 100, 50),
        _hostile("openers only: $($($(…", "$(" * (_HOSTILE // 2)),
        _hostile("one reference, never closed", "$(" + "a" * _HOSTILE),
        _hostile("escapes only: $$$$…", "$" * _HOSTILE),
    ]


def _script(references: int, variables: int) -> str:
    return "".join(f"export A{i}=$(V{i % variables}) # set\n" for i in range(references))


def _speed(case: str, text: str, references: int, variables: int) -> measures.Row:
    values = {f"V{i}": f"value-{i}" for i in range(variables)}
    mapping = expansion.mapping_func_for(None, values)
    if expansion.expand(text, mapping) != _replace(text, values):
        raise RuntimeError("both ways must come to the same text")
    ours, theirs = _alternated(lambda: expansion.expand(text, mapping), lambda: _replace(text, values))
    return measures.Row(
        "expand", case, "references per second", references * ours, BASELINE, references * theirs
    )


def _alternated(*calls: Callable[[], object]) -> list[float]:
    """Calls per second of each, the median of rounds that take turns."""
    rates: list[list[float]] = [[] for _ in calls]
    for _ in range(_ROUNDS):
        for call, found in zip(calls, rates, strict=True):
            found.append(_rate(call))
    return [statistics.median(found) for found in rates]


def _rate(call: Callable[[], object]) -> float:
    count, began = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - began) < _SECONDS / 2:
        for _ in range(20):
            call()
        count += 20
    return count / elapsed


def _hostile(case: str, text: str) -> measures.Row:
    """Time for 1 MB, beside ten times the time for a tenth of it: linear work makes them about equal."""
    whole, tenth = (_best(part) for part in (text, text[: len(text) // 10]))
    return measures.Row(
        "expand", case, "time for 1 MB (ms)", whole * 1000, "10 times 0.1 MB", tenth * 10_000,
        "< 3 baselines", whole < 3 * 10 * tenth,
    )  # fmt: skip


def _best(text: str) -> float:
    mapping = expansion.mapping_func_for(None, {})
    times = []
    for _ in range(15):
        began = time.thread_time()
        expansion.expand(text, mapping)
        times.append(time.thread_time() - began)
    return min(times)
