"""Label selectors: checked once, compiled once, then matched against the labels of many pods.

Source: "Labels and Selectors" of the Kubernetes documentation; held to what the API server asks of the
selector of a NetworkPolicy.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from addon_operator.podpreset import formats, schema
from addon_operator.podpreset.schema import Field, Kind, ListOf, MapOf, Struct

Labels: TypeAlias = Mapping[str, str]

SETS: Final = ("In", "NotIn")
OPERATORS: Final = (*SETS, "Exists", "DoesNotExist")

EMPTY: Final = "must not be empty: give matchLabels or matchExpressions"
VALUES_REQUIRED: Final = "must be specified when operator is In or NotIn"
VALUES_FORBIDDEN: Final = "may not be specified when operator is Exists or DoesNotExist"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: str
    """One of :data:`OPERATORS`."""
    values: frozenset[str] = frozenset()

    def matches(self, labels: Labels) -> bool:
        """Whether the labels meet the condition; without the key, NotIn and DoesNotExist are met."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels


@dataclass(frozen=True, slots=True)
class Selector:
    """All the conditions that a pod's labels have to meet; an empty one matches nothing that we serve."""

    requirements: tuple[Requirement, ...]

    def matches(self, labels: Labels) -> bool:
        """Whether the labels meet every condition."""
        return all(requirement.matches(labels) for requirement in self.requirements)


def _values_rule(expression: Mapping[str, Any], path: str) -> Iterator[str]:
    given = bool(expression.get("values"))
    if expression["operator"] in SETS and not given:
        yield f"{path}.values: {VALUES_REQUIRED}"
    if expression["operator"] not in SETS and given:
        yield f"{path}.values: {VALUES_FORBIDDEN}"


def _value_formats(expression: Mapping[str, Any], path: str) -> Iterator[str]:
    for index, value in enumerate(expression.get("values", ())):
        yield from formats.LABEL_VALUE.problems(value, f"{path}.values[{index}]")


def _not_empty(selector: Mapping[str, Any], path: str) -> Iterator[str]:
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield f"{path}: {EMPTY}"


EXPRESSION: Final = Struct(
    {
        "key": Field(Kind.TEXT, required=True, format=formats.LABEL_KEY),
        "operator": Field(Kind.TEXT, required=True, choices=OPERATORS),
        "values": Field(ListOf(Kind.TEXT)),
    },
    rules=(_values_rule, _value_formats),
)
_FIELDS: Final = {
    "matchLabels": Field(MapOf(Kind.TEXT, formats.LABEL_KEY, formats.LABEL_VALUE)),
    "matchExpressions": Field(ListOf(EXPRESSION)),
}
LABEL_SELECTOR: Final = Struct(_FIELDS)
"""The shape of any label selector."""
POD_SELECTOR: Final = Struct(_FIELDS, rules=(_not_empty,))
"""The shape of a PodPreset's selector, which has to say something."""


def problems(selector: object, path: str) -> Iterator[str]:
    """What is wrong with a PodPreset's selector as it was written, one sentence each."""
    given = schema.prune(POD_SELECTOR, selector) if isinstance(selector, Mapping) else selector
    yield from schema.problems(POD_SELECTOR, given, path)


def compile_selector(selector: Mapping[str, Any]) -> Selector:
    """The selector of a mapping in which :func:`problems` finds nothing."""
    pairs = (selector.get("matchLabels") or {}).items()
    equal = [Requirement(key, "In", frozenset({value})) for key, value in pairs]
    expressions = selector.get("matchExpressions") or []
    rest = [
        Requirement(one["key"], one["operator"], frozenset(one.get("values") or ())) for one in expressions
    ]
    return Selector((*equal, *rest))
