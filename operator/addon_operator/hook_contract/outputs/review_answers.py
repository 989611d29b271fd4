"""What a hook answers to a review of the API server: allowed or not, a message, warnings, a JSON patch."""

import base64
import binascii
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

import msgspec

from addon_operator.documents import json_documents, json_pointers
from addon_operator.hook_contract import violations
from addon_operator.hook_contract.configuration import webhook_bindings
from addon_operator.kernel import errors, shown_texts
from addon_operator.kernel.json_types import JsonObject, JsonValue

MAX_BYTES: Final = 3 << 20
"""Of an answer: what the API server takes of any request."""
MAX_OPERATIONS: Final = 20_000
"""Of a JSON patch."""
MESSAGE_CHARS: Final = 4096
WARNING_CHARS: Final = 4096
"""Of all warnings of one request."""
MAX_RESPONSES: Final = 100
"""In one answer."""

_KEYS: Final = ("allowed", "message", "warnings", "patch")
_SHOWN: Final = 60
_CUT_CHARS: Final = 256
_REST_CHARS: Final = 40
"""For the text that says how many warnings are left out."""
_UNKNOWN_MAX: Final = 5

PatchOperation: TypeAlias = Mapping[str, Any]


class AnswerError(errors.AddonOperatorError):
    """A hook's answer is missing, or has not the form that it needs."""


class AdmissionAnswer(msgspec.Struct, frozen=True):
    """Whether a request may be done, and how."""

    allowed: bool = True
    message: str = ""
    """Why it is denied, for the user."""
    warnings: tuple[str, ...] = ()
    """What ``kubectl`` shows besides."""
    patch: tuple[PatchOperation, ...] = ()
    """RFC 6902; only of a mutating hook that allows."""


ALLOWED: Final = AdmissionAnswer()


def parse(text: str, asked: webhook_bindings.ReviewType) -> AdmissionAnswer:
    """Read an answer: one response, or several, as a list or one a line; one that denies is enough.

    Raises :class:`AnswerError` that says where it is wrong.
    """
    if not text or text.isspace():
        raise AnswerError('it is empty; write one such as {"allowed": true}')
    if len(text) > MAX_BYTES:
        raise AnswerError(f"it has {len(text)} characters, and may have {MAX_BYTES}")
    document = _document(text)
    if not isinstance(document, list):
        return _joined([_response(document, "", asked)])
    if not 0 < len(document) <= MAX_RESPONSES:
        raise AnswerError(_number_of(len(document)))
    return _joined([_response(item, f"[{index}]", asked) for index, item in enumerate(document)])


def _document(text: str) -> JsonValue:
    try:
        return _unambiguous(text, "")
    except ValueError as error:
        # A library of Deckhouse appends a line for each: the first alone may allow what another denies.
        lines = [line for line in text.split("\n") if line and not line.isspace()]
        if len(lines) > MAX_RESPONSES:
            raise AnswerError(_number_of(len(lines))) from None
        with contextlib.suppress(ValueError):
            if len(lines) > 1:
                return [_unambiguous(line, f"[{index}]") for index, line in enumerate(lines)]
        raise AnswerError(f"it is not JSON: {error}") from None


def _unambiguous(text: str | bytes, where: str) -> JsonValue:
    """Return a document; raises :class:`AnswerError` if it says two things, and :class:`ValueError`."""
    try:
        return cast("JsonValue", json_documents.decode_unambiguous(text))
    except json_documents.AmbiguousError as error:
        # A text of the user that the hook did not quote must not replace what the hook says.
        raise AnswerError(_at(where, str(error))) from None


def _joined(responses: list[AdmissionAnswer]) -> AdmissionAnswer:
    denied = [response.message for response in responses if not response.allowed]
    patch = tuple(operation for response in responses for operation in response.patch)
    if len(patch) > MAX_OPERATIONS:
        raise AnswerError(_too_many(len(patch)))
    warnings = tuple(text for response in responses for text in response.warnings)
    return AdmissionAnswer(
        allowed=not denied,
        message="; ".join(filter(None, denied))[:MESSAGE_CHARS],
        warnings=shown_warnings(warnings),
        patch=() if denied else patch,
    )


