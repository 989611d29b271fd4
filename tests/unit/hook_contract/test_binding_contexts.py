"""What a hook is told about the reason of its run."""

import json
import pathlib

from addon_operator.documents import json_documents
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.configuration import bindings
from addon_operator.kernel.json_types import JsonValue
from tests.support import rows

POD = b'{"kind":"Pod","metadata":{"name":"p","namespace":"n"}}'
ENTRY = binding_contexts.entry(POD)
GOLDEN = pathlib.Path(__file__).parent / "golden"


def packed(entry: bytes = ENTRY) -> binding_contexts.PackedEntry:
    return binding_contexts.PackedEntry(entry)


def read(context: binding_contexts.Context) -> JsonValue:
    value: JsonValue = json.loads(b"".join(context.pieces()))
    return value


def test_on_startup_has_no_snapshots() -> None:
    assert read(binding_contexts.lifecycle(bindings.LifecycleBinding.ON_STARTUP, {"pods": []})) == {
        "binding": "onStartup"
    }


@rows.each("binding", [binding for binding in bindings.LifecycleBinding if binding != "onStartup"], ids=str)
def test_all_other_steps_of_life_have_snapshots(binding: bindings.LifecycleBinding) -> None:
    assert read(binding_contexts.lifecycle(binding)) == {"binding": binding.value, "snapshots": {}}
    assert read(binding_contexts.lifecycle(binding, {"pods": [ENTRY], "none": []})) == {
        "binding": binding.value,
        "snapshots": {"pods": [json.loads(ENTRY)], "none": []},
    }


def test_a_tick() -> None:
    assert read(binding_contexts.schedule("nightly")) == {"binding": "nightly", "type": "Schedule"}
    assert read(binding_contexts.schedule("nightly", {"pods": []})) == {
        "binding": "nightly",
        "type": "Schedule",
        "snapshots": {"pods": []},
    }


def test_a_synchronization_lists_its_objects_even_if_there_are_none() -> None:
    entries = [binding_contexts.entry(POD, b'"x"'), binding_contexts.entry(POD, b"2")]
    assert read(binding_contexts.synchronization("pods", entries)) == {
        "binding": "pods",
        "type": "Synchronization",
        "objects": [
            {"object": json.loads(POD), "filterResult": "x"},
            {"object": json.loads(POD), "filterResult": 2},
        ],
    }
    assert read(binding_contexts.synchronization("pods", [], {"pods": []})) == {
        "binding": "pods",
        "type": "Synchronization",
        "objects": [],
        "snapshots": {"pods": []},
    }


@rows.each("change", list(bindings.WatchEvent), ids=str)
def test_an_event_holds_the_object_and_the_filters_result(change: bindings.WatchEvent) -> None:
    changed = packed(binding_contexts.entry(POD, b"null"))
    assert read(binding_contexts.event("pods", change, changed, {"all": []})) == {
        "binding": "pods",
        "type": "Event",
        "watchEvent": change.value,
        "object": json.loads(POD),
        "filterResult": None,
        "snapshots": {"all": []},
    }


@rows.each(
    ("entry", "text"),
    [
        (binding_contexts.entry(POD), b'{"object":' + POD + b"}"),
        (binding_contexts.entry(filter_result=b"[1]"), b'{"filterResult":[1]}'),
        (binding_contexts.entry(), b"{}"),
    ],
    ids=["without a filter", "without the object", "with neither"],
)
def test_an_entry_lacks_what_is_not_kept_and_what_is_not_filtered(entry: bytes, text: bytes) -> None:
    assert entry == text
    event = binding_contexts.event("b", bindings.WatchEvent.ADDED, packed(entry))
    assert read(event) == {"binding": "b", "type": "Event", "watchEvent": "Added", **json.loads(entry)}


ODD: bytes = b'{"kind":"Pod","text":"},\\"filterResult\\":","n":12345678901234567890123,"u":"\xc3\xa4"}'


