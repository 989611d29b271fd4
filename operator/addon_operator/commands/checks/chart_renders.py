"""Charts of modules on disk, rendered with the values that files alone make; no cluster is asked."""

import asyncio
import contextlib
import dataclasses
import os
import pathlib
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import structs

from addon_operator.commands import authors_helm, values_files
from addon_operator.commands.checks import (
    lint_rules,
    object_checks,
    template_values,
    unmatched_entries,
    values_check,
)
from addon_operator.devcluster import api_schemas, locations
from addon_operator.documents import manifest_diff
from addon_operator.engine.modules import module_releases
from addon_operator.helm import binary, capabilities, command, messages, release_types
from addon_operator.helm.charts import chart_files, template_lines
from addon_operator.helm.releases import rendering
from addon_operator.inspection import values_worker
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors, names
from addon_operator.loading import hook_files, module_files, module_schemas, value_origins
from addon_operator.modules import keeping, model
from addon_operator.process.children import children, launcher
from addon_operator.values import checks, store
from addon_operator.values.schema import cel_rules, schema_violations, schemas

_ERROR, _WARNING = values_check.Level.ERROR, values_check.Level.WARNING
_Rule = lint_rules.Rule
_RULES: Final = {
    object_checks.Mistake.WRONG: _Rule.OBJECT,
    object_checks.Mistake.UNKNOWN_FIELD: _Rule.UNKNOWN_FIELD,
    object_checks.Mistake.MISSING: _Rule.INCOMPLETE_OBJECT,
    object_checks.Mistake.REPEATED: _Rule.OBJECT,
}
_NAMESPACE: Final = "default"
_STEP_SECONDS: Final = 30.0
_SOME_VERSION: Final = "v1.34.0"
"""What charts take for the cluster's, if no schemas tell a version."""
_IN_THE_TEXT: Final = re.compile(
    r"parse error at \(|no template |function \"[^\"]{0,200}\" not defined|larger than the maximum file size"
)
"""What values have no part in."""
_NIL: Final = re.compile(r"nil pointer evaluating [^\s.]{0,50}(?: \{\})?\.([A-Za-z0-9_]{1,200})")
_LOOKS_UP: Final = "the chart looks up objects in the cluster"
_NO_YAML: Final = re.compile(r"YAML parse error on |unable to parse YAML")
_OF_THE_CLUSTER: Final = "chart requires kubeVersion"
_NO_SCHEMAS: Final = (
    "what charts render to is not checked by the schemas of Kubernetes: the cache has none; "
    "'addon-operator devcluster up' puts them there"
)
EXAMPLES: Final = "examples"
"""Where a module has example values, each file in the place of the ConfigMap."""
_MOST_EXAMPLES: Final = 50
_INCOMPLETE: Final = "its values are not complete"
_NAMED: Final = 3
_HELM_4: Final = 4


def check(
    places: values_files.FilesToCheck,
    found: Sequence[module_files.ModuleFiles],
    broken: Collection[str],
    environ: Mapping[str, str] = os.environ,
) -> values_check.ValuesReport:
    """Render all charts that can be rendered, and look at what comes out.

    ``found``: the modules that are :func:`readable`; ``broken``: those whose charts cannot be read, as is
    known already. The report's notes say what was not looked at.
    """
    files = [each for each in found if each.module.name not in broken]
    charts = [each.module for each in files if _is_rendered(each.module, places.only)]
    if not charts:
        return values_check.ValuesReport((), 0)
    types = api_schemas.load(locations.locate(environ).cache)
    try:
        reports = values_check.joined(asyncio.run(_render(places, files, charts, types, environ)))
    except binary.HelmBinaryError as error:
        return values_check.ValuesReport((), 0, (f"charts are not rendered: {error}",))
    return structs.replace(reports, notes=(*reports.notes, *([] if types else [_NO_SCHEMAS])))


def readable(places: values_files.FilesToCheck) -> list[module_files.ModuleFiles]:
    """Return the modules that can be read, one of each name; what is wrong with others is told elsewhere."""
    readable: dict[names.ModuleName, module_files.ModuleFiles] = {}
    evaluator = cel_rules.CelEvaluator()
    for directory, below in places.directories.items():
        with contextlib.suppress(errors.ConfigurationError):
            common = module_files.common_values(directory)
            for path in below:
                with contextlib.suppress(errors.ConfigurationError):
                    order = places.unnumbered_module_order
                    found = module_files.read_module(path, common, order, evaluator, places.charts)
                    readable.setdefault(found.module.name, found)
    return module_files.in_run_order(list(readable.values()))


