"""Read decoded JSON that may have been written by hand: every surprise names its object and field."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeVar

import msgspec

from addon_operator.kernel import errors, quantities

EXPANDED_MAX: Final = 8 << 20
"""Most characters that references may make of one text, and of a container's environment, command and args.

Linux starts no process with more than 6 MiB of both. A few references to references would make gigabytes.
"""


class MalformedObjectError(errors.AddonOperatorError):
    """An object is not of the form that the Kubernetes API takes; the text names the object and the field."""

    def __init__(self, subject: str, field: str, problem: str) -> None:
        super().__init__(f"{subject}: {field} {problem}" if field else f"{subject} {problem}")
        self.subject = subject
        """The object, as in ``container web``."""
        self.field = field
        """Path of the field in it, as in ``env[0].valueFrom``; empty for the object itself."""


class ExpansionSizeError(errors.AddonOperatorError):
    """References make more text than a process can be given; raised before that text is made."""

    def __init__(self, subject: str, limit: int) -> None:
        super().__init__(
            f"{subject} would have more than {limit} characters: let fewer variables refer to long ones"
        )
        self.subject = subject
        """What is too long, as in ``container web: the environment with command and args``."""
        self.limit = limit
        """How many characters are allowed."""


_T = TypeVar("_T")
_SHOWN: Final = 40
"""As much of a wrong value as an error repeats, in characters."""


class Node(msgspec.Struct, frozen=True):
    """An object inside an API object. As in the API, ``null`` is the same as an absent field."""

    subject: str
    """What the whole object is called in errors, as in ``container web``."""
    path: str
    """Where in it this one is; empty for the whole."""
    value: Mapping[str, Any]

    def has(self, key: str) -> bool:
        """Say whether the field is there."""
        return self.value.get(key) is not None

    def problem(self, key: str, text: str) -> MalformedObjectError:
        """Return the error that says what is wrong with a field."""
        return MalformedObjectError(self.subject, self._path(key), text)

    def text(self, key: str) -> str:
        """Return a string; empty when absent."""
        return self._typed(key, str, "")

    def required_text(self, key: str) -> str:
        """Return a string that must be there and not empty."""
        text = self.text(key)
        if not text:
            raise self.problem(key, "is required and must not be empty")
        return text

    def flag(self, key: str, *, default: bool) -> bool:
        """Return a boolean."""
        return self._typed(key, bool, default)

    def required_whole_number(self, key: str) -> int:
        """Return a whole number that must be there."""
        value = self.value.get(key)
        # A boolean is an int to Python, not to JSON.
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._mismatch(key, "a whole number", value)
        return value

    def quantity(self, key: str) -> Fraction | None:
        """Return a quantity such as ``500m`` or ``1Gi``, written as string or number; ``None`` if absent."""
        value = self.value.get(key)
        if value is None:
            return None
        parsed = quantities.parse(_quantity_text(value).strip())
        if parsed is None:
            raise self.problem(key, f"must be a quantity such as 500m, 2 or 1Gi, not {_shown(value)}")
        return parsed

    def child(self, key: str) -> "Node":
        """Return an object inside this one; an absent one has no fields."""
        return Node(self.subject, self._path(key), _mapping(self, key, self.value.get(key)))

    def children(self, key: str) -> list["Node"]:
        """Return a list of objects; empty when absent."""
        return [
            Node(self.subject, self._path(f"{key}[{i}]"), _mapping(self, f"{key}[{i}]", item))
            for i, item in enumerate(self._list(key))
        ]

    def texts(self, key: str) -> list[str]:
        """Return a list of strings; empty when absent."""
        for i, item in enumerate(self._list(key)):
            if not isinstance(item, str):
                raise self._mismatch(f"{key}[{i}]", "a string", item)
        return list(self._list(key))

    def text_map(self) -> dict[str, str]:
        """Return the object as names and strings."""
        for key in self.value:
            if not isinstance(key, str):
                raise self.problem("", f"has the key {key!r}, which is not a string; put it in quotes")
        return {key: self.text(key) for key in self.value}

    def _list(self, key: str) -> list[Any]:
        return self._typed(key, list, [])

    def _typed(self, key: str, kind: type[_T], default: _T) -> _T:
        value = self.value.get(key)
        if value is None:
            return default
        if not isinstance(value, kind):
            raise self._mismatch(key, _KINDS[kind], value)
        return value

    def _mismatch(self, key: str, expected: str, value: object) -> MalformedObjectError:
        is_unquoted = expected == _KINDS[str] and isinstance(value, int | float)
        advice = "; put it in quotes" if is_unquoted else ""
        return self.problem(key, f"must be {expected}, not {_kind_of(value)}{advice}")

    def _path(self, key: str) -> str:
        return ".".join(part for part in (self.path, key) if part)


_KINDS: dict[type, str] = {
    str: "a string",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    int: "a number",
    float: "a number",
    type(None): "empty",
}


def root(subject: str, value: object) -> Node:
    """Return the whole of an object.

    Raises :class:`MalformedObjectError` when it is not an object at all.
    """
    if not isinstance(value, Mapping):
        raise MalformedObjectError(subject, "", f"must be an object, not {_kind_of(value)}")
    return Node(subject, "", value)


def named(kind: str, value: object) -> Node:
    """Return the whole of an object that goes by its own name in errors, as far as it has one."""
    node = root(kind, value)
    metadata = node.value.get("metadata")
    name = node.value.get("name") or (metadata.get("name") if isinstance(metadata, Mapping) else None)
    return Node(f"{kind} {name}", "", node.value) if isinstance(name, str) else node


def _mapping(node: Node, place: str, value: object) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise node.problem(place, f"must be an object, not {_kind_of(value)}")
    return value


def _kind_of(value: object) -> str:
    return _KINDS.get(type(value), type(value).__name__)


def _shown(value: object) -> str:
    return repr(_quantity_text(value)[:_SHOWN]) if _quantity_text(value) else _kind_of(value)


def _quantity_text(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        # Not str(): that refuses integers of more than 4300 digits with an error of its own.
        return str(Decimal(value))
    return str(value) if isinstance(value, str | float) else ""
