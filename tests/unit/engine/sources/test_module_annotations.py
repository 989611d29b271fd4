"""What annotations of Module objects lead to: modules that are suspended, and runs."""

import asyncio
import json
import pathlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from typing_extensions import override

from addon_operator.app import engine_listeners
from addon_operator.engine import events, intents, module_states, state
from addon_operator.engine.sources import module_annotations
from addon_operator.helm.releases import releases
from addon_operator.kernel import clock
from addon_operator.kernel.names import ModuleName
from addon_operator.kube import cluster
from addon_operator.kube.informers import object_changes
from addon_operator.kube.objects import module_objects, suspension
from addon_operator.modules import model, windows
from addon_operator.values import sources, store
from tests.support import api_server, clocks, unused, watches
from tests.unit.engine import fakes

WEB, OFF = ModuleName("web"), ModuleName("off")
LIST = module_objects.path_of("addons")
PATH = module_objects.path_of("addons", WEB)


def module(name: str, status: Mapping[str, Any] | None = None, **annotations: str) -> dict[str, Any]:
    shown = {f"addon-operator.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {"metadata": {"name": name, "annotations": shown}, "status": dict(status or {})}


class Manager(releases.ReleaseManager):
    """Releases whose removal somebody has to confirm."""

    def __init__(self) -> None:
        self.revisions: dict[str, int] = {}
        self.confirmed: list[tuple[str, int]] = []

    @property
    @override
    def to_confirm(self) -> frozenset[str]:
        return frozenset(self.revisions)

    @override
    def confirm(self, release: str, revision: int) -> bool:
        self.confirmed.append((release, revision))
        return release in self.revisions


class Bench:
    """A cluster with Module objects, and an operator that follows them."""

    def __init__(self, server: api_server.ApiServer, kube: Any) -> None:  # noqa: ANN401  # its fake client
        self.manager = Manager()
        self.server, self.clock, self.inbox = server, clocks.Clock(), fakes.Inbox()
        self.events: list[events.Event] = []
        modules = [model.Module(name, 1, pathlib.Path(name)) for name in (WEB, OFF)]
        self.values = store.ValuesStore([store.ModuleValues(name) for name in (WEB, OFF)])
        self.states = module_states.ModuleStates(modules, self.events.append)
        self.watches = watches.Watches()
        seen = unused.unused(cluster.Cluster)
        seen.kube, seen.namespace, seen.watches = kube, "addons", self.watches
        listen = engine_listeners.all_of(
            engine_listeners.states_listener(self.states, self.clock), self.events.append
        )
        self.annotations = module_annotations.ModuleAnnotations(
            seen, self.states, self.values, self.inbox, listen, self.clock, self.manager
        )

    def discover(self) -> None:
        enabled = model.Verdict(WEB, True, "by values.yaml")
        self.states.discovered({WEB: enabled, OFF: model.Verdict(OFF, False, "by values.yaml")}, [WEB])

    async def begin(self, *modules: dict[str, Any]) -> None:
        self.server.on("GET", LIST, {"items": list(modules), "metadata": {}})
        await self.annotations.begin()

    def change(self, found: dict[str, Any], type_: str = "Modified") -> None:
        key = object_changes.ObjectKey("addons", found["metadata"]["name"])
        entry = json.dumps({"object": found}).encode()
        self.annotations.changed([object_changes.Change(object_changes.ChangeType(type_), key, entry, "1")])

    @property
    def runs(self) -> int:
        return sum(isinstance(each, intents.RunWanted) for each in self.inbox.put_in)

    @property
    def warnings(self) -> list[str]:
        return [each.text for each in self.events if isinstance(each, events.Warned)]

    async def end_run(self) -> None:
        """End the run of web that was asked for."""
        self.states[WEB].runs += 1
        self.states.mark(WEB, state.ModuleStatus.READY, "")
        await self.clock.advance(1)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    server = api_server.ApiServer()
    async with api_server.client_of(server, api_server.Pauses()) as kube:
        yield Bench(server, kube)


async def test_modules_are_suspended_before_anything_runs(bench: Bench) -> None:
    since = {"suspended": {"reason": "old", "since": clock.rfc3339(50)}}
    await bench.begin(module("web", since, suspended="new disks"), module("other", suspended="x"))
    assert bench.values.maintenance(WEB) == sources.SUSPENDED
    assert bench.values.maintenance(OFF) == ""
    assert bench.states[WEB].suspended == suspension.Suspension("new disks", 50)
    (selection,) = bench.watches.selections
    assert (selection.namespaces, selection.metadata_only) == (("addons",), True)


async def test_what_waited_for_a_window_is_known_before_anything_runs(bench: Bench) -> None:
    held = {"what": "upgrade to revision 2", "until": clock.rfc3339(90), "since": clock.rfc3339(50)}
    await bench.begin(module("web", {"heldBack": held}), module("other", {"heldBack": {"what": "x"}}))
    assert bench.states[WEB].held_back == windows.HeldBack("upgrade to revision 2", 90, 50)
    assert bench.states[OFF].held_back is None


async def test_an_annotation_that_comes_and_goes_is_an_edit_of_the_modules_maintenance(bench: Bench) -> None:
    await bench.begin(module("web"))
    bench.discover()
    bench.change(module("web", suspended="new disks", suspended_by="alice"))
    bench.change(module("web", suspended="new disks", suspended_by="alice", unrelated="x"))
    (edited,) = bench.inbox.put_in
    assert isinstance(edited, intents.ConfigEdited)
    assert (edited.kind, edited.change.maintenance_changed) == ("Module", frozenset({WEB}))
    assert (edited.change.global_changed, edited.change.flags_changed) == (False, frozenset())
    assert bench.states[WEB].reason.startswith(
        "suspended: new disks (by alice, since 1970-01-01T00:01:40Z); "
    )
    bench.change(module("web", suspended="other disks"))
    assert bench.states[WEB].reason.startswith("suspended: other disks (since 1970-01-01T00:01:40Z)")
    bench.change(module("web"), "Deleted")
    assert (bench.values.maintenance(WEB), bench.states[WEB].reason) == ("", "by values.yaml")
    assert len(bench.inbox.put_in) == 2
    changed = [each.now for each in bench.events if isinstance(each, state.SuspensionChanged)]
    assert [each and each.reason for each in changed] == ["new disks", "other disks", None]


async def test_what_the_first_list_of_the_watch_lacks_is_no_longer_suspended(bench: Bench) -> None:
    await bench.begin(module("web", suspended="x"), module("off", suspended="y"))
    bench.watches.subscription.entries = [json.dumps({"object": module("off", suspended="y")}).encode()]
    bench.annotations.synced()
    assert [bench.values.maintenance(name) for name in (WEB, OFF)] == ["", sources.SUSPENDED]


async def test_a_suspension_ends_in_time_and_its_annotations_go(bench: Bench) -> None:
    until = clock.rfc3339(bench.clock.time() + 60)
    bench.server.on("PATCH", PATH, module("web"))
    await bench.begin(module("web", suspended="x", suspended_until=until))
    working = asyncio.create_task(bench.annotations.work())
    await clocks.settle()
    await bench.clock.advance(59)
    assert bench.values.maintenance(WEB) == sources.SUSPENDED
    await bench.clock.advance(1)
    assert bench.values.maintenance(WEB) == ""
    *_, patch = bench.server.asked
    paths = [f"/metadata/annotations/addon-operator.io~1{key}" for key in ("suspended", "suspended-until")]
    assert patch.body == [
        {"op": "test", "path": paths[0], "value": "x"},
        {"op": "test", "path": paths[1], "value": until},
        *({"op": "remove", "path": path} for path in paths),
    ]
    working.cancel()


@pytest.mark.parametrize(
    ("answer", "warnings"),
    [
        (api_server.status(422, "Invalid"), 0),
        (api_server.status(404, "NotFound"), 0),
        (api_server.status(403, "Forbidden"), 1),
    ],
)
async def test_annotations_that_cannot_be_removed_change_nothing(
    bench: Bench, answer: api_server.Answer, warnings: int
) -> None:
    bench.server.on("PATCH", PATH, answer)
    await bench.begin(module("web", suspended="x", suspended_until=clock.rfc3339(1)))
    working = asyncio.create_task(bench.annotations.work())
    await clocks.settle()
    assert bench.values.maintenance(WEB) == ""
    assert len(bench.warnings) == warnings
    assert not working.done()
    working.cancel()


async def test_each_value_runs_the_module_once(bench: Bench) -> None:
    await bench.begin(module("web", {"lastHandledRun": "1"}, run="1"))
    bench.discover()
    bench.change(module("web", run="1", suspended="x"))
    await clocks.settle()
    assert bench.runs == 0
    for _ in range(2):
        bench.change(module("web", run="2"))
    await clocks.settle()
    assert bench.runs == 1
    assert bench.states[WEB].handled_run == "1", "it has not run yet"
    await bench.end_run()
    assert bench.states[WEB].handled_run == "2"
    bench.change(module("web", run="2", unrelated="x"))
    await clocks.settle()
    assert bench.runs == 1


async def test_what_was_asked_for_before_the_start_is_done_once_modules_are_discovered(bench: Bench) -> None:
    await bench.begin(module("web", {"lastHandledRun": "1"}, run="2"), module("gone", run="1"))
    await bench.clock.advance(1)
    assert bench.runs == 0
    bench.discover()
    await bench.clock.advance(1)
    assert bench.runs == 1
    await bench.end_run()
    assert bench.states[WEB].handled_run == "2"


async def test_a_disabled_module_is_not_run_when_it_is_enabled_later(bench: Bench) -> None:
    await bench.begin(module("off", run="1"))
    bench.discover()
    await bench.clock.advance(1)
    assert bench.states[OFF].handled_run == "1"
    (warning,) = bench.warnings
    assert warning.startswith(
        "module off is disabled (by values.yaml): enable it, and it runs; its annotation "
    )


@pytest.mark.parametrize(
    "answer", [api_server.NOT_SERVED, api_server.status(403, "Forbidden")], ids=["not served", "forbidden"]
)
async def test_without_module_objects_or_rights_it_looks_again(
    bench: Bench, answer: api_server.Answer
) -> None:
    bench.server.on("GET", LIST, answer)
    await bench.annotations.begin()
    assert bench.watches.selections == []
    working = asyncio.create_task(bench.annotations.work())
    await clocks.settle()
    bench.server.on("GET", LIST, {"items": [module("web", suspended="x")], "metadata": {}})
    await bench.clock.advance(30)
    assert bench.values.maintenance(WEB) == sources.SUSPENDED
    assert len(bench.watches.selections) == 1
    working.cancel()


async def test_what_keeps_it_from_following_them_is_told(bench: Bench) -> None:
    await bench.begin()
    bench.annotations.trouble("the operator may not watch modules")
    bench.annotations.trouble(None)
    (warning,) = bench.warnings
    assert warning.endswith("(suspended, run) are not followed now: the operator may not watch modules")


async def test_an_annotation_that_is_spelled_wrong_is_told_once(bench: Bench) -> None:
    await bench.begin()
    for _ in range(2):
        bench.change(module("web", suspend="new disks"))
    (warning,) = bench.warnings
    assert warning.startswith("Module web: annotation addon-operator.io/suspend has no effect: did you mean ")
    assert bench.states[WEB].suspended is None
    bench.change(module("web"))
    bench.change(module("web", suspend="new disks"))
    assert len(bench.warnings) == 2


async def test_a_confirmed_removal_begins_and_the_annotation_goes_with_it(bench: Bench) -> None:
    bench.manager.revisions = {OFF: 3}
    await bench.begin(module(OFF, confirm_removal="3"))
    assert (OFF, 3) in bench.manager.confirmed
    assert intents.ConvergeWanted("Command") in bench.inbox.put_in
    bench.server.on("PATCH", module_objects.path_of("addons", OFF), {})
    work = asyncio.create_task(bench.annotations.work())
    await bench.clock.advance(10)
    assert bench.server.asked[-1].method == "GET"
    bench.manager.revisions = {}
    await bench.clock.advance(10)
    work.cancel()
    assert [each["op"] for each in bench.server.asked[-1].body] == ["test", "remove"]
    assert bench.warnings == []
