"""Pieces of prometheus_client that are shaped for this project.

The library appends ``_total`` to every counter; some documented names of counters have no such suffix.
"""

from collections.abc import Iterable
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


class PlainCounter(prometheus_client.Gauge):
    """A counter whose series is called exactly like the metric, without ``_total``; see :class:`Registry`."""

    _type = "unknown"
