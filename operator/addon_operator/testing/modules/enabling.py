"""Whether the operator would enable a module: switches, requirements and ``enabled`` scripts."""

from addon_operator.engine import module_states
from addon_operator.engine.converge import cluster_requirements, module_discovery
from addon_operator.engine.hooks import hook_processes
from addon_operator.kernel import clock as clocks
from addon_operator.kube.discovery import discovery, presence
from addon_operator.loading import crd_sources, module_files
from addon_operator.modules import model, plan
from addon_operator.testing.given import api
from addon_operator.values import store


def _ignore(_event: object) -> None:
    """Ignore it: nothing runs."""


async def verdict(
    loaded: module_files.LoadedModules,
    module: model.Module,
    values: store.ValuesStore,
    processes: hook_processes.HookProcesses,
    cluster: api.GivenApi,
) -> model.Verdict:
    """Return the verdict of a discovery on one module; raises an :class:`.AddonOperatorError` like it."""
    states = module_states.ModuleStates([each.module for each in loaded.modules], _ignore)
    sources = crd_sources.CrdSources((), lambda name: values.snapshot(name).values(name))
    async with api.client_of(cluster) as kube:
        kinds = discovery.Catalog(kube, clocks.SystemClock())
        requirements = cluster_requirements.ClusterRequirements(kinds, presence.ObjectProbe(kube), sources)
        removals = plan.RemovalPolicy(allow_empty=True)
        found = module_discovery.Discovery(states, values, processes, removals, requirements, _ignore)
        observed = await found.observe({}, frozenset())
    verdict = observed.verdicts[module.name]
    if verdict.error is not None:
        raise verdict.error
    return verdict
