"""Formats of ``module lint`` for programs, places of findings, and comments that ignore rules."""

import json
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import jsonschema
import pytest
from click import testing

from addon_operator.cli import main
from addon_operator.commands.checks import lint_formats, lint_places, lint_rules, values_check
from tests.support import rows

pytestmark = pytest.mark.usefixtures("lasting_workers")

ROOT = pathlib.Path(__file__).parents[4]
ERROR, RULE = values_check.Level.ERROR, lint_rules.Rule


def _part(*required: str, **properties: object) -> dict[str, object]:
    """A part of a log: nothing stands there that the standard does not name."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": properties,
    }


TEXT = {"type": "string", "minLength": 1}
MESSAGE = _part("text", text=TEXT)
PLACE = _part(
    "artifactLocation",
    artifactLocation=_part(
        "uri", uri={**TEXT, "format": "uri-reference", "pattern": r"^[^ \\\\{}<>\"|^`]+$"}
    ),
    region=_part("startLine", startLine={"type": "integer", "minimum": 1}),
)
RESULT = _part(
    "message",
    "locations",
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level={"enum": ["none", "note", "warning", "error"]},
    message=MESSAGE,
    locations={
        "type": "array",
        "items": _part("physicalLocation", physicalLocation=PLACE),
        "minItems": 1,
        "uniqueItems": True,
    },
)
RULE_PART = _part(
    *("id", "shortDescription", "fullDescription", "help"),
    id=TEXT,
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    help=MESSAGE,
)
DRIVER = _part(
    "name",
    name=TEXT,
    semanticVersion=TEXT,
    rules={"type": "array", "items": RULE_PART, "uniqueItems": True},
)
RUN = _part(
    "tool",
    tool=_part("driver", driver=DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results={"type": "array", "items": RESULT},
)
SARIF = {
    **_part("version", "runs"),
    "properties": {
        "$schema": {**TEXT, "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "items": RUN},
    },
}
"""What the schema of SARIF 2.1.0 says of the parts that we write, in our words: we may not keep that one.

