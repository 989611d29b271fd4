"""What a module changes of what its chart renders."""

import copy
from typing import Any

import pytest

from addon_operator.modules.patching import manifest_changes, strategic_merge
from addon_operator.modules.patching.manifest_changes import ManifestChanges, Patch, Target
from tests.support import rows
from tests.unit import costs

Object = dict[str, Any]
DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}},
    },
}
SERVICE: Object = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web-http", "namespace": "far"},
}
HOOK: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-test", "annotations": {"helm.sh/hook": "test"}},
}
ALL = [DEPLOYMENT, SERVICE, HOOK, None]


def changed(changes: ManifestChanges, documents: list[Any] | None = None) -> list[Any]:
    return manifest_changes.changed(ALL if documents is None else documents, changes, "addons")


def test_labels_and_annotations_are_on_every_resource_and_nowhere_else() -> None:
    deployment, service, hook = changed(ManifestChanges({"team": "a"}, {"by": "us"}))
    assert deployment["metadata"]["labels"] == {"app": "web", "team": "a"}
    assert deployment["spec"] == DEPLOYMENT["spec"]
    assert service["metadata"]["annotations"] == {"by": "us"}
    assert hook == HOOK


def test_lists_of_objects_are_taken_apart() -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [SERVICE, SERVICE]}
    assert [each["metadata"]["labels"] for each in changed(ManifestChanges({"a": "b"}), [listed])] == [
        {"a": "b"},
        {"a": "b"},
    ]


@rows.each(
    ("target", "matched"),
    [
        (Target(kind="Deployment", name="*"), ["web"]),
        (Target(name="web*"), ["web", "web-http"]),
        (Target(name="web(-.*)?"), ["web", "web-http"]),
        (Target(name="web-.*"), ["web-http"]),
        (Target(namespace="far"), ["web-http"]),
        (Target(namespace="addons"), ["web"]),
        (Target(group="apps", version="v1"), ["web"]),
        (Target(label_selector="app=web"), ["web"]),
        (Target(label_selector="app in (a, web), !tier"), ["web"]),
        (Target(label_selector="app!=web"), ["web-http"]),
        (Target(label_selector="!app"), ["web-http"]),
        (Target(label_selector="app"), ["web"]),
    ],
    ids=str,
)
def test_a_target_means_resources_as_in_kustomize(target: Target, matched: list[str]) -> None:
    made = changed(ManifestChanges(patches=(Patch(target, {"metadata": {"labels": {"hit": "x"}}}),)))
    hits = [each["metadata"]["name"] for each in made if "hit" in each["metadata"].get("labels", {})]
    assert hits == matched


def test_operations_are_applied_one_after_another() -> None:
    operations = [{"op": "replace", "path": "/metadata/labels/app", "value": "x"}]
    (made, *_) = changed(ManifestChanges(patches=(Patch(Target(kind="Deployment"), operations),)))
    assert made["metadata"]["labels"] == {"app": "x"}


def test_what_operations_are_applied_to_stays_as_it_was() -> None:
    before = copy.deepcopy(ALL)
    changed(ManifestChanges(patches=(Patch(Target(), [{"op": "remove", "path": "/metadata/name"}]),)))
    assert before == ALL


BIG = "x" * 1_000_000
EXPLOSIVE = {
    "a copy of copies": (
        Patch(Target(kind="Service"), [
            {"op": "copy", "from": "/metadata", "path": f"/metadata/a{number}"} for number in range(30)
        ]),
    ),
    "a copy of what was added": (
        Patch(Target(kind="Service"), [{"op": "add", "path": "/a", "value": BIG}] + [
            {"op": "copy", "from": "/a", "path": f"/b{number}"} for number in range(20)
        ]),
    ),
    "operations on all": (Patch(Target(), [{"op": "add", "path": "/a", "value": BIG}]),),
    "a merge into all": (Patch(Target(), {"data": {"a": BIG}}),),
    "many merges": tuple(Patch(Target(), {"data": {f"a{number}": BIG}}) for number in range(5)),
}  # fmt: skip


