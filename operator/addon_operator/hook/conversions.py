"""Conversions of custom resources: a function for each step, called with one object after the other."""

from __future__ import annotations

from addon_operator.hook import failures, values

TYPE_CHECKING = False  # To import typing takes longer than the whole library.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from addon_operator.hook import contexts
    from addon_operator.hook.aliases import Convert
    from addon_operator.kernel.json_types import JsonObject, JsonValue

TYPE = "Conversion"
STEPS: dict[tuple[str, str], Convert] = {}
"""The functions of the hook."""
_CHANGEABLE = ("labels", "annotations")


def convert(from_version: str, to_version: str) -> Callable[[Convert], Convert]:
    """Let the function convert objects from one version to another, which the configuration names, too.

    It changes the object that it is given, or returns another one. The library sets ``apiVersion`` and
    keeps the metadata, of which labels and annotations may change. A :class:`.HookError` that the function
    raises is the answer: the user who asked for the object sees it.
    """

    def remember(step: Convert) -> Convert:
        if STEPS.setdefault((from_version, to_version), step) is not step:
            raise failures.HookError(f"two functions convert {from_version} to {to_version}; remove one")
        return step

    return remember


def answer(context: contexts.Context) -> JsonObject:
    """Return what is answered in a context of the type ``Conversion``.

    Raises :class:`.HookError` if no function does this step.
    """
    step = _step(context.from_version, context.to_version)
    request = context.review
    version = request["desiredAPIVersion"]
    try:
        converted: list[JsonValue] = [_converted(step, item, version) for item in request["objects"]]
    except failures.HookError as error:
        return {"failedMessage": str(error)}
    return {"convertedObjects": converted}


def _step(from_version: str, to_version: str) -> Convert:
    found = STEPS.get((from_version, to_version)) or STEPS.get((_bare(from_version), _bare(to_version)))
    if found is None:
        known = ", ".join(f"{before} to {after}" for before, after in STEPS) or "none"
        raise failures.HookError(
            f"no function converts {from_version} to {to_version}, only {known}; "
            "write one with @hook.convert(FROM, TO)"
        )
    return found


def _bare(version: str) -> str:
    return version.rpartition("/")[2]


def _converted(step: Convert, item: dict[str, Any], version: str) -> JsonValue:
    kind, metadata = item["kind"], dict(item.get("metadata") or {})
    changed = step(item)
    result = dict(item if changed is None else changed)
    own = result.get("metadata") or {}
    held = {key: value for key, value in metadata.items() if key not in _CHANGEABLE}
    result["metadata"] = held | {key: own[key] for key in _CHANGEABLE if own.get(key)}
    return values.json_copy(result | {"apiVersion": version, "kind": kind}, "a converted object")
