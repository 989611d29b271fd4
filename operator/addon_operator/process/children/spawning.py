"""Workers of ours: processes that run a file of this package and are asked through a socket."""

import pathlib
import socket
import subprocess
import sys
from collections.abc import Sequence

from addon_operator.process import start_errors


def start_python(
    script: pathlib.Path, *arguments: object, options: Sequence[str] = ("-I",)
) -> tuple["subprocess.Popen[bytes]", socket.socket]:
    """Start a file of ours as a worker, and give our end of the socket through which it talks.

    Its first argument is the number of its own end. It gets no environment, which what it works out could
    read, and no output; ``options`` are those of the interpreter. Raises :class:`.ChildStartError`.
    """
    ours, theirs = socket.socketpair()
    argv = [sys.executable, *options, str(script), str(theirs.fileno()), *map(str, arguments)]
    with theirs:
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                env={},
            )
        except OSError as error:
            ours.close()
            raise start_errors.explain(error, argv[0], None) from error
    return process, ours
