"""What is a directory of modules, and what is a module."""

import pathlib
from collections.abc import Sequence

import pytest

from addon_operator.kernel import errors
from addon_operator.loading import module_directories, module_files


def make(root: pathlib.Path, *paths: str) -> pathlib.Path:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    return root


@pytest.mark.parametrize(
    ("paths", "holds"),
    [
        (["values.yaml", "hooks/a.sh", "templates/x.yaml"], "hooks/, templates/, values.yaml"),
        (["values.yaml", "chart/Chart.yaml", "files/x"], "chart/, values.yaml"),
        (["module.yaml", "dashboards/x"], "module.yaml"),
        (["Chart.yaml"], "Chart.yaml"),
    ],
)
def test_a_module_in_the_place_of_a_directory_of_modules_is_told(
    tmp_path: pathlib.Path, paths: Sequence[str], holds: str
) -> None:
    module = make(tmp_path / "modules" / "010-web", *paths)
    with pytest.raises(errors.ConfigurationError) as raised:
        module_files.load([module], 1)
    assert str(raised.value) == (
        f"modules directory {module} is a module itself: it holds {holds}; name the directory around it, "
        f"{tmp_path / 'modules'}, with MODULES_DIR or --modules-dir"
    )


@pytest.mark.parametrize(
    "beside",
    [[], ["global-hooks/hooks/a.sh", "docs/x", "modules/values.yaml"]],
    ids=["alone", "as in a project"],
)
def test_what_lies_around_a_directory_of_modules_is_told(
    tmp_path: pathlib.Path, beside: Sequence[str]
) -> None:
    make(tmp_path, "modules/010-web/values.yaml", *beside)
    with pytest.raises(errors.ConfigurationError) as raised:
        module_files.load([tmp_path], 1)
    assert str(raised.value) == (
        f"modules directory {tmp_path} holds no module, but {tmp_path / 'modules'} does; name that with "
        "MODULES_DIR or --modules-dir"
    )


def test_modules_that_lie_one_level_too_deep_beside_modules_are_warned_of(tmp_path: pathlib.Path) -> None:
    make(tmp_path, "010-web/values.yaml", "team/020-db/values.yaml", "tool/hooks/010-a")
    assert module_files.load([tmp_path], 1).warnings == (
        f"{tmp_path / 'team'} is no module, and the modules in it are not read; name it in MODULES_DIR, too",
    )


def test_parts_of_a_module_beside_modules_are_no_modules(tmp_path: pathlib.Path) -> None:
    make(tmp_path, "values.yaml", "010-web/values.yaml", "hooks/a.sh")
    loaded = module_files.load([tmp_path], 1)
    assert [files.module.name for files in loaded.modules] == ["web"]
    (warning,) = loaded.warnings
    assert warning == (
        f"{tmp_path / 'hooks'} is no module, as a directory of that name belongs to one; if it is one, "
        "rename it to '010-hooks'"
    )


@pytest.mark.parametrize("paths", [["hooks/a.sh", "web/x"], ["values.yaml", "web/x"], ["010-hooks/x"], []])
def test_modules_may_have_any_name_where_nothing_says_otherwise(
    tmp_path: pathlib.Path, paths: Sequence[str]
) -> None:
    make(tmp_path, "README.md", *paths)
    found = [path.name for path in module_directories.listed(tmp_path)]
    assert found == sorted({path.split("/")[0] for path in paths if "/" in path})


def test_a_module_with_the_name_of_a_part_is_a_module(tmp_path: pathlib.Path) -> None:
    make(tmp_path, "values.yaml", "crds/Chart.yaml", "charts/templates/a.yaml", "010-web/x", "hooks/a.sh")
    assert [path.name for path in module_directories.listed(tmp_path)] == ["010-web", "charts", "crds"]


