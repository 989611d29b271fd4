"""The schema for editors takes what the reader takes, and nothing else."""

import copy
import json
import random
import re
import zoneinfo
from collections.abc import Iterable, Iterator
from typing import Any

import hypothesis
import jsonschema
import pytest
import yaml
from hypothesis import strategies as st

from addon_operator.kernel import errors, names
from addon_operator.modules import editor_schema, module_config
from tests.support import rows

Node = Any
"""A part of the schema, or of a document."""

SCHEMA: Node = editor_schema.schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
MODULE = names.ModuleName("itself")
ZEROS = "0" * 64
TEXTS = (
    "a", "web", "cert-manager", "a-1", "1a", "a--b", "A", "global", "a.b", "a" * 53,
    "a" * 54, "a" * 63, "-", "é", " ",
    "a\n", "a\n[b", "all", "root", "section", "chart", "charts/web", "./x", "../x", "a/../b",
    "a/..", "..a", "/a", "a//b",
    "oci://host", "oci://host:5000/a/b", "oci://host/a:1", "oci://host:0/a",
    "oci://host:65536", "oci://h:65535/x",
    "https://host/charts/", "https://host/index.yaml", "https://u:p@host/x",
    "https://host/x?y", "HTTPS://host",
    "http://localhost:5000/x", "http://127.0.0.1", "http://host/x", "host/x", "https://",
    "https://a b", "https://a/b c",
    "1.2.3", "v1.2.3", "1.2.3-rc.1+x", "1.2", "^1.2.3", "01.2.3", "1.2.3 ", "4.12.1", "1.0.0-", "1.10",
    ">= 1.30", ">=1.29, <1.34", ">=1.29 <1.34", "^1.30", "~1.31", "1.30.x",
    "1.29 - 1.31", "!=1.30", "1.30 || 1.32", "*",
    "x", ">", "1.x.3", "1.30,", ",1.30", "1 -2", "> =1", "=>1.2", "1.2.3-01", "||",
    "1.30||", ">=1.30 - 1.32", "newest",
    "X-0", "~x", ">x", "1 - x", "x - 1,", "1.x-a", "1-a.01", "1+a..b", "x", "=x",
    f"sha256:{ZEROS}", f"sha256:{ZEROS.replace('0', 'A')}", f"sha512:{ZEROS}", "sha256:0",
    "v1", "apps/v1", "monitoring.coreos.com/v1", "a/b/c", "v2", "apps/V1", "apps/v1/", "Apps/v1",
    "5m", "1h30m", "0s", "1", "1.5s", ".5s", "-1s", "+1s", "1 s", "1d", "10us", "0h0m1s",
    "/spec/replicas", "", "/", "/a~1b", "/a~2", "spec", "/a~",
    "auth.password", "*.secretKey", "a..b", ".a", "a.", "a\\.b", "a\\", "$.a", "a[0]",
    "users.*.token", "itself.x", "a/b",
    "0 22 * * 1-5", "*/5 0 22 ? JAN,2 *", "@daily", "TZ=Europe/Berlin @daily", "@every 1h", "22:00",
    "0 22 * *",    "Europe/Berlin", "UTC",
)  # fmt: skip
"""What is right somewhere, and what is nearly right."""
NOISE: list[Node] = [None, True, False, 1, 1.5, {}, [], {"a": "b"}, ["a"], *TEXTS]


def is_taken(document: object) -> bool:
    """Whether the reader takes it."""
    try:
        module_config.parse(MODULE, json.dumps(document, ensure_ascii=False), "module.yaml")
    except errors.ConfigurationError:
        return False
    return True


def texts(node: Node) -> st.SearchStrategy[Node]:
    validator = jsonschema.Draft202012Validator(node)
    right = [text for text in TEXTS if validator.is_valid(text)]
    assert right, node
    return st.sampled_from(right)


def documents(node: Node) -> st.SearchStrategy[Node]:
    """Documents that a part of the schema describes."""
    if "then" in node:
        rest = {key: value for key, value in node.items() if key not in ("if", "then", "else")}
        branches = [node["then"], node["else"]] if node["else"] is not True else [node["then"], {}]
        return st.one_of([documents(merged(rest, branch)) for branch in branches])
    if "enum" in node:
        return st.sampled_from(node["enum"])
    match node["type"]:
        case "array":
            return st.lists(documents(node["items"]), min_size=node.get("minItems", 0), max_size=3)
        case "string":
            return texts(node)
        case "boolean":
            return st.booleans()
    inner = {key: documents(value) for key, value in node["properties"].items()}
    required = {key: inner.pop(key) for key in node.get("required", ())}
    made = st.fixed_dictionaries(required, optional=inner)
    return made.filter(bool) if node.get("minProperties") else made


