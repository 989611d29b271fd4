"""The JSON Schema of a module's ``values.yaml`` for editors, made from its OpenAPI schemas."""

import json
import pathlib
from collections.abc import Mapping
from typing import Any, Final

from addon_operator.commands import values_files
from addon_operator.kernel import errors, json_types, names
from addon_operator.loading import module_directories, module_schemas, named_files
from addon_operator.values.schema import cel_rules, schema_keywords, schema_walk

FILE: Final = "values-file.schema.json"
"""In ``openapi/``; the chart's own values.schema.json is another thing, which Helm reads."""
_DEFINITIONS: Final = "definitions"
_SINGLE: Final = (*schema_walk.SINGLE_SCHEMAS, "additionalItems")


class NoSchemaError(errors.AddonOperatorError):
    """The module has no OpenAPI schema."""


def of_directory(path: pathlib.Path) -> json_types.JsonObject:
    """Return the schema for the module in a directory; raises like :func:`document`."""
    return document(path, names.parse_module_directory(path.absolute().name)[1])


def document(path: pathlib.Path, name: names.ModuleName) -> json_types.JsonObject:
    """Return the schema of the values file of the module in a directory.

    Raises :class:`NoSchemaError`, and a :class:`.ConfigurationError` for a schema that cannot be read.
    """
    if not path.is_dir():
        raise errors.ConfigurationError(
            f"{path} is not the directory of a module; {values_files.nearest(path)}"
        )
    read = module_schemas.read_schemas(path, cel_rules.CelEvaluator())
    found = read.values or read.config
    if found is None:
        place = path / module_directories.SCHEMAS_DIRECTORY / module_schemas.CONFIG_SCHEMA_FILE
        raise NoSchemaError(f"module {name} has no schema; write {place} first")
    section = _for_editors(schema_keywords.prepare(found.definition))
    definitions = section.pop(_DEFINITIONS, {})
    switch, flag = names.enabled_key(name), names.maintenance_key(name)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"values.yaml of the module {name}",
        "type": ["object", "null"],
        "properties": {
            switch: {"type": "boolean", "description": "Whether the module is enabled by default."},
            flag: {"type": "string"},
            str(names.values_key(name)): section,
        },
        "additionalProperties": False,
        **({_DEFINITIONS: definitions} if definitions else {}),
    }


def stale(root: pathlib.Path, name: names.ModuleName) -> str:
    """Say that the schema for editors is not that of the OpenAPI schemas any more; empty if it is."""
    path = root / module_directories.SCHEMAS_DIRECTORY / FILE
    if not path.is_file():
        return ""
    try:
        is_same = json.loads(named_files.read_text(path)) == document(root, name)
    except NoSchemaError:
        return f"{path} is a schema for editors, and the module has no OpenAPI schema any more; remove it"
    except (ValueError, RecursionError):
        is_same = False
    return (
        ""
        if is_same
        else f"{path} is not what the OpenAPI schemas say any more, so editors check by old rules; run "
        f"'addon-operator module schema --values-of {root} > {path}'"
    )


def write(root: pathlib.Path, name: names.ModuleName) -> None:
    """Write the schema of a module, and name it at the top of its values file, unless that is done."""
    schema = root / module_directories.SCHEMAS_DIRECTORY / FILE
    schema.write_text(json.dumps(document(root, name), indent=2) + "\n", "utf-8")
    values = root / module_directories.VALUES_FILE
    line = f"# yaml-language-server: $schema={module_directories.SCHEMAS_DIRECTORY}/{FILE}\n"
    text = named_files.read_text(values)
    if not text.startswith(line):
        values.write_text(line + text, "utf-8")


def _for_editors(schema: Any) -> Any:  # noqa: ANN401  # a schema or a boolean
    """Return a schema without what only the operator knows, and without required keys.

    What is missing in the file may come from a default, the ConfigMap or a hook.
    """
    if not isinstance(schema, Mapping):
        return schema
    kept = {key: each for key, each in schema.items() if key != "required" and not key.startswith("x-")}
    for key in _SINGLE:
        if key in kept:
            kept[key] = _for_editors(kept[key])
    for key in schema_walk.MAPS_OF_SCHEMAS:
        if key in kept:
            kept[key] = {name: _for_editors(each) for name, each in kept[key].items()}
    for key in schema_walk.LISTS_OF_SCHEMAS:
        if key in kept:
            kept[key] = [_for_editors(each) for each in kept[key]]
    return kept
