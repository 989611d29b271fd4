"""What a hook is told about the reason of its run."""

import pytest

from addon_operator.hooks import bindings, contexts
from addon_operator.kernel.json_types import JsonObject

POD: JsonObject = {"kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}


def test_on_startup_has_no_snapshots() -> None:
    assert contexts.lifecycle(bindings.LifecycleBinding.ON_STARTUP, {"pods": []}) == {"binding": "onStartup"}


@pytest.mark.parametrize(
    "binding", [binding for binding in bindings.LifecycleBinding if binding != "onStartup"], ids=str
)
def test_all_other_steps_of_life_have_snapshots(binding: bindings.LifecycleBinding) -> None:
    assert contexts.lifecycle(binding) == {"binding": binding.value, "snapshots": {}}
    snapshots = {"pods": [contexts.entry(POD)]}
    assert contexts.lifecycle(binding, snapshots) == {
        "binding": binding.value,
        "snapshots": {"pods": [{"object": POD}]},
    }


def test_a_tick() -> None:
    assert contexts.schedule("nightly") == {"binding": "nightly", "type": "Schedule"}
    assert contexts.schedule("nightly", {"pods": []}) == {
        "binding": "nightly",
        "type": "Schedule",
        "snapshots": {"pods": []},
    }


def test_a_synchronization_lists_its_objects_even_if_there_are_none() -> None:
    entries = [contexts.entry(POD, "x")]
    assert contexts.synchronization("pods", entries) == {
        "binding": "pods",
        "type": "Synchronization",
        "objects": [{"object": POD, "filterResult": "x"}],
    }
    assert contexts.synchronization("pods", [], {"pods": []}) == {
        "binding": "pods",
        "type": "Synchronization",
        "objects": [],
        "snapshots": {"pods": []},
    }


@pytest.mark.parametrize("change", list(bindings.WatchEvent), ids=str)
def test_an_event_holds_the_object_and_the_filters_result(change: bindings.WatchEvent) -> None:
    assert contexts.event("pods", change, contexts.entry(POD, None), {"all": []}) == {
        "binding": "pods",
        "type": "Event",
        "watchEvent": change.value,
        "object": POD,
        "filterResult": None,
        "snapshots": {"all": []},
    }


def test_an_entry_lacks_what_is_not_kept_and_what_is_not_filtered() -> None:
    assert contexts.entry(POD) == {"object": POD}
    assert contexts.entry(filter_result=[1]) == {"filterResult": [1]}
    assert contexts.entry() == {}


def test_a_group_has_its_snapshots_and_nothing_else() -> None:
    assert contexts.group("pods", "g") == {
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
    assert contexts.legacy_event(change, "onKubernetesEvent", POD) == {
        "binding": "onKubernetesEvent",
        "resourceEvent": word,
        "resourceNamespace": "n",
        "resourceKind": "Pod",
        "resourceName": "p",
    }


def test_the_legacy_event_of_a_cluster_object_has_an_empty_namespace() -> None:
    node: JsonObject = {"kind": "Node", "metadata": {"name": "x"}}
    assert contexts.legacy_event(bindings.WatchEvent.ADDED, "b", node)["resourceNamespace"] == ""


def test_of_neighbours_of_one_group_only_the_last_context_stays() -> None:
    a1, a2, b = (contexts.group(name, group) for name, group in [("1", "a"), ("2", "a"), ("3", "b")])
    tick = contexts.schedule("tick")
    assert contexts.collapse_groups([a1, a2, tick, tick, a1, b, a2]) == [a2, tick, tick, a1, b, a2]


def test_a_context_does_not_share_lists_with_the_snapshots() -> None:
    entries = [contexts.entry(POD)]
    context = contexts.schedule("tick", {"pods": entries})
    entries.clear()
    assert context["snapshots"] == {"pods": [{"object": POD}]}
