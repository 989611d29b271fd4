"""``module lint``: what is wrong with modules on disk."""

import json
import os
import pathlib

import pytest
from click import testing

from addon_operator.cli import main
from addon_operator.commands.checks import chart_renders
from addon_operator.kernel import names
from addon_operator.loading import module_files
from addon_operator.modules import model
from addon_operator.testing.modules import definitions
from tests.support import rows
from tests.unit.engine.definitions import crd_bench

pytestmark = pytest.mark.usefixtures("lasting_workers")

CHART = "apiVersion: v2\nname: upstream\nversion: 1.0.0\n"


@pytest.fixture(autouse=True)
def no_helm(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are not rendered here: that takes a real Helm. The checkout's global hooks are not asked."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HELM_BIN_PATH", str(tmp_path / "no-helm"))


def chart(module: pathlib.Path, text: str = CHART, **files: str) -> pathlib.Path:
    path = module / "chart"
    path.mkdir(parents=True)
    (path / "Chart.yaml").write_text(text)
    for name, content in files.items():
        (path / name.replace("__", ".")).write_text(content)
    return path


def run(directory: pathlib.Path, *options: str) -> testing.Result:
    arguments = ["module", "lint", str(directory), *options]
    return testing.CliRunner().invoke(main.cli, arguments, standalone_mode=False)


def lint(directory: pathlib.Path, *options: str) -> tuple[int, list[dict[str, str]]]:
    ran = run(directory, "-o", "json", *options)
    return ran.return_value, json.loads(ran.stdout)


@rows.each(
    ("files", "expected"),
    [
        ({"module.yaml": "releaseNam: x\n"}, "did you mean 'releaseName'?"),
        ({"module.yaml": "chart: {path: gone}\n"}, "has neither Chart.yaml nor templates/"),
        ({"module.yaml": "sensitive: [a..b]\n"}, "has a part that is empty"),
        ({"chart/Chart.yaml": CHART + "dependencies: [{name: db}]\n"}, "run 'helm dependency build "),
        ({"chart/Chart.yaml": "name: x\n"}, "the key 'version' is wrong, as it is missing; write it"),
        ({"chart/Chart.yaml": "name: x\nverson: 1.0.0\n"}, "it is missing; did you mean 'verson'?"),
        ({"chart/Chart.yaml": "name: x\nversion: 1\n"}, "the key 'version' is wrong, as it must be a text"),
        ({"chart/charts/db/Chart.yaml": CHART.replace("upstream", "../db")}, "the name '../db' is none"),
        ({"crds/things.yaml": "kind: Service\n"}, "not a CustomResourceDefinition but Service"),
        ({"crds/things.yaml": "{{ .Values.things }}\n"}, "crds/things.yaml"),
        ({"chart/values.schema.json": '{"type": "array"}'}, "must be a list"),
        ({"chart/values.yaml": "a: [\n"}, "chart/values.yaml"),
        ({"chart/values.schema.json": "{"}, "this is not JSON"),
        ({"chart/values.schema.json": '{"type": "objct"}'}, "values.schema.json: type: "),
        ({"chart/values.schema.json": '{"required": ["a"]}'}, "web: must have the key 'a'"),
        ({"openapi/values.yaml": "type: [\n"}, "openapi/values.yaml"),
        ({"values.yaml": "other: {}\n"}, "values.yaml"),
        ({"hooks/run.sh": "#!/bin/sh\n"}, "hooks/run.sh is not executable; run 'chmod +x "),
        ({"enabled": "#!/bin/sh\n"}, "enabled is not executable; run 'chmod +x "),
    ],
    ids=["module.yaml", "chart", "sensitive", "dependency", "Chart.yaml", "misspelt", "type",
         "name of a subchart",
         "chart's definitions", "definitions", "values of another type", "chart's values", "JSON", "schema",
         "values by schema", "openapi", "values", "hook", "enabled script"],
)  # fmt: skip
def test_each_mistake_is_found(tmp_path: pathlib.Path, files: dict[str, str], expected: str) -> None:
    module = tmp_path / "010-web"
    chart(module)
    (module / "values.yaml").write_text("webEnabled: true\n")
    for name, content in files.items():
        (module / name).parent.mkdir(exist_ok=True, parents=True)
        (module / name).write_text(content)
    code, found = lint(tmp_path)
    assert code == 1
    assert [one["level"] for one in found if expected in one["problem"]] == ["error"], found


@rows.each("text", ["name: x\n", CHART + "dependencies: [{name: db}]\n"])
@rows.each("directory", ["chart", "."], ids=["with a directory of its own", "the module's"])
def test_what_is_wrong_with_a_chart_breaks_the_rule_of_charts(
    tmp_path: pathlib.Path, text: str, directory: str
) -> None:
    write(tmp_path / "010-web", {f"{directory}/Chart.yaml": text, f"{directory}/templates/a.yaml": ""})
    code, found = lint(tmp_path)
    assert code == 1
    assert {one["rule"] for one in found if one["level"] == "error"} == {"chart"}


def test_a_chart_and_a_hook_that_are_wrong_are_both_told(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "010-web", {"chart/Chart.yaml": "name: x\n", "hooks/run.sh": "#!/bin/sh\n"})
    (tmp_path / "010-web" / "hooks" / "run.sh").chmod(0o644)
    assert {one["rule"] for one in lint(tmp_path)[1]} == {"chart", "module"}


def test_a_link_that_leads_nowhere_is_an_error_also_in_a_module_that_is_off(tmp_path: pathlib.Path) -> None:
    module = tmp_path / "010-web"
    link = chart(module) / "README.md"
    link.symlink_to("gone")
    code, found = lint(tmp_path)
    assert code == 1
    assert [one["problem"].startswith(f"{link} is a link to gone, ") for one in found] == [True]


def test_one_module_a_directory_of_modules_and_one_with_modules_in_it_can_be_named(
    tmp_path: pathlib.Path,
) -> None:
    modules = tmp_path / "modules"
    chart(modules / "010-web", "name: x\n")
    chart(modules / "db")
    (modules / "db" / "module.yaml").write_text("description: Rows\nsensitive: [a/b]\n")
    for directory in (tmp_path, modules):
        code, found = lint(directory)
        assert (code, {one["subject"] for one in found}) == (1, {"web", "db"})
    code, found = lint(modules / "db")
    assert (code, [one["level"] for one in found]) == (0, ["warning"])
    assert "'a/b' is one key" in found[0]["problem"]
    code, found = lint(modules / "010-web")
    assert (code, [one["subject"] for one in found]) == (1, ["web"])


@rows.each(
    ("file", "expected"),
    [
        ("modules.yaml", "modules.yaml is not read; did you mean 'module.yaml'? Rename it then"),
        ("module.json", "did you mean 'module.yaml'?"),
        ("chart/chart.yaml", "did you mean 'Chart.yaml'?"),
        ("chart/template/a.yaml", "did you mean 'templates'?"),
        ("value.yaml", "did you mean 'values.yaml'?"),
        ("openapi/config_values.yaml", "did you mean 'config-values.yaml'?"),
        ("openapi/configvalues.yml", "did you mean 'config-values.yaml'?"),
        ("openapi/value.yaml", "did you mean 'values.yaml'?"),
        ("openApi/values.yaml", "did you mean 'openapi'?"),
        ("open-api/values.yaml", "did you mean 'openapi'?"),
        ("opnapi/values.yaml", "did you mean 'openapi'?"),
        ("hook/a.py", "did you mean 'hooks'?"),
        ("template/a.yaml", "did you mean 'templates'?"),
        ("tempaltes/a.yaml", "did you mean 'templates'?"),
        ("crd/a.yaml", "did you mean 'crds'?"),
        ("test/a.yaml", "did you mean 'tests'?"),
        ("example/a.yaml", "did you mean 'examples'?"),
        ("crds/a.yml", "crds/a.yml is not read: definitions of a module are in files *.yaml; rename it"),
        ("crds/v1/a.json", "crds/v1/a.json is not read"),
        ("chart/podinfo/Chart.yaml", "chart/podinfo is not used, and nothing is installed"),
        ("charts/podinfo/Chart.yaml", "charts/podinfo is not used, and nothing is installed"),
    ],
)
def test_what_lies_where_nobody_looks_is_a_warning(tmp_path: pathlib.Path, file: str, expected: str) -> None:
    path = tmp_path / "010-web" / file
    path.parent.mkdir(parents=True)
    path.write_text(CHART)
    code, found = lint(tmp_path)
    assert (code, [one["level"] for one in found]) == (0, ["warning"])
    assert expected in found[0]["problem"]


@rows.each(
    ("ignored", "is_warned"),
    [
        (None, True),
        ("", True),
        ("# tests\n*.bak\n", True),
        ("/tests/*.yaml\n", True),
        ("/tests/\n", False),
        ("tests/\n", False),
        ("/tests\n", False),
    ],
)
def test_tests_in_a_chart_are_a_warning_that_says_what_to_write_where(
    tmp_path: pathlib.Path, ignored: str | None, *, is_warned: bool
) -> None:
    module = tmp_path / "010-web"
    (module / "tests").mkdir(parents=True)
    (module / "tests" / "test_web.py").write_text("")
    (module / "Chart.yaml").write_text(CHART)
    if ignored is not None:
        (module / ".helmignore").write_text(ignored)
    code, found = lint(tmp_path)

    assert code == 0
    assert [each["rule"] for each in found] == ["tests-in-chart"] * is_warned
    for each in found:
        assert each["problem"].endswith(f"write the line /tests/ into {module}/.helmignore")


def test_a_directory_in_the_place_of_what_a_chart_leaves_out_is_an_error_and_defines_nothing(
    tmp_path: pathlib.Path,
) -> None:
    ignore = chart(tmp_path / "010-web") / ".helmignore"
    ignore.mkdir()
    _, [found] = lint(tmp_path)
    assert (found["rule"], found["level"]) == ("crd", "error")
    assert found["problem"] == f"{ignore} cannot be read: it is a directory, and not a file"
    assert definitions.of(module_files.load([tmp_path], 1)) == []


@pytest.mark.parametrize("is_stock", [True, False], ids=["in chart/", "without Chart.yaml"])
def test_tests_beside_a_chart_are_none_of_its_files(tmp_path: pathlib.Path, *, is_stock: bool) -> None:
    module = tmp_path / "010-web"
    (module / "tests").mkdir(parents=True)
    (module / "tests" / "test_web.py").write_text("")
    if is_stock:
        chart(module)
    else:
        (module / "templates").mkdir()

    assert lint(tmp_path) == (0, [])


@rows.each(
    "file",
    ["docs/a.md", "lib/a.py", "images/a", "values-production.yaml", "templates2/a.yaml", "README.md",
     "testdata/a", "openapi/common.yaml", "Chart.lock", "scripts/a"],
)  # fmt: skip
def test_what_is_not_nearly_the_name_of_something_else_is_left_alone(
    tmp_path: pathlib.Path, file: str
) -> None:
    path = tmp_path / "010-web" / file
    path.parent.mkdir(parents=True)
    path.write_text("")
    assert lint(tmp_path) == (0, [])


def test_directories_beside_modules_that_are_nearly_called_right_are_a_warning_in_lint_and_when_loading(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "modules" / "010-web" / "hook").mkdir(parents=True)
    (tmp_path / "globalhooks").mkdir()
    (tmp_path / "modules" / "value.yaml").write_text("")
    found = lint(tmp_path)[1]
    assert [(row["rule"], row["problem"].partition("mean ")[2]) for row in found] == [
        ("unused-file", "'values.yaml'? Rename it then"),
        ("unused-file", "'global-hooks'? Rename it then"),
        ("unused-file", "'hooks'? Rename it then"),
    ]
    loaded = module_files.load([tmp_path / "modules"], 1, tmp_path / "global-hooks")
    assert {row["problem"] for row in found} <= set(loaded.warnings)


def test_a_namespace_whose_editors_can_make_the_operator_refuse_is_named(tmp_path: pathlib.Path) -> None:
    chart(tmp_path / "010-web")
    (tmp_path / "010-web" / "module.yaml").write_text("namespace: shop\n")
    code, found = lint(tmp_path)
    assert (code, [row["rule"] for row in found]) == (0, ["release-namespace"])
    assert "in the namespace shop" in found[0]["problem"]


@rows.each(
    ("files", "unused"),
    [
        (["chart/Chart.yaml", "templates/a.yaml", "module.yaml"], "templates is not used"),
        (["chart/Chart.yaml", "Chart.yaml", "module.yaml"], "Chart.yaml is not used"),
        (["chart/Chart.yaml", "templates/a.yaml"], "chart is not used"),
    ],
)
def test_of_two_charts_the_one_that_is_not_installed_is_named(
    tmp_path: pathlib.Path, files: list[str], unused: str
) -> None:
    contents = {"module.yaml": "description: x\n", "templates/a.yaml": ""}
    write(tmp_path / "010-web", {name: contents.get(name, CHART) for name in files})
    code, found = lint(tmp_path)
    assert (code, [row["rule"] for row in found]) == (0, ["unused-file"])
    assert f"/{unused}, and nothing of it is installed" in found[0]["problem"]
    assert module_files.load([tmp_path], 1).warnings == (found[0]["problem"],)


def test_a_charts_values_below_the_modules_key_are_a_warning(tmp_path: pathlib.Path) -> None:
    chart(tmp_path / "010-web", values__yaml="web: {replicas: 2}\n")
    code, found = lint(tmp_path)
    assert (code, [one["level"] for one in found]) == (0, ["warning"])
    assert "write them without 'web', or set chart.values: section" in found[0]["problem"]


def test_several_directories_are_looked_at_one_by_one(tmp_path: pathlib.Path) -> None:
    for name in ("one", "two", "three"):
        chart(tmp_path / name / "010-web", CHART if name == "two" else "name: x\n")
    parts = [str(tmp_path / name) for name in ("two", "one", "three", "one")]
    ran = testing.CliRunner().invoke(
        main.cli, ["module", "lint", *parts, "-o", "json"], standalone_mode=False
    )
    found = json.loads(ran.stdout)
    assert (ran.return_value, len(found)) == (1, 2), "each finding is there once"
    assert [f"/{name}/" in one["problem"] for name, one in zip(("one", "three"), found, strict=True)] == [
        True
    ] * 2
    ran = testing.CliRunner().invoke(main.cli, ["module", "lint", parts[0], parts[0]], standalone_mode=False)
    assert (ran.return_value, ran.stdout) == (0, "2 modules checked: nothing is wrong\n")


def test_a_colon_list_of_directories_is_one_set_of_modules(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        chart(tmp_path / name / f"010-{name}")
        requires = "two" if name == "one" else "nowhere"
        (tmp_path / name / f"010-{name}" / "module.yaml").write_text(f"requires: {{modules: [{requires}]}}\n")
    both = f"{tmp_path / 'one'}:{tmp_path / 'two'}"
    monkeypatch.setenv("MODULES_DIR", both)
    for arguments in ((), ("--modules-dir", both), (both,)):
        ran = testing.CliRunner().invoke(
            main.cli, ["module", "lint", "-o", "json", *arguments], standalone_mode=False
        )
        found = json.loads(ran.stdout)
        assert (ran.return_value, [one["subject"] for one in found]) == (1, ["two"]), found
        assert "there is no module 'nowhere'" in found[0]["problem"]


def test_a_directory_that_is_not_there_is_an_error(tmp_path: pathlib.Path) -> None:
    ran = run(tmp_path / "nowhere")
    said = f"{tmp_path / 'nowhere'} does not exist; name one with modules, or a module"
    assert str(ran.exception) == said


def test_the_text_counts_what_was_found(tmp_path: pathlib.Path) -> None:
    chart(tmp_path / "010-web")
    ran = run(tmp_path / "010-web")
    assert (ran.return_value, ran.stdout) == (0, "1 module checked: nothing is wrong\n")


DECKHOUSE = "name: web\nweight: 340\n"
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: doors.example.com}
spec:
  group: example.com
  names: {plural: doors, kind: Door}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, deprecated: true}}}