@rows.each(
    ("before", "members"),
    [
        (binding_contexts.entry(ODD, b"[1]"), b',"oldObject":' + ODD + b',"oldFilterResult":[1]'),
        (binding_contexts.entry(ODD), b',"oldObject":' + ODD),
        (binding_contexts.entry(filter_result=b"null"), b',"oldFilterResult":null'),
        (binding_contexts.entry(), b""),
    ],
    ids=["with both", "without a filter", "without the object", "with neither"],
)
def test_what_was_kept_before_a_change_stands_beside_it_byte_by_byte(before: bytes, members: bytes) -> None:
    changed = packed(binding_contexts.entry(b"{}"))
    context = binding_contexts.event("b", bindings.WatchEvent.MODIFIED, changed, {"s": []}, packed(before))
    head = b'{"binding":"b","type":"Event","watchEvent":"Modified","object":{}'
    assert b"".join(context.pieces()) == head + members + b',"snapshots":{"s":[]}}'


def test_a_group_has_its_snapshots_and_nothing_else() -> None:
    assert read(binding_contexts.group("pods", "g")) == {
        "binding": "pods",
        "type": "Group",
        "groupName": "g",
        "snapshots": {},
    }


@rows.each(
    ("change", "word"),
    [
        (bindings.WatchEvent.ADDED, "add"),
        (bindings.WatchEvent.MODIFIED, "update"),
        (bindings.WatchEvent.DELETED, "delete"),
    ],
)
def test_a_legacy_event_names_the_object(change: bindings.WatchEvent, word: str) -> None:
    assert read(binding_contexts.legacy_event(change, "onKubernetesEvent", packed())) == {
        "binding": "onKubernetesEvent",
        "resourceEvent": word,
        "resourceNamespace": "n",
        "resourceKind": "Pod",
        "resourceName": "p",
    }


def test_the_legacy_event_of_a_cluster_object_has_an_empty_namespace() -> None:
    node = packed(binding_contexts.entry(b'{"kind":"Node","metadata":{"name":"x"}}'))
    told = read(binding_contexts.legacy_event(bindings.WatchEvent.ADDED, "b", node))
    assert isinstance(told, dict)
    assert told["resourceNamespace"] == ""


def test_of_neighbours_of_one_group_only_the_last_context_stays() -> None:
    a1, a2, b = (binding_contexts.group(name, group) for name, group in [("1", "a"), ("2", "a"), ("3", "b")])
    tick = binding_contexts.schedule("tick")
    assert binding_contexts.collapse_groups([a1, a2, tick, tick, a1, b, a2]) == [a2, tick, tick, a1, b, a2]


def test_a_packed_entry_is_small_and_comes_back_as_it_was() -> None:
    entry = binding_contexts.entry(b'{"data":{"text":"%b"}}' % (b"x" * 10_000))
    waiting = binding_contexts.PackedEntry(entry)
    assert waiting.size < 200
    assert waiting.unpack() == entry


def test_an_entry_that_is_kept_packed_waits_as_it_is() -> None:
    entry = binding_contexts.entry(b'{"data":{"text":"%b"}}' % (b"x" * 10_000))
    kept = json_documents.pack(entry)
    waiting = binding_contexts.PackedEntry(kept)
    assert waiting.size == len(kept)
    assert waiting.unpack() == entry


def test_texts_of_names_and_objects_are_not_touched() -> None:
    strange = b'{"kind":"Pod","n":12345678901234567890123,"f":1.0,"s":"\\ud800 \\u00e4"}'
    text = b"".join(binding_contexts.synchronization('a"ä', [binding_contexts.entry(strange)]).pieces())
    assert strange in text
    assert json.loads(text)["binding"] == 'a"ä'


