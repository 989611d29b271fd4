"""How much memory the operator has resident: by modules, presets, connections and bodies in flight.

The chart's limit is chosen by these figures; the limits of the admission server have to fit into it.
"""

import contextlib
import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

from addon_operator.admission.server import site
from tests.benchmarks import bare_helm, measures, memory_server, pods, surroundings

MODULES: Final = (10, 100)
PRESETS: Final = (100, 1000, 10_000)
BODIES: Final = (100, 500)
_ACCOUNT_MEBIBYTES: Final = 256.0
_AIM: Final = 1.25
"""Of the account: what is not on it beside each body, such as buffers of TLS, is on the connections."""
_LARGE_BYTES: Final = 1 << 20


def run() -> list[measures.Row]:
    """All measurements; takes about three minutes, most of it for the modules."""
    return [*_presets(), *_connections(), *_usual_bodies(), *_hostile_bodies(), *_modules()]


class _Server:
    """The server in a process of its own, and the connections to it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        found = json.loads(self._line())
        self._port = found["port"]
        self._tls = ssl.create_default_context(cadata=found["authority"])
        self._open = contextlib.ExitStack()

    def connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self._port), timeout=20)
        opened = self._tls.wrap_socket(plain, server_hostname="127.0.0.1")
        self._open.callback(opened.close)
        return opened

    def send(self, body: bytes) -> None:
        """Send a review, and do not wait for its answer."""
        head = (
            f"POST {memory_server.PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            self.connect().sendall(head.encode() + body)

    def now(self, *, at_once: bool = False) -> dict[str, Any]:
        """What it takes now, after it has read what was sent."""
        assert self._process.stdin is not None
        self._process.stdin.write("at once\n" if at_once else "\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._line())
        return found

    def close(self) -> None:
        self._open.close()
        self._process.kill()
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextlib.contextmanager
def _serving(presets: int = 0) -> Iterator[_Server]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.memory_server", str(presets)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    server = _Server(process)
    try:
        yield server
    finally:
        server.close()


def _presets() -> list[measures.Row]:
    found = {}
    for number in (0, *PRESETS):
        with _serving(number) as server:
            found[number] = server.now()["resident"]
    return [_row(f"{number} presets", found[number], "without presets", found[0]) for number in PRESETS]


def _connections() -> list[measures.Row]:
    number = site.CONNECTIONS.connections
    with _serving() as server:
        before = server.now()["resident"]
        for _ in range(number):
            server.connect()
        return [_row(f"{number} idle connections, the most there can be", server.now()["resident"],
                     "without connections", before)]  # fmt: skip


def _usual_bodies() -> list[measures.Row]:
    body = pods.review(pods.FEW)
    rows = []
    for number in BODIES:
        with _serving() as server:
            before = server.now()["resident"]
            for _ in range(number):
                server.send(body)
            after = server.now()
            case = f"{number} reviews of {len(body) / 1024:.0f} KiB in flight, {after['held']:.0f} MiB held"
            rows.append(_row(case, after["resident"], "without reviews", before))
    return rows


def _hostile_bodies() -> list[measures.Row]:
    return [_full(name, body) for name, body in _hostile().items()]


def _hostile() -> dict[str, bytes]:
    review = json.loads(pods.review(pods.FEW))
    found = {}
    for name, filling in {
        "one text": "x" * _LARGE_BYTES,
        "wide text": "x" * _LARGE_BYTES + "\N{GRINNING FACE}",
        "empty lists": [[]] * (_LARGE_BYTES // 3),
    }.items():
        review["request"]["object"]["filling"] = filling
        found[name] = json.dumps(review, separators=(",", ":")).encode()
    return found


def _full(name: str, body: bytes) -> measures.Row:
    """As many reviews of 1 MiB as are taken at once."""
    with _serving() as server:
        before = server.now()["resident"]
        for _ in range(site.CONNECTIONS.connections // 2):
            server.send(body)
            if server.now(at_once=True)["refused"]:
                break
        after = server.now()
    grown = after["resident"] - before
    case = f"{after['entered']} reviews of 1 MiB of {name} in flight, then 503"
    return measures.Row(
        "memory", case, "MiB resident more", grown, "held on the account", after["held"],
        f"< {_AIM:g} accounts", grown < _AIM * _ACCOUNT_MEBIBYTES,
    )  # fmt: skip


def _modules() -> list[measures.Row]:
    found = {}
    with surroundings.control_plane() as cluster:
        for number in (0, *MODULES):
            with surroundings.site(cluster) as opened:
                opened.values("".join(f"{bare_helm.key(each)}Enabled: true\n" for each in range(number)))
                for each in range(number):
                    module = opened.module(f"10-{bare_helm.name(each)}")
                    bare_helm.write_chart(module, each)
                _, operator = surroundings.seconds_until_ready(opened.start)
                found[number] = surroundings.resident_mebibytes(operator.pid)
                operator.stop()
    return [_row(f"{number} modules", found[number], "without modules", found[0]) for number in MODULES]


def _row(case: str, value: float, name: str, baseline: float) -> measures.Row:
    return measures.Row("memory", case, "MiB resident", value, name, baseline)
