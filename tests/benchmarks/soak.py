"""``make soak MINUTES=30``: whether an operator stays as it is while it works.

200 modules, 5 000 objects that a hook follows, and all the time: events, drift that is corrected, pods that
are admitted, and an edit of a module a minute. Memory, open files, the length of the queues and how late the
loop wakes are read every few seconds. A page shows them; what is not flat after the warm-up is named.
"""

import concurrent.futures
import contextlib
import dataclasses
import json
import pathlib
import random
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import click

from addon_operator.devcluster import api, handle, layout
from tests.benchmarks import bare_helm, pages, surroundings
from tests.integration import admitting, operator_process, operator_site

_CREATORS: Final = 8
_READY_SECONDS: Final = 1800.0
"""Until all modules are installed, on a busy machine."""
_LOOK_SECONDS: Final = 5.0
_WARM_UP: Final = 0.3
"""Of the time: caches fill, allocators take what they then keep."""
_LABELS: Final = {"soak": "yes"}
_HOOK: Final = """\
#!/bin/bash
if [[ "${1:-}" == "--config" ]]; then echo '%s'; fi
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Figure:
    """One line of the page, and how much of it is still flat."""

    unit: str
    most_growth: float
    """Of the median after the warm-up, from its first to its last third."""
    least: float
    """In its unit: less than that is no growth."""


FIGURES: Final[Mapping[str, Figure]] = {
    "memory of all processes": Figure("MiB", 0.05, 3.0),
    "memory of the operator": Figure("MiB", 0.05, 3.0),
    "open files": Figure("", 0.05, 5.0),
    "tasks in queues": Figure("", 1.0, 5.0),
    "the loop woke late, mean": Figure("ms", 1.0, 5.0),
    "processor": Figure("%", 0.5, 5.0),
}


@click.command()
@click.option("--minutes", type=float, default=30.0, show_default=True)
@click.option("--modules", default=200, show_default=True)
@click.option("--objects", default=5000, show_default=True, help="Objects that a hook follows.")
@click.option("--page", type=click.Path(path_type=pathlib.Path), default="soak.html", show_default=True)
@click.option("--json", "file", type=click.Path(path_type=pathlib.Path), help="Write all samples to a file.")
def main(minutes: float, modules: int, objects: int, page: pathlib.Path, file: pathlib.Path | None) -> None:
    """Let an operator work; the exit code is 1 if something grew."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with surroundings.control_plane() as cluster, surroundings.site(cluster) as site:
        samples, done = run(cluster, site, minutes * 60, modules, objects)
    grown = [text for name in FIGURES if (text := growth(name, [each[name] for each in samples]))]
    page.write_text(shown(samples, done, grown))
    if file is not None:
        file.write_text(json.dumps({"samples": samples, "done": done, "grown": grown}, indent=2) + "\n")
    for text in grown or ["everything stayed flat after the warm-up"]:
        click.echo(text)
    click.echo(f"{', '.join(f'{count} {what}' for what, count in done.items())}; the page is {page}")
    sys.exit(bool(grown))


def run(
    cluster: handle.DevCluster, site: operator_site.Site, seconds: float, modules: int, objects: int
) -> tuple[list[dict[str, float]], dict[str, int]]:
    """Work for that time; the samples, and how much of each kind of work was done."""
    site.values("".join(f"{bare_helm.key(number)}Enabled: true\n" for number in range(modules)))
    for number in range(modules):
        values = f"{bare_helm.key(number)}: {{text: first}}\n"
        bare_helm.write_chart(
            site.module(f"{10 + number % 10}-{bare_helm.name(number)}", values=values), number
        )
    _write_hook(site)
    with concurrent.futures.ThreadPoolExecutor(_CREATORS) as pool:
        shares = [range(share, objects, _CREATORS) for share in range(_CREATORS)]
        list(pool.map(lambda share: _create(cluster, site, share), shares))
    listening = admitting.webhook_environment(operator_process.free_port())
    operator = site.start(DRIFT_MODE="correct", **listening).wait_ready(_READY_SECONDS)
    operator.wait_idle(_READY_SECONDS)
    shop = admitting.Shop(
        site.namespace,
        operator,
        cluster,
        api.ApiClient(layout.Layout(cluster.kubeconfig.parent), cluster.url),
    )
    shop.preset()
    work = _Work(cluster, site, shop, modules, objects)
    with work.going_on():
        samples = list(_samples(operator, seconds))
    if work.errors:
        raise RuntimeError(f"the work did not go on: {work.errors[0]}\n{operator.tail()}")
    operator.wait_idle(_READY_SECONDS).stop()
    return samples, work.done


def _write_hook(site: operator_site.Site) -> None:
    binding = {
        "name": "objects", "apiVersion": "v1", "kind": "ConfigMap", "queue": "objects",
        "labelSelector": {"matchLabels": _LABELS}, "jqFilter": ".data",
        "executeHookOnSynchronization": False, "keepFullObjectsInMemory": False,
        "namespace": {"nameSelector": {"matchNames": [site.namespace]}},
    }  # fmt: skip
    config = json.dumps({"configVersion": "v1", "kubernetes": [binding]})
    site.script(site.global_hooks / "hooks" / "objects.sh", _HOOK % config, exact=True)


