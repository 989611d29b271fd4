"""What is wrong with the values, schemas and names of modules on disk: everything, not the first thing."""

import contextlib
import dataclasses
import enum
import os
import pathlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from addon_operator.app import hook_environment
from addon_operator.commands import values_files
from addon_operator.commands.checks import lint_rules
from addon_operator.documents import yaml_reading
from addon_operator.engine.hooks import settings_programs
from addon_operator.helm.charts import chart_slips
from addon_operator.inspection import values_worker
from addon_operator.kernel import errors, names
from addon_operator.loading import (
    hook_files,
    module_directories,
    module_files,
    module_schemas,
    named_files,
    shared_values,
    value_origins,
)
from addon_operator.modules import chart_values, model
from addon_operator.process.children import children, launcher
from addon_operator.values import checks, inspectors, settings_checks, sources, store
from addon_operator.values.schema import cel_rules, schemas

_PROGRAM_SECONDS: Final = 60.0
"""For all programs that check the settings of one module."""


Rule = lint_rules.Rule


class Level(enum.StrEnum):
    """How bad it is."""

    ERROR = "error"
    """The operator would refuse it."""
    WARNING = "warning"
    """The operator would take it, and the author might not have meant it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at."""

    level: Level
    subject: str
    """The module, ``global``, or a directory."""
    problem: str
    """One sentence, with file and position where there is one."""
    rule: Rule = dataclasses.field(compare=False)
    """The rule of ``module lint`` that it breaks; what is found twice is one finding."""


class ValuesReport(msgspec.Struct, frozen=True):
    """All that was found."""

    findings: tuple[Finding, ...]
    modules: int
    """How many modules were looked at."""
    notes: tuple[str, ...] = ()
    """What was not looked at, and why: nothing is wrong with the modules."""
    ignored: int = 0
    """How many findings comments in files ignore."""

    @property
    def failed(self) -> bool:
        """Whether the operator would refuse something."""
        return any(finding.level is Level.ERROR for finding in self.findings)


def joined(reports: Sequence[ValuesReport]) -> ValuesReport:
    """Return what several reports found, each finding once."""
    findings = dict.fromkeys(finding for report in reports for finding in report.findings)
    notes = dict.fromkeys(note for report in reports for note in report.notes)
    return ValuesReport(tuple(findings), sum(report.modules for report in reports), tuple(notes))


