"""Modules that change on disk: what is read again, what stays as it was, and what follows."""

import asyncio
import pathlib
import shutil
from collections.abc import Collection, Sequence

import pytest
from typing_extensions import override

from addon_operator.aio import absences, waiting
from addon_operator.engine import engine, events, module_states, reactions, state, tasks
from addon_operator.engine.modules import module_hooks
from addon_operator.engine.reload import module_reload, module_watch
from addon_operator.engine.sources import config_sync
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName, values_key
from addon_operator.loading import module_files, module_loader, module_scan
from addon_operator.values import sources, store
from tests.support import clocks

DB, WEB, NEW = ModuleName("db"), ModuleName("web"), ModuleName("new")
SCHEMA = "type: object\nproperties: {size: {type: integer, maximum: %d}}\n"


class Config(config_sync.ConfigSync):
    """Takes down which modules there were when their sections were read again."""

    def __init__(self, values: store.ValuesStore) -> None:
        self.known: list[Collection[str]] = []
        self._values = values

    @override
    async def set_modules(self) -> None:
        self.known.append(tuple(self._values.modules))


class Hooks(module_hooks.ModuleHooks):
    """Takes down whose hooks are read again."""

    def __init__(self) -> None:
        self.renewed: list[str] = []
        self.are_broken = False

    @override
    async def renew(self, name: ModuleName) -> None:
        if self.are_broken:
            raise errors.AddonOperatorError("no configuration")
        self.renewed.append(name)


class Engine(engine.Engine):
    """Reloads at once; takes down what ends and what follows."""

    def __init__(self, bench: "Bench") -> None:
        self._bench = bench

    @override
    async def reload(self, task: tasks.Task) -> None:
        await task.run()

    @override
    def reloaded(self, reaction: reactions.Reaction) -> None:
        self._bench.reactions.append(reaction)

    @override
    def forget(self, module: ModuleName) -> None:
        self._bench.ended.append(module)


def wrong(bench: "Bench", name: ModuleName) -> str:
    """Return what the module has on disk that is not in force."""
    found = bench.states[name].found()
    return "; ".join(text for each in found if each.kind.word == "Not in force" for text in each.texts)


