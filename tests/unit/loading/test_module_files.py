"""Modules directories as found on disk, and what is wrong with them."""

import os
import pathlib
import re

import pytest

from addon_operator.helm.charts import plain_files
from addon_operator.kernel import errors
from addon_operator.kernel.names import GLOBAL_KEY, ModuleName, ValuesKey
from addon_operator.loading import module_files
from addon_operator.values import checks
from addon_operator.values.schema import schema_walk
from tests.support import rows


def module(root: pathlib.Path, directory: str, values: str = "") -> pathlib.Path:
    path = root / directory
    path.mkdir(parents=True)
    (path / "values.yaml").write_text(values)
    return path


def test_modules_come_in_run_order_with_the_default_for_unnumbered_ones(tmp_path: pathlib.Path) -> None:
    for directory in ("020-web", "003-db", "tools", "3-cache"):
        module(tmp_path, directory)
    (tmp_path / "README.md").touch()
    (tmp_path / ".git").mkdir()
    loaded = module_files.load([tmp_path], unnumbered_order=5)
    found = [(files.module.order, files.module.name) for files in loaded.modules]
    assert found == [(3, "cache"), (3, "db"), (5, "tools"), (20, "web")]


def test_a_chart_is_a_chart_yaml_or_templates(tmp_path: pathlib.Path) -> None:
    (module(tmp_path, "a") / "Chart.yaml").touch()
    (module(tmp_path, "b") / "templates").mkdir()
    module(tmp_path, "c")
    loaded = module_files.load([tmp_path], 1)
    assert [files.module.has_chart for files in loaded.modules] == [True, True, False]


def test_each_directory_has_its_own_common_values(tmp_path: pathlib.Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    module(one, "web", "web: {b: 2}")
    module(two, "db")
    (one / "values.yaml").write_text("global: {x: 1}\nweb: {a: 1}\ndb: {never: seen}\nwebEnabled: true")
    (two / "values.yaml").write_text("global: {z: 2}")
    loaded = module_files.load([one, two], 1)
    by_name = {files.module.name: files.values for files in loaded.modules}
    assert by_name[ModuleName("web")].common.sections[ValuesKey("web")] == {"a": 1}
    assert by_name[ModuleName("web")].own.sections[ValuesKey("web")] == {"b": 2}
    assert by_name[ModuleName("db")].common.sections == {"global": {"z": 2}}
    assert [file.sections[GLOBAL_KEY] for file in loaded.common] == [{"x": 1}, {"z": 2}]


def test_a_linked_module_directory_is_followed(tmp_path: pathlib.Path) -> None:
    module(tmp_path / "elsewhere", "real", "web: {a: 1}")
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "010-web").symlink_to(tmp_path / "elsewhere" / "real")
    loaded = module_files.load([tmp_path / "modules"], 1)
    assert [files.module.name for files in loaded.modules] == ["web"]


def test_what_can_never_run_stops_its_module_alone(tmp_path: pathlib.Path) -> None:
    web = module(tmp_path, "web")
    (web / "enabled").write_text("#!/bin/bash\n")
    (web / "hooks").mkdir()
    (web / "hooks" / "run.sh").write_text("#!/bin/bash\n")
    module(tmp_path, "db")
    db, found = [files.module for files in module_files.load([tmp_path], 1).modules]
    assert f"'chmod +x {web / 'hooks' / 'run.sh'}'" in found.stopped_by
    assert found.stopped_by.endswith(
        f"enabled script {web / 'enabled'} is not executable; run 'chmod +x {web / 'enabled'}'"
    )
    assert (found.problem, db.stopped_by) == ("", "")


def test_a_missing_directory_is_named_with_its_setting(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.ConfigurationError, match=r"nowhere does not exist.*MODULES_DIR"):
        module_files.load([tmp_path / "nowhere"], 1)


def test_a_file_in_place_of_a_directory_is_reported_as_such(tmp_path: pathlib.Path) -> None:
    (tmp_path / "modules").touch()
    with pytest.raises(errors.ConfigurationError, match="modules is not a directory"):
        module_files.load([tmp_path / "modules"], 1)


def problems(root: pathlib.Path) -> dict[str, str]:
    """What is wrong with each module."""
    return {files.module.name: files.module.problem for files in module_files.load([root], 1).modules}


