"""Whatever somebody puts in the place of a module's files concerns that module, at the start and later."""

import logging
import pathlib
from collections.abc import Callable, Iterator

import pytest

from addon_operator.commands import values_files
from addon_operator.commands.checks import module_lint
from addon_operator.helm.charts import chart, chart_files
from addon_operator.kernel import clock, errors, names
from addon_operator.loading import (
    crd_sources,
    hook_files,
    module_files,
    module_loader,
    module_problems,
    module_scan,
)
from addon_operator.modules import crd_files, model
from addon_operator.values import checks, store
from tests.unit.engine.modules import odd_modules

ODD = tuple(odd_modules.variants())
GOOD = names.ModuleName("good")


def name_of(number: int) -> names.ModuleName:
    return names.ModuleName(f"odd-v{number}")


def write(root: pathlib.Path, every: int = 1) -> dict[names.ModuleName, odd_modules.Odd]:
    """Write a good module, and each so many of the odd ones, all of which are switched on."""
    odd_modules.write(root / GOOD, "good", is_stock=True)
    wanted = {name_of(number): odd for number, odd in enumerate(ODD) if number % every == 0}
    switches = [f"{names.enabled_key(name)}: true\n" for name in (GOOD, *wanted)]
    (root / "values.yaml").write_text("".join(switches))
    for name, odd in wanted.items():
        odd.prepare(root / name, names.values_key(name))
    return wanted


def spoil(root: pathlib.Path, odd: dict[names.ModuleName, odd_modules.Odd]) -> None:
    for name, each in odd.items():
        each.spoil(root / name)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING):
        yield caplog


def checked(loaded: module_files.LoadedModules) -> set[names.ModuleName]:
    """Ask of the values of each module all that is asked at a start; gives those that are wrong."""
    made, wrong = loaded.store(), set[names.ModuleName]()
    for files in loaded.modules:
        name = files.module.name
        assert made.flag(name).enabled
        made.values_json(name)
        made.masked_values(name)
        assert made.section_of(name).chart_leads_outside in (True, False)
        try:
            checks.Checks(made).checking_helm_values(name)()
        except errors.AddonOperatorError:
            wrong.add(name)
    return wrong


@pytest.mark.parametrize("every", [32, pytest.param(1, marks=pytest.mark.slow)])
def test_what_is_odd_at_the_start_concerns_one_module_and_is_a_sentence(
    tmp_path: pathlib.Path, log: pytest.LogCaptureFixture, every: int
) -> None:
    odd = write(tmp_path, every)
    spoil(tmp_path, odd)
    assert len(odd) > 440 / every
    loaded = module_files.load([tmp_path], 1)
    problems = {files.module.name: files.module.problem for files in loaded.modules}
    assert problems.keys() == {GOOD, *odd}
    assert problems[GOOD] == ""
    assert [record.getMessage() for record in log.records] == [], "no defect"
    assert all(len(problem) <= 2 * module_problems.MAX_TEXT for problem in problems.values())
    refused = {name for name, problem in problems.items() if problem}
    assert len(refused) > 150 / every
    assert GOOD not in checked(loaded)


@pytest.mark.parametrize("every", [48, pytest.param(1, marks=pytest.mark.slow)])
def test_what_becomes_odd_later_leaves_its_module_as_it_was(tmp_path: pathlib.Path, every: int) -> None:
    odd = write(tmp_path, every)
    before, first = module_files.load([tmp_path], 1), module_scan.scan([tmp_path])
    assert [files.module.problem for files in before.modules if files.module.problem] == []
    loader = module_loader.ModuleLoader([tmp_path], 1, before, first, lambda *_: None)
    spoil(tmp_path, odd)
    now = loader.load(module_scan.scan([tmp_path])).loaded
    assert [files.module.problem for files in now.modules if files.module.problem] == []
    assert [files.module.name for files in now.modules] == [files.module.name for files in before.modules]


@pytest.mark.slow
def test_what_is_odd_in_charts_definitions_and_hooks_is_an_error_of_its_module(
    tmp_path: pathlib.Path, log: pytest.LogCaptureFixture
) -> None:
    spoil(tmp_path, write(tmp_path))
    loaded = module_files.load([tmp_path], 1)
    values = loaded.store()
    checked(loaded)
    for files in loaded.modules:
        use(files, values)
    assert [record.getMessage() for record in log.records] == [], "no defect"
    findings = module_lint.of_all([values_files.FilesToCheck((tmp_path,), tmp_path / "none", 1)]).findings
    wrong = {files.module.name for files in loaded.modules if files.module.problem}
    assert wrong <= {found.subject for found in findings}


def use(files: module_files.ModuleFiles, values: store.ValuesStore) -> None:
    """Read of a module what its run reads."""
    module = files.module
    found = crd_sources.CrdSources((), values.values)
    reader = chart_files.ChartFilesReader(clock.SystemClock())
    for read in (
        lambda: reader.read(module.name, module.chart_directory),
        lambda: chart.own_values(module.name, module.chart_directory),
        lambda: [crd_files.parse(path.read_text(errors="replace"), "a") for path in regular(found, module)],
        lambda: hook_files.discover(module.path / "hooks"),
    ):
        error = error_of(read)
        assert error is None or not errors.is_defect(error), module


def error_of(read: Callable[[], object]) -> Exception | None:
    try:
        read()
    except Exception as error:  # noqa: BLE001 - any may come
        return error
    return None


def regular(found: crd_sources.CrdSources, module: model.Module) -> list[pathlib.Path]:
    return [path for path, _ in found.files(module) if path.is_file() and path.stat().st_size < 1 << 20]