def check(
    places: values_files.FilesToCheck,
    config: pathlib.Path | None = None,
    secret: pathlib.Path | None = None,
    *,
    strict: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> ValuesReport:
    """Look at all modules, whether they are enabled or not.

    ``config`` and ``secret`` are files in the place of the values ConfigMap and the values Secret; with
    ``strict``, what checks nothing in a schema is an error. Values are checked within the bounds of time and
    memory that they have in a running operator; programs that check settings are asked.
    """
    level = Level.ERROR if strict else Level.WARNING
    with (
        values_worker.ValuesWorker() as inspector,
        launcher.Launcher() as starter,
        tempfile.TemporaryDirectory(prefix="addon-operator-values-") as directory,
    ):
        workspace = pathlib.Path(directory)
        environment = hook_environment.offered(
            hook_environment.inherited(environ, places.hook_env), workspace
        )
        programs = settings_programs.SettingsPrograms(
            children.Children(starter, leaves_nothing=True), environment, workspace
        )
        return _ValuesCheck(places, level, inspector, programs).run(config, secret)


class _ValuesCheck:
    def __init__(
        self,
        places: values_files.FilesToCheck,
        schema_level: Level,
        inspector: inspectors.Inspector,
        programs: settings_checks.SettingsChecks,
    ) -> None:
        self._places = places
        self._inspector = inspector
        self._programs = programs
        self._schema_level = schema_level
        self._findings: list[Finding] = []
        self._notes: list[str] = []
        self._evaluator = cel_rules.CelEvaluator()
        self._seen: dict[names.ModuleName, pathlib.Path] = {}

    def run(self, config: pathlib.Path | None, secret: pathlib.Path | None) -> ValuesReport:
        common: list[sources.ValuesFile] = []
        modules: list[module_files.ModuleFiles] = []
        for directory in self._places.modules_dirs:
            file, below = self._common(directory)
            common.append(file)
            modules += self._modules(directory, below, file)
        for files in module_files.in_run_order(modules):
            for mistake in files.module.mistakes:
                rule = Rule.CHART if mistake in files.module.chart_problems else Rule.MODULE
                self._add(Level.ERROR, _subject(files.module), mistake, rule)
        values = store.ValuesStore(
            [files.values for files in modules],
            common,
            self._schemas(names.GLOBAL_KEY, self._places.global_hooks_dir),
            self._inspector,
            settings_checks=self._programs,
        )
        if config is not None:
            self._take_config(values, config, "ConfigMap")
        if secret is not None:
            self._take_config(values, secret, "Secret")
        for module in (None, *values.modules):
            self._check_values(values, module)
        for files in modules:
            self._check_spelling(files, values.config)
        return self._report(config, secret)

    def _report(self, *given: pathlib.Path | None) -> ValuesReport:
        if (only := self._places.only) is None:
            return ValuesReport(tuple(self._findings), len(self._seen), tuple(self._notes))
        subjects = {only, *map(str, given)}
        subjects |= {name for name, path in self._seen.items() if path.name == only}
        return ValuesReport(tuple(finding for finding in self._findings if finding.subject in subjects), 1)

    def _add(self, level: Level, subject: object, problem: object, rule: Rule) -> None:
        self._findings.append(Finding(level, str(subject), str(problem), rule))

    @contextlib.contextmanager
    def _noting(self, subject: object, rule: Rule) -> Iterator[None]:
        """Turn an error into findings."""
        try:
            yield
        except sources.ConfigMapError as error:
            for problem in error.violations:
                self._add(Level.ERROR, subject, problem, rule)
        except errors.ConfigurationError as error:
            for problem in error.mistakes:
                self._add(Level.ERROR, subject, problem, rule)
        except Exception as error:  # noqa: BLE001 - whatever is read, the rest is looked at, too
            self._add(Level.ERROR, subject, errors.told(error, f"reading {subject}"), rule)

    def _common(self, directory: pathlib.Path) -> tuple[sources.ValuesFile, Sequence[pathlib.Path]]:
        """Read what the modules of a directory share; return it with these."""
        path = directory / module_files.VALUES_FILE
        file, below = sources.ValuesFile(str(path)), list[pathlib.Path]()
        with self._noting(directory.absolute(), Rule.VALUES_FILE):
            below = module_directories.listed(directory)
            if not below:
                self._notes.append(f"{directory.absolute()} holds no module, so nothing is checked there")
            file = module_files.common_values(directory)
            self._warn_of_flags(directory.absolute(), file)
            self._warn_of_words(directory.absolute(), path)
        return file, below

    def _modules(
        self, directory: pathlib.Path, below: Sequence[pathlib.Path], common: sources.ValuesFile
    ) -> list[module_files.ModuleFiles]:
        found = [self._module(path, common) for path in below]
        modules = [files for files in found if files is not None]
        for problem in shared_values.strangers(common, [files.module.name for files in modules]):
            self._add(Level.WARNING, directory.absolute(), problem, Rule.UNKNOWN_SECTION)
        return modules

    def _module(self, path: pathlib.Path, common: sources.ValuesFile) -> module_files.ModuleFiles | None:
        module = module_files.module_of(path, self._places.unnumbered_module_order, self._places.charts)
        try:
            self._check_unique(module)
        except errors.ConfigurationError as error:
            self._add(Level.ERROR, path.name, error, Rule.MODULE)
            return None
        if module_directories.unreachable(path):
            self._add(Level.ERROR, module.name, module.problem, Rule.MODULE)
            return None
        own = sources.ValuesFile(str(path / module_files.VALUES_FILE))
        with self._noting(module.name, Rule.VALUES_FILE):
            own = module_files.own_values(module)
            self._warn_of_flags(module.name, own)
            self._warn_of_words(module.name, path / module_files.VALUES_FILE)
        checks = self._schemas(module.name, path, module)
        for problem in module_schemas.unknown_sensitive(module, checks):
            self._add(Level.ERROR, module.name, problem, Rule.MODULE)
        hooks = path / hook_files.HOOKS_DIRECTORY
        values = store.ModuleValues(module.name, common, own, checks, hooks=hooks)
        return module_files.ModuleFiles(module, values)

    def _check_unique(self, module: model.Module) -> None:
        other = self._seen.setdefault(module.name, module.path)
        if other != module.path:
            # One that no module can be called has the other's name only for want of its own.
            module_directories.check_name(module.path)
            raise errors.ConfigurationError(
                f"{module.path}: {other} holds a module of this name, too; rename or remove one of them"
            )

    def _schemas(
        self, subject: str, path: pathlib.Path, module: model.Module | None = None
    ) -> schemas.SectionSchemas:
        section_schemas = schemas.SectionSchemas()
        with self._noting(subject, Rule.SCHEMA):
            section_schemas = (
                module_schemas.read_schemas(path, self._evaluator)
                if module is None
                else module_schemas.schemas_of(module, self._evaluator)
            )
        for warning in section_schemas.warnings:
            self._add(self._schema_level, subject, warning, Rule.SCHEMA_KEYWORD)
        return section_schemas

    def _warn_of_flags(self, subject: object, file: sources.ValuesFile) -> None:
        for warning in file.misplaced:
            self._add(Level.WARNING, subject, warning, Rule.VALUES_FILE)

    def _warn_of_words(self, subject: object, path: pathlib.Path) -> None:
        text = named_files.read_text(path) if path.exists() else ""
        for warning in yaml_reading.unusual_booleans(text, str(path)):
            self._add(Level.WARNING, subject, warning, Rule.BOOLEAN_WORD)

    def _take_config(self, values: store.ValuesStore, path: pathlib.Path, kind: str) -> None:
        with self._noting(path, Rule.VALUES):
            reading = values_files.look_at_config(path, values.modules, kind)
            for problem in reading.violations:
                self._add(Level.ERROR, path, problem, Rule.VALUES)
            for warning in reading.values.warnings:
                self._add(Level.WARNING, path, warning, Rule.VALUES)
            is_secret = kind == "Secret"
            values.set_config(
                dataclasses.replace(values.config, secret=reading.values) if is_secret else reading.values
            )

    def _check_values(self, values: store.ValuesStore, module: names.ModuleName | None) -> None:
        subject = module or names.GLOBAL_KEY
        is_off = module is not None and not values.flag(module).enabled
        reported = set()
        lines = value_origins.SourceLines()
        with settings_checks.within(_PROGRAM_SECONDS) as question:
            violations = checks.Checks(values).section_violations(module)
        for text in question.warnings:
            self._add(Level.WARNING, subject, text, Rule.VALUES)
        for violation in violations:
            reported.add(violation.path)
            # Whoever switches the module on can still add the key.
            level = Level.WARNING if is_off and violation.is_missing_key else Level.ERROR
            self._add(level, subject, lines.of(violation), Rule.VALUES)
        present = values.frozen(module)
        for violation in present.values_violations(present.present):
            # What is missing now may come from a hook.
            if not violation.is_missing_key and violation.path not in reported:
                self._add(Level.ERROR, subject, lines.of(violation), Rule.VALUES)
        for rule in present.skipped_rules():
            self._add(Level.WARNING, subject, rule, Rule.SCHEMA_RULE)

    def _check_spelling(self, files: module_files.ModuleFiles, config: sources.ConfigValues) -> None:
        """Warn of keys that a public chart does not have, and that are like one that it has."""
        module, own = files.module, files.values
        given = {
            own.common.source: own.common.section(module.key),
            own.own.source: own.own.section(module.key),
            config.source: config.sections.get(module.key, {}),
        }
        if config.secret is not None:
            given[config.secret.source] = config.secret_section(module.key)
        if module.stock is None or not any(given.values()):
            return
        below = chart_values.has_section(module)
        for said in chart_slips.in_values(module.name, module.chart_directory, given, below):
            self._add(Level.WARNING, module.name, said, Rule.UNKNOWN_VALUE)


def _subject(module: model.Module) -> str:
    """Return the module's name, or else that of its directory, if no module can be called like that."""
    return module.name if module_directories.module_name(module.path) else module.path.name
