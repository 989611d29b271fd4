"""What a chart may know of the cluster through ``.Capabilities``."""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import TypeAlias


@dataclasses.dataclass(frozen=True, slots=True)
class Capabilities:
    """Versions of the cluster and of its API."""

    kube_version: str
    """Such as ``v1.36.3``."""
    api_versions: frozenset[str]
    """All ``group/version`` and ``group/version/Kind``, as Helm lists them."""


ReadCapabilities: TypeAlias = Callable[[], Awaitable[Capabilities]]
"""Gives what is true now; the caller may cache it."""
