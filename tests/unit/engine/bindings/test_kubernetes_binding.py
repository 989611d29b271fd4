"""What is asked of the API server for a binding."""

from addon_operator.engine.bindings import kubernetes_binding
from addon_operator.hook_contract.configuration import bindings
from addon_operator.kube.informers import object_selections, projections
from tests.support import engine, hooks, rows

JQ = engine.JqHere()


def binding(**more: object) -> bindings.KubernetesBinding:
    return hooks.known("a.sh", {"kubernetes": [{"kind": "Pod", **more}]}).config.kubernetes[0]


def selected(**fields: object) -> object_selections.ObjectSelection:
    return object_selections.ObjectSelection("Pod", **fields)  # type: ignore[arg-type] # as given


@rows.each(
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
    assert kubernetes_binding.selection_of(binding(**more)) == selected(**fields)


def test_bindings_that_differ_in_other_things_share_a_watch() -> None:
    first = binding(name="a", queue="q", namespace={"nameSelector": {"matchNames": ["x", "y"]}})
    second = binding(name="b", group="g", namespace={"nameSelector": {"matchNames": ["y", "x"]}})
    assert kubernetes_binding.selection_of(first) == kubernetes_binding.selection_of(second)


@rows.each(
    ("more", "expected"),
    [
        ({}, projections.FullObject()),
        ({"keepFullObjectsInMemory": False}, projections.FullObject(keep=False)),
        ({"jqFilter": ".a"}, projections.JqFiltered(".a", True, JQ)),
        ({"jqFilter": ".a", "keepFullObjectsInMemory": False}, projections.JqFiltered(".a", False, JQ)),
    ],
    ids=["objects", "nothing", "objects and results", "results"],
)
def test_no_more_is_kept_than_a_binding_needs(
    more: dict[str, object], expected: projections.Projection
) -> None:
    assert kubernetes_binding.projection_of(binding(**more), JQ) == expected


async def test_the_work_of_a_filter_is_measured() -> None:
    measured: list[int] = []
    kept = kubernetes_binding.projection_of(
        binding(jqFilter="."), JQ, lambda count, _seconds: measured.append(count)
    )
    await kept.reduce([b"{}", b"{}"])
    assert measured == [2]


async def test_an_object_that_is_not_kept_still_counts_as_changed() -> None:
    kept = kubernetes_binding.projection_of(binding(keepFullObjectsInMemory=False), JQ)
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
