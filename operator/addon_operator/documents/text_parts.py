"""Parts of texts that others write."""

import re
from typing import Final

# What stands behind a dollar: an escaped operator, or a name in brackets. Applied only up to the last closer
# of a text, where every opener finds one: without that bound a text of openers alone would be searched to its
# end once for each of them.
_AFTER_DOLLAR: Final = re.compile(r"\$(\$|\([^)]*\))")


def variables(text: str) -> list[str]:
    """Return the names that a text refers to as ``$(NAME)``, each once, in the order of their first places.

    ``$$`` is a literal ``$``, so that ``$$(NAME)`` refers to nothing.
    """
    head, closer, _ = text.rpartition(")")
    spans = dict.fromkeys(_AFTER_DOLLAR.findall(head + closer))
    return [each[1:-1] for each in spans if each != "$"]


def after_each(pattern: re.Pattern[str], text: str) -> list[tuple[re.Match[str], str]]:
    """Return each place of a pattern with the text behind it, up to the next one."""
    starts = list(pattern.finditer(text))
    ends = [*(later.start() for later in starts[1:]), len(text)]
    return [(start, text[start.end() : end]) for start, end in zip(starts, ends[: len(starts)], strict=True)]
