"""Operators of ``addon-operator dev`` on this machine: noted while they run, found by who asks for them.

Their sockets lie in temporary directories, and their pods are nowhere.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
from collections.abc import Iterator, Mapping

from addon_operator.commands.outside import place as places
from addon_operator.devcluster import locations

_NOTES = "dev-operator-*.json"
"""In the directory of local clusters, one file for each that runs."""


@dataclasses.dataclass(frozen=True, slots=True)
class DevOperator:
    """One that runs."""

    socket: pathlib.Path
    """Its debug socket."""
    server: str
    """URL of the API server with which it works."""
    namespace: str


@contextlib.contextmanager
def noted(operator: DevOperator, environ: Mapping[str, str]) -> Iterator[None]:
    """Let others find the operator until the context ends."""
    state = locations.locate(environ).state
    state.mkdir(parents=True, exist_ok=True)
    note = state / _NOTES.replace("*", str(os.getpid()))
    note.write_text(json.dumps({**dataclasses.asdict(operator), "socket": str(operator.socket)}), "utf-8")
    try:
        yield
    finally:
        note.unlink(missing_ok=True)


def socket(place: places.Place | None, environ: Mapping[str, str]) -> pathlib.Path | None:
    """Return the socket of the one that works there; without a place, of the only one that runs."""
    running = [*_running(environ)]
    if place is None:
        return running[0].socket if len(running) == 1 else None
    wanted = (place.access.server, place.namespace)
    return next((each.socket for each in running if (each.server, each.namespace) == wanted), None)


def _running(environ: Mapping[str, str]) -> Iterator[DevOperator]:
    for note in sorted(locations.locate(environ).state.glob(_NOTES)):
        # One that was killed has left its note, and no socket or no directory with one.
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            read = json.loads(note.read_text("utf-8"))
            operator = DevOperator(pathlib.Path(read["socket"]), str(read["server"]), str(read["namespace"]))
            if operator.socket.is_socket():
                yield operator
