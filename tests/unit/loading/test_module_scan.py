"""What counts as a change of the modules directories."""

import os
import pathlib
from collections.abc import Callable

import pytest

from addon_operator.helm import helm_errors
from addon_operator.helm.charts import chart_files, plain_files
from addon_operator.kernel import clock, names
from addon_operator.loading import (
    hook_files,
    module_directories,
    module_files,
    module_loader,
    module_scan,
)


@pytest.fixture
def modules(tmp_path: pathlib.Path) -> pathlib.Path:
    web = tmp_path / "010-web"
    for directory in (web / "hooks", web / "templates", tmp_path / "020-db"):
        directory.mkdir(parents=True)
    (web / "hooks" / "a.sh").write_text("a")
    (web / "values.yaml").write_text("web: {a: 1}")
    (tmp_path / "values.yaml").write_text("global: {}")
    return tmp_path


def change_text(modules: pathlib.Path) -> None:
    (modules / "010-web" / "values.yaml").write_text("web: {a: 12}")


def make_executable(modules: pathlib.Path) -> None:
    (modules / "010-web" / "hooks" / "a.sh").chmod(0o755)


def add_file(modules: pathlib.Path) -> None:
    (modules / "010-web" / "templates" / "x.yaml").touch()


def remove_file(modules: pathlib.Path) -> None:
    (modules / "010-web" / "hooks" / "a.sh").unlink()


