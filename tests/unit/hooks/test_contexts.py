"""What a hook is told about the reason of its run."""

import json
import pathlib

import pytest

from addon_operator.hooks import bindings, contexts, packed_entries
from addon_operator.kernel.json_types import JsonValue

POD = b'{"kind":"Pod","metadata":{"name":"p","namespace":"n"}}'
ENTRY = contexts.entry(POD)
GOLDEN = pathlib.Path(__file__).parent / "golden"


def packed(entry: bytes = ENTRY) -> contexts.PackedEntry:
    return contexts.PackedEntry(entry)


def read(context: contexts.Context) -> JsonValue:
    value: JsonValue = json.loads(b"".join(context.pieces()))
    return value


def test_on_startup_has_no_snapshots() -> None:
    assert read(contexts.lifecycle(bindings.LifecycleBinding.ON_STARTUP, {"pods": []})) == {
        "binding": "onStartup"
    }


@pytest.mark.parametrize(
    "binding", [binding for binding in bindings.LifecycleBinding if binding != "onStartup"], ids=str
)
def test_all_other_steps_of_life_have_snapshots(binding: bindings.LifecycleBinding) -> None:
    assert read(contexts.lifecycle(binding)) == {"binding": binding.value, "snapshots": {}}
    assert read(contexts.lifecycle(binding, {"pods": [ENTRY], "none": []})) == {
        "binding": binding.value,
        "snapshots": {"pods": [json.loads(ENTRY)], "none": []},
    }


def test_a_tick() -> None:
    assert read(contexts.schedule("nightly")) == {"binding": "nightly", "type": "Schedule"}
    assert read(contexts.schedule("nightly", {"pods": []})) == {
        "binding": "nightly",
        "type": "Schedule",
        "snapshots": {"pods": []},
    }


def test_a_synchronization_lists_its_objects_even_if_there_are_none() -> None:
    entries = [contexts.entry(POD, b'"x"'), contexts.entry(POD, b"2")]
    assert read(contexts.synchronization("pods", entries)) == {
        "binding": "pods",
        "type": "Synchronization",
        "objects": [
            {"object": json.loads(POD), "filterResult": "x"},
            {"object": json.loads(POD), "filterResult": 2},
        ],
    }
    assert read(contexts.synchronization("pods", [], {"pods": []})) == {
        "binding": "pods",
        "type": "Synchronization",
        "objects": [],
        "snapshots": {"pods": []},
    }


@pytest.mark.parametrize("change", list(bindings.WatchEvent), ids=str)
def test_an_event_holds_the_object_and_the_filters_result(change: bindings.WatchEvent) -> None:
    changed = packed(contexts.entry(POD, b"null"))
    assert read(contexts.event("pods", change, changed, {"all": []})) == {
        "binding": "pods",
        "type": "Event",
        "watchEvent": change.value,
        "object": json.loads(POD),
        "filterResult": None,
        "snapshots": {"all": []},
    }


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (contexts.entry(POD), b'{"object":' + POD + b"}"),
        (contexts.entry(filter_result=b"[1]"), b'{"filterResult":[1]}'),
        (contexts.entry(), b"{}"),
    ],
    ids=["without a filter", "without the object", "with neither"],
)
def test_an_entry_lacks_what_is_not_kept_and_what_is_not_filtered(entry: bytes, text: bytes) -> None:
    assert entry == text
    event = contexts.event("b", bindings.WatchEvent.ADDED, packed(entry))
    assert read(event) == {"binding": "b", "type": "Event", "watchEvent": "Added", **json.loads(entry)}


def test_a_group_has_its_snapshots_and_nothing_else() -> None:
    assert read(contexts.group("pods", "g")) == {
        "binding": "pods",
        "type": "Group",
        "groupName": "g",
        "snapshots": {},
    }


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (bindings.WatchEvent.ADDED, "add"),
        (bindings.WatchEvent.MODIFIED, "update"),
        (bindings.WatchEvent.DELETED, "delete"),
    ],
)
def test_a_legacy_event_names_the_object(change: bindings.WatchEvent, word: str) -> None:
    assert read(contexts.legacy_event(change, "onKubernetesEvent", packed())) == {
        "binding": "onKubernetesEvent",
        "resourceEvent": word,
        "resourceNamespace": "n",
        "resourceKind": "Pod",
        "resourceName": "p",
    }


