"""Why the API server refuses what a hook wrote: the entry of its patch, and the field that is wrong.

The server words a wrong type as its programming language does, and of a patch that does not apply it says
nothing at all.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from addon_operator.documents import json_pointers
from addon_operator.hook_contract.outputs import object_operations, patch_check
from addon_operator.kernel import shown_texts
from addon_operator.kube import api_errors

JSON_PATCH: Final = "jsonPatch"
_SAYS_NOTHING: Final = "the server rejected our request due to an error in our request"
_MISTYPED: Final = re.compile(
    r"cannot unmarshal (?P<got>\w{1,20})[^\n]{0,100}? into Go struct field \w{1,100}\."
    r"(?P<field>[\w./-]{1,300}) of type (?P<type>[\w.\[\]*/]{1,200})"
)
_FIELD: Final = re.compile(r"is invalid: \[?(?P<field>[\w.\[\]-]{1,300}): ")
_PARTS: Final = re.compile(r"[\w-]+")
_GOT: Final = {"array": "a list", "bool": "a boolean", "number": "a number", "object": "a mapping"}
_SHOWN: Final = 200
_LONGEST: Final = 2000
"""Characters of a message that are looked at; errors of the client have no more."""

Operation = Mapping[str, Any]


def is_about_patch(error: api_errors.ApiError, operation: object_operations.Operation) -> bool:
    """Say whether only the object tells why: a JSON patch does not apply to it."""
    return bool(_entries(operation)) and error.message == _SAYS_NOTHING


def not_applied(
    error: api_errors.ApiError, operation: object_operations.Operation, current: Mapping[str, Any]
) -> api_errors.ApiError:
    """Return the error with the first entry of a JSON patch that does not apply to the object."""
    try:
        sent = orjson.dumps({"request": {"object": current}})
        patch_check.check(sent, _entries(operation), JSON_PATCH)
    except patch_check.PatchError as found:
        return error.reworded(str(found))
    return error


def worded(error: api_errors.ApiError, operation: object_operations.Operation) -> api_errors.ApiError:
    """Return the error with the entry of a JSON patch that it is about, and wrong types in plain words."""
    message = error.message[:_LONGEST]
    entries = _entries(operation)
    if (mistyped := _MISTYPED.search(message)) is not None:
        field, got = mistyped["field"], mistyped["got"]
        number = _last_entry(entries, field)
        place = _place(operation, number, field, got) or field
        said = f"{place} must be {_wanted(mistyped['type'])}, not {_GOT.get(got, f'a {got}')}"
        return error.reworded(f"{_told(entries, number)}{said}")
    invalid = _FIELD.search(message) if entries else None
    number = None if invalid is None else _last_entry(entries, invalid["field"])
    return error if number is None else error.around(_told(entries, number))


def _entries(operation: object_operations.Operation) -> Sequence[Any]:
    body = operation.body if isinstance(operation, object_operations.Patch) else None
    return body if isinstance(body, list) else ()


def _wanted(type_: str) -> str:
    """Return a type of Go in the words of schemas."""
    name = type_.lstrip("*")
    if name in ("[]uint8", "[]byte"):
        return "a string in base64"
    if name.startswith("[]"):
        return "a list"
    if name in ("string", "bool"):
        return "a string" if name == "string" else "a boolean"
    if name.startswith(("int", "uint", "float")):
        return "a number" if name.startswith("float") else "an integer"
    return "a mapping"


def _last_entry(entries: Sequence[Operation], field: str) -> int | None:
    """Return the number of the last entry of a JSON patch that writes a field."""
    place = _plain(_PARTS.findall(field))
    for number, each in reversed([*enumerate(entries)]):
        written = _plain(json_pointers.parse(each["path"]))
        if each["op"] not in ("test", "remove") and json_pointers.overlap(written, place):
            return number
    return None


def _told(entries: Sequence[Operation], number: int | None) -> str:
    """Return an entry of a JSON patch to begin a sentence; empty without one."""
    if number is None:
        return ""
    shown = shown_texts.shown_line(entries[number]["path"][:_SHOWN])
    return f"{JSON_PATCH}[{number}] ({entries[number]['op']} {shown}): "


def _place(operation: object_operations.Operation, number: int | None, field: str, got: str) -> str:
    """Return where in what the hook wrote a field has that type; empty if it is not found.

    The server names no item of a list and no key of a mapping.
    """
    tokens = tuple(_PARTS.findall(field))
    start: json_pointers.Path = ()
    body: Any = getattr(operation, "body", None)
    if number is not None:
        entry = _entries(operation)[number]
        written = json_pointers.parse(entry["path"])
        start = tuple(int(each) if each.isdecimal() else each for each in written)
        tokens, body = tokens[len(_plain(written)) :], entry.get("value")
    found = _find(body, tokens, got, start)
    return "" if found is None else json_pointers.format_path(found)[:_SHOWN]


def _find(value: Any, tokens: Sequence[str], got: str, path: json_pointers.Path) -> json_pointers.Path | None:  # noqa: ANN401 - JSON
    if not tokens and _type_of(value) == got:
        return path
    if isinstance(value, list):
        inner = (_find(item, tokens, got, (*path, number)) for number, item in enumerate(value))
        return next((found for found in inner if found is not None), None)
    if not isinstance(value, dict):
        return None
    if not tokens:
        return next(((*path, key) for key, each in value.items() if _type_of(each) == got), None)
    return _find(value.get(tokens[0]), tokens[1:], got, (*path, tokens[0]))


def _type_of(value: Any) -> str:  # noqa: ANN401 - JSON
    for type_, name in ((bool, "bool"), ((int, float), "number"), (list, "array"), (dict, "object")):
        if isinstance(value, type_):
            return name
    return "string" if isinstance(value, str) else "null"


def _plain(tokens: Sequence[str]) -> json_pointers.Tokens:
    """Return a place without the numbers of items, which types of Go do not have."""
    return tuple(token for token in tokens if not json_pointers.is_index(token))
