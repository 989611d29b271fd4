"""What modules require (``requires`` of ``module.yaml``): whether it is there, and who waits for whom.

The models are ``dependsOn`` of Flux and the requirements of Deckhouse's ``module.yaml``.
"""

import collections
import contextlib
import graphlib
import itertools
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from addon_operator.kernel import names, version_ranges
from addon_operator.modules import model

_ARROW: Final = " → "
_MOST_MISTAKES: Final = 5
"""Wrong edges of one module that are shown."""
_CHAIN_END: Final = 6
"""How many modules are shown at either end of a long chain."""
MAX_REASON: Final = 1000
"""How many characters a verdict's reason may have: those of required modules stand within each other."""


class ClusterFacts(msgspec.Struct, frozen=True):
    """What the cluster has of what modules require; empty if none requires anything of it."""

    version: str = ""
    served: frozenset[str] = frozenset()
    """``v1`` and ``group/version`` of all APIs that are served."""
    unclear: frozenset[str] = frozenset()
    """Required APIs that are registered, but whose server does not answer just now."""
    coming: Mapping[str, Sequence[names.ModuleName]] = msgspec.field(default_factory=dict)
    """Required APIs that are not served, and modules whose definitions bring them when they are enabled."""


Graph = Mapping[names.ModuleName, Sequence[names.ModuleName]]


def required(module: model.Module) -> tuple[names.ModuleName, ...]:
    """Return the modules that the module waits for; none if its ``module.yaml`` is wrong: it never runs."""
    return () if module.problem else module.config.requires.modules


def removed_with(
    modules: Iterable[model.Module], removed: Container[names.ModuleName], most: int
) -> Iterator[str]:
    """Yield a sentence for each of the modules that is removed, and requires others that are, too.

    It names ``most`` of them.
    """
    for module in modules:
        causes = [name for name in required(module) if name in removed]
        if module.name in removed and causes:
            yield f"module {module.name} requires {names.listed(causes, most)}, and is removed with it"


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
    by_module: dict[names.ModuleName, list[names.ModuleName]] = collections.defaultdict(list)
    for module in modules:
        for name in required(module):
            by_module[name].append(module.name)
    return by_module


def problems(modules: Sequence[model.Module]) -> Mapping[names.ModuleName, tuple[str, ...]]:
    """Say what keeps modules from ever running: cycles, and unknown modules or ones of a higher number."""
    by_name = {module.name: module for module in modules}
    graph = _in_cycles({module.name: required(module) for module in modules})
    unmet = {}
    for module in modules:
        wrong = itertools.islice(_wrong_edges(module, by_name), _MOST_MISTAKES)
        if mistakes := [*wrong, *(_cycle(module, graph) if module.name in graph else ())]:
            unmet[module.name] = tuple(mistakes)
    return unmet


def _wrong_edges(module: model.Module, known: Mapping[names.ModuleName, model.Module]) -> Iterator[str]:
    for name in required(module):
        other = known.get(name)
        if other is not None and other.order <= module.order:
            continue
        chain = f"{_where(module, name)}: {module.name}{_ARROW}{name}"
        if other is None:
            yield f"{chain}: {_unknown(name, known)}"
        else:
            yield (
                f"{chain}: {name} has the higher number, {other.order}, and runs after {module.name}, "
                f"{module.order}; give {module.name} a number of at least {other.order}"
            )


def _unknown(name: names.ModuleName, known: Mapping[names.ModuleName, model.Module]) -> str:
    without = name.lstrip("0123456789").removeprefix("-")
    if without in known:
        return f"there is no module {name!r}; write {without}, without the number of its directory"
    return names.unknown(name, sorted(known))


