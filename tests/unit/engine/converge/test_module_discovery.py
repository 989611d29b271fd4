"""Which modules are enabled, and why."""

import dataclasses
import json
import pathlib
from collections.abc import Callable, Collection, Iterable, Mapping

import pytest
from msgspec import structs
from typing_extensions import override

from addon_operator.engine import events, module_states
from addon_operator.engine.converge import cluster_requirements, module_discovery
from addon_operator.engine.hooks import hook_exchange, hook_processes
from addon_operator.kernel import errors, json_types
from addon_operator.kernel.names import ModuleName
from addon_operator.loading import module_directories
from addon_operator.modules import model, module_config, plan, requirements
from addon_operator.values import config_map_reader, sources, store
from tests.support import clocks
from tests.unit.engine import fakes

COMMON = "webEnabled: true\ndbEnabled: true\nweb: {size: small}\n"


class Scripts(hook_processes.HookProcesses):
    """Answers of ``enabled`` scripts by module."""

    def __init__(self) -> None:
        self.answers: dict[str, model.Verdict | errors.AddonOperatorError] = {}
        self.seen: dict[str, tuple[json_types.JsonObject, json_types.JsonObject]] = {}

    @override
    async def enabled(
        self,
        script: pathlib.Path,
        module: ModuleName,
        values: hook_exchange.Values,
    ) -> model.Verdict:
        files = values()
        self.seen[module] = (
            json.loads(files[hook_exchange.CONFIG_VALUES]),
            json.loads(files[hook_exchange.VALUES]),
        )
        answer = self.answers[module]
        if isinstance(answer, errors.AddonOperatorError):
            raise answer
        return answer


class Cluster(cluster_requirements.ClusterRequirements):
    """What a cluster has of what modules require."""

    def __init__(self) -> None:
        self.facts = requirements.ClusterFacts("v1.31.2-gke.1200", frozenset({"v1", "example.com/v1"}))

    @override
    async def look(
        self, modules: Iterable[model.Module], is_on: Callable[[model.Module], bool] = lambda _: True
    ) -> requirements.ClusterFacts:
        return self.facts


@dataclasses.dataclass
class Bench:
    root: pathlib.Path
    scripts: Scripts = dataclasses.field(default_factory=Scripts)
    cluster: Cluster = dataclasses.field(default_factory=Cluster)
    heard: fakes.Heard = dataclasses.field(default_factory=fakes.Heard)
    modules: list[model.Module] = dataclasses.field(default_factory=list)
    allow_empty: bool = False
    purge: plan.PurgePolicy = plan.PurgePolicy.ALL
    known: bool | None = None
    """Whether all modules were on, if a discovery has decided before."""

    def module(
        self,
        name: str,
        order: int = 1,
        *,
        script_mode: int | None = None,
        requires: module_config.Requirements | None = None,
    ) -> None:
        script = None
        if script_mode is not None:
            script = self.root / f"{name}-enabled"
            script.touch(mode=script_mode)
        path = self.root / name
        config = module_config.ModuleConfig(requires=requires or module_config.Requirements())
        self.modules.append(model.Module(ModuleName(name), order, path, enabled_script=script, config=config))

    async def observe(
        self, config: Mapping[str, str] | None = None, refused: str = "", lacks: str = ""
    ) -> plan.Observed:
        common = sources.parse_common_values(COMMON, "modules/values.yaml")
        names = [module.name for module in self.modules]
        values = store.ValuesStore([store.ModuleValues(name, common) for name in names], [common])
        values.set_config(
            config_map_reader.ConfigMapReader(names, "ConfigMap a/b").read(config or {}).usable()
        )
        states = module_states.ModuleStates(self.modules, fakes.ignore)
        states.refused, states.lacks = refused, lacks
        if self.known is not None:
            verdicts = {name: model.Verdict(name, enabled=self.known, reason="") for name in names}
            states.discovered(verdicts, names if self.known else [])
        found = module_discovery.Discovery(
            states,
            values,
            self.scripts,
            plan.RemovalPolicy(self.purge, allow_empty=self.allow_empty),
            self.cluster,
            self.heard.append,
        )
        return await found.observe({"web": True, "foreign": False}, frozenset({"kept"}))


@pytest.fixture
def bench(tmp_path: pathlib.Path) -> Bench:
    return Bench(tmp_path)


async def test_flags_decide_and_say_where_they_stand(bench: Bench) -> None:
    for name in ("web", "db", "api"):
        bench.module(name)
    observed = await bench.observe({"dbEnabled": "false"})
    verdicts = {str(name): (verdict.enabled, verdict.reason) for name, verdict in observed.verdicts.items()}
    assert verdicts["web"][0] is True
    assert "modules/values.yaml" in verdicts["web"][1]
    assert verdicts["db"][0] is False
    assert "ConfigMap" in verdicts["db"][1]
    assert verdicts["api"][0] is False
    assert "default" in verdicts["api"][1]


