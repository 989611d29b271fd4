"""The annotations of PodPresets on pods.

Source: "PodPreset Exclude Annotation" and "Behavior" of the PodPreset design.
"""

import hashlib
from typing import Final

DOMAIN: Final = "podpreset.admission.kubernetes.io"
EXCLUDE: Final = f"{DOMAIN}/exclude"
"""With the value ``true``, exactly, no preset touches the pod."""
MIRROR: Final = "kubernetes.io/config.mirror"
"""Present on the API server's image of a static pod, which nobody may change."""

_PREFIX: Final = "podpreset-"
_LONGEST: Final = 63
_HASH_LENGTH: Final = 10


def applied_key(preset: str) -> str:
    """Key of the annotation that says that a preset was applied.

    The part behind the ``/`` may have 63 characters. A preset whose name does not fit keeps the beginning
    of its name and gets the beginning of the SHA-256 of the whole one, in hexadecimal.
    """
    name = _PREFIX + preset
    if len(name) > _LONGEST:
        digest = hashlib.sha256(preset.encode()).hexdigest()[:_HASH_LENGTH]
        name = f"{name[: _LONGEST - _HASH_LENGTH - 1].rstrip('-.')}-{digest}"
    return f"{DOMAIN}/{name}"
