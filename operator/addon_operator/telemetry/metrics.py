"""All metrics of one operator, and how they are served."""

import collections
import gzip
import math
import platform
import re
import time
from collections.abc import Callable, Collection
from typing import Final, TypeVar

import msgspec
import prometheus_client
from prometheus_client import exposition
from prometheus_client import metrics as library

import addon_operator
from addon_operator.kube import paths
from addon_operator.telemetry import families, series

F = TypeVar("F", bound=families.Family)

OTHERS: Final = "(others)"
"""Stands for all values of a label for which there is no room; no name of Kubernetes is written so."""
_EOF: Final = b"# EOF\n"
_VERSION: Final = re.compile(r"version=([^;]*)")
_VERSIONS: Final = frozenset({"0.0.4", "1.0.0", "2.0.0"})


class Form(msgspec.Struct, frozen=True):
    """How a scraper wants the document; there are only a few."""

    content_type: str
    gzipped: bool

    @classmethod
    def wanted(cls, accept: str = "", accept_encoding: str = "") -> "Form":
        """Return the form that fits these headers of a request best."""
        return cls(_content_type(accept), exposition.gzip_accepted(accept_encoding))


class Metrics:
    """The operator's metrics in a registry of their own.

    Attributes are the library's metrics: ``metrics.modules.run_seconds.labels(module=…).observe(…)``.
    Safe to use from several threads.
    """

    def __init__(self, prefix: str = "addon_operator_", *, queue_actions: bool = True) -> None:
        self.registry = series.Registry()
        """Where further collectors, such as that of hooks' own metrics, are registered."""
        self._queue_actions = queue_actions
        self._words: dict[tuple[prometheus_client.Gauge, str], str] = {}

        def made(kind: Callable[..., F], *adapt: Callable[[families.Row], families.Row]) -> F:
            family = kind(prefix, self.registry, *adapt)
            self.rows |= family.made
            return family

        self.rows: dict[families.Row, library.MetricWrapperBase] = {}
        """The metric of each row, for the reference."""
        self.global_hooks = made(families.HookRunMetrics, families.of_owner("global"))
        self.module_hooks = made(families.HookRunMetrics, families.of_owner("module", "module"))
        self.modules = made(families.ModuleMetrics)
        self.releases = made(families.ReleaseMetrics)
        self.converges = made(families.ConvergeMetrics)
        self.queues = made(families.QueueMetrics)
        self.bindings = made(families.BindingMetrics)
        self.admission = made(families.AdmissionMetrics)
        self.notifications = made(families.NotificationMetrics)
        self.webhook_hooks = made(families.WebhookHookMetrics)
        self.process = made(families.ProcessMetrics)
        self._counters_of_modules = [
            metric for row, metric in self.rows.items() if (row.type, row.labels) == ("counter", ("module",))
        ]
        self.admission.webhook_certificate_expiry_seconds.set(math.nan)
        self.process.build_info.labels(addon_operator.__version__, platform.python_version()).set(1)
        if not queue_actions:
            self.registry.unregister(self.queues.action_seconds)
        prometheus_client.ProcessCollector(registry=self.registry)
        prometheus_client.PlatformCollector(registry=self.registry)
        prometheus_client.GCCollector(registry=self.registry)

    def module_word(self, gauge: prometheus_client.Gauge, module: str, word: str) -> bool:
        """Show this word of a module (its state, a reason) as 1, and no other; none if it is empty.

        ``gauge`` has the labels ``module`` and one for the word. Gives whether that is news. The library
        would look through the series of all modules for the one before.
        """
        before = self._words.pop((gauge, module), "")
        if before and before != word:
            gauge.remove(module, before)
        if word:
            self._words[gauge, module] = word
            gauge.labels(module, word).set(1)
        return word != before

    def module_known(self, module: str, *, runs: bool = True) -> None:
        """Show the counters of a module from the beginning: a series that appears later has no rate.

        ``runs``: it will run, or has; the many series of how long that takes are for these alone.
        """
        for counter in self._counters_of_modules:
            counter.labels(module=module)
        for by in ("inputs", "manifest"):
            self.releases.helm_upgrades_skipped_total.labels(module=module, by=by)
        if runs:
            self.modules.run_seconds.labels(module=module)

    def queue_action(self, queue: str, action: str, seconds: float) -> None:
        """Count a single operation of a queue, which took ``seconds``."""
        if self._queue_actions:
            self.queues.action_seconds.labels(queue_name=queue, queue_action=action).observe(seconds)

    def request_done(self, target: paths.Target, method: str, code: str, seconds: float) -> None:
        """Count a try of a request of :class:`.KubeClient` that ended."""
        self.process.request_result_total.labels(code=code, method=method).inc()
        self.process.request_latency_seconds.labels(verb=target.verb, url=target.template).observe(seconds)

    def watch_failed(self, kind: str, reason: str) -> None:
        """Count a watch of :class:`.Informers` that failed."""
        self.process.watch_errors_total.labels(kind=kind, reason=reason).inc()

    def show_watch(self, watch: str, is_up: Callable[[], bool]) -> None:
        """Show from now on whether this watch stands."""
        self.process.watch_up.labels(watch=watch).set_function(is_up)

    def forget_module(self, module: str) -> None:
        """Remove all series of a module that went away."""
        self._words = {shown: word for shown, word in self._words.items() if shown[1] != module}
        self._forget({"module": module})

    def forget_hooks_of(self, module: str) -> None:
        """Remove all series of hooks of a module, which itself stays."""
        self._forget({"module": module}, of={"hook", "module"})

    def forget_hook(self, hook: str, module: str = "") -> None:
        """Remove all series of a hook that went away; ``module`` is empty for a global hook."""
        self._forget({"hook": hook, "module": module})
        if not module:
            for metric in self.global_hooks.made.values():
                metric.remove_by_labels({"hook": hook})

    def _forget(self, labels: dict[str, str], of: Collection[str] = ()) -> None:
        """Remove the series with these labels of all metrics that have them, and the labels ``of``."""
        for row, metric in self.rows.items():
            if {*labels, *of} <= set(row.labels):
                metric.remove_by_labels(labels)

    def forget_queue(self, queue: str) -> None:
        """Remove all series of a queue that went away; those of hooks that ran in it stay."""
        for gauge in (self.queues.length, self.queues.head_age_seconds, self.queues.retries):
            gauge.remove_by_labels({"queue": queue})
        self.queues.wait_seconds_total.remove_by_labels({"queue": queue})
        self.queues.action_seconds.remove_by_labels({"queue_name": queue})

    def connection_closed(self, site: str, reason: str) -> None:
        """Count a connection to a site that was closed for one of its bounds."""
        self.process.connections_closed_total.labels(site=site, reason=reason).inc()

    def render(self, form: Form | None = None) -> bytes:
        """Render the document in a form; slow enough to be run in a thread."""
        form = form or Form.wanted()
        encode, content_type = exposition.choose_encoder(form.content_type)
        is_open = content_type.startswith("application/openmetrics-text")
        pieces = []
        # One by one, with a turn for others after each: this runs in a thread, and what is made of a whole
        # document at once keeps the interpreter's lock from the event loop.
        for metric in self.registry.collect():
            piece = encode(series.Single(metric))
            pieces.append(piece.removesuffix(_EOF) if is_open else self.registry.declare(piece))
            time.sleep(0)
        body = b"".join([*pieces, _EOF] if is_open else pieces)
        return gzip.compress(body, 1) if form.gzipped else body


