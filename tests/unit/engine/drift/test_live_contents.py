"""What is read of live objects to be compared."""

from collections.abc import AsyncIterator, Mapping

import pytest
from typing_extensions import override

from addon_operator.engine.drift import kind_watch, live_contents, watched_resources
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
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
    def __init__(self) -> None:
        pass

    @override
    def scope_of(self, watched: watched_resources.Watched) -> kind_watch.KindScope:
        return kind_watch.KindScope(watched.resource, watched.key.namespace)


@pytest.mark.parametrize("count", [3, 30], ids=["single", "as a list"])
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
