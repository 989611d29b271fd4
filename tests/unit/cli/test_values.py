"""``addon-operator values``: what authors see of the values of their modules."""
# ruff: noqa: E501 - rows of tables

import functools
import json
import pathlib
import textwrap

import pytest
import yaml
from click import testing

from addon_operator.cli import main
from addon_operator.inspection import values_worker
from addon_operator.kernel import errors

pytestmark = pytest.mark.usefixtures("lasting_workers")

CONFIG_SCHEMA = """
    required: [domain]
    properties:
      domain: {type: string}
      size: {type: integer, maximum: 9, default: 3}
      password: {type: string, minLength: 8, x-sensitive: true}
      list: {type: array, items: {type: object, properties: {port: {type: integer, default: 80}}}}
"""
VALUES_SCHEMA = """
    x-extend: {schema: config-values.yaml}
    required: [internal]
    properties: {internal: {type: object, properties: {token: {type: string, default: t}}}}
"""


class Directory:
    """A directory with modules, in which the command runs."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))

    def run(self, *arguments: str) -> testing.Result:
        return testing.CliRunner().invoke(main.cli, ["values", *arguments], standalone_mode=False)

    def findings(self, *arguments: str) -> list[tuple[str, str, str]]:
        """Level, module and problem of each finding."""
        result = self.run("check", "-o", "json", *arguments)
        rows = json.loads(result.stdout)
        failed = any(row["level"] == "error" for row in rows)
        assert result.return_value == (1 if failed else 0)
        return [(row["level"], row["subject"], row["problem"]) for row in rows]


@pytest.fixture
def modules(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Directory:
    monkeypatch.chdir(tmp_path)
    for variable in ("MODULES_DIR", "GLOBAL_HOOKS_DIR", "UNNUMBERED_MODULE_ORDER"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(f"ADDON_OPERATOR_{variable}", raising=False)
    directory = Directory(tmp_path)
    directory.write(
        "modules/values.yaml", "global: {zone: a}\nwebShop: {domain: example.com}\nwebShopEnabled: true"
    )
    directory.write("modules/001-web-shop/values.yaml", "webShop: {list: [{}]}")
    directory.write("modules/001-web-shop/openapi/config-values.yaml", CONFIG_SCHEMA)
    directory.write("modules/001-web-shop/openapi/values.yaml", VALUES_SCHEMA)
    return directory


def test_modules_without_mistakes_pass(modules: Directory) -> None:
    result = modules.run("check")
    assert result.return_value == 0
    assert result.stdout == "1 module checked: nothing is wrong\n"


def test_findings_are_a_table_and_exit_code_1(modules: Directory) -> None:
    modules.write("modules/001-web-shop/values.yaml", "webShop: {size: 10, tls: yes}")
    result = modules.run("check")
    assert result.return_value == 1
    assert "webShop.size: must be at most 9, not 10" in result.stdout
    assert "webShop.tls: the schema does not know this key" in result.stdout
    assert result.stdout.endswith("1 module checked: 2 errors, 1 warning\n")


@pytest.mark.parametrize(
    ("path", "text", "subject", "problem"),
    [
        ("modules/001-web-shop/values.yaml", "webShop: {size: x}", "web-shop", "not \"x\" (modules/001-web-shop/openapi/config-values.yaml; set in modules/001-web-shop/values.yaml, line 1, column 11)"),
        ("modules/001-web-shop/values.yaml", "other: {}", "web-shop", "modules/001-web-shop/values.yaml, line 1, column 1, key other"),
        ("modules/001-web-shop/values.yaml", "a: [", "web-shop", "invalid YAML"),
        ("modules/values.yaml", "- 1", "modules", "must be a mapping"),
        ("modules/002_bad/values.yaml", "", "002_bad", "modules/002_bad"),
        ("modules/002-web-shop/values.yaml", "", "002-web-shop", "modules/001-web-shop holds a module of this name"),
        ("modules/001-web-shop/openapi/values.yaml", "type: 7", "web-shop", "openapi/values.yaml, line 1, column 1, type"),
        ("modules/001-web-shop/openapi/config-values.yaml", "x-kubernetes-validations: [{rule: self.a +}]", "web-shop", "the rule cannot be read"),
        ("modules/001-web-shop/openapi/values.yaml", "properties: {domain: {type: integer}, list: {}}", "web-shop", "webShop.domain: must be an integer"),
        ("global-hooks/openapi/config-values.yaml", "properties: {zone: {enum: [b]}}", "global", "global.zone: must be one of \"b\", not \"a\""),
    ],
)  # fmt: skip
def test_whatever_the_operator_would_refuse_is_an_error(
    modules: Directory, path: str, text: str, subject: str, problem: str
) -> None:
    modules.write(path, text)
    errors = [found for found in modules.findings() if found[0] == "error"]
    named = [found[1] for found in errors if problem in found[2]]
    assert named == [subject if subject != "modules" else str(pathlib.Path("modules").absolute())]


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("modules/002-other/values.yaml", "other: {flag: yes}", "'yes' is read as true"),
        ("modules/values.yaml", "webShop: {domain: a}\nwebShpo: {a: 1}", "key webShpo: no module in modules has it; did you mean 'webShop'?"),
        ("modules/values.yaml", "webShopEnabled: false", "webShop: must have the key 'domain'"),
    ],
)  # fmt: skip
def test_what_the_author_may_not_have_meant_is_a_warning(
    modules: Directory, path: str, text: str, problem: str
) -> None:
    modules.write(path, text)
    ((level, _, told),) = modules.findings()
    assert level == "warning"
    assert problem in told


@pytest.mark.parametrize("path", ["modules/values.yaml", "own.yaml"])
def test_a_switch_below_the_key_of_its_module_is_a_warning_with_file_and_line(
    modules: Directory, path: str
) -> None:
    modules.write("modules/002-other/values.yaml", "")
    modules.write(path, "other:\n  otherEnabled: true\nwebShop: {domain: a}\n")
    arguments = ["--values", path] if path == "own.yaml" else []
    ((level, _, told),) = modules.findings(*arguments)
    assert level == "warning"
    assert told.startswith(f"{path}, line 2, column 3: 'otherEnabled' below the key 'other' is a value")


def test_all_that_is_wrong_is_reported_at_once(modules: Directory) -> None:
    modules.write("modules/values.yaml", "- 1")
    modules.write("modules/001-web-shop/values.yaml", "webShop: {size: 10, domain: a}")
    modules.write("modules/002-second/openapi/values.yaml", "{type: 7, required: x}")
    modules.write("modules/003-third/values.yaml", "a: b")
    subjects = [found[1] for found in modules.findings()]
    assert subjects == [str(pathlib.Path("modules").absolute()), "second", "second", "third", "web-shop"]


def test_a_missing_directory_is_an_error_that_names_it(modules: Directory) -> None:
    ((level, _, told),) = modules.findings("--modules-dir", "nowhere")
    assert level == "error"
    assert "nowhere does not exist" in told


@pytest.mark.parametrize("command", ["values check", "module lint", "module test", "hooks check"])
def test_a_directory_that_is_not_there_is_one_sentence_of_each_command(
    modules: Directory, command: str
) -> None:
    with pytest.raises(errors.ConfigurationError) as caught:
        testing.CliRunner().invoke(
            main.cli, [*command.split(), "nosuch"], standalone_mode=False, catch_exceptions=False
        )
    missing = pathlib.Path("nosuch").absolute()
    assert str(caught.value).startswith((f"{missing} is not a directory; ", f"{missing} does not exist; "))


def test_check_tells_of_wrong_keys_and_of_wrong_values_at_once(modules: Directory) -> None:
    text = "kind: ConfigMap\ndata: {webShop: 'size: 10', global: 'a: [', webShopEnabled: 'yes'}\n"
    modules.write("config.yaml", text)
    told = modules.findings("--values", "config.yaml")
    assert [found[1] for found in told if found[0] == "error"] == ["config.yaml", "config.yaml", "web-shop"]


def test_check_takes_a_file_in_the_place_of_the_config_map(modules: Directory) -> None:
    modules.write("config.yaml", "webShop: {size: 10}\nwebShpo: {}")
    told = {found[1]: found[2] for found in modules.findings("--values", "config.yaml")}
    assert "set in config.yaml" in told["web-shop"]
    assert "did you mean 'webShop'?" in told["config.yaml"]


MANIFEST = """
    kind: ConfigMap
    data: {webShop: "size: 5"}