def test_the_legacy_event_of_a_cluster_object_has_an_empty_namespace() -> None:
    node = packed(contexts.entry(b'{"kind":"Node","metadata":{"name":"x"}}'))
    told = read(contexts.legacy_event(bindings.WatchEvent.ADDED, "b", node))
    assert isinstance(told, dict)
    assert told["resourceNamespace"] == ""


def test_of_neighbours_of_one_group_only_the_last_context_stays() -> None:
    a1, a2, b = (contexts.group(name, group) for name, group in [("1", "a"), ("2", "a"), ("3", "b")])
    tick = contexts.schedule("tick")
    assert contexts.collapse_groups([a1, a2, tick, tick, a1, b, a2]) == [a2, tick, tick, a1, b, a2]


def test_a_packed_entry_is_small_and_comes_back_as_it_was() -> None:
    entry = contexts.entry(b'{"data":{"text":"%b"}}' % (b"x" * 10_000))
    waiting = contexts.PackedEntry(entry)
    assert waiting.size < 200
    assert waiting.unpack() == entry


def test_an_entry_that_is_kept_packed_waits_as_it_is() -> None:
    entry = contexts.entry(b'{"data":{"text":"%b"}}' % (b"x" * 10_000))
    kept = packed_entries.pack(entry)
    waiting = contexts.PackedEntry(kept)
    assert waiting.size == len(kept)
    assert waiting.unpack() == entry


def test_texts_of_names_and_objects_are_not_touched() -> None:
    strange = b'{"kind":"Pod","n":12345678901234567890123,"f":1.0,"s":"\\ud800 \\u00e4"}'
    text = b"".join(contexts.synchronization('a"ä', [contexts.entry(strange)]).pieces())
    assert strange in text
    assert json.loads(text)["binding"] == 'a"ä'


TICK = contexts.schedule("nightly", {"pods": [contexts.entry(POD, b'{"a":1}')]})
FILTERED = contexts.entry(POD, b'{"a":[1,"x",null]}')
RESULT = contexts.entry(filter_result=b'"x"')
NODE = contexts.entry(b'{"kind":"Node","metadata":{"name":"x"}}')
DOCUMENTS = {
    "lifecycle": [contexts.lifecycle(bindings.LifecycleBinding.BEFORE_HELM, {"pods": [ENTRY], "none": []})],
    "lifecycle-without-bindings": [contexts.lifecycle(bindings.LifecycleBinding.AFTER_ALL)],
    "startup": [contexts.lifecycle(bindings.LifecycleBinding.ON_STARTUP)],
    "schedule": [contexts.schedule("schedule"), TICK],
    "synchronization": [contexts.synchronization("pods", [contexts.entry(POD, b"null"), ENTRY])],
    "synchronization-of-nothing": [contexts.synchronization("pods", [], {"pods": []})],
    "synchronization-with-snapshots": [
        contexts.synchronization("pods", [RESULT], {"pods": [RESULT], "nodes": []}),
    ],
    "events": [
        contexts.event(
            "pods", bindings.WatchEvent.ADDED, packed(FILTERED), {"pods": [FILTERED], "nodes": []}
        ),
        contexts.event("pods", bindings.WatchEvent.MODIFIED, packed()),
        contexts.event("pods", bindings.WatchEvent.DELETED, packed(contexts.entry(None, b"[1,2]"))),
    ],
    "group": [contexts.group("pods", "all", {"pods": [ENTRY], "nodes": []})],
    "merged": [
        contexts.group("tick", "all"),
        contexts.event("pods", bindings.WatchEvent.ADDED, packed(RESULT)),
        TICK,
    ],
    "legacy": [
        contexts.legacy_event(bindings.WatchEvent.ADDED, "old", packed()),
        contexts.legacy_event(bindings.WatchEvent.MODIFIED, "onKubernetesEvent", packed()),
        contexts.legacy_event(bindings.WatchEvent.DELETED, "old", packed(NODE)),
        contexts.legacy_schedule("nightly"),
    ],
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_hook_reads_exactly_these_bytes(name: str) -> None:
    expected = (GOLDEN / f"{name}.json").read_bytes().rstrip(b"\n")
    assert b"".join(contexts.document(DOCUMENTS[name])) == expected
