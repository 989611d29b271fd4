"""What the worker is asked beside the checks of values; rules are evaluated by one evaluator.

What few questions need is imported with the first of them, so that a worker is there at once and small.
"""

import functools
import pathlib
from typing import Any

import orjson

from addon_operator.documents import document_stream
from addon_operator.kernel import errors
from addon_operator.kernel.json_types import JsonObject, KubernetesObject
from addon_operator.values.schema import cel_rules


@functools.cache
def evaluator() -> cel_rules.CelEvaluator:
    """Return what evaluates rules in this process; it keeps each rule that it compiled."""
    return cel_rules.CelEvaluator()


def hello() -> None:
    """Answer as soon as this module is there, so that the first question needs no time for that."""


def documents(text: str) -> dict[str, Any]:
    """Return the documents of what a hook wrote, or the number of the first wrong one and why it is wrong."""
    try:
        found = document_stream.load_stream(text)
    except document_stream.StreamError as error:
        return {"error": [error.index, error.reason]}
    for index, document in enumerate(found):
        try:
            orjson.dumps(document)
        except orjson.JSONEncodeError as error:
            return {"error": [index, f"the API server cannot read it as JSON: {error}"]}
    return {"documents": found}


def judged(healthy: str, failed: str, objects: list[KubernetesObject]) -> list[tuple[str, str]]:
    """Return how objects are by a rule: state and message of each."""
    from addon_operator.modules.health import health_rules

    return [health_rules.judged(healthy, failed, each, evaluator()) for each in objects]


def index_entry(path: pathlib.Path, name: str, version: str) -> JsonObject:
    """Return what the ``index.yaml`` in a file says of a version; raises :class:`.ConfigurationError`."""
    from addon_operator.modules import chart_index

    try:
        return chart_index.find(path.read_bytes(), name, version)
    except OSError as error:
        raise errors.ConfigurationError(f"index.yaml cannot be read: {error.strerror}") from None