def _create(cluster: handle.DevCluster, site: operator_site.Site, numbers: range) -> None:
    client = surroundings.Api(cluster)
    for number in numbers:
        body = {"metadata": {"name": f"object-{number}", "labels": _LABELS}, "data": {"a": "x" * 500}}
        client.request("POST", f"/api/v1/namespaces/{site.namespace}/configmaps", body)
    client.close()


class _Work:
    """What goes on all the time, each kind in a thread of its own."""

    def __init__(
        self,
        cluster: handle.DevCluster,
        site: operator_site.Site,
        shop: admitting.Shop,
        modules: int,
        objects: int,
    ) -> None:
        self.done = dict.fromkeys(("events", "drifts", "pods", "edits"), 0)
        self.errors: list[Exception] = []
        self._cluster, self._site, self._shop = cluster, site, shop
        self._modules, self._objects = modules, objects
        self._ended = threading.Event()

    @contextlib.contextmanager
    def going_on(self) -> Iterator[None]:
        """Work meanwhile."""
        api_of_events, api_of_drift = surroundings.Api(self._cluster), surroundings.Api(self._cluster)
        kinds: list[tuple[str, float, Callable[[int], object]]] = [
            (
                "events",
                0.2,
                lambda count: self._write(api_of_events, f"object-{self._any(self._objects)}", "a", count),
            ),
            ("drifts", 10.0, lambda count: self._write(api_of_drift, self._any_module(), "text", count)),
            ("pods", 2.0, lambda _: self._admit()),
            ("edits", 60.0, self._edit),
        ]
        threads = [threading.Thread(target=self._go_on, args=kind) for kind in kinds]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in threads:
                thread.join()

    def _go_on(self, what: str, seconds: float, work: Callable[[int], object]) -> None:
        try:
            while not self._ended.wait(seconds):
                work(self.done[what])
                self.done[what] += 1
        except Exception as error:  # noqa: BLE001 - said by the thread that measures
            self.errors.append(error)

    def _any(self, count: int) -> int:
        return random.randrange(count)

    def _any_module(self) -> str:
        return bare_helm.name(self._any(self._modules))

    def _write(self, client: surroundings.Api, name: str, key: str, count: int) -> None:
        path = f"/api/v1/namespaces/{self._site.namespace}/configmaps/{name}?fieldManager=somebody"
        client.request("PATCH", path, {"data": {key: f"by hand {count}"}}, "application/merge-patch+json")

    def _admit(self) -> None:
        name = self._shop.pod()["metadata"]["name"]
        path = f"{admitting.PODS.format(self._site.namespace)}/{name}?gracePeriodSeconds=0"
        self._shop.request("DELETE", path)

    def _edit(self, count: int) -> None:
        self._site.config(**{bare_helm.key(self._any(self._modules)): f"text: edit {count}\n"})


def _samples(operator: operator_process.OperatorProcess, seconds: float) -> Iterator[dict[str, float]]:
    began = time.monotonic()
    at, processor, (late, wakes) = began, surroundings.tree_seconds(operator.pid), _lag(operator)
    while at - began < seconds:
        time.sleep(_LOOK_SECONDS)
        now, processor_now, (late_now, wakes_now) = (
            time.monotonic(),
            surroundings.tree_seconds(operator.pid),
            _lag(operator),
        )
        yield {
            "seconds": now - began,
            "memory of all processes": surroundings.tree_mebibytes(operator.pid),
            "memory of the operator": surroundings.resident_mebibytes(operator.pid),
            "open files": len(list(pathlib.Path(f"/proc/{operator.pid}/fd").iterdir())),
            "tasks in queues": operator.metrics().total("tasks_queue_length"),
            "the loop woke late, mean": 1000 * (late_now - late) / max(1.0, wakes_now - wakes),
            "processor": 100 * (processor_now - processor) / (now - at),
        }
        at, processor, late, wakes = now, processor_now, late_now, wakes_now


def _lag(operator: operator_process.OperatorProcess) -> tuple[float, float]:
    found = operator.metrics()
    return found.total("event_loop_lag_seconds_sum"), found.total("event_loop_lag_seconds_count")


def growth(name: str, values: Sequence[float]) -> str:
    """A sentence about what grew after the warm-up, from its first to its last third; empty if it is flat."""
    figure, warm = FIGURES[name], values[int(len(values) * _WARM_UP) :]
    third = max(1, len(warm) // 3)
    first, last = statistics.median(warm[:third]), statistics.median(warm[-third:])
    if last - first <= max(figure.least, first * figure.most_growth):
        return ""
    return f"{name} grew from {first:.1f} to {last:.1f} {figure.unit}".rstrip()


def shown(samples: Sequence[Mapping[str, float]], done: Mapping[str, int], grown: Sequence[str]) -> str:
    """The page: a plot for each figure."""
    minutes = samples[-1]["seconds"] / 60
    work = ", ".join(f"{count} {what}" for what, count in done.items())
    plots = [_plot(name, [(each["seconds"], each[name]) for each in samples]) for name in FIGURES]
    told = grown or ["Everything stayed flat after the warm-up."]
    return pages.page(f"{minutes:.0f} minutes: {work}", pages.listed(told), *plots)


def _plot(name: str, points: Sequence[tuple[float, float]]) -> str:
    values = [value for _, value in points]
    median = statistics.median(values[int(len(values) * _WARM_UP) :])
    said = f"{name}: median {median:.1f}, at most {max(values):.1f} {FIGURES[name].unit}"
    return pages.plot(said, points, mark=_WARM_UP)


if __name__ == "__main__":
    main()
