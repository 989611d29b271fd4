"""What it takes to have a hook answer the API server, beside the bare hook; what a storm of it costs pods."""

import base64
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from addon_operator.devcluster import handle
from tests.benchmarks import load, measures, pods, surroundings
from tests.integration import admitting, operator_process, operator_site

NAME: Final = "allow.bench.example"
_PODS: Final = "/mutate-pods"
_PLACES: Final = 8
"""Processes at once: the default of WEBHOOK_HOOKS_PARALLELISM."""
_SAMPLES: Final = {1: 60, 20: 300, 100: 300}
_AIMS: Final = {20: 10.0}
"""Highest milliseconds of the p99 over that of the bare hook, by how many ask at once."""
_MEMORY: Final = "/dev/shm"
"""Where the bare hook has its files, as the operator's short runs have theirs."""
_AT_ONCE: Final = 50
"""How many pods are created at once, beside the storm and without it."""
_CREATED: Final = 1000
_STORM: Final = 100
_HOOK: Final = """\
#!/bin/bash
if [[ "${1:-}" == "--config" ]]; then
  echo '%s'
  exit 0
fi
printf '{"allowed": true}' > "$VALIDATING_RESPONSE_PATH"
"""
_BARE: Final = "the hook alone, 8 at once"


def run() -> list[measures.Row]:
    """All measurements; takes about half a minute."""
    with surroundings.control_plane() as cluster, surroundings.site(cluster) as site:
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["configmaps"],
        }
        nobody = {"matchLabels": {"bench": "nobody"}}
        binding = {"name": NAME, "rules": [rule], "labelSelector": nobody, "failurePolicy": "Ignore"}
        config = json.dumps({"configVersion": "v1", "kubernetesValidating": [binding]})
        hook = site.script(site.global_hooks / "hooks" / "allow.sh", _HOOK % config, exact=True)
        with tempfile.TemporaryDirectory(dir=_MEMORY) as memory, _serving(site, cluster) as server:
            place = pathlib.Path(memory)
            rows = [row for number in _SAMPLES for row in _latencies(server, hook, place, number)]
            return rows + _beside_a_storm(server)


@dataclasses.dataclass(frozen=True, slots=True)
class _Server:
    """Where reviews are sent."""

    port: int
    authority: str
    path: str
    """Of the hook."""

    @contextlib.contextmanager
    def asking(self, path: str, body: str, at_once: int, requests: int) -> Iterator["subprocess.Popen[str]"]:
        plan = load.Plan(self.port, self.authority, [path], body, at_once, requests, 1)
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.load"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert child.stdin is not None
            child.stdin.write(json.dumps(dataclasses.asdict(plan)))
            child.stdin.close()
            yield child
        finally:
            child.kill()
            child.wait()

    def times(self, path: str, body: str, at_once: int, requests: int) -> Sequence[float]:
        """Seconds of round trips, all of which succeeded."""
        with self.asking(path, body, at_once, requests) as child:
            assert child.stdout is not None
            outcome = load.Outcome(**json.loads(child.stdout.read()))
        if outcome.failures:
            raise RuntimeError(f"{outcome.failures} of {requests} requests to {path} failed")
        return outcome.seconds[path]


@contextlib.contextmanager
def _serving(site: operator_site.Site, cluster: handle.DevCluster) -> Iterator[_Server]:
    """An operator whose hook answers."""
    port = operator_process.free_port()
    with admitting.admitting(site, cluster, **admitting.webhook_environment(port)) as operator:
        kind = "validatingwebhookconfigurations"
        operator.wait_until(lambda: NAME in site.kubectl("get", kind, "-o", "yaml"), "it is there")
        path = f"/{admitting.path_key(site)}/hooks/validating/{NAME}"
        yield _Server(port, _authority(site), path)


def _authority(site: operator_site.Site) -> str:
    kind = "validatingwebhookconfigurations"
    found: dict[str, Any] = json.loads(
        site.kubectl("get", kind, f"addon-operator-{site.namespace}-hooks", "-o", "json")
    )
    return base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"]).decode()


def _review() -> str:
    stored = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "bench"}}
    version = {"group": "", "version": "v1"}
    request = {
        "uid": "1-2", "operation": "CREATE", "object": stored, "namespace": "bench", "name": "x",
        "kind": version | {"kind": "ConfigMap"}, "resource": version | {"resource": "configmaps"},
    }  # fmt: skip
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def _latencies(
    server: _Server, hook: pathlib.Path, directory: pathlib.Path, number: int
) -> list[measures.Row]:
    # The first ones meet what has yet to be made, as memory and threads.
    first = 2 * number
    requests = _SAMPLES[number] + first
    bare = _bare(hook, directory, number, requests)[first:]
    asked = server.times(server.path, _review(), number, requests)[first:]
    aim = _AIMS.get(number)
    rows = []
    for percent in (50, 99):
        value, baseline = (measures.milliseconds(times, percent) for times in (asked, bare))
        is_aim = aim is not None and percent == 99
        rows.append(
            measures.Row(
                "webhooks", f"{number} at once, a hook in bash", f"round trip, p{percent} (ms)", value,
                _BARE, baseline, f"< baseline + {aim:g}" if is_aim and aim else "",
                value < baseline + aim if is_aim and aim else None,
            )
        )  # fmt: skip
    return rows


def _bare(hook: pathlib.Path, directory: pathlib.Path, number: int, requests: int) -> list[float]:
    """How long a client waits for the hook itself if ``number`` of them ask all the time, in seconds."""
    contexts = directory / "contexts"
    contexts.write_text(
        json.dumps([{"binding": NAME, "type": "Validating", "review": json.loads(_review())}])
    )

    def ask() -> None:
        answer = directory / f"answer-{threading.get_ident()}"
        files = {"BINDING_CONTEXT_PATH": str(contexts), "VALIDATING_RESPONSE_PATH": str(answer)}
        child = os.posix_spawn(str(hook), [str(hook)], os.environ | files)
        os.waitpid(child, 0)
        assert json.loads(answer.read_text())["allowed"]
        answer.unlink()

    left, times = iter(range(requests)), list[float]()

    def ask_all() -> None:
        for _ in left:
            arrived = time.monotonic()
            places.submit(ask).result()
            times.append(time.monotonic() - arrived)

    with (
        concurrent.futures.ThreadPoolExecutor(_PLACES) as places,
        concurrent.futures.ThreadPoolExecutor(number) as clients,
    ):
        for client in [clients.submit(ask_all) for _ in range(number)]:
            client.result()
    return times


def _beside_a_storm(server: _Server) -> list[measures.Row]:
    """What pods wait while one webhook is asked as fast as it goes, beside what they wait otherwise."""
    pod = pods.review(pods.FEW).decode()
    server.times(_PODS, pod, _AT_ONCE, _CREATED // 2)
    alone = server.times(_PODS, pod, _AT_ONCE, _CREATED)
    with server.asking(server.path, _review(), _STORM, 100_000):
        time.sleep(1.0)
        beside = server.times(_PODS, pod, _AT_ONCE, _CREATED)
    case = f"{_AT_ONCE} pods at once, beside {_STORM} requests at once to a hook"
    return [
        measures.Row(
            "webhooks",
            case,
            f"round trip of pods, p{percent} (ms)",
            measures.milliseconds(beside, percent),
            "without them",
            measures.milliseconds(alone, percent),
        )
        for percent in (50, 99)
    ]