def test_of_two_modules_of_one_name_there_is_one_that_cannot_run(tmp_path: pathlib.Path) -> None:
    for directory in ("001-web", "002-web", "003-db"):
        module(tmp_path, directory)
    found = problems(tmp_path)
    assert re.search(r"'web'.*001-web and .*002-web", found["web"])
    assert found == {"web": found["web"], "db": ""}


def test_a_directory_whose_name_is_not_a_modules_is_a_module_that_cannot_run(tmp_path: pathlib.Path) -> None:
    for directory in ("001-Web_Server", "002-db", "DB", "модуль"):
        module(tmp_path, directory)
    (tmp_path / os.fsdecode(b"\xff") / "hooks").mkdir(parents=True)
    found = problems(tmp_path)
    assert found.keys() == {"web-server", "db", "db-n1", "unnamed-n1"}
    assert re.search(r"001-Web_Server.*rename", found["web-server"])
    assert found["db"] == "", "the right name is not taken away"
    assert all(found[name].encode() for name in ("db-n1", "unnamed-n1"))


@rows.each(
    "name",
    [
        "values.yml",
        "Values.yaml",
        "module.yml",
        "Chart.yml",
        "openapi/values.yml",
        "openapi/config-values.YAML",
    ],
)
def test_a_file_under_another_name_is_a_problem_and_not_passed_over(
    tmp_path: pathlib.Path, name: str
) -> None:
    file = tmp_path / "010-web" / name
    file.parent.mkdir(parents=True)
    file.touch()
    module(tmp_path, "020-db", "dbEnabled: true")
    right = {"module.yml": "module.yaml", "Chart.yml": "Chart.yaml"}.get(name, "values.yaml")
    right = "config-values.yaml" if "config" in name else right
    assert problems(tmp_path) == {"web": f"{file} is not read; rename it to {right}", "db": ""}
    (file.parent / right).write_text("")
    assert problems(tmp_path) == {"web": "", "db": ""}, "somebody kept the old one beside it"


def test_a_published_chart_in_the_place_of_a_module_is_told_once(tmp_path: pathlib.Path) -> None:
    top = module(tmp_path, "010-web")
    beside = module(tmp_path, "020-db")
    for chart in (top, beside / "chart"):
        chart.mkdir(exist_ok=True)
        (chart / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 1.0.0")
    for each in (top, beside):
        (each / "values.yaml").write_text("replicas: 1\nimage: {tag: a}\nglobal: {}\n")
    loaded = module_files.load([tmp_path], 1).modules
    assert [len(files.module.mistakes) for files in loaded] == [1, 1]
    for files, key in zip(loaded, ("web", "db"), strict=True):
        assert f"no key of this file is '{key}' or '{key}Enabled'" in files.module.problem


def test_common_values_under_another_name_are_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "values.yml").write_text("webEnabled: true")
    with pytest.raises(
        errors.ConfigurationError, match=r"values\.yml is not read; rename it to values\.yaml"
    ):
        module_files.load([tmp_path], 1)


def test_keys_of_common_values_that_no_module_has_are_told(tmp_path: pathlib.Path) -> None:
    module(tmp_path, "010-web")
    (tmp_path / "values.yaml").write_text("global: {a: 1}\nwebEnabled: true\nwbeEnabled: true\nother: {}")
    keys = [
        text.removeprefix(f"{tmp_path / 'values.yaml'}, ")
        for text in module_files.load([tmp_path], 1).strangers
    ]
    assert keys == [
        f"key other: no module in {tmp_path} has it",
        f"key wbeEnabled: no module in {tmp_path} has it; did you mean 'webEnabled'?",
    ]
    (tmp_path / "values.yaml").write_text("".join(f"m{n}: {{}}\n" for n in range(50)))
    assert len(module_files.load([tmp_path], 1).strangers) == 21


def test_wrong_common_values_are_refused_with_their_path(tmp_path: pathlib.Path) -> None:
    (tmp_path / "values.yaml").write_text("global: [")
    with pytest.raises(errors.ConfigurationError, match=r"values\.yaml"):
        module_files.load([tmp_path], 1)


