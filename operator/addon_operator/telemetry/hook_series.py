"""One metric of hooks: its declaration and its series."""

import bisect
import collections
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
import prometheus_client
from prometheus_client import metrics_core, utils

from addon_operator.kernel import names

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""All labels of a series, sorted by name."""
Type: TypeAlias = Literal["counter", "gauge", "histogram"]

ADDED_LABELS: Final = frozenset({"hook", "module"})
"""Labels that the operator adds; hooks of modules have one more than global hooks."""
DEFAULT_BUCKETS: Final = tuple(
    bound for bound in prometheus_client.Histogram.DEFAULT_BUCKETS if bound != float("inf")
)
"""Those of a histogram whose hook names none: the library's, for seconds."""
_TOTAL: Final = "_total"
_LINE: Final = 500
"""Characters of name and labels that one line may have; a longer one counts as several."""


def added_labels(labels: Labels) -> Labels:
    """Return the labels that the operator adds: they name the hook."""
    return tuple(label for label in labels if label[0] in ADDED_LABELS)


class Series(msgspec.Struct):
    """One series."""

    group: str
    """Empty: in no group."""
    value: float = 0.0
    """Of a counter or gauge; of a histogram the sum of all observed values."""
    counts: list[int] = []
    """Observed values per bucket; the last counts what is above all bounds. Only of a histogram."""

    def copy(self) -> "Series":
        """Return a copy that can be changed."""
        return Series(self.group, self.value, list(self.counts))


class Family:
    """A metric: all series of one name."""

    def __init__(
        self, name: str, type_: Type, labels: frozenset[str], buckets: Sequence[float], owner: str
    ) -> None:
        self.name = name
        self.type: Type = type_
        self.labels = labels
        """Names of the labels, without those that the operator adds."""
        self.buckets = tuple(buckets)
        """Upper bounds without +Inf; empty if it is not a histogram."""
        self.owner = owner
        """Whose run declared it, for messages."""
        self.series: dict[Labels, Series] = {}
        self._by_hook: collections.Counter[Labels] = collections.Counter()

    @property
    def is_plain_counter(self) -> bool:
        """Whether it is a counter whose name does not end in ``_total``."""
        return self.type == "counter" and not self.name.endswith(_TOTAL)

    @property
    def exposed_names(self) -> frozenset[str]:
        """The names of the metric and of its series in all formats, for all scrapers."""
        exposed = {self.name}
        if self.type == "histogram":
            exposed = {self.name + suffix for suffix in ("", "_bucket", "_sum", "_count", "_created")}
        if self.type == "counter" and not self.is_plain_counter:
            bare = self.name.removesuffix(_TOTAL)
            exposed = {self.name, bare, f"{bare}_created"}
        return frozenset(exposed | set(map(names.of_prometheus, exposed)))

    def copy(self) -> "Family":
        """Return a copy that can be changed; its series too."""
        family = Family(self.name, self.type, self.labels, self.buckets, self.owner)
        family.series = {labels: item.copy() for labels, item in self.series.items()}
        family._by_hook = self._by_hook.copy()
        return family

    def change(self, labels: Labels, value: float, group: str) -> None:
        """Set, add or observe a value; the series belongs to ``group`` from now on."""
        item = self.series.get(labels)
        if item is None:
            item = self.series[labels] = Series(group, counts=[0] * self._slots)
            self._by_hook[added_labels(labels)] += self._lines(labels)
        item.group = group
        item.value = value if self.type == "gauge" else item.value + value
        if item.counts:
            item.counts[bisect.bisect_left(self.buckets, value)] += 1

    @property
    def _slots(self) -> int:
        return len(self.buckets) + 1 if self.type == "histogram" else 0

    @property
    def lines_per_series(self) -> int:
        """How many lines a series takes, if they are short."""
        return self._slots + 2 if self.type == "histogram" else 1

    def remove(self, gone: Iterable[Labels]) -> None:
        """Forget series."""
        for labels in gone:
            del self.series[labels]
            self._by_hook[added_labels(labels)] -= self._lines(labels)

    def lines_of(self, hook: Labels) -> int:
        """Count the lines of the series of a hook, which is as :func:`added_labels` gives it."""
        return self._by_hook[hook] * self.lines_per_series

    def _lines(self, labels: Labels) -> int:
        return 1 + (len(self.name) + sum(len(name) + len(value) for name, value in labels)) // _LINE

    def exposed(self) -> metrics_core.Metric:
        """Return the metric as the library writes it; its help text is its name."""
        type_ = "unknown" if self.is_plain_counter else self.type
        name = self.name.removesuffix(_TOTAL) if type_ == "counter" else self.name
        metric = metrics_core.Metric(name, self.name, type_)
        for labels, item in self.series.items():
            if item.counts:
                self._add_histogram(metric, dict(labels), item)
            else:
                metric.add_sample(self.name, dict(labels), item.value)
        return metric

    def _add_histogram(self, metric: metrics_core.Metric, labels: Mapping[str, str], item: Series) -> None:
        bounds = (*self.buckets, float("inf"))
        for bound, count in zip(bounds, itertools.accumulate(item.counts), strict=True):
            # The library's own spelling.
            le = {**labels, "le": str(utils.floatToGoString(bound))}  # type: ignore[no-untyped-call]
            metric.add_sample(f"{self.name}_bucket", le, count)
        metric.add_sample(f"{self.name}_count", dict(labels), sum(item.counts))
        metric.add_sample(f"{self.name}_sum", dict(labels), item.value)
