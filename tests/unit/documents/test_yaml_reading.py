"""YAML documents: what they become, and where exactly a wrong one is wrong."""

import pytest

from addon_operator.documents import yaml_loader, yaml_reading
from addon_operator.kernel import errors
from tests.support import rows


@rows.each("text", ["", "\n", "# only a comment\n", "---\n"], ids=repr)
def test_a_text_without_content_is_nothing(text: str) -> None:
    assert yaml_reading.load(text, "values.yaml") is None


@rows.each(
    ("text", "value"),
    [
        ("a: 1\nb: [x, 2]\n", {"a": 1, "b": ["x", 2]}),
        ("---\na: yes\n...\n", {"a": True}),
        ("a: '017'\nb: \"yes\"\n", {"a": "017", "b": "yes"}),
        ("a: 2020-01-01\nb: 12:30\n", {"a": "2020-01-01", "b": "12:30"}),
        ("a: !!str 017\nb: !!int '3'\nc: !mine x\n", {"a": "017", "b": 3, "c": "x"}),
        ("a: !!binary aGk=\n", {"a": "hi"}),
        ("? a\n: 1\n", {"a": 1}),
        ("a:\nb: ~\n", {"a": None, "b": None}),
        ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
        ("\ufeffa: 1", {"a": 1}),
        ('"y": 1', {"y": 1}),
    ],
    ids=repr,
)
def test_a_document_becomes_what_helm_makes_of_it(text: str, value: object) -> None:
    assert yaml_reading.load(text, "values.yaml") == value


@rows.each(
    ("text", "value"),
    [
        ("a: &x {k: 1}\nb: *x\n", {"a": {"k": 1}, "b": {"k": 1}}),
        ("a: &x {k: 1, j: 2}\nb:\n  <<: *x\n  k: 3\n", {"a": {"k": 1, "j": 2}, "b": {"k": 3, "j": 2}}),
        ("a: &x {k: 1}\nc: &y {k: 3}\nb:\n  <<: [*x, *y]\n", {"a": {"k": 1}, "c": {"k": 3}, "b": {"k": 1}}),
        ('"<<": 1\nb: <<\n', {"<<": 1, "b": "<<"}),
    ],
    ids=["alias", "merge key", "first of several merged mappings wins", "quoted it is an ordinary key"],
)
def test_anchors_and_merge_keys_work(text: str, value: object) -> None:
    assert yaml_reading.load(text, "values.yaml") == value


def test_an_alias_gives_a_copy_of_its_own() -> None:
    document = yaml_reading.load("a: &x {k: 1}\nb: *x\n", "values.yaml")
    assert isinstance(document, dict)
    assert document["a"] is not document["b"]


def test_numbers_and_booleans_become_text_as_keys_as_helm_reads_them() -> None:
    words = [
        "8080",
        "-1",
        "0x1F",
        "010",
        "1_000",
        "1.5",
        "1.0",
        "1e6",
        "1e-5",
        "1234567.5",
        "true",
        "No",
        "!!int 7",
    ]
    document = yaml_reading.load("".join(f"{word}: x\n" for word in words), "values.yaml")
    assert isinstance(document, dict)
    assert list(document) == [
        *(
            "8080",
            "-1",
            "31",
            "8",
            "1000",
            "1.5",
            "1",
            "1e+06",
            "1e-05",
            "1.2345675e+06",
            "true",
            "false",
            "7",
        )
    ]


def test_the_order_of_keys_is_kept() -> None:
    document = yaml_reading.load("z: 1\na: 2\nm: 3\n", "values.yaml")
    assert isinstance(document, dict)
    assert list(document) == ["z", "a", "m"]


