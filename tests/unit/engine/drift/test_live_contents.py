"""What is read of live objects to be compared, and how fields of them are put back."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest
from typing_extensions import override

from addon_operator.engine.drift import kind_watch, live_contents, watched_resources
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.modules.drift import field_drift
from tests.support import rows
from tests.unit.engine import watching


class Kube(client.KubeClient):
    """Objects by name, of which one cannot be read."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @override
    async def pages(
        self, path: str, *, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[list[client.Object]]:
        yield [
            {"metadata": {"name": "c1", "namespace": "a"}},
            {"metadata": {"name": "other", "namespace": "a"}},
        ]
        raise api_errors.BrokenAnswer("depth limit exceeded")

    @override
    async def get(
        self, path: str, *, query: Mapping[str, str] | None = None, metadata_only: bool = False
    ) -> client.Object:
        name = path.rpartition("/")[2]
        self.asked.append(name)
        if name == "c0":
            raise api_errors.BrokenAnswer("depth limit exceeded")
        return {"metadata": {"name": name}}


class Resources(watched_resources.WatchedResources):
    def __init__(self, there: int = 0) -> None:
        self.there = there

    @override
    def objects(self, scope: kind_watch.KindScope) -> int:
        return self.there

    @override
    def scope_of(self, watched: watched_resources.Watched) -> kind_watch.KindScope:
        return kind_watch.KindScope(watched.resource, watched.key.namespace)


@rows.each("count", [3, 30], ids=["single", "as a list"])
async def test_an_object_that_cannot_be_read_keeps_no_other_from_being_compared(count: int) -> None:
    wanted = {
        watched_resources.Watched(watching.CONFIG_MAP, kind_watch.ObjectKey("a", f"c{number}"))
        for number in range(count)
    }
    kube = Kube()
    found = await live_contents.LiveContents(kube, Resources()).read(wanted)
    assert {each.key.name for each in wanted - found.keys()} == {"c0"}
    assert found.keys() < wanted
    assert ("c1" in kube.asked) == (count == 3), "what was listed is not asked for again"


async def test_a_few_of_very_many_objects_are_read_one_by_one() -> None:
    wanted = {
        watched_resources.Watched(watching.CONFIG_MAP, kind_watch.ObjectKey("a", f"c{number}"))
        for number in range(20)
    }
    kube = Kube()
    await live_contents.LiveContents(kube, Resources(there=201)).read(wanted)
    assert len(kube.asked) == 20
    await live_contents.LiveContents(kube, Resources(there=200)).read(wanted)
    assert len(kube.asked) == 20 + 19, "all others were in the list"


class Written(live_contents.LiveContents):
    """A Service whose API server refuses what a port that somebody added does not go with."""

    def __init__(self) -> None:
        self.writes: list[tuple[str, str]] = []
        self.refusal: api_errors.KubernetesError | None = api_errors.Invalid(
            paths.Target("patch", "services"),
            422,
            "Invalid",
            'spec.ports[2].name: Duplicate value: "metrics"',
        )

    @override
    async def patch(
        self,
        watched: watched_resources.Watched,
        operations: Sequence[Mapping[str, Any]],
        *,
        dry_run: bool = False,
        manager: str = "helm",
    ) -> client.Object:
        self.writes += [
            (f"{each['op']} by {manager}", each["path"]) for each in operations if each["op"] != "test"
        ]
        refusal, self.refusal = self.refusal, None
        if refusal is not None:
            raise refusal
        return {}

    @override
    async def apply(self, watched: watched_resources.Watched, body: client.Object) -> client.Object:
        self.writes.append(("apply", ""))
        refusal, self.refusal = self.refusal, None
        if refusal is not None:
            raise refusal
        return {"metadata": {"managedFields": [{"manager": "helm"}, {"manager": "addon-operator"}]}}


def correction(*others: field_drift.Difference) -> live_contents.Correction:
    """A port of the chart is missing: somebody made another one of it."""
    ports = [{"name": "http", "port": 80}, {"name": "metrics", "port": 9191}]
    missing = field_drift.Difference(
        ("spec", "ports", "1"), ("spec", "ports", "-"), {"name": "metrics", "port": 9090}, None
    )
    watched = watched_resources.Watched(watching.DEPLOYMENT, kind_watch.ObjectKey("a", "web"))
    return live_contents.Correction(watched, {"spec": {"ports": ports}}, [missing], others)


ADDED = field_drift.Difference(
    ("spec", "ports", "2"), ("spec", "ports", "1"), None, {"name": "metrics", "port": 9191}, "alice"
)


async def test_what_is_in_the_way_of_a_correction_goes_with_it() -> None:
    contents = Written()
    await contents.put_back(correction(ADDED), None)
    add, remove = ("add by helm", "/spec/ports/-"), ("remove by helm", "/spec/ports/1")
    assert contents.writes == [add, add, remove]


async def test_where_helm_applies_objects_it_alone_owns_what_was_put_back() -> None:
    contents = Written()
    await contents.put_back(correction(ADDED), {"spec": {}})
    assert contents.writes == [
        ("apply", ""),
        ("add by addon-operator", "/spec/ports/-"),
        ("remove by addon-operator", "/spec/ports/1"),
        ("apply", ""),
        ("remove by helm", "/metadata/managedFields/1"),
    ]


async def test_what_nobody_is_in_the_way_of_stays_refused() -> None:
    contents = Written()
    with pytest.raises(api_errors.Invalid):
        await contents.put_back(correction(), None)
    assert contents.writes == [("add by helm", "/spec/ports/-")]
