"""What people are told of drift: resources, fields and who wrote them, and never a value of a Secret."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from addon_operator.documents import json_documents
from addon_operator.modules.drift import field_drift

MASK: Final = "***"
_NOT_SHOWN: Final = "(a number with too many digits to be shown)"
_NAMED: Final = 3
_OF_SECRETS: Final = "Secret "
_REPLICAS: Final = "/spec/replicas"
CHANGED: Final = "Changed"
LEFT_OVER: Final = "LeftOver"
"""Nobody changed anything: it is what an earlier revision left."""
SHARED: Final = "SharedObject"
"""Another module has one of the resources, too."""
GIVEN_UP: Final = "GivenUp"
"""One of them is changed again and again, and is not put back for a while."""


class DriftReport(msgspec.Struct, frozen=True):
    """What is otherwise than its chart says, of one module."""

    resources: int = 0
    message: str = ""
    """The first resources and fields, with their managers; empty without drift."""
    reason: str = CHANGED
    """In one word, as conditions have it."""

    @property
    def is_left(self) -> bool:
        """Whether nobody changed anything."""
        return self.reason == LEFT_OVER


Found = Mapping[str, Sequence[field_drift.Difference]]
"""Differences by resource, as people call it: ``Deployment web``."""


def report(found: Found, reason: str = CHANGED) -> DriftReport:
    """Sum up what is otherwise; ``reason`` counts for what is not all left over."""
    told = [_resource(title, differences) for title, differences in sorted(found.items())]
    is_left = bool(told) and all(each.left_until for differences in found.values() for each in differences)
    return DriftReport(len(told), "; ".join(_first(told)), LEFT_OVER if is_left else reason)


def _resource(title: str, differences: Sequence[field_drift.Difference]) -> str:
    fields = [each.pointer + _why(each) for each in differences[:_NAMED]]
    if (more := len(differences) - _NAMED) > 0:
        fields.append(f"{more} more")
    return f"{title}: {', '.join(fields)}"


def _why(difference: field_drift.Difference) -> str:
    if difference.left_until:
        return f" (an earlier revision left it; it is gone after: {difference.left_until})"
    said = [f"by {difference.manager}"] if difference.manager else []
    if difference.pointer == _REPLICAS and type(difference.live) is type(difference.expected) is int:
        said.insert(0, f"scaled to {difference.live}, chart says {difference.expected}")
    return f" ({', '.join(said)})" if said else ""


def _first(told: Sequence[str]) -> list[str]:
    more = len(told) - _NAMED
    return [*told[:_NAMED], *([f"and {more} more"] if more > 0 else [])]


def rows(found: Found) -> list[dict[str, Any]]:
    """Return every difference with its values; those of Secrets are masked."""
    return [
        {
            "resource": title,
            "path": each.pointer,
            "manager": each.manager,
            "expected": None if each.expected is None else _shown(title, each.expected),
            "live": None if each.live is None else _shown(title, each.live),
        }
        for title, differences in sorted(found.items())
        for each in differences
    ]


def _shown(title: str, value: Any) -> str:  # noqa: ANN401 - JSON
    if title.startswith(_OF_SECRETS):
        return MASK
    try:
        return value if isinstance(value, str) else json_documents.encode(value).decode()
    except TypeError:
        return _NOT_SHOWN