def merged(node: Node, more: Node) -> Node:
    """Return the schema with what a branch of its condition adds."""
    made = copy.deepcopy(node) | {key: value for key, value in more.items() if key != "properties"}
    properties = made.setdefault("properties", {})
    for key, value in more.get("properties", {}).items():
        if value is False:
            properties.pop(key)
        else:
            properties[key] = {**properties.get(key, {}), **value}
    return made


def places(document: Node) -> Iterator[tuple[Node, Node]]:
    """Yield each place in a document, as what holds it and its key."""
    for key, value in list(document.items() if isinstance(document, dict) else enumerate(document)):
        yield document, key
        if isinstance(value, dict | list):
            yield from places(value)


def with_right_rules(document: Node) -> Node:
    """Put rules in CEL into it, which no schema can tell from other texts."""
    for rule in document.get("health", {}).get("rules", ()):
        rule.update({key: "self.status.open" for key in ("healthy", "failed") if key in rule})
    return document


OF_CHANGES = frozenset({"labels", "annotations", "patches"})
"""Names of labels, selectors and operations are for the reader alone."""
SAID: Node = {
    **SCHEMA, "properties": {key: each for key, each in SCHEMA["properties"].items() if key not in OF_CHANGES}
}  # fmt: skip
SOME = st.deferred(lambda: documents(SAID).filter(bool).map(with_right_rules))
"""Made once, where it is wanted: to make it takes time."""


@st.composite
def mutated(draw: st.DrawFn) -> Node:
    """A document with one place changed, emptied or renamed."""
    document = draw(SOME)
    holder, key = draw(st.sampled_from(list(places(document))))
    change = draw(st.sampled_from(["replace", "remove", "add"]))
    if change == "replace":
        holder[key] = draw(st.sampled_from(NOISE))
    elif change == "remove" or isinstance(holder, list):
        del holder[key]
    else:
        holder[draw(st.sampled_from(["unknown", "version", "path", "createNamespace"]))] = draw(
            st.sampled_from(NOISE)
        )
    return document


def is_beyond_schemas(document: Node) -> bool:
    """Whether the reader knows more than a schema can say."""
    text = json.dumps(document)
    windows = document.get("windows") if isinstance(document, dict) else None
    for window in windows if isinstance(windows, list) else ():
        zone = window.get("timezone", "UTC") if isinstance(window, dict) else "UTC"
        if zone not in zoneinfo.available_timezones() or zone not in str(window.get("schedule", zone)):
            return True
    return (
        f'"{MODULE}"' in text or re.search(r'"timeout": "[^"]*[0-9]{5}', text) is not None or "://[" in text
    )


def agreeing(examples: int) -> hypothesis.settings:
    return hypothesis.settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        database=None,
    )


@agreeing(15)
@hypothesis.given(SOME)
def test_the_reader_takes_what_the_schema_describes(document: Node) -> None:
    hypothesis.assume(VALIDATOR.is_valid(document) and not is_beyond_schemas(document))
    assert is_taken(document)


@pytest.mark.slow
@agreeing(25)
@hypothesis.given(mutated())
def test_both_say_the_same_of_documents_that_were_changed(document: Node) -> None:
    hypothesis.assume(not is_beyond_schemas(document))
    assert VALIDATOR.is_valid(document) == is_taken(document)


PLACES = {
    "namespace": "{}", "releaseName": "{}", "description": "{}", "createNamespace": "{}",
    "sensitive": "[{}]", "requires": "{{kubernetes: {}}}", "requires ": "{{modules: [{}]}}",
    "requires  ": "{{apis: [{}]}}", "health": "{{timeout: {}}}", "drift": "{{ignore: [{{paths: [{}]}}]}}",
    "chart": "{{path: {}}}", "chart ": "{{values: {}}}", "chart  ": "{{global: {}}}",
    "chart   ": "{{repository: {}, name: x, version: 1.0.0}}",
    "chart    ": "{{repository: 'oci://h', name: {}, version: 1.0.0}}",
    "chart     ": "{{repository: 'oci://h', name: x, version: {}}}",
    "chart      ": "{{repository: 'oci://h', name: x, version: 1.0.0, digest: {}}}",
}  # fmt: skip
"""Where a text may stand; keys are padded to be different."""