def test_a_link_that_leads_nowhere_is_a_module_that_is_wrong(tmp_path: pathlib.Path) -> None:
    (tmp_path / "010-a").symlink_to(tmp_path / "volume")
    (tmp_path / "020-b").symlink_to(tmp_path / "020-b")
    (tmp_path / "README.md").touch()
    first, second = module_files.load([tmp_path], 1).modules
    assert first.module.name == "a"
    assert first.module.problem == (
        f"{tmp_path}/010-a is a link to {tmp_path}/volume, which leads nowhere; correct it, or remove it"
    )
    assert "which leads nowhere" in second.module.problem


def test_one_of_several_directories_without_a_module_is_told(tmp_path: pathlib.Path) -> None:
    base, team = make(tmp_path / "base", "010-web/values.yaml"), tmp_path / "team"
    team.mkdir()
    lacks = module_files.load([base, team], 1).lacks
    assert lacks.startswith(
        f"{team} in MODULES_DIR holds no module: see that it is mounted, leave it out, or"
    )
    assert module_files.load([base], 1).lacks == ""
    assert module_files.load([team], 1).lacks == "", "that is another question"


MODULE, MODULES, REPOSITORY = module_directories.Kind
KINDS: dict[str, tuple[list[str], module_directories.Kind]] = {
    "a module by its file": (["addons/module.yaml", "addons/modules/x"], MODULE),
    "a module that is a chart": (["addons/Chart.yaml", "addons/020-db/x"], MODULE),
    "a module around a chart": (["addons/chart/Chart.yaml"], MODULE),
    "a module of templates": (["addons/templates/x.yaml", "addons/tests/a.yaml"], MODULE),
    "a module of definitions": (["addons/crds/x.yaml", "addons/hooks/a.sh"], MODULE),
    "a module by its number": (["010-addons/hooks/a.sh"], MODULE),
    "a module with files called modules": (["010-addons/templates/x", "010-addons/modules/x"], MODULE),
    "definitions beside numbered modules": (["addons/crds/x.yaml", "addons/010-web/x"], MODULES),
    "definitions beside charts": (["addons/crds/x.yaml", "addons/web/Chart.yaml"], MODULES),
    "templates beside modules": (["addons/templates/x", "addons/enabled", "addons/web/module.yaml"], MODULES),
    "a module called chart beside others": (["addons/chart/Chart.yaml", "addons/web/Chart.yaml"], MODULES),
    "a module called modules": (["addons/crds/x.yaml", "addons/modules/Chart.yaml"], MODULES),
    "global hooks beside definitions": (["addons/crds/x.yaml", "addons/global-hooks/hooks/x"], MODULES),
    "a repository with definitions": (["addons/crds/x.yaml", "addons/modules/web/templates/x"], REPOSITORY),
    "a repository with nothing yet": (["addons/templates/x", "addons/modules/README.md"], REPOSITORY),
    "nothing at all": (["addons/README.md"], MODULES),
}


@pytest.mark.parametrize(("paths", "kind"), KINDS.values(), ids=list(KINDS))
def test_a_directory_that_modules_lie_in_is_not_a_module(
    tmp_path: pathlib.Path, paths: Sequence[str], kind: module_directories.Kind
) -> None:
    make(tmp_path, *paths)
    assert module_directories.kind_of(tmp_path / paths[0].partition("/")[0]) is kind


def test_what_is_not_there_is_taken_for_a_directory_of_modules(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    for name in ("missing", "010-missing", "file"):
        assert module_directories.kind_of(tmp_path / name) is MODULES


@pytest.mark.parametrize(("given", "wrong"), [(".", ""), ("modules/010-web", "modules/010-web")])
def test_a_directory_that_is_wrong_is_named_with_its_whole_path(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, given: str, wrong: str
) -> None:
    (tmp_path / "modules/010-web/hooks").mkdir(parents=True)
    (tmp_path / "modules/010-web/Chart.yaml").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.ConfigurationError) as raised:
        module_directories.listed(pathlib.Path(given))
    assert f"modules directory {tmp_path / wrong} " in str(raised.value)
    assert f"{tmp_path}/modules" in str(raised.value).partition(";")[2 if wrong else 0]
