"""Kinds that a module's own definitions bring: its tests may give objects of them."""

import contextlib
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from addon_operator.documents import manifest_diff
from addon_operator.kernel import errors
from addon_operator.loading import crd_sources, module_files, named_files
from addon_operator.testing.given import kinds


def of(loaded: module_files.LoadedModules) -> list[Mapping[str, Any]]:
    """Return the definitions of all modules; what cannot be read defines nothing here."""
    sources = crd_sources.CrdSources((), lambda _module: {})
    found: list[Mapping[str, Any]] = []
    for each in loaded.modules:
        with contextlib.suppress(errors.ConfigurationError):
            found += [body for path, _ in sources.files(each.module) for body in _read(path)]
    return found


def _read(path: pathlib.Path) -> Iterator[Mapping[str, Any]]:
    try:
        text = named_files.read_text(path)
    except errors.ConfigurationError:
        return
    for document in manifest_diff.objects(manifest_diff.parse(text)):
        if document.key.kind == kinds.DEFINITION and document.body is not None:
            yield document.body
