"""The launcher: a small process that starts the operator's children and reaps them on request.

Why: on Linux a process that executes a program carries over the peak memory of the process it came from.
Children of a large operator would all report its size; children of this small process report their own. When
the operator dies without a word, the launcher ends the process groups that it has started. It does the same
when a time limit passes that the operator has set and not moved on, as one that is stopped or hangs cannot.

It also inherits and reaps what a child leaves behind, where the kernel lets it. What left its process group
runs on: nobody looks for it.

If it is killed, or hangs, the operator inherits its children and starts another one, which *adopts* them: it
ends them as its own, but the operator reaps them.

It runs as a script of its own, without the package and site-packages and with few imports, so that it stays
small, and holds no state but the children that are not reaped. One request at a time comes over the socket
whose number is its argument; see :mod:`.launcher` for the other side.
"""

import errno
import json
import os
import resource
import select
import signal
import socket
import sys
import time

REQUEST_FDS = 3
LIMIT = b"limit"
ADOPT = b"adopt "
START = b"start"
MAX_MESSAGE = 32 * 1024
_GRACE = 5.0
_POLL = 0.05
_SET_CHILD_SUBREAPER = 36
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_DEFAULT_SIGNALS = (*_IGNORED, signal.SIGPIPE, signal.SIGXFSZ)
_NOT_HERE = (errno.ENOENT, errno.ENOTDIR)


class Child:
    """What is known of a child that is not reaped."""

    __slots__ = ("descriptor", "is_limited")

    def __init__(self, *, is_limited: bool, descriptor: int | None = None) -> None:
        """``descriptor`` is that of the process if another launcher has started it."""
        self.is_limited = is_limited
        self.descriptor = descriptor

    def runs(self, pid: int) -> bool:
        """Say whether it has not ended."""
        if self.descriptor is None:
            return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        return not select.select([self.descriptor], [], [], 0)[0]

    def send(self, pid: int, number: signal.Signals) -> None:
        """Send a signal to its group; the number of one that another process reaps may be another's soon."""
        if self.descriptor is None or self.runs(pid):
            try:
                os.killpg(pid, number)
            except OSError:
                return


