"""The schemas of a module's values, or of the global ones, as found on disk."""

import functools
import os
import pathlib
from collections.abc import Iterator
from typing import Final

from msgspec import structs

from addon_operator.documents import json_pointers
from addon_operator.kernel import errors
from addon_operator.loading import hook_files, module_directories, named_files, stock_schemas
from addon_operator.modules import model
from addon_operator.values.schema import schema_paths, schema_rules, schemas, sensitive_keys

CONFIG_SCHEMA_FILE: Final = "config-values.yaml"


def schemas_of(module: model.Module, evaluator: schema_rules.RuleEvaluator) -> schemas.SectionSchemas:
    """Return what checks the values of a module, and what of them is hidden.

    Raises a :class:`.ConfigurationError` like :func:`read_schemas`.
    """
    section_schemas = read_schemas(module.path, evaluator)
    has_own = section_schemas.config is not None or section_schemas.values is not None
    sensitive = tuple(map(json_pointers.of_path, module.config.sensitive))
    return structs.replace(
        section_schemas,
        chart=stock_schemas.chart_of(module),
        hidden=sensitive_keys.SensitiveKeys(sensitive, by_name=not has_own),
    )


def unknown_sensitive(module: model.Module, section_schemas: schemas.SectionSchemas) -> Iterator[str]:
    """Yield a sentence for each path that ``module.yaml`` calls sensitive and that no values can have.

    What it was meant for would be shown everywhere.
    """
    if not module.config.sensitive:
        return
    schema = section_schemas.of_all_values(hooks=(module.path / hook_files.HOOKS_DIRECTORY).is_dir())
    if schema is None:
        return
    for path, place in zip(module.config.sensitive, module.config.sensitive_places, strict=True):
        keys = json_pointers.of_path(path)
        unknown = schema_paths.unknown_key(schema.definition, keys)
        if unknown is not None:
            yield (
                f"{place}: {path!r} hides nothing: {schema.source} does not allow the key "
                f"{keys[unknown.index]!r}; {unknown.hint(keys)}"
            )


def read_schemas(path: pathlib.Path, evaluator: schema_rules.RuleEvaluator) -> schemas.SectionSchemas:
    """Read ``openapi/`` of a module or of the global hooks; either file may be missing.

    Raises a :class:`.ConfigurationError` that names file and position.
    """
    directory = path / module_directories.SCHEMAS_DIRECTORY
    config, values = (
        _schema_text(directory / name) for name in (CONFIG_SCHEMA_FILE, module_directories.VALUES_FILE)
    )
    return schemas.load_schemas(config, values, evaluator, functools.partial(_referred, path))


def _referred(root: pathlib.Path, source: str, reference: str) -> tuple[str, str]:
    """Read the file that a schema of ``root`` refers to, with its name; see ``schema_loading.FileReader``."""
    path = pathlib.Path(os.path.normpath(pathlib.Path(source).parent / reference))
    if "://" in reference or pathlib.PurePath(reference).is_absolute():
        raise errors.ConfigurationError(f"{reference!r} must be a relative path; copy the file into {root}")
    if not pathlib.Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise errors.ConfigurationError(f"{reference!r} lies outside of {root}; copy the file into it")
    return named_files.read_text(path), str(path)


def _schema_text(path: pathlib.Path) -> tuple[str, str] | None:
    return (named_files.read_text(path), str(path)) if named_files.is_there(path) else None
