"""The plan of a converge: a pure function of what was observed.

What the engine executes and what a preview prints are the same object.
Source: "Modules discovery" and step 4 of "Steps of addon-operator lifecycle" in the documentation.
"""

import enum
import itertools
from collections.abc import Mapping, Sequence

import msgspec

from addon_operator.kernel import names
from addon_operator.modules import model, requirements


class PurgePolicy(enum.StrEnum):
    """Which releases that no module directory explains are uninstalled (setting ``HELM_PURGE``)."""

    OFF = "off"
    OWN = "own"
    """Those that this operator, or the Go operator, made."""
    ALL = "all"


class RemovalPolicy(msgspec.Struct, frozen=True):
    """Which releases a converge may remove."""

    purge: PurgePolicy = PurgePolicy.OWN
    ignored: frozenset[str] = frozenset()
    """Those that are never touched (setting ``HELM_IGNORE_RELEASE`` and the operator's own)."""
    allow_empty: bool = False
    """Whether they are purged, too, when none of their modules is there (setting ``ALLOW_EMPTY_MODULES``)."""


class Observed(msgspec.Struct, frozen=True):
    """Everything that the plan depends on."""

    modules: Sequence[model.Module]
    verdicts: Mapping[names.ModuleName, model.Verdict]
    releases: Mapping[str, bool]
    """Name of each release in the operator's namespace, and whether an addon-operator made it."""
    started: frozenset[names.ModuleName] = frozenset()
    """Modules whose hooks run in this process."""
    moved: frozenset[str] = frozenset()
    """Releases of modules that have another one now."""
    hidden_by: str = ""
    """What is wrong on disk, so that modules may be there that are not among these; empty if nothing is."""
    doubted: frozenset[str] = frozenset()
    """Releases of which a second look has yet to say that no module directory explains them."""
    strays: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Directories beside modules that are none, with a sentence for each, by the names they would have."""
    removals: RemovalPolicy = RemovalPolicy()


class Stage(msgspec.Struct, frozen=True):
    """Modules of one order: they run side by side, and the next stage waits for them.

    Those that require others of the stage come after these, and wait for them.
    """

    order: int
    modules: tuple[names.ModuleName, ...]


class ConvergePlan(msgspec.Struct, frozen=True):
    """What a converge does, in this order: deletes, then the stages, then purges."""

    enabled: tuple[names.ModuleName, ...]
    """All enabled modules in run order: what hooks see as ``global.enabledModules``."""
    deletes: tuple[names.ModuleName, ...]
    """Disabled modules that left something behind, in reverse run order."""
    stages: tuple[Stage, ...]
    purges: tuple[str, ...]
    """Releases that no module directory explains, in reverse order of their names."""
    verdicts: Mapping[names.ModuleName, model.Verdict]


def plan_converge(observed: Observed) -> ConvergePlan:
    """Decide which modules are deleted, run and purged."""
    modules = requirements.in_run_order(observed.modules)
    enabled = [module for module in modules if observed.verdicts[module.name].enabled]
    return ConvergePlan(
        enabled=tuple(module.name for module in enabled),
        deletes=_deletes(observed, modules),
        stages=_stages(enabled),
        purges=_purges(observed),
        verdicts=observed.verdicts,
    )


def _deletes(observed: Observed, modules: Sequence[model.Module]) -> tuple[names.ModuleName, ...]:
    removable = observed.releases.keys() - observed.removals.ignored
    return tuple(
        module.name
        for module in reversed(modules)
        if not observed.verdicts[module.name].enabled
        and observed.verdicts[module.name].error is None
        and (module.name in removable or module.name in observed.started)
    )


def _stages(enabled: Sequence[model.Module]) -> tuple[Stage, ...]:
    groups = itertools.groupby(enabled, key=lambda module: module.order)
    return tuple(Stage(order, tuple(module.name for module in group)) for order, group in groups)


def _purges(observed: Observed) -> tuple[str, ...]:
    return (
        ()
        if _hidden_by(observed)
        else tuple(name for name in left_over(observed) if name not in observed.doubted)
    )


def _hidden_by(observed: Observed) -> str:
    """Say what is wrong on disk, so that nobody knows which releases are left over; empty if nothing is.

    Which release is that of a module whose ``module.yaml`` cannot be read is not known. A directory that is
    not a module may have been one, and lost what was in it.
    """
    emptied = (observed.strays[name] for name in left_over(observed) if name in observed.strays)
    problems = (module.problem for module in observed.modules if module.problem)
    return observed.hidden_by or next(itertools.chain(problems, emptied), "")


def stays(observed: Observed) -> tuple[str, ...]:
    """Return a sentence for each release that is not purged as long as something on disk is wrong."""
    if not (wrong := _hidden_by(observed)):
        return ()
    why = f"no module directory explains it, but something on disk is wrong: {wrong}"
    return tuple(f"release {name} stays for now: {why}" for name in left_over(observed))


def chartless(observed: Observed) -> dict[names.ModuleName, str]:
    """Return a sentence for each enabled module that has a release, and no chart any more.

    Nobody upgrades or removes it. More likely than that it is meant is that files of the module are missing.
    """
    return {
        module.name: f"release {module.name} stays as it is, because module {module.name} has no chart any "
        f"more: put Chart.yaml or templates/ back into {module.path}, or disable the module, which removes "
        "the release"
        for module in observed.modules
        if observed.verdicts[module.name].enabled
        and observed.releases.get(module.name)
        and not (module.has_chart or module.problem)
    }


def left_over(observed: Observed) -> tuple[str, ...]:
    """Return the releases that belong to no module and that the policy would have purged."""
    removals = observed.removals
    if removals.purge is PurgePolicy.OFF:
        return ()
    modules = {str(module.name) for module in observed.modules}
    unexplained = observed.releases.keys() - modules - removals.ignored
    wanted = (name for name in unexplained if removals.purge is PurgePolicy.ALL or observed.releases[name])
    return tuple(sorted(wanted, reverse=True))


def may_be_renamed(observed: Observed) -> tuple[str, ...]:
    """Return the releases whose module may be called otherwise now: a module is there that has none yet."""
    is_new = any(
        module.has_chart and observed.verdicts[module.name].enabled and module.name not in observed.releases
        for module in observed.modules
    )
    return left_over(observed) if is_new else ()


def purge_reason(observed: Observed, release: str) -> str:
    """Say why a release is purged, as the end of a sentence."""
    if release in observed.moved:
        return "its module has another release now, and it goes once that one is there"
    made_by = "an addon-operator made it" if observed.releases[release] else "HELM_PURGE is all"
    return f"no module directory explains it, and {made_by}"


def spared(observed: Observed) -> tuple[str, ...]:
    """Return the releases that would be purged because none of the modules is there that have releases.

    More likely than that all of them went is that another directory is mounted or named. A module that was
    started in this process is one of those that are meant. Modules that are wrong are not installed, and
    nothing is purged beside them: they alone are no reason.
    """
    if observed.removals.allow_empty:
        return ()
    if not observed.modules:
        return () if observed.hidden_by else left_over(observed)
    own = {release for release, is_ours in observed.releases.items() if is_ours}
    own -= observed.removals.ignored
    explained = {str(module.name) for module in observed.modules} | observed.moved
    is_known = bool(own & explained) or any(module.name in observed.started for module in observed.modules)
    if not own or is_known or all(module.problem for module in observed.modules):
        return ()
    return left_over(observed)
