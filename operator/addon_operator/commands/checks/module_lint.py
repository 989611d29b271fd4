"""All that is wrong with modules on disk, charts as upstream publishes them included; no cluster is asked."""

import contextlib
import itertools
import json
import pathlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import structs

from addon_operator.commands import values_files
from addon_operator.commands.checks import (
    chart_renders,
    hook_places,
    hooks_check,
    lint_places,
    lint_rules,
    passed_over,
    template_values,
    values_check,
    values_schema,
)
from addon_operator.documents import json_documents, json_pointers, yaml_loader, yaml_reading
from addon_operator.engine.definitions import crd_index
from addon_operator.helm import helm_errors
from addon_operator.helm.charts import chart_files, chart_ignore, chart_links, dependencies, subcharts
from addon_operator.kernel import errors, names
from addon_operator.loading import (
    crd_sources,
    hook_files,
    module_directories,
    module_files,
    module_schemas,
    named_files,
    unused_files,
)
from addon_operator.modules import crd_files, model, module_config
from addon_operator.values import sources, store
from addon_operator.values.schema import cel_rules, chart_schemas, schemas

_MOST_MISTAKES: Final = 5
_TESTS: Final = "tests"
_MOST_TESTS: Final = 1000
Rule = lint_rules.Rule
_ERROR, _WARNING = values_check.Level.ERROR, values_check.Level.WARNING

_Found = Iterator[values_check.Finding]


class _Read(msgspec.Struct, frozen=True):
    """The modules of some places, read once for all that is looked at."""

    places: values_files.FilesToCheck
    modules: Sequence[model.Module]
    """Those that are looked at."""
    readable: Sequence[module_files.ModuleFiles]
    """All that can be read: others may read their values."""

    @property
    def chosen(self) -> list[module_files.ModuleFiles]:
        only = self.places.only
        return [
            each
            for each in self.readable
            if only in (None, each.module.path.name) and not each.module.problem
        ]


def of_all(
    all_places: Sequence[values_files.FilesToCheck], *, strict: bool = False
) -> values_check.ValuesReport:
    """Look at modules of several places, and leave out what comments in their files ignore."""
    all_read = [_Read(each, tuple(_modules(each)), chart_renders.readable(each)) for each in all_places]
    reports = [_lint(each, strict=strict) for each in all_read]
    report = values_check.joined([*reports, _of_several(all_read)])
    known = lint_places.without_ignored(report.findings, _directories(all_read), _charts(all_read))
    return structs.replace(report, findings=known.findings, ignored=known.count)


def directories(all_places: Sequence[values_files.FilesToCheck]) -> dict[str, pathlib.Path]:
    """Return where the modules lie, by their names, and the global hooks."""
    return _directories([_Read(each, tuple(_modules(each)), ()) for each in all_places])


def _directories(all_read: Sequence[_Read]) -> dict[str, pathlib.Path]:
    found: dict[str, pathlib.Path] = {}
    for read in all_read:
        found |= {str(module.name): module.path for module in read.modules}
        if read.places.only is None and read.places.global_hooks_dir.is_dir():
            found[names.GLOBAL_KEY] = read.places.global_hooks_dir
    return found


def _charts(all_read: Sequence[_Read]) -> dict[str, pathlib.Path]:
    """Return where the charts lie that have a directory of their own in their modules, by the modules."""
    modules = itertools.chain.from_iterable(read.modules for read in all_read)
    return {
        str(module.name): module.chart_directory
        for module in modules
        if module.stock is not None and module.stock.reference is None
    }


def _lint(read: _Read, *, strict: bool) -> values_check.ValuesReport:
    """Look at all modules of the places: at what :func:`.values_check.check` does, and at their charts."""
    places, modules, chosen = read.places, read.modules, read.chosen
    report = values_check.check(places, strict=strict)
    more = [*_beside(places), *itertools.chain.from_iterable(map(_as_it_can_be_read, modules))]
    broken = {finding.subject for finding in more if finding.level is _ERROR}
    more += _of_templates(places, chosen)
    rendered = chart_renders.check(places, read.readable, broken)
    findings = dict.fromkeys((*report.findings, *more, *_of_configs(places), *rendered.findings))
    notes = [*itertools.chain.from_iterable(map(passed_over.notes, modules)), *_masked(chosen)]
    return structs.replace(report, findings=tuple(findings), notes=(*report.notes, *notes, *rendered.notes))


def _of_several(all_read: Sequence[_Read]) -> values_check.ValuesReport:
    """Look at what modules bring that others bring, too, wherever they lie."""
    modules = [each for read in all_read for each in read.chosen]
    with contextlib.suppress(errors.ConfigurationError):
        common = {each.values.common.source: each.values.common for each in modules}
        values = store.ValuesStore(
            [each.values for each in modules], list(common.values()), schemas.SectionSchemas()
        )
        definitions = crd_sources.CrdSources(
            crd_files.FILTER_PREFIXES, lambda module: values.snapshot(module).values(module)
        )
        shared = list(crd_index.shared(definitions, [each.module for each in modules]))
        wanted: dict[names.ModuleName, set[str]] = {}
        for module, name, _ in shared:
            wanted.setdefault(module.name, set()).add(name)
        by_name = {module.name: module for module, _, _ in shared}
        places = {owner: _defined(definitions, by_name[owner], said) for owner, said in wanted.items()}
        findings = (
            values_check.Finding(
                _WARNING, module.name, f"{places[module.name].get(name, '')}{said}", Rule.CRD_SHARED
            )
            for module, name, said in shared
        )
        return values_check.ValuesReport(tuple(findings), 0)
    return values_check.ValuesReport((), 0)


