"""Objects that nest deeper than can be read: somebody may create such, and all others of the kind go on.

The API server takes 10000 levels, and the libraries that read JSON here take some hundred.
"""

import re
from typing import Final

DEEPEST: Final = 200
"""Levels that are kept of an answer; no object of Kubernetes has a tenth of them."""
MARK: Final = b'"\\u0000"'
"""Stands in the place of what lay deeper."""
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{\]}]', re.DOTALL)


def cut(data: bytes) -> bytes:
    """Return JSON without what nests deeper than :data:`DEEPEST` levels; to be called in a thread."""
    kept: list[bytes] = []
    depth = since = 0
    for match in _TOKEN.finditer(data):
        sign = data[match.start()]
        if sign in b"[{":
            depth += 1
            if depth == DEEPEST + 1:
                kept.append(data[since : match.start()])
        elif sign in b"]}":
            if depth == DEEPEST + 1:
                kept.append(MARK)
                since = match.end()
            depth -= 1
    kept.append(data[since:])
    return b"".join(kept)