@rows.each(
    ("text", "expected"),
    [
        (b"webEnabled: true\nweb: {a: 1, a: 2}", "values.yaml, line 2"),
        (b"replicaCount: 1\nwebEnabled: true # on", "values.yaml, line 1, column 1, key replicaCount"),
        (b"webEnabled: true\nweb: \xff", "UTF-8"),
        (b"webEnabled: true\nweb: [", "line 3"),
    ],
    ids=["duplicate key", "foreign key", "not text", "syntax"],
)
def test_wrong_values_are_a_problem_of_their_module_whose_switch_still_counts(
    tmp_path: pathlib.Path, text: bytes, expected: str
) -> None:
    (module(tmp_path, "web") / "values.yaml").write_bytes(text)
    module(tmp_path, "db", "db: {a: 1}")
    found = problems(tmp_path)
    assert expected in found["web"]
    assert found["db"] == ""
    store = module_files.load([tmp_path], 1).store()
    assert store.flag(ModuleName("web")).enabled
    assert store.values(ModuleName("web"))["web"] == {}


def test_all_that_is_wrong_with_a_module_is_told(tmp_path: pathlib.Path) -> None:
    web = module(tmp_path, "Web", "other: 1")
    schema(web, "values.yaml", "type: 7")
    (web / "module.yaml").write_text("helth: {}")
    (web / "hooks").symlink_to("nothing")
    [problem] = problems(tmp_path).values()
    for part in ("'Web'", "key other", "openapi/values.yaml, line 1", "helth", "hooks is not a directory"):
        assert part in problem


def schema(owner: pathlib.Path, name: str, text: str) -> pathlib.Path:
    path = owner / "openapi" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_schemas_of_modules_and_of_global_values_are_in_force(tmp_path: pathlib.Path) -> None:
    web = module(tmp_path / "modules", "010-web", "web: {size: x}\nwebEnabled: true")
    schema(web, "config-values.yaml", "properties: {size: {type: integer}}")
    schema(
        web, "values.yaml", "x-extend: {schema: config-values.yaml}\nproperties: {internal: {default: {}}}"
    )
    hooks = tmp_path / "global-hooks"
    schema(hooks, "config-values.yaml", "required: [domain]\nproperties: {domain: {type: string}}")
    made = module_files.load([tmp_path / "modules"], 1, hooks).store()
    assert [violation.path for violation in checks.Checks(made).config_violations(made.config)] == [
        "global",
        "web.size",
    ]
    assert made.values(ModuleName("web"))["web"] == {"size": "x", "internal": {}}


NUMBERS = """
required: [gone]
properties:
  gone: {}
  size: {type: integer}
  list: {items: {type: integer}}
  deep: {properties: {a: {properties: {b: {type: integer}}}}}
"""


def test_a_violation_names_the_file_that_set_the_value(tmp_path: pathlib.Path) -> None:
    web = module(tmp_path, "010-web", "web: {size: x}\nwebEnabled: true")
    (tmp_path / "values.yaml").write_text("web: {list: [1, x], deep: {a: {b: x}}}")
    schema(web, "config-values.yaml", NUMBERS)
    made = module_files.load([tmp_path], 1).store()
    origins = {
        violation.path: violation.origin for violation in checks.Checks(made).config_violations(made.config)
    }
    common = str(tmp_path / "values.yaml")
    assert origins == {
        "web": str(web / "values.yaml"),
        "web.size": str(web / "values.yaml"),
        "web.list[1]": common,
        "web.deep.a.b": common,
    }


def test_a_wrong_schema_is_refused_with_file_and_position(tmp_path: pathlib.Path) -> None:
    path = schema(module(tmp_path, "web"), "values.yaml", "type: object\nproperties:\n  size: {type: 7}\n")
    assert problems(tmp_path)["web"].startswith(f"{path}, line 3, column 10")


def test_a_wrong_schema_of_global_values_is_refused_with_its_file(tmp_path: pathlib.Path) -> None:
    path = schema(tmp_path / "hooks", "config-values.yaml", "type: 7")
    (tmp_path / "modules").mkdir()
    with pytest.raises(errors.ConfigurationError, match=str(path)):
        module_files.load([tmp_path / "modules"], 1, tmp_path / "hooks")


