"""Accumulated patches: short, and a replay gives what the sequence meant over any lower values."""

import copy
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addon_operator.documents import json_documents, json_pointers
from addon_operator.kernel import json_types
from addon_operator.values.patches import patch_log, patches
from tests.support import rows
from tests.unit.values.json_strategies import KEY_NAMES, OBJECTS, VALUES

Patch = Sequence[Mapping[str, Any]]

# One choice for a path, not one for each of its tokens: drawing is what costs here.
_PATHS = st.sampled_from(
    [
        json_pointers.render(["m", *tokens])
        for length in range(4)
        for tokens in itertools.product([*KEY_NAMES, "-"], repeat=length)
    ]
)
_OPERATIONS = st.one_of(
    st.builds(lambda path, value: {"op": "add", "path": path, "value": value}, _PATHS, VALUES),
    st.builds(lambda path, value: {"op": "replace", "path": path, "value": value}, _PATHS, VALUES),
    st.builds(lambda path: {"op": "remove", "path": path}, _PATHS),
    st.builds(lambda path, origin: {"op": "move", "path": path, "from": origin}, _PATHS, _PATHS),
    st.builds(lambda path, origin: {"op": "copy", "path": path, "from": origin}, _PATHS, _PATHS),
    st.builds(lambda path: {"op": "test", "path": path}, _PATHS),
)
_PATCHES = st.lists(st.lists(_OPERATIONS, min_size=1, max_size=3), max_size=8)


def steps(patch: Patch) -> list[patches.PatchStep]:
    return [patches.step(operation) for operation in patch]


def log_of(*history: Patch) -> patch_log.PatchLog:
    log = patch_log.PatchLog()
    for patch in history:
        log.append(steps(patch))
    return log


def replayed(log: patch_log.PatchLog, section: json_types.JsonValue) -> json_types.JsonValue:
    document: json_types.JsonObject = {"m": section}
    document = json_documents.copy(document)
    log.replay(document)
    return document["m"]


def replayed_one_by_one(history: list[Patch], section: json_types.JsonValue) -> json_types.JsonValue:
    """The documented rules of a replay, without joining anything."""
    document: json_types.JsonObject = json_documents.copy({"m": section})
    for patch in history:
        document = _replayed_patch(document, steps(patch))
    return document["m"]


def _replayed_patch(document: json_types.JsonObject, patch: list[patches.PatchStep]) -> json_types.JsonObject:
    result = json_documents.copy(document)
    for step in patch:
        try:
            patches.apply_step(result, step)
        except patches.StepError:
            if step.kind == "test":
                return document
    return result


def accepted(section: json_types.JsonObject, candidates: list[list[dict[str, Any]]]) -> list[Patch]:
    """The candidates that apply one after another; tests are filled in so that they hold."""
    document: json_types.JsonObject = json_documents.copy({"m": section})
    history: list[Patch] = []
    for candidate in candidates:
        trial = json_documents.copy(document)
        try:
            patch = [_applied(trial, operation) for operation in candidate]
        except patches.StepError:
            continue
        document = trial
        history.append(patch)
    return history


def _applied(document: json_types.JsonObject, operation: dict[str, Any]) -> patches.Operation:
    if operation["op"] == "test":
        tokens = json_pointers.parse(operation["path"])
        value: Any = document
        for token in tokens:
            if not json_pointers.exists(value, (token,)):
                raise patches.StepError("nothing to test")
            value = value[int(token)] if isinstance(value, list) else value[token]
        operation = {**operation, "value": copy.deepcopy(value)}
    patches.apply_step(document, patches.step(operation))
    return operation


@given(OBJECTS, _PATCHES, st.lists(OBJECTS, min_size=1, max_size=2))
def test_joining_never_changes_what_a_replay_gives(
    section: json_types.JsonObject,
    candidates: list[list[dict[str, Any]]],
    others: list[json_types.JsonObject],
) -> None:
    history = accepted(section, candidates)
    log = log_of(*history)
    for lower in [section, *others, *({**section, **other} for other in others)]:
        assert json_documents.equal(replayed(log, lower), replayed_one_by_one(history, lower))


