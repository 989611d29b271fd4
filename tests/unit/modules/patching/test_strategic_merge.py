"""Strategic merge patches, by the behaviour that the Kubernetes documentation describes."""

from typing import Any

import pytest

from addon_operator.modules.patching import strategic_merge
from tests.support import rows
from tests.unit import costs

POD: dict[str, Any] = {
    "spec": {
        "containers": [
            {"name": "a", "image": "a:1", "args": ["x"], "ports": [{"containerPort": 80, "name": "http"}]},
            {"name": "b", "image": "b:1"},
        ],
        "nodeSelector": {"on": "here"},
        "tolerations": [{"key": "x"}],
    },
    "metadata": {"finalizers": ["one"]},
}

CASES: dict[str, tuple[Any, Any]] = {
    "a field": ({"spec": {"replicas": 2}}, {"replicas": 2}),
    "null removes": ({"spec": {"nodeSelector": None}}, {"nodeSelector": None}),
    "a mapping is replaced": (
        {"spec": {"nodeSelector": {"$patch": "replace", "to": "there"}}},
        {"nodeSelector": {"to": "there"}},
    ),
    "a mapping is deleted": ({"spec": {"nodeSelector": {"$patch": "delete"}}}, {"nodeSelector": None}),
    "a list without keys is replaced": (
        {"spec": {"tolerations": [{"key": "y"}]}},
        {"tolerations": [{"key": "y"}]},
    ),
    "only some keys stay": (
        {"spec": {"nodeSelector": {"$retainKeys": ["new"], "new": "x"}}},
        {"nodeSelector": {"new": "x"}},
    ),
}


def merged(patch: Any, **more: bool) -> Any:  # noqa: ANN401
    return strategic_merge.merged(POD, patch, **{"is_built_in": True, **more})


@rows.each("case", CASES)
def test_a_patch_does_what_it_says(case: str) -> None:
    patch, expected = CASES[case]
    spec = merged(patch)["spec"]
    assert {key: spec.get(key) for key in expected} == expected
    assert spec["containers"] == POD["spec"]["containers"]


def test_containers_merge_by_name_and_new_ones_are_added() -> None:
    patch = {"spec": {"containers": [{"name": "b", "image": "b:2"}, {"name": "c", "image": "c:1"}]}}
    assert [(each["name"], each["image"]) for each in merged(patch)["spec"]["containers"]] == [
        ("a", "a:1"),
        ("b", "b:2"),
        ("c", "c:1"),
    ]


def test_items_are_deleted_by_their_key_and_ports_merge_by_theirs() -> None:
    patch = {
        "spec": {
            "containers": [
                {"name": "a", "ports": [{"containerPort": 80, "protocol": "UDP"}]},
                {"name": "b", "$patch": "delete"},
            ]
        }
    }
    (container,) = merged(patch)["spec"]["containers"]
    assert container["ports"] == [{"containerPort": 80, "name": "http", "protocol": "UDP"}]
    assert container["args"] == ["x"]


def test_a_list_is_replaced_as_a_whole_if_the_patch_says_so() -> None:
    patch = {"spec": {"containers": [{"$patch": "replace"}, {"name": "z"}]}}
    assert merged(patch)["spec"]["containers"] == [{"name": "z"}]


def test_sets_are_joined_and_items_of_plain_lists_removed() -> None:
    assert merged({"metadata": {"finalizers": ["two"]}})["metadata"]["finalizers"] == ["one", "two"]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["one"]}}
    assert merged(patch)["metadata"]["finalizers"] == []


def test_lists_of_other_kinds_are_replaced() -> None:
    patch = {"spec": {"containers": [{"name": "z"}]}}
    assert merged(patch, is_built_in=False)["spec"]["containers"] == [{"name": "z"}]


@rows.each(
    ("patch", "said"),
    [
        ({"spec": {"$patch": "remove"}}, "/spec: $patch is merge, replace or delete, not 'remove'"),
        ({"spec": {"containers": [{"image": "x"}]}}, "/spec/containers: each item needs 'name'"),
    ],
    ids=["directive", "key"],
)
def test_what_does_not_fit_is_told_with_its_place(patch: Any, said: str) -> None:  # noqa: ANN401
    with pytest.raises(strategic_merge.PatchError) as caught:
        merged(patch)
    assert str(caught.value).startswith(said)


def test_what_is_patched_stays_as_it_was() -> None:
    before = repr(POD)
    merged({"spec": {"containers": [{"name": "a", "image": "x"}], "nodeSelector": None}})
    assert repr(POD) == before


@pytest.mark.slow
def test_long_lists_cost_no_more_than_their_size() -> None:
    def both(size: int) -> tuple[Any, Any]:
        items = [{"name": f"v{number}", "value": "x"} for number in range(size)]
        return {"env": items}, {"env": items}

    assert costs.is_linear(
        both, lambda given: strategic_merge.merged(given[0], given[1], is_built_in=True), 3000
    )