def _is_rendered(module: model.Module, only: str | None) -> bool:
    is_chosen = only in (None, module.path.name)
    return is_chosen and module.has_chart and not module.problem and module.chart_directory.is_dir()


async def _render(
    places: values_files.FilesToCheck,
    files: Sequence[module_files.ModuleFiles],
    charts: Sequence[model.Module],
    known: api_schemas.ApiSchemas | None,
    environ: Mapping[str, str],
) -> Sequence[values_check.ValuesReport]:
    with (
        launcher.Launcher() as starter,
        tempfile.TemporaryDirectory(prefix="addon-operator-lint-") as workspace,
        values_worker.ValuesWorker() as worker,
    ):
        programs = children.Children(starter)
        found = await authors_helm.find_helm(environ, programs)
        target = command.HelmTarget(_NAMESPACE)
        helm = command.Helm(found, target, environ, pathlib.Path(workspace), programs, _ignore)
        helm.places.assign(each.module for each in files)
        values = _store(places, files, worker)
        by_name = {each.module.name: each for each in files}
        reports = await _Renders(helm, values, known, places.global_hooks_dir, by_name).reports(charts)
        wrong_ones: list[values_check.ValuesReport] = []
        of_examples: list[tuple[pathlib.Path, values_check.ValuesReport]] = []
        for module in charts:
            chosen, notes = examples(module)
            wrong_ones.append(values_check.ValuesReport((), 0, notes))
            for example in chosen:
                given = _store(places, files, worker)
                if wrong := await asyncio.to_thread(_take, given, module, example):
                    wrong_ones.append(wrong)
                    continue
                renders = _Renders(helm, given, known, places.global_hooks_dir, by_name)
                of_examples += [(example, each) for each in await renders.reports([module])]
        return [*reports, *wrong_ones, _only_with(of_examples, values_check.joined(reports))]


def examples(module: model.Module) -> tuple[list[pathlib.Path], tuple[str, ...]]:
    """Return the files with example values of a module that are looked at, and a note of others."""
    directory = module.path / EXAMPLES
    found = sorted(directory.glob("*.yaml"))
    if (left := len(found) - _MOST_EXAMPLES) <= 0:
        return found, ()
    note = f"{directory} has {len(found)} files, of which the last {left} by name are not looked at"
    return found[:_MOST_EXAMPLES], (note,)


def _take(
    values: store.ValuesStore, module: model.Module, example: pathlib.Path
) -> values_check.ValuesReport | None:
    """Put an example in the place of the ConfigMap; return what is wrong with it."""
    try:
        values.set_config(values_files.read_config(example, values.modules))
    except errors.ConfigurationError as error:
        found = (values_check.Finding(_ERROR, module.name, str(error), _Rule.EXAMPLE),)
        return values_check.ValuesReport(found, 0)
    violations = checks.Checks(values).section_violations(module.name)
    lines = value_origins.SourceLines()
    wrong = tuple(
        values_check.Finding(_ERROR, module.name, f"{example}: {lines.of(each)}", _Rule.EXAMPLE)
        for each in violations
    )
    return values_check.ValuesReport(wrong, 0) if wrong else None


def _only_with(
    examples: Sequence[tuple[pathlib.Path, values_check.ValuesReport]], without: values_check.ValuesReport
) -> values_check.ValuesReport:
    """Return what is so only with examples: each thing once, with the files whose values make it so."""
    findings: dict[values_check.Finding, list[str]] = {}
    notes: dict[str, list[str]] = {}
    for example, report in examples:
        for finding in dict.fromkeys(report.findings):
            findings.setdefault(finding, []).append(str(example))
        for note in dict.fromkeys(report.notes):
            notes.setdefault(note, []).append(str(example))
    told = (
        dataclasses.replace(each, problem=f"{each.problem}; with the values of {names.listed(files, _NAMED)}")
        for each, files in findings.items()
        if each not in without.findings
    )
    noted = (
        f"{note}; with the values of {names.listed(files, _NAMED)}"
        for note, files in notes.items()
        if note not in without.notes
    )
    return values_check.ValuesReport(tuple(told), 0, tuple(noted))


def _ignore(_module: str, _warning: str) -> None:
    """Ignore it: the operator logs what Helm warns of."""


def _store(
    places: values_files.FilesToCheck,
    files: Sequence[module_files.ModuleFiles],
    worker: values_worker.ValuesWorker,
) -> store.ValuesStore:
    shared = schemas.SectionSchemas()
    with contextlib.suppress(errors.ConfigurationError):
        shared = module_schemas.read_schemas(places.global_hooks_dir, cel_rules.CelEvaluator())
    common = {each.values.common.source: each.values.common for each in files}
    return store.ValuesStore([each.values for each in files], list(common.values()), shared, worker)


