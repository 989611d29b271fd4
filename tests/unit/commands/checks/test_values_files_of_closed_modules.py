"""What nobody may look into is told of the module that it belongs to, and is never taken for absent."""

import contextlib
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterator

import pytest

from addon_operator.commands import values_files
from addon_operator.commands.checks import hook_places, values_check
from addon_operator.kernel import errors
from addon_operator.loading import hook_files, module_directories, module_files, module_scan
from addon_operator.testing import suites
from tests.support import rows

_NOBODY = 65534
_PARTS = (".", "hooks", "hooks/run.sh", "openapi", "values.yaml", "module.yaml", "templates", "tests")


@contextlib.contextmanager
def _as_nobody() -> Iterator[None]:
    """Be a user whom modes concern: they do not concern root."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(own)


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    # Those of pytest are closed to others than who runs it, and so may be the directory of the checkout.
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as made:
        pathlib.Path(made).chmod(0o755)
        monkeypatch.chdir(made)
        directory = pathlib.Path(made) / "modules"
        for name in ("010-web", "020-open"):
            module = directory / name
            for part in ("hooks", "openapi", "templates", "tests"):
                (module / part).mkdir(parents=True)
            key = name.partition("-")[2]
            (module / "values.yaml").write_text(f"{key}Enabled: true\n")
            (module / "module.yaml").write_text("description: A module\n")
            (module / "hooks" / "run.sh").write_text("#!/bin/sh\n")
            (module / "hooks" / "run.sh").chmod(0o755)
        yield directory
        for path in [directory / "010-web", *(directory / "010-web").rglob("*")]:
            path.chmod(0o755)


def _load(path: pathlib.Path) -> str:
    loaded = module_files.load([path], 1)
    return "; ".join(mistake for each in loaded.modules for mistake in each.module.mistakes)


def _check(path: pathlib.Path) -> str:
    report = values_check.check(
        values_files.places({"modules_dirs": str(path), "global_hooks_dir": str(path.parent)}, {})
    )
    return "; ".join(finding.problem for finding in report.findings)


def _hooks(path: pathlib.Path) -> str:
    said = []
    for place in hook_places.in_modules(path):
        try:
            said += [place.problem, hook_files.discover(place.root).problem]
        except hook_files.HookFilesError as error:
            said.append(str(error))
    return "; ".join(filter(None, said))


def _test(path: pathlib.Path) -> str:
    try:
        suites.run(suites.chosen([str(path)]), ["--collect-only", "-q"])
    except errors.ConfigurationError as error:
        return str(error)
    return ""


def _scan(path: pathlib.Path) -> str:
    return "" if module_scan.scan([path]).modules.keys() >= {path / "010-web"} else "it is lost"


READERS: dict[str, tuple[Callable[[pathlib.Path], str], tuple[str, ...]]] = {
    "start and plan": (_load, (*_PARTS[:-2],)),
    "values check": (_check, (*_PARTS[:-2],)),
    "hooks check": (_hooks, _PARTS[:3]),
    "module test": (_test, (".", "tests")),
    "reload": (_scan, ()),
}
"""Who reads modules, and which closed parts they tell."""


_imported: set[str] = set()
"""The readers that have imported all they need, which may lie where the other user cannot look."""


@pytest.mark.parametrize("part", _PARTS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_closed_in_a_module_stops_nobody_and_is_told(
    modules: pathlib.Path, reader: str, part: str, capfd: pytest.CaptureFixture[str]
) -> None:
    read, told = READERS[reader]
    if reader not in _imported:
        read(modules)
        _imported.add(reader)
    (modules / "010-web" / part).chmod(0)
    with _as_nobody():
        said = read(modules)
    assert ("010-web" in said) == (part in told), said
    assert "020-open" not in said
    if said:
        assert "cannot be read" in said or "cannot read" in said


def test_a_module_that_is_closed_is_not_taken_for_disabled(modules: pathlib.Path) -> None:
    (modules / "010-web").chmod(0)
    with _as_nobody():
        first = module_files.load([modules], 1).modules[0]
    assert first.module.name == "web"
    assert first.values.own.is_unread


@rows.each(
    ("made", "said"),
    [
        ("link", "is a link to nowhere, which leads nowhere"),
        ("pipe", "is not a directory"),
        ("gone", "does not exist"),
        ("a" * 300, "cannot be read: File name too long"),
    ],
)
def test_what_is_not_a_directory_is_called_what_it_is_by_all(
    tmp_path: pathlib.Path, made: str, said: str
) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / made
    for read in (
        lambda: values_files.flags_of(str(path), None),
        lambda: hook_places.configured({"modules_dirs": None, "global_hooks_dir": None}, {}).below(path),
        lambda: module_directories.check(path),
        lambda: module_directories.check_global(path),
    ):
        with pytest.raises(errors.ConfigurationError) as raised:
            read()
        assert f"{path} {said}" in str(raised.value)


def test_a_directory_of_modules_whose_name_is_not_text_is_refused(tmp_path: pathlib.Path) -> None:
    path = pathlib.Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    path.mkdir()
    with pytest.raises(errors.ConfigurationError, match="has a name that is not UTF-8 text; rename it"):
        module_directories.listed(path)


def test_a_cache_of_charts_of_another_user_is_told_and_not_looked_into(modules: pathlib.Path) -> None:
    (modules / "020-open" / "module.yaml").write_text(
        "chart: {repository: 'https://charts.example', name: web, version: 1.0.0}\n"
    )
    cache = modules.parent / "tmp"
    (cache / "charts").mkdir(parents=True)
    (cache / "charts").chmod(0)
    with _as_nobody(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("ADDON_OPERATOR_TMP_DIR", str(cache))
        found = values_check.check(values_files.places({"modules_dirs": str(modules)})).findings
    assert [str(each.problem).partition("/charts/web-1.0.0-")[2][17:] for each in found] == [
        "Chart.yaml cannot be read: Permission denied; correct or remove it"
    ]
