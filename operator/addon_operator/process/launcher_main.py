"""The launcher: a small process that starts the operator's children and reaps them when it is told to.

Why: on Linux a process that executes a program carries over the peak memory of the process it came from.
Children of a large operator would all report its size; children of this small process report their own. When
the operator dies without a word, the launcher ends the process groups that it has started.

It runs as a script of its own, without the package and site-packages and with few imports, so that it stays
small, and holds no state but the children that are not reaped. One request at a time comes over the socket
whose number is its argument; see :mod:`addon_operator.process.launcher` for the other side.
"""

import errno
import json
import os
import signal
import socket
import sys
import time

REQUEST_FDS = 3
MAX_MESSAGE = 4096
_GRACE = 5.0
_POLL = 0.05
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_DEFAULT_SIGNALS = (*_IGNORED, signal.SIGPIPE, signal.SIGXFSZ)
_NOT_HERE = (errno.ENOENT, errno.ENOTDIR)


def main(descriptor: int) -> None:
    """Serve requests until the operator closes its end or is gone."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    children: set[int] = set()
    with socket.socket(fileno=descriptor) as connection:
        connection.set_inheritable(False)
        while _serve(connection, children):
            pass
    _end(children)


def _serve(connection: socket.socket, children: set[int]) -> bool:
    try:
        message, fds, _, _ = socket.recv_fds(connection, MAX_MESSAGE, REQUEST_FDS)
        if not message:
            return False
        # MSG_CMSG_CLOEXEC would do it, but recv_fds passes no flags on.
        for fd in fds:
            os.set_inheritable(fd, False)
        reply = _start(fds, children) if fds else _reap(int(message), children)
        for fd in fds:
            os.close(fd)
        connection.send(json.dumps(reply).encode())
    except ConnectionError:
        return False
    return True


def _start(fds: list[int], children: set[int]) -> dict[str, int | float]:
    document, stdout, stderr = fds
    with open(document, "rb", closefd=False) as file:
        request = json.load(file)
    actions: list[tuple[str | int, ...]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, stdout, 1),
        (os.POSIX_SPAWN_DUP2, stderr, 2),
    ]
    try:
        # A child begins in the directory of the process that starts it.
        os.chdir(request["cwd"])
        pid = _spawn(request["argv"], request["env"], actions)
    except OSError as error:
        return {"errno": error.errno or errno.EINVAL}
    finally:
        os.chdir("/")
    children.add(pid)
    return {"pid": pid}


def _spawn(argv: list[str], env: dict[str, str], actions: list[tuple[str | int, ...]]) -> int:
    """Start a program, which is looked for in the PATH of ``env`` if its name has no slash."""
    places = [""] if "/" in argv[0] else os.get_exec_path(env)
    failure = OSError(errno.ENOENT, argv[0])
    for place in places:
        try:
            path = os.path.join(place, argv[0])  # noqa: PTH118 - pathlib would double the imports
            return os.posix_spawn(
                path, argv, env, file_actions=actions, setsid=True, setsigdef=_DEFAULT_SIGNALS
            )
        except OSError as error:
            # Like a shell: a file that may not be executed is told of if no other place has one.
            if error.errno not in _NOT_HERE:
                failure = error
    raise failure


def _reap(pid: int, children: set[int]) -> dict[str, int | float]:
    if pid not in children:
        return {}
    children.discard(pid)
    _, status, usage = os.wait4(pid, 0)
    return {
        "exit_code": os.waitstatus_to_exitcode(status),
        "user": usage.ru_utime,
        "system": usage.ru_stime,
        "max_rss": usage.ru_maxrss,
    }


def _end(children: set[int]) -> None:
    """The operator is gone: end what it left running."""
    _signal(children, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE
    while time.monotonic() < deadline and any(_runs(pid) for pid in children):
        time.sleep(_POLL)
    _signal(children, signal.SIGKILL)


def _runs(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _signal(children: set[int], number: signal.Signals) -> None:
    for pid in children:
        try:
            os.killpg(pid, number)
        except OSError:
            continue


if __name__ == "__main__":
    main(int(sys.argv[1]))
