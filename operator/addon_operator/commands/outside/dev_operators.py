"""Operators on this machine, found by who asks for those of a cluster: they are in no pod.

Those of ``addon-operator dev`` are noted while they run, as their sockets lie in temporary directories;
others say at their sockets where they work.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Final

from addon_operator.commands.outside import place as places
from addon_operator.debug import debug_client
from addon_operator.devcluster import locations
from addon_operator.kernel import errors

_NOTES = "dev-operator-*.json"
"""In the directory of local clusters, one file for each that runs."""
_SECONDS: Final = 1.0
"""An operator here answers at once, or is not waited for."""


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


def works_in(path: pathlib.Path, namespace: str | None, server: str | None) -> bool:
    """Ask whether the operator at a socket leads there; what is ``None`` may be anything."""
    try:
        home = debug_client.DebugClient(path, _SECONDS).get("/operator.json")
        return namespace in (None, home["namespace"]) and server in (None, home["server"])
    except (errors.AddonOperatorError, OSError, KeyError, TypeError):
        # One that stands by knows who leads, and the cluster does, too.
        return False


def _running(environ: Mapping[str, str]) -> Iterator[DevOperator]:
    for note in sorted(locations.locate(environ).state.glob(_NOTES)):
        # One that was killed has left its note, and no socket or no directory with one.
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            read = json.loads(note.read_text("utf-8"))
            operator = DevOperator(pathlib.Path(read["socket"]), str(read["server"]), str(read["namespace"]))
            if operator.socket.is_socket():
                yield operator
