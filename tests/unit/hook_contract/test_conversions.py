"""By which steps objects come to a version, and what must not change on the way."""

from typing import Any

import orjson
import pytest

from addon_operator.hook_contract import conversions
from addon_operator.hook_contract.conversions import Step
from tests.support import rows

CRD = "crontabs.example.com"
UP = [("example.com/v1", "example.com/v2"), ("example.com/v2", "example.com/v3")]


def steps(edges: list[tuple[str, str]], versions: str, wanted: str) -> list[tuple[str, str]]:
    """Return the steps among versions of one letter."""
    return [(step.before, step.after) for step in conversions.steps(edges, versions.split(), wanted, CRD)]


def pairs(text: str) -> list[tuple[str, str]]:
    return [(pair[0], pair[1]) for pair in text.split()]


@rows.each(
    ("edges", "versions", "wanted", "expected"),
    [
        pytest.param("ab", "a", "b", "ab", id="one step"),
        pytest.param("ab bc cd", "a", "d", "ab bc cd", id="a chain"),
        pytest.param("ab bc cd ac", "a", "d", "ac cd", id="the shortest chain"),
        pytest.param("bd cd ab ac", "a", "d", "ab bd", id="of two as short ones, the one declared first"),
        pytest.param("cd bd ab ac", "a", "d", "ac cd", id="declared in another order"),
        pytest.param("ab ba bc cb", "a", "c", "ab bc", id="ways back do no harm"),
        pytest.param("ab bc", "a b", "c", "ab bc", id="objects that meet go on together"),
        pytest.param("ac bc", "b a", "c", "bc ac", id="two that do not meet"),
        pytest.param("ab", "b", "b", "", id="nothing to do"),
        pytest.param("ab", "", "b", "", id="no objects"),
    ],
)
def test_the_steps_to_a_version(edges: str, versions: str, wanted: str, expected: str) -> None:
    assert steps(pairs(edges), versions, wanted) == pairs(expected)


def test_no_step_is_taken_before_what_leads_to_it() -> None:
    edges = pairs("ab cb bd de")
    assert steps(edges, "c a d", "e")[-2:] == pairs("bd de")


def test_no_chain_says_what_is_declared() -> None:
    with pytest.raises(conversions.NoChainError) as raised:
        conversions.steps(UP, ["example.com/v3"], "example.com/v1", CRD)
    assert str(raised.value) == (
        "no conversions of crontabs.example.com lead from example.com/v3 to example.com/v1; declared are "
        "example.com/v1 to example.com/v2, example.com/v2 to example.com/v3"
    )
    with pytest.raises(conversions.NoChainError, match="to b; no hook declares any"):
        conversions.steps([], ["a"], "b", CRD)


def test_a_message_names_only_so_many_declared_conversions() -> None:
    edges = [(f"v{number}", f"v{number + 1}") for number in range(100)]
    with pytest.raises(conversions.NoChainError, match=r"v19 to v20 and 80 more$"):
        conversions.steps(edges, ["v9"], "v1", CRD)


def test_a_long_chain_is_found_in_time_that_grows_with_its_length() -> None:
    edges = [(str(number), str(number + 1)) for number in range(20_000)]
    assert len(conversions.steps(edges, ["0"], "20000", CRD)) == 20_000


# Answers of hooks


def test_an_answer_with_objects() -> None:
    assert conversions.parse_answer('{"convertedObjects": [{"a": 1}]}').objects == [{"a": 1}]
    assert conversions.parse_answer('{"failedMessage": "", "convertedObjects": []}').objects == []


def test_an_answer_that_says_why_not() -> None:
    read = conversions.read_answer('{"failedMessage": "spec.cron is odd"}', [cron()], "example.com/v2")
    assert read == conversions.ConversionAnswer(failed_message="spec.cron is odd")
    long = orjson.dumps({"failedMessage": "x" * 100_000}).decode()
    assert len(conversions.parse_answer(long).failed_message) == conversions.MAX_MESSAGE