"""


def test_what_deckhouse_reads_is_named_with_what_takes_its_place(tmp_path: pathlib.Path) -> None:
    module = tmp_path / "010-web"
    for name in ("openapi/conversions", "webhooks", "crds"):
        (module / name).mkdir(parents=True)
    for name, text in (("module.yaml", DECKHOUSE), ("images_digests.json", "{}"), (".namespace", "d8-web")):
        (module / name).write_text(text)
    ran = run(tmp_path)
    assert ran.return_value == 0
    for said in (
        "module.yaml, line 2, column 1, weight: not read here: ",
        "openapi/conversions: not read here: settings are those of the newest version",
        "images_digests.json: not read here: set the digests as global.modulesImages.digests.web in",
        ".namespace: not read here: a template makes the namespace, or createNamespace",
        "webhooks: not read here: these are configurations of another operator",
    ):
        assert said in ran.stderr


def test_fields_of_definitions_that_the_api_drops_are_found(tmp_path: pathlib.Path) -> None:
    directory = tmp_path / "010-web" / "crds"
    directory.mkdir(parents=True)
    (directory / "a.yaml").write_text(DEFINITION)
    (directory / "b.yaml").write_text(DEFINITION.replace(", deprecated: true", ""))
    (directory / "doc-ru-a.yaml").write_text("spec: 1")
    code, found = lint(tmp_path)
    assert code == 0
    dropped, twice = (each["problem"] for each in found)
    assert (
        "openAPIV3Schema.deprecated: apiextensions.k8s.io/v1 has no such field, and it is left out" in dropped
    )
    assert f"b.yaml, document 1: doors.example.com is defined by {directory}/a.yaml" in twice


def test_a_definition_that_another_module_has_newer_is_a_warning(tmp_path: pathlib.Path) -> None:
    for name, versions in (("010-old", "{name: v1}"), ("020-new", "{name: v1}, {name: v2}")):
        inner = chart(tmp_path / name) / "charts" / "sub"
        (inner / "crds").mkdir(parents=True)
        (inner / "Chart.yaml").write_text(CHART.replace("upstream", "sub"))
        crds = inner / "crds"
        (crds / "a.yaml").write_text(crd_bench.CRD.replace("{name: v1}", versions) % "a")
    for parts in ([tmp_path], [tmp_path / "010-old", tmp_path / "020-new"]):
        arguments = ["module", "lint", *map(str, parts), "-o", "json"]
        ran = testing.CliRunner().invoke(main.cli, arguments, standalone_mode=False)
        [found] = json.loads(ran.stdout)
        assert (ran.return_value, found["level"], found["subject"]) == (0, "warning", "old")
        assert "a.example.com is that of module new, not this module's" in found["problem"]
        assert (pathlib.Path(found["file"]).name, found["line"]) == ("a.yaml", 3)
    assert lint(tmp_path / "010-old") == (0, [])


MODULE_WITH_SCHEMAS = {
    "values.yaml": "webEnabled: true\nweb: {greeting: Hi}\n",
    "openapi/config-values.yaml": "type: object\nproperties: {greeting: {type: string}}\n",
    "openapi/values.yaml": (
        "x-extend: {schema: config-values.yaml}\ntype: object\n"
        "properties: {internal: {type: object, properties: {count: {type: integer}}}}\n"
    ),
    "hooks/count.sh": "#!/bin/sh\necho '{configVersion: v1, beforeHelm: 1}'\n",
}


def write(module: pathlib.Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (module / name).parent.mkdir(exist_ok=True, parents=True)
        (module / name).write_text(content)
        (module / name).chmod(0o755 if name.startswith("hooks/") else 0o644)


@rows.each(
    ("template", "said"),
    [
        (".Values.bata.x", "the chart gets no key 'bata'"),
        (".Values.web.greting", "does not allow the key 'greting'; did you mean 'greeting'?"),
        (".Values.web.internl.count", "does not allow the key 'internl'; did you mean 'internal'?"),
        ("$.Values.web.internal.coutn", "does not allow the key 'coutn'; did you mean 'count'?"),
        ("if .Values.web.greeting.word }}{{ end", "does not allow the key 'word'; it has no keys"),
        (".Values.wbe.greeting", "did you mean 'web'?"),
        (".Values.web.greeting", ""),
        (".Values.web.internal.count", ""),
        (".Values.global.anything", ""),
        (".Values.global.enabledModules", ""),
    ],
)
def test_a_value_that_no_schema_allows_is_found_in_templates_although_hooks_set_values(
    tmp_path: pathlib.Path, template: str, said: str
) -> None:
    module = tmp_path / "010-web"
    write(module, MODULE_WITH_SCHEMAS | {"templates/a.yaml": f"a: 1\n{{{{ {template} }}}}\n"})
    code, found = lint(tmp_path)
    assert [(row["rule"], str(row["line"])) for row in found] == ([("unknown-value", "2")] if said else [])
    assert code == bool(said)
    assert said in "".join(row["problem"] for row in found)


def test_without_a_schema_of_what_hooks_make_templates_may_read_anything(tmp_path: pathlib.Path) -> None:
    module = tmp_path / "010-web"
    write(module, MODULE_WITH_SCHEMAS | {"templates/a.yaml": "{{ .Values.web.a }}\n"})
    (module / "openapi" / "values.yaml").unlink()
    assert lint(tmp_path) == (0, [])
    (module / "hooks" / "count.sh").unlink()
    assert [row["rule"] for row in lint(tmp_path)[1]] == ["unknown-value"]


@rows.each(
    ("path", "said"),
    [
        ("internal.cuont", "hides nothing: {} does not allow the key 'cuont'; did you mean 'count'?"),
        ("greting", "hides nothing: {} does not allow the key 'greting'; did you mean 'greeting'?"),
        ("*.cuont", "hides nothing: {} does not allow the key 'cuont'; did you mean 'count'?"),
        ("internal.count", ""),
        ("*.count", ""),
    ],
)
def test_a_sensitive_path_that_no_values_can_have_stops_the_module_as_it_would_hide_nothing(
    tmp_path: pathlib.Path, path: str, said: str
) -> None:
    module = tmp_path / "010-web"
    write(module, MODULE_WITH_SCHEMAS | {"module.yaml": f"description: x\nsensitive:\n- '{path}'\n"})
    code, found = lint(tmp_path)
    assert code == bool(said)
    expected = [("error", "module", "3")] if said else []
    assert [(row["level"], row["rule"], str(row["line"])) for row in found] == expected
    assert said.format(module / "openapi" / "values.yaml") in "".join(row["problem"] for row in found)
    loaded = module_files.load([tmp_path], 1)
    assert [bool(files.module.problem) for files in loaded.modules] == [bool(said)]


@rows.each(
    ("file", "text", "lines"),
    [
        ("module.yaml", "descripton: x\nreleaseName: web\nrequire: {}\n\nhealth: {timout: 1}\n", "135"),
        ("module.yaml", "description: x\nsensitive: [a..b]\ncreateNamespace: true\n", "23"),
        ("module.yaml", "requires:\n  modules:\n  - gone\n  - lost\n", "34"),
        ("module.yaml", "description: x\nsensitive:\n- wrod\n- internal.cuont\n", "34"),
        ("values.yaml", "wbe: {}\nweb: {}\nother: 1\nwebEnabled: maybe\n", "134"),
    ],
)
def test_each_mistake_of_a_file_is_a_finding_with_its_own_line(
    tmp_path: pathlib.Path, file: str, text: str, lines: str
) -> None:
    module = tmp_path / "010-web"
    write(module, MODULE_WITH_SCHEMAS | {file: text})
    code, found = lint(tmp_path)
    of_file = [row for row in found if row["file"] == str(module / file)]
    assert (code, [str(row["line"]) for row in of_file]) == (1, list(lines)), found
    said = run(tmp_path, "-o", "github").stdout
    assert all(f"{file},line={line}," in said for line in lines)


@rows.each(
    ("key", "said"),
    [
        ("wepEnabled: true", "did you mean 'webEnabled'?"),
        ("wbe: {}", "did you mean 'web'?"),
        ("Web: {}", "did you mean 'web'?"),
        ("global: {}", "write it into the values.yaml of the directory of modules"),
        ("replicas: 1", "write it below 'web'"),
    ],
)
def test_a_key_in_a_modules_values_that_does_not_belong_there_is_told_where_it_does(
    tmp_path: pathlib.Path, key: str, said: str
) -> None:
    write(tmp_path / "010-web", {"values.yaml": f"{key}\n"})
    code, found = lint(tmp_path)
    assert (code, [row["problem"].endswith(f"; {said}") for row in found]) == (1, [True]), found


def test_a_directory_that_is_not_there_is_told_with_the_nearest_one(tmp_path: pathlib.Path) -> None:
    (tmp_path / "010-alpha").mkdir()
    (tmp_path / "modules" / "010-beta").mkdir(parents=True)
    assert str(tmp_path / "modules" / "010-beta") in str(run(tmp_path / "beta").exception)
    for name in ("010-alfa", "alpha"):
        ran = run(tmp_path / name)
        assert str(ran.exception) == (
            f"{tmp_path / name} does not exist; did you mean '{tmp_path / '010-alpha'}'?"
        )
        arguments = ["module", "schema", "--values-of", str(tmp_path / name)]
        ran = testing.CliRunner().invoke(main.cli, arguments, standalone_mode=False)
        assert "did you mean" in str(ran.exception)


def test_a_pipe_among_the_files_of_a_module_is_not_waited_for(tmp_path: pathlib.Path) -> None:
    (tmp_path / "010-web/templates").mkdir(parents=True)
    os.mkfifo(tmp_path / "010-web/templates/pipe.yaml")
    assert lint(tmp_path)[0] == 0, "it is told when the chart is rendered"


def test_two_directories_of_one_module_are_told_with_what_to_do(tmp_path: pathlib.Path) -> None:
    for number in ("010", "020"):
        (tmp_path / f"{number}-web").mkdir()
    found = lint(tmp_path)[1]
    assert found[0]["problem"].endswith("holds a module of this name, too; rename or remove one of them")


def test_a_schema_for_editors_that_is_older_than_the_schemas_is_a_warning_with_the_command(
    tmp_path: pathlib.Path,
) -> None:
    module = tmp_path / "010-web"
    write(module, MODULE_WITH_SCHEMAS)
    arguments = ["module", "schema", "--values-of", str(module)]
    ran = testing.CliRunner().invoke(main.cli, arguments, standalone_mode=False)
    (module / "openapi" / "values-file.schema.json").write_text(ran.stdout)
    assert lint(tmp_path) == (0, [])
    (module / "openapi" / "config-values.yaml").write_text(
        "type: object\nproperties: {greeting: {}, a: {}}\n"
    )
    code, found = lint(tmp_path)
    assert (code, [(row["level"], row["rule"]) for row in found]) == (0, [("warning", "stale-schema")])
    assert f"'addon-operator module schema --values-of {module} > " in found[0]["problem"]


@pytest.mark.parametrize(
    ("topics", "rules"),
    [
        (["hooks"], {"hook-config"}),
        (["values"], {"boolean-word"}),
        (["values", "hooks"], {"boolean-word", "hook-config"}),
        (["module"], {"module"}),
    ],
    ids=["hooks", "values", "both", "module"],
)
def test_only_what_is_asked_for_is_shown(tmp_path: pathlib.Path, topics: list[str], rules: set[str]) -> None:
    module = tmp_path / "010-web"
    files = {
        "values.yaml": "web: {a: yes}\n",
        "module.yaml": "removal: {}\nwait: {}\n",
        "hooks/run.sh": "#!/bin/sh\n",
    }
    write(module, files)
    asked = [word for topic in topics for word in ("--only", topic)]
    assert {row["rule"] for row in lint(tmp_path, *asked)[1]} == rules


def test_a_directory_for_values_is_refused_with_the_option_for_it() -> None:
    ran = testing.CliRunner().invoke(main.cli, ["module", "schema", "--values", "modules/010-web"])
    assert "write --values-of modules/010-web" in ran.output


def test_examples_that_are_left_out_are_counted(tmp_path: pathlib.Path) -> None:
    directory = tmp_path / "010-web" / "examples"
    directory.mkdir(parents=True)
    module = model.Module(names.ModuleName("web"), 10, directory.parent)
    for number in range(53):
        (directory / f"{number:02}.yaml").touch()
    chosen, (note,) = chart_renders.examples(module)
    assert [path.name for path in chosen] == [f"{number:02}.yaml" for number in range(50)]
    assert note == f"{directory} has 53 files, of which the last 3 by name are not looked at"
    for number in range(3):
        (directory / f"{number:02}.yaml").unlink()
    assert chart_renders.examples(module)[1] == ()