def _defined(
    sources: crd_sources.CrdSources, module: model.Module, wanted: Collection[str]
) -> dict[str, str]:
    """Return file and line of definitions by name, to begin sentences with; without those not found."""
    found: dict[str, str] = {}
    for place, text, _ in sources.texts(module, sources.chart_with_others(module)):
        if any(name in text for name in wanted):
            # One that is broken below what is compared is told by another rule.
            with contextlib.suppress(errors.ConfigurationError):
                for name, line in crd_files.lines_of(text).items():
                    found.setdefault(name, f"{place}:{line}: ")
    return found


def _modules(places: values_files.FilesToCheck) -> Iterator[model.Module]:
    for path in itertools.chain.from_iterable(places.directories.values()):
        if places.only in (None, path.name):
            yield module_files.module_of(path, places.unnumbered_module_order, places.charts)


def _beside(places: values_files.FilesToCheck) -> _Found:
    """Yield what lies beside modules and is not read."""
    if places.only is None:
        for directory in places.modules_dirs:
            for warning in unused_files.beside_modules(directory, places.global_hooks_dir):
                yield values_check.Finding(_WARNING, str(directory), warning, Rule.UNUSED_FILE)
        for path, warning in module_directories.strays(tuple(places.directories)).items():
            yield values_check.Finding(_WARNING, str(path.parent), warning, Rule.UNUSED_FILE)


def _masked(chosen: Iterable[module_files.ModuleFiles]) -> Iterator[str]:
    """Yield a sentence for each module of whose values some are hidden by their names alone."""
    for files in chosen:
        values, key = files.values, files.module.key
        section = sources.merge(values.common.section(key), values.own.section(key))
        if found := values.schemas.hidden.by_name_alone(section):
            listed = names.listed([json_pointers.format_path((key, *each)) for each in found], _MOST_MISTAKES)
            yield (
                f"module {files.module.name}: what is shown as *** by its name alone is {listed}; name all "
                f"that is secret in 'sensitive' of {module_config.FILE}, or mark it with x-sensitive in a "
                "schema"
            )


def _of_templates(places: values_files.FilesToCheck, chosen: Iterable[module_files.ModuleFiles]) -> _Found:
    """Yield what templates read and no values can have."""
    shared = schemas.SectionSchemas()
    beside = places.global_hooks_dir.absolute().parent
    # The global hooks of another repository say nothing of these modules.
    is_theirs = any(directory.absolute().parent == beside for directory in places.modules_dirs)
    with contextlib.suppress(errors.ConfigurationError):
        shared = (
            shared
            if not is_theirs
            else module_schemas.read_schemas(places.global_hooks_dir, cel_rules.CelEvaluator())
        )
    root = hook_files.global_hooks_root(places.global_hooks_dir)
    is_hooked = template_values.has_hooks(root)
    for files in chosen:
        yield from template_values.problems(files, shared, global_hooks=is_hooked)


def _as_it_can_be_read(module: model.Module) -> _Found:
    """Yield what is wrong with a module; what nobody may read of it is no other module's trouble."""
    if not module_directories.unreachable(module.path):
        try:
            yield from _of_module(module)
        except OSError as error:
            said = str(errors.told(error, f"reading {module.path}"))
            yield values_check.Finding(_ERROR, module.name, said, Rule.MODULE)


def _of_module(module: model.Module) -> _Found:
    for warning in module.config.warnings:
        yield values_check.Finding(_WARNING, module.name, warning, Rule.MODULE_YAML)
    yield from _of_namespace(module)
    with contextlib.suppress(errors.ConfigurationError):
        if warning := values_schema.stale(module.path, module.name):
            yield values_check.Finding(_WARNING, module.name, warning, Rule.STALE_SCHEMA)
    for warning in _of_hooks(module):
        yield values_check.Finding(_WARNING, module.name, warning, Rule.HOOK_FILE)
    for warning in (*unused_files.in_module(module), *_unused_section(module)):
        yield values_check.Finding(_WARNING, module.name, warning, Rule.UNUSED_FILE)
    yield from passed_over.in_definitions(module)
    if module.problem:
        return
    if (
        module.stock is not None
        and module.stock.reference is not None
        and not module.chart_directory.is_dir()
    ):
        said = (
            f"chart {module.stock.reference} is not in the cache, so nothing of it is checked; "
            "'addon-operator module test' pulls it if a test renders it, and 'addon-operator plan' does"
        )
        yield values_check.Finding(_WARNING, module.name, said, Rule.CHART_NOT_CACHED)
    elif chart_files.is_complete(module.chart_directory):
        if problem := _tests_in_chart(module):
            yield values_check.Finding(_WARNING, module.name, problem, Rule.TESTS_IN_CHART)
        for problem in _of_chart(module):
            yield values_check.Finding(_ERROR, module.name, problem, Rule.CHART)


