"""Metrics that hooks export through ``METRICS_PATH``, beside the operator's own.

Source: "Custom metrics" and "Grouped metrics" of the addon-operator documentation. Series without a group
accumulate and live until the operator restarts. A batch that names a group expires the series of that group
which it does not mention; a counter that it does mention keeps counting.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from prometheus_client import metrics_core
from prometheus_client import registry as library_registry

from addon_operator.hook_contract.outputs import metric_operations
from addon_operator.hook_contract.outputs.metric_operations import MetricAction
from addon_operator.kernel import errors
from addon_operator.telemetry import hook_series, series

_TYPES: Final[Mapping[MetricAction, hook_series.Type]] = {
    MetricAction.ADD: "counter",
    MetricAction.SET: "gauge",
    MetricAction.OBSERVE: "histogram",
}


MAX_LINES: Final = 20_000
"""Lines of ``/metrics`` that all series of one hook may take; a histogram takes several for each series.

Long lines count as several, so that this is a bound of characters, too.
"""
# Prometheus itself writes these for each target and alert.
_OF_PROMETHEUS: Final = frozenset({"up", "ALERTS", "ALERTS_FOR_STATE"})
_OF_SCRAPES: Final = "scrape_"


class HookMetricError(errors.AddonOperatorError):
    """A hook's metric clashes with one that is there, or is one too many; the text names both."""


class MetricPlan(msgspec.Struct, frozen=True):
    """All metrics of hooks before and after a run."""

    before: Mapping[str, hook_series.Family]
    after: Mapping[str, hook_series.Family]


class HookMetrics(library_registry.Collector):
    """The series of all hooks; register it in the operator's registry. Safe to be collected in a thread."""

    def __init__(self, registry: series.Registry) -> None:
        self._registry = registry
        self._families: Mapping[str, hook_series.Family] = {}
        registry.register(self)

    def plan(self, operations: Sequence[metric_operations.Operation], added: Mapping[str, str]) -> MetricPlan:
        """Plan what :meth:`carry_out` is to make of one run of a hook; changes nothing. May run in a thread.

        ``added`` are the labels that the operator gives every series of the hook: ``hook``, and ``module``
        for a module's hook.

        Raises :class:`HookMetricError` when a type, label set or list of buckets clashes with that of the
        same metric, or a name with one of the operator's or of Prometheus' own, or when the hook would have
        more than :data:`MAX_LINES`.
        """
        before = self._families
        batch = _Batch(before, self._registry.names, added)
        for operation in operations:
            batch.take(operation)
        return MetricPlan(before, batch.result())

    def carry_out(self, plan: MetricPlan) -> bool:
        """Apply a plan as a whole; ``False`` if another one was applied since it was made: make it anew."""
        if plan.before is not self._families:
            return False
        plain = (family.exposed_names for family in plan.after.values() if family.is_plain_counter)
        self._registry.plain_counters.update(*plain)
        self._families = plan.after
        return True

    def collect(self) -> Iterable[metrics_core.Metric]:
        """Return all metrics with all their series."""
        return [family.exposed() for family in self._families.values()]


