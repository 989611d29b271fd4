"""What a hook wants to export: the operations that it wrote to ``METRICS_PATH``.

Source: "Custom metrics" and "Grouped metrics" of the addon-operator documentation.
"""

import enum
import itertools
import sys
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, cast

import msgspec

from addon_operator.documents import document_stream
from addon_operator.hook_contract import violations
from addon_operator.hook_contract.configuration import config_schemas
from addon_operator.kernel import errors, names
from addon_operator.kernel.json_types import JsonObject, JsonValue


class MetricOperationError(errors.AddonOperatorError):
    """A document is not an operation on a metric; the text names its index and field."""


class MetricAction(enum.StrEnum):
    """What is done to a series; the first use also decides the type of the metric."""

    ADD = "add"
    """Raise a counter."""
    SET = "set"
    """Set a gauge."""
    OBSERVE = "observe"
    """Count a value in a histogram."""


class MetricChange(msgspec.Struct, frozen=True):
    """A new value for one series."""

    index: int
    """Of the document, from 0."""
    action: MetricAction
    name: str
    value: float
    labels: Mapping[str, str]
    """As the hook wrote them: without ``hook`` and ``module``."""
    buckets: tuple[float, ...] | None = None
    """Upper bounds, ascending, without +Inf; ``None`` if the hook gave none."""
    group: str = ""
    """Empty: the series is in no group and never expires."""
    ignored: tuple[str, ...] = ()
    """Keys of the document that are not known: a sentence for each."""


class Expire(msgspec.Struct, frozen=True):
    """Remove all series of a group."""

    index: int
    group: str
    ignored: tuple[str, ...] = ()


Operation: TypeAlias = MetricChange | Expire

EXPIRE: Final = "expire"
"""The action that removes all series of a group."""
_NAME: Final = {"type": "string", "minLength": 1, "format": "metric-name"}
# What is not a number was not meant for people: it may be anything that the hook had at hand.
_NUMBER: Final = {
    "type": "number",
    "minimum": -sys.float_info.max,
    "maximum": sys.float_info.max,
    "x-secret": True,
}
_SCHEMA: Final = config_schemas.mapping(
    {
        "name": _NAME,
        "action": {"enum": [*MetricAction, EXPIRE]},
        **dict.fromkeys(("value", "add", "set"), _NUMBER),
        "buckets": config_schemas.listing(_NUMBER, at_least=1),
        "labels": {
            "type": "object",
            "propertyNames": {"format": "metric-label"},
            "additionalProperties": config_schemas.TEXT,
        },
        "group": config_schemas.TEXT,
    }
)
_CHECKER: Final = violations.Checker(_SCHEMA)
_SHORTCUTS: Final = (MetricAction.ADD, MetricAction.SET)


def parse(text: str, source: str) -> tuple[Operation, ...]:
    """Read all operations of a text: JSON documents, one operation each.

    Raises :class:`MetricOperationError` for the first wrong document: ``source``, index, field, remedy.
    """
    try:
        documents = document_stream.load_json_stream(text)
    except document_stream.StreamError as error:
        raise MetricOperationError(f"{source}, {error}") from error
    return tuple(
        _operation(index, document, f"{source}, document [{index}]")
        for index, document in enumerate(documents)
    )


def is_one(document: JsonObject) -> bool:
    """Say whether a JSON object is an operation on a metric, and hardly anything else."""
    is_change = "name" in document and ("set" in document or "add" in document or "action" in document)
    return is_change and not _CHECKER.find(document)


