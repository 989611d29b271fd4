"""What modules require (``requires`` of ``module.yaml``): whether it is there, and who waits for whom.

The models are ``dependsOn`` of Flux and the requirements of Deckhouse's ``module.yaml``.
"""

import collections
import dataclasses
import graphlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from addon_operator.kernel import names, version_ranges
from addon_operator.modules import model

_ARROW: Final = " → "


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What the cluster has of what modules require; empty if none requires anything of it."""

    version: str = ""
    served: frozenset[str] = frozenset()
    """``v1`` and ``group/version`` of all APIs that are served."""
    unclear: frozenset[str] = frozenset()
    """Required APIs that are registered, but whose server does not answer just now."""
    coming: Mapping[str, Sequence[names.ModuleName]] = dataclasses.field(default_factory=dict)
    """Required APIs that are not served, and modules whose definitions bring them when they are enabled."""


Graph = Mapping[names.ModuleName, Sequence[names.ModuleName]]


def required(module: model.Module) -> tuple[names.ModuleName, ...]:
    """Return the modules that the module waits for; none if its ``module.yaml`` is wrong: it never runs."""
    return () if module.problem else module.config.requires.modules


def in_run_order(modules: Iterable[model.Module]) -> list[model.Module]:
    """Sort by number; of one number required modules come first, and then names decide."""
    ordered = sorted(modules, key=lambda module: module.run_order)
    if not any(map(required, ordered)):
        return ordered
    orders = {module.name: module.order for module in ordered}
    sorter = graphlib.TopologicalSorter(
        {
            module.name: [name for name in required(module) if orders.get(name) == module.order]
            for module in ordered
        }
    )
    sorter.prepare()
    places: dict[names.ModuleName, int] = {}
    rank = 0
    while ready := sorter.get_ready():
        places.update(dict.fromkeys(ready, rank))
        sorter.done(*ready)
        rank += 1
    return sorted(ordered, key=lambda module: (module.order, places[module.name], module.name))


def dependants(modules: Iterable[model.Module]) -> Graph:
    """Find, by module, those that require it directly."""
    found: dict[names.ModuleName, list[names.ModuleName]] = collections.defaultdict(list)
    for module in modules:
        for name in required(module):
            found[name].append(module.name)
    return found


def problems(modules: Sequence[model.Module]) -> Mapping[names.ModuleName, str]:
    """Say what keeps modules from ever running: cycles, and unknown modules or ones of a higher number."""
    known = {module.name: module for module in modules}
    graph = {module.name: required(module) for module in modules}
    is_cyclic = _is_cyclic(graph)
    found = {}
    for module in modules:
        ways = _cycle(module, graph) if is_cyclic else ()
        if mistakes := [*_wrong_edges(module, known), *ways]:
            found[module.name] = "; ".join(mistakes)
    return found


def _wrong_edges(module: model.Module, known: Mapping[names.ModuleName, model.Module]) -> Iterator[str]:
    for name in required(module):
        chain = f"{_where(module, name)}: {module.name}{_ARROW}{name}"
        other = known.get(name)
        if other is None:
            yield f"{chain}: {_unknown(name, known)}"
        elif other.order > module.order:
            yield (
                f"{chain}: {name} has the higher number, {other.order}, and runs after {module.name}, "
                f"{module.order}; give {module.name} a number of at least {other.order}"
            )


def _unknown(name: names.ModuleName, known: Mapping[names.ModuleName, model.Module]) -> str:
    without = name.lstrip("0123456789").removeprefix("-")
    if without in known:
        return f"there is no module {name!r}; write {without}, without the number of its directory"
    return names.unknown(name, sorted(known))


def _is_cyclic(graph: Graph) -> bool:
    """Say whether there is any cycle: to look for the one of each module takes the square of the time."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError:
        return True
    return False


