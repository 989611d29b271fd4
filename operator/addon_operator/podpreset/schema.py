"""The shape of API types, and the three things that are done with a shape.

* :func:`prune` leaves out what the API server would leave out: unknown fields and nulls,
* :func:`problems` returns what the API server would refuse,
* :func:`canonical` gives the form in which two values that mean the same are equal.

A field that is a pointer in the Go types keeps an explicit zero value (``optional: false``); in any other
field a zero value and an absent one are the same to the API.
"""

import dataclasses
import decimal
import enum
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, TypeAlias

from addon_operator.kernel import quantities

_PLAIN_FROM: Final = 1e-6
_PLAIN_BELOW: Final = 1e21
_PADDED_EXPONENT: Final = re.compile(r"(e[+-])0+(?=[0-9])")
_ZERO_VALUES: Final[tuple[object, ...]] = ("", 0, False, [], {})
_NOTHING: Final[tuple[object, ...]] = (None, "", [])


def text_of(value: str | float | bool | None) -> str:
    """Return the text of a scalar: ``6379`` → ``"6379"``, ``true`` → ``"true"``, null → ``""``.

    A number is written as the API server writes it in JSON: no exponent between 1e-6 and 1e21, and a whole
    number without a decimal point.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _number(value)
    return str(value)


def _number(value: float) -> str:
    if value.is_integer() and abs(value) < _PLAIN_BELOW:
        return str(int(value))
    if _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return format(decimal.Decimal(repr(value)), "f")
    return _PADDED_EXPONENT.sub(r"\1", repr(value))


Rule: TypeAlias = Callable[[Any, str], Iterator[str]]
"""Finds what is wrong with a value that is in order otherwise: ``rule(value, path)`` gives sentences."""
Completion: TypeAlias = Callable[[dict[str, Any]], None]
"""Fills in, in place, the defaults that depend on other fields."""


class Kind(enum.Enum):
    """What messages say that a value must be."""

    TEXT = "a text"
    INTEGER = "a whole number"
    BOOLEAN = "true or false"
    QUANTITY = "a quantity such as 100m or 1Gi"
    SCALAR = "a text, a number or a boolean"
    LIST = "a list"
    OBJECT = "a mapping"


_TYPES: Final[Mapping[Kind, tuple[type, ...]]] = {
    Kind.TEXT: (str,),
    Kind.INTEGER: (int,),
    Kind.BOOLEAN: (bool,),
    Kind.QUANTITY: (str, int),
    Kind.SCALAR: (str, int, float, bool),
    Kind.LIST: (list,),
    Kind.OBJECT: (dict, Mapping),
}


@dataclasses.dataclass(frozen=True, slots=True)
class TypeShape:
    """A type of the API, and what the field says that has it."""

    kind: Kind
    fields: "Mapping[str, TypeShape]" = dataclasses.field(default_factory=dict)
    """The fields of an object."""
    required: Collection[str] = ()
    """The fields that must be there and not be empty."""
    values: "TypeShape | None" = None
    """What is in a list, or in a mapping of any keys."""
    unique: str | None = None
    """The field whose value no two items of a list may share."""
    choices: tuple[str, ...] = ()
    """The only texts that are allowed; none means any."""
    within: tuple[int, int] | None = None
    """Lowest and highest number that is allowed."""
    longest: int | None = None
    """Highest number of characters."""
    rules: tuple[Rule, ...] = ()
    pointer: bool = False
    """An explicit zero value is not the same as no value."""
    default: str | int | bool | None = None
    """What the API server fills in."""
    complete: Completion | None = None
    defaults: Mapping[str, str | int | bool] = dataclasses.field(init=False)
    """What the API server fills in, by field."""

    def __post_init__(self) -> None:
        defaults = {name: one.default for name, one in self.fields.items() if one.default is not None}
        object.__setattr__(self, "defaults", defaults)


def prune(shape: TypeShape, value: Any) -> Any:  # noqa: ANN401 - of any shape, and so is the copy
    """Return a copy without nulls and unknown fields; what has another type than the shape says stays."""
    if shape.kind is Kind.OBJECT and isinstance(value, Mapping):
        if shape.values is not None:
            return {key: item for key, item in value.items() if item is not None}
        fields = shape.fields
        return {
            name: prune(fields[name], item)
            for name, item in value.items()
            if name in fields and item is not None
        }
    if shape.values is not None and isinstance(value, list):
        return [prune(shape.values, item) for item in value]
    return value


def problems(shape: TypeShape, value: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - of any shape
    """Say what is wrong with a pruned value, one sentence each, each beginning with the path of the field."""
    if not _fits(shape.kind, value):
        yield f"{path}: must be {shape.kind.value}"
        return
    all_problems = [*_inner_problems(shape, value, path), *_own_problems(shape, value, path)]
    yield from all_problems
    # A rule for objects may look at any of their fields, one for keys looks at nothing else.
    if not all_problems or not shape.fields:
        for rule in shape.rules:
            yield from rule(value, path)


def _fits(kind: Kind, value: object) -> bool:
    if isinstance(value, bool) and kind not in {Kind.BOOLEAN, Kind.SCALAR}:
        return False
    if not isinstance(value, _TYPES[kind]):
        return False
    return kind is not Kind.QUANTITY or quantities.parse(str(value)) is not None


def _inner_problems(shape: TypeShape, value: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - of any shape
    for name, one in shape.fields.items():
        item = value.get(name)
        at = f"{path}.{name}" if path else name
        if name in shape.required and item in _NOTHING:
            yield f"{at}: is required"
        elif item is not None:
            yield from problems(one, item, at)
    if shape.values is not None:
        places = value.items() if shape.kind is Kind.OBJECT else enumerate(value)
        for place, item in places:
            yield from problems(shape.values, item, f"{path}[{place}]")


def _own_problems(shape: TypeShape, value: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - of any shape
    if shape.unique is not None:
        yield from _duplicates(value, shape.unique, path)
    if shape.choices and value not in shape.choices:
        listed = ", ".join(f'"{choice}"' for choice in shape.choices)
        yield f'{path}: "{value}" is not supported; use one of {listed}'
    if shape.within is not None and not shape.within[0] <= value <= shape.within[1]:
        yield f"{path}: {value} is not between {shape.within[0]} and {shape.within[1]}"
    if shape.longest is not None and len(str(value)) > shape.longest:
        yield f"{path}: may not be more than {shape.longest} characters long"


def _duplicates(items: list[object], key: str, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        name = item.get(key) if isinstance(item, Mapping) else None
        if not isinstance(name, str):
            continue
        if name in seen:
            yield f'{path}[{index}].{key}: Duplicate value "{name}"; it must be unique'
        seen.add(name)


def canonical(shape: TypeShape, value: Any) -> Any:  # noqa: ANN401 - of any shape
    """Return the form of a value in which all that means the same is equal; unknown fields are kept."""
    if shape.kind is Kind.OBJECT and isinstance(value, Mapping):
        if shape.values is not None:
            return {key: canonical(shape.values, item) for key, item in value.items()}
        return _canonical_object(shape, value)
    if shape.values is not None and isinstance(value, list):
        return [canonical(shape.values, item) for item in value]
    if shape.kind is Kind.QUANTITY and isinstance(value, str | int):
        return quantities.canonical(value)
    if shape.kind is Kind.SCALAR and isinstance(value, str | int | float):
        return text_of(value)
    return value


def _canonical_object(shape: TypeShape, value: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {**shape.defaults}
    for name, item in value.items():
        one = shape.fields.get(name)
        comparable = item if one is None else canonical(one, item)
        if comparable is not None and (one is None or one.pointer or comparable not in _ZERO_VALUES):
            result[name] = comparable
    if shape.complete is not None:
        shape.complete(result)
    return result
