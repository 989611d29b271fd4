"""Reading YAML and JSON costs no more than its size says, whoever wrote it."""

import re
import sys
from collections.abc import Callable

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from addon_operator.documents import document_stream, manifest_diff, yaml_loader, yaml_reading
from addon_operator.kernel import errors
from addon_operator.modules import manifests
from tests.support import rows
from tests.unit import costs

READERS: dict[str, Callable[[str], object]] = {
    "values": lambda text: yaml_reading.load(text, "values.yaml"),
    "values with positions": lambda text: yaml_reading.load_document(text, "values.yaml"),
    "values, a stream": lambda text: yaml_reading.load_documents(text, "values.yaml"),
    "hook configuration": document_stream.load,
    "hook output": document_stream.load_stream,
    "chart output, wanted parts": manifests.resources,
    "chart output, whole": manifest_diff.parse,
}


def steps(read: Callable[[str], object], text: str) -> int:
    """How many calls of Python functions it takes to read the text, or to refuse it in one sentence."""
    count = 0

    def called(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        read(text)
    except errors.ConfigurationError:
        pass
    finally:
        sys.setprofile(None)
    return count


def refusal(read: Callable[[str], object], text: str) -> str:
    """Why it is not read; empty if it is."""
    try:
        read(text)
    except errors.ConfigurationError as error:
        return str(error)
    return ""


def merges(lines: int, width: int = 10, leaf: str = "{}") -> str:
    made = [f"a0: &a0 {leaf}"]
    made += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * width)}]}}" for n in range(1, lines)]
    return "\n".join(made) + "\n"


def aliases(lines: int) -> str:
    made = ["a0: &a0 [x]"]
    made += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, lines)]
    return "\n".join(made) + "\n"


BOMBS = {
    "merge keys over nothing": merges(12),
    "merge keys over a key": merges(12, leaf="{a: 1}"),
    "merge keys over a long text": merges(12, leaf="{a: " + "x" * 1000 + "}"),
    "merge keys in pairs": merges(40, width=2),
    "merge keys of a list with an anchor": "a: &a {}\nl: &l ["
    + "*a, " * 100
    + "]\n"
    + "".join(f"b{n}: &b{n} {{<<: *l}}\n" for n in range(100)),
    "aliases": aliases(12),
    "a stream of bombs": "---\n".join([aliases(5)] * 50),
    "a merge key in a merge key": "a: &a {<<: {<<: {<<: [{}, {}]}}}\n",
    "an anchor in itself": "a: &a {<<: *a}\n",
}


@rows.each("reader", READERS)
@rows.each("bomb", BOMBS)
def test_no_bomb_takes_more_than_a_bounded_number_of_steps(
    reader: str, bomb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yaml_loader, "MAX_EXPANSION", 1_000)
    text = BOMBS[bomb]
    assert steps(READERS[reader], text) < 20 * (len(text) + 1_000)


