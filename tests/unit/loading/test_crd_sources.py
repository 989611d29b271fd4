"""Which APIs modules bring, as their files tell."""

import pathlib

from addon_operator.kernel import json_types
from addon_operator.kernel.names import ModuleName
from addon_operator.loading import crd_sources
from addon_operator.modules import model
from tests.unit.engine.definitions import crd_bench

WEB = crd_bench.WEB


def bringing(
    root: pathlib.Path, *apis: str, values: json_types.JsonObject | None = None
) -> dict[str, tuple[ModuleName, ...]]:
    sources = crd_sources.CrdSources(("doc-",), lambda _: values or {})
    modules = [model.Module(ModuleName(name), 1, root / name) for name in ("web", "db")]
    return dict(sources.bringing(modules, frozenset(apis)))


def write(path: pathlib.Path, text: str = crd_bench.CRD % "a") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_modules_are_named_whose_files_define_an_api(tmp_path: pathlib.Path) -> None:
    for module in ("web", "db"):
        write(tmp_path / module / "crds" / "a.yaml")
    write(tmp_path / "web" / "crds" / "doc-b.yaml", crd_bench.CRD.replace("v1}", "v2}") % "b")
    found = bringing(tmp_path, "example.com/v1", "example.com/v2", "v1")
    assert found == {"example.com/v1": (WEB, ModuleName("db"))}


def test_a_version_that_is_not_served_comes_from_nowhere(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "web" / "crds" / "a.yaml", crd_bench.CRD.replace("v1}", "v1, served: false}") % "a")
    assert bringing(tmp_path, "example.com/v1") == {}


def test_a_file_that_cannot_be_read_brings_nothing(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "web" / "crds" / "a.yaml", "example.com: [")
    write(tmp_path / "db" / "crds" / "a.yaml")
    assert bringing(tmp_path, "example.com/v1") == {"example.com/v1": (ModuleName("db"),)}


def test_charts_within_the_chart_bring_something_when_the_values_enable_them(tmp_path: pathlib.Path) -> None:
    web = tmp_path / "web"
    dependency = "dependencies: [{name: sub, version: 0.1.0, condition: web.sub.enabled}]\n"
    write(web / "Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.1.0\n" + dependency)
    write(web / "charts" / "sub" / "Chart.yaml", "apiVersion: v2\nname: sub\nversion: 0.1.0\n")
    write(web / "charts" / "sub" / "crds" / "a.yaml")
    for is_on, expected in ((True, {"example.com/v1": (WEB,)}), (False, {})):
        values: json_types.JsonObject = {"web": {"sub": {"enabled": is_on}}}
        assert bringing(tmp_path, "example.com/v1", values=values) == expected