class Limit:
    """Until when children that it holds for may run, on the clock that goes on in a suspended machine.

    Once it has passed it stays so: no such child is started any more.
    """

    def __init__(self) -> None:
        self._term_at = self._kill_at = float("inf")
        self._signalled: list[signal.Signals] = []

    @property
    def passed(self) -> bool:
        """Whether children that it holds for may not run any more."""
        return bool(self._signalled) or _now() >= self._term_at

    def move(self, term_at: float, kill_at: float) -> None:
        """Set the times of SIGTERM and SIGKILL."""
        if not self.passed:
            self._term_at, self._kill_at = term_at, kill_at

    def seconds_left(self) -> float | None:
        """Return the seconds until there is something to do; ``None`` for never."""
        if signal.SIGKILL in self._signalled:
            return None
        due = self._kill_at if self._signalled else self._term_at
        return None if due == float("inf") else max(0.0, due - _now())

    def enforce(self, children: dict[int, Child]) -> None:
        """Send what is due."""
        if _now() >= self._kill_at:
            self._send(children, signal.SIGKILL)
        elif _now() >= self._term_at:
            self._send(children, signal.SIGTERM)

    def _send(self, children: dict[int, Child], number: signal.Signals) -> None:
        if number not in self._signalled:
            self._signalled.append(number)
            limited = {pid: child for pid, child in children.items() if child.is_limited}
            _signal(limited, number)
            # A stopped process acts on SIGTERM only when it goes on.
            _signal(limited, signal.SIGCONT)


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def main(descriptor: int) -> None:
    """Serve requests until the operator closes its end or is gone."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    children: dict[int, Child] = {}
    limit = Limit()
    ended = _inherit_orphans()
    with socket.socket(fileno=descriptor) as connection:
        connection.set_inheritable(False)
        while True:
            asked, _, _ = select.select([descriptor, ended], [], [], limit.seconds_left())
            limit.enforce(children)
            if ended in asked:
                os.read(ended, MAX_MESSAGE)
                _reap_orphans(children)
            if descriptor in asked and not _serve(connection, children, limit):
                break
    _end(children)


def _serve(connection: socket.socket, children: dict[int, Child], limit: Limit) -> bool:
    try:
        message, fds, _, _ = socket.recv_fds(connection, MAX_MESSAGE, REQUEST_FDS)
        if not message:
            return False
        # MSG_CMSG_CLOEXEC would do it, but recv_fds passes no flags on.
        for fd in fds:
            os.set_inheritable(fd, False)
        reply = _reply(message, fds, children, limit)
        for fd in fds:
            os.close(fd)
        if reply is not None:
            connection.send(json.dumps(reply).encode())
    except ConnectionError:
        return False
    return True


def _reply(
    message: bytes, fds: list[int], children: dict[int, Child], limit: Limit
) -> dict[str, int | float] | None:
    if message == START:
        return _start(fds, children, limit)
    word, *words = message.split()
    if word == LIMIT:
        limit.move(*map(float, words))
        return None
    if message.startswith(ADOPT):
        _adopt(message, children)
        return None
    return _reap(int(word), children)


def _start(fds: list[int], children: dict[int, Child], limit: Limit) -> dict[str, int | float]:
    """Start the program that a file in memory describes: its environment may be larger than a message."""
    stdout, stderr, document = fds
    # From its beginning, wherever another launcher, which was killed, had read to.
    request = json.loads(os.pread(document, os.fstat(document).st_size, 0))
    if request["is_limited"] and limit.passed:
        return {"errno": errno.ECANCELED}
    actions: list[tuple[str | int, ...]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, stdout, 1),
        (os.POSIX_SPAWN_DUP2, stderr, 2),
    ]
    limits = [(what, most) for what, most in request["limits"] if what != resource.RLIMIT_CPU]
    own_limits = [(what, resource.getrlimit(what)) for what, _ in limits]
    try:
        # A child begins in the directory and with the limits of the process that starts it.
        os.chdir(request["cwd"])
        _limit(limits)
        pid = _spawn(request["argv"], request["env"], actions)
    except OSError as error:
        return {"errno": error.errno or errno.EINVAL}
    finally:
        for what, own in own_limits:
            resource.setrlimit(what, own)
        os.chdir("/")
    children[pid] = Child(is_limited=request["is_limited"])
    _limit_work(pid, dict(request["limits"]).get(resource.RLIMIT_CPU))
    return {"pid": pid}


def _adopt(message: bytes, children: dict[int, Child]) -> None:
    child = json.loads(message.removeprefix(ADOPT))
    try:
        descriptor = os.pidfd_open(child["pid"])
    except OSError:
        return
    children[child["pid"]] = Child(is_limited=child["is_limited"], descriptor=descriptor)


def _limit(limits: list[tuple[int, int]]) -> None:
    for what, most in limits:
        _, highest = resource.getrlimit(what)
        resource.setrlimit(what, (_within(most, highest), highest))


def _limit_work(pid: int, seconds: int | None) -> None:
    """Have a child killed after so much work: the soft limit only sends a signal, which Go passes over.

    It cannot inherit that from this process, which could not raise its own hard limit again.
    """
    if seconds is not None:
        _, highest = resource.prlimit(pid, resource.RLIMIT_CPU)
        most = _within(seconds, highest)
        resource.prlimit(pid, resource.RLIMIT_CPU, (most, most))


def _within(most: int, highest: int) -> int:
    return most if highest == resource.RLIM_INFINITY else min(most, highest)


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
            # Like a shell: a file that may not be executed is reported if no other place has one.
            if error.errno not in _NOT_HERE:
                failure = error
    raise failure


def _reap(pid: int, children: dict[int, Child]) -> dict[str, int | float]:
    child = children.pop(pid, None)
    if child is None:
        return {}
    if child.descriptor is not None:
        os.close(child.descriptor)
        return {}
    return reaped(pid)


def reaped(pid: int) -> dict[str, int | float]:
    """Reap a child of this process that has ended, and say how."""
    _, status, usage = os.wait4(pid, 0)
    return {
        "exit_code": os.waitstatus_to_exitcode(status),
        "user": usage.ru_utime,
        "system": usage.ru_stime,
        "max_rss": usage.ru_maxrss,
    }


def _inherit_orphans() -> int:
    """Become the parent of what children leave behind; return the pipe that reports ends of processes."""
    ended, report = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(report, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        # Who cannot list them could not reap them either.
        _own_children()
    except OSError:
        return ended
    inherit()
    return ended


def inherit() -> None:
    """Become the parent of what descendants leave behind, where the kernel lets this process."""
    try:
        # There are interpreters without it.
        import ctypes

        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass


def _own_children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:  # noqa: PTH123 - see _spawn
        return [int(pid) for pid in file.read().split()]


def _reap_orphans(children: dict[int, Child]) -> None:
    try:
        orphans = [pid for pid in _own_children() if pid not in children]
    except OSError:
        return
    for pid in orphans:
        os.waitpid(pid, os.WNOHANG)


def _end(children: dict[int, Child]) -> None:
    """End what the operator left running: it is gone."""
    _signal(children, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE
    while time.monotonic() < deadline and any(child.runs(pid) for pid, child in children.items()):
        time.sleep(_POLL)
    _signal(children, signal.SIGKILL)
    # The operator reaps its own children alone.
    _reap_orphans(children)


def _signal(children: dict[int, Child], number: signal.Signals) -> None:
    """Send a signal to the groups of all children."""
    for pid, child in children.items():
        child.send(pid, number)


if __name__ == "__main__":
    main(int(sys.argv[1]))
