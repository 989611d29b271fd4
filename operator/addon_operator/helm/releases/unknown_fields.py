"""Fields that the API server does not know, of which it says neither the object nor the file: found."""

import pathlib
import re
from collections.abc import Iterator
from typing import Any, Final

from addon_operator.documents import manifest_diff
from addon_operator.helm import messages
from addon_operator.kernel import names

_STEP: Final = re.compile(r"\[(?P<index>[0-9]{1,9})\]|(?P<key>[^.\[\]]+)")
_MOST: Final = 3
"""Objects that are named in a sentence."""


def told(manifest: str, warnings: list[str], chart: pathlib.Path) -> list[str]:
    """Return warnings such as ``unknown field "spec.x"``, each with the objects that have the field.

    ``chart`` is the directory in which the files of the chart are said to lie. Takes a moment for a manifest
    of megabytes.
    """
    documents = list(manifest_diff.objects(manifest_diff.parse(manifest)))
    return [_told(documents, each, chart) for each in dict.fromkeys(warnings)]


def _told(documents: list[manifest_diff.ManifestDocument], warning: str, chart: pathlib.Path) -> str:
    path = messages.unknown_field(warning) or ""
    found = [_called(each, chart) for each in documents if _has(each.body, path)]
    return f"{names.listed(found, _MOST)}: {warning}" if found else warning


def _called(document: manifest_diff.ManifestDocument, chart: pathlib.Path) -> str:
    file = messages.in_module(document.source, chart)
    return f"{document.key.kind}/{document.key.name}" + (f" ({file})" if file else "")


def _has(body: Any, path: str) -> bool:  # noqa: ANN401  # JSON
    """Say whether a document has the field at a path such as ``spec.containers[0].imagePol``."""
    for step in _steps(path):
        if isinstance(step, int):
            if not isinstance(body, list) or step >= len(body):
                return False
            body = body[step]
        elif isinstance(body, dict) and step in body:
            body = body[step]
        else:
            return False
    return bool(path)


def _steps(path: str) -> Iterator[str | int]:
    for found in _STEP.finditer(path):
        yield int(found["index"]) if found["index"] else found["key"]