@given(OBJECTS, _PATCHES, _PATCHES)
def test_folding_keeps_the_present_values_and_later_patches_work_on(
    section: json_types.JsonObject, first: list[list[dict[str, Any]]], second: list[list[dict[str, Any]]]
) -> None:
    history = accepted(section, first)
    log = log_of(*history)
    present = replayed(log, section)
    assert isinstance(present, dict)
    log.fold({"m": section}, {"m": present})
    assert json_documents.equal(replayed(log, section), present)
    for patch in accepted(present, second):
        log.append(steps(patch))
        present = replayed_one_by_one([patch], present)
        assert json_documents.equal(replayed(log, section), present)


@rows.each(
    ("history", "kept"),
    [
        (
            [[{"op": "add", "path": "/m/a", "value": 1}], [{"op": "add", "path": "/m/a", "value": 2}]],
            [{"op": "add", "path": "/m/a", "value": 2}],
        ),
        (
            [[{"op": "add", "path": "/m/a", "value": {}}], [{"op": "add", "path": "/m/a/b", "value": 1}]],
            [{"op": "add", "path": "/m/a", "value": {"b": 1}}],
        ),
        (
            [[{"op": "add", "path": "/m/a/b", "value": 1}], [{"op": "remove", "path": "/m/a"}]],
            [{"op": "remove", "path": "/m/a"}],
        ),
        (
            [[{"op": "add", "path": "/m/a", "value": 1}], [{"op": "replace", "path": "/m/a", "value": 2}]],
            [{"op": "add", "path": "/m/a", "value": 2}],
        ),
        (
            [[{"op": "add", "path": "/m/l", "value": []}], [{"op": "add", "path": "/m/l/-", "value": 1}] * 2],
            [{"op": "add", "path": "/m/l", "value": [1, 1]}],
        ),
        (
            [[{"op": "add", "path": "/m/l/-", "value": 1}], [{"op": "add", "path": "/m/l/-", "value": 1}]],
            [{"op": "add", "path": "/m/l/-", "value": 1}, {"op": "add", "path": "/m/l/-", "value": 1}],
        ),
        (
            [[{"op": "add", "path": "/m/a", "value": 1}], [{"op": "test", "path": "/m/a", "value": 1}]],
            [{"op": "add", "path": "/m/a", "value": 1}],
        ),
        (
            [[{"op": "copy", "from": "/m/a", "path": "/m/b"}], [{"op": "add", "path": "/m/a", "value": 1}]],
            [{"op": "copy", "from": "/m/a", "path": "/m/b"}, {"op": "add", "path": "/m/a", "value": 1}],
        ),
        (
            [[{"op": "add", "path": "/m/a", "value": 1}], [{"op": "add", "path": "/m", "value": {"b": 1}}]],
            [{"op": "add", "path": "/m", "value": {"b": 1}}],
        ),
    ],
    ids=[
        "a later write replaces an earlier one",
        "a write inside a value of ours changes it",
        "a removal drops what was written inside",
        "a replacement changes the addition",
        "appends to a list of ours",
        "appends to a list from below are all kept",
        "a test of what we wrote says nothing new",
        "what was copied before stays copied",
        "the whole section",
    ],
)
def test_operations_are_joined(history: list[Patch], kept: Patch) -> None:
    assert log_of(*history).operations() == kept


def test_appends_to_a_list_from_below_follow_that_list() -> None:
    log = log_of(*([{"op": "add", "path": "/m/l/-", "value": number}] for number in range(12)))
    assert replayed(log, {"l": ["x"]}) == {"l": ["x", *range(12)]}
    assert replayed(log, {"l": []}) == {"l": list(range(12))}


def test_places_in_a_list_from_ten_on_are_replayed_in_their_order() -> None:
    log = log_of(*([{"op": "add", "path": f"/m/l/{index}", "value": index}] for index in range(15)))
    assert replayed(log, {"l": []}) == {"l": list(range(15))}


def test_a_removal_of_what_has_gone_is_skipped_alone() -> None:
    log = log_of([{"op": "remove", "path": "/m/a"}, {"op": "add", "path": "/m/b", "value": 1}])
    assert replayed(log, {}) == {"b": 1}


