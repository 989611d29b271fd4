"""What a hook wants to change in the cluster: the documents that it wrote to ``KUBERNETES_PATCH_PATH``.

Source: "Modifying Kubernetes objects" of the shell-operator documentation; ``Apply`` and patches whose items
need a ``value`` only where RFC 6902 does are ours. Messages never contain values of objects, because objects
may be secrets.
"""

import enum
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import msgspec
import orjson

from addon_operator.documents import document_stream, json_pointers
from addon_operator.hook_contract import jq_programs, violations
from addon_operator.hook_contract.configuration import config_schemas
from addon_operator.hook_contract.outputs import object_schemas
from addon_operator.kernel import errors
from addon_operator.kernel.json_types import JsonObject, JsonValue

_OF_SERVER: Final = frozenset({"resourceVersion", "uid", "generation", "creationTimestamp", "managedFields"})
"""What the API server owns in ``metadata``: with it, an object of a snapshot could not be written back."""
_CHECKERS: Final = {name: violations.Checker(schema) for name, schema in object_schemas.BY_OPERATION.items()}


class ObjectOperationError(errors.AddonOperatorError):
    """A document is not an operation; the text names its index and field."""


class IfExists(enum.Enum):
    """What the creation of an object does when there is one already."""

    FAIL = "Create"
    REPLACE = "CreateOrUpdate"
    KEEP = "CreateIfNotExists"


class Propagation(enum.Enum):
    """What becomes of objects that belong to a deleted one; values are those of ``propagationPolicy``."""

    FOREGROUND = "Foreground"
    """They go first, and whoever asked waits for all of them."""
    BACKGROUND = "Background"
    ORPHAN = "Orphan"


class Origin(msgspec.Struct, frozen=True):
    """Which operation it is, for messages."""

    index: int
    """Of the document, from 0."""
    operation: str
    """``Create``, ``MergePatch`` and so on."""
    ignored: tuple[str, ...] = ()
    """Keys of the document that are not known, or are of other operations: a sentence for each."""

    def __str__(self) -> str:
        return f"document [{self.index}] ({self.operation})"


class ObjectTarget(msgspec.Struct, frozen=True):
    """The object that an operation is about."""

    kind: str
    name: str
    """Empty for an object whose name the API server makes from ``generateName``."""
    namespace: str | None = None
    api_version: str | None = None
    """``None``: the one that the API server prefers."""
    subresource: str | None = None
    """Such as ``status``; ``None`` for the object itself."""

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}" + (f", subresource {self.subresource}" if self.subresource else "")


class Create(msgspec.Struct, frozen=True):
    """``Create``, ``CreateOrUpdate``, ``CreateIfNotExists``."""

    origin: Origin
    target: ObjectTarget
    body: JsonObject
    if_exists: IfExists


class Apply(msgspec.Struct, frozen=True):
    """``Apply``: server-side apply."""

    origin: Origin
    target: ObjectTarget
    body: JsonObject
    field_manager: str | None = None
    """``None``: that of the hook."""
    force: bool = False
    """Take fields over from other managers."""


class Delete(msgspec.Struct, frozen=True):
    """``Delete``, ``DeleteInBackground``, ``DeleteNonCascading``."""

    origin: Origin
    target: ObjectTarget
    propagation: Propagation
    ignore_missing: bool = True


class Patch(msgspec.Struct, frozen=True):
    """``MergePatch`` (RFC 7386, a mapping) and ``JSONPatch`` (RFC 6902, a list)."""

    origin: Origin
    target: ObjectTarget
    body: JsonObject | list[JsonValue]
    ignore_missing: bool = False
    ignore_hook_error: bool = False


class JqPatch(msgspec.Struct, frozen=True):
    """``JQPatch``: the object is replaced by what an expression makes of it."""

    origin: Origin
    target: ObjectTarget
    program: str
    ignore_missing: bool = False
    ignore_hook_error: bool = False


