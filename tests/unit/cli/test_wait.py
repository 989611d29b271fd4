"""``wait``: for scripts that go on once an operator is ready."""

import http.server
import threading
from collections.abc import Iterator

import pytest
from click import testing
from typing_extensions import override

from addon_operator.cli import main
from addon_operator.cli import wait as wait_command

ANSWERS = [(503, "the operator is starting\n"), (503, "module web failed once: no\n")]


@pytest.fixture
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    """The port of a server that is ready when it was asked four times."""
    answers = [answer for answer in ANSWERS for _ in range(2)]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text = answers.pop(0) if answers else (200, "ok\n")
            if self.path != "/readyz":
                status, text = request.param if hasattr(request, "param") else (404, "")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        @override
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("addon_operator.cli.wait._PAUSE_SECONDS", 0.01)


def wait(port: int, timeout: str) -> tuple[int, list[str]]:
    ran = testing.CliRunner().invoke(main.cli, ["wait", "--listen-port", str(port), "--timeout", timeout])
    said = [str(ran.exception)] if ran.exception is not None else []
    return ran.exit_code, [*ran.stdout.splitlines(), *said]


def test_each_reason_is_told_once_until_the_operator_is_ready(port: int) -> None:
    assert wait(port, "1m") == (
        0,
        ["the operator is starting", "module web failed once: no", "the operator is ready"],
    )


def test_it_ends_when_nobody_answers_in_time(port: int) -> None:
    assert wait(1, "30ms") == (
        1,
        [
            "no operator answers on 127.0.0.1:1 (Connection refused)",
            "the operator is not ready after 30ms; its log says more",
        ],
    )


@pytest.mark.parametrize("port", [(200, "STANDBY: pod-1 leads\n")], indirect=True)
def test_a_replica_that_stands_by_says_who_installs_the_modules(port: int) -> None:
    assert wait(port, "1m")[1][-1] == "the operator is ready to take over: it stands by, and pod-1 leads"


@pytest.mark.parametrize("port", [(200, "STARTUP_CONVERGE_DONE\nREMOVALS_UNDER_WAY: 2\n")], indirect=True)
def test_removals_that_it_does_not_wait_for_are_counted(port: int) -> None:
    assert wait(port, "1m")[1][-1] == "the operator is ready; removals under way: 2"


@pytest.mark.parametrize("answer", [(501, "<!DOCTYPE HTML>"), (404, "not found"), (200, "<html>")])
def test_another_program_is_not_taken_for_an_operator(
    monkeypatch: pytest.MonkeyPatch, answer: tuple[int, str]
) -> None:
    monkeypatch.setattr(wait_command, "_asked", lambda *_: answer)
    assert "is not an operator; name its port with --listen-port" in wait(1, "30ms")[1][0]