def test_a_write_below_what_has_gone_is_skipped_alone() -> None:
    log = log_of([{"op": "add", "path": "/m/a/x", "value": 1}, {"op": "add", "path": "/m/b", "value": 1}])
    assert replayed(log, {"c": 1}) == {"c": 1, "b": 1}


@rows.each("position", [0, 1], ids=["test first", "test in between"])
def test_a_patch_whose_test_fails_now_has_no_effect(position: int) -> None:
    patch: list[patches.Operation] = [
        {"op": "add", "path": "/m/b", "value": 1},
        {"op": "add", "path": "/m/c", "value": 1},
    ]
    patch.insert(position, {"op": "test", "path": "/m/mode", "value": "auto"})
    log = log_of(patch)
    assert replayed(log, {"mode": "auto"}) == {"mode": "auto", "b": 1, "c": 1}
    assert replayed(log, {"mode": "manual"}) == {"mode": "manual"}


def test_a_test_does_not_replace_the_write_before_it() -> None:
    log = log_of(
        [{"op": "add", "path": "/m/a/b", "value": 1}],
        [{"op": "test", "path": "/m/a/b", "value": 1}, {"op": "add", "path": "/m/c", "value": 2}],
    )
    assert replayed(log, {"a": {}}) == {"a": {"b": 1}, "c": 2}


def test_patches_under_the_same_test_are_joined() -> None:
    test: patches.Operation = {"op": "test", "path": "/m/mode", "value": "auto"}
    log = log_of(*([test, {"op": "add", "path": "/m/n", "value": number}] for number in range(100)))
    assert log.operations() == [test, {"op": "add", "path": "/m/n", "value": 99}]


def test_operations_that_are_given_out_are_copies() -> None:
    log = log_of([{"op": "add", "path": "/m/a", "value": {"b": 1}}])
    given_out: Any = log.operations()
    given_out[0]["value"]["b"] = 2
    assert replayed(log, {}) == {"a": {"b": 1}}


def test_the_patch_that_was_given_is_not_changed_by_later_ones() -> None:
    value: json_types.JsonObject = {"b": 1}
    log = log_of([{"op": "add", "path": "/m/a", "value": value}])
    log.append(steps([{"op": "add", "path": "/m/a/c", "value": 2}]))
    assert value == {"b": 1}


@pytest.fixture
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that hundreds of operations reach; that of the operator takes thousands."""
    monkeypatch.setattr(patch_log, "MIN_WEIGHT", 1_024)


@pytest.mark.usefixtures("low_limit")
def test_hundreds_of_writes_of_the_same_keys_are_kept_as_one_each() -> None:
    log = patch_log.PatchLog()
    for number in range(700):
        log.append(steps([{"op": "add", "path": f"/m/k{number % 7}", "value": {"n": number}}]))
    assert len(log.operations()) == 7
    assert not log.is_excessive(100)


@pytest.mark.usefixtures("low_limit")
def test_hundreds_of_appends_are_not_excessive_for_the_list_they_make() -> None:
    log = log_of(*([{"op": "add", "path": "/m/l/-", "value": number}] for number in range(500)))
    made = replayed(log, {"l": []})
    assert made == {"l": list(range(500))}
    assert not log.is_excessive(len(json_documents.encode(made)))


@pytest.mark.usefixtures("low_limit")
def test_a_log_that_outgrows_its_values_is_excessive_and_folds_to_the_difference() -> None:
    ring: Patch = [{"op": "add", "path": "/m/l/-", "value": "x"}, {"op": "remove", "path": "/m/l/0"}]
    log = log_of(*[ring] * 200)
    assert log.is_excessive(10)
    log.fold({"m": {"l": ["a", "b"], "gone": 1}}, {"m": {"l": ["x", "x"]}})
    assert log.operations() == [
        {"op": "remove", "path": "/m/gone"},
        {"op": "add", "path": "/m/l", "value": ["x", "x"]},
    ]
    assert not log.is_excessive(10)


def test_hundreds_of_different_tests_are_excessive() -> None:
    log = log_of(
        *(
            [
                {"op": "test", "path": "/m/n", "value": number},
                {"op": "replace", "path": "/m/n", "value": number + 1},
            ]
            for number in range(patch_log.MAX_GUARDS + 1)
        )
    )
    assert log.is_excessive(10)