LoadDocuments: TypeAlias = Callable[[str], Sequence[JsonValue]]
Operation: TypeAlias = Create | Apply | Delete | Patch | JqPatch


def parse(text: str, source: str, load: LoadDocuments = document_stream.load_stream) -> tuple[Operation, ...]:
    """Read all operations of a text: JSON or YAML documents, one operation each.

    ``load`` reads the documents, see :func:`.load_stream`. Raises
    :class:`ObjectOperationError` for the first wrong document: ``source``, index, field, remedy.
    """
    try:
        documents = load(text)
    except document_stream.DocumentError as error:
        raise ObjectOperationError(f"{source}, {error}") from error
    return tuple(_operation(index, document, source) for index, document in enumerate(documents))


def for_failed_hook(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    """Return the operations that are carried out even though their hook failed.

    Those are patches of the subresource ``status`` with ``ignoreHookError``: a hook can report its failure.
    """
    return tuple(
        operation
        for operation in operations
        if isinstance(operation, Patch | JqPatch)
        and operation.ignore_hook_error
        and operation.target.subresource == "status"
    )


def check_writable(value: JsonValue) -> None:
    """Raise :class:`ObjectOperationError` for what the API server cannot read although it is JSON."""
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise ObjectOperationError(f"the API server cannot read it as JSON: {error}") from error


def _operation(index: int, document: JsonValue, source: str) -> Operation:
    where = f"{source}, document [{index}]"
    if not isinstance(document, dict):
        raise ObjectOperationError(f"{where}: it is not a mapping; write one operation in each document")
    name = _name(document, where)
    schema = object_schemas.BY_OPERATION[name]
    ignored = tuple(violations.unknown_keys(document, schema))
    decoded = _decoded(document, schema, where)
    found = _CHECKERS[name].find(decoded)
    if found:
        # Among what is not known may be what is missing, misspelt.
        raise ObjectOperationError(f"{where} ({name}), {'; '.join(dict.fromkeys([*found, *ignored]))}")
    try:
        check_writable(decoded)
        return _MAKERS[name](Origin(index, name, ignored), decoded)
    except (ObjectOperationError, _FieldError) as error:
        raise ObjectOperationError(f"{where} ({name}), {error}") from error


class _FieldError(errors.AddonOperatorError):
    """A field has the right shape and yet cannot be used."""


def _name(document: JsonObject, where: str) -> str:
    name = document.get("operation")
    if name is None:
        raise ObjectOperationError(
            f"{where}: the key 'operation' is missing; write one of {', '.join(object_schemas.BY_OPERATION)}"
        )
    if not isinstance(name, str) or name not in object_schemas.BY_OPERATION:
        hint = violations.nearest(str(name), tuple(object_schemas.BY_OPERATION))
        raise ObjectOperationError(f"{where}, operation: {name!r} is not known; {hint}")
    return name


def _decoded(document: JsonObject, schema: config_schemas.Schema, where: str) -> JsonObject:
    """Return what the document gives, with what may be a text, ``object`` or a patch, taken out of it."""
    decoded = violations.given(document, schema)
    if (said := document.get(object_schemas.OF_GO_SDK)) is not None:
        decoded.setdefault("ignoreMissingObject", said)
    for key in ("object", "mergePatch", "jsonPatch"):
        text = document.get(key)
        if isinstance(text, str):
            try:
                decoded[key] = _only_document(text)
            except document_stream.DocumentError as error:
                raise ObjectOperationError(f"{where}, {key}: {error}") from error
    body, items = decoded.get("object"), decoded.get("jsonPatch")
    if isinstance(body, dict) and isinstance(metadata := body.get("metadata"), dict):
        given: JsonObject = {key: value for key, value in metadata.items() if value is not None}
        decoded["object"] = {**body, "metadata": given}
    if isinstance(items, list):
        decoded["jsonPatch"] = [_known_members(item) for item in items]
    return decoded


def _only_document(text: str) -> JsonValue:
    documents = document_stream.load_stream(text)
    if len(documents) != 1:
        raise document_stream.DocumentError(f"it holds {len(documents)} documents; write one")
    return documents[0]


def _target(document: JsonObject) -> ObjectTarget:
    return ObjectTarget(
        kind=str(document["kind"]),
        name=str(document["name"]),
        namespace=_text(document, "namespace"),
        api_version=_text(document, "apiVersion"),
        subresource=_subresource(document),
    )


def _target_of_object(document: JsonObject, body: Mapping[str, Any]) -> ObjectTarget:
    metadata = body["metadata"]
    return ObjectTarget(
        kind=body["kind"],
        name=metadata.get("name") or "",
        namespace=metadata.get("namespace") or None,
        api_version=body["apiVersion"],
        subresource=_subresource(document),
    )


def _text(document: JsonObject, key: str) -> str | None:
    return str(document.get(key) or "") or None


def _subresource(document: JsonObject) -> str | None:
    # The Go operator's own hooks write "/status".
    return str(document.get("subresource") or "").removeprefix("/") or None


def _create(origin: Origin, document: JsonObject) -> Operation:
    body, if_exists = _body(document), IfExists(origin.operation)
    target = _target_of_object(document, body)
    may_be_made = if_exists is IfExists.FAIL and "generateName" in body["metadata"]
    if not target.name and not may_be_made:
        raise _FieldError("object.metadata: the key 'name' is missing")
    kept = {key: value for key, value in body["metadata"].items() if key not in _OF_SERVER}
    return Create(origin, target, {**body, "metadata": kept}, if_exists)


def _body(document: JsonObject) -> dict[str, Any]:
    return cast("dict[str, Any]", document["object"])


def _apply(origin: Origin, document: JsonObject) -> Operation:
    body = _body(document)
    target = _target_of_object(document, body)
    if not target.name:
        raise _FieldError("object.metadata: the key 'name' is missing")
    return Apply(origin, target, body, _text(document, "fieldManager"), document.get("force") is True)


def _delete(origin: Origin, document: JsonObject) -> Operation:
    ignore_missing = document.get("ignoreMissingObject", True) is True
    return Delete(origin, _target(document), _PROPAGATIONS[origin.operation], ignore_missing)


def _patch(key: str, origin: Origin, document: JsonObject) -> Operation:
    return Patch(origin, _target(document), cast("Any", document[key]), *_ignored(document))


def _known_members(item: JsonValue) -> JsonValue:
    # RFC 6902 has other members ignored, among them the value that the Go operator demands of a "remove".
    members = json_pointers.PATCH_MEMBERS.get(str(item.get("op"))) if isinstance(item, dict) else None
    if members is None:
        return item
    return {key: value for key, value in cast("JsonObject", item).items() if key in ("op", *members)}


def _jq_patch(origin: Origin, document: JsonObject) -> Operation:
    program = str(document["jqFilter"])
    try:
        jq_programs.check(program)
    except jq_programs.JqError as error:
        raise _FieldError(f"jqFilter: {error}") from error
    return JqPatch(origin, _target(document), program, *_ignored(document))


def _ignored(document: JsonObject) -> tuple[bool, bool]:
    return document.get("ignoreMissingObject") is True, document.get("ignoreHookError") is True


_PROPAGATIONS: Final[Mapping[str, Propagation]] = {
    "Delete": Propagation.FOREGROUND,
    "DeleteInBackground": Propagation.BACKGROUND,
    "DeleteNonCascading": Propagation.ORPHAN,
}
_MAKERS: Final[Mapping[str, Callable[[Origin, JsonObject], Operation]]] = {
    **{policy.value: _create for policy in IfExists},
    **dict.fromkeys(_PROPAGATIONS, _delete),
    "Apply": _apply,
    "MergePatch": functools.partial(_patch, "mergePatch"),
    "JSONPatch": functools.partial(_patch, "jsonPatch"),
    "JQPatch": _jq_patch,
}