def _in_cycles(graph: Graph) -> Graph:
    """Return the part of a graph that has its cycles: without all that only leads to one, or away from it."""
    for _ in range(2):
        sorter = graphlib.TopologicalSorter(graph)
        with contextlib.suppress(graphlib.CycleError):
            sorter.prepare()
        left = set(graph)
        while ready := sorter.get_ready():
            left.difference_update(ready)
            sorter.done(*ready)
        turned: dict[names.ModuleName, list[names.ModuleName]] = {name: [] for name in left}
        for name in left:
            for other in left.intersection(graph[name]):
                turned[other].append(name)
        graph = turned
    return graph


def _cycle(module: model.Module, graph: Graph) -> Iterator[str]:
    """Show the shortest way from the module back to itself."""
    before: dict[names.ModuleName, names.ModuleName] = {}
    pending = collections.deque([module.name])
    while pending:
        last = pending.popleft()
        for name in graph[last]:
            if name == module.name:
                way = _way(before, module.name, last)
                chain = _ARROW.join(_with_ends((*way, name)))
                first = way[1] if len(way) > 1 else name
                where = _where(module, first)
                yield f"{where}: {chain}: modules cannot wait for each other; remove one of these"
                return
            if name not in before:
                before[name] = last
                pending.append(name)


def _way(
    before: Mapping[names.ModuleName, names.ModuleName], first: names.ModuleName, last: names.ModuleName
) -> list[names.ModuleName]:
    way = [last]
    while way[-1] != first:
        way.append(before[way[-1]])
    return way[::-1]


def _with_ends(way: Sequence[str]) -> Sequence[str]:
    if len(way) <= 3 * _CHAIN_END:
        return way
    left_out = f"… ({len(way) - 2 * _CHAIN_END} more)"
    return (*way[:_CHAIN_END], left_out, *way[-_CHAIN_END:])


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
    a release: what the cluster lacks (:func:`lacking`) keeps a module from a first install, and removes none.
    """
    if module.problem:
        return None
    if not is_there and (missing := lacking(module, facts, verdicts)):
        return model.Verdict(module.name, enabled=False, reason=missing)
    disabled = [verdicts[name] for name in module.config.requires.modules if not verdicts[name].enabled]
    if not disabled:
        return None
    reason = "; ".join(f"requires {each.module}, which {_what_became_of(each)}" for each in disabled)
    return model.Verdict(module.name, enabled=False, reason=_shortened(reason), is_chained=True)


def _shortened(reason: str) -> str:
    """Leave out the middle of a long reason: at its end stands what began it all."""
    half = MAX_REASON // 2
    return reason if len(reason) <= MAX_REASON else f"{reason[: half - 1]} … {reason[2 - half :]}"


def _what_became_of(verdict: model.Verdict) -> str:
    if verdict.is_chained:
        return verdict.reason
    # What the sources say begins with the word already.
    return (
        f"is {verdict.reason}" if verdict.reason.startswith("disabled ") else f"is disabled: {verdict.reason}"
    )


def lacking(
    module: model.Module,
    facts: ClusterFacts,
    verdicts: Mapping[names.ModuleName, model.Verdict],
    *,
    is_there: bool = False,
) -> str:
    """Say what the module requires of the cluster that is not there; empty if nothing is missing.

    ``is_there``: it is not kept from its first install.
    """
    return "; ".join(_lacking(module, facts, verdicts, "" if is_there else "enabled once it does; "))


def _lacking(
    module: model.Module,
    facts: ClusterFacts,
    verdicts: Mapping[names.ModuleName, model.Verdict],
    follows: str,
) -> Iterator[str]:
    requires = module.config.requires
    if requires.kubernetes and not version_ranges.fits(requires.kubernetes, facts.version):
        yield f"requires Kubernetes {requires.kubernetes}, and the cluster has {facts.version}"
    for api in requires.apis:
        if api in facts.unclear:
            yield f"requires the API {api}, whose server does not answer"
        elif api not in facts.served:
            missing = f"requires the API {api}, which the cluster does not serve"
            if (source := _source(module, api, facts, verdicts)) is None:
                yield f"{missing}{_other_versions(api, facts)}"
            else:
                yield f"{missing} yet: {follows}module {source} brings it"


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
