"""What is asked of the API server for a binding."""

from collections.abc import Sequence
from typing import cast

import pytest

from addon_operator.engine.bindings import binding_selections
from addon_operator.hook_contract import jq_programs
from addon_operator.hook_contract.configuration import bindings
from addon_operator.kube.informers import informers, object_selections, projections
from tests.unit.engine import bound_fakes


class Jq:
    async def run(
        self, program: str, documents: Sequence[bytes], timeout: float
    ) -> list[bytes | jq_programs.JqError]:
        raise AssertionError("nothing is filtered here")


def binding(**more: object) -> bindings.KubernetesBinding:
    return bound_fakes.hook("a.sh", {"kubernetes": [{"kind": "Pod", **more}]}).config.kubernetes[0]


def selected(**fields: object) -> object_selections.ObjectSelection:
    return object_selections.ObjectSelection("Pod", **fields)  # type: ignore[arg-type] # as given


@pytest.mark.parametrize(
    ("more", "fields"),
    [
        ({}, {}),
        ({"apiVersion": "v1"}, {"api_version": "v1"}),
        ({"nameSelector": {"matchNames": ["b", "a"]}}, {"names": ("a", "b")}),
        ({"labelSelector": {"matchLabels": {"app": "web"}}}, {"label_selector": "app=web"}),
        (
            {"fieldSelector": {"matchExpressions": [{"field": "a", "operator": "!=", "value": "b"}]}},
            {"field_selector": "a!=b"},
        ),
        ({"namespace": {"nameSelector": {"matchNames": ["y", "x", "x"]}}}, {"namespaces": ("x", "y")}),
        ({"namespace": {"labelSelector": {"matchLabels": {"t": "s"}}}}, {"namespace_labels": "t=s"}),
        (
            {"namespace": {"labelSelector": {"matchExpressions": [{"key": "t", "operator": "Exists"}]}}},
            {"namespace_labels": "t"},
        ),
    ],
    ids=["all", "version", "names", "labels", "fields", "namespaces", "namespace labels", "expressions"],
)
def test_every_selector_is_one_of_the_api_server(more: dict[str, object], fields: dict[str, object]) -> None:
    assert binding_selections.selection_of(binding(**more)) == selected(**fields)


def test_bindings_that_differ_in_other_things_share_a_watch() -> None:
    first = binding(name="a", queue="q", namespace={"nameSelector": {"matchNames": ["x", "y"]}})
    second = binding(name="b", group="g", namespace={"nameSelector": {"matchNames": ["y", "x"]}})
    assert binding_selections.selection_of(first) == binding_selections.selection_of(second)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, projections.FullObject()),
        ({"keepFullObjectsInMemory": False}, projections.FullObject(keep=False)),
        ({"jqFilter": ".a"}, projections.JqFiltered(".a", True, Jq())),
        ({"jqFilter": ".a", "keepFullObjectsInMemory": False}, projections.JqFiltered(".a", False, Jq())),
    ],
    ids=["objects", "nothing", "objects and results", "results"],
)
def test_no_more_is_kept_than_a_binding_needs(
    more: dict[str, object], expected: projections.Projection
) -> None:
    assert binding_selections.projection_of(binding(**more), Jq()) == expected


class Informers:
    def __init__(self) -> None:
        self.asked: list[tuple[object, object, object]] = []

    def subscribe(self, selection: object, projection: object, listener: object) -> informers.Subscription:
        self.asked.append((selection, projection, listener))
        return cast("informers.Subscription", None)


class Listener:
    def filtered(self, count: int, seconds: float) -> None:
        raise AssertionError("nothing is filtered here")


def test_a_binding_is_followed_with_its_selection_and_its_projection() -> None:
    watches, listener = Informers(), Listener()
    follow = binding_selections.InformerBindings(watches, Jq())
    follow(binding(jqFilter=".a"), listener)  # type: ignore[arg-type] # only passed on
    assert watches.asked == [(selected(), projections.JqFiltered(".a", True, Jq()), listener)]


async def test_an_object_that_is_not_kept_still_counts_as_changed() -> None:
    kept = binding_selections.projection_of(binding(keepFullObjectsInMemory=False), Jq())
    first, touched, changed = await kept.reduce(
        [
            b'{"metadata":{"name":"a","resourceVersion":"1","managedFields":[]},"x":1}',
            b'{"metadata":{"name":"a","resourceVersion":"2","managedFields":[1]},"x":1}',
            b'{"metadata":{"name":"a","resourceVersion":"3"},"x":2}',
        ]
    )
    assert isinstance(first, projections.Reduced)
    assert isinstance(changed, projections.Reduced)
    assert (first.entry, changed.entry) == (b"{}", b"{}")
    assert first == touched
    assert first.digest != changed.digest