def _operation(index: int, document: JsonValue, where: str) -> Operation:
    if not isinstance(document, dict):
        raise MetricOperationError(f"{where}: it is not a mapping; write one operation in each document")
    ignored = tuple(violations.unknown_keys(document, _SCHEMA))
    document = _without_unset(document)
    wrong = _CHECKER.find(document) or [*_contradictions(document)]
    if wrong:
        # Among what is not known may be what is missing, misspelt.
        raise MetricOperationError(f"{where}, {'; '.join(dict.fromkeys([*wrong, *ignored]))}")
    group = str(document.get("group", ""))
    if document.get("action") == EXPIRE:
        return Expire(index, group, ignored)
    action, value = _action_and_value(document)
    return MetricChange(
        index=index,
        action=action,
        name=str(document["name"]),
        value=float(cast("float", value)),
        labels=cast("dict[str, str]", document.get("labels", {})),
        buckets=tuple(map(float, _numbers(document, "buckets"))) or None,
        group=group,
        ignored=ignored,
    )


def _without_unset(document: JsonObject) -> JsonObject:
    """Return what the document gives, without the empty name that Go writes for an ``expire``.

    A label that is null has no value, as for the Go operator: without it, the series would have other labels
    than the metric has elsewhere.
    """
    given = violations.given(document, _SCHEMA)
    if given.get("action") == EXPIRE and given.get("name") == "":
        del given["name"]
    if isinstance(labels := given.get("labels"), dict):
        given["labels"] = {name: "" if value is None else value for name, value in labels.items()}
    return given


def _action_and_value(document: JsonObject) -> tuple[MetricAction, JsonValue]:
    """Return the action and its value, written out or as a shortcut."""
    for shortcut in _SHORTCUTS:
        if shortcut in document:
            return shortcut, document[shortcut]
    return MetricAction(str(document["action"])), document["value"]


def _contradictions(document: JsonObject) -> Iterator[str]:
    """Yield what the shape of the document cannot say."""
    if document.get("action") == EXPIRE:
        if not document.get("group"):
            yield "group: 'expire' needs a group; series without a group live until the operator restarts"
        return
    if "name" not in document:
        yield "the key 'name' is missing"
    yield from _action_violations(document)
    if document.get("action") == MetricAction.OBSERVE and "le" in cast(
        "JsonObject", document.get("labels", {})
    ):
        yield "labels: the buckets of a histogram have the label 'le'; rename yours"
    yield from _label_violations(document)
    yield from _bucket_violations(document)


def _label_violations(document: JsonObject) -> Iterator[str]:
    """Yield which labels are one for scrapers that do not take all of UTF-8: these would take nothing."""
    first: dict[str, str] = {}
    for name in cast("JsonObject", document.get("labels", {})):
        other = first.setdefault(names.of_prometheus(name).replace(":", "_"), name)
        if other != name:
            yield f"labels: {other!r} and {name!r} are the same for many scrapers; rename one of them"


def _action_violations(document: JsonObject) -> Iterator[str]:
    shortcuts = [key for key in _SHORTCUTS if key in document]
    if len(shortcuts) > 1 or (shortcuts and "value" in document):
        yield f"{shortcuts[-1]}: there is another value; write 'action' and 'value', once"
    elif shortcuts and document.get("action", shortcuts[0]) != shortcuts[0]:
        yield f"{shortcuts[0]}: the action is {document['action']!r}; write 'action' and 'value'"
    elif not shortcuts and "action" not in document:
        yield "the key 'action' is missing; write one of add, set, observe, expire"
    elif not shortcuts and "value" not in document:
        yield "the key 'value' is missing"
    else:
        action, value = _action_and_value(document)
        if action is MetricAction.ADD and cast("float", value) < 0:
            yield "value: a counter cannot go down; write a gauge with the action 'set'"


def _bucket_violations(document: JsonObject) -> Iterator[str]:
    if "buckets" not in document:
        return
    if document.get("action") != MetricAction.OBSERVE:
        yield "buckets: only the action 'observe' has them; remove them"
    bounds = _numbers(document, "buckets")
    if any(left >= right for left, right in itertools.pairwise(bounds)):
        yield "buckets: each bound must be larger than the one before it"


def _numbers(document: JsonObject, key: str) -> list[float]:
    return cast("list[float]", document.get(key) or [])
