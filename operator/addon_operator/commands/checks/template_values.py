"""What templates read of the values: what no values can have, and samples of what only hooks set."""

import contextlib
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from addon_operator.commands.checks import lint_rules, values_check
from addon_operator.documents import json_documents
from addon_operator.helm.charts import chart, chart_slips, subcharts, template_paths
from addon_operator.kernel import errors, json_types, names
from addon_operator.loading import hook_files, module_files
from addon_operator.modules import chart_values
from addon_operator.values import sources
from addon_operator.values.schema import schema_paths, schemas


def has_hooks(root: pathlib.Path) -> bool:
    """Say whether there are hooks, or may be: what cannot be read is told elsewhere."""
    try:
        files = hook_files.discover(root)
    except hook_files.HookFilesError:
        return True
    return bool(files.executables or files.refused)


def problems(
    files: module_files.ModuleFiles, shared: schemas.SectionSchemas, *, global_hooks: bool
) -> Iterator[values_check.Finding]:
    """Yield what templates read and no values can have, as schemas say; ``shared`` are those of ``global``.

    Hooks may set only what ``openapi/values.yaml`` allows; without that file, whatever they want.
    """
    module = files.module
    if not (chart_values.has_section(module) and module.has_chart):
        return
    is_hooked = has_hooks(module.path / hook_files.HOOKS_DIRECTORY)
    known = {module.key: _known(files), names.GLOBAL_KEY: {}}
    of_keys = {
        module.key: files.values.schemas.of_all_values(hooks=is_hooked),
        names.GLOBAL_KEY: shared.of_all_values(hooks=global_hooks),
    }
    has_charts = (module.chart_directory / subcharts.DIRECTORY).is_dir()
    seen = set()
    for path, found in template_paths.of_chart(module.chart_directory):
        if (path, found.keys) in seen:
            continue
        seen.add((path, found.keys))
        first = found.keys[0]
        if first not in of_keys:
            said = "" if has_charts else _of_section(first, of_keys)
        elif (schema := of_keys[names.ValuesKey(first)]) is not None:
            said = _of_schema(found.keys, schema)
        else:
            said = ""
            if near := chart_slips.nearest(found, known):
                problem = f"{path}:{found.line} reads {found}, which no file sets; did you mean {near!r}?"
                yield values_check.Finding(
                    values_check.Level.WARNING, module.name, problem, lint_rules.Rule.UNKNOWN_VALUE
                )
        if said:
            problem = f"{path}:{found.line} reads {found}, which no values have: {said}"
            yield values_check.Finding(
                values_check.Level.ERROR, module.name, problem, lint_rules.Rule.UNKNOWN_VALUE
            )


def _known(files: module_files.ModuleFiles) -> json_types.JsonObject:
    """Return what files set of the section, and the chart by itself."""
    layers = [_object(files.values.own.section(files.module.key))]
    with contextlib.suppress(errors.AddonOperatorError):
        layers.append(
            _object(chart.own_values(files.module.name, files.module.chart_directory).get(files.module.key))
        )
    layers.append(files.values.common.section(files.module.key))
    return sources.merge(*layers)


def _object(value: json_types.JsonValue) -> json_types.JsonObject:
    return value if isinstance(value, dict) else {}


def _of_section(first: str, known: Sequence[str] | dict[names.ValuesKey, Any]) -> str:
    hint = names.did_you_mean(first, known, f"it gets {' and '.join(sorted(known))}")
    return f"the chart gets no key {first!r}; {hint}"


def _of_schema(keys: tuple[str, ...], schema: schemas.Schema | None) -> str:
    below = keys[1:]
    if schema is None or keys[:2] == (names.GLOBAL_KEY, names.ENABLED_MODULES):
        return ""
    unknown = schema_paths.unknown_key(schema.definition, below)
    if unknown is None:
        return ""
    return f"{schema.source} does not allow the key {below[unknown.index]!r}; {unknown.hint(below)}"


def with_samples(files: module_files.ModuleFiles, values: json_types.JsonObject) -> json_types.JsonObject:
    """Return the values with samples of what templates read and nobody has set.

    They are made from the schemas; of what no schema speaks of, only the mappings around it are made.
    """
    module = files.module
    filled: Any = json_documents.copy_value(values)
    schema = files.values.schemas.values or files.values.schemas.config
    is_section = chart_values.has_section(module)
    for _, path in template_paths.of_chart(module.chart_directory):
        is_own = path.keys[0] == module.key if is_section else True
        _put(filled, path.keys, schema if is_own else None, 1 if is_section else 0)
    return dict(filled)


def _put(values: Any, keys: tuple[str, ...], schema: schemas.Schema | None, skipped: int) -> None:  # noqa: ANN401
    for index, key in enumerate(keys):
        if not isinstance(values, dict):
            return
        if values.get(key) is None:
            sample = schema_paths.NO_SAMPLE
            if schema is not None and index >= skipped:
                sample = schema_paths.sample(schema.definition, keys[skipped : index + 1])
            is_last = index + 1 == len(keys)
            if sample is schema_paths.NO_SAMPLE and is_last:
                return
            values[key] = {} if sample is schema_paths.NO_SAMPLE else sample
        values = values[key]
