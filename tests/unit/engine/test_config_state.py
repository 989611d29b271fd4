"""The values ConfigMap both ways: what counts as an edit, and what a bad one leaves in force."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from addon_operator.engine import config_state
from addon_operator.kernel.names import ModuleName
from addon_operator.kube import config_maps
from addon_operator.values import patches, sources, store

WEB, DB = ModuleName("web"), ModuleName("db")


class FakeConfigMap:
    """A ConfigMap with a version counter; ``meanwhile`` runs between the answer's making and its arrival."""

    def __init__(self, data: dict[str, str] | None) -> None:
        self.data = data
        self.version = 1
        self.meanwhile: Callable[[], None] = lambda: None

    def snapshot(self) -> config_maps.Snapshot | None:
        return None if self.data is None else config_maps.Snapshot(dict(self.data), str(self.version))

    def edit(self, **data: str) -> config_maps.Snapshot | None:
        self.data = {**(self.data or {}), **data}
        self.version += 1
        return self.snapshot()

    async def read(self) -> config_maps.Snapshot | None:
        return self.snapshot()

    async def update(self, change: Callable[[Mapping[str, str]], Mapping[str, str]]) -> config_maps.Snapshot:
        self.data = dict(change(self.data or {}))
        self.version += 1
        written = config_maps.Snapshot(dict(self.data), str(self.version))
        self.meanwhile()
        await asyncio.sleep(0)
        return written


class Told:
    def __init__(self) -> None:
        self.changes: list[store.ConfigChange] = []
        self.invalid: list[str] = []

    def config_changed(self, change: store.ConfigChange) -> None:
        self.changes.append(change)

    def config_invalid(self, error: sources.ConfigMapError, uid: str) -> None:
        self.invalid.append(str(error))


class Bench:
    def __init__(self, data: dict[str, str] | None) -> None:
        self.cluster = FakeConfigMap(data)
        self.values = store.ValuesStore([store.ModuleValues(WEB), store.ModuleValues(DB)])
        self.told = Told()
        self.warnings: list[str] = []
        self.state = config_state.ConfigState(
            self.values,
            self.cluster,
            self.told,
            modules=[WEB, DB],
            source="ConfigMap",
            warn=self.warnings.append,
        )


async def loaded(data: dict[str, str] | None) -> Bench:
    bench = Bench(data)
    await bench.state.load()
    return bench


def patch(path: str, value: object) -> patches.ValuesPatch:
    return patches.ValuesPatch(({"op": "add", "path": path, "value": value},), "hook")  # type: ignore[dict-item] # JSON


async def test_a_missing_config_map_is_an_empty_one() -> None:
    bench = await loaded(None)
    assert bench.values.config_values(WEB) == {"global": {}, "web": {}}


async def test_a_wrong_config_map_at_start_is_an_error() -> None:
    with pytest.raises(sources.ConfigMapError, match="web"):
        await loaded({"web": "a: ["})


async def test_an_edit_is_taken_in_and_told_by_what_it_changed() -> None:
    bench = await loaded({"web": "a: 1"})
    bench.state.received(bench.cluster.edit(web="a: 2"))
    assert bench.values.config_values(WEB)["web"] == {"a": 2}
    assert [change.sections_changed for change in bench.told.changes] == [{WEB}]


async def test_an_edit_that_changes_only_the_writing_is_not_told() -> None:
    bench = await loaded({"web": "a: 1"})
    bench.state.received(bench.cluster.edit(web="# a comment\na:   1\n"))
    assert bench.told.changes == []


async def test_the_same_version_delivered_again_is_not_told() -> None:
    bench = await loaded({"web": "a: 1"})
    bench.state.received(bench.cluster.snapshot())
    assert bench.told.changes == []


async def test_a_bad_edit_is_told_once_and_leaves_the_last_good_values() -> None:
    bench = await loaded({"web": "a: 1"})
    bad = bench.cluster.edit(web="a: [")
    bench.state.received(bad)
    bench.state.received(bad)
    assert len(bench.told.invalid) == 1
    assert bench.values.config_values(WEB)["web"] == {"a": 1}
    bench.state.received(bench.cluster.edit(web="a: 3"))
    assert bench.values.config_values(WEB)["web"] == {"a": 3}
    assert len(bench.told.changes) == 1


async def test_an_older_version_that_comes_late_is_passed_over() -> None:
    bench = await loaded({"web": "a: 1"})
    old = bench.cluster.edit(web="a: 2")
    bench.state.received(bench.cluster.edit(web="a: 3"))
    bench.state.received(old)
    assert bench.values.config_values(WEB)["web"] == {"a": 3}


async def test_deleting_the_config_map_falls_back_to_the_sources_below() -> None:
    bench = await loaded({"web": "a: 1"})
    bench.state.received(None)
    assert bench.values.config_values(WEB)["web"] == {}
    assert bench.told.changes[0].sections_changed == {WEB}
    bench.cluster.version = 9
    bench.state.received(bench.cluster.edit(web="a: 1"))
    assert len(bench.told.changes) == 2, "and created again it is back"


async def test_a_hooks_write_reaches_cluster_and_store_and_is_no_edit() -> None:
    bench = await loaded({"web": "a: 1  # mine", "db": "b:   1 # theirs"})
    bench.cluster.meanwhile = lambda: bench.state.received(bench.cluster.snapshot())
    assert await bench.state.write(WEB, patch("/web/c", 2)) is True
    assert bench.values.config_values(WEB)["web"] == {"a": 1, "c": 2}
    assert bench.cluster.data is not None
    assert bench.cluster.data["db"] == "b:   1 # theirs"
    bench.state.received(bench.cluster.snapshot())
    assert bench.told.changes == [], "whether the watch is faster or slower than the answer"


async def test_a_write_that_changes_nothing_says_so() -> None:
    bench = await loaded({"web": "a: 1"})
    assert await bench.state.write(WEB, patch("/web/a", 1)) is False


async def test_somebodys_edit_that_a_write_brings_along_is_told() -> None:
    bench = await loaded({"web": "a: 1"})
    bench.cluster.edit(db="b: 2")
    await bench.state.write(WEB, patch("/web/c", 2))
    assert [change.sections_changed for change in bench.told.changes] == [{DB}]


async def test_a_bad_edit_of_another_section_does_not_stop_a_hooks_write() -> None:
    bench = await loaded({"web": "a: 1"})
    bench.cluster.edit(db="b: [")
    assert await bench.state.write(WEB, patch("/web/c", 2)) is True
    assert bench.values.config_values(WEB)["web"] == {"a": 1, "c": 2}
    assert len(bench.told.invalid) == 1


async def test_a_patch_outside_the_modules_section_is_refused_before_anything_is_written() -> None:
    bench = await loaded({})
    with pytest.raises(patches.PatchError, match="/db/x"):
        bench.state.check(WEB, patch("/db/x", 1))


async def test_an_unknown_key_is_a_warning() -> None:
    bench = await loaded({"wbe": "a: 1"})
    assert any("wbe" in warning for warning in bench.warnings)