COMMON = "definitions: {port: {type: integer}}\n"


def test_a_schema_may_refer_to_files_within_its_module(tmp_path: pathlib.Path) -> None:
    web = module(tmp_path, "010-web", "web: {port: x}\nwebEnabled: true")
    (web / "common.yaml").write_text(COMMON)
    schema(web, "config-values.yaml", "properties: {port: {$ref: '../common.yaml#/definitions/port'}}")
    made = module_files.load([tmp_path], 1).store()
    assert [violation.path for violation in checks.Checks(made).config_violations(made.config)] == [
        "web.port"
    ]


@rows.each(
    ("reference", "problem"),
    [
        ("../../common.yaml", "'../../common.yaml' lies outside of"),
        ("link.yaml", "'link.yaml' lies outside of"),
        ("/etc/passwd", "'/etc/passwd' must be a relative path"),
        ("https://example.com/a.yaml", "'https://example.com/a.yaml' must be a relative path"),
        ("none.yaml", "none.yaml cannot be read: No such file or directory"),
    ],
)
def test_a_schema_may_not_refer_to_files_outside_of_its_module(
    tmp_path: pathlib.Path, reference: str, problem: str
) -> None:
    (tmp_path / "common.yaml").write_text(COMMON)
    path = schema(module(tmp_path, "web"), "config-values.yaml", f"$ref: '{reference}#/definitions/port'")
    (path.parent / "link.yaml").symlink_to(tmp_path / "common.yaml")
    found = problems(tmp_path)["web"]
    assert found.startswith(f"{path}, line 1, column 1, $ref: ")
    assert problem in found


def test_what_checks_nothing_in_schemas_is_warned_of(tmp_path: pathlib.Path) -> None:
    path = schema(module(tmp_path / "modules", "web"), "values.yaml", "propertys: {}")
    hooks = schema(tmp_path / "hooks", "config-values.yaml", "requierd: [a]")
    warnings = module_files.load([tmp_path / "modules"], 1, tmp_path / "hooks").warnings
    assert [warning.split(": ")[0] for warning in warnings] == [
        f"{path}, line 1, column 1, propertys",
        f"{hooks}, line 1, column 1, requierd",
    ]


def test_a_default_is_not_blamed_on_the_file_around_it(tmp_path: pathlib.Path) -> None:
    web = module(tmp_path, "010-web", "web: {other: 1}\nwebEnabled: true")
    path = schema(
        web, "config-values.yaml", "properties: {other: {}, a: {type: string, default: 7}}\nrequired: [b]"
    )
    made = module_files.load([tmp_path], 1).store()
    told = {
        str(violation).rpartition("; ")[2] for violation in checks.Checks(made).config_violations(made.config)
    }
    assert told == {f"default in {path})", f"set in {web / 'values.yaml'})"}


def stock(root: pathlib.Path, directory: str, text: str | None = None, chart: str = "chart") -> None:
    path = module(root, directory)
    (path / chart).mkdir(parents=True)
    (path / chart / "Chart.yaml").write_text("apiVersion: v2\nname: x\nversion: 1.0.0\n")
    if text is not None:
        (path / "module.yaml").write_text(text)


def test_a_chart_beside_the_modules_files_reads_its_values_at_the_root(tmp_path: pathlib.Path) -> None:
    stock(tmp_path, "a")
    stock(tmp_path, "b", "chart: {path: deploy}", "deploy")
    stock(tmp_path, "c", "chart: {path: deploy, values: root, global: [domain]}", "deploy")
    found = [files.module for files in module_files.load([tmp_path], 1).modules]
    assert [(each.has_chart, each.chart_directory.name, each.problem) for each in found] == [
        (True, "chart", ""),
        (True, "deploy", ""),
        (True, "deploy", ""),
    ]
    assert [each.stock and str(each.stock.values) for each in found] == ["root", "section", "root"]


def test_a_module_that_is_a_chart_already_stays_one_without_module_yaml(tmp_path: pathlib.Path) -> None:
    stock(tmp_path, "a")
    (tmp_path / "a" / "Chart.yaml").touch()
    stock(tmp_path, "b", "description: its chart is in chart/")
    (tmp_path / "b" / "Chart.yaml").touch()
    found = [files.module for files in module_files.load([tmp_path], 1).modules]
    assert [each.stock is None for each in found] == [True, False]


