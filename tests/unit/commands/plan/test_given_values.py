"""Whose values of hooks a plan takes."""

import contextlib
import dataclasses
import pathlib
import tempfile
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import structlog
from msgspec import structs
from typing_extensions import override

from addon_operator.commands.plan import given_values
from addon_operator.debug import debug_site
from addon_operator.helm import helm_errors, release_types
from addon_operator.helm.releases import releases
from addon_operator.kernel import errors, names
from addon_operator.modules import model
from addon_operator.settings import settings
from addon_operator.values import config_map_reader, store
from addon_operator.values.patches import hook_values
from tests.support import api_server
from tests.unit.debug import inspected

WEB, DB = names.ModuleName("web"), names.ModuleName("db")
NAMESPACE, SERVER = inspected.HOME


Records = dict[names.ModuleName, release_types.RevisionInputs | errors.AddonOperatorError]
"""What the releases of modules were given; an error is raised."""


class Manager(releases.ReleaseManager):
    """Knows records by the names of their modules."""

    def __init__(self, records: Records) -> None:
        self._by_module = records

    @override
    async def revision_inputs(self, module: names.ModuleName) -> release_types.RevisionInputs | None:
        record = self._by_module.get(module)
        if isinstance(record, errors.AddonOperatorError):
            raise record
        return record


def revision_inputs(
    values: dict[str, Any],
    places: hook_values.HookPaths | None = None,
    *,
    revision: int = 1,
    made_at: int = 1,
    by_go_operator: bool = False,
) -> release_types.RevisionInputs:
    text = None if places is None else places.text()
    return release_types.RevisionInputs(revision, by_go_operator, values, text, made_at)


class World:
    """Modules web and db with hooks, global hooks, and a plan that looks for what they gave."""

    def __init__(self, root: pathlib.Path, socket: pathlib.Path) -> None:
        for directory in ("global", "web", "db"):
            (root / directory / "hooks").mkdir(parents=True)
        self.modules = {name: model.Module(name, 1, root / name) for name in (WEB, DB)}
        self.values = store.ValuesStore([store.ModuleValues(name) for name in self.modules])
        self.values.set_config(
            config_map_reader.ConfigMapReader(self.values.modules).read({"web": "note: mine"}).usable()
        )
        self.releases: Records = {}
        self.notes: list[str] = []
        self.settings = settings.Settings(
            namespace=NAMESPACE, debug_unix_socket=socket, global_hooks_dir=root / "global",
            origins={"debug_unix_socket": "flag"},
        )  # fmt: skip

    async def take(
        self, *, namespace: str = NAMESPACE, server: str = SERVER
    ) -> given_values.HookValuesOrigin:
        source = given_values.GivenValues(
            self.values,
            self.modules,
            Manager(self.releases),
            dataclasses.replace(self.settings, namespace=namespace),
            self.notes.append,
        )
        return await source.take(api_server.client_of(server, api_server.Pauses()), None)

    @contextlib.asynccontextmanager
    async def operator(self) -> AsyncIterator[inspected.World]:
        running = inspected.make()
        running.api.serve(running.engine)
        async with debug_site.serving(self.settings, running.api, structlog.get_logger()):
            yield running


@pytest.fixture
def world(tmp_path: pathlib.Path) -> Iterator[World]:
    # Shorter than the directories of pytest: a socket's path has a limit.
    with tempfile.TemporaryDirectory(prefix="ao-") as directory:
        yield World(tmp_path, pathlib.Path(directory) / "debug.socket")


async def test_values_of_a_running_operator_go_before_those_of_releases(world: World) -> None:
    world.releases[DB] = revision_inputs({"db": {"a": 1}}, hook_values.HookPaths(own=("/db/a",)), revision=7)
    # What the hook gave then has changed since.
    world.releases[WEB] = revision_inputs(
        {"web": {"password": "old"}}, hook_values.HookPaths(own=("/web/password",))
    )
    async with world.operator() as running:
        running.values.adopt_switches({"webEnabled": True})
        taken = await world.take()
    assert world.values.values(WEB) == {
        "global": {"zone": "a"}, "web": {"note": "mine", "password": inspected.SECRET}
    }  # fmt: skip
    assert world.values.flag(WEB).enabled
    assert (taken.source, taken.releases) == (given_values.Source.OPERATOR, {})
    assert str(taken).endswith(f"those of the operator on {world.settings.debug_unix_socket}")
    assert world.notes == []


async def test_of_modules_that_the_operator_has_not_run_yet_the_releases_tell(world: World) -> None:
    world.modules[inspected.KUBE_DNS] = structs.replace(world.modules.pop(DB), name=inspected.KUBE_DNS)
    world.values.set_files([store.ModuleValues(name) for name in world.modules], ())
    world.releases[inspected.KUBE_DNS] = revision_inputs(
        {"kubeDns": {"a": 1}}, hook_values.HookPaths(own=("/kubeDns/a",)), revision=7
    )
    async with world.operator():
        taken = await world.take()
    assert world.values.values(inspected.KUBE_DNS)["kubeDns"] == {"a": 1}
    assert str(taken).endswith("; of modules that it has not run yet, those of kube-dns revision 7")


