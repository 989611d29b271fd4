"""What is wrong with values: the places that a schema does not allow."""

import dataclasses
from collections.abc import Sequence
from typing import Final

from addon_operator.documents import json_pointers
from addon_operator.kernel import errors, json_types, names
from addon_operator.values import origins
from addon_operator.values.patches import patch_blame, patches
from addon_operator.values.schema import schema_messages

_NOT_FITTING: Final = "does not fit values of the Secret; the log says why"
MAX_VIOLATIONS: Final = 100
"""How many are looked for in a section."""


@dataclasses.dataclass(frozen=True, slots=True)
class Violation:
    """One place in the values that the schema does not allow."""

    path: str
    """Where, e.g. ``someModule.nodes[0].name``."""
    rule: str
    """What the value had to be."""
    value: str | None
    """The value as JSON, cut to a line; :data:`HIDDEN` if it is sensitive; ``None`` if it says nothing."""
    schema: str
    """The schema's file."""
    keys: json_pointers.Path = ()
    """The place as keys and indexes, beginning with the section's key."""
    origin: str = ""
    """The source that set the value; empty if that is not known or no source did."""

    is_default: bool = False
    """Whether the chart's own value is wrong, which nobody has replaced."""
    sees_secret: bool = False
    """Whether what is wrong may be so because of values of the values Secret, beside others."""
    is_unanswered: bool = False
    """Whether it is not known if something is wrong: a program that knows it gave no answer."""

    @property
    def is_left_out(self) -> bool:
        """Whether nobody has set what is wrong."""
        return self.is_missing_key or self.is_default

    @property
    def is_missing_key(self) -> bool:
        """Whether something has to be added, rather than something that is there to be changed."""
        return self.rule.startswith(schema_messages.MISSING_KEY)

    @property
    def without_value(self) -> str:
        """The place, the rule and what a hook did alone.

        Who may see this may be one who chose a value and asks whether it is that of the Secret.
        """
        rule = _NOT_FITTING if self.sees_secret else self.rule
        origin = f"; {self.origin}" if origins.is_of_hook(self.origin) else ""
        return f"{self.path}: {rule} ({self.schema}{origin})"

    def __str__(self) -> str:
        shown = "" if self.value is None else f", not {self.value}"
        origin = f"; {origins.in_words(self.origin)}" if self.origin else ""
        return f"{self.path}: {self.rule}{shown} ({self.schema}{origin})"


class InvalidValuesError(errors.AddonOperatorError):
    """Values break their schema; ``violations`` are all of them."""

    def __init__(self, violations: Sequence[Violation], subject: str = "the values are not valid") -> None:
        super().__init__(f"{subject}: " + "; ".join(map(str, violations)))
        self.violations = tuple(violations)
        """All that is wrong."""
        self._subject = subject

    @property
    def without_values(self) -> str:
        """All places and rules."""
        return f"{self._subject}: " + "; ".join(violation.without_value for violation in self.violations)


def of_patch(
    patch: patches.ValuesPatch,
    violations: Sequence[Violation],
    made: json_types.JsonObject,
    before: Sequence[Violation] = (),
) -> InvalidValuesError:
    """Return the error for what a hook's patch makes of the values, with the operation for each place.

    ``made`` is the document after the patch, ``before`` what was wrong without it.
    """
    blame = patch_blame.Blame(patch, made)
    told = []
    for each in violations:
        operation = blame.of(each.keys)
        origin = origins.BEFORE if each in before else origins.by(operation) if operation else each.origin
        told.append(dataclasses.replace(each, origin=origin))
    return InvalidValuesError(told, patch.refusal)


def of_global(violation: Violation, chart_values: json_types.JsonObject) -> Violation:
    """Return the same with the place of what a chart within the chart has from the ``global`` above it."""
    keys = violation.keys
    if names.GLOBAL_KEY not in keys or json_pointers.exists(chart_values, keys):
        return violation
    above = keys[keys.index(names.GLOBAL_KEY) :]
    return (
        dataclasses.replace(violation, keys=above) if json_pointers.exists(chart_values, above) else violation
    )
