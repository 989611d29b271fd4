"""Label selectors: checked once, compiled once, then matched against the labels of many pods.

Source: "Labels and Selectors" of the Kubernetes documentation; held to what the API server asks of the
selector of a NetworkPolicy.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

Labels: TypeAlias = Mapping[str, str]


class Requirement(msgspec.Struct, frozen=True):
    """One condition on one label."""

    key: str
    operator: str
    """``In``, ``NotIn``, ``Exists`` or ``DoesNotExist``."""
    values: frozenset[str] = frozenset()

    def matches(self, labels: Labels) -> bool:
        """Say whether the labels meet the condition; without the key, NotIn and DoesNotExist are met."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels


class Selector(msgspec.Struct, frozen=True):
    """All the conditions that a pod's labels have to meet; an empty one matches nothing that we serve."""

    requirements: tuple[Requirement, ...]

    def matches(self, labels: Labels) -> bool:
        """Say whether the labels meet every condition."""
        return all(requirement.matches(labels) for requirement in self.requirements)


def compile_selector(selector: Mapping[str, Any]) -> Selector:
    """Return the selector of a mapping that is valid."""
    pairs = (selector.get("matchLabels") or {}).items()
    equal = [Requirement(key, "In", frozenset({value})) for key, value in pairs]
    expressions = selector.get("matchExpressions") or []
    rest = [
        Requirement(one["key"], one["operator"], frozenset(one.get("values") or ())) for one in expressions
    ]
    return Selector((*equal, *rest))
