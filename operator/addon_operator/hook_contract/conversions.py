"""Conversions of custom resources, pure: by which steps objects come to a version, and what must not change.

Source: "Versions in CustomResourceDefinitions" of the Kubernetes documentation, and BINDING_CONVERSION of
shell-operator's.
"""

import collections
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec
import orjson

from addon_operator.documents import json_documents
from addon_operator.kernel import errors, shown_texts
from addon_operator.kernel.json_types import JsonObject, JsonValue

NOTE: Final = "addon-operator.io/conversion"
"""Annotation of a definition whose objects hooks convert: its ``spec.conversion`` is the operator's."""
MAX_MESSAGE: Final = 2000
"""How many characters of a hook's message reach the user."""
MAX_OBJECT_BYTES: Final = 3 << 20
"""Of a converted object, as JSON: no API server takes or stores a larger one."""
_CHANGEABLE: Final = frozenset({"labels", "annotations"})
_SHOWN: Final = 20

Edge: TypeAlias = tuple[str, str]
"""From one ``group/version`` to another."""


class ConversionError(errors.AddonOperatorError):
    """Objects cannot be converted; the message is for the user who asked for them."""


class NoChainError(ConversionError):
    """No declared conversions lead from one version to another."""

    def __init__(self, crd_name: str, before: str, after: str, declared: Iterable[Edge]) -> None:
        known = [f"{one} to {other}" for one, other in declared]
        more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
        said = f"declared are {', '.join(known[:_SHOWN])}{more}" if known else "no hook declares any"
        super().__init__(f"no conversions of {crd_name} lead from {before} to {after}; {said}")


def next_versions(edges: Iterable[Edge], wanted: str) -> dict[str, str]:
    """Return for each version from which ``wanted`` can be reached the next one on the shortest way there.

    Among ways of one length the edge that comes first counts. The versions stand in the order of their
    distance, the nearest first.
    """
    into: dict[str, list[str]] = collections.defaultdict(list)
    for before, after in edges:
        into[after].append(before)
    found: dict[str, str] = {}
    reached = collections.deque([wanted])
    while reached:
        after = reached.popleft()
        for before in into.get(after, ()):
            if before != wanted and before not in found:
                found[before] = after
                reached.append(before)
    return found


class Step(msgspec.Struct, frozen=True):
    """One run of a hook, for all objects that have this version then."""

    before: str
    after: str


def steps(edges: Sequence[Edge], versions: Iterable[str], wanted: str, crd_name: str) -> list[Step]:
    """Return the runs that bring objects of these versions to ``wanted``, in their order.

    Objects that meet on the way go on together. Raises :class:`NoChainError`.
    """
    towards = next_versions(edges, wanted)
    needed: set[str] = set()
    for version in versions:
        while version != wanted and version not in needed:
            if version not in towards:
                raise NoChainError(crd_name, version, wanted, edges)
            needed.add(version)
            version = towards[version]  # noqa: PLW2901 - it walks along the way
    return [Step(version, towards[version]) for version in reversed(towards) if version in needed]


class ConversionAnswer(msgspec.Struct, frozen=True):
    """What a hook answers."""

    objects: Sequence[JsonObject] = ()
    failed_message: str = ""
    """Why it does not convert them, for the user; empty if it does."""


def read_answer(text: str, before: Sequence[JsonObject], version: str) -> ConversionAnswer:
    """Read what a hook wrote to its file for these objects, which are wanted in ``version``.

    Raises :class:`ConversionError` that says what is wrong with it.
    """
    most = len(before) * MAX_OBJECT_BYTES + MAX_OBJECT_BYTES
    if len(text) > most:
        raise ConversionError(
            f"its answer for {_count(len(before))} has {len(text)} characters, and may have {most}"
        )
    answer = parse_answer(text)
    if not answer.failed_message:
        check_converted(before, answer.objects, version)
    return answer


def parse_answer(text: str) -> ConversionAnswer:
    """Return what an answer says; raises :class:`ConversionError` if it has not the form of one."""
    if not text or text.isspace():
        raise ConversionError(
            'its answer is empty; write {"convertedObjects": […]} or {"failedMessage": "…"}'
        )
    try:
        document = json_documents.decode_unambiguous(text)
    except json_documents.AmbiguousError as error:
        raise ConversionError(f"in its answer, {error}") from None
    except ValueError as error:
        raise ConversionError(f"its answer is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise ConversionError("its answer is not a mapping")
    message, listed = document.get("failedMessage"), document.get("convertedObjects")
    if message is not None and not isinstance(message, str):
        raise ConversionError("failedMessage in its answer is not a text")
    if message:
        return ConversionAnswer(failed_message=shown_texts.shown(message[:MAX_MESSAGE]))
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise ConversionError("its answer has no list convertedObjects of objects, and no failedMessage")
    return ConversionAnswer(listed)


def check_converted(before: Sequence[JsonObject], after: Sequence[JsonObject], version: str) -> None:
    """Raise :class:`ConversionError` if the objects are not the same ones, now of ``version``."""
    if len(before) != len(after):
        raise ConversionError(f"it returned {_count(len(after))} for {_count(len(before))}")
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        problem = _problem(old, new, version)
        if problem:
            raise ConversionError(f"its convertedObjects[{number}] ({_name(old)}) {problem}")


def too_deep(objects: Iterable[JsonObject]) -> str:
    """Say which objects cannot be written, as they nest too deep."""
    found = [_name(each) for each in objects if not json_documents.can_be_written(each)]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{found[0] if found else 'an object'}{more} nests too deep to be handed to a hook"


def _problem(old: JsonObject, new: JsonObject, version: str) -> str:
    if new.get("apiVersion") != version:
        return f"is of apiVersion {_shown(new.get('apiVersion'))} and not {version}"
    if new.get("kind") != old.get("kind"):
        return f"is of kind {_shown(new.get('kind'))} and not {_shown(old.get('kind'))}"
    if (size := len(orjson.dumps(new))) > MAX_OBJECT_BYTES:
        return f"has {size} bytes, and may have {MAX_OBJECT_BYTES}, as an API server stores no larger one"
    before, after = _held(old), _held(new)
    for key in sorted(before.keys() | after.keys()):
        if not json_documents.equal(before.get(key), after.get(key)):
            was = "removes" if key not in after else "changes" if key in before else "adds"
            return f"{was} metadata.{key[:_SHOWN]}; only labels and annotations may change"
    return ""


def _held(item: JsonObject) -> JsonObject:
    """Return the metadata that has to stay."""
    metadata = item.get("metadata")
    if not isinstance(metadata, dict):
        return {}
    return {key: value for key, value in metadata.items() if key not in _CHANGEABLE}


def _name(item: JsonObject) -> str:
    metadata = _held(item)
    return (
        "/".join(str(metadata[key]) for key in ("namespace", "name") if metadata.get(key)) or "without name"
    )


def _count(number: int) -> str:
    return f"{number} object" if number == 1 else f"{number} objects"


def _shown(value: JsonValue) -> str:
    return value[:253] if isinstance(value, str) else "none"