def replace_file(modules: pathlib.Path) -> None:
    path = modules / "010-web" / "values.yaml"
    other, status = modules / "010-web" / "other", path.stat()
    other.write_text("web: {b: 1}")
    other.replace(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("change", [change_text, make_executable, add_file, remove_file, replace_file])
def test_changes_below_a_module_are_noticed_and_distinguished(
    modules: pathlib.Path, change: Callable[[pathlib.Path], None]
) -> None:
    before = module_scan.scan([modules])
    change(modules)
    now = module_scan.scan([modules])
    assert now.modules[modules / "010-web"] != before.modules[modules / "010-web"]
    assert now.modules[modules / "020-db"] == before.modules[modules / "020-db"]
    assert now.common == before.common


def test_a_scan_without_a_change_is_equal(modules: pathlib.Path) -> None:
    assert module_scan.scan([modules]) == module_scan.scan([modules])


@pytest.mark.parametrize("name", ["__pycache__/a.pyc", ".git/x", "a.sh~", ".a.sh.swp", "venv/bin/python"])
def test_what_editors_and_interpreters_leave_behind_is_not_a_change(modules: pathlib.Path, name: str) -> None:
    before = module_scan.scan([modules])
    path = modules / "010-web" / "hooks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    assert module_scan.scan([modules]) == before


def test_the_common_values_are_their_own_change(modules: pathlib.Path) -> None:
    before = module_scan.scan([modules])
    (modules / "values.yaml").unlink()
    now = module_scan.scan([modules])
    assert now.modules == before.modules
    assert now.common != before.common


def test_links_are_followed_and_circles_end(modules: pathlib.Path) -> None:
    web = modules / "010-web"
    (web / "circle").symlink_to(web)
    (web / "link").symlink_to(modules / "020-db")
    before = module_scan.scan([modules])
    (modules / "020-db" / "x").touch()
    now = module_scan.scan([modules])
    assert now.modules[web] != before.modules[web]


_TOO_MUCH = "more than 100 files lie behind links"


def scanned(path: pathlib.Path) -> str:
    first = module_scan.scan([path.parent])
    assert module_scan.scan([path.parent]) == first
    return first.modules[path].decode(errors="replace")


def compared(path: pathlib.Path) -> str:
    assert module_scan.contents(path) is None
    return _TOO_MUCH


def hooks_of(path: pathlib.Path) -> str:
    with pytest.raises(hook_files.HookFilesError) as raised:
        hook_files.discover(path)
    return str(raised.value)


def read_by_helm(path: pathlib.Path) -> str:
    with pytest.raises(helm_errors.ChartError) as raised:
        chart_files.ChartFilesReader(clock.SystemClock()).read(names.ModuleName("web"), path)
    return str(raised.value)


@pytest.mark.parametrize(
    "look",
    [scanned, compared, module_directories.too_much_linked, hooks_of, read_by_helm],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("place", ["010-web", "010-web/files"], ids=["the module", "a directory of it"])
def test_whoever_looks_through_a_module_stops_where_a_link_leads_to_too_much(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, look: Callable[[pathlib.Path], str], place: str
) -> None:
    monkeypatch.setattr(plain_files, "MAX_LINKED", 100)
    machine = tmp_path / "machine"
    machine.mkdir()
    for number in range(101):
        (machine / f"{number}.sh").touch()
    link = tmp_path / "modules" / place
    link.parent.mkdir(parents=True)
    link.symlink_to(machine)
    assert _TOO_MUCH in look(tmp_path / "modules" / "010-web")


def test_a_module_that_is_a_link_to_itself_is_looked_at(modules: pathlib.Path) -> None:
    (modules / "030-circle").symlink_to("030-circle")
    (modules / "values.yaml").unlink()
    (modules / "values.yaml").symlink_to("values.yaml")
    before = module_scan.scan([modules])
    (modules / "030-circle").unlink()
    (modules / "030-circle").symlink_to("020-db")
    now = module_scan.scan([modules])
    assert now.modules[modules / "030-circle"] != before.modules[modules / "030-circle"]
    assert now.common == before.common


def test_modules_are_found_by_their_directory(modules: pathlib.Path, tmp_path: pathlib.Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert module_scan.scan([modules, other]).of(modules) == [modules / "010-web", modules / "020-db"]


def test_a_missing_modules_directory_is_an_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError):
        module_scan.scan([tmp_path / "nowhere"])


def write_anew(modules: pathlib.Path) -> None:
    """Every file is another one with the same content, as a new checkout of Git has them."""
    for path in [found for found in modules.rglob("*") if found.is_file()]:
        text, mode = path.read_text(), path.stat().st_mode
        path.unlink()
        path.write_text(text)
        path.chmod(mode)
        os.utime(path, ns=(1, 1))


def loader_of(modules: pathlib.Path) -> module_loader.ModuleLoader:
    loaded, first = module_files.load([modules], 100), module_scan.scan([modules])
    return module_loader.ModuleLoader([modules], 100, loaded, first, lambda *_: None)


def test_modules_that_are_written_anew_as_they_were_are_not_touched(modules: pathlib.Path) -> None:
    loader = loader_of(modules)
    loader.learn()
    for change in (change_text, make_executable, add_file, remove_file):
        write_anew(modules)
        assert loader.load(module_scan.scan([modules])).touched == set()
        change(modules)
        write_anew(modules)
        assert loader.load(module_scan.scan([modules])).touched == {"web"}


def test_what_changed_before_it_was_learned_is_touched(modules: pathlib.Path) -> None:
    loader = loader_of(modules)
    change_text(modules)
    loader.learn()
    assert loader.load(module_scan.scan([modules])).touched == {"web"}


def test_a_pipe_in_a_module_is_not_waited_for(modules: pathlib.Path) -> None:
    os.mkfifo(modules / "010-web" / "pipe")
    loader = loader_of(modules)
    loader.learn()
    write_anew(modules)
    assert loader.load(module_scan.scan([modules])).touched == set()


def names_of(loading: module_loader.Loading) -> list[str]:
    return [files.module.name for files in loading.loaded.modules]


@pytest.mark.parametrize("is_learned", [True, False])
def test_a_module_that_went_and_comes_back_as_it_was_is_new(modules: pathlib.Path, is_learned: bool) -> None:
    loader = loader_of(modules)
    if is_learned:
        loader.learn()
    away = (modules / "010-web").rename(modules.parent / "away")
    gone = loader.load(module_scan.scan([modules]))
    assert (names_of(gone), gone.touched) == (["db"], frozenset())
    away.rename(modules / "010-web")
    back = loader.load(module_scan.scan([modules]))
    assert (sorted(names_of(back)), back.touched) == (["db", "web"], frozenset({"web"}))


def test_what_is_refused_of_a_change_keeps_it_from_being_whole_until_it_is_right(
    modules: pathlib.Path,
) -> None:
    loader = loader_of(modules)
    (modules / "010-web" / "values.yaml").write_text("web: [")
    (modules / "020-db").rmdir()
    half = loader.load(module_scan.scan([modules]))
    assert (names_of(half), bool(half.refused)) == (["web"], True)
    (modules / "030-api").mkdir()
    assert loader.load(module_scan.scan([modules])).refused, "another change does not mend it"
    (modules / "010-web" / "values.yaml").write_text("web: {}")
    assert not loader.load(module_scan.scan([modules])).refused


def test_common_values_that_are_wrong_keep_a_change_from_being_whole(modules: pathlib.Path) -> None:
    loader = loader_of(modules)
    (modules / "values.yaml").write_text("global: [")
    assert loader.load(module_scan.scan([modules])).refused
    (modules / "values.yaml").write_text("global: {}")
    assert not loader.load(module_scan.scan([modules])).refused


def test_a_new_module_that_is_refused_is_there_with_its_problem(modules: pathlib.Path) -> None:
    loaded = module_files.load([modules], 1)
    first = module_scan.scan([modules])
    loader = module_loader.ModuleLoader([modules], 1, loaded, first, lambda _, __: "it breaks the ConfigMap")
    (modules / "020-db").rename(modules / "020-shop")
    found = loader.load(module_scan.scan([modules]))
    assert [(files.module.name, files.module.problem) for files in found.loaded.modules] == [
        ("web", ""),
        ("shop", "it breaks the ConfigMap"),
    ]