class Bench:
    """Two enabled modules on disk that were loaded and discovered."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.write("values.yaml", "global: {a: 1}")
        self.write("010-web/values.yaml", "webEnabled: true\nweb: {size: 1}")
        self.write("020-db/values.yaml", "dbEnabled: true")
        loaded = module_files.load([root], 1)
        self.values = loaded.store()
        self.states = module_states.ModuleStates([files.module for files in loaded.modules], self._tell)
        self.states.enabled = (WEB, DB)
        self.ended: list[str] = []
        self.told: list[str] = []
        self.refusals: list[str] = []
        self.accepted = 0
        self.warnings: list[str] = []
        self.unread: list[str] = []
        """What is on disk and not in force, each time something was taken in."""
        self.config = Config(self.values)
        self.hooks = Hooks()
        self.reactions: list[reactions.Reaction] = []
        self.sleep: waiting.Sleep = asyncio.sleep
        """A test may put its own in its place."""
        self.clock = clocks.Clock()
        first = module_scan.scan([root])
        check = module_reload.config_check(self.values)
        self.loader = module_loader.ModuleLoader([root], 1, loaded, first, check)
        self.reload = module_reload.ModuleReload(
            self.values,
            self.states,
            self.config,
            self.hooks,
            Engine(self),
            self._tell,
            first,
            self._take,
        )
        self.watch = module_watch.ModuleWatch(
            self.loader,
            first,
            self.reload,
            time_of=self.clock,
            sleep=self._pause,
        )

    async def _take(self) -> None:
        self.unread.append(await self.reload.unread())

    async def _pause(self, seconds: float) -> None:
        await self.sleep(seconds)

    def _tell(self, event: events.Event) -> None:
        match event:
            case events.ModulesReloaded():
                self.told.append(" ".join(event.touched))
                self.warnings += event.warnings
            case events.Warned(text=text):
                self.warnings.append(text)
            case events.NothingRefused():
                self.accepted += 1
            case events.ModuleGone():
                self.told.append(f"-{event.module}")
            case events.ReloadRefused():
                self.refusals.append(event.problem)

    def write(self, name: str, text: str) -> pathlib.Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    async def changed(self) -> reactions.Reaction | None:
        """What follows from the changes so far, once they have come to rest."""
        before = len(self.reactions)
        await self.look(absences.SECONDS)
        return self.reactions[-1] if len(self.reactions) > before else None

    async def look(self, seconds: float) -> None:
        """Look several times, in all so many seconds apart."""
        for _ in range(2):
            await self.watch.look()
            self.clock.now += seconds / 2
        await self.watch.look()

    def own(self, module: ModuleName) -> object:
        return self.values.values(module).get(module)


@pytest.fixture
def bench(tmp_path: pathlib.Path) -> Bench:
    return Bench(tmp_path / "modules")


async def test_without_a_change_nothing_is_read(bench: Bench) -> None:
    assert await bench.changed() is None
    assert bench.told == []


async def test_a_change_is_applied_when_it_has_come_to_rest(bench: Bench) -> None:
    for number in range(3):
        bench.write("010-web/values.yaml", "webEnabled: true\nweb: {size: 2}" + number * " ")
        await bench.watch.look()
        assert bench.reactions == []
    await bench.watch.look()
    assert bench.reactions == [reactions.Reaction(runs=(WEB,))]
    assert bench.own(WEB) == {"size": 2}
    assert (bench.told, bench.hooks.renewed) == (["web"], ["web"])
    assert await bench.changed() is None


@pytest.mark.parametrize("name", ["020-db/templates/a.yaml", "030-new/values.yaml", "values.yaml"])
async def test_what_is_written_is_unread_until_it_is_in_force(bench: Bench, name: str) -> None:
    assert await bench.reload.unread() == ""
    bench.write(name, "a: b")
    await bench.watch.look()
    assert await bench.reload.unread() == str(bench.root / name.rpartition("/")[0].split("/")[0])
    await bench.changed()
    assert bench.unread == [""]


async def test_a_changed_chart_makes_a_run_of_its_module(bench: Bench) -> None:
    bench.write("020-db/templates/a.yaml", "a: b")
    assert await bench.changed() == reactions.Reaction(runs=(DB,))
    assert bench.states[DB].module.has_chart


async def test_a_chart_that_goes_makes_a_converge_which_tells_of_its_release(bench: Bench) -> None:
    template = bench.write("020-db/templates/a.yaml", "a: b")
    await bench.changed()
    template.unlink()
    template.parent.rmdir()
    assert await bench.changed() == reactions.Reaction(converge=True)


async def test_a_change_of_a_disabled_module_makes_no_run(bench: Bench) -> None:
    bench.states.enabled = (WEB,)
    bench.write("020-db/templates/a.yaml", "a: b")
    assert await bench.changed() == reactions.Reaction()


async def test_what_checks_nothing_in_a_changed_schema_is_warned_of_then_and_not_again(bench: Bench) -> None:
    path = bench.write("020-db/openapi/values.yaml", "propertys: {}")
    bench.write("020-db/common.yaml", "definitions: {size: {type: integer}}")
    await bench.changed()
    assert [warning.split(":")[0] for warning in bench.warnings] == [f"{path}, line 1, column 1, propertys"]
    bench.write("010-web/values.yaml", "webEnabled: true")
    await bench.changed()
    assert len(bench.warnings) == 1


async def test_a_change_of_a_file_that_a_schema_refers_to_is_applied(bench: Bench) -> None:
    bench.write("020-db/openapi/config-values.yaml", "properties: {size: {$ref: '../common.yaml'}}")
    bench.write("020-db/common.yaml", "{default: 1}")
    await bench.changed()
    bench.write("020-db/common.yaml", "{default: 22}")
    await bench.changed()
    assert bench.own(DB) == {"size": 22}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("020-db/values.yaml", "dbEnabled: false"),
        ("020-db/enabled", "echo true"),
        ("values.yaml", "global: {a: 2}"),
        ("values.yaml", "global: {a: 1}\nwebEnabled: false\n"),
        ("030-new/values.yaml", "newEnabled: true"),
    ],
    ids=["switch", "enabled script", "global values", "common file", "new module"],
)
async def test_a_change_that_concerns_more_than_one_module_is_a_converge(
    bench: Bench, name: str, text: str
) -> None:
    bench.write(name, text)
    expected = reactions.Reaction(converge=True)
    # The switch in the module's own file is above that in the common one.
    assert await bench.changed() == (reactions.Reaction() if "webEnabled" in text else expected)


async def test_a_new_module_is_known_everywhere(bench: Bench) -> None:
    bench.write("030-new/values.yaml", "newEnabled: true\nnew: {a: 1}")
    await bench.changed()
    assert [module.name for module in bench.states.modules] == [WEB, DB, NEW]
    assert bench.own(NEW) == {"a": 1}
    assert bench.config.known == [(WEB, DB, NEW)]


async def test_a_removed_module_is_ended_and_forgotten(bench: Bench) -> None:
    (bench.root / "020-db" / "values.yaml").unlink()
    (bench.root / "020-db").rmdir()
    assert await bench.changed() == reactions.Reaction(converge=True)
    assert (bench.ended, bench.told) == (["db"], ["-db"])
    assert bench.states.enabled == (WEB,)
    assert DB not in [module.name for module in bench.states.modules]
    assert bench.config.known == [(WEB,)]


async def test_a_renamed_directory_keeps_the_state_of_its_module(bench: Bench) -> None:
    bench.states[DB].started = True
    (bench.root / "020-db").rename(bench.root / "005-db")
    assert await bench.changed() == reactions.Reaction(converge=True)
    assert [module.name for module in bench.states.modules] == [DB, WEB]
    assert bench.states[DB].started
    assert (bench.ended, bench.config.known) == ([], [])
    assert bench.states[DB].module.path.name == "005-db"


async def test_common_values_of_a_module_make_its_run(bench: Bench) -> None:
    bench.write("values.yaml", "global: {a: 1}\nweb: {colour: red}\n")
    assert await bench.changed() == reactions.Reaction(runs=(WEB,))
    assert bench.own(WEB) == {"size": 1, "colour": "red"}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("010-web/values.yaml", "web: [", "010-web/values.yaml, line 2"),
        ("010-web/openapi/values.yaml", "type: 7", "010-web/openapi/values.yaml"),
        ("values.yaml", "Wrong: 1", "values.yaml"),
        ("030-web/values.yaml", "", "two directories hold a module named 'web'"),
    ],
    ids=["values", "schema", "common values", "twice"],
)
async def test_what_is_wrong_stays_as_it_was_and_is_reported_once(
    bench: Bench, name: str, text: str, told: str
) -> None:
    bench.write(name, text)
    bench.write("020-db/templates/a.yaml", "a: b")
    await bench.changed()
    await bench.changed()
    [refusal] = bench.refusals
    assert told in refusal
    assert bench.own(WEB) == {"size": 1}
    assert [module.name for module in bench.states.modules] == [WEB, DB]


async def test_a_new_module_that_is_wrong_is_there_and_cannot_run(bench: Bench) -> None:
    bench.write("030-New/values.yaml", "newEnabled: true\nother: 1")
    assert await bench.changed() == reactions.Reaction(converge=True)
    [refusal] = bench.refusals
    assert "030-New" in refusal
    assert "key other" in refusal
    assert bench.states[NEW].module.problem == refusal
    bench.write("030-New/values.yaml", "newEnabled: true")
    await bench.changed()
    assert "key other" not in bench.states[NEW].module.problem
    assert "030-New" in bench.states[NEW].module.problem


async def test_two_directories_of_one_name_hold_their_module_alone(bench: Bench) -> None:
    bench.write("030-web/values.yaml", "web: {size: 3}")
    bench.write("010-web/values.yaml", "webEnabled: true\nweb: {size: 2}")
    bench.write("020-db/values.yaml", "dbEnabled: true\ndb: {a: 1}")
    assert await bench.changed() == reactions.Reaction(runs=(DB,))
    assert (bench.own(WEB), bench.own(DB)) == ({"size": 1}, {"a": 1})
    assert "two directories hold a module named 'web'" in wrong(bench, WEB)
    assert (bench.states.refuses, wrong(bench, DB)) == (True, "")
    (bench.root / "030-web" / "values.yaml").unlink()
    (bench.root / "030-web").rmdir()
    assert await bench.changed() == reactions.Reaction(runs=(WEB,))
    assert (bench.own(WEB), wrong(bench, WEB)) == ({"size": 2}, "")


async def test_of_two_new_directories_of_one_name_the_first_is_there_and_cannot_run(bench: Bench) -> None:
    for name in ("030-new", "040-new"):
        bench.write(f"{name}/values.yaml", "newEnabled: true")
    await bench.changed()
    await bench.changed()
    assert "two directories hold a module named 'new'" in bench.states[NEW].module.problem
    (bench.root / "030-new" / "values.yaml").unlink()
    (bench.root / "030-new").rmdir()
    assert await bench.changed() == reactions.Reaction(converge=True)
    assert (bench.states[NEW].module.problem, bench.states[NEW].module.path.name) == ("", "040-new")


async def test_a_change_that_fails_halfway_leaves_all_as_it_was(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("010-web/values.yaml", "webEnabled: true\nweb: {size: 2}")
    bench.write("020-db/values.yaml", "dbEnabled: true\ndb: {a: 1}")
    (bench.root / "030-new").mkdir()
    whole, asked = store.ValuesStore.values_json, []

    def fail(self: store.ValuesStore, module: ModuleName | None, *rest: Sequence[ModuleName]) -> bytes:
        asked.append(module)
        if asked.count(DB) == 2:  # before, and with the new files
            raise TypeError("a defect")
        return whole(self, module, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(store.ValuesStore, "values_json", fail)
        with pytest.raises(TypeError):
            await bench.changed()
    assert (bench.own(WEB), bench.own(DB)) == ({"size": 1}, {})
    assert [module.name for module in bench.states.modules] == [WEB, DB]
    assert bench.values.modules == (WEB, DB)
    (bench.root / "040-more").mkdir()
    await bench.changed()
    assert (bench.own(WEB), bench.own(DB)) == ({"size": 2}, {"a": 1}), "what was refused is read again"


async def test_other_modules_are_applied_beside_a_wrong_one(bench: Bench) -> None:
    bench.write("010-web/values.yaml", "web: [")
    bench.write("020-db/values.yaml", "dbEnabled: true\ndb: {a: 1}")
    assert await bench.changed() == reactions.Reaction(runs=(DB,))
    assert bench.own(DB) == {"a": 1}
    bench.write("010-web/values.yaml", "webEnabled: true\nweb: {size: 3}")
    assert await bench.changed() == reactions.Reaction(runs=(WEB,))
    assert bench.own(WEB) == {"size": 3}


async def test_a_schema_that_the_config_map_breaks_is_refused(bench: Bench) -> None:
    bench.values.set_config(sources.ConfigValues({values_key(WEB): {"size": 7}}))
    bench.write("010-web/openapi/config-values.yaml", SCHEMA % 5)
    assert await bench.changed() == reactions.Reaction()
    [refusal] = bench.refusals
    assert refusal.startswith("module web: its values would no longer be valid: web.size: ")
    assert refusal.endswith("; set in values ConfigMap)")
    assert "7" not in refusal.replace(str(bench.root), ""), "it is shown where no values may be"
    bench.write("010-web/openapi/config-values.yaml", SCHEMA % 10)
    assert await bench.changed() == reactions.Reaction(runs=(WEB,))


async def test_values_of_a_file_that_its_schema_refuses_are_blamed_on_the_file(bench: Bench) -> None:
    bench.write("010-web/openapi/config-values.yaml", SCHEMA % 5)
    await bench.changed()
    wrong = bench.write("010-web/values.yaml", "webEnabled: true\nweb: {size: 7}")
    await bench.changed()
    [refusal] = bench.refusals
    assert refusal.endswith(f"; set in {wrong})")
    assert "ConfigMap" not in refusal


async def test_a_module_whose_changed_files_are_wrong_says_so_until_they_are_right(bench: Bench) -> None:
    bench.write("010-web/values.yaml", "web: [")
    await bench.changed()
    assert "010-web/values.yaml, line 2" in wrong(bench, WEB)
    assert wrong(bench, DB) == ""
    assert bench.states.refusals == [wrong(bench, WEB)]
    bench.write("010-web/values.yaml", "webEnabled: true\nweb: {size: 3}")
    await bench.changed()
    assert (wrong(bench, WEB), bench.states.refusals) == ("", [])


async def test_requirements_that_can_never_be_met_are_refused_until_they_can(bench: Bench) -> None:
    bench.write("020-db/module.yaml", "requires: {modules: [web]}")
    assert await bench.changed() == reactions.Reaction(converge=True)
    bench.write("010-web/module.yaml", "requires: {modules: [db]}")
    assert await bench.changed() == reactions.Reaction()
    (refusal,) = bench.refusals
    assert refusal.startswith(
        f"{bench.root}/010-web/module.yaml, line 1, column 22, requires.modules[0]: web → db"
    )
    assert (bench.states[WEB].module.config.requires.modules, bench.states[WEB].module.problem) == ((), "")
    bench.write("020-db/values.yaml", "dbEnabled: true\ndb: {size: 2}")
    await bench.changed()
    assert bench.refusals == [refusal]
    assert bench.own(DB) == {"size": 2}
    bench.write("020-db/module.yaml", "description: it requires nothing")
    (bench.root / "020-db").rename(bench.root / "010-db")
    assert await bench.changed() == reactions.Reaction(converge=True)
    assert bench.states[WEB].module.config.requires.modules == (DB,)
    assert bench.states[WEB].module.problem == ""


async def test_a_module_that_comes_back_as_it_was_is_new_again(bench: Bench) -> None:
    web, away = bench.root / "010-web", bench.root.with_name("away")
    # It is compared by its contents from now on, as after a checkout of Git.
    bench.loader.learn()
    for _ in range(2):
        web.rename(away)
        assert await bench.changed() == reactions.Reaction(converge=True)
        assert WEB not in bench.values.modules
        away.rename(web)
        assert await bench.changed() == reactions.Reaction(converge=True)
        assert bench.own(WEB) == {"size": 1}
    assert bench.told == ["-web", "web"] * 2


async def test_the_only_module_comes_back_too(bench: Bench) -> None:
    away = bench.root.with_name("away")
    away.mkdir()
    for name in ("010-web", "020-db"):
        (bench.root / name).rename(away / name)
    await bench.changed()
    assert not bench.states.modules
    (away / "010-web").rename(bench.root / "010-web")
    assert await bench.changed() == reactions.Reaction(converge=True)
    assert [module.name for module in bench.states.modules] == [WEB]


@pytest.mark.parametrize(
    "goes",
    ["020-db", "020-db/values.yaml", "020-db/templates", "020-db/chart/templates", "020-db/Chart.yaml"],
)
async def test_what_goes_is_gone_only_after_a_while(bench: Bench, goes: str) -> None:
    for name in ("Chart.yaml", "templates/a.yaml", "chart/Chart.yaml", "chart/templates/a.yaml"):
        bench.write(f"020-db/{name}", "name: db")
    await bench.changed()
    count, away = len(bench.reactions), bench.root.with_name("away")
    (bench.root / goes).rename(away)
    await bench.look(absences.SECONDS - 1)
    assert len(bench.reactions) == count
    away.rename(bench.root / goes)
    assert await bench.changed() is None, "it was back in time"
    (bench.root / goes).rename(away)
    bench.write("010-web/values.yaml", "webEnabled: true\nweb: {size: 2}")
    await bench.look(absences.SECONDS - 1)
    assert len(bench.reactions) == count, "what is read meanwhile may be half of it"
    await bench.look(2)
    assert len(bench.reactions) == count + 1


async def test_a_module_whose_new_directory_is_refused_is_not_taken_for_gone(bench: Bench) -> None:
    bench.values.set_config(sources.ConfigValues({values_key(WEB): {"size": 7}}))
    bench.write("010-web/openapi/config-values.yaml", SCHEMA % 5)
    (bench.root / "010-web").rename(bench.root / "030-web")
    assert await bench.changed() == reactions.Reaction(converge=True)
    assert "values would no longer be valid" in bench.states[WEB].module.problem
    assert bench.ended == []
    assert bench.own(WEB) == {"size": 7}
    bench.write("030-web/openapi/config-values.yaml", SCHEMA % 10)
    assert await bench.changed() == reactions.Reaction(converge=True)
    assert bench.states[WEB].module.problem == ""


@pytest.mark.parametrize(
    ("name", "text"), [("010-web/values.yaml", "web: ["), ("values.yaml", "Wrong: 1")], ids=["own", "common"]
)
async def test_as_long_as_something_is_refused_the_states_say_so(bench: Bench, name: str, text: str) -> None:
    good = (bench.root / name).read_text()
    bench.write(name, text)
    (bench.root / "020-db").rename(bench.root.with_name("away"))
    assert await bench.changed() == reactions.Reaction(converge=True)
    assert name in bench.states.refused
    bench.write("030-new/values.yaml", "newEnabled: true")
    await bench.changed()
    assert name in bench.states.refused
    assert len(bench.refusals) == 1
    bench.states.withholds = True
    bench.write(name, good)
    assert await bench.changed() == reactions.Reaction(converge=True), "what was withheld is due"
    assert bench.states.refused == ""


@pytest.mark.parametrize("name", ["values.yaml", "010-web/values.yaml"])
async def test_a_switch_below_the_key_of_its_module_is_said_until_it_is_gone(bench: Bench, name: str) -> None:
    bench.write(name, "web:\n  webEnabled: false\n")
    await bench.changed()
    (said,) = bench.states.refusals
    assert said.startswith(
        f"{bench.root / name}, line 2, column 3: 'webEnabled' below the key 'web' is a value"
    )
    assert bench.warnings == [said]
    bench.write(name, "webEnabled: false")
    await bench.changed()
    assert bench.states.refusals == []


async def test_keys_of_common_values_that_no_module_has_are_said_until_they_are_gone(bench: Bench) -> None:
    bench.write("values.yaml", "wbe: {size: 3}")
    await bench.changed()
    (said,) = bench.states.refusals
    assert said.endswith(f"values.yaml, key wbe: no module in {bench.root} has it; did you mean 'web'?")
    assert bench.warnings == [said]
    bench.write("values.yaml", "web: {size: 3}")
    await bench.changed()
    assert bench.states.refusals == []


async def test_a_change_that_is_refused_as_a_whole_is_said_of_the_states(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise TypeError("a defect")

    (bench.root / "020-db").rename(bench.root.with_name("away"))
    with monkeypatch.context() as patched:
        patched.setattr(module_files, "in_run_order", fail)
        await bench.changed()
    assert "a defect" in bench.states.refused
    assert DB in bench.values.modules


async def test_a_module_whose_link_leads_nowhere_is_wrong_and_not_gone(bench: Bench) -> None:
    away = bench.root.with_name("away")
    (bench.root / "020-db").rename(away)
    (bench.root / "020-db").symlink_to(away)
    await bench.changed()
    away.rename(bench.root.with_name("elsewhere"))
    await bench.changed()
    assert DB in bench.values.modules
    assert f"{bench.root / '020-db'} is a link to {away}, which leads nowhere" in bench.states.refused


async def test_a_module_whose_required_module_is_gone_fails_until_that_is_back(bench: Bench) -> None:
    bench.write("020-db/module.yaml", "requires: {modules: [web]}")
    await bench.changed()
    values = bench.root / "010-web" / "values.yaml"
    text = values.read_text()
    values.unlink()
    values.parent.rmdir()
    assert await bench.changed() == reactions.Reaction(converge=True)
    assert "there is no module 'web'" in bench.states[DB].module.problem
    bench.write("010-web/values.yaml", text)
    assert await bench.changed() == reactions.Reaction(converge=True)
    assert bench.states[DB].module.problem == ""
    assert bench.refusals == []


async def test_hooks_that_cannot_be_used_are_reported_and_the_run_of_their_module_shows_them(
    bench: Bench,
) -> None:
    bench.hooks.are_broken = True
    bench.write("010-web/values.yaml", "webEnabled: true\nweb: {size: 3}")
    assert await bench.changed() == reactions.Reaction(runs=(WEB,))
    said = "module web: no configuration"
    assert bench.refusals == [said]
    assert wrong(bench, WEB) == f"{state.HOOKS_REFUSED}: {said}"
    assert bench.states.refusals == [wrong(bench, WEB)], "their files are not as they were"
    assert bench.accepted == 0
    bench.hooks.are_broken = False
    bench.write("010-web/hooks/a.sh", "#!/bin/sh")
    assert await bench.changed() == reactions.Reaction(runs=(WEB,))
    assert (wrong(bench, WEB), bench.states.refusals) == ("", [])
    assert bench.accepted == 1


async def test_the_end_of_the_last_refusal_is_told_also_if_all_is_as_it_was(bench: Bench) -> None:
    right = (bench.root / "010-web/values.yaml").read_text()
    bench.write("010-web/values.yaml", "web: [")
    bench.write("020-db/values.yaml", "db: [")
    await bench.changed()
    bench.write("020-db/values.yaml", "dbEnabled: true")
    await bench.changed()
    assert (len(bench.refusals), bench.accepted) == (2, 0), "one is left"
    bench.write("010-web/values.yaml", right)
    await bench.changed()
    assert bench.accepted == 1


async def test_a_directory_that_cannot_be_read_is_reported_once_and_changes_nothing(bench: Bench) -> None:
    bench.root.rename(bench.root.with_name("away"))
    for _ in range(3):
        await bench.watch.look()
    said = f"{bench.root} cannot be read: No such file or directory; put it back, or correct its permissions"
    assert bench.refusals == [said]
    assert bench.states.refusals == [f"{state.REFUSED}: {said}"], "as long as that lasts"
    bench.root.with_name("away").rename(bench.root)
    assert await bench.changed() is None
    assert bench.states.refusals == []
    assert len(bench.states.modules) == 2


@pytest.mark.parametrize("becomes", ["a repository", "a module", "a file"])
async def test_a_directory_that_holds_something_else_now_is_reported_and_changes_nothing(
    bench: Bench, becomes: str
) -> None:
    away = bench.root.rename(bench.root.with_name("away"))
    if becomes == "a repository":
        bench.root.mkdir()
        shutil.copytree(away, bench.root / "modules")
        bench.write("deploy/chart/Chart.yaml", "")
    elif becomes == "a module":
        bench.write("module.yaml", "")
        bench.write("templates/a.yaml", "")
    else:
        bench.root.touch()
    await bench.look(2 * absences.SECONDS)
    (said,) = bench.refusals
    assert str(bench.root) in said
    assert ("MODULES_DIR" in said) is (becomes != "a file")
    assert (bench.told, bench.reactions, len(bench.states.modules)) == ([], [], 2)


async def test_a_module_that_is_emptied_is_told_as_what_it_is_now(bench: Bench) -> None:
    bench.write("api/values.yaml", "")
    await bench.changed()
    bench.write("api/README.md", "")
    (bench.root / "api/values.yaml").unlink()
    await bench.look(2 * absences.SECONDS)
    assert (bench.told, list(bench.states.strays)) == (["api", "-api"], ["api"])
    (warning,) = bench.warnings
    assert warning.startswith(f"{bench.root}/api is not a module: it has none of")


async def test_the_watch_looks_again_and_again(bench: Bench) -> None:
    pauses: list[float] = []
    done = asyncio.Event()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 4:
            done.set()
            await asyncio.Event().wait()

    bench.sleep = sleep
    bench.write("010-web/values.yaml", "webEnabled: true\nweb: {size: 3}")
    worker = asyncio.create_task(bench.watch.work())
    await done.wait()
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    assert len(bench.reactions) == 1
    assert all(pause >= module_watch.INTERVAL for pause in pauses)


def test_hook_configurations_are_compared_by_content() -> None:
    text = """
configVersion: v1
onStartup: 1
schedule: [{crontab: "* * * * *"}]
kubernetes: [{kind: Pod, jqFilter: .metadata.name, labelSelector: {matchLabels: {a: b}}}]
"""
    read = [hook_config.parse(text, hook_config.HookKind.MODULE, "a.sh") for _ in range(2)]
    assert read[0] == read[1]


async def test_what_a_change_leads_to_does_not_delay_the_next_look(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    done = asyncio.Event()
    now = iter(range(10_000))

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return next(now) / 100

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 4:
            done.set()
            await asyncio.Event().wait()

    async def take_in(*_: object) -> None:
        for _tick in range(1000):
            Clock.monotonic()

    bench.sleep = sleep
    monkeypatch.setattr(module_watch, "time", Clock)
    monkeypatch.setattr(bench.reload, "take_in", take_in)
    bench.write("010-web/values.yaml", "webEnabled: true\nweb: {size: 3}")
    worker = asyncio.create_task(bench.watch.work())
    await done.wait()
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    assert pauses == [module_watch.INTERVAL] * 4