@pytest.mark.slow
@rows.each("case", [*EXPLOSIVE, "labels", "annotations"])
def test_changes_add_no_more_than_a_bound_however_they_multiply(case: str) -> None:
    documents = [{**SERVICE, "metadata": {"name": f"s{number}"}} for number in range(10)]
    texts = {key: {"a": BIG} if case == key else {} for key in ("labels", "annotations")}
    changes = ManifestChanges(texts["labels"], texts["annotations"], EXPLOSIVE.get(case, ()))
    with pytest.raises(strategic_merge.PatchError, match="add more than 8 MiB to what the chart renders"):
        changed(changes, documents)


def test_many_operations_cost_no_more_than_their_number_and_the_size_of_the_resource() -> None:
    def made(size: int) -> tuple[list[Any], ManifestChanges]:
        operations = [{"op": "add", "path": f"/data/a{number}", "value": "1"} for number in range(size)]
        document = {**SERVICE, "data": {f"k{number}": "v" for number in range(10 * size)}}
        return [document], ManifestChanges(patches=(Patch(Target(), operations),))

    assert costs.is_linear(made, lambda given: manifest_changes.changed(*given, "addons"), 300)


def test_a_resource_can_be_removed() -> None:
    patch = Patch(Target(kind="Service"), {"$patch": "delete"})
    assert [each["kind"] for each in changed(ManifestChanges({"a": "b"}, patches=(patch,)))] == [
        "Deployment",
        "Pod",
    ]


@rows.each(
    ("patch", "said"),
    [
        (
            Patch(Target(kind="Deployment", name="wbe"), {"spec": {}}),
            "patches[0] matches nothing: there is no kind Deployment, name wbe; the chart renders Deployment",
        ),
        (
            Patch(Target(kind="Ingress"), {"spec": {}}),
            "patches[0] matches nothing: there is no kind Ingress; the chart renders Deployment web, Service",
        ),
        (
            Patch(Target(kind="Deployment"), [{"op": "remove", "path": "/spec/none"}]),
            "patches[0], Deployment web: operation 0 (remove /spec/none) does not fit: there is",
        ),
    ],
    ids=["name", "kind", "operation"],
)
def test_what_does_not_fit_says_what_there_is(patch: Patch, said: str) -> None:
    with pytest.raises(strategic_merge.PatchError) as caught:
        changed(ManifestChanges(patches=(patch,)))
    assert str(caught.value).startswith(said)


def test_changes_are_written_and_read_again() -> None:
    changes = ManifestChanges({"a": "b"}, {"c": "d"}, (Patch(Target(kind="X"), {"spec": {"e": [1]}}),))
    assert manifest_changes.read(changes.written()) == changes
    assert not manifest_changes.NOTHING


def test_those_of_a_module_lie_over_those_of_all() -> None:
    both = ManifestChanges({"a": "own"}).over(ManifestChanges({"a": "all", "b": "all"}, {"c": "all"}))
    assert both == ManifestChanges({"a": "own", "b": "all"}, {"c": "all"})


def test_what_is_no_selector_is_known_before() -> None:
    found = manifest_changes.problems({"target": {"labelSelector": "a = b = c"}, "patch": {"a": 1}})
    assert [place for place, _ in found] == [("target", "labelSelector")]
    assert list(manifest_changes.problems({"target": {}, "patch": [{"op": "x"}]}))
    assert list(manifest_changes.problems({"target": {}, "patch": {"a": 1}})) == []


def test_what_belongs_to_another_release_is_left_out_in_whatever_namespace_it_is_written() -> None:
    documents = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **extra}}
        for name, extra in (("own", {}), ("other", {}), ("far", {"namespace": "far"}))
    ]
    without = frozenset({("", "ConfigMap", "addons", "other"), ("", "ConfigMap", "addons", "far")})
    changes = manifest_changes.read(ManifestChanges(without=without).written())
    assert changes
    made = manifest_changes.changed(documents, changes, "addons")
    assert [each["metadata"]["name"] for each in made] == ["own", "far"]