def _of_hooks(module: model.Module) -> Iterator[str]:
    """Yield a sentence for each file that might be meant as a hook and is none."""
    try:
        yield from hook_files.discover(module.path / hook_files.HOOKS_DIRECTORY).warnings
    except hook_files.HookFilesError:
        return  # It is what stops the module.


def _of_configs(places: values_files.FilesToCheck) -> _Found:
    """Start hooks with ``--config``; what lies where hooks are and is none is told by others."""
    configured = hook_places.configured({"modules_dirs": None, "global_hooks_dir": None})
    roots = [
        root
        for root in itertools.chain.from_iterable(map(hook_places.in_modules, places.directories))
        if places.only in (None, root.root.parent.name) and not root.problem
    ]
    if places.only is None:
        roots.append(hook_places.of_global(places.global_hooks_dir))
    for file in hooks_check.check(roots, configured.hook_env).files:
        if not file.is_program:
            continue
        for level, problems in ((_ERROR, file.errors), (_WARNING, file.warnings)):
            for problem in problems:
                yield values_check.Finding(level, file.owner, f"{file.path}: {problem}", Rule.HOOK_CONFIG)


def _unused_section(module: model.Module) -> Iterator[str]:
    """Yield a sentence if the chart's defaults stand where it would find them only with ``section``."""
    if module.stock is None or module.stock.values is not module_config.ValuesScope.ROOT:
        return
    path = module.chart_directory / module_files.VALUES_FILE
    try:
        values = yaml_reading.load(named_files.read_text(path), str(path)) if path.exists() else None
    except errors.ConfigurationError:
        return  # It is among the findings of the chart.
    if isinstance(values, dict) and list(values) == [module.key]:
        yield (
            f"{path} has all values below {module.key!r}, but this chart gets the section as .Values; "
            f"write them without {module.key!r}, or set chart.values: section in {module_config.FILE}"
        )


def _of_namespace(module: model.Module) -> _Found:
    if namespace := module.config.namespace:
        said = (
            f"its release is in the namespace {namespace}: unless that is the operator's own, who may edit "
            "Secrets there can make the operator refuse to act by the release"
        )
        yield values_check.Finding(_WARNING, module.name, said, Rule.RELEASE_NAMESPACE)


def _of_chart(module: model.Module) -> Iterator[str]:
    directory = module.chart_directory
    if problem := chart_links.nowhere(directory) or dependencies.problem(directory):
        yield problem
        return
    try:
        chart = subcharts.read(module.name, module.chart_directory, is_stock=True)
    except helm_errors.ChartError as error:
        yield str(error)
        return
    yield from _of_names(chart, directory)
    if module.stock is not None:
        yield from _of_values(module.chart_directory / module_files.VALUES_FILE)
    yield from _of_schemas(chart)


def _tests_in_chart(module: model.Module) -> str:
    """Return a sentence if Helm takes the module's tests for a part of the chart; empty if it does not."""
    tests, chart = module.path / _TESTS, module.chart_directory
    if not tests.is_relative_to(chart):
        return ""
    try:
        ignore = chart_ignore.read(chart)
    except OSError:
        return ""  # It is among the findings of the chart.
    files = (path for path in tests.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    for path in itertools.islice(files, _MOST_TESTS):
        if not ignore.leaves_out(path.relative_to(chart)):
            return (
                f"{tests} is in the chart, so each release stores it; write the line /{_TESTS}/ into "
                f"{chart / chart_ignore.FILE}"
            )
    return ""


def _of_names(chart: subcharts.Subchart, directory: pathlib.Path) -> Iterator[str]:
    for each in chart.charts:
        if refused := dependencies.refused_name(each.name):
            yield f"{directory / subcharts.DIRECTORY}: in a chart there, {refused}"
        yield from _of_names(each, directory)


def _of_values(path: pathlib.Path) -> Iterator[str]:
    try:
        text = named_files.read_text(path) if path.exists() else ""
        if not isinstance(yaml_reading.load_document(text, str(path), last_wins=True).value, dict | None):
            yield f"{path}: the values of a chart must be a mapping"
    except errors.ConfigurationError as error:
        yield str(error)


def _of_schemas(chart: subcharts.Subchart) -> Iterator[str]:
    if chart.schema is not None:
        source, text = chart.schema
        try:
            schema = json.loads(text)
        except ValueError as error:
            yield f"{source}: this is not JSON: {error}"
        except RecursionError:
            pass  # It is among the warnings of the values.
        else:
            is_read = json_documents.is_within_depth(schema, yaml_loader.MAX_DEPTH)
            mistakes = chart_schemas.mistakes(schema) if is_read else iter(())
            yield from (f"{source}: {mistake}" for mistake in itertools.islice(mistakes, _MOST_MISTAKES))
    for each in chart.charts:
        yield from _of_schemas(each)