async def test_values_for_modules_that_are_gone_are_left_out_with_a_note(world: World) -> None:
    del world.modules[WEB]
    async with world.operator():
        await world.take()
    (note,) = world.notes
    assert note.endswith("has values of hooks of module web, which is not here: left out")
    assert inspected.SECRET not in note


@pytest.mark.parametrize(
    ("elsewhere", "sentence"),
    [
        ({"namespace": "other"}, "it works in namespace addons, and the plan is for other"),
        (
            {"server": "https://else"},
            "it works with the API server https://cluster, and the plan is for https://else",
        ),
    ],
    ids=["namespace", "cluster"],
)
async def test_an_operator_elsewhere_is_not_believed(
    world: World, elsewhere: dict[str, str], sentence: str
) -> None:
    async with world.operator():
        taken = await world.take(**elsewhere)
    assert world.values.values(WEB)["web"] == {"note": "mine"}
    assert taken.source is given_values.Source.NOTHING
    (note,) = world.notes
    assert note.endswith(f"is left out: {sentence}")


async def test_a_standby_replica_is_reported_and_the_releases_count(world: World) -> None:
    world.releases[WEB] = revision_inputs(
        {"web": {"a": 1}}, hook_values.HookPaths(own=("/web/a",)), revision=7
    )
    running = inspected.make()
    async with debug_site.serving(world.settings, running.api, structlog.get_logger()):
        taken = await world.take()
    assert world.values.values(WEB)["web"] == {"note": "mine", "a": 1}
    assert "(web revision 7)" in str(taken)
    (note,) = world.notes
    assert note.endswith("does not tell what hooks gave: the operator is starting; ask again in a moment")


async def test_a_socket_that_nobody_answers_on_is_reported(world: World) -> None:
    async with world.operator():
        world.settings.debug_unix_socket.rename(world.settings.debug_unix_socket.with_name("moved"))
    world.settings.debug_unix_socket.with_name("moved").rename(world.settings.debug_unix_socket)
    await world.take()
    (note,) = world.notes
    assert "nobody answers on the socket" in note


async def test_without_a_socket_the_releases_tell_and_nothing_is_said_of_it(world: World) -> None:
    assert (await world.take()).source is given_values.Source.NOTHING
    assert world.notes == []


async def test_values_that_users_removed_were_not_given_by_hooks(world: World) -> None:
    world.releases[WEB] = revision_inputs(
        {"web": {"note": "mine", "removed": 1, "internal": 2}}, hook_values.HookPaths(own=("/web/internal",))
    )
    world.releases[DB] = revision_inputs({"db": {"removed": 1}})
    await world.take()
    assert world.values.values(WEB)["web"] == {"note": "mine", "internal": 2}
    assert world.values.values(DB)["db"] == {}


async def test_global_values_and_switches_are_those_of_the_newest_release(world: World) -> None:
    places = hook_values.HookPaths(shared=("/global/zone",), switches={"webEnabled": True})
    older = hook_values.HookPaths(shared=("/global/old",), switches={"dbEnabled": True})
    world.releases[WEB] = revision_inputs({"global": {"zone": "new", "old": 1}}, places, made_at=9)
    world.releases[DB] = revision_inputs({"global": {"zone": "old", "old": 1}}, older, made_at=3)
    await world.take()
    assert world.values.values(None)["global"] == {"zone": "new"}
    assert (world.values.flag(WEB).enabled, world.values.flag(DB).enabled) == (True, False)


async def test_of_the_go_operators_releases_what_no_source_has_counts(world: World) -> None:
    world.releases[WEB] = revision_inputs(
        {"global": {"zone": "a", "enabledModules": ["web"]}, "web": {"note": "old", "internal": {"x": 1}}},
        by_go_operator=True,
    )
    await world.take()
    assert world.values.values(WEB) == {
        "global": {"zone": "a"}, "web": {"note": "mine", "internal": {"x": 1}}
    }  # fmt: skip


async def test_a_release_that_cannot_be_read_is_reported(world: World) -> None:
    world.releases[WEB] = helm_errors.ReleaseRecordError("the record is broken")
    taken = await world.take()
    assert taken.releases == {}
    assert world.notes == ["what hooks gave to module web is not known: the record is broken"]


async def test_without_hooks_a_module_takes_nothing_of_its_own_from_its_release(world: World) -> None:
    (world.modules[WEB].path / "hooks").rmdir()
    world.releases[WEB] = revision_inputs({"web": {"a": 1}}, hook_values.HookPaths(own=("/web/a",)))
    await world.take()
    assert world.values.values(WEB)["web"] == {"note": "mine"}
