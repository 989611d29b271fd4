"""From an object that is created to the hook that runs for it, beside a bare watch and spawn."""

import concurrent.futures
import contextlib
import dataclasses
import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from addon_operator.devcluster import handle
from tests.benchmarks import bare_watch, measures, surroundings
from tests.integration import operator_site

_RATES: Final[Mapping[int, int]] = {1: 20, 50: 500, 500: 3000}
"""Number of objects by how many are created in a second."""
_CREATORS: Final = 16
_AIMS: Final[Mapping[tuple[int, int], float]] = {(50, 50): 25.0, (50, 99): 100.0}
"""Highest milliseconds by rate and percentile."""
_PAUSE: Final = 1.0
_WATCH: Final = "bare watch"
_BARE: Final = "bare watch + posix_spawn"

_HOOK: Final = """\
#!/bin/bash
started=$EPOCHREALTIME
if [[ "${1:-}" == "--config" ]]; then
  echo '%s'
  exit 0
fi
printf '%%s\\n%%s\\0' "$started" "$(<"$BINDING_CONTEXT_PATH")" >> "$TRACE"
"""


@dataclasses.dataclass(frozen=True, slots=True)
class _Found:
    """Seconds since each object was created, and the number of runs."""

    started: Sequence[float]
    seen: Sequence[float]
    """Until a bare watch had it; empty for the operator."""
    runs: int


def run(cluster: handle.DevCluster) -> list[measures.Row]:
    """All measurements; takes about two minutes."""
    with surroundings.site(cluster) as site:
        hook = _write_hook(site)
        rows = []
        for rate, number in _RATES.items():
            bare = _bare(cluster, site, hook, rate, number)
            rows += _rows(rate, bare, _operated(cluster, site, rate, number))
        return rows


def _write_hook(site: operator_site.Site) -> pathlib.Path:
    binding = {
        "name": "events", "apiVersion": "v1", "kind": "ConfigMap", "queue": "events",
        "labelSelector": {"matchLabels": {"bench": "yes"}},
        "namespace": {"nameSelector": {"matchNames": [site.namespace]}},
        "executeHookOnEvent": ["Added"], "executeHookOnSynchronization": False,
    }  # fmt: skip
    config = json.dumps({"configVersion": "v1", "kubernetes": [binding]})
    return site.script(site.global_hooks / "hooks" / "event.sh", _HOOK % config, exact=True)


def _operated(cluster: handle.DevCluster, site: operator_site.Site, rate: int, number: int) -> _Found:
    trace = site.root / f"operator-{rate}"
    _, operator = surroundings.seconds_until_ready(lambda: site.start(TRACE=str(trace)))
    time.sleep(_PAUSE)
    created = _create(cluster, site, f"operator-{rate}", rate, number)
    started, runs = _starts(trace, number)
    operator.stop()
    return _Found([started[name] - at for name, at in created.items()], (), runs)


def _bare(
    cluster: handle.DevCluster, site: operator_site.Site, hook: pathlib.Path, rate: int, number: int
) -> _Found:
    trace = site.root / f"bare-{rate}"
    plan = bare_watch.Plan(str(cluster.kubeconfig.parent), cluster.url, site.namespace, str(hook), str(trace))
    with _watching(plan) as child:
        created = _create(cluster, site, f"bare-{rate}", rate, number)
        started, runs = _starts(trace, number)
        output, _ = child.communicate(timeout=surroundings.DEADLINE)
    seen: dict[str, float] = json.loads(output.splitlines()[-1])
    return _Found(
        [started[name] - at for name, at in created.items()],
        [seen[name] - at for name, at in created.items()],
        runs,
    )


@contextlib.contextmanager
def _watching(plan: bare_watch.Plan) -> Iterator["subprocess.Popen[str]"]:
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.bare_watch", json.dumps(dataclasses.asdict(plan))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        if child.stdout is None or child.stdout.readline().strip() != bare_watch.WATCHING:
            raise RuntimeError("the bare watch did not begin")
        time.sleep(_PAUSE)
        yield child
    finally:
        child.kill()
        child.wait()


def _create(
    cluster: handle.DevCluster, site: operator_site.Site, prefix: str, rate: int, number: int
) -> dict[str, float]:
    """Create objects at that rate, in steady steps; when each was sent, by name."""
    began = time.time() + _PAUSE
    with concurrent.futures.ThreadPoolExecutor(_CREATORS) as pool:
        shares = pool.map(
            lambda share: _create_share(cluster, site, prefix, began, rate, range(share, number, _CREATORS)),
            range(_CREATORS),
        )
        return {name: at for share in shares for name, at in share.items()}


def _create_share(
    cluster: handle.DevCluster, site: operator_site.Site, prefix: str, began: float, rate: int, numbers: range
) -> dict[str, float]:
    api, sent = surroundings.Api(cluster), {}
    path = f"/api/v1/namespaces/{site.namespace}/configmaps"
    for number in numbers:
        time.sleep(max(0.0, began + number / rate - time.time()))
        name = f"{prefix}-{number}"
        sent[name] = time.time()
        api.request(
            "POST", path, {"metadata": {"name": name, "labels": {"bench": "yes"}}, "data": {"a": "b"}}
        )
    return sent


def _starts(trace: pathlib.Path, number: int) -> tuple[dict[str, float], int]:
    """When the script ran for each object, once it did for all, and how often it ran."""

    def all_of_them() -> tuple[dict[str, float], int] | None:
        found, runs = _read(trace)
        return (found, runs) if len(found) >= number else None

    return surroundings.until(all_of_them, f"the script ran for {number} objects", poll=_PAUSE)


def _read(trace: pathlib.Path) -> tuple[dict[str, float], int]:
    if not trace.exists():
        return {}, 0
    found: dict[str, float] = {}
    records = trace.read_text().split("\0")[:-1]
    for record in records:
        started, contexts = record.split("\n", 1)
        for context in json.loads(contexts):
            if context["type"] == "Event":
                found.setdefault(context["object"]["metadata"]["name"], float(started))
    return found, len(records)


def _rows(rate: int, bare: _Found, ours: _Found) -> list[measures.Row]:
    case = f"{rate} objects created per second"
    rows = []
    for percent in (50, 99):
        value = measures.milliseconds(ours.started, percent)
        aim = _AIMS.get((rate, percent))
        quantity = f"created until hook started, p{percent} (ms)"
        rows += [
            measures.Row("hooks", case, quantity, value, _BARE, measures.milliseconds(bare.started, percent),
                         f"<= {aim:g}" if aim else "", value <= aim if aim else None),
            measures.Row("hooks", case, quantity, value, _WATCH, measures.milliseconds(bare.seen, percent)),
        ]  # fmt: skip
    runs = measures.Row("hooks", case, f"runs for {_RATES[rate]} objects", ours.runs, _BARE, bare.runs)
    return [*rows, runs]