@rows.each(
    ("text", "message"),
    [
        ("", "its answer is empty; write "),
        (" \n", "its answer is empty; write "),
        ("{", "its answer is not JSON: "),
        ("[]", "its answer is not a mapping"),
        ("{}", "its answer has no list convertedObjects of objects, and no failedMessage"),
        ('{"convertedObjects": [1]}', "its answer has no list convertedObjects of objects"),
        ('{"convertedObjects": {}}', "its answer has no list convertedObjects of objects"),
        ('{"failedMessage": 1}', "failedMessage in its answer is not a text"),
        ("[" * 100_000, "its answer is not JSON: "),
    ],
)
def test_an_answer_that_fails(text: str, message: str) -> None:
    with pytest.raises(conversions.ConversionError) as raised:
        conversions.parse_answer(text)
    assert str(raised.value).startswith(message)


def cron(**changes: object) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "n", "uid": "1", "generation": 1, "labels": {"a": "b"}}
    item = {"apiVersion": "example.com/v1", "kind": "CronTab", "metadata": metadata}
    return {**item, **changes}


def moved(**metadata: object) -> dict[str, Any]:
    new = {key: value for key, value in (cron()["metadata"] | metadata).items() if value is not None}
    return cron(apiVersion="example.com/v2", metadata=new)


def test_labels_annotations_and_everything_but_metadata_may_change() -> None:
    after = moved(labels={}, annotations={"x": "y"}) | {"spec": 1}
    conversions.check_converted([cron()], [after], "example.com/v2")


@rows.each(
    ("after", "problem"),
    [
        ([], "it returned 0 objects for 1 object"),
        ([moved(), moved()], "it returned 2 objects for 1 object"),
        ([cron()], "is of apiVersion example.com/v1 and not example.com/v2"),
        ([{}], "is of apiVersion none and not example.com/v2"),
        ([moved() | {"kind": "Job"}], "is of kind Job and not CronTab"),
        ([moved(name="b")], "changes metadata.name; only labels and annotations may change"),
        ([moved(uid=None)], "removes metadata.uid; only labels and annotations may change"),
        ([moved(finalizers=["x"])], "adds metadata.finalizers; only labels and annotations may change"),
        ([moved(generation=True)], "changes metadata.generation; only labels and annotations may change"),
        ([moved() | {"metadata": None}], "removes metadata.generation; only labels and annotations may"),
    ],
)
def test_what_must_not_change_is_named(after: list[Any], problem: str) -> None:
    with pytest.raises(conversions.ConversionError) as raised:
        conversions.check_converted([cron()], after, "example.com/v2")
    prefix = "" if problem.startswith("it returned") else "its convertedObjects[0] (n/a) "
    assert str(raised.value).startswith(prefix + problem)


def test_another_order_is_a_change_of_names() -> None:
    before = [cron(), cron(metadata={"name": "b"})]
    after = [moved() | {"metadata": {"name": "b"}}, moved()]
    with pytest.raises(conversions.ConversionError, match=r"\[0\] \(n/a\) removes metadata\.gen"):
        conversions.check_converted(before, after, "example.com/v2")


def test_a_step_is_what_one_run_does() -> None:
    assert conversions.steps(UP, ["example.com/v1"], "example.com/v3", CRD) == [
        Step("example.com/v1", "example.com/v2"),
        Step("example.com/v2", "example.com/v3"),
    ]


def test_a_small_object_does_not_become_one_that_no_api_server_stores() -> None:
    before: dict[str, Any] = {"apiVersion": "g/v1", "kind": "A", "metadata": {"name": "x"}}
    after = {**before, "apiVersion": "g/v2", "spec": "x" * conversions.MAX_OBJECT_BYTES}
    with pytest.raises(conversions.ConversionError, match=r"\(x\) has \d+ bytes, and may have 3145728, as"):
        conversions.check_converted([before], [after], "g/v2")