What code scanning of GitHub requires in addition is required here, too: it refuses the whole log for one
result without a file.
"""


@pytest.fixture(autouse=True)
def module(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("HELM_BIN_PATH", str(tmp_path / "no-helm"))
    monkeypatch.chdir(tmp_path)
    path = pathlib.Path("modules/010-web")
    write(path / "openapi/config-values.yaml", "type: object\nproperties: {size: {type: integer}}\n")
    return path


def write(path: pathlib.Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def lint(output: str = "json", *more: str) -> testing.Result:
    arguments = ["module", "lint", "-o", output, *more]
    return testing.CliRunner().invoke(main.cli, arguments, standalone_mode=False)


def rules() -> list[tuple[str, str]]:
    return [(row["level"], row["rule"]) for row in json.loads(lint().stdout)]


def test_the_page_has_all_rules_and_no_others() -> None:
    page = (ROOT / "docs/reference/lint-rules.md").read_text("utf-8")
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith('| <a id="')]
    assert [(name.split("`")[1], about.strip()) for name, about in rows] == [
        (str(rule), lint_rules.ABOUT[rule]) for rule in lint_rules.Rule
    ]
    assert all(f'<a id="{rule}">' in page for rule in lint_rules.Rule)


@pytest.mark.parametrize(
    ("name", "text", "mode", "rule"),
    [
        ("module.yaml", "releaseNam: x\n", 0o644, "module"),
        ("modules.yaml", "", 0o644, "unused-file"),
        ("values.yaml", "other: {}\n", 0o644, "values-file"),
        ("values.yaml", "web: {size: yes}\n", 0o644, "boolean-word"),
        ("values.yaml", "web: {size: big}\n", 0o644, "values"),
        ("../values.yaml", "shop: {}\n", 0o644, "unknown-section"),
        ("openapi/values.yaml", "type: [\n", 0o644, "schema"),
        ("openapi/values.yaml", "type: object\nminimun: 3\n", 0o644, "schema-keyword"),
        ("hooks/run.go", "package main\n", 0o644, "hook-file"),
        ("hooks/run.sh", "#!/bin/sh\n", 0o644, "module"),
        ("hooks/run.sh", "#!/bin/sh\necho 'configVersion: v2'\n", 0o755, "hook-config"),
        ("crds/one.yaml", "kind: Service\n", 0o644, "crd"),
    ],
)
def test_each_finding_names_its_rule_and_where_it_is(
    module: pathlib.Path, name: str, text: str, mode: int, rule: str
) -> None:
    write(module / name, text, mode)
    found = {row["rule"]: row for row in json.loads(lint().stdout)}
    assert rule in found
    assert found[rule]["file"], found[rule]


def test_a_log_of_sarif_has_what_viewers_require(module: pathlib.Path) -> None:
    write(module / "values.yaml", "web:\n  size: yes\n")
    write(module / "crds/one%two.yaml", "kind: Service\n")
    ran = lint("sarif")
    assert ran.return_value == 1
    log = json.loads(ran.stdout)
    jsonschema.validate(log, SARIF)
    (run,) = log["runs"]
    known = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    results = {each["ruleId"]: each for each in run["results"]}
    assert all(known[each["ruleIndex"]] == each["ruleId"] for each in run["results"])
    places = {rule: each["locations"][0]["physicalLocation"] for rule, each in results.items()}
    assert places["boolean-word"]["region"] == {"startLine": 2}
    assert places["boolean-word"]["artifactLocation"] == {"uri": "modules/010-web/values.yaml"}
    assert places["crd"]["artifactLocation"] == {"uri": "modules/010-web/crds/one%25two.yaml"}


def test_each_finding_of_a_log_is_in_a_file_also_one_about_a_directory_or_about_none(
    module: pathlib.Path,
) -> None:
    write(pathlib.Path("README.md"), "")
    findings = [
        values_check.Finding(ERROR, subject, "wrong", RULE.UNUSED_FILE) for subject in ("modules", "x")
    ]
    log: Any = lint_formats.sarif(lint_formats.located(findings, {}))
    jsonschema.validate(log, SARIF)
    places = [each["locations"][0]["physicalLocation"] for each in log["runs"][0]["results"]]
    assert [each["artifactLocation"]["uri"] for each in places] == [
        f"{module}/openapi/config-values.yaml",
        "README.md",
    ]


def test_braces_and_links_in_a_finding_are_neither_placeholders_nor_links(module: pathlib.Path) -> None:
    finding = values_check.Finding(ERROR, "web", "{{ .Values.a }} and {0}, list[0](x)", RULE.RENDER)
    log: Any = lint_formats.sarif([(finding, lint_places.Place(module))])
    (result,) = log["runs"][0]["results"]
    assert result["message"]["text"] == "web: {{{{ .Values.a }}}} and {{0}}, list[0] (x)"


def parsed(line: str) -> tuple[str, dict[str, str], str]:
    """Read a command of a workflow as GitHub documents it: ``::NAME KEY=VALUE,KEY=VALUE::DATA``."""
    matched = re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line)
    assert matched is not None, line
    properties = dict(each.split("=", 1) for each in matched[2].split(","))
    assert properties.keys() <= {"file", "line", "endLine", "col", "endColumn", "title"}

    def plain(text: str, codes: Sequence[tuple[str, str]]) -> str:
        for code, character in codes:
            text = text.replace(code, character)
        return text.replace("%25", "%")

    lines = [("%0D", "\r"), ("%0A", "\n")]
    of_properties = [*lines, ("%3A", ":"), ("%2C", ",")]
    return (
        matched[1],
        {key: plain(each, of_properties) for key, each in properties.items()},
        plain(matched[3], lines),
    )


@pytest.mark.parametrize(
    "text", ["100%", "%0A stays", "a,b=c:d", "::error::x", "two\r\nlines\n", "%25", "ü ✓", "%3A%2C"]
)
def test_an_annotation_says_to_github_what_the_finding_says(module: pathlib.Path, text: str) -> None:
    path = module / text.replace("\n", "")
    write(path, "")
    finding = values_check.Finding(values_check.Level.WARNING, text, text, RULE.VALUES)
    (line,) = lint_formats.github([(finding, lint_places.Place(path, 7))])
    assert "\n" not in line
    assert "\r" not in line
    assert parsed(line) == (
        "warning", {"file": str(path), "line": "7", "title": f"values ({text})"}, text
    )  # fmt: skip


def test_files_are_named_from_the_repository_of_a_workflow(
    module: pathlib.Path, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.chdir("modules")
    place = lint_places.Place(pathlib.Path("010-web/values.yaml"), 2)
    finding = values_check.Finding(ERROR, "web", "wrong", RULE.VALUES)
    (line,) = lint_formats.github([(finding, place)])
    assert parsed(line)[1]["file"] == f"{module}/values.yaml"


def test_annotations_of_github_cannot_be_broken_by_what_they_say(module: pathlib.Path) -> None:
    path = module / "a,b:c%.yaml"
    write(path, "")
    finding = values_check.Finding(ERROR, "web", "100% wrong:\r\nsecond::line", RULE.VALUES)
    (line,) = lint_formats.github([(finding, lint_places.Place(path, 7))])
    assert line == (
        "::error file=modules/010-web/a%2Cb%3Ac%25.yaml,line=7,title=values (web)::"
        "100%25 wrong:%0D%0Asecond::line"
    )
    write(module / "values.yaml", "web:\n  size: yes\n")
    lines = lint("github").stdout.splitlines()
    assert any(each.startswith("::warning file=modules/010-web/values.yaml,line=2,title=") for each in lines)


def test_a_comment_with_a_reason_ignores_a_rule_in_its_file(module: pathlib.Path) -> None:
    write(module / "values.yaml", "web:\n  size: yes\n")
    assert rules() == [("warning", "boolean-word"), ("error", "values")]
    comment = "# lint: ignore boolean-word the chart reads it as a text\n"
    write(module / "values.yaml", f"{comment}web:\n  size: yes\n")
    assert rules() == [("error", "values")]
    write(module / "module.yaml", "# lint: ignore values the hook corrects it\ndescription: x\n")
    assert rules() == []
    assert "nothing is wrong (2 ignored by comments)" in lint("text").stdout


def test_a_comment_ignores_nothing_of_other_files_and_other_rules(module: pathlib.Path) -> None:
    write(module / "values.yaml", "web:\n  size: yes  # lint: ignore unused-file because\n")
    write(module / "openapi/config-values.yaml", "# lint: ignore boolean-word because\ntype: object\n")
    assert rules() == [("warning", "boolean-word"), *[("warning", "lint-ignore")] * 2]


@pytest.mark.parametrize(
    ("words", "said"),
    [("boolean-word", "a reason is missing"), ("boolean-words because", "there is no rule 'boolean-words'")],
)
def test_a_comment_without_reason_or_rule_is_an_error_and_ignores_nothing(
    module: pathlib.Path, words: str, said: str
) -> None:
    write(module / "values.yaml", f"# lint: ignore {words}\nweb:\n  size: yes\n")
    found = json.loads(lint().stdout)
    assert ("warning", "boolean-word") in rules()
    (wrong,) = (row for row in found if row["rule"] == "lint-ignore")
    assert (wrong["level"], wrong["line"]) == ("error", 1)
    assert said in wrong["problem"]


def test_a_comment_of_a_template_is_one_too_and_its_end_is_no_reason(module: pathlib.Path) -> None:
    write(module / "templates/a.yaml", "{{- /* lint: ignore object */}}\n")
    (row,) = json.loads(lint().stdout)
    assert "a reason is missing" in row["problem"]


@pytest.mark.parametrize("chart", ["chart", "charts/web"])
def test_a_comment_in_a_template_of_a_chart_with_a_directory_of_its_own_counts(
    module: pathlib.Path, chart: str
) -> None:
    write(module / chart / "Chart.yaml", "name: web\nversion: 1.0.0\n")
    write(module / chart / "templates/a.yaml", "{{- /* lint: ignore object the number is wanted */}}\n")
    write(module / "module.yaml", f"chart: {{path: {chart}}}\n")
    assert ("warning", "lint-ignore") in rules()


def test_prose_about_comments_is_not_one(module: pathlib.Path) -> None:
    write(module / "README.md", "# lint: ignore values because\n")
    write(module / "src/values.yaml", "# lint: ignore values because\n")
    write(module / "values.yaml", "# A comment that says lint: ignore values because\n")
    assert rules() == []


def test_looking_for_a_place_is_bounded(module: pathlib.Path) -> None:
    finding = values_check.Finding(ERROR, "web", "a/b " * 100_000 + f"{module}", RULE.VALUES)
    assert lint_places.place_of(finding, {}) is None
    assert lint_places.place_of(finding, {"web": module}) == lint_places.Place(module)


@rows.each(
    ("problem", "name", "line"),
    [
        ("a: must be 1 ({0}/schema.yaml; set in {0}/values.yaml, line 3, column 5)", "values.yaml", 3),
        ("a: must be 1 ({0}/schema.yaml; default in {0}/values.yaml)", "values.yaml", 0),
        ("a: must be 1 ({0}/schema.yaml; set in ConfigMap x)", "schema.yaml", 0),
        ("{0}/values.yaml, document 2, line 4, column 1: wrong, as in {0}/schema.yaml", "values.yaml", 4),
        ("{0}/schema.yaml:7 renders x", "schema.yaml", 7),
    ],
)
def test_a_wrong_value_is_where_it_is_set(tmp_path: pathlib.Path, problem: str, name: str, line: int) -> None:
    for directory in (tmp_path, tmp_path / "a (b), c"):
        directory.mkdir(exist_ok=True)
        for each in ("schema.yaml", "values.yaml"):
            (directory / each).touch()
        finding = values_check.Finding(ERROR, "web", problem.format(directory), RULE.VALUES)

        assert lint_places.place_of(finding, {"web": directory}) == lint_places.Place(directory / name, line)


def test_a_comment_counts_and_lines_are_named_in_a_directory_with_blanks() -> None:
    module = pathlib.Path("my modules/010-web")
    write(module / "openapi/config-values.yaml", "type: object\nproperties: {size: {type: integer}}\n")
    write(module / "values.yaml", "# lint: ignore boolean-word it is a text\nweb:\n  size: yes\n")

    result = lint("json", "--modules-dir", "my modules")

    assert [(row["rule"], row["file"], row["line"]) for row in json.loads(result.stdout)] == [
        ("values", "my modules/010-web/values.yaml", 3)
    ]
