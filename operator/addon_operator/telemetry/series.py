"""Pieces of prometheus_client that are shaped for this project.

The library appends ``_total`` to every counter; some documented names of counters have no such suffix.
"""

import threading
from collections.abc import Iterable, Sequence
from typing import Final

import prometheus_client
from prometheus_client import metrics_core
from prometheus_client import registry as library_registry

_TYPE: Final = b"# TYPE "
_UNTYPED: Final = b" untyped\n"
_COUNTER: Final = b" counter\n"

# Nobody reads the times of creation, which would be a third of all series.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call] # has no types


class Registry(prometheus_client.CollectorRegistry):
    """A registry with counters that may be called anything.

    ``plain_counters`` are names of metrics that a collector gives as unknown because OpenMetrics has no
    counter without ``_total``; the text format of Prometheus has, and :meth:`declare` says so there.
    """

    def __init__(self) -> None:
        super().__init__(auto_describe=True)
        self.plain_counters: set[str] = set()

    @property
    def names(self) -> frozenset[str]:
        """All names that collectors gave when they were registered, those of their series too."""
        with self._lock:
            return frozenset(self._names_to_collectors)

    def declare(self, text: bytes) -> bytes:
        """Return the document of the text format with plain counters declared as counters."""
        # Looked for by its end: an expression over all lines of a large document holds up other threads.
        pieces, at = [], 0
        while (end := text.find(_UNTYPED, at)) >= 0:
            line = text[text.rfind(b"\n", 0, end) + 1 : end]
            name = line.removeprefix(_TYPE)
            # What is not a name of old is in quotes for scrapers that take it.
            called = name.decode().removeprefix('"').removesuffix('"')
            is_plain = name != line and called in self.plain_counters
            pieces += [text[at:end], _COUNTER if is_plain else _UNTYPED]
            at = end + len(_UNTYPED)
        return b"".join([*pieces, text[at:]])


class Single(library_registry.Collector):
    """One metric, to be encoded alone."""

    def __init__(self, metric: metrics_core.Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[metrics_core.Metric]:
        """Return the metric."""
        return (self._metric,)


class PlainCounter(library_registry.Collector):
    """A counter whose series is called exactly like the metric, without ``_total``."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str], registry: Registry) -> None:
        self.name = name
        self._documentation = documentation
        self._labels = tuple(labels)
        self._lock = threading.Lock()
        self._values: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}
        registry.register(self)
        registry.plain_counters.add(name)

    def inc(self, amount: float = 1, /, **labels: str) -> None:
        """Add to the series with exactly these labels."""
        if amount < 0:
            raise ValueError(f"{self.name} is a counter and cannot go down")
        if set(labels) != set(self._labels):
            raise ValueError(f"{self.name} has the labels {self._labels}, not {tuple(labels)}")
        key = tuple(labels[name] for name in self._labels)
        with self._lock:
            self._values[key] = self._values.get(key, 0.0) + amount

    def collect(self) -> Iterable[metrics_core.Metric]:
        """Yield the metric with all its series."""
        metric = metrics_core.UnknownMetricFamily(self.name, self._documentation, labels=self._labels)
        with self._lock:
            values = dict(self._values)
        for key, value in values.items():
            metric.add_metric(key, value)
        yield metric
