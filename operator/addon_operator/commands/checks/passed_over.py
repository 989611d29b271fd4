"""What of a module is passed over, because other operators read it or the API has no such field."""

import pathlib
from collections.abc import Iterator
from typing import Final

from addon_operator.engine.modules import module_files
from addon_operator.kernel import errors
from addon_operator.modules import crd_files, model

FILTER_PREFIXES: Final = ("doc-", "_")
"""Files in ``crds/`` whose names begin so do not count, unless the setting says otherwise."""
_OF_DECKHOUSE: Final = {
    "openapi/conversions": "settings are those of the newest version: change the ConfigMap with it",
    "images_digests.json": (
        "set the digests as global.modulesImages.digests.{key} in modules/values.yaml, where charts look"
    ),
    ".namespace": "a template makes the namespace, or createNamespace in module.yaml",
    "webhooks": "these are configurations of another operator",
}
"""What Deckhouse's own controller reads of a module, and what takes its place."""


def notes(module: model.Module) -> Iterator[str]:
    """Yield a sentence for each file and key that is for Deckhouse, with what takes its place."""
    yield from module.config.notes
    for name, instead in _OF_DECKHOUSE.items():
        path = module.path / name
        if path.exists():
            yield f"{path}: not read here: {instead.format(key=module.key)}"


def in_definitions(module: model.Module) -> Iterator[str]:
    """Yield a sentence for what is left out of the module's definitions, and for those that are there twice.

    Files that cannot be read are told by others.
    """
    found: dict[str, str] = {}
    for path in _files(module.path / crd_files.DIRECTORY):
        try:
            definitions = crd_files.parse(module_files.read_text(path), str(path))
        except errors.ConfigurationError as error:
            yield str(error)
            continue
        for each in definitions:
            yield from each.doubts
            if (other := found.get(each.name)) is not None:
                yield crd_files.defined_twice(each.name, each.source, other)
            found[each.name] = each.source


def _files(directory: pathlib.Path) -> Iterator[pathlib.Path]:
    for path in sorted(directory.rglob(f"*{crd_files.SUFFIX}")):
        if path.is_file() and crd_files.is_selected(path.name, FILTER_PREFIXES):
            yield path
