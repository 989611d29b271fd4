"""What is a directory of modules, and what is a module."""

import pathlib
from collections.abc import Sequence

import pytest

from addon_operator.kernel import errors
from addon_operator.loading import module_directories, module_files
from tests.support import rows


def make(root: pathlib.Path, *paths: str) -> pathlib.Path:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    return root


@rows.each(
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
        f"modules directory {module} is a module itself: it holds {holds}; set MODULES_DIR={module.parent}, "
        "or --modules-dir"
    )


@rows.each(
    "beside",
    [
        [],
        ["global-hooks/hooks/a.sh", "docs/x", "modules/values.yaml"],
        ["crds/a.yaml", "deploy/chart/operator/Chart.yaml", "docs/x", "modules/crds/a.yaml"],
        ["chart/Chart.yaml", "charts/web/Chart.yaml", "helm/values.yaml", "api/openapi/x", "templates/x"],
    ],
    ids=["alone", "as in a project", "as in this repository", "beside what looks like modules"],
)
def test_what_lies_around_a_directory_of_modules_is_told(
    tmp_path: pathlib.Path, beside: Sequence[str]
) -> None:
    make(tmp_path, "modules/010-web/values.yaml", *beside)
    with pytest.raises(errors.ConfigurationError) as raised:
        module_files.load([tmp_path], 1)
    assert str(raised.value) == (
        f"modules directory {tmp_path} is one level too high: the modules are below it; set "
        f"MODULES_DIR={tmp_path / 'modules'}, or --modules-dir"
    )


def test_modules_below_another_name_are_found_if_nothing_beside_looks_like_a_module(
    tmp_path: pathlib.Path,
) -> None:
    make(tmp_path, "addons/web/Chart.yaml", "more/010-db/x", "docs/x")
    with pytest.raises(errors.ConfigurationError, match=f"={tmp_path}/addons:{tmp_path}/more, or"):
        module_files.load([tmp_path], 1)
    make(tmp_path, "api/values.yaml")
    assert [path.name for path in module_directories.listed(tmp_path)] == ["api"]


INSIDE = {
    "of a numbered one": ("modules/010-web/values.yaml", "modules/010-web/templates", "modules"),
    "below a part": ("modules/010-web/Chart.yaml", "modules/010-web/hooks/010-first", "modules"),
    "its subcharts": ("modules/010-web/Chart.yaml", "modules/010-web/charts", "modules"),
    "a part of a subchart": ("m/010-web/module.yaml", "m/010-web/charts/sub/templates", "m"),
    "of one that is a chart": ("addons/web/Chart.yaml", "addons/web/templates", "addons"),
    "what is not a part": ("addons/web/module.yaml", "addons/web/dashboards", "addons"),
}


@rows.each(("file", "below", "right"), INSIDE.values(), ids=list(INSIDE))
def test_a_directory_in_a_module_is_told(tmp_path: pathlib.Path, file: str, below: str, right: str) -> None:
    make(tmp_path, file, f"{below}/sub/Chart.yaml" if "charts" in below else f"{below}/x")
    with pytest.raises(errors.ConfigurationError) as raised:
        module_files.load([tmp_path / below], 1)
    assert f"{tmp_path / below} lies in module " in str(raised.value)
    assert f"; set MODULES_DIR={tmp_path / right}, or" in str(raised.value)


def test_modules_of_a_repository_that_is_a_chart_are_not_in_a_module(tmp_path: pathlib.Path) -> None:
    make(tmp_path, "Chart.yaml", "modules/web/hooks/x", "addons/README.md")
    assert [path.name for path in module_directories.listed(tmp_path / "modules")] == ["web"]
    assert module_directories.listed(tmp_path / "addons") == []


def test_modules_that_lie_one_level_too_deep_beside_modules_are_warned_of(tmp_path: pathlib.Path) -> None:
    make(tmp_path, "010-web/values.yaml", "team/020-db/values.yaml", "tool/hooks/010-a")
    loaded = module_files.load([tmp_path], 1)
    assert [files.module.name for files in loaded.modules] == ["tool", "web"]
    assert loaded.warnings == (
        f"{tmp_path}/team is not a module, and the modules in it are not read; name it in MODULES_DIR, too",
    )
    both = module_files.load([tmp_path, tmp_path / "team"], 1)
    assert (len(both.modules), both.warnings) == (3, ())


def test_parts_of_a_module_beside_modules_are_no_modules(tmp_path: pathlib.Path) -> None:
    make(tmp_path, "values.yaml", "010-web/values.yaml", "hooks/a.sh")
    loaded = module_files.load([tmp_path], 1)
    assert [files.module.name for files in loaded.modules] == ["web"]
    (warning,) = loaded.warnings
    assert warning == (
        f"{tmp_path / 'hooks'} is not a module, as a directory of that name belongs to one; if it is one, "
        "rename it to '010-hooks'"
    )


def test_a_directory_without_anything_of_a_module_is_none_unless_it_has_a_number(
    tmp_path: pathlib.Path,
) -> None:
    make(tmp_path, "web/values.yml", "010-empty/x", "docs/x", "deploy/chart/web/Chart.yaml", "lost+found/x")
    make(tmp_path, "global-hooks/hooks/a.sh", "db/chart/Chart.yaml", "api/Hooks/x")
    loaded = module_files.load([tmp_path], 1)
    assert {files.module.name for files in loaded.modules} == {"web", "empty", "db", "api"}
    assert loaded.strays.keys() == {"docs", "deploy", "lost+found", "global-hooks"}
    assert loaded.strays["docs"] == (
        f"{tmp_path / 'docs'} is not a module: it has none of Chart.yaml, chart/Chart.yaml, module.yaml, "
        "values.yaml, enabled, templates/, hooks/, crds/ and openapi/; move it out of MODULES_DIR, or give "
        "it a number such as 010- if it is one"
    )
    assert set(loaded.strays.values()) <= set(loaded.warnings)


@rows.each("paths", [["hooks/a.sh", "web/enabled"], ["values.yaml", "web/hooks/x"], ["010-hooks/x"], []])
def test_modules_may_have_any_name_where_nothing_says_otherwise(
    tmp_path: pathlib.Path, paths: Sequence[str]
) -> None:
    make(tmp_path, "README.md", *paths)
    found = [path.name for path in module_directories.listed(tmp_path)]
    assert found == sorted({path.split("/")[0] for path in paths if "/" in path} - {"hooks"})


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
    "one with a number": (["010-addons/global-hooks/x", "010-addons/modules/README.md"], REPOSITORY),
    "nothing at all": (["addons/README.md"], MODULES),
}


@rows.each(("paths", "kind"), KINDS.values(), ids=list(KINDS))
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
    assert f"MODULES_DIR={tmp_path}/modules, or" in str(raised.value)