class BoundedLabels:
    """Bound how many values from requests a label has, and drop those that nobody uses; for one thread."""

    def __init__(
        self, most: int, seconds: float, forget: Callable[[str], None], now: Callable[[], float]
    ) -> None:
        """Keep at most ``most`` values; give one not seen for so many seconds to ``forget``."""
        self._most = most
        self._seconds = seconds
        self._forget = forget
        self._now = now
        self._seen: collections.OrderedDict[str, float] = collections.OrderedDict()

    def label(self, value: str) -> str:
        """Return the value itself, or :data:`OTHERS` while there are too many."""
        self.expire()
        if value not in self._seen and len(self._seen) >= self._most:
            return OTHERS
        self._seen[value] = self._now()
        self._seen.move_to_end(value)
        return value

    def expire(self) -> None:
        """Forget what was not seen for long."""
        oldest = self._now() - self._seconds
        while self._seen and next(iter(self._seen.values())) < oldest:
            value, _ = self._seen.popitem(last=False)
            self._forget(value)


def _content_type(accept: str) -> str:
    try:
        _, content_type = exposition.choose_encoder(accept)
    except (TypeError, ValueError):
        # The library compares what is not a version with numbers.
        return exposition.CONTENT_TYPE_PLAIN_0_0_4
    # Whatever version is asked for stands in the answer; each would be a form of its own.
    version = _VERSION.search(content_type)
    return content_type if version is None or version[1] in _VERSIONS else exposition.CONTENT_TYPE_PLAIN_0_0_4