"""


@pytest.mark.parametrize("text", [MANIFEST, "webShop: {size: 5}"], ids=["manifest", "values file"])
def test_show_merges_all_sources_and_defaults(modules: Directory, text: str) -> None:
    modules.write("config.yaml", text)
    result = modules.run("show", "web-shop", "--values", "config.yaml")
    assert yaml.safe_load(result.stdout) == {
        "global": {"zone": "a"},
        "webShop": {"domain": "example.com", "list": [{"port": 80}], "size": 5},
    }


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_show_tells_where_each_value_came_from(modules: Directory, output: str) -> None:
    modules.write("modules/001-web-shop/values.yaml", "webShop: {list: [{}], internal: {}}")
    result = modules.run("show", "webShop", "--origin", "-o", output)
    assert result.stdout.startswith("{" if output == "json" else "module: web-shop")
    shown = {row["path"]: row for row in yaml.safe_load(result.stdout)["values"]}
    assert {path: row["origin"] for path, row in shown.items()} == {
        "global.zone": "modules/values.yaml, line 1, column 10",
        "webShop.domain": "modules/values.yaml, line 2, column 11",
        "webShop.list": "modules/001-web-shop/values.yaml",
        "webShop.size": "default in modules/001-web-shop/openapi/config-values.yaml",
        "webShop.internal.token": "default in modules/001-web-shop/openapi/values.yaml",
    }
    assert shown["webShop.size"]["value"] == 3
    modules.write("modules/values.yaml", "webShop: {domain: example.com}")
    assert "global" not in modules.run("show", "webShop", "--origin").stdout


def test_show_hides_what_is_sensitive_and_warns_of_what_is_wrong(modules: Directory) -> None:
    modules.write("config.yaml", "webShop: {password: secret}")
    result = modules.run("show", "web-shop", "--values", "config.yaml")
    assert yaml.safe_load(result.stdout)["webShop"]["password"] == "***"
    assert "webShop.password: must have at least 8 characters, not ***" in result.stderr
    assert "secret" not in result.output


def test_show_global_shows_no_module(modules: Directory) -> None:
    assert yaml.safe_load(modules.run("show", "global").stdout) == {"global": {"zone": "a"}}


def test_show_of_an_unknown_module_suggests_a_name(modules: Directory) -> None:
    assert "did you mean 'web-shop'?" in str(modules.run("show", "web-shpo").exception)


def test_a_config_map_whose_data_are_not_texts_is_refused(modules: Directory) -> None:
    modules.write("config.yaml", "kind: ConfigMap\ndata: {webShopEnabled: true}")
    result = modules.run("show", "web-shop", "--values", "config.yaml")
    assert "config.yaml: data of a ConfigMap must be a mapping of texts" in str(result.exception)


def test_what_checks_nothing_in_a_schema_is_an_error_for_strict_readers_only(modules: Directory) -> None:
    modules.write(
        "modules/001-web-shop/openapi/config-values.yaml", "properties: {domain: {}, list: {patern: a}}"
    )
    told = (
        "modules/001-web-shop/openapi/config-values.yaml, line 1, column 33, properties.list.patern: "
        "this is not a keyword of schemas and checks nothing; did you mean 'pattern'?"
    )
    assert modules.findings() == [("warning", "web-shop", told)]
    assert modules.findings("--strict") == [("error", "web-shop", told)]


def test_a_module_is_checked_alone_with_what_is_given_beside_it(modules: Directory) -> None:
    modules.write("modules/002-second/values.yaml", "odd: 1\n")
    modules.write("config.yaml", "kind: ConfigMap\ndata: {webShop: '- a'}")
    assert modules.run("check", "modules").return_value == 1
    alone = modules.run("check", "modules/001-web-shop")
    assert (alone.return_value, alone.stdout) == (0, "1 module checked: nothing is wrong\n")
    beside = modules.run("check", "modules/001-web-shop", "--values", "config.yaml")
    assert beside.return_value == 1
    assert "config.yaml" in beside.stdout
    assert "second" not in beside.stdout


@pytest.mark.parametrize(
    ("written", "place", "problem"),
    [
        ("x-doc: ee\nx-doc: ee", "line 2, column 1, x-doc", "the key is already set on line 1; the last one counts"),
        ("items: strings", "line 1, column 1, items", "'strings' is not a schema and checks nothing"),
        ("additionalProperties: {auth: {type: string}}", "line 1, column 24, additionalProperties.auth", "put it under properties"),
    ],
    ids=["a key twice", "a word for a schema", "a property that is none"],
)  # fmt: skip
def test_what_the_original_reads_is_not_an_error_but_for_strict_readers(
    modules: Directory, written: str, place: str, problem: str
) -> None:
    modules.write("modules/002-second/openapi/config-values.yaml", f"{written}\n")
    for flags, level in ([], "warning"), (["--strict"], "error"):
        ((found, module, told),) = modules.findings(*flags)
        assert (found, module) == (level, "second")
        assert place in told
        assert problem in told


def test_a_skipped_rule_is_one_warning(modules: Directory) -> None:
    rule = "x-deckhouse-validations: [{expression: self.nowhere > 1}]\n"
    modules.write(
        "modules/001-web-shop/openapi/config-values.yaml", rule + "properties: {domain: {}, list: {}}"
    )
    ((level, module, told),) = modules.findings()
    assert (level, module) == ("warning", "web-shop")
    assert told.startswith("webShop: the rule 'self.nowhere > 1' is skipped: it reads a missing key;")


def test_findings_come_in_the_same_order_each_time(modules: Directory) -> None:
    keys = ", ".join(f"{letter}: 1" for letter in "zxwvutsr")
    modules.write("modules/001-web-shop/values.yaml", f"webShop: {{{keys}}}")
    told = [problem.split(":")[0].removeprefix("webShop.") for _, _, problem in modules.findings()]
    assert told == list("zxwvutsr"), "as they stand in the file"


@pytest.mark.parametrize("root", [".", "..", "../root"], ids=["itself", "above", "by name"])
def test_a_directory_that_holds_modules_and_global_hooks_stands_for_both(
    modules: Directory, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    modules.write("global-hooks/openapi/config-values.yaml", "properties: {zone: {enum: [b]}}")
    modules.write("root/modules/001-db/values.yaml", "db: {}")
    modules.write("root/modules/values.yaml", "global: {zone: a}")
    modules.write("root/global-hooks/openapi/config-values.yaml", "properties: {zone: {enum: [c]}}")
    modules.write("deep/nothing", "")
    monkeypatch.chdir(modules.root / ("" if root == "." else "deep"))
    (found,) = modules.findings(root)
    assert found[:2] == ("error", "global")
    assert ('must be one of "c"' if "root" in root else 'must be one of "b"') in found[2]


def test_a_module_that_is_called_modules_is_one(modules: Directory) -> None:
    modules.write("several/modules/templates/a.yaml", "")
    modules.write("several/other/values.yaml", "other: {}")
    assert modules.run("check", "several").stdout == "2 modules checked: nothing is wrong\n"


def test_findings_for_other_programs_are_lines_without_rules_and_padding(modules: Directory) -> None:
    modules.write("modules/001-web-shop/values.yaml", f"webShop: {{size: 10, {'x' * 200}: 1}}")
    lines = modules.run("check").stdout.splitlines()
    assert lines[0].split() == ["LEVEL", "MODULE", "FINDING"]
    assert [line.split()[:2] for line in lines[1:3]] == [["error", "web-shop"], ["error", "web-shop"]]
    assert max(map(len, (lines[0], lines[1], lines[3]))) < 200
    assert [line for line in lines if line != line.rstrip() or not line] == []


SECRET_FILES = {
    "manifest": """
        apiVersion: v1
        kind: Secret
        data: {webShopEnabled: dHJ1ZQ==}
        stringData:
          webShop: |
            token: s3cret-token
            size: 7
        """,
    "values file": """
        webShop: {token: s3cret-token, size: 7}
        webShopEnabled: true
        """,
}


@pytest.mark.parametrize("text", SECRET_FILES.values(), ids=SECRET_FILES)
def test_values_of_a_secret_are_merged_and_hidden(modules: Directory, text: str) -> None:
    modules.write("secret.yaml", text)
    modules.write("config.yaml", "webShop: {token: open, color: red}")
    result = modules.run("show", "web-shop", "--values", "config.yaml", "--secret", "secret.yaml")
    shown = yaml.safe_load(result.stdout)["webShop"]
    assert (shown["token"], shown["size"], shown["color"]) == ("***", "***", "red")
    result = modules.run("show", "web-shop", "--secret", "secret.yaml", "--origin")
    assert "secret.yaml" in next(line for line in result.stdout.splitlines() if "token  " in line)
    assert "s3cret" not in result.output


def test_a_secret_is_checked_with_the_rest_and_not_quoted(modules: Directory) -> None:
    modules.write("secret.yaml", 'kind: Secret\nstringData: {webShop: "size: 77", webShopEnabled: "s3cret"}')
    found = [problem for _, _, problem in modules.findings("--secret", "secret.yaml")]
    assert 'key \'webShopEnabled\': a switch must be "true" or "false"' in found
    (size,) = [problem for problem in found if problem.startswith("webShop.size")]
    assert "not ***" in size
    assert "secret.yaml" in size
    assert "s3cret" not in str(found)
    assert "77" not in str(found)


def test_data_of_a_secret_that_is_not_base64_is_an_error(modules: Directory) -> None:
    modules.write("secret.yaml", "kind: Secret\ndata: {webShop: 's3cret'}")
    ((_, _, problem),) = [
        found for found in modules.findings("--secret", "secret.yaml") if found[1] == "secret.yaml"
    ]
    assert problem == "secret.yaml: data of a Secret must be base64; use stringData"


@pytest.mark.slow  # it burns its whole time, as that of the worker's own tests does
def test_a_schema_that_takes_for_ever_ends_with_a_sentence(
    modules: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded = functools.partial(values_worker.ValuesWorker, seconds=0.5)
    monkeypatch.setattr(values_worker, "ValuesWorker", bounded)
    twice = {f"d{level}": {"allOf": [{"$ref": f"#/definitions/d{level + 1}"}] * 2} for level in range(40)}
    schema = {"definitions": {**twice, "d40": {"type": "object"}}, "allOf": [{"$ref": "#/definitions/d0"}]}
    modules.write("modules/001-web-shop/openapi/config-values.yaml", yaml.safe_dump(schema))
    ((_, subject, problem), *_) = modules.findings()
    assert subject == "web-shop"
    assert "cannot be checked: it took more than 0.5 s" in problem
