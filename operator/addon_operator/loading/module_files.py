"""Modules and values files as found on disk."""

import itertools
import pathlib
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import structs

from addon_operator.helm.charts import chart, chart_files, chart_links, dependencies, plain_files
from addon_operator.helm.repositories import chart_cache
from addon_operator.kernel import errors, names
from addon_operator.loading import (
    hook_files,
    module_directories,
    module_problems,
    module_schemas,
    named_files,
    shared_values,
    unused_files,
)
from addon_operator.modules import crd_files, model, module_config, requirements
from addon_operator.process import start_errors
from addon_operator.values import inspectors, settings_checks, sources, store
from addon_operator.values.schema import cel_rules, schema_rules, schemas

VALUES_FILE: Final = module_directories.VALUES_FILE
SCHEMAS_DIRECTORY: Final = module_directories.SCHEMAS_DIRECTORY
_CHART: Final = "Chart.yaml"
CHARTS = pathlib.Path("charts")
"""Where charts from repositories lie if nobody says anything else."""


class ModuleFiles(msgspec.Struct, frozen=True):
    """One module and the values files that serve it."""

    module: model.Module
    values: store.ModuleValues


class LoadedModules(msgspec.Struct, frozen=True):
    """Everything that the modules directories hold."""

    modules: tuple[ModuleFiles, ...]
    """In run order."""
    common: tuple[sources.ValuesFile, ...]
    """The directories' own ``values.yaml``, in the order of the directories."""
    warnings: tuple[str, ...] = ()
    global_schemas: schemas.SectionSchemas = msgspec.field(default_factory=schemas.SectionSchemas)
    """``openapi/`` of the global hooks directory."""
    charts: pathlib.Path = CHARTS
    """Where charts from repositories lie."""
    namespace: str = ""
    """That of the operator; empty where it is not known."""
    strays: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Directories beside modules that are none, with a sentence for each, by the names they would have."""

    @property
    def strangers(self) -> tuple[str, ...]:
        """Keys of ``values.yaml`` files that no module has, or that switch nothing, one sentence each."""
        below: dict[pathlib.Path, list[names.ModuleName]] = {}
        for files in self.modules:
            below.setdefault(files.module.path.parent, []).append(files.module.name)
        unknown = (
            text
            for common in self.common
            for text in shared_values.strangers(common, below.get(pathlib.Path(common.source).parent, ()))
        )
        misplaced = (file.misplaced for file in (*self.common, *(each.values.own for each in self.modules)))
        return (*unknown, *itertools.chain.from_iterable(misplaced))

    @property
    def lacks(self) -> str:
        """Which of several directories hold no module, as one whose mount is missing; empty if none."""
        filled = {files.module.path.parent for files in self.modules}
        directories = [pathlib.Path(each.source).parent for each in self.common]
        empty = ", ".join(str(path.absolute()) for path in directories if path not in filled)
        if not empty or not filled:
            return ""
        return (
            f"{empty} in MODULES_DIR holds no module: see that it is mounted, leave it out, or set "
            "ALLOW_EMPTY_MODULES=true"
        )

    def store(
        self,
        inspector: inspectors.Inspector = inspectors.HERE,
        settings: settings_checks.SettingsChecks = settings_checks.NO_PROGRAMS,
        *,
        crd_names: bool = False,
    ) -> store.ValuesStore:
        """Make a store of these files; ``inspector`` and ``settings`` check what is put into it.

        ``crd_names`` is the setting ``ENABLED_MODULES_CRD_NAMES``.
        """
        return store.ValuesStore(
            [files.values for files in self.modules],
            self.common,
            self.global_schemas,
            inspector,
            crd_names=crd_names,
            settings_checks=settings,
        )


def load(
    directories: Sequence[pathlib.Path],
    unnumbered_order: int,
    global_hooks: pathlib.Path | None = None,
    *,
    charts: pathlib.Path = CHARTS,
    namespace: str = "",
) -> LoadedModules:
    """Read all modules directories, and the schemas of global values; ``charts`` has those that were pulled.

    ``namespace`` is the operator's, if it is known. What is wrong with the files of one module is that
    module's :attr:`.Module.problem`.

    Raises a :class:`.ConfigurationError` for a missing directory, and for common values files and schemas of
    global values that cannot be read.
    """
    modules: list[ModuleFiles] = []
    common: list[sources.ValuesFile] = []
    evaluator = cel_rules.CelEvaluator()
    paths = [module_directories.listed(directory) for directory in directories]
    taken = module_directories.names_of(itertools.chain.from_iterable(paths))
    for directory, below in zip(directories, paths, strict=True):
        common.append(common_values(directory))
        modules.extend(
            read_module(path, common[-1], unnumbered_order, evaluator, charts, taken) for path in below
        )
    modules = in_run_order(one_of_each_name(modules), namespace)
    global_schemas = _global_schemas(global_hooks, evaluator)
    strays = module_directories.by_name(module_directories.strays(directories))
    beside = (unused_files.beside_modules(each, global_hooks) for each in directories)
    unused = dict.fromkeys(itertools.chain.from_iterable(beside))
    warnings = (*strays.values(), *unused, *_warnings(modules), *global_schemas.warnings)
    return LoadedModules(tuple(modules), tuple(common), warnings, global_schemas, charts, namespace, strays)


def _global_schemas(
    global_hooks: pathlib.Path | None, evaluator: schema_rules.RuleEvaluator
) -> schemas.SectionSchemas:
    if global_hooks is None:
        return schemas.SectionSchemas()
    try:
        return module_schemas.read_schemas(global_hooks, evaluator)
    except errors.AddonOperatorError:
        raise
    except Exception as error:
        raise errors.ConfigurationError(
            module_problems.told(error, global_hooks / SCHEMAS_DIRECTORY)
        ) from error


def common_values(directory: pathlib.Path) -> sources.ValuesFile:
    """Return the ``values.yaml`` of a modules directory.

    Raises a :class:`.ConfigurationError` if it cannot be read.
    """
    module_directories.check(directory)
    path = directory / VALUES_FILE
    return sources.parse_common_values(named_files.text_if_there(path), str(path))


def read_module(
    path: pathlib.Path,
    common: sources.ValuesFile,
    unnumbered_order: int,
    evaluator: schema_rules.RuleEvaluator,
    charts: pathlib.Path = CHARTS,
    taken: Collection[str] = (),
) -> ModuleFiles:
    """Load one module; whatever is wrong with its files is its :attr:`.Module.problem`, and all of it.

    ``taken`` are names of modules that no directory with an unusable name gets.
    """
    module = module_of(path, unnumbered_order, charts, taken)
    wrong = module_problems.Problems(path, module.problems)
    nothing = sources.ValuesFile(str(path / VALUES_FILE))
    own = wrong.attempt(lambda: own_values(module), nothing)
    if own is nothing:
        switch = _switch(module)
        own = structs.replace(nothing, enabled=switch, is_unread=not switch)
    checks = wrong.attempt(
        lambda: _looked_at(module_schemas.schemas_of(module, evaluator)), schemas.SectionSchemas()
    )
    for problem in module_schemas.unknown_sensitive(module, checks):
        wrong.add(problem)
    has_crds = wrong.attempt((path / crd_files.DIRECTORY).is_dir, otherwise=False)
    hooks = path / hook_files.HOOKS_DIRECTORY
    values = store.ModuleValues(module.name, common, own, checks, has_crds, hooks)
    unchecked = structs.replace(values, schemas=schemas.SectionSchemas())
    values = wrong.attempt(lambda: _filled(values), unchecked)
    module = structs.replace(module, problem=wrong.text, problems=wrong.mistakes)
    return ModuleFiles(module, values)


def refused(files: ModuleFiles, problem: str) -> ModuleFiles:
    """Return the module with a problem: it is there, and cannot run as it is."""
    module = structs.replace(files.module, problem=problem, problems=(problem,))
    # Its schemas would refuse the values that are in force.
    return ModuleFiles(module, structs.replace(files.values, schemas=schemas.SectionSchemas()))


def _looked_at(found: schemas.SectionSchemas) -> schemas.SectionSchemas:
    """Return the same, once everybody has asked it what they ask later: nobody expects an error then."""
    _ = found.warnings
    return found


def _filled(values: store.ModuleValues) -> store.ModuleValues:
    """Return the same, once its files were filled in with defaults: there may be too many of those."""
    if values.schemas.config is not None or values.schemas.values is not None:
        store.ValuesStore([values], [values.common]).values(values.module)
    return values


def _switch(module: model.Module) -> Mapping[str, bool]:
    """Return what wrong values say of the switch: a module is not removed for what is wrong there."""
    try:
        text = plain_files.read_text(module.path / VALUES_FILE, errors="replace")
    except OSError:
        return {}
    return sources.switch_in(module.name, text)


def module_of(
    path: pathlib.Path,
    unnumbered_order: int,
    charts: pathlib.Path = CHARTS,
    taken: Collection[str] = (),
) -> model.Module:
    """Return the module of a directory; ``charts`` has the charts that were pulled, ``taken`` see above.

    Whatever is wrong with its name, ``module.yaml`` and chart is its problem.
    """
    wrong, of_chart = module_problems.Problems(path), module_problems.Problems(path)
    name = module_directories.module_name(path)
    if name is None:
        wrong.attempt(lambda: module_directories.check_name(path), None)
        name = names.stand_in(path.name, taken)
    order = wrong.attempt(lambda: names.directory_order(path.name), None)
    module = model.Module(name, unnumbered_order if order is None else order, path)
    if closed := module_directories.unreachable(path):
        wrong.add(closed)
        return structs.replace(module, problem=wrong.text, problems=wrong.mistakes)
    config = wrong.attempt(lambda: _module_config(module), module_config.NOTHING)
    stock = wrong.attempt(lambda: _stock_chart(path, config, charts), None)
    wrong.attempt(lambda: named_files.is_there(path / _CHART), otherwise=False)
    wrong.add(module_directories.too_much_linked(path))
    of_chart.add(of_chart.attempt(lambda: _chart_problem(path, stock), ""))
    for problem in (*module_directories.not_directories(path), *of_chart.mistakes):
        wrong.add(problem)
    return structs.replace(
        module,
        has_chart=stock is not None or wrong.attempt(lambda: chart.is_chart(path), otherwise=False),
        enabled_script=_enabled_script(path),
        config=config,
        stock=stock,
        hooks_problem=wrong.attempt(lambda: _hooks_problem(path), ""),
        chart_problems=of_chart.mistakes,
        problem=wrong.text,
        problems=wrong.mistakes,
    )


def _hooks_problem(path: pathlib.Path) -> str:
    try:
        problems = [hook_files.discover(path / hook_files.HOOKS_DIRECTORY).problem]
    except hook_files.HookFilesError as error:
        problems = [str(error)]
    script = _enabled_script(path)
    if script is not None and not start_errors.is_executable(script):
        problems.append(f"the enabled script {script} {start_errors.not_executable(script)}")
    return "; ".join(filter(None, problems))


def _chart_problem(path: pathlib.Path, stock: model.StockChart | None) -> str:
    if stock is None:
        return ""
    if chart_files.is_complete(stock.directory):
        linked = ""
        if stock.reference is None:  # Archives of repositories have no links: see chart_archives.
            linked = chart_links.problem(stock.directory, path.parent) or chart_links.nowhere(stock.directory)
        return linked or dependencies.problem(stock.directory)
    if stock.reference is not None or chart.is_chart(stock.directory):
        return ""
    return (
        f"{path / module_config.FILE}, chart.path: {stock.directory} has neither Chart.yaml nor templates/; "
        "put the chart there, or name the directory that holds it"
    )


def _module_config(module: model.Module) -> module_config.ModuleConfig:
    path = module.path / module_config.FILE
    if not named_files.is_there(path):
        return module_config.NOTHING
    return module_config.parse(module.name, named_files.read_text(path), str(path))


def _stock_chart(
    path: pathlib.Path, config: module_config.ModuleConfig, charts: pathlib.Path
) -> model.StockChart | None:
    said = config.chart
    if (wanted := said.reference) is not None:
        values = said.values or module_config.ValuesScope.ROOT
        return model.StockChart(chart_cache.place(charts, wanted), values, said.global_keys, wanted)
    if said.path is None and not _is_stock(path, config):
        return None
    directory = path / (said.path or module_config.CHART_DIRECTORY)
    is_default = directory == path / module_config.CHART_DIRECTORY
    usual = module_config.ValuesScope.ROOT if is_default else module_config.ValuesScope.SECTION
    return model.StockChart(directory, said.values or usual, said.global_keys)


def _is_stock(path: pathlib.Path, config: module_config.ModuleConfig) -> bool:
    """Say whether there is a ``chart/``; a chart without ``module.yaml`` stays a chart."""
    is_there = chart_files.is_complete(path / module_config.CHART_DIRECTORY)
    return is_there and (config is not module_config.NOTHING or not chart.is_chart(path))


def own_values(module: model.Module) -> sources.ValuesFile:
    """Return the ``values.yaml`` of a module.

    Raises a :class:`.ConfigurationError` if it cannot be read.
    """
    path = module.path / VALUES_FILE
    text = named_files.text_if_there(path)
    return sources.parse_module_values(module.name, text, str(path), has_chart=module.has_chart)


def _enabled_script(path: pathlib.Path) -> pathlib.Path | None:
    script = path / "enabled"
    return script if script.is_file() else None


def one_of_each_name(found: Sequence[ModuleFiles]) -> list[ModuleFiles]:
    """Return the modules, of those with one name the first, which cannot run then."""
    by_name: dict[names.ModuleName, ModuleFiles] = {}
    for files in found:
        name = files.module.name
        first = by_name.setdefault(name, files)
        if first is not files:
            wrong = module_problems.Problems(first.module.path, first.module.problems)
            wrong.add(same_name(name, first.module.path, files.module.path))
            module = structs.replace(first.module, problem=wrong.text, problems=wrong.mistakes)
            by_name[name] = structs.replace(first, module=module)
    return list(by_name.values())


def in_run_order(found: Sequence[ModuleFiles], namespace: str = "") -> list[ModuleFiles]:
    """Sort the modules, and say of each what is wrong with it beside the others.

    ``namespace`` is the operator's, where releases are whose modules name none.

    Raises a :class:`.ConfigurationError` for two modules of one name.
    """
    _check_unique(found)
    owners: dict[tuple[str, str], names.ModuleName] = {}
    unmet = requirements.problems([files.module for files in found])
    checked = []
    for files in sorted(found, key=lambda files: files.module.run_order):
        module = files.module
        owner = owners.setdefault((module.config.namespace or namespace, module.release), module.name)
        mistakes = module.problems if module.problem else unmet.get(module.name, ())
        problem = module.problem or "; ".join(mistakes)
        if owner != module.name and not problem:
            problem = (
                f"{module.path / module_config.FILE}, releaseName: {module.release!r} is the release of "
                f"module {owner}, too; give one of them another name, or another namespace"
            )
            mistakes = (problem,)
        is_news = problem != module.problem
        checked.append(
            structs.replace(files, module=structs.replace(module, problem=problem, problems=mistakes))
            if is_news
            else files
        )
    return checked


def _check_unique(found: Sequence[ModuleFiles]) -> None:
    paths: dict[str, pathlib.Path] = {}
    for files in found:
        other = paths.setdefault(files.module.name, files.module.path)
        if other != files.module.path:
            raise errors.ConfigurationError(same_name(files.module.name, other, files.module.path))


def same_name(name: str, one: pathlib.Path, other: pathlib.Path) -> str:
    """Say that two directories hold a module of one name, and what to do."""
    return f"two directories hold a module named {name!r}: {one} and {other}; rename or remove one of them"


def _warnings(found: Sequence[ModuleFiles]) -> tuple[str, ...]:
    of_configs = (warning for files in found for warning in files.module.config.warnings)
    of_schemas = (warning for files in found for warning in files.values.schemas.warnings)
    of_files = (warning for files in found for warning in unused_files.in_module(files.module))
    return (*of_configs, *of_schemas, *of_files)
