"""What of a module is passed over, because other operators read it or the API has no such field."""

import os
from collections.abc import Iterator
from typing import Final

from addon_operator.commands.checks import lint_rules, values_check
from addon_operator.kernel import errors
from addon_operator.loading import crd_sources, named_files
from addon_operator.modules import crd_files, model

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
        if os.path.lexists(path):
            yield f"{path}: not read here: {instead.format(key=module.key)}"


def in_definitions(module: model.Module) -> Iterator[values_check.Finding]:
    """Yield what keeps definitions of a module and its chart from being applied, and what is left out."""
    problems: dict[str, str] = {}
    sources = crd_sources.CrdSources(crd_files.FILTER_PREFIXES, lambda _: {})
    try:
        files = [*sources.files(module)]
    except errors.ConfigurationError as error:
        yield values_check.Finding(values_check.Level.ERROR, module.name, str(error), lint_rules.Rule.CRD)
        return
    for path, is_own in files:
        try:
            text = named_files.read_text(path, crd_sources.MAX_FILE)
            definitions = crd_files.parse(text, str(path), is_strict=is_own)
        except errors.ConfigurationError as error:
            yield values_check.Finding(values_check.Level.ERROR, module.name, str(error), lint_rules.Rule.CRD)
            continue
        for each in definitions:
            yield from (_warning(module, doubt) for doubt in each.doubts)
            if (other := problems.get(each.name)) is not None and is_own:
                yield _warning(module, crd_files.defined_twice(each.name, each.source, other))
            problems[each.name] = each.source


def _warning(module: model.Module, text: str) -> values_check.Finding:
    return values_check.Finding(values_check.Level.WARNING, module.name, text, lint_rules.Rule.CRD)
