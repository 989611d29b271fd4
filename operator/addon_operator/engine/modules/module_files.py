"""Modules and values files as found on disk."""

import dataclasses
import functools
import os
import pathlib
from collections.abc import Iterator, Sequence

from addon_operator.engine.modules import stock_schemas
from addon_operator.helm.charts import chart, chart_cache, chart_files, chart_links, dependencies
from addon_operator.kernel import errors, names
from addon_operator.modules import model, module_config, requirements
from addon_operator.values import inspection, sources, store
from addon_operator.values.schema import cel_rules, schema_rules, schemas, sensitive_keys

VALUES_FILE = "values.yaml"
SCHEMAS_DIRECTORY = "openapi"
CONFIG_SCHEMA_FILE = "config-values.yaml"
CHARTS = pathlib.Path("charts")
"""Where charts from repositories lie if nobody says anything else."""


@dataclasses.dataclass(frozen=True, slots=True)
class ModuleFiles:
    """One module and the values files that serve it."""

    module: model.Module
    values: store.ModuleValues


@dataclasses.dataclass(frozen=True, slots=True)
class LoadedModules:
    """Everything that the modules directories hold."""

    modules: tuple[ModuleFiles, ...]
    """In run order."""
    common: tuple[sources.ValuesFile, ...]
    """The directories' own ``values.yaml``, in the order of the directories."""
    warnings: tuple[str, ...] = ()
    global_schemas: schemas.SectionSchemas = dataclasses.field(default_factory=schemas.SectionSchemas)
    """``openapi/`` of the global hooks directory."""
    charts: pathlib.Path = CHARTS
    """Where charts from repositories lie."""
    namespace: str = ""
    """That of the operator; empty where it is not known."""

    def store(self, inspector: inspection.Inspector = inspection.HERE) -> store.ValuesStore:
        """Make a store of these files; ``inspector`` checks what is put into it."""
        values = [files.values for files in self.modules]
        return store.ValuesStore(values, self.common, self.global_schemas, inspector)


def load(
    directories: Sequence[pathlib.Path],
    unnumbered_order: int,
    global_hooks: pathlib.Path | None = None,
    *,
    charts: pathlib.Path = CHARTS,
    namespace: str = "",
) -> LoadedModules:
    """Read all modules directories, and the schemas of global values; ``charts`` has those that were pulled.

    ``namespace`` is the operator's, if it is known.

    Raises a :class:`.ConfigurationError` for a missing directory, a name that
    cannot be a module's, two modules of one name, and values files and schemas that cannot be read.
    """
    found: list[ModuleFiles] = []
    common: list[sources.ValuesFile] = []
    evaluator = cel_rules.CelEvaluator()
    for directory in directories:
        common.append(common_values(directory))
        found.extend(
            read_module(path, common[-1], unnumbered_order, evaluator, charts)
            for path in module_directories(directory)
        )
    found = in_run_order(found, namespace)
    global_schemas = (
        schemas.SectionSchemas() if global_hooks is None else read_schemas(global_hooks, evaluator)
    )
    warnings = (*_warnings(found), *global_schemas.warnings)
    return LoadedModules(tuple(found), tuple(common), warnings, global_schemas, charts, namespace)


