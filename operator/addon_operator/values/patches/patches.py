"""JSON patches (RFC 6902) that hooks return: reading, permission, strict application.

Messages never contain values, because a patch may carry secrets.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import jsonpatch
import jsonpointer
import msgspec

from addon_operator.documents import document_stream, json_documents, json_pointers
from addon_operator.kernel import errors, json_types, names

Operation = Mapping[str, json_types.JsonValue]

MAX_OPERATIONS: Final = 20_000
"""Operations of one patch. They are joined with earlier ones on the event loop, in up to 0.3 s."""

_SHOWN: Final = 60
_NULL_WITHOUT_VALUE: Final = ("add", "replace")
"""Shell libraries of the original leave the member out when they set ``null``."""


class PatchError(errors.AddonOperatorError):
    """A hook's patch cannot be read, is not permitted, or does not apply; names operation and path."""


class PatchStep(msgspec.Struct, frozen=True):
    """One operation with its pointers taken apart."""

    operation: Operation
    path: json_pointers.Tokens
    origin: json_pointers.Tokens | None = None
    """Where ``move`` and ``copy`` take the value from."""

    @property
    def kind(self) -> str:
        """The ``op`` member."""
        return str(self.operation["op"])

    @property
    def value(self) -> json_types.JsonValue:
        """The ``value`` member."""
        return self.operation["value"]

    @property
    def pointers(self) -> tuple[json_pointers.Tokens, ...]:
        """All places that the operation names."""
        return (self.path,) if self.origin is None else (self.path, self.origin)


class ValuesPatch(msgspec.Struct, frozen=True):
    """What one run of a hook wants to change."""

    operations: tuple[Operation, ...]
    """Checked operations, only with the members that RFC 6902 knows for them."""
    source: str = "patch"
    """What the patch is called in errors."""
    ambiguity: str = ""
    """Which key has two values in one mapping, of which the last counts, as in the Go operator."""

    @property
    def refusal(self) -> str:
        """What stands before the violations that it brings about."""
        return f"{self.source} makes values that are not valid"

    def steps(self) -> list[PatchStep]:
        """Return the operations with their pointers taken apart."""
        return [step(operation) for operation in self.operations]


def step(operation: Operation) -> PatchStep:
    """Take the pointers of a checked operation apart."""
    origin = operation.get("from")
    return PatchStep(
        operation,
        json_pointers.parse(str(operation["path"])),
        None if origin is None else json_pointers.parse(str(origin)),
    )


def parse_patch(text: str, source: str) -> ValuesPatch:
    """Read a patch: one array of operations, one operation, or a stream of either; empty means no operation.

    Raises :class:`PatchError`, which names ``source``, the operation's index (from 0) and the field, also of
    more than :data:`MAX_OPERATIONS`.
    """
    operations: list[Operation] = []
    ambiguity = ""
    for document, doubt in _documents(text, source):
        ambiguity = ambiguity or doubt
        for item in document if isinstance(document, list) else [document]:
            operations.append(_check(item, f"{source}, operation [{len(operations)}]"))
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(
            f"{source} has {len(operations)} operations, and may have {MAX_OPERATIONS}; write a mapping or a "
            "list with one operation, as a whole"
        )
    return ValuesPatch(tuple(operations), source, ambiguity)


def _documents(text: str, source: str) -> Iterator[tuple[Any, str]]:
    """Yield each document, and which of its keys has two values."""
    start = 0
    try:
        for _, start, end in document_stream.json_stream(text, json.JSONDecoder()):
            # The strict decoder knows neither NaN nor halves of surrogate pairs.
            part = text[start:end]
            yield json_documents.decode(part), json_documents.key_with_two_values(part)
    except json.JSONDecodeError as error:
        line, column = _line_and_column(text, error, start)
        raise PatchError(
            f"{source}, line {line}, column {column}: invalid JSON: {error.msg}; "
            f"it begins with {_beginning(text[start:])}"
        ) from None
    except (RecursionError, UnicodeEncodeError):
        raise PatchError(f"{source}: the JSON nests too deep or is not valid Unicode") from None
    except ValueError:
        # Python's own limit; numbers of a few hundred digits become floating point.
        raise PatchError(f"{source}: a number has thousands of digits; quote it") from None


def _beginning(text: str) -> str:
    shown = text[: 10 * _SHOWN].strip()
    return f"{shown[:_SHOWN]!r}" + "…" * (len(shown) > _SHOWN)


