"""Differences name the field, and a subset asks only for what it says."""

from addon_operator.testing import differences
from tests.support import rows


def paths(expected: object, actual: object, *, subset: bool = False) -> list[str]:
    return [each.path for each in differences.between(expected, actual, subset=subset)]


def test_equal_documents_do_not_differ() -> None:
    assert paths({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}) == []


def test_a_field_is_named_by_its_object() -> None:
    before = [{"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 1}}]
    after = [{"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 2}}]

    assert paths(before, after) == ["Deployment web: spec.replicas"]


def test_items_are_compared_by_their_names_wherever_they_are() -> None:
    one, two = {"name": "one", "image": "a"}, {"name": "two", "image": "b"}

    assert paths({"c": [two]}, {"c": [one, two]}, subset=True) == []
    assert paths({"c": [one, two]}, {"c": [one, {**two, "image": "x"}]}) == ["c[two].image"]
    assert paths({"c": [one, two]}, {"c": [two, one]}) == ["c: order"]


def test_a_subset_asks_for_what_it_names_alone() -> None:
    assert paths({"a": 1}, {"a": 1, "b": 2}, subset=True) == []
    assert paths({"a": 1}, {"a": 1, "b": 2}) == ["b"]
    assert paths({"a": {"x": 1}}, {}, subset=True) == ["a"]


def test_a_subset_asks_with_null_for_a_field_that_is_not_there() -> None:
    assert paths({"a": {"x": None}}, {"a": {"y": 1}}, subset=True) == []
    assert paths({"a": {"x": None}}, {"a": {"x": None}}, subset=True) == []
    assert paths({"a": {"x": None}}, {"a": {"x": 1}}, subset=True) == ["a.x"]
    assert paths({"a": {"x": None}}, {"a": {}}) == ["a.x"]


@rows.each("empty", [[], {}])
def test_a_subset_asks_with_an_empty_list_or_mapping_for_an_empty_one(empty: object) -> None:
    full = [{"name": "a"}] if empty == [] else {"a": 1}

    assert paths({"a": empty}, {"a": empty}, subset=True) == []
    assert paths({"a": empty}, {"a": full}, subset=True) != []


ENV = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
HOLDS = [
    ({"$has": "-v"}, ["-p", "-v"]),
    ({"$has": ["-v", "-p"]}, ["-p", "-v"]),
    ({"$has": {"value": "2"}}, ENV),
    ({"$has": "listen 80"}, "listen 80;\nroot /;\n"),
    ({"$lacks": "-x"}, ["-p", "-v"]),
    ({"$lacks": ["-x", "-y"]}, ["-p"]),
    ({"$lacks": "listen 81"}, "listen 80;"),
    ({"$matches": r"^nginx:1\.\d+$"}, "nginx:1.29"),
    ({"$count": 2}, ENV),
    ({"$count": 1}, {"a": 1}),
    ({"$type": "string"}, "80"),
    ({"$type": "integer"}, 80),
    ({"$type": "number"}, 0.5),
    ({"$type": "boolean"}, False),
    ({"$type": "array", "$count": 0}, []),
    ({"$not": {"$type": "string"}}, {"a": 1}),
    ({"$is": {"a": 1}}, {"a": 1}),
    ({"$is": {"$patch": "delete"}}, {"$patch": "delete"}),
    ({"$not": None}, {"a": 1}),
    ({"$not": 1}, 2),
    ({"$not": {"$matches": "^a"}}, "b"),
    ({"$not": {"a": 1}}, {"a": 2}),
    ({"$has": "-v", "$lacks": "-x", "$count": 1}, ["-v"]),
]
DOES_NOT = [
    ({"$has": "-x"}, ["-xy"], 'has "-x"'),
    ({"$has": {"name": "A", "value": "3"}}, ENV, '{"name": "A", "value": "1"}'),
    ({"$has": "listen 81"}, "listen 80;", "listen 80;"),
    ({"$has": 80}, "listen 80", "has 80"),
    ({"$has": "a"}, {"a": 1}, 'has "a"'),
    ({"$lacks": "-v"}, ["-p", "-v"], 'lacks "-v"'),
    ({"$lacks": 80}, "listen 80", "lacks 80"),
    ({"$lacks": "a"}, {"b": 1}, 'lacks "a"'),
    ({"$matches": "^1$"}, 1, 'matches "^1$"'),
    ({"$count": 2}, ["a"], '1 item\n      "a"'),
    ({"$count": 1}, "a", "count 1"),
    ({"$type": "integer"}, "80", 'type "integer"\n    + "80"'),
    ({"$type": "integer"}, True, "true"),
    ({"$type": "boolean"}, 1, 'type "boolean"'),
    ({"$type": "object"}, [1], "[1]"),
    ({"$is": {"a": 1}}, {"a": 1, "b": 2}, 'exactly {"a": 1}'),
    ({"$is": [{"name": "a"}]}, [{"name": "a"}, {"name": "b"}], "exactly"),
    ({"$not": "a"}, "a", 'not "a"'),
    ({"$not": {"$matches": "^a"}}, "ab", 'not matches "^a"'),
    ({"$not": {"a": 1}}, {"a": 1, "b": 2}, 'not {"a": 1}'),
]


@rows.each(("words", "actual"), HOLDS, ids=str)
def test_a_word_of_a_subset_holds(words: object, actual: object) -> None:
    assert paths({"a": words}, {"a": actual}, subset=True) == []


@rows.each(("words", "actual", "said"), DOES_NOT, ids=str)
def test_a_word_of_a_subset_that_does_not_hold_says_what_there_is(
    words: object, actual: object, said: str
) -> None:
    found = differences.between({"a": words}, {"a": actual}, subset=True)

    assert {each.path for each in found} == {"a"}
    assert said in differences.shown(found)


@rows.each("words", [words for words, _ in HOLDS], ids=str)
def test_no_word_holds_for_a_field_that_is_not_there(words: object) -> None:
    found = differences.between({"a": words}, {}, subset=True)

    assert found
    assert differences.shown(found).endswith("+ (missing)")


def test_what_looks_like_a_word_is_a_field_for_a_snapshot() -> None:
    assert paths({"a": {"$has": 1}}, {"a": [1]}) == ["a"]
    assert paths({"a": {"$has": 1}}, {"a": {"$has": 1}}) == []


def test_what_is_most_like_the_wanted_item_is_shown_first_and_what_must_not_be_there_alone() -> None:
    rules = [{"on": ["pods"], "may": ["get"]}, {"on": ["jobs"], "may": ["list"]}]

    def lines(words: object) -> list[str]:
        text = differences.shown(differences.between(words, rules, subset=True))
        return [line.strip() for line in text.splitlines()[2:]]

    assert lines({"$has": {"on": ["jobs"], "may": ["list"], "as": "x"}})[1].startswith('{"on": ["jobs"]')
    assert lines({"$lacks": {"on": {"$has": "jobs"}}}) == ["+ 1 item", '{"on": ["jobs"], "may": ["list"]}']


def test_of_many_items_the_first_are_shown() -> None:
    text = differences.shown(differences.between({"$has": "x"}, ["y"] * 30, subset=True))

    assert (text.count('"y"'), text.splitlines()[-1].strip()) == (20, "and 10 more")


def test_lists_without_names_are_compared_by_place_and_length() -> None:
    assert paths({"a": [1, 2]}, {"a": [1, 3, 4]}, subset=True) == ["a[1]", "a[2]"]


@rows.each(("one", "other"), [(True, 1), (0, False), ("1", 1), (None, "")])
def test_what_only_looks_alike_differs(one: object, other: object) -> None:
    assert paths({"a": one}, {"a": other}) == ["a"]


def test_many_differences_are_counted() -> None:
    found = differences.between({str(n): 1 for n in range(25)}, {})

    assert differences.shown(found).endswith("and 5 more")