async def test_verdicts_come_in_run_order_whatever_the_order_on_disk(bench: Bench) -> None:
    bench.module("web", 20)
    bench.module("db", 10)
    bench.module("api", 10)
    await bench.observe()
    assert [event.verdict.module for event in bench.heard.of(events.ModuleDecided)] == ["api", "db", "web"]


async def test_a_script_has_the_last_word_and_gives_the_reason(bench: Bench) -> None:
    bench.module("web", script_mode=0o755)
    answer = bench.scripts.answers["web"] = model.Verdict(ModuleName("web"), False, "no nodes")
    assert (await bench.observe()).verdicts[ModuleName("web")] == answer


async def test_a_script_sees_values_and_the_modules_that_are_enabled_before_it(bench: Bench) -> None:
    bench.module("db", 10)
    bench.module("off", 15)
    bench.module("web", 20, script_mode=0o755)
    bench.scripts.answers["web"] = model.Verdict(ModuleName("web"), True, "")
    await bench.observe({"web": "color: red"})
    config, values = bench.scripts.seen["web"]
    assert config["web"] == {"color": "red"}
    assert values["global"] == {"enabledModules": ["db"]}
    assert values["web"] == {"size": "small", "color": "red"}


@pytest.mark.parametrize(
    ("config", "mode"),
    [({"webEnabled": "false"}, 0o755), ({}, 0o644)],
    ids=["the flag is off", "the script is not executable"],
)
async def test_a_script_that_has_no_say_is_not_asked(bench: Bench, config: dict[str, str], mode: int) -> None:
    bench.module("web", script_mode=mode)
    observed = await bench.observe(config)
    assert bench.scripts.seen == {}
    assert observed.verdicts[ModuleName("web")].enabled is (not config)


@pytest.mark.parametrize(
    ("known", "is_on"),
    [(None, True), (False, False), (True, True)],
    ids=["at a start, with a release", "it was off", "it was on"],
)
async def test_a_module_whose_script_gives_no_verdict_stays_as_it_was(
    bench: Bench, known: bool | None, is_on: bool
) -> None:
    bench.module("web", script_mode=0o755)
    bench.module("db")
    bench.known = known
    failed = hook_processes.EnabledScriptError(ModuleName("web"), "failed")
    for error, told in (
        (failed, "module web: its enabled script failed"),
        (errors.AddonOperatorError("no room for its files"), "module web: no room for its files"),
    ):
        bench.scripts.answers["web"] = error
        observed = await bench.observe()
        verdict = observed.verdicts[ModuleName("web")]
        assert (verdict.enabled, str(verdict.error)) == (is_on, told)
        assert observed.verdicts[ModuleName("db")].error is None


async def test_what_was_observed_is_all_that_the_plan_needs(bench: Bench) -> None:
    bench.module("web")
    observed = await bench.observe()
    assert observed.releases == {"web": True, "foreign": False}
    assert observed.removals == plan.RemovalPolicy(plan.PurgePolicy.ALL, frozenset({"kept"}))
    assert plan.plan_converge(observed).purges == ("foreign",)


async def test_no_module_at_all_is_an_error_as_long_as_releases_would_be_purged(bench: Bench) -> None:
    with pytest.raises(module_discovery.NoModulesError) as raised:
        await bench.observe()
    assert str(raised.value) == (
        "MODULES_DIR holds no module, but there are releases of modules (foreign, web), and none is removed: "
        "see that the directory is mounted and that the image has the modules, or set "
        "ALLOW_EMPTY_MODULES=true to have the releases removed"
    )
    bench.purge = plan.PurgePolicy.OWN
    with pytest.raises(module_discovery.NoModulesError, match=r"modules \(web\), and"):
        await bench.observe()
    bench.purge = plan.PurgePolicy.OFF
    assert plan.plan_converge(await bench.observe()).purges == ()


async def test_modules_that_are_all_strangers_are_an_error_before_a_script_of_them_runs(bench: Bench) -> None:
    bench.module("db")
    bench.purge = plan.PurgePolicy.OWN
    with pytest.raises(module_discovery.NoModulesError, match=r"holds other modules \(db\) than .* \(web\)"):
        await bench.observe({"dbEnabled": "true"})
    assert bench.scripts.seen == {}


