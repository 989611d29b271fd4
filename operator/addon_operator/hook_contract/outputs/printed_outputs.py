"""What the author of a hook may not have meant: what it printed that belongs into a file, and keys twice."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from addon_operator.documents import document_stream, json_documents, json_pointers
from addon_operator.hook_contract.outputs import metric_operations, object_schemas
from addon_operator.kernel import json_types

READ_BYTES: Final = 64 * 1024
"""So much of a hook's standard output is looked at."""
_MOST_TEXTS: Final = 20
"""After so many lines that begin like JSON and are none, the output is a log."""
_BEGINNING: Final = re.compile(r"^[ \t]*(?=[\[{])", re.MULTILINE)
_OPERATION: Final = re.compile(r"^operation:[ \t]*[\"']?(\w+)", re.MULTILINE)

_VALUES: Final = ("VALUES_JSON_PATCH_PATH", "CONFIG_VALUES_JSON_PATCH_PATH")
_OBJECTS: Final = ("KUBERNETES_PATCH_PATH",)
_METRICS: Final = ("METRICS_PATH",)
_REVIEWED: Final = ("VALIDATING_RESPONSE_PATH",)
_CONVERTED: Final = ("CONVERSION_RESPONSE_PATH",)
_ANSWERS: Final = (_REVIEWED, _CONVERTED)
"""Only a hook that is asked has such a file."""
_CALLED: Final = {
    _REVIEWED: "an answer",
    _CONVERTED: "an answer",
    _VALUES: "a JSON patch",
    _OBJECTS: "operations on Kubernetes objects",
    _METRICS: "operations on metrics",
}


def hint(printed: str, written: Mapping[str, str]) -> str:
    """Say what a run wrote that its author may not have meant: the sentence after its name; empty if nothing.

    That is what stands in the standard output and belongs into a file, where it would have an effect, and a
    key that stands twice in a patch of values.

    ``written`` is what the hook wrote, by the variable of the file: a hook that fills a file may print the
    same for the log.
    """
    for kind in dict.fromkeys(_kinds(printed)):
        if kind in _ANSWERS and kind[0] not in written:
            continue
        if not any(written.get(variable, "").strip() for variable in kind):
            files = " or ".join(f"${variable}" for variable in kind)
            return (
                f"printed {_CALLED[kind]} to its standard output, which only goes to the log, and wrote "
                f'none: write it to the file {files}, such as with > "${kind[0]}"'
            )
    return _key_twice(written)


def _key_twice(written: Mapping[str, str]) -> str:
    """Name a key that has two values in a patch of values: the last counts, as in the Go operator."""
    for variable in _VALUES:
        text = written.get(variable, "")
        try:
            for _ in document_stream.json_stream(text, json_documents.KEYS):
                pass
        except json_documents.AmbiguousError as error:
            return f"wrote an ambiguous patch to the file ${variable}: {error}, of which the last counts"
        except (ValueError, RecursionError):
            # Whoever reads the patch says what is wrong with it.
            continue
    return ""


def _kinds(printed: str) -> Iterator[tuple[str, ...]]:
    for document in _documents(printed):
        for item in document if isinstance(document, list) else [document]:
            if isinstance(item, dict) and (kind := _kind(item)) is not None:
                yield kind
    if any(found[1] in object_schemas.BY_OPERATION for found in _OPERATION.finditer(printed)):
        yield _OBJECTS


def _kind(item: json_types.JsonObject) -> tuple[str, ...] | None:
    op, operation = item.get("op"), item.get("operation")
    if isinstance(op, str) and isinstance(item.get("path"), str) and op in json_pointers.PATCH_MEMBERS:
        return _VALUES
    if isinstance(operation, str) and operation in object_schemas.BY_OPERATION:
        return _OBJECTS
    if isinstance(item.get("allowed"), bool):
        return _REVIEWED
    if isinstance(item.get("convertedObjects"), list) or isinstance(item.get("failedMessage"), str):
        return _CONVERTED
    return _METRICS if metric_operations.is_one(item) else None


def _documents(printed: str) -> Iterator[Any]:
    """Yield the JSON documents that begin with a line."""
    decoder, end, failed = json.JSONDecoder(), 0, 0
    for beginning in _BEGINNING.finditer(printed):
        if beginning.end() < end:
            continue
        try:
            document, end = decoder.raw_decode(printed, beginning.end())
        except (ValueError, RecursionError):
            failed += 1
            if failed == _MOST_TEXTS:
                return
        else:
            yield document