def _cycle(module: model.Module, graph: Graph) -> Iterator[str]:
    """Show the shortest way from the module back to itself."""
    ways: collections.deque[tuple[names.ModuleName, ...]] = collections.deque([(module.name,)])
    seen: set[names.ModuleName] = set()
    while ways:
        way = ways.popleft()
        for name in graph.get(way[-1], ()):
            if name == module.name:
                chain = _ARROW.join((*way, name))
                first = way[1] if len(way) > 1 else name
                where = _where(module, first)
                yield f"{where}: {chain}: modules cannot wait for each other; remove one of these"
                return
            if name not in seen:
                seen.add(name)
                ways.append((*way, name))


def _where(module: model.Module, name: names.ModuleName) -> str:
    requires = module.config.requires
    return dict(zip(requires.modules, requires.places, strict=False)).get(name, f"module {module.name}")


def unmet(
    module: model.Module,
    facts: ClusterFacts,
    verdicts: Mapping[names.ModuleName, model.Verdict],
    *,
    is_there: bool,
) -> model.Verdict | None:
    """Say why the module is disabled although it is switched on; ``None`` if it has all it requires.

    ``verdicts`` are those of the modules before it in run order. ``is_there``: it is enabled already, or has
    a release: an API whose server does not answer just now, or that the converge brings back, does not remove
    it.
    """
    if module.problem:
        return None
    if missing := [*_unmet_by_cluster(module, facts, verdicts, is_there=is_there)]:
        return model.Verdict(module.name, enabled=False, reason="; ".join(missing))
    disabled = [verdicts[name] for name in module.config.requires.modules if not verdicts[name].enabled]
    if not disabled:
        return None
    reason = "; ".join(f"requires {each.module}, which {_what_became_of(each)}" for each in disabled)
    return model.Verdict(module.name, enabled=False, reason=reason, is_chained=True)


def _what_became_of(verdict: model.Verdict) -> str:
    if verdict.is_chained:
        return verdict.reason
    # What the sources say begins with the word already.
    return (
        f"is {verdict.reason}" if verdict.reason.startswith("disabled ") else f"is disabled: {verdict.reason}"
    )


def _unmet_by_cluster(
    module: model.Module,
    facts: ClusterFacts,
    verdicts: Mapping[names.ModuleName, model.Verdict],
    *,
    is_there: bool,
) -> Iterator[str]:
    requires = module.config.requires
    if requires.kubernetes and not version_ranges.fits(requires.kubernetes, facts.version):
        yield f"requires Kubernetes {requires.kubernetes}, and the cluster has {facts.version}"
    for api in requires.apis:
        if api in facts.unclear:
            if not is_there:
                yield f"requires the API {api}, whose server does not answer"
        elif api not in facts.served:
            lacking = f"requires the API {api}, which the cluster does not serve"
            if (source := _source(module, api, facts, verdicts)) is None:
                yield f"{lacking}{_other_versions(api, facts)}"
            elif not is_there:
                yield f"{lacking} yet: enabled once it does; module {source} brings it"


def _source(
    module: model.Module,
    api: str,
    facts: ClusterFacts,
    verdicts: Mapping[names.ModuleName, model.Verdict],
) -> names.ModuleName | None:
    """Return another module that brings the API; one without a verdict is switched on, at least."""
    others = (name for name in facts.coming.get(api, ()) if name != module.name)
    return next((name for name in others if name not in verdicts or verdicts[name].enabled), None)


def _other_versions(api: str, facts: ClusterFacts) -> str:
    group = api.rpartition("/")[0]
    others = sorted(name.rpartition("/")[2] for name in facts.served if name.rpartition("/")[0] == group)
    return f" (of {group} it serves {', '.join(others)})" if group and others else ""


def summary(module: model.Module) -> tuple[str, ...]:
    """List all that the module requires, for people."""
    requires = module.config.requires
    kubernetes = (f"Kubernetes {requires.kubernetes}",) if requires.kubernetes else ()
    return (*kubernetes, *requires.apis, *requires.modules)