def _line_and_column(text: str, error: json.JSONDecodeError, start: int) -> tuple[int, int]:
    # The strict decoder only saw the slice from ``start`` on.
    offset = error.pos if error.doc is text else start + error.pos
    before = text[:offset]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _check(item: Any, where: str) -> Operation:  # noqa: ANN401  # JSON of any shape
    if not isinstance(item, dict):
        raise PatchError(f"{where}: an operation must be a JSON object")
    kind = item.get("op")
    if not isinstance(kind, str) or kind not in json_pointers.PATCH_MEMBERS:
        raise PatchError(f"{where}, field op: must be one of {', '.join(json_pointers.PATCH_MEMBERS)}")
    if kind in _NULL_WITHOUT_VALUE:
        item = {"value": None, **item}
    members = json_pointers.PATCH_MEMBERS[kind]
    for member in members:
        if member not in item:
            raise PatchError(f"{where}, field {member}: {kind!r} needs it")
    for member in {"path", "from"}.intersection(members):
        _check_pointer(item[member], f"{where}, field {member}")
    return {member: item[member] for member in ("op", *members)}


def _check_pointer(value: Any, where: str) -> None:  # noqa: ANN401  # JSON of any shape
    if not isinstance(value, str):
        raise PatchError(f"{where}: must be a string")
    try:
        json_pointers.parse(value)
    except ValueError as error:
        raise PatchError(f"{where}: {error}") from None


def check_roots(owner: names.ModuleName | None, patch: ValuesPatch, *, switches: bool) -> None:
    """Check that the patch stays in what its hook may change.

    A module's hook changes its own section; a global hook (``owner`` is ``None``) changes ``global`` and,
    with ``switches``, the ``…Enabled`` switch of any module.

    Raises :class:`PatchError`, which names the path and the rule.
    """
    root = root_key(owner)
    for index, item in enumerate(patch.steps()):
        for pointer in item.pointers:
            if pointer[:1] != (root,) and not (switches and owner is None and is_switch(pointer)):
                path, rule = json_pointers.render(pointer), _rule(owner, switches=switches)
                raise PatchError(
                    f"{patch.source}, operation [{index}]: path {path!r} is not permitted: {rule}"
                )


def root_key(owner: names.ModuleName | None) -> names.ValuesKey:
    """Return the section that belongs to a module's hooks, or to the global hooks."""
    return names.GLOBAL_KEY if owner is None else names.values_key(owner)


def is_switch(pointer: json_pointers.Tokens) -> bool:
    """Say whether the pointer names a module's switch, such as ``/someModuleEnabled``."""
    return len(pointer) == 1 and pointer[0].removesuffix(names.ENABLED_SUFFIX) not in {"", pointer[0]}


def _rule(owner: names.ModuleName | None, *, switches: bool) -> str:
    if owner is not None:
        return f"hooks of module {owner!r} may only change /{names.values_key(owner)}"
    if switches:
        return f"global hooks may only change /{names.GLOBAL_KEY} and switches such as /someModuleEnabled"
    return f"global hooks may only change /{names.GLOBAL_KEY} in config values"


Adapt = Callable[[json_types.JsonObject, PatchStep], Iterable[PatchStep]]
"""Gives the steps to take over a document in the place of one; raises :class:`StepError`."""


def as_it_is(_document: json_types.JsonObject, item: PatchStep) -> Iterable[PatchStep]:
    """Take each step as the hook wrote it."""
    return (item,)


def apply_strictly(
    document: json_types.JsonObject, patch: ValuesPatch, adapt: Adapt = as_it_is
) -> list[PatchStep]:
    """Apply a patch, in place, to the sections and switches it may change; give back the steps taken.

    On an error the document is half changed: pass a copy. An operation between a section and a switch is
    taken as its parts, so that every returned step concerns one of them only.

    Raises :class:`PatchError`, which names the operation, its path and the reason.
    """
    try:
        taken = list(_apply_all(document, patch, adapt))
        json_documents.encode([[document]])
    except (TypeError, RecursionError):
        raise PatchError(f"{patch.source}: the values would nest too deep to be written as JSON") from None
    return taken


MAX_COPIED_BYTES: Final = 64 << 20
"""How much all ``copy`` and ``move`` operations of a patch may copy, as JSON: each may double the values."""


def _apply_all(document: json_types.JsonObject, patch: ValuesPatch, adapt: Adapt) -> Iterator[PatchStep]:
    copied = 0
    for index, item in enumerate(patch.steps()):
        try:
            copied += _copied_bytes(document, item)
            if copied > MAX_COPIED_BYTES:
                raise StepError(f"all copies and moves of the patch are over {MAX_COPIED_BYTES >> 20} MiB")
            for adapted in adapt(document, item):
                for part in _split(document, adapted):
                    apply_step(document, part)
                    yield part
        except StepError as error:
            what = f"{item.kind} {json_pointers.render(item.path)}"
            raise PatchError(f"{patch.source}, operation [{index}] ({what}): {error}") from None


