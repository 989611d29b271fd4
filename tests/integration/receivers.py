"""A receiver of notifications on this machine: what it gets, and how it answers."""

import base64
import contextlib
import http.server
import json
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

import yaml
from typing_extensions import override

from tests.integration import operator_process, operator_site

SECRET: Final = "addon-operator-notify"
AFTER: Final = "1s"


class Receiver:
    """Takes messages over HTTP; each path is a target of its own."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        """Path, headers and body of each request, in their order."""
        self.status = 200
        self.delay = 0.0
        """Seconds until an answer."""
        self.url = ""
        self.headers: dict[str, str] = {}
        """Of answers."""

    def bodies(self, path: str) -> list[Any]:
        return [json.loads(body) for at, _, body in list(self.got) if at == path]

    def titles(self, path: str) -> list[str]:
        """The first line of each message for people, or the title of each CloudEvent."""
        return [_title(body) for body in self.bodies(path)]

    def wait(self, path: str, count: int, deadline: float = 30.0) -> list[str]:
        operator_process.wait_until(
            lambda: len(self.bodies(path)) >= count, f"{count} messages at {path}", deadline=deadline
        )
        return self.titles(path)

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        status = self.status
        time.sleep(self.delay)
        self.got.append((path, headers, body))
        return status


def _title(body: dict[str, Any]) -> str:
    if "text" in body:
        return str(body["text"].splitlines()[0].strip("*"))
    if "attachments" in body:
        return str(body["attachments"][0]["content"]["fallbackText"])
    return str(body["data"]["title"])


@contextlib.contextmanager
def receiving() -> Iterator[Receiver]:
    """Listen on loopback until the end of the block."""
    receiver = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = receiver.take(self.path, dict(self.headers), body)
            with contextlib.suppress(OSError):
                self.send_response(status)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

        @override
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def target(receiver: Receiver, path: str, format_: str, **more: object) -> dict[str, Any]:
    return {"name": path, "url": f"{receiver.url}/{path}", "format": format_, "after": AFTER, **more}


def write_targets(site: operator_site.Site, targets: list[dict[str, Any]], **more: str) -> None:
    write_file(site, yaml.safe_dump({"targets": targets, **more}))


def write_file(site: operator_site.Site, text: str) -> None:
    data = {"notify.yaml": base64.b64encode(text.encode()).decode()}
    site.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}, "data": data})
