"""Filters that only pick fields give to the byte what jq gives, or nothing."""

import json
from typing import Any

import hypothesis
import jq  # type: ignore[import-not-found]  # an extension module without stubs
import orjson
from hypothesis import strategies as st

from addon_operator.hook_contract import plain_filters

POD = {
    "metadata": {"name": "web-0", "labels": {"app.kubernetes.io/name": "web", "größe": "ß"}, "generation": 3},
    "spec": {"containers": [{"name": "a", "image": "x:1"}, {"name": "b"}], "hostNetwork": False},
    "status": {"phase": "Running", "podIP": None},
}


def by_jq(program: str, document: bytes) -> bytes:
    """The only result, written as the operator's workers write it."""
    (written,) = jq.compile(f"(\n{program}\n) | tojson").input_text(document.decode()).all()
    return str(written).encode()


def read(program: str) -> plain_filters.PlainFilter:
    found = plain_filters.PlainFilter.read(program)
    assert found is not None, program
    return found


PLAIN = [
    ".",
    ".metadata.name",
    " .metadata.labels ",
    '.metadata.labels["app.kubernetes.io/name"]',
    '.metadata["labels"]["größe"]',
    '."metadata".name',
    '.["metadata"].generation',
    '.metadata.labels."app.kubernetes.io/name"',
    '."metadata"."labels"."größe"',
    "{a: (.status.phase), b: ((.metadata.name))}",
    "(.metadata.name)",
    "{a: .metadata, b: .metadata.name}",
    ".spec.containers[0].image",
    ".spec.containers[-1]",
    ".spec.containers[7].image",
    '.["spec"]["containers"]',
    ".spec.replicas",
    ".status.podIP.deeper[3]",
    "{name: .metadata.name, phase: .status.phase}",
    '{"kind": "Pod", "all": .spec, list: [.metadata.name, [.status.phase], {a: .spec.hostNetwork}]}',
    "{metadata, spec: .status}",
    "{a: .metadata.name, b: .spec, a: .status.phase}",
    "{\n  name:.metadata.name\n}\n",
    "[.metadata.name]",
    '"always the same"',
]


def test_a_plain_filter_gives_what_jq_gives() -> None:
    document = orjson.dumps(POD)
    given = {program: read(program).result(document) for program in PLAIN}
    assert given == {program: by_jq(program, document) for program in PLAIN}


NOT_PLAIN = [
    ".spec.containers[]",
    ".spec.containers[].name",
    ".spec.containers[0:1]",
    ".metadata.labels // {}",
    ".metadata | .name",
    ".metadata.name?",
    ".metadata.name, .status.phase",
    ".spec.containers | length",
    '.metadata.name == "web-0"',
    '{(.metadata.name): 1}',
    "{a: (.status.phase).b}",
    ".metadata.",
    ".metadata.[0].",
    "(.metadata",
    "(.metadata, .status)",
    "(" * 5000 + ".a" + ")" * 5000,
    ".a" * 5000,
    "{a: 1}",
    "[]",
    "{}",
    "..",
    "1",
    "null",
    "empty",
    '"a \\(.metadata.name)"',
    '"a\\n"',
    "@json",
    ".metadata.name # the name",
    ".metadata.generation + 1",
    ".metadata.generation -1",
    "$ENV.PATH",
    "{$__loc__}",
    "if . then 1 else 2 end",
    "{a: .a as $x | $x}",
    ".a[1.5]",
    ".[\"a\"",
    "",
]  # fmt: skip


def test_what_does_more_than_to_pick_is_left_to_jq() -> None:
    assert [program for program in NOT_PLAIN if plain_filters.PlainFilter.read(program) is not None] == []


AMBIGUOUS = [
    (".a.b", '{"a": "text"}'),
    (".a[0]", '{"a": {"0": 1}}'),
    (".a.b", '{"a": [1]}'),
    (".a", '{"a": 1.0}'),
    (".a", '{"a": {"b": [1e3]}}'),
    (".a", '{"a": 9007199254740993}'),
    (".a", '{"a": "\\u007f"}'),
    (".a", '{"a": {"\\u007f": 1}}'),
    (".a", '{"a": "\\ud800"}'),
    (".b", '{"a": NaN}'),
    (".a", '{"a": ' + "[" * 200 + "]" * 200 + "}"),
    (".a", "no JSON"),
]


def test_objects_of_which_jq_may_make_something_else_are_left_to_it() -> None:
    given = [(program, document, read(program).result(document.encode())) for program, document in AMBIGUOUS]
    assert [row for row in given if row[2] is not None] == []


KEYS = st.sampled_from(["a", "b", "c_1", "größe", "x/y", "if", ""])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
STEPS = st.one_of(
    st.sampled_from([".a", ".b", ".c_1"]),
    KEYS.map(lambda key: f'["{key}"]'),
    st.integers(-3, 3).map("[{}]".format),
)
PATHS = st.lists(STEPS, min_size=1, max_size=4).map(lambda steps: "." + "".join(steps).removeprefix("."))
PROGRAMS = st.recursive(
    PATHS,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(KEYS, inner), min_size=1, max_size=3).map(
            lambda entries: "{" + ", ".join(f'"{key}": {value}' for key, value in entries) + "}"
        )
    ),
    max_leaves=5,
)


@hypothesis.given(PROGRAMS, VALUES)
def test_any_plain_filter_of_any_document_gives_what_jq_gives_or_leaves_it(
    program: str, value: object
) -> None:
    document = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    result = read(program).result(document)
    assert result is None or result == by_jq(program, document)
