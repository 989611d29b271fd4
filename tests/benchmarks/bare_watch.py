"""A process that watches ConfigMaps and starts a script for them with ``posix_spawn``, and nothing else.

What comes while the script runs is told to its next run. When its standard input is closed it prints when it
saw each object, and ends.
"""

import dataclasses
import http.client
import json
import os
import pathlib
import ssl
import sys
import threading
import time
import urllib.parse
from typing import Any, Final

from addon_operator.devcluster import layout
from addon_operator.devcluster.controlplane import certificates

WATCHING: Final = "watching"


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What to watch, and what to start."""

    cluster: str
    """Directory of the control plane."""
    url: str
    namespace: str
    script: str
    trace: str


class _Watch:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._waiting: list[dict[str, Any]] = []
        self._came = threading.Condition()
        self.seen: dict[str, float] = {}

    def read(self) -> None:
        where = layout.Layout(pathlib.Path(self._plan.cluster))
        tls = ssl.create_default_context(cafile=str(where.certificate(certificates.CA)))
        headers = certificates.bearer(where.pki)
        connection = http.client.HTTPSConnection(urllib.parse.urlsplit(self._plan.url).netloc, context=tls)
        path = f"/api/v1/namespaces/{self._plan.namespace}/configmaps?labelSelector=bench%3Dyes"
        connection.request("GET", path, headers=headers)
        version = json.loads(connection.getresponse().read())["metadata"]["resourceVersion"]
        connection.request("GET", f"{path}&watch=1&resourceVersion={version}", headers=headers)
        answer = connection.getresponse()
        print(WATCHING, flush=True)  # noqa: T201 - tells the parent
        for line in answer:
            self._take(json.loads(line)["object"])

    def _take(self, body: dict[str, Any]) -> None:
        self.seen[body["metadata"]["name"]] = time.time()
        with self._came:
            self._waiting.append(body)
            self._came.notify()

    def spawn(self) -> None:
        contexts = pathlib.Path(f"{self._plan.trace}.contexts")
        environment = {**os.environ, "BINDING_CONTEXT_PATH": str(contexts), "TRACE": self._plan.trace}
        while True:
            with self._came:
                self._came.wait_for(lambda: self._waiting)
                bodies, self._waiting = self._waiting, []
            contexts.write_text(json.dumps([{"type": "Event", "object": body} for body in bodies]))
            os.waitpid(os.posix_spawn(self._plan.script, [self._plan.script], environment), 0)


def main() -> None:
    watch = _Watch(Plan(**json.loads(sys.argv[1])))
    for target in (watch.read, watch.spawn):
        threading.Thread(target=target, daemon=True).start()
    sys.stdin.read()
    print(json.dumps(watch.seen), flush=True)  # noqa: T201 - tells the parent


if __name__ == "__main__":
    main()
