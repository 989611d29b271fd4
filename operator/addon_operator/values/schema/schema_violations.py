"""What is wrong with values: the places that a schema does not allow."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import structs

from addon_operator.documents import json_pointers
from addon_operator.kernel import errors, json_types, names
from addon_operator.values import origins
from addon_operator.values.patches import patches
from addon_operator.values.schema import schema_messages

_NOT_FITTING: Final = "does not fit values of the Secret; the log says why"
MAX_VIOLATIONS: Final = 100
"""How many are looked for in a section."""
_SHOWN_PATH: Final = 200
MOST_COMPARED: Final = 100_000
"""Operations that are looked at for all places together, in up to half a second."""


class Violation(msgspec.Struct, frozen=True):
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


class OperationFinder:
    """Finds the operation of a patch that made a place in the values what it is."""

    def __init__(self, patch: patches.ValuesPatch, made: json_types.JsonObject) -> None:
        """``made`` is the document after the patch, which applies to the one before."""
        steps = enumerate(patch.steps())
        self._changes = [(number, item) for number, item in steps if item.kind != "test"][::-1]
        self._made = made
        self._left = MOST_COMPARED
        self._appended: dict[json_pointers.Tokens, list[int]] = {}
        for number, item in reversed(self._changes):
            if item.path[-1:] == ("-",):
                self._appended.setdefault(item.path[:-1], []).append(number)

    def last_writing(self, keys: json_pointers.Path) -> str:
        """Return the last operation that wrote a place, or removed something of it; empty if none did.

        If none did, it is the last one that wrote something inside. Of many places in a large patch, only the
        first ones are looked for.
        """
        self._left -= len(self._changes)
        if self._left < 0:
            return ""
        place, inside = tuple(map(str, keys)), ""
        for number, item in self._changes:
            gone = {"remove": item.path, "move": item.origin}.get(item.kind)
            if self._wrote(number, item, keys) or (gone is not None and json_pointers.overlap(gone, place)):
                return _operation(number, item)
            if not inside and json_pointers.is_prefix(place, item.path):
                inside = _operation(number, item)
        return inside

    def _wrote(self, number: int, item: patches.PatchStep, keys: json_pointers.Path) -> bool:
        if item.path[-1:] == ("-",):
            return self._appended_at(keys[: len(item.path)]) == number
        return json_pointers.is_prefix(item.path, tuple(map(str, keys)))

    def _appended_at(self, keys: json_pointers.Path) -> int | None:
        """Return the operation that put the item at the end of its list; the last ones of the list did."""
        around = tuple(map(str, keys[:-1]))
        numbers = self._appended.get(around)
        items = json_pointers.find(self._made, around) if numbers else None
        if not (numbers and isinstance(items, list) and isinstance(keys[-1], int)):
            return None
        place = keys[-1] - (len(items) - len(numbers))
        return numbers[place] if 0 <= place < len(numbers) else None


def _operation(number: int, item: patches.PatchStep) -> str:
    return f"operation [{number}], {item.kind} {json_pointers.render(item.path)[:_SHOWN_PATH]}"


def of_patch(
    patch: patches.ValuesPatch,
    violations: Sequence[Violation],
    made: json_types.JsonObject,
    before: Sequence[Violation] = (),
) -> InvalidValuesError:
    """Return the error for what a hook's patch makes of the values, with the operation for each place.

    ``made`` is the document after the patch, ``before`` what was wrong without it.
    """
    finder = OperationFinder(patch, made)
    found = []
    for each in violations:
        operation = finder.last_writing(each.keys)
        origin = origins.BEFORE if each in before else origins.by(operation) if operation else each.origin
        found.append(structs.replace(each, origin=origin))
    return InvalidValuesError(found, patch.refusal)


def of_global(violation: Violation, chart_values: json_types.JsonObject) -> Violation:
    """Return the same with the place of what a chart within the chart has from the ``global`` above it."""
    keys = violation.keys
    if names.GLOBAL_KEY not in keys or json_pointers.exists(chart_values, keys):
        return violation
    above = keys[keys.index(names.GLOBAL_KEY) :]
    return structs.replace(violation, keys=above) if json_pointers.exists(chart_values, above) else violation
