"""Where hooks wrote to in the values of a release, saved with its record for a plan of later.

As labels: Helm writes them with the record, so an upgrade makes no request of its own for them. A text too
long for them is an annotation, which Helm does not know.
"""

import base64
import binascii
import zlib
from collections.abc import Mapping
from typing import Final

from addon_operator.modules import release
from addon_operator.values.patches import hook_values

ANNOTATION: Final = "addon-operator.io/hook-places"
_LABEL: Final = "addon-operator.io/hook-places."
_MOST: Final = 12
_CHARS: Final = 61
"""In a label, without an ``x`` at both ends: it must not begin or end with ``-`` or ``_``."""


def changes(saved: Mapping[str, str], text: str) -> tuple[dict[str, str | None], dict[str, str]]:
    """Return the labels and annotations for ``text``; ``None`` removes one of the ``known`` labels.

    An empty text is nowhere.
    """
    packed = base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=") if text else ""
    is_short = len(packed) <= _MOST * _CHARS
    parts = [packed[start : start + _CHARS] for start in range(0, len(packed), _CHARS)] if is_short else []
    labels: dict[str, str | None] = {f"{_LABEL}{index}": f"x{part}x" for index, part in enumerate(parts)}
    stale = dict.fromkeys(key for key in saved if key.startswith(_LABEL) and key not in labels)
    return labels | stale, {} if is_short else {ANNOTATION: text}


def read(revision: release.Revision, annotations: Mapping[str, str]) -> str | None:
    """Return the text that was saved with a revision; ``None`` if there is none.

    The labels of a revision that somebody made by hand are copies: they count for another one.
    """
    parts = [revision.labels.get(f"{_LABEL}{index}", "") for index in range(_MOST)]
    packed = "".join(part[1:-1] for part in parts)
    if not packed or revision.saved is None:
        return annotations.get(ANNOTATION)
    try:
        content = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        return zlib.decompressobj().decompress(content, hook_values.MAX_PLACES_BYTES).decode() or None
    except (zlib.error, binascii.Error, ValueError):
        return None
