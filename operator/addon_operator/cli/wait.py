"""``addon-operator wait``: for scripts that go on once an operator has installed its modules."""

import contextlib
import http.client
import os
import time
from typing import Final

import click

from addon_operator.cli import debug
from addon_operator.kernel import clock, errors
from addon_operator.status import converge_words

_ANSWER_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.5
_SHOWN: Final = 2000
_ALL_ADDRESSES: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where it is asked instead


class NotReadyError(errors.AddonOperatorError):
    """The operator did not get ready in time."""


@click.command()
@click.option(
    "--timeout",
    type=debug.Seconds(),
    default="2m",
    show_default=True,
    metavar="DURATION",
    help="Time after which the command fails.",
)
@click.option(
    "--listen-address",
    metavar="ADDRESS",
    help="Where the operator listens. [ADDON_OPERATOR_LISTEN_ADDRESS]",
)
@click.option(
    "--listen-port", metavar="PORT", help="Port of its probes and metrics. [ADDON_OPERATOR_LISTEN_PORT]"
)
def wait(timeout: float, listen_address: str | None, listen_port: str | None) -> None:
    """Wait until an operator on this machine is ready.

    It is ready once it has installed all its modules, or stands by for another one. Until then, the command
    prints what /readyz says, each time that it changes. Exit code 1 if the operator is not ready in time.
    """
    from addon_operator.settings import settings_loading

    given = {"listen_address": listen_address, "listen_port": listen_port}
    values = settings_loading.some(list(given), given, os.environ).values
    host, port = str(values["listen_address"]), int(values["listen_port"])
    reason, ends = "", time.monotonic() + timeout
    while (now := _unready(_ALL_ADDRESSES.get(host, host), port)) is not None:
        if now != reason:
            click.echo(now)
        reason = now
        if time.monotonic() + _PAUSE_SECONDS > ends:
            raise NotReadyError(
                f"the operator is not ready after {clock.duration_text(timeout)}; its log says more"
            )
        time.sleep(_PAUSE_SECONDS)
    click.echo(f"the operator is ready{_besides(_ALL_ADDRESSES.get(host, host), port)}")


def _besides(host: str, port: int) -> str:
    """Say that the operator stands by, as another one installs the modules, or that it removes some."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        status, text = _asked(host, port, "/status/converge")
        word, _, leader = text.partition(": ")
        if status == http.HTTPStatus.OK and word == converge_words.STANDBY:
            return f" to take over: it stands by, and {leader}"
        said = dict(line.partition(": ")[::2] for line in text.splitlines())
        if removals := said.get(converge_words.REMOVALS):
            return f"; removals under way: {removals}"
    return ""


def _asked(host: str, port: int, path: str) -> tuple[int, str]:
    with contextlib.closing(http.client.HTTPConnection(host, port, timeout=_ANSWER_SECONDS)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read(_SHOWN).decode(errors="replace").strip()


def _unready(host: str, port: int) -> str | None:
    """Return why the operator is not ready, ``None`` if it is."""
    another = f"what answers on {host}:{port} is not an operator; name its port with --listen-port"
    try:
        status, text = _asked(host, port, "/readyz")
    except TimeoutError:
        return f"the operator on {host}:{port} does not answer within {_ANSWER_SECONDS:g} s"
    except OSError as error:
        return f"no operator answers on {host}:{port} ({error.strerror or error})"
    except http.client.HTTPException:
        return another
    if status not in (http.HTTPStatus.OK, http.HTTPStatus.SERVICE_UNAVAILABLE) or text.startswith("<"):
        return another
    return None if status == http.HTTPStatus.OK else text
