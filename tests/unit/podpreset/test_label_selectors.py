"""Label selectors."""

from collections.abc import Iterator

from addon_operator.podpreset import crd, model, schema
from tests.support import rows


def problems(selector: object, path: str) -> Iterator[str]:
    shape = crd.spec().fields["selector"]
    return schema.problems(shape, schema.prune(shape, selector), path)


def matches(selector: dict[str, object], labels: dict[str, str]) -> bool:
    assert not list(problems(selector, "selector"))
    return model.compile_selector(selector).matches(labels)


def expression(operator: str, *values: str) -> dict[str, object]:
    one = {"key": "a", "operator": operator, **({"values": list(values)} if values else {})}
    return {"matchExpressions": [one]}


@rows.each(
    ("operator", "values", "labels", "expected"),
    [
        ("In", ("1", "2"), {"a": "2"}, True),
        ("In", ("1", "2"), {"a": "3"}, False),
        ("In", ("1",), {}, False),
        ("In", ("",), {"a": ""}, True),
        ("In", ("",), {}, False),
        ("NotIn", ("1",), {"a": "2"}, True),
        ("NotIn", ("1",), {"a": "1"}, False),
        ("NotIn", ("1",), {}, True),
        ("Exists", (), {"a": ""}, True),
        ("Exists", (), {"b": "1"}, False),
        ("DoesNotExist", (), {"b": "1"}, True),
        ("DoesNotExist", (), {"a": ""}, False),
    ],
)
def test_each_operator_means_what_it_means_in_kubernetes(
    operator: str, values: tuple[str, ...], labels: dict[str, str], expected: bool
) -> None:
    assert matches(expression(operator, *values), labels) is expected


@rows.each(
    ("labels", "expected"),
    [({"a": "1", "b": "2"}, True), ({"a": "1"}, False), ({"b": "2"}, False), ({"a": "1", "b": "3"}, False)],
)
def test_all_labels_have_to_match(labels: dict[str, str], expected: bool) -> None:
    assert matches({"matchLabels": {"a": "1", "b": "2"}}, labels) is expected


def test_labels_and_expressions_have_to_match_both() -> None:
    selector = {"matchLabels": {"b": "2"}, **expression("Exists")}
    assert matches(selector, {"a": "x", "b": "2"})
    assert not matches(selector, {"a": "x"})
    assert not matches(selector, {"b": "2"})


def test_nulls_say_nothing() -> None:
    selector: dict[str, object] = {"matchLabels": {"b": "2"}, "matchExpressions": None}
    assert matches(selector, {"b": "2"})


@rows.each("selector", [None, "role=frontend", ["role"]])
def test_a_selector_of_another_type_is_reported(selector: object) -> None:
    assert list(problems(selector, "spec.selector")) == ["spec.selector: must be a mapping"]