def different(key: str, texts: Iterable[str]) -> list[str]:
    """Return the documents with one of the texts at that place of which both do not say the same."""
    written = (f"{key.strip()}: {PLACES[key].format(json.dumps(text))}\n" for text in texts)
    documents = ((text, yaml.load(text, yaml.CSafeLoader)) for text in written)
    return [
        text for text, document in documents
        if not is_beyond_schemas(document) and VALIDATOR.is_valid(document) != is_taken(document)
    ]  # fmt: skip


AT_EACH_PLACE = pytest.mark.parametrize(
    "key", PLACES, ids=lambda key: f"{key.strip()}{len(key) - len(key.strip()) or ''}"
)
TOKENS = (
    "1", "0", "10", "01", ".", ".", "x", "*", "v", "-", "+", "a", "A", "rc.1", "||", " - ", ",", " ", "<",
    ">=", "=>", "~", "^", "!=", "=", "s", "m", "ms", "µs", "h", "global", "b2", "_", "/", "~1", "..", "\\",
    "[", "$", "sha256:", ZEROS, "oci://", "https://", "http://", "localhost", "host", ":", "@", "?", "#", "é",
    "\n",
)  # fmt: skip


@AT_EACH_PLACE
def test_both_say_the_same_of_each_text_at_each_place(key: str) -> None:
    assert different(key, TEXTS) == []


@pytest.mark.slow
@AT_EACH_PLACE
def test_both_say_the_same_of_texts_by_chance_at_each_place(key: str) -> None:
    chance = random.Random(key)
    made = ("".join(chance.choices(TOKENS, k=chance.randint(1, 8))) for _ in range(2000))
    assert different(key, made) == []


@rows.each(
    "text",
    [
        "chart: {repository: 'oci://h', version: 1.0.0}", "chart: {repository: 'oci://h', name: x}",
        "chart: {repository: 'oci://h', name: x, version: 1.0.0, path: chart}", "chart: {name: x}",
        "chart: {version: 1.0.0}", "chart: {global: some}", "createNamespace: true", "namespce: x", "[]",
        "requires: {module: [a]}", "drift: {mode: fix}", "remediation: {rollback: maybe}", "description: 1",
    ],
)  # fmt: skip
def test_both_refuse_what_is_wrong(text: str) -> None:
    document = yaml.safe_load(text)
    assert not VALIDATOR.is_valid(document)
    assert not is_taken(document)


def leaves(node: Node, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Node]]:
    """Yield every part of the schema with a place for it in a document."""
    if path:
        yield path, node
    for key, value in node.get("properties", {}).items():
        yield from leaves(value, (*path, key))
    if "items" in node:
        yield from leaves(node["items"], (*path, 0))


LEAVES = list(leaves(SCHEMA))


@rows.each("path", [path for path, _ in LEAVES], ids=lambda path: ".".join(map(str, path)))
def test_a_wrong_value_of_each_key_is_shown_with_file_line_and_key(path: tuple[str | int, ...]) -> None:
    lines, indent = ["# a comment", "description: right"], ""
    if path == ("description",):
        lines.pop()
    for part in path:
        lines.append(f"{indent}-" if part == 0 else f"{indent}{part}:")
        indent += "  "
    # A number is nothing that any key takes.
    lines[-1] += " 1.5"
    with pytest.raises(module_config.ModuleConfigError) as caught:
        module_config.parse(MODULE, "\n".join(lines), "010-itself/module.yaml")
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
    place = rf"010-itself/module\.yaml, line {len(lines)}, column \d+, {re.escape(key)}: "
    found = re.search(rf"(^|; ){place}", str(caught.value))
    assert found, str(caught.value)


def test_the_schema_is_plain_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    assert not re.search(r'"(x-|format")', json.dumps(SCHEMA))


@rows.each("address", ["oci://[::1]:5000/a", "https://[fe80::1]/charts", "http://[::1]:1/x"])
def test_both_take_addresses_by_number(address: str) -> None:
    document = {"chart": {"repository": address, "name": "x", "version": "1.0.0"}}
    assert VALIDATOR.is_valid(document)
    assert is_taken(document)


def test_nothing_is_said_of_a_file_without_keys() -> None:
    assert VALIDATOR.is_valid(None)
    assert module_config.parse(MODULE, "", "module.yaml") == module_config.NOTHING