def _copied_bytes(document: json_types.JsonObject, item: PatchStep) -> int:
    if item.origin is None:
        return 0
    # A move keeps a copy of the sections that it concerns, for the case that it does not apply.
    pointers = [item.origin] if item.kind == "copy" else [(root,) for root in {p[0] for p in item.pointers}]
    copied = [
        json_pointers.find(document, pointer)
        for pointer in pointers
        if json_pointers.exists(document, pointer)
    ]
    return sum(len(json_documents.encode([value])) for value in copied)


class StepError(errors.AddonOperatorError):
    """An operation does not apply to the document; the text is the reason alone."""


def apply_step(document: json_types.JsonObject, item: PatchStep) -> None:
    """Apply one operation in place; the document is unchanged if it does not apply.

    The sections of the document always exist and stay mappings: removing one empties it.

    Raises :class:`StepError`.
    """
    if item.kind == "move" or (len(item.path) == 1 and item.kind != "test"):
        _apply_guarded(document, item)
    else:
        _run(document, item)


def _apply_guarded(document: json_types.JsonObject, item: PatchStep) -> None:
    roots = {pointer[0] for pointer in item.pointers}
    before = {root: document[root] for root in roots if root in document}
    copies = {root: json_documents.copy_value(value) for root, value in before.items()}
    document.update(copies)
    try:
        _run(document, item)
        for pointer in item.pointers:
            if len(pointer) == 1:
                _check_root(document, pointer[0])
    except StepError:
        for root in roots:
            document.pop(root, None)
        document.update(before)
        raise


def _check_root(document: json_types.JsonObject, root: str) -> None:
    if is_switch((root,)):
        if not isinstance(document.get(root, False), bool):
            raise StepError("a switch must be true or false")
    elif not isinstance(document.setdefault(root, {}), dict):
        raise StepError("a section must be a mapping")


def _run(document: json_types.JsonObject, item: PatchStep) -> None:
    try:
        jsonpatch.apply_patch(document, [item.operation], in_place=True)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException):
        raise StepError(_reason(document, item)) from None


def _reason(document: json_types.JsonObject, item: PatchStep) -> str:
    for pointer in (item.origin, item.path if item.kind in _NEEDS_TARGET else item.path[:-1]):
        missing = None if pointer is None else _first_missing(document, pointer)
        if missing is not None:
            return f"there is nothing at {json_pointers.render(missing)!r}"
    for pointer in (item.origin, item.path):
        if pointer is not None and (held := _held_by_scalar(document, pointer)):
            return held
    if item.kind == "test":
        return "the value there is different"
    if item.kind == "move" and item.origin is not None and json_pointers.is_prefix(item.origin, item.path):
        return "a value cannot move into itself"
    return f"{json_pointers.render(item.path[-1:])!r} does not exist there"


def _held_by_scalar(document: json_types.JsonValue, pointer: json_pointers.Tokens) -> str:
    """Say what stands where something should be that holds the place; empty if it does hold it."""
    value = json_pointers.find(document, pointer[:-1], json_pointers.ABSENT)
    if value is json_pointers.ABSENT or isinstance(value, dict | list):
        return ""
    kind = next((name for type_, name in _SCALARS if isinstance(value, type_)), "a string")
    return f"there is {kind} at {json_pointers.render(pointer[:-1])!r}, and not a mapping or a list"


_SCALARS: Final = ((type(None), "null"), (bool, "a boolean"), ((int, float), "a number"))
_NEEDS_TARGET: Final = frozenset({"remove", "replace", "test"})


def _first_missing(
    document: json_types.JsonValue, pointer: json_pointers.Tokens
) -> json_pointers.Tokens | None:
    for length in range(1, len(pointer) + 1):
        if not json_pointers.exists(document, pointer[:length]):
            return pointer[:length]
    return None


def _split(document: json_types.JsonObject, item: PatchStep) -> Iterable[PatchStep]:
    if item.origin is None or item.origin[0] == item.path[0]:
        return [item]
    if not json_pointers.exists(document, item.origin):
        raise StepError(f"there is nothing at {json_pointers.render(item.origin)!r}")
    value = json_pointers.find(document, item.origin)
    add: Operation = {"op": "add", "path": json_pointers.render(item.path), "value": value}
    remove: Operation = {"op": "remove", "path": json_pointers.render(item.origin)}
    return [step(remove), step(add)] if item.kind == "move" else [step(add)]