TICK = binding_contexts.schedule("nightly", {"pods": [binding_contexts.entry(POD, b'{"a":1}')]})
FILTERED = binding_contexts.entry(POD, b'{"a":[1,"x",null]}')
RESULT = binding_contexts.entry(filter_result=b'"x"')
NODE = binding_contexts.entry(b'{"kind":"Node","metadata":{"name":"x"}}')
DOCUMENTS = {
    "lifecycle": [
        binding_contexts.lifecycle(bindings.LifecycleBinding.BEFORE_HELM, {"pods": [ENTRY], "none": []})
    ],
    "lifecycle-without-bindings": [binding_contexts.lifecycle(bindings.LifecycleBinding.AFTER_ALL)],
    "startup": [binding_contexts.lifecycle(bindings.LifecycleBinding.ON_STARTUP)],
    "schedule": [binding_contexts.schedule("schedule"), TICK],
    "synchronization": [
        binding_contexts.synchronization("pods", [binding_contexts.entry(POD, b"null"), ENTRY])
    ],
    "synchronization-of-nothing": [binding_contexts.synchronization("pods", [], {"pods": []})],
    "synchronization-with-snapshots": [
        binding_contexts.synchronization("pods", [RESULT], {"pods": [RESULT], "nodes": []}),
    ],
    "events": [
        binding_contexts.event(
            "pods", bindings.WatchEvent.ADDED, packed(FILTERED), {"pods": [FILTERED], "nodes": []}
        ),
        binding_contexts.event("pods", bindings.WatchEvent.MODIFIED, packed()),
        binding_contexts.event(
            "pods", bindings.WatchEvent.DELETED, packed(binding_contexts.entry(None, b"[1,2]"))
        ),
    ],
    "group": [binding_contexts.group("pods", "all", {"pods": [ENTRY], "nodes": []})],
    "merged": [
        binding_contexts.group("tick", "all"),
        binding_contexts.event("pods", bindings.WatchEvent.ADDED, packed(RESULT)),
        TICK,
    ],
    "legacy": [
        binding_contexts.legacy_event(bindings.WatchEvent.ADDED, "old", packed()),
        binding_contexts.legacy_event(bindings.WatchEvent.MODIFIED, "onKubernetesEvent", packed()),
        binding_contexts.legacy_event(bindings.WatchEvent.DELETED, "old", packed(NODE)),
        binding_contexts.legacy_schedule("nightly"),
    ],
}


@rows.each("name", DOCUMENTS)
def test_a_hook_reads_exactly_these_bytes(name: str) -> None:
    expected = (GOLDEN / f"{name}.json").read_bytes().rstrip(b"\n")
    assert b"".join(binding_contexts.document(DOCUMENTS[name])) == expected


MOST = 64 * 1024
SMALL_ENTRY, LARGE_ENTRY = (
    json_documents.pack(binding_contexts.entry(b'"%b"' % (b"x" * size))) for size in (100, MOST)
)


@rows.each(
    ("review", "entries", "is_known"),
    [
        (b"{}", [], True),
        (b"{}", [SMALL_ENTRY] * 500, True),
        (b"{}", [SMALL_ENTRY] * 501, False),
        (b"{}", [LARGE_ENTRY], False),
        (b" " * MOST, [], False),
    ],
    ids=["alone", "with snapshots", "with many objects", "with a large object", "a large review"],
)
def test_a_review_knows_whether_it_is_short(review: bytes, entries: list[bytes], is_known: bool) -> None:
    snapshots = {"pods": json_documents.LazyEntries(entries)}
    context = binding_contexts.review("guard.example", "Validating", review, snapshots)
    assert context.is_within(MOST) is is_known
    assert not is_known or len(b"".join(context.pieces())) <= MOST


def test_contexts_of_other_kinds_have_to_be_made_to_know() -> None:
    change = binding_contexts.PackedEntry(binding_contexts.entry(b"{}"))
    for context in (
        binding_contexts.schedule("NAME"),
        binding_contexts.synchronization("NAME", []),
        binding_contexts.event("NAME", bindings.WatchEvent.ADDED, change),
        binding_contexts.legacy_event(bindings.WatchEvent.ADDED, "NAME", change),
    ):
        assert not context.is_within(MOST)