@rows.each(
    ("text", "message"),
    [
        ("a:\n  b: 1\n  b: 2\n", "values.yaml, line 3, column 3, key a.b: the key is already set on line 2"),
        (
            "a:\n  ~: x\n",
            "column 3, key a: a key must be a string, a number or a boolean, not '~' (null); quote it",
        ),
        ("18446744073709551615: 1\n", "not '18446744073709551615' (a number)"),
        ("? [a]\n: 1\n", "a key must be a string, a number or a boolean, not a collection"),
        ("{8080: 1, '8080': 2}", "key 8080: the key is already set on line 1"),
        ("a: [1, .nan]\n", "line 1, column 8, key a[1]: .nan has no JSON form"),
        ("a: -.inf\n", "line 1, column 4, key a: -.inf has no JSON form"),
        ("a: 1\n---\nb: 2\n", "line 2, column 1: a second document begins here"),
        ("a: 'x\n", "line 2, column 1: invalid YAML: the quote that begins in line 1 does not end; close it"),
        ("a:\n\tb: 1\n", "line 2, column 1: invalid YAML: a tab stands where the line begins"),
        ("a: *x\n", "line 1, column 4: invalid YAML: a value that begins with '*' names an anchor"),
        ("a: &x [*x]\n", "line 1, column 4, key a[0]: an anchor contains an alias to itself"),
        ("a:\n  é: \x00\n", "line 2, column 6: control characters are not allowed"),
        ("a: \ud800\n", "character 4 is half of a surrogate pair"),
        ("a: !!int x\n", "key a: 'x' is not a !!int"),
        ("a: !!int yes\n", "key a: 'yes' is not a !!int"),
        ("a: !!binary '*'\n", "!!binary takes the base64 form"),
        ("<<: 1\n", "a merge key '<<' takes a mapping"),
    ],
    ids=repr,
)
def test_what_helm_would_lose_or_cannot_read_is_refused_with_its_position(text: str, message: str) -> None:
    with pytest.raises(yaml_reading.YamlError) as caught:
        yaml_reading.load(text, "values.yaml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("values.yaml")


def test_the_error_is_one_for_users() -> None:
    assert issubclass(yaml_reading.YamlError, errors.ConfigurationError)


@rows.each(
    "text", ["[" * 200_000, "a: " + "{a: " * 500 + "}" * 500, "\n".join(" " * n + "a:" for n in range(200))]
)
def test_absurd_nesting_is_refused_instead_of_exhausting_the_stack(text: str) -> None:
    with pytest.raises(yaml_reading.YamlError, match="nest deeper than 100 levels"):
        yaml_reading.load(text, "values.yaml")


@rows.each("text", ["%TAG ! x\n" * 17, "%TAG ! " + "x" * 300])
def test_a_stream_has_a_bound_of_directives(text: str) -> None:
    with pytest.raises(yaml_reading.YamlError, match="more than 16 lines that begin with '%'"):
        yaml_reading.load(f"{text}\n---\na: 1\n", "values.yaml")


def test_nesting_through_aliases_counts_too() -> None:
    text = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 200))
    with pytest.raises(yaml_reading.YamlError, match="nest deeper"):
        yaml_reading.load(text, "values.yaml")


def test_nesting_up_to_the_limit_is_read() -> None:
    assert yaml_reading.load("[" * 100 + "]" * 100, "values.yaml") is not None


@pytest.mark.parametrize("unit", ["x", "x" * 10_000], ids=["many nodes", "long text"])
def test_a_bomb_of_aliases_is_refused(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_loader, "MAX_EXPANSION", 10_000)
    lines = [f"a0: &a0 [{', '.join([unit] * 10)}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]
    with pytest.raises(yaml_reading.YamlError, match="aliases expand to more than 10000 nodes"):
        yaml_reading.load("\n".join(lines), "values.yaml")


def test_positions_of_keys_and_items_are_known() -> None:
    document = yaml_reading.load_document("a:\n  b:\n  - 1\n  - 2\n", "values.yaml")
    assert document.where(("a", "b", 1)) == "values.yaml, line 4, column 5"
    assert document.where(("a", "b", "unknown")) == "values.yaml, line 2, column 3"
    assert document.where(()) == "values.yaml"


def test_unquoted_words_read_as_booleans_are_reported_in_their_order() -> None:
    warnings = yaml_reading.unusual_booleans("a: yes\nb: 'yes'\nc: true\nd: &x [No]\ne: *x\n", "values.yaml")
    assert [warning.split(";")[0] for warning in warnings] == [
        "values.yaml, line 1, column 4: 'yes' is read as true",
        "values.yaml, line 4, column 8: 'No' is read as false",
    ]


def test_a_text_without_content_has_no_such_words() -> None:
    assert yaml_reading.unusual_booleans("", "values.yaml") == []