def module_directories(directory: pathlib.Path) -> Iterator[pathlib.Path]:
    """Return the directories of modules in a modules directory, by name."""
    entries = sorted(directory.iterdir())
    return (entry for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def common_values(directory: pathlib.Path) -> sources.ValuesFile:
    """Return the ``values.yaml`` of a modules directory.

    Raises a :class:`.ConfigurationError` if it cannot be read.
    """
    if not directory.is_dir():
        problem = "is not a directory" if directory.exists() else "does not exist"
        raise errors.ConfigurationError(
            f"modules directory {directory} {problem}; name it with MODULES_DIR or --modules-dir"
        )
    path = directory / VALUES_FILE
    return sources.parse_common_values(read_text(path) if path.exists() else "", str(path))


def read_module(
    path: pathlib.Path,
    common: sources.ValuesFile,
    unnumbered_order: int,
    evaluator: schema_rules.RuleEvaluator,
    charts: pathlib.Path = CHARTS,
) -> ModuleFiles:
    """Load one module; raises a :class:`.ConfigurationError` like :func:`load`."""
    module = module_of(path, unnumbered_order, charts)
    own = own_values(module)
    return ModuleFiles(module, store.ModuleValues(module.name, common, own, schemas_of(module, evaluator)))


def module_of(path: pathlib.Path, unnumbered_order: int, charts: pathlib.Path = CHARTS) -> model.Module:
    """Return the module of a directory; ``charts`` has the charts that were pulled.

    Raises :class:`.ModuleNameError` for a name that cannot be a module's.
    """
    try:
        order, name = names.parse_module_directory(path.name)
    except names.ModuleNameError as error:
        raise names.ModuleNameError(f"{path}: {error}") from None
    config, problem = _module_config(name, path / module_config.FILE)
    stock = _stock_chart(path, config, charts)
    return model.Module(
        name=name,
        order=unnumbered_order if order is None else order,
        path=path,
        has_chart=chart.is_chart(path) if stock is None else True,
        enabled_script=_enabled_script(path),
        config=config,
        stock=stock,
        problem=problem or _chart_problem(path, stock),
    )


def _chart_problem(path: pathlib.Path, stock: model.StockChart | None) -> str:
    if stock is None:
        return ""
    if chart_files.is_complete(stock.directory):
        # Archives of repositories have no links: see chart_archives.
        linked = "" if stock.reference is not None else chart_links.problem(stock.directory, path.parent)
        return linked or dependencies.problem(stock.directory)
    if stock.reference is not None or chart.is_chart(stock.directory):
        return ""
    return (
        f"{path / module_config.FILE}, chart.path: {stock.directory} has neither Chart.yaml nor templates/; "
        "put the chart there, or name the directory that holds it"
    )


def _module_config(module: names.ModuleName, path: pathlib.Path) -> tuple[module_config.ModuleConfig, str]:
    """Return what ``module.yaml`` says, and what is wrong with it, which stops only this module."""
    if not os.path.lexists(path):  # A link that leads nowhere is a mistake.
        return module_config.NOTHING, ""
    try:
        return module_config.parse(module, read_text(path), str(path)), ""
    except errors.ConfigurationError as error:
        return module_config.NOTHING, str(error)


def _stock_chart(
    path: pathlib.Path, config: module_config.ModuleConfig, charts: pathlib.Path
) -> model.StockChart | None:
    said = config.chart
    if (wanted := said.reference) is not None:
        values = said.values or module_config.ValuesPlace.ROOT
        return model.StockChart(chart_cache.place(charts, wanted), values, said.global_keys, wanted)
    if said.path is None and not _is_stock(path, config):
        return None
    directory = path / (said.path or module_config.CHART_DIRECTORY)
    is_default = directory == path / module_config.CHART_DIRECTORY
    usual = module_config.ValuesPlace.ROOT if is_default else module_config.ValuesPlace.SECTION
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
    return sources.parse_module_values(module.name, read_text(path) if path.exists() else "", str(path))


def schemas_of(module: model.Module, evaluator: schema_rules.RuleEvaluator) -> schemas.SectionSchemas:
    """Return what checks the values of a module, and what of them is hidden.

    Raises a :class:`.ConfigurationError` like :func:`read_schemas`.
    """
    found = read_schemas(module.path, evaluator)
    if module.stock is None and not module.config.sensitive:
        return found
    has_own = found.config is not None or found.values is not None
    return dataclasses.replace(
        found,
        chart=None if module.stock is None else stock_schemas.section_chart(module),
        hidden=sensitive_keys.SensitiveKeys(
            tuple(map(sensitive_keys.parse, module.config.sensitive)),
            by_name=module.stock is not None and not has_own,
        ),
    )


def read_schemas(path: pathlib.Path, evaluator: schema_rules.RuleEvaluator) -> schemas.SectionSchemas:
    """Read ``openapi/`` of a module or of the global hooks; either file may be missing.

    Raises a :class:`.ConfigurationError` that names file and position.
    """
    config, values = (
        _schema_text(path / SCHEMAS_DIRECTORY / name) for name in (CONFIG_SCHEMA_FILE, VALUES_FILE)
    )
    return schemas.load_schemas(config, values, evaluator, functools.partial(_referred, path))


def _referred(root: pathlib.Path, source: str, reference: str) -> tuple[str, str]:
    """Read the file that a schema of ``root`` refers to, with its name; see ``schema_loading.FileReader``."""
    path = pathlib.Path(os.path.normpath(pathlib.Path(source).parent / reference))
    if "://" in reference or pathlib.PurePath(reference).is_absolute():
        raise errors.ConfigurationError(f"{reference!r} must be a relative path; copy the file into {root}")
    if not path.resolve().is_relative_to(root.resolve()):
        raise errors.ConfigurationError(f"{reference!r} lies outside of {root}; copy the file into it")
    return read_text(path), str(path)


def _schema_text(path: pathlib.Path) -> tuple[str, str] | None:
    return (read_text(path), str(path)) if path.exists() else None


def _enabled_script(path: pathlib.Path) -> pathlib.Path | None:
    script = path / "enabled"
    return script if script.is_file() else None


def read_text(path: pathlib.Path) -> str:
    """Read the text of a UTF-8 file; an unreadable one is a :class:`ConfigurationError` that says why."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise errors.ConfigurationError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise errors.ConfigurationError(
            f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from None


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
        problem = module.problem or unmet.get(module.name, "")
        if owner != module.name and not problem:
            problem = (
                f"{module.path / module_config.FILE}, releaseName: {module.release!r} is the release of "
                f"module {owner}, too; give one of them another name, or another namespace"
            )
        is_news = problem != module.problem
        checked.append(
            dataclasses.replace(files, module=dataclasses.replace(module, problem=problem))
            if is_news
            else files
        )
    return checked


def _check_unique(found: Sequence[ModuleFiles]) -> None:
    paths: dict[str, pathlib.Path] = {}
    for files in found:
        other = paths.setdefault(files.module.name, files.module.path)
        if other != files.module.path:
            raise errors.ConfigurationError(
                f"two directories hold a module named {files.module.name!r}: {other} and {files.module.path}"
                "; rename or remove one of them"
            )


def warnings_of_script(module: model.Module) -> Iterator[str]:
    """Yield a sentence if the module has an ``enabled`` script that cannot be run."""
    script = module.enabled_script
    if script is not None and not os.access(script, os.X_OK):
        yield f"{script} is not executable and is ignored; make it executable with 'chmod +x'"


def _warnings(found: Sequence[ModuleFiles]) -> tuple[str, ...]:
    not_run = (warning for files in found for warning in warnings_of_script(files.module))
    of_configs = (warning for files in found for warning in files.module.config.warnings)
    of_schemas = (warning for files in found for warning in files.values.schemas.warnings)
    return (*not_run, *of_configs, *of_schemas)
