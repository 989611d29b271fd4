"""Files of cases are read strictly, and mistakes are told with file and line."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from addon_operator.testing.cases import case_file, case_schema
from tests.support import rows


def read(directory: pathlib.Path, text: str) -> list[case_file.Case]:
    path = directory / "cases.yaml"
    path.write_text(text)
    return case_file.read(path)


def test_a_case_has_what_the_file_says(tmp_path: pathlib.Path) -> None:
    text = "- name: one\n  hook: x.py\n  values: {web: {a: 1}}\n  expect: {hook: {log: hello}}\n"
    (case,) = read(tmp_path, text)

    assert (case.name, case.hook, case.values) == ("one", case_file.HookCase("x.py"), {"web": {"a": 1}})
    assert case.place.endswith("cases.yaml, line 1, column 3")
    assert not case.renders


def test_values_of_a_case_are_its_files_laid_over_each_other_and_its_own(tmp_path: pathlib.Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/big.yaml").write_text("web: {size: 9, tier: a, ports: [1, 2]}\nwebEnabled: true\n")
    (tmp_path / "prod.yaml").write_text("web: {tier: b, ports: [3]}\n")
    files = "valuesFiles: [examples/big.yaml, prod.yaml]"
    (case, without) = read(
        tmp_path,
        f"- {{name: a, {files}, values: {{web: {{size: 1}}}}, expect: {{enabled: true}}}}\n"
        f"- {{name: b, {files}, expect: {{enabled: true}}}}\n",
    )
    assert case.values == {"web": {"size": 1, "tier": "b", "ports": [3]}, "webEnabled": True}
    assert without.values["web"] == {"size": 9, "tier": "b", "ports": [3]}


@rows.each(
    ("files", "said"),
    [
        ("[none.yaml]", r"line 1, column .*valuesFiles\[0\]: .*none.yaml cannot be read: No such file"),
        ("[list.yaml]", "list.yaml holds no sections; write key: value pairs"),
        ("[broken.yaml]", "broken.yaml.*line 2"),
        ("[.]", "cannot be read"),
        (f"[{', '.join(['list.yaml'] * 21)}]", "valuesFiles: "),
        ("list.yaml", "valuesFiles: .*write a list"),
    ],
)
def test_a_file_of_values_that_cannot_be_used_is_told(tmp_path: pathlib.Path, files: str, said: str) -> None:
    (tmp_path / "list.yaml").write_text("- a\n")
    (tmp_path / "broken.yaml").write_text("a: [\n")
    with pytest.raises(case_file.CaseFileError, match=said):
        read(tmp_path, f"- {{name: a, valuesFiles: {files}, expect: {{enabled: true}}}}\n")


@rows.each(
    ("text", "said"),
    [
        ("- name: x\n  expects: {}\n", "line 2, column 3: expects: the key 'expects' is not known here; did"),
        ("- name: x\n  expect:\n    eror: no\n", "line 3, column 5: expect.eror: the key 'eror'.*'error'"),
        ("- name: x\n  expect: {}\n", "line 2, column 3: expect: nothing is expected"),
        ("- name: x\n  expect: {hook: {log: x}}\n", "expect.hook: no hook runs"),
        ("- name: x\n  expect: {error: x, snapshot: true}\n", "make two cases"),
        (
            "- name: x\n  expect: {enabled: true}\n- name: x\n  expect: {enabled: true}\n",
            "line 3.*another case",
        ),
        ("- {name: x, hook: a, hookValues: {}, expect: {hook: {}}}", "remove one of both"),
        ("name: x\n", "write a list"),
        ("- name: x\n  objects: [{kind: Pod}]\n  expect: {enabled: true}\n", r"objects\[0\].*apiVersion"),
        ("- name: [", "line 2"),
        (
            "- name: x\n  kubernetes: latest\n  expect: {enabled: true}\n",
            "line 2.*kubernetes: 'latest' is not the version of a cluster; write one such as v1.34.0",
        ),
        (
            "- name: x\n  objects:\n  - {apiVersion: v1, kind: Pod, metadata: {name: p, labels: x}}",
            "line 3.*labels.*write name: value",
        ),
        (
            "- name: x\n  hook: {name: a, convert: [], to: v1/Pod}\n  expect: {hook: {}}\n",
            "hook.to: 'v1/Pod' is not an apiVersion",
        ),
        ("- {name: x, expect: {absent: [{kind: configmap}]}}", "'configmap' is not a kind"),
        ("- {name: x, expect: {objects: [], absent: []}}", "nothing is expected"),
        ("- {name: x, expect: {count: {}}}", "nothing is expected"),
        ("- {name: x, expect: {count: {Pod: many}}}", "count.Pod: .*not an integer"),
        ("- {name: x, expect: {count: {Pod: -1}}}", "count.Pod: -1 is less"),
        ("- {name: x, expect: {count: {pods: 1}}}", "'pods' is not a kind"),
        ("- {name: x, expect: {every: [{}]}}", "at least 1 key"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: pathlib.Path, text: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        read(tmp_path, text)


@rows.each(
    ("words", "said"),
    [
        ("{$hsa: x}", "line 5, column 21: .*spec.args.*'\\$hsa' is not known; did you mean '\\$has'"),
        ("{$between: x}", "'\\$between' is not known; known are \\$has, .*\\$not"),
        ("{$count: '2'}", 'spec.args.\\$count: "2" is not a count; write a number'),
        ("{$count: true}", "true is not a count"),
        ("{$count: -1}", "-1 is not a count"),
        ("{$matches: 1}", "1 is not a pattern; write a regular expression"),
        ("{$matches: 'a('}", "'a\\(' is not a regular expression .*missing"),
        ("{$matches: '(?=a)'}", "is not a regular expression"),
        ("{$type: int}", '"int" is not a type; write one of string, integer'),
        ("{$type: [string]}", "is not a type"),
        ("{$has: []}", "names nothing"),
        ("{$lacks: ''}", "names nothing"),
        ("{$not: {$matches: ''}}", '\\$not.\\$matches: "" is not a pattern'),
        ("{$has: {$lacks: null}}", "\\$has.\\$lacks: it names nothing"),
        ("{$has: x, name: y}", "spec.args.name: it stands beside \\$has; write either"),
    ],
)
def test_a_word_that_is_not_used_right_is_told_with_its_place(
    tmp_path: pathlib.Path, words: str, said: str
) -> None:
    text = f"- name: x\n  expect:\n    objects:\n    - kind: Pod\n      spec: {{args: {words}}}\n"
    with pytest.raises(case_file.CaseFileError, match=said):
        read(tmp_path, text)


def test_what_begins_with_a_dollar_itself_stands_below_is(tmp_path: pathlib.Path) -> None:
    assert read(tmp_path, "- {name: x, expect: {objects: [{kind: A, spec: {$is: {$patch: delete}}}]}}")


@pytest.mark.slow
def test_patterns_of_a_file_may_not_take_more_together_than_a_schema_may(tmp_path: pathlib.Path) -> None:
    line = "    - {{kind: Pod, spec: {{a: {{$matches: '{}\\pL{{100}}'}}}}}}\n"
    text = "- name: x\n  expect:\n    objects:\n" + "".join(line.format(n) for n in range(12))
    with pytest.raises(case_file.CaseFileError, match="the patterns have more than"):
        read(tmp_path, text)


def test_the_schema_for_editors_knows_the_words_of_parts() -> None:
    validator = jsonschema.Draft202012Validator(case_schema.for_editors())

    def takes(field: object) -> bool:
        return validator.is_valid(
            [{"name": "a", "expect": {"objects": [{"kind": "A", "spec": {"a": [field]}}]}}]
        )

    assert all(
        map(
            takes,
            [
                1,
                None,
                {"b": {"$not": None}},
                {"$has": "x", "$count": 1},
                {"$matches": "x"},
                {"$type": "array"},
            ],
        )
    )
    assert not any(map(takes, [{"$hsa": 1}, {"b": {"$count": "x"}}, {"$not": {"$hsa": 1}}]))


@rows.each(
    ("case", "said"),
    [
        ("expect: {error: x}", "line 1, column 3: cases of global hooks run one"),
        ("hook: x, upgradeFrom: {}, expect: {error: x}", "upgradeFrom: there is no module"),
        ("hook: x, expect: {hook: {}, enabled: true}", "expect.enabled: there is no module"),
        ("hook: x, expect: {objects: [{kind: Pod}]}", "expect.objects: .*write it below expect.hook"),
    ],
)
def test_a_case_of_global_hooks_is_about_a_hook(tmp_path: pathlib.Path, case: str, said: str) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(f"- {{name: x, {case}}}\n")
    with pytest.raises(case_file.CaseFileError, match=said):
        case_file.read(path, of_module=False)


def test_all_mistakes_of_a_file_are_told_at_once(tmp_path: pathlib.Path) -> None:
    with pytest.raises(case_file.CaseFileError) as found:
        read(tmp_path, "- nam: x\n  expect: {eror: x}\n")

    assert len(str(found.value).splitlines()) == 3


def test_the_schema_for_editors_is_one_and_takes_the_short_form_of_a_hook() -> None:
    schema = case_schema.for_editors()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)

    assert "x-" not in json.dumps(schema)
    assert validator.is_valid([{"name": "a", "hook": "x.py", "expect": {"hook": {}}}])
    assert not validator.is_valid([{"name": "a", "expects": {}}])


FREE = {
    "name": "what a person reads",
    "valuesFiles": "paths of files",
    "hook.name": "looked for among the hooks",
    "hook.binding": "looked for among the bindings",
    "hook.review.subResource": "looked for in the rules",
    "hook.review.userInfo.username": "anybody",
    "hook.review.userInfo.uid": "anything",
    "hook.review.userInfo.groups": "anything",
    "expect.error": "any text",
    "expect.hook.log": "any text",
    "expect.hook.message": "any text",
    "expect.hook.warnings": "any text",
}


def texts(schema: dict[str, Any], place: str = "") -> Iterator[tuple[str, bool]]:
    """All fields that are texts, and whether their meaning is checked, too."""
    if schema.get("type") == "string":
        yield place, "format" in schema
    for key in ("items", "else"):
        if key in schema:
            yield from texts(schema[key], place)
    for name, below in schema.get("properties", {}).items():
        yield from texts(below, f"{place}.{name}".removeprefix("."))


def test_the_meaning_of_each_text_is_checked_or_it_is_free() -> None:
    found = dict(texts(dict(case_schema.SCHEMA)))

    assert {place for place, is_checked in found.items() if not is_checked} == FREE.keys()