class _Batch:
    """The operations of one run, on copies."""

    def __init__(
        self, families: Mapping[str, hook_series.Family], reserved: frozenset[str], added: Mapping[str, str]
    ) -> None:
        self._families = dict(families)
        # With names of families that are gone by now.
        self._exposed = {name: each.name for each in families.values() for name in each.exposed_names}
        self._copied: set[str] = set()
        self._reserved = reserved
        self._added = added
        self._groups: set[str] = set()
        # With series that are in another group by now, or gone.
        self._grouped: dict[str, set[tuple[str, hook_series.Labels]]] = {}
        for family in families.values():
            for labels, item in family.series.items():
                self._grouped.setdefault(item.group, set()).add((family.name, labels))
        self._made_lines = 0
        self._mentioned: set[tuple[str, hook_series.Labels]] = set()

    def take(self, operation: metric_operations.Operation) -> None:
        """Carry one operation out."""
        if isinstance(operation, metric_operations.Expire):
            self._expire({operation.group}, but=frozenset())
            return
        family = self._family(operation)
        labels = self._labels(operation)
        if labels not in family.series:
            self._made_lines += family.lines_per_series
            self._refuse_lines(self._made_lines, family.name, most=2 * MAX_LINES)
        family.change(labels, operation.value, operation.group)
        self._grouped.setdefault(operation.group, set()).add((family.name, labels))
        if operation.group:
            self._groups.add(operation.group)
            self._mentioned.add((family.name, labels))

    def result(self) -> Mapping[str, hook_series.Family]:
        """Return all families once the groups of the batch have lost what it did not mention."""
        self._expire(self._groups, but=frozenset(self._mentioned))
        self._refuse_too_many()
        return self._families

    def _refuse_too_many(self) -> None:
        """Hold the hook to its bound, once what expires has made room."""
        hook = tuple(sorted(self._added.items()))
        lines = {name: family.lines_of(hook) for name, family in self._families.items()}
        longest = max(self._copied & lines.keys(), key=lines.__getitem__, default="")
        self._refuse_lines(sum(lines.values()), longest, most=MAX_LINES)

    def _refuse_lines(self, total: int, longest: str, *, most: int) -> None:
        if total > most:
            raise HookMetricError(
                f"metric {longest} of {self._owner()}: the hook's metrics would take {total} lines of "
                f"/metrics, and a hook may take {MAX_LINES}; use fewer and shorter values of labels, or a "
                "group whose series expire"
            )

    def _expire(self, groups: set[str], *, but: frozenset[tuple[str, hook_series.Labels]]) -> None:
        for group in groups:
            for name, labels in self._grouped.pop(group, set()) - but:
                family = self._families.get(name)
                item = None if family is None else family.series.get(labels)
                if family is None or item is None or item.group != group:
                    continue
                family = self._copy(family)
                family.remove((labels,))
                if not family.series:
                    del self._families[name]
                    self._copied.discard(name)

    def _copy(self, family: hook_series.Family) -> hook_series.Family:
        if family.name not in self._copied:
            self._copied.add(family.name)
            self._families[family.name] = family.copy()
        return self._families[family.name]

    def _family(self, change: metric_operations.MetricChange) -> hook_series.Family:
        wanted = self._wanted(change)
        existing = self._families.get(change.name)
        if existing is not None:
            self._refuse_difference(change, existing, wanted)
            return self._copy(existing)
        self._refuse_name(wanted)
        self._copied.add(wanted.name)
        self._families[wanted.name] = wanted
        return wanted

    def _wanted(self, change: metric_operations.MetricChange) -> hook_series.Family:
        labels = frozenset(change.labels) - hook_series.ADDED_LABELS
        type_ = _TYPES[change.action]
        buckets = (change.buckets or hook_series.DEFAULT_BUCKETS) if type_ == "histogram" else ()
        return hook_series.Family(change.name, type_, labels, buckets, self._owner())

    def _refuse_difference(
        self, change: metric_operations.MetricChange, there: hook_series.Family, wanted: hook_series.Family
    ) -> None:
        buckets = there.buckets if change.buckets is None else wanted.buckets
        if (wanted.type, wanted.labels, buckets) == (there.type, there.labels, there.buckets):
            return
        for new, old in (
            (f"is a {wanted.type}", f"is a {there.type}"),
            (_label_text(wanted.labels), _label_text(there.labels)),
            (_bucket_text(buckets), _bucket_text(there.buckets)),
        ):
            if new != old:
                raise HookMetricError(
                    f"metric {wanted.name} of {wanted.owner} (document [{change.index}]) {new}, but that of "
                    f"{there.owner} {old}; make them alike, or rename one of them"
                )

    def _refuse_name(self, wanted: hook_series.Family) -> None:
        if wanted.exposed_names & self._reserved:
            raise HookMetricError(
                f"metric {wanted.name} of {wanted.owner}: the operator itself exports a metric of that name; "
                "name it otherwise"
            )
        if any(name in _OF_PROMETHEUS or name.startswith(_OF_SCRAPES) for name in wanted.exposed_names):
            raise HookMetricError(
                f"metric {wanted.name} of {wanted.owner}: Prometheus itself writes metrics of that name; "
                "name it otherwise"
            )
        for name in wanted.exposed_names & self._exposed.keys():
            there = self._families.get(self._exposed[name])
            if there is not None:
                raise HookMetricError(
                    f"metric {wanted.name} of {wanted.owner}, a {wanted.type}, would have series in common "
                    f"with {there.name} of {there.owner}, a {there.type}; rename one of them"
                )
        self._exposed.update(dict.fromkeys(wanted.exposed_names, wanted.name))

    def _labels(self, change: metric_operations.MetricChange) -> hook_series.Labels:
        for name, value in self._added.items():
            if change.labels.get(name, value) != value:
                raise HookMetricError(
                    f"metric {change.name} of {self._owner()} (document [{change.index}]): the operator sets "
                    f"the label {name!r} itself; rename yours"
                )
        return tuple(sorted({**change.labels, **self._added}.items()))

    def _owner(self) -> str:
        module = self._added.get("module")
        hook = f"hook {self._added.get('hook', '')}"
        return f"{hook} of module {module}" if module else hook


def _label_text(labels: frozenset[str]) -> str:
    return f"has the labels {', '.join(sorted(labels))}" if labels else "has no labels"


def _bucket_text(buckets: Sequence[float]) -> str:
    return f"has the buckets {', '.join(f'{bound:.17g}' for bound in buckets)}"
