"""Contexts and snapshots of the library for hooks in Python, read from what the operator writes."""

import json
from typing import Any

import pytest

from addon_operator import hook
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.configuration import bindings
from tests.support import rows

POD: dict[str, Any] = {"kind": "Pod", "metadata": {"name": "web-1"}}
ENTRY = binding_contexts.entry(json.dumps(POD).encode(), b'{"a": 1}')
FILTERED = binding_contexts.entry(None, b"null")
FULL = binding_contexts.entry(json.dumps(POD).encode())


def read(*written: binding_contexts.Context) -> list[hook.Context]:
    """The contexts as the hook gets them."""
    return hook.Run(contexts=json.loads(b"".join(binding_contexts.document(written)))).contexts


def test_a_step_of_life_has_its_binding_and_all_snapshots() -> None:
    (context,) = read(
        binding_contexts.lifecycle(bindings.LifecycleBinding.BEFORE_HELM, {"pods": [ENTRY], "none": []})
    )
    assert (context.binding, context.type, context.watch_event, context.group) == ("beforeHelm", "", "", "")
    assert [entry.filter_result for entry in context.snapshots["pods"]] == [{"a": 1}]
    assert context.snapshots["none"] == []


def test_a_start_of_the_operator_has_nothing_but_its_name() -> None:
    (context,) = read(binding_contexts.lifecycle(bindings.LifecycleBinding.ON_STARTUP))
    assert (context.binding, context.snapshots, context.objects) == ("onStartup", {}, [])


def test_a_tick_is_a_schedule() -> None:
    (context,) = read(binding_contexts.schedule("nightly", {"pods": [ENTRY]}))
    assert (context.binding, context.type, list(context.snapshots)) == ("nightly", "Schedule", ["pods"])


def test_a_synchronization_has_all_objects() -> None:
    (context,) = read(binding_contexts.synchronization("pods", [ENTRY, FULL]))
    assert (context.binding, context.type) == ("pods", "Synchronization")
    assert [entry.object["metadata"]["name"] for entry in context.objects] == ["web-1", "web-1"]


def test_an_event_has_what_happened_and_its_object() -> None:
    packed = binding_contexts.PackedEntry(ENTRY)
    (context,) = read(binding_contexts.event("pods", bindings.WatchEvent.MODIFIED, packed))
    assert (context.type, context.watch_event) == ("Event", "Modified")
    assert (context.object, context.filter_result) == (POD, {"a": 1})


def test_a_group_has_its_name_and_snapshots() -> None:
    (context,) = read(binding_contexts.group("pods", "all", {"pods": [FULL]}))
    assert (context.type, context.group, len(context.snapshots["pods"])) == ("Group", "all", 1)


def test_a_filter_result_of_null_is_one() -> None:
    (context,) = read(binding_contexts.synchronization("pods", [FILTERED]))
    assert context.objects[0].filter_result is None


def test_what_a_binding_does_not_keep_is_an_error_that_names_the_key() -> None:
    (context,) = read(binding_contexts.synchronization("pods", [FILTERED, FULL]))
    filtered, full = context.objects
    with pytest.raises(hook.MissingError) as raised:
        _ = filtered.object
    assert str(raised.value) == (
        "there is no 'object' here; it takes a kubernetes binding with keepFullObjectsInMemory: true"
    )
    with pytest.raises(hook.MissingError, match="a kubernetes binding with a jqFilter"):
        _ = full.filter_result


def test_the_snapshots_of_a_run_are_those_of_all_its_contexts() -> None:
    run = hook.Run(contexts=[{"snapshots": {"a": [{}]}}, {"binding": "x"}, {"snapshots": {"b": []}}])
    assert {name: len(entries) for name, entries in run.snapshots.items()} == {"a": 1, "b": 0}


@rows.each(
    ("snapshots", "known"),
    [({"pods": [], "nodes": []}, "'pods', 'nodes'"), ({}, "none")],
    ids=["some", "none"],
)
def test_an_unknown_snapshot_is_an_error_that_names_those_there_are(
    snapshots: dict[str, Any], known: str
) -> None:
    run = hook.Run(contexts=[{"binding": "x", "snapshots": snapshots}])
    with pytest.raises(hook.MissingError) as raised:
        _ = run.snapshots["pod"]
    assert str(raised.value) == (
        f"there is no snapshot 'pod' in this run, only {known}; name it in includeSnapshotsFrom"
    )


def test_a_context_is_there_as_it_was_written_too() -> None:
    assert read(binding_contexts.schedule("x"))[0].raw == {"binding": "x", "type": "Schedule"}


def test_what_an_object_was_before_is_there_if_the_binding_keeps_it() -> None:
    context = hook.Context({"binding": "pods", "oldObject": {"a": 1}, "oldFilterResult": [2]})
    assert (context.old_object, context.old_filter_result) == ({"a": 1}, [2])
    with pytest.raises(hook.MissingError, match="keepOldObject: true"):
        hook.Context({"binding": "pods"}).old_object  # noqa: B018 - it raises