SCALARS = st.sampled_from(["x", "1", "{}", "[]", "'*'", "0x1f", "1e5", "yes", "!!str 3", "~"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Lines that refer to earlier ones in every way there is."""
    lines = [f"k0: &k0 {{a: {draw(SCALARS)}}}"]
    for number in range(1, draw(st.integers(2, 9))):
        earlier = [f"*k{draw(st.integers(0, number - 1))}" for _ in range(draw(st.integers(1, 9)))]
        form = draw(
            st.sampled_from(
                ["{<<: [%s]}", "{<<: [%s], a: 1}", "{l: [%s]}", "{l: {m: [%s]}}", "{<<: {l: [%s]}}"]
            )
        )
        lines.append(f"k{number}: &k{number} {form % ', '.join(earlier)}")
    return "\n".join(lines) + "\n"


@given(texts())
def test_whatever_refers_to_whatever_the_steps_are_linear_in_the_size(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_loader, "MAX_EXPANSION", 500)
        counted = [steps(read, text) for read in READERS.values()]
    assert max(counted) < 20 * (len(text) + 500) + 2_000


GROWING: dict[str, Callable[[int], str]] = {
    "keys": lambda n: "".join(f"k{i}: 1\n" for i in range(n)),
    "items": lambda n: f"a: [{'1,' * n}]",
    "anchors": lambda n: "".join(f"k{i}: &a{i} 1\n" for i in range(n)),
    "aliases of one text": lambda n: "a: &a 1\n" + "".join(f"k{i}: *a\n" for i in range(n)),
    "tags": lambda n: f"a: [{'!!str x,' * n}]",
    "comments": lambda n: "# x\n" * n + "a: 1",
    "flow keys without values": lambda n: f"{{{','.join(f'k{i}' for i in range(n))}}}",
    "documents": lambda n: "--- {}\n" * n,
}


@rows.each("reader", READERS)
@rows.each("shape", GROWING)
def test_twice_the_text_is_at_most_twice_the_steps(reader: str, shape: str) -> None:
    once, twice = (steps(READERS[reader], GROWING[shape](size)) for size in (60, 120))
    assert twice <= 2.2 * once + 100


ABSURD = {
    "a number of many digits": "a: " + "1" * 5_000,
    "a hexadecimal number of many digits": "a: 0x" + "1" * 100_000,
    "a fraction of many digits": "a: " + "1" * 100_000 + ".5",
    "a number with a huge exponent": "a: 1e999999999",
    "a number with an exponent of many digits": "a: 1e" + "9" * 100_000,
    "a number of base 60": "a: !!int '" + "1:" * 50_000 + "1'",
    "a fraction of base 60": "a: !!float '" + "1:" * 50_000 + "1'",
    "a date that is none": "a: !!timestamp x",
    "a flag that is none": "a: !!bool x",
    "directives": "".join(f"%TAG !{n}! x\n" for n in range(5_000)) + "---\na: 1\n",
    "a long directive": f"%TAG !a! {'x' * 10_000}\n---\na: [{'!a!b 1,' * 1_000}]\n",
    "deep JSON": '{"a": ' + "[" * 200_000 + "]" * 200_000 + "}",
    "deep flow": "a: " + "[" * 200_000,
    "deep blocks": "- " * 50_000,
    "JSON with a long number": '{"a": ' + "1" * 5_000 + "}",
    "a long key that is not text": "? [x]\n: 1",
}


@rows.each("reader", READERS)
@rows.each("text", ABSURD.values(), ids=ABSURD)
def test_what_is_absurd_is_read_or_refused_in_one_short_sentence(reader: str, text: str) -> None:
    sentence = refusal(READERS[reader], text)
    assert "\n" not in sentence
    assert len(sentence) < 1_000


def test_numbers_of_any_length_mean_what_helm_makes_of_them() -> None:
    zeros = "0" * 6_000
    read = yaml_reading.load(
        f"[{'1' * 400}, {'9' * 200}, 0x{zeros}1f, 0{zeros}17, -0b{zeros}1]", "values.yaml"
    )
    assert read == ["1" * 400, float("9" * 200), 31, 15, -1]


def test_what_aliases_add_counts_over_all_documents_of_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_loader, "MAX_EXPANSION", 100)
    document = "a: &a [x, x, x]\nb: [*a, *a, *a]\n"
    assert len(document_stream.load_stream("---\n".join([document] * 2))) == 2
    with pytest.raises(
        document_stream.StreamError, match=r"document \[4\].*aliases expand to more than 100 nodes"
    ):
        document_stream.load_stream("---\n".join([document] * 9))


def test_a_value_used_many_times_is_not_a_bomb() -> None:
    text = "base: &base {image: nginx, ports: [80, 443]}\n"
    text += "".join(f"k{n}:\n  <<: *base\n  name: n{n}\n" for n in range(500))
    values = yaml_reading.load(text, "values.yaml")
    assert isinstance(values, dict)
    assert values["k499"] == {"image": "nginx", "ports": [80, 443], "name": "n499"}


@rows.each(
    ("text", "expected"),
    [
        ("a: &x 1\nb: *x\nc: &x 2\nd: *x\n", {"a": 1, "b": 1, "c": 2, "d": 2}),
        ("a: &x 1\nc: &x 2\n", {"a": 1, "c": 2}),
        ("a: &x [1]\nb: {<<: &y {c: 1}, d: &y 2}\ne: &x [*x, *y]\n".replace("&x [*x", "&z [*x"),
         {"a": [1], "b": {"c": 1, "d": 2}, "e": [[1], 2]}),
        ("a: '&x &x'\nb: yes\nc: 010\n", {"a": "&x &x", "b": True, "c": 8}),
    ],
    ids=["set again", "without an alias", "merged", "within quotes"],
)  # fmt: skip
def test_an_anchor_may_be_set_again_and_counts_from_there(text: str, expected: object) -> None:
    assert yaml_loader.load(text) == expected
    assert list(yaml_loader.load_all(f"{text}---\n{text}")) == [expected, expected]


@rows.each(
    ("text", "problem"),
    [
        ("a: &x 1\nb: &x [*y]", "found undefined alias 'y'"),
        ("a: &x 1\nb: &x [*x]", "an anchor contains an alias to itself"),
        ("a: &x 1\nb: &x " + "[" * 150, "nest deeper than"),
        ("a: &x 1\n---\nb: &x 1\n---\nc: *x", "found undefined alias 'x'"),
    ],
    ids=["undefined", "itself", "deep", "of another document"],
)
def test_what_is_wrong_with_anchors_is_wrong_where_they_are_set_again_too(text: str, problem: str) -> None:
    with pytest.raises(yaml.YAMLError, match=re.escape(problem)):
        list(yaml_loader.load_all(text))


def test_anchors_that_are_set_again_cost_what_the_size_allows() -> None:
    assert costs.is_linear(lambda size: "- &x a\n- *x\n" * size, yaml_loader.load, 1000)
