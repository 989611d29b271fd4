"""Parts of texts that others write."""

import re


def after_each(pattern: re.Pattern[str], text: str) -> list[tuple[re.Match[str], str]]:
    """Return each place of a pattern with the text behind it, up to the next one."""
    starts = list(pattern.finditer(text))
    ends = [*(later.start() for later in starts[1:]), len(text)]
    return [(start, text[start.end() : end]) for start, end in zip(starts, ends[: len(starts)], strict=True)]
