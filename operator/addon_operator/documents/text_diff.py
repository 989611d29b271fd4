"""Unified diffs of texts, at a cost that their size allows.

What :mod:`difflib` takes to find the lines that two texts have in common grows with the square of their
number: for 25 000 lines of which every other one differs it takes half a minute.
"""

import difflib
from collections.abc import Iterator, Sequence
from typing import Final

CONTEXT_LINES: Final = 3
"""Lines of both texts that are shown around a difference."""
MAX_PAIRS: Final = 400_000_000
"""Pairs of lines that are compared, a bit of memory each: 20 000 lines with as many others. Where texts
differ over more lines, all of those are shown as removed, and as added anew."""

Opcode = tuple[str, int, int, int, int]


class _Matcher(difflib.SequenceMatcher[str]):
    """Compares lines; they are grouped as difflib does it."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        super().__init__(None, (), (), autojunk=False)
        self._differing = opcodes(before, after)

    def get_opcodes(self) -> list[Opcode]:  # type: ignore[override]  # a tuple of its own there
        return self._differing


def unified(before: Sequence[str], after: Sequence[str], was: str, becomes: str) -> Iterator[str]:
    """Yield the lines of a unified diff, without line ends; ``was`` and ``becomes`` are the titles."""
    groups = list(_Matcher(before, after).get_grouped_opcodes(CONTEXT_LINES))
    if groups:
        yield f"--- {was}"
        yield f"+++ {becomes}"
    for group in groups:
        (_, one_first, _, other_first, _), (_, _, one_last, _, other_last) = group[0], group[-1]
        yield f"@@ -{_range(one_first, one_last)} +{_range(other_first, other_last)} @@"
        for kind, one_begin, one_end, other_begin, other_end in group:
            if kind == "equal":
                yield from (f" {line}" for line in before[one_begin:one_end])
                continue
            yield from (f"-{line}" for line in before[one_begin:one_end])
            yield from (f"+{line}" for line in after[other_begin:other_end])


def _range(first: int, last: int) -> str:
    """Return lines as the format of diff says them: an empty range is named by the line before it."""
    length = last - first
    if length == 1:
        return f"{first + 1}"
    return f"{first + 1 if length else first},{length}"


def opcodes(before: Sequence[str], after: Sequence[str]) -> list[Opcode]:
    """Return how one sequence of lines becomes the other, as :mod:`difflib` says it; equal parts are long."""
    shortest = min(len(before), len(after))
    begin = next((at for at in range(shortest) if before[at] != after[at]), shortest)
    rest = range(1, shortest - begin + 1)
    end = next((at - 1 for at in rest if before[-at] != after[-at]), shortest - begin)
    one, other = before[begin : len(before) - end], after[begin : len(after) - end]
    codes = [("equal", 0, begin, 0, begin)] if begin else []
    codes += [
        (kind, first + begin, last + begin, other_first + begin, other_last + begin)
        for kind, first, last, other_first, other_last in _between(one, other)
    ]
    if end:
        codes.append(("equal", len(before) - end, len(before), len(after) - end, len(after)))
    return codes


def _between(one: Sequence[str], other: Sequence[str]) -> list[Opcode]:
    if not one and not other:
        return []
    if len(one) * len(other) > MAX_PAIRS:
        return [("replace", 0, len(one), 0, len(other))]
    # Few ever see a difference, and all would pay for it with 5 MiB.
    from rapidfuzz.distance import LCSseq

    numbers: dict[str, int] = {}
    one_lines, other_lines = (
        [numbers.setdefault(line, len(numbers)) for line in lines] for lines in (one, other)
    )
    codes: list[Opcode] = []
    for each in LCSseq.opcodes(one_lines, other_lines):
        begin = codes.pop() if codes and "equal" not in {codes[-1][0], each.tag} else None
        if begin is None:
            codes.append((each.tag, each.src_start, each.src_end, each.dest_start, each.dest_end))
        else:
            codes.append(("replace", begin[1], each.src_end, begin[3], each.dest_end))
    return codes