def _response(document: JsonValue, where: str, asked: webhook_bindings.ReviewType) -> AdmissionAnswer:
    if not isinstance(document, dict):
        raise AnswerError(_at(where, 'it is not a mapping; write one such as {"allowed": true}'))
    allowed, message = document.get("allowed"), document.get("message") or ""
    if allowed is None and message:
        allowed = False
    if not isinstance(allowed, bool):
        what = "the key 'allowed' is missing" if allowed is None else "'allowed' is not true or false"
        raise AnswerError(_at(where, "; ".join((what, "write true or false", *_unknown(document)))))
    if not isinstance(message, str):
        raise AnswerError(_at(where, "'message' is not a text"))
    patch = tuple(_patch(document, where, asked))
    return AdmissionAnswer(
        allowed,
        shown_texts.shown(message[:MESSAGE_CHARS]),
        (*(_at(where, text) for text in _unknown(document)), *_warnings(document, where)),
        patch if allowed else (),
    )


def _unknown(document: JsonObject) -> Iterator[str]:
    for key in [key for key in document if key not in _KEYS][:_UNKNOWN_MAX]:
        yield f"the key {_shown(key)} of the hook's answer is not known; {violations.nearest(key, _KEYS)}"


def _warnings(document: JsonObject, where: str) -> Iterator[str]:
    listed = document.get("warnings") or []
    if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        raise AnswerError(_at(where, "'warnings' is not a list of texts"))
    return map(str, listed)


def _patch(document: JsonObject, where: str, asked: webhook_bindings.ReviewType) -> Iterator[PatchOperation]:
    given = document.get("patch")
    if given in (None, "", []):
        return
    if asked is not webhook_bindings.ReviewType.MUTATING:
        key = webhook_bindings.ReviewType.MUTATING.key
        raise AnswerError(_at(where, f"it has a 'patch', and only hooks of {key} change what they review"))
    listed = _decoded(given, where) if isinstance(given, str) else given
    if not isinstance(listed, list):
        raise AnswerError(_at(where, "'patch' is not a list of operations (RFC 6902), nor base64 of one"))
    if len(listed) > MAX_OPERATIONS:
        raise AnswerError(_at(where, _too_many(len(listed))))
    for index, operation in enumerate(listed):
        yield _operation(operation, _at(where, f"patch[{index}]"))


def _decoded(text: str, where: str) -> JsonValue:
    try:
        return _unambiguous(base64.b64decode("".join(text.split()), validate=True), _at(where, "'patch'"))
    except (binascii.Error, ValueError) as error:
        raise AnswerError(_at(where, f"'patch' is not base64 of a JSON patch: {error}")) from None


def _operation(operation: JsonValue, where: str) -> PatchOperation:
    if not isinstance(operation, dict):
        raise AnswerError(f"{where}: it is not a mapping")
    op = operation.get("op")
    if not isinstance(op, str) or op not in json_pointers.PATCH_MEMBERS:
        raise AnswerError(f"{where}: {_shown(op)} is not one of {', '.join(json_pointers.PATCH_MEMBERS)}")
    members = json_pointers.PATCH_MEMBERS[op]
    for member in members:
        if member not in operation:
            raise AnswerError(f"{where} ({op}): the key {member!r} is missing")
        if member != "value":
            _check_pointer(operation[member], f"{where}.{member}")
    return {"op": op, **{member: operation[member] for member in members}}


def _check_pointer(pointer: JsonValue, where: str) -> None:
    if not isinstance(pointer, str):
        raise AnswerError(f"{where}: it is not a text")
    try:
        json_pointers.parse(pointer)
    except ValueError as error:
        raise AnswerError(f"{where}: {_shown(pointer)} is not a JSON pointer: {error}") from None


def _at(where: str, text: str) -> str:
    return f"{where}: {text}" if where else text


def _number_of(responses: int) -> str:
    return f"it is a list of {responses} responses; write 1 to {MAX_RESPONSES}"


def _too_many(count: int) -> str:
    return f"its patch has {count} operations, and may have {MAX_OPERATIONS}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def shown_warnings(texts: Iterable[str]) -> tuple[str, ...]:
    """Return what of these the API server shows, each on one line; the last says how many are left out.

    It shows each text once and drops one with control characters, such as a line break. When the texts of an
    answer are too long together, it cuts each after 256 characters, and drops what comes after the limit.
    """
    lines = [*dict.fromkeys(filter(None, map(shown_texts.shown_line, texts)))]
    if sum(map(len, lines)) <= WARNING_CHARS:
        return tuple(lines)
    fitting, left = list[str](), WARNING_CHARS - _REST_CHARS
    for line in lines:
        cut = line if len(line) <= _CUT_CHARS else line[: _CUT_CHARS - 1] + "…"
        left -= len(cut)
        if left < 0:
            return (*fitting, f"{len(lines) - len(fitting)} more warnings are left out")
        fitting.append(cut)
    return tuple(fitting)