async def test_what_is_refused_or_lacking_on_disk_holds_back_what_would_be_purged(bench: Bench) -> None:
    bench.module("web")
    for refused, lacks in (("values.yaml is wrong", ""), ("", "modules/team holds no module")):
        observed = await bench.observe({"webEnabled": "false"}, refused, lacks)
        assert plan.plan_converge(observed).purges == ()
        (text,) = plan.stays(observed)
        assert text.endswith(refused + lacks)
    bench.allow_empty = True
    observed = await bench.observe({"webEnabled": "false"}, lacks="modules/team holds no module")
    assert plan.plan_converge(observed).purges == ("foreign",)
    observed = await bench.observe({"webEnabled": "false"}, refused="values.yaml is wrong")
    assert plan.plan_converge(observed).purges == ()


async def test_releases_are_purged_without_any_module_if_that_is_meant(bench: Bench) -> None:
    bench.allow_empty = True
    assert plan.plan_converge(await bench.observe()).purges == ("web", "foreign")


def requiring(*modules: str, kubernetes: str = "", apis: tuple[str, ...] = ()) -> module_config.Requirements:
    return module_config.Requirements(kubernetes, tuple(map(ModuleName, modules)), apis)


async def test_a_module_whose_requirements_are_not_met_is_disabled_and_its_script_is_not_asked(
    bench: Bench,
) -> None:
    bench.module("web")
    bench.module("db", script_mode=0o755, requires=requiring(kubernetes=">= 1.40"))
    verdict = (await bench.observe()).verdicts[ModuleName("db")]
    assert verdict == model.Verdict(
        ModuleName("db"), False, "requires Kubernetes >= 1.40, and the cluster has v1.31.2-gke.1200"
    )
    assert bench.scripts.seen == {}


async def test_a_switch_that_is_off_is_the_reason_whatever_the_requirements_are(bench: Bench) -> None:
    bench.module("web", requires=requiring(kubernetes=">= 1.40"))
    verdict = (await bench.observe({"webEnabled": "false"})).verdicts[ModuleName("web")]
    assert "ConfigMap" in verdict.reason


async def test_what_is_required_is_decided_first_and_a_script_sees_only_what_is_enabled_so_far(
    bench: Bench,
) -> None:
    bench.module("db", script_mode=0o755, requires=requiring("web"))
    bench.module("web", script_mode=0o755)
    for name in ("web", "db"):
        bench.scripts.answers[name] = model.Verdict(ModuleName(name), True, "it says so")
    await bench.observe()
    seen = {name: values["global"] for name, (_, values) in bench.scripts.seen.items()}
    assert seen == {"web": {"enabledModules": []}, "db": {"enabledModules": ["web"]}}


async def test_what_requires_a_module_that_its_script_disables_is_disabled_too(bench: Bench) -> None:
    bench.module("db", requires=requiring("web"))
    bench.module("web", script_mode=0o755)
    bench.scripts.answers["web"] = model.Verdict(ModuleName("web"), False, "the script says no")
    verdict = (await bench.observe()).verdicts[ModuleName("db")]
    assert (verdict.enabled, verdict.reason) == (
        False, "requires web, which is disabled: the script says no"
    )  # fmt: skip


@pytest.mark.parametrize("is_registered", [True, False], ids=["its server is away", "it is gone"])
async def test_an_api_that_is_not_served_removes_no_module_that_has_a_release_of_ours_and_enables_no_other(
    bench: Bench, is_registered: bool
) -> None:
    api = "metrics.example.com/v1"
    bench.cluster.facts = requirements.ClusterFacts(unclear=frozenset({api} if is_registered else ()))
    for name in ("web", "db", "foreign"):
        bench.module(name, requires=requiring(apis=(api,)))
    verdicts = (await bench.observe({"foreignEnabled": "true"})).verdicts
    lacking = "whose server does not answer" if is_registered else "which the cluster does not serve"
    expected = f"requires the API {api}, {lacking}"
    web = verdicts[ModuleName("web")]
    assert (web.enabled, web.lacks) == (True, expected)
    for name in ("db", "foreign"):
        assert verdicts[ModuleName(name)].reason == expected


async def test_a_release_is_left_over_when_a_second_look_after_the_first_converge_says_so_too(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "010-web").mkdir()
    clock = clocks.Clock()

    async def unread(modules: Collection[str]) -> str:
        return module_directories.unread([tmp_path], modules)

    look = module_discovery.SecondLook(clock, 10, unread)
    web = model.Module(ModuleName("web"), 10, tmp_path / "010-web")
    observed = plan.Observed([web], {}, {"web": True, "old": True})
    verdicts = {web.name: model.Verdict(web.name, enabled=True, reason="")}

    async def purges() -> tuple[str, ...]:
        found = await look.take(observed)
        return plan.plan_converge(structs.replace(found, verdicts=verdicts)).purges

    assert await purges() == ()
    clock.now += 20
    assert await purges() == (), "the first converge is not through yet"
    assert look.converged() == 0
    assert await purges() == ("old",)
    assert look.converged() is None
    (tmp_path / "020-old").mkdir()
    assert await purges() == (), "its directory is back, and nobody has read it"