def _told(error: errors.AddonOperatorError, module: model.Module) -> str:
    return str(error).removeprefix(f"module {module.name}: ")


def _of_samples(finding: values_check.Finding) -> values_check.Finding:
    """Return a finding that may be due to a value that was made up."""
    if finding.rule is not _Rule.OBJECT:
        return finding
    problem = (
        f"{finding.problem}; hooks set values of it, in whose place samples stood: an example in "
        "openapi/values.yaml makes better ones"
    )
    return dataclasses.replace(finding, level=_WARNING, problem=problem)


def _in_words(text: str) -> str:
    """Return what Helm says of a value that is missing as what an author can do about it."""
    return _NIL.sub(
        r"nothing is there that has the field '\1'; describe it in openapi/values.yaml, or "
        "set it in a file of examples/",
        text,
    )


class _Renders:
    def __init__(
        self,
        helm: command.Helm,
        values: store.ValuesStore,
        known: api_schemas.ApiSchemas | None,
        global_hooks: pathlib.Path,
        files: Mapping[names.ModuleName, module_files.ModuleFiles],
    ) -> None:
        version = known.version if known else _SOME_VERSION

        async def read() -> capabilities.Capabilities:
            return capabilities.Capabilities(version, frozenset())

        clock = clocks.SystemClock()
        reader = capabilities.CapabilityReader(read, clock)
        self._renderer = rendering.ChartRenderer(helm, reader, _STEP_SECONDS, clock)
        self._values = values
        self._files = files
        self._objects = object_checks.ObjectChecks(known)
        self._has_global_hooks = template_values.has_hooks(hook_files.global_hooks_root(global_hooks))
        self._by_helm_4 = _ERROR if helm.binary.major >= _HELM_4 else _WARNING
        self._turns = asyncio.Semaphore(os.cpu_count() or 1)
        self._places = helm.places
        self._rendered: dict[tuple[str, ...], dict[names.ModuleName, tuple[str, template_lines.Field]]] = {}
        """Which modules render an object, and where."""

    async def reports(self, charts: Sequence[model.Module]) -> Sequence[values_check.ValuesReport]:
        found = await asyncio.gather(*map(self._report, charts))
        return [*found, values_check.ValuesReport(tuple(self._shared()), 0)]

    def _shared(self) -> Iterator[values_check.Finding]:
        """Yield a finding for each module that renders an object which belongs to one that runs later."""
        lines = template_lines.Places()
        for by_module in self._rendered.values():
            *earlier, owner = sorted(by_module, key=self._places.turn)
            for module in earlier:
                file, field = by_module[module]
                said = (
                    f"{lines.of(file, field)} renders {field.kind} {field.name}, which module {owner} "
                    f"renders too: with both enabled it belongs to {owner}, which runs later, and the "
                    f"release of {module} leaves it out; give one another name, or remove it"
                )
                yield values_check.Finding(_WARNING, module, said, _Rule.OBJECT_SHARED)

    def _twice(
        self, module: names.ModuleName, document: manifest_diff.ManifestDocument, file: str, namespace: str
    ) -> Iterator[tuple[template_lines.Field, str]]:
        """Note where objects are rendered; yield each that the module rendered before, with a sentence."""
        for body in object_checks.bodies(document):
            identity = object_checks.identity(body, namespace)
            if identity is None:
                continue
            field = template_lines.Field(str(body["kind"]), identity[-1])
            by_module = self._rendered.setdefault(identity, {})
            if module in by_module:
                said = (
                    f"renders {field.kind} {field.name}, which {by_module[module][0]} renders, too; Helm "
                    "refuses to install both, and later keeps one: give one another name, or remove it"
                )
                yield field, said
            by_module.setdefault(module, (file, field))

    async def _report(self, module: model.Module) -> values_check.ValuesReport:
        async with self._turns:
            missing = await asyncio.to_thread(self._missing, module)
            request = structs.replace(module_releases.request_of(self._values, module), skips_schemas=True)
            try:
                manifest = await self._manifest(request, missing)
            except errors.AddonOperatorError as error:
                text = _told(error, module)
                return await self._with_samples(module, request, text, missing)
            return await asyncio.to_thread(self._of_manifest, module, manifest, missing)

    async def _manifest(self, request: release_types.ReleaseRequest, missing: list[str]) -> str:
        inputs = await self._renderer.inputs(request)
        if inputs.mentions & chart_files.Mention.LOOKUP and _LOOKS_UP not in missing:
            missing.append(_LOOKS_UP)
        offline = structs.replace(inputs, mentions=inputs.mentions & ~chart_files.Mention.LOOKUP)
        async with self._renderer.files(request, offline) as files:
            return await self._renderer.render(request, offline, files, is_upgrade=False)

    async def _with_samples(
        self, module: model.Module, request: release_types.ReleaseRequest, text: str, missing: list[str]
    ) -> values_check.ValuesReport:
        """Render once more what failed for values that may come from elsewhere, with samples of them."""
        failure = self._failure(module, text, missing)
        if failure.failed:
            return failure
        given = await asyncio.to_thread(
            template_values.with_samples, self._files[module.name], request.values
        )
        try:
            manifest = await self._manifest(structs.replace(request, values=given), missing)
        except errors.AddonOperatorError as error:
            return self._failure(module, _told(error, module), missing)
        report = await asyncio.to_thread(self._of_manifest, module, manifest, missing)
        findings = (_of_samples(each) for each in report.findings)
        return structs.replace(report, findings=tuple(findings))

    def _missing(self, module: model.Module) -> list[str]:
        """Return why a run of the module may have values that files do not give."""
        missing = []
        try:
            checks.Checks(self._values).checking_helm_values(module.name)()
        except schema_violations.InvalidValuesError as error:
            is_absent = all(each.is_missing_key for each in error.violations)
            keys = names.listed([f"{each.path} {each.rule}" for each in error.violations], _NAMED)
            missing.append(f"{_INCOMPLETE}: {keys}" if is_absent else "its values are not valid")
        if template_values.has_hooks(module.path / hook_files.HOOKS_DIRECTORY):
            missing.append("its hooks may set values")
        if not self._values.flag(module.name).enabled:
            missing.append("it is off by default")
        return missing

    def _failure(self, module: model.Module, text: str, missing: Sequence[str]) -> values_check.ValuesReport:
        """Tell of a chart that does not render: a mistake, or a note if values may be all that it lacks."""
        is_wrong = bool(_IN_THE_TEXT.search(text))
        reasons = list(missing)
        if self._has_global_hooks and ".global" in text:
            reasons.append("global hooks may set values")
        if messages.is_of_the_chart(text):
            reasons.append("the chart demands values")
        if _OF_THE_CLUSTER in text:
            reasons.append("it is for other versions of Kubernetes")
        if _NO_YAML.search(text) and not any(reason.startswith(_INCOMPLETE) for reason in reasons):
            is_wrong = True
        if is_wrong or not reasons:
            return values_check.ValuesReport(
                (values_check.Finding(_ERROR, module.name, text, _Rule.RENDER),), 0
            )
        note = f"module {module.name} is not checked beyond this ({'; '.join(reasons)}): {_in_words(text)}"
        return values_check.ValuesReport((), 0, (note,))

    def _of_manifest(
        self, module: model.Module, manifest: str, missing: Sequence[str]
    ) -> values_check.ValuesReport:
        levels = {
            object_checks.Mistake.WRONG: _ERROR,
            object_checks.Mistake.UNKNOWN_FIELD: _ERROR,
            object_checks.Mistake.MISSING: _WARNING if missing else _ERROR,
            object_checks.Mistake.REPEATED: self._by_helm_4,
        }
        findings = []
        places = template_lines.Places()
        namespace = self._places.of(module.name).namespace
        for document in manifest_diff.parse(manifest):
            file = messages.in_module(document.source, module.chart_directory)
            findings += [
                values_check.Finding(_ERROR, module.name, f"{places.of(file, field)} {text}", _Rule.OBJECT)
                for field, text in self._twice(module.name, document, file, namespace)
            ]
            for body in object_checks.bodies(document):
                if said := keeping.deleted_by_chart(body):
                    name = str((body.get("metadata") or {}).get("name"))
                    place = places.of(file, template_lines.Field(str(body["kind"]), name))
                    said = f"{place} renders {body['kind']} {name}, which {said}"
                    findings.append(values_check.Finding(_WARNING, module.name, said, _Rule.DATA_DELETED))
            for mistake, text, wrong in self._objects.problems(document):
                said = f"{places.of(file, wrong)} {text}"
                findings.append(values_check.Finding(levels[mistake], module.name, said, _RULES[mistake]))
        unmatched = list(unmatched_entries.find(module.config, manifest))
        if missing:
            why = "; ".join(missing)
            notes = tuple(f"module {module.name}, {text} ({why})" for text in unmatched)
            return values_check.ValuesReport(tuple(findings), 0, notes)
        findings += [
            values_check.Finding(_WARNING, module.name, text, _Rule.MODULE_YAML) for text in unmatched
        ]
        return values_check.ValuesReport(tuple(findings), 0)
