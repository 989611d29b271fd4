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


def test_of_neighbours_of_one_group_only_the_last_context_stays() -> None:
    a1, a2, b = (binding_contexts.group(name, group) for name, group in [("1", "a"), ("2", "a"), ("3", "b")])
    tick = binding_contexts.schedule("tick")
    assert binding_contexts.collapse_groups([a1, a2, tick, tick, a1, b, a2]) == [a2, tick, tick, a1, b, a2]


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
    "startup": [binding_contexts.lifecycle(bindings.LifecycleBinding.ON_STARTUP, {"pods": []})],
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
