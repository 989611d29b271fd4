"""The state file: what it holds, how it is written, and what is said of one that cannot be used."""

import dataclasses
import os
import pathlib
import re
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict

import orjson

import addon_operator
from addon_operator.kernel import clock, errors, json_types

FORMAT: Final = 1
"""Raised when what is in the file changes so that an older version cannot read it."""
KIND: Final = "addon-operator plan state"
MAX_BYTES: Final = 64 << 20
"""How large a state file may be."""
_MODE: Final = 0o600
_WRITE: Final = "write one with 'addon-operator plan --record'"
_AGAIN: Final = "record it again with 'addon-operator plan --record'"
_RECORD: Final = re.compile(r"/api/v1/namespaces/[^/]+/(?:secrets|configmaps)/[^/]+")
"""Where Helm keeps a revision."""


class PlanStateError(errors.ConfigurationError):
    """A state file cannot be used."""


class KeptRelease(TypedDict):
    """One revision of a release."""

    path: str
    """Of its record in the API."""
    labels: Mapping[str, str]
    manifest: str | None
    """``None`` if the record cannot be decoded."""
    hooks: Sequence[str]
    server_side: bool


class HookValues(TypedDict):
    """What hooks gave."""

    source: str
    """One of :class:`.given_values.Source`."""
    operator: str | None
    """Who told, if an operator did."""
    releases: Mapping[str, int]
    shared: Sequence[Any]
    switches: Mapping[str, bool]
    modules: Mapping[str, Sequence[Any]]


@dataclasses.dataclass(frozen=True, slots=True)
class PlanState:
    """What a plan needs of a cluster, without a secret."""

    recorded_at: float
    """Seconds since the epoch."""
    namespace: str
    """That of the operator."""
    hash_key: str
    """Of the keyed hashes of Secrets' data that charts render to; hexadecimal."""
    settings: Mapping[str, str]
    """Texts of settings that decide what a plan says, by variable; without defaults."""
    answers: Mapping[str, json_types.JsonObject]
    """What the API server says at ``/version``, ``/api`` and ``/apis``."""
    objects: Mapping[str, json_types.JsonObject]
    """Objects by their path; of resources of releases only that they are there."""
    absent: Sequence[str]
    """Paths of objects that are not there."""
    collections: Sequence[str]
    """Paths of collections of which all objects are in the file."""
    releases: Sequence[KeptRelease]
    hook_values: HookValues
    ignored: Sequence[str] = ()
    """Releases that are never removed."""
    hidden: Sequence[str] = ()
    """Places of values with stand-ins, as JSON pointers with their section's key."""
    unplannable: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Modules whose manifests could not be recorded, as they did not render then, with the error of that."""
    notes: Sequence[str] = ()
    """What had to be said when it was recorded."""
    operator: str = addon_operator.__version__
    """The version that recorded it."""


def write(state: PlanState, path: pathlib.Path) -> None:
    """Write the file whole, or leave what is there; only its owner may read it.

    Raises :class:`PlanStateError`.
    """
    document = {"kind": KIND, "format": FORMAT, **dataclasses.asdict(state)}
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if len(text) > MAX_BYTES:
        raise PlanStateError(
            f"{path} would have {len(text) >> 20} MiB, and a state file may have {MAX_BYTES >> 20}; "
            "plan with the cluster itself"
        )
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text)
            pathlib.Path(temporary).chmod(_MODE)
            pathlib.Path(temporary).replace(path)
        except BaseException:
            pathlib.Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise PlanStateError(f"{path} cannot be written: {error.strerror}") from None


def read(path: pathlib.Path) -> PlanState:
    """Read a state file; raises :class:`PlanStateError` with one sentence."""
    document = _document(path)
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise PlanStateError(f"{path} is JSON, but not a state file; {_WRITE}")
    written_by = f"version {document.get('operator')}"
    if (format_ := document.get("format")) != FORMAT:
        raise PlanStateError(
            f"{path} was written by {written_by} in format {format_}, and this version "
            f"({addon_operator.__version__}) reads format {FORMAT}; record it again with this version"
        )
    fields = dataclasses.fields(PlanState)
    if missing := [each.name for each in fields if _is_needed(each) and each.name not in document]:
        raise PlanStateError(
            f"{path} lacks {', '.join(missing)}: it was edited, or {written_by} wrote it, and this is "
            f"{addon_operator.__version__}; record it again with this version"
        )
    known = {each.name for each in fields}
    try:
        state = PlanState(**{key: value for key, value in document.items() if key in known})
        _check(state)
    except (TypeError, LookupError, ValueError, AttributeError, OverflowError, OSError):
        raise PlanStateError(f"{path} is damaged: something in it was edited; {_AGAIN}") from None
    return state


def _is_needed(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _document(path: pathlib.Path) -> Any:  # noqa: ANN401  # JSON
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise PlanStateError(f"{path} cannot be read: {error.strerror}") from None
    if len(text) > MAX_BYTES:
        raise PlanStateError(f"{path} is larger than {MAX_BYTES >> 20} MiB, so it is not a state file")
    if not text.strip():
        raise PlanStateError(f"{path} is empty; {_AGAIN}")
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if line := _end_of_half(text):
            raise PlanStateError(
                f"{path} is cut off in line {line}: it was not written or copied whole; {_AGAIN}"
            ) from None
        raise PlanStateError(
            f"{path} is not a state file, as it is not JSON from line {error.lineno} on; {_WRITE}"
        ) from None


def _end_of_half(text: bytes) -> int:
    """Return the line in which a document ends that has more to come; 0 if it is wrong before."""
    # Half of a character is at the end, if anywhere.
    whole = text.decode(errors="ignore").rstrip()
    try:
        orjson.loads(whole)
    except orjson.JSONDecodeError as error:
        return error.lineno if text.lstrip().startswith(b"{") and error.pos >= len(whole) else 0
    return 0


def _check(state: PlanState) -> None:
    """Look at the shape of what is read without another look later; raises what a wrong one raises."""
    bytes.fromhex(state.hash_key)
    _strings(state.absent, state.collections, state.ignored, state.hidden, state.notes)
    _strings(
        state.settings.values(),
        state.unplannable.values(),
        state.settings,
        state.answers,
        state.objects,
        [state.namespace],
    )
    clock.rfc3339(state.recorded_at)
    for each in state.releases:
        if _RECORD.fullmatch(each["path"]) is None or not isinstance(each["server_side"], bool):
            raise TypeError
        _strings(each["labels"].values(), each["hooks"], [each["path"], each["manifest"] or ""])
    for body in [*state.answers.values(), *state.objects.values()]:
        body.items()
    _strings([state.hook_values["source"], state.hook_values["operator"] or ""])
    if not all(isinstance(on, bool) for on in state.hook_values["switches"].values()):
        raise TypeError
    if not all(isinstance(number, int) for number in state.hook_values["releases"].values()):
        raise TypeError
    for groups in [state.hook_values["shared"], *state.hook_values["modules"].values()]:
        if not isinstance(groups, list):
            raise TypeError


def _strings(*collections: Any) -> None:  # noqa: ANN401  # JSON
    if not all(isinstance(text, str) for each in collections for text in each):
        raise TypeError
