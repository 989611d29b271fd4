"""The values of Secrets, kubeconfigs and ``!!binary``: base64, which may be broken into lines."""

import base64


def decoded(text: str) -> bytes:
    """The bytes of such a value; raises :class:`ValueError` for a text that is not base64."""
    return base64.b64decode("".join(text.split()), validate=True)