def test_a_wrong_module_yaml_is_an_error_of_that_module_alone(tmp_path: pathlib.Path) -> None:
    (module(tmp_path, "a") / "module.yaml").write_text("namspace: x")
    (module(tmp_path, "b") / "module.yaml").write_text("chart: {path: nowhere}")
    module(tmp_path, "c")
    wrong, missing, right = (files.module for files in module_files.load([tmp_path], 1).modules)
    assert f"{tmp_path / 'a' / 'module.yaml'}, line 1, column 1, namspace" in wrong.problem
    assert f"{tmp_path / 'b' / 'nowhere'} has neither Chart.yaml nor templates/" in missing.problem
    assert right.problem == ""


def test_two_modules_with_one_release_are_found_if_one_names_the_operators_namespace(
    tmp_path: pathlib.Path,
) -> None:
    (module(tmp_path, "001-a") / "module.yaml").write_text("releaseName: same\nnamespace: addons")
    (module(tmp_path, "002-b") / "module.yaml").write_text("releaseName: same")
    loaded = module_files.load([tmp_path], 1, namespace="addons")
    first, second = (files.module.problem for files in loaded.modules)
    assert first == ""
    assert "releaseName: 'same' is the release of module a, too" in second


def test_a_chart_in_a_module_does_not_lead_out_of_the_modules(tmp_path: pathlib.Path) -> None:
    stock(tmp_path / "modules", "a")
    link = tmp_path / "modules" / "a" / "chart" / "token"
    link.symlink_to("/etc/hostname")
    found = module_files.load([tmp_path / "modules"], 1).modules[0].module
    assert found.problem.startswith(f"{link} is a link that leads out of {tmp_path / 'modules'}; ")


def test_a_module_yaml_that_leads_nowhere_is_a_mistake(tmp_path: pathlib.Path) -> None:
    (module(tmp_path, "a") / "module.yaml").symlink_to("gone")
    found = module_files.load([tmp_path], 1).modules[0].module
    assert found.problem.endswith("module.yaml cannot be read: No such file or directory")


def test_what_module_yaml_says_and_probably_does_not_mean_is_a_warning(tmp_path: pathlib.Path) -> None:
    (module(tmp_path, "a") / "module.yaml").write_text("sensitive: [a/b]")
    (warning,) = module_files.load([tmp_path], 1).warnings
    assert "'a/b' is one key with '/' in its name" in warning


@pytest.mark.slow
@pytest.mark.parametrize("below", ["templates", "chart/charts", "hooks"])
def test_links_that_double_with_each_level_are_a_problem_of_their_module(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    monkeypatch.setattr(plain_files, "MAX_LINKED", 1000)
    web = module(tmp_path, "web")
    module(tmp_path, "db")
    if below.startswith("chart/"):
        (web / "chart").mkdir()
        (web / "chart" / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 1.0.0\n")
        (web / "module.yaml").touch()
    for level in range(24):
        directory = web / below / str(level)
        directory.mkdir(parents=True)
        for name in "ab":
            (directory / name).symlink_to(f"../{level + 1}")
    found = problems(tmp_path)
    assert "more than 1000 files lie behind links" in found["web"]
    assert found["db"] == ""


def test_values_that_defaults_make_endless_are_a_problem_of_their_module(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_walk, "MAX_FILLED", 1000)
    web = module(tmp_path, "web", "web: {trees: [{}]}")
    module(tmp_path, "db")
    (web / "openapi").mkdir()
    levels = [
        f"  d{level}: {{type: object, default: {{}}, properties: "
        f"{{a: {{$ref: '#/definitions/d{level + 1}'}}, b: {{$ref: '#/definitions/d{level + 1}'}}}}}}"
        for level in range(30)
    ]
    (web / "openapi" / "values.yaml").write_text(
        "type: object\nproperties: {trees: {type: array, items: {$ref: '#/definitions/d0'}}}\ndefinitions:\n"
        + "\n".join([*levels, "  d30: {type: string}", ""])
    )
    found = problems(tmp_path)
    assert "its defaults fill in more than 1000 keys" in found["web"]
    assert found["db"] == ""
