"""Runs programs to their end: hooks, ``enabled`` scripts and helm all go through :class:`Children`."""

import asyncio
import contextlib
import os
import pathlib
import resource
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from addon_operator.kernel import errors, fencing
from addon_operator.process import start_errors
from addon_operator.process.children import groups, launcher, output
from addon_operator.process.start_errors import ChildStartError

__all__ = ["ChildEndedError", "ChildResult", "ChildStartError", "Children", "KILL_GRACE"]

KILL_GRACE: Final = 5.0
"""Seconds between SIGTERM and SIGKILL."""
DRAIN_GRACE: Final = 1.0
"""Seconds that output is still waited for after the child itself has ended: a process that it left behind may
hold the pipe open for ever."""
_GROUP_POLL: Final = 0.02
_KILL_TAKES_AT_MOST: Final = 1.0


class ChildEndedError(errors.AddonOperatorError):
    """Somebody ended a program that ran for long."""

    def __init__(self, what: str, seconds: float) -> None:
        """Say that ``what`` ran for ``seconds``."""
        self.seconds = seconds
        super().__init__(f"{what} was ended after {seconds:.0f} s")


class ChildResult(msgspec.Struct, frozen=True):
    """How a child ended and what it cost."""

    exit_code: int
    """Exit code; the negative number of the signal if one ended it."""
    user_cpu_seconds: float
    """CPU seconds in user mode of the child and of those of its own children that it waited for."""
    system_cpu_seconds: float
    """The same in kernel mode."""
    wall_seconds: float
    """Seconds from its start to its end."""
    max_rss_bytes: int
    """Peak resident memory of the largest process among the child and those it waited for."""
    timed_out: bool
    """Whether it was ended because its time was up."""
    stdout: bytes | None
    """Its standard output, if that was to be captured, up to the limit."""
    stdout_is_cut: bool
    """Whether ``stdout`` lacks what was beyond the limit."""
    stderr_tail: str
    """The last lines of its standard error."""
    stderr: bytes = b""
    """Its standard error from the beginning, if that was to be captured, up to the limit."""


class ChildBounds(msgspec.Struct, frozen=True):
    """What a child, and each process that it starts, may take; what takes more fails in the child."""

    memory_bytes: int
    """How much memory of its own it may have, which is not what it maps of files."""
    file_bytes: int | None = None
    """How large a file may become that it writes."""
    cpu_seconds: int | None = None
    """How long it may work, which is not how long it waits; then it is killed."""

    @property
    def limits(self) -> dict[int, int]:
        """As the kernel has them."""
        limits = {
            resource.RLIMIT_DATA: self.memory_bytes,
            resource.RLIMIT_FSIZE: self.file_bytes,
            resource.RLIMIT_CPU: self.cpu_seconds,
        }
        return {what: most for what, most in limits.items() if most is not None}


class Children:
    """Starts programs and runs each to its end."""

    def __init__(
        self, starter: launcher.Launcher, fence: fencing.Fence = fencing.OPEN, *, leaves_nothing: bool = False
    ) -> None:
        """``starter`` starts them; once ``fence`` says no, nothing is started.

        The limit of ``starter`` ends what has a fence. ``leaves_nothing`` is said of all: whoever waits for a
        command wants nothing to run behind it.
        """
        self._launcher = starter
        self._fence = fence
        self._leaves_nothing = leaves_nothing

    @property
    def unfenced(self) -> "Children":
        """The same for programs that change nothing: a replica that does not lead may start them, too."""
        return Children(self._launcher, leaves_nothing=self._leaves_nothing)

    def known_as(self, _module: str, _hook: str) -> "Children":
        """Return the same for a hook of a module, or a global one, for people who look at what runs."""
        return self

    async def run(  # noqa: PLR0913 - one parameter for each thing a caller may want to say
        self,
        argv: Sequence[str | pathlib.Path],
        *,
        env: Mapping[str, str],
        cwd: pathlib.Path | None = None,
        timeout: float | None = None,
        on_stdout_line: Callable[[str], None] | None = None,
        on_stderr_line: Callable[[str], None] | None = None,
        capture_stdout: int | None = None,
        capture_stderr: int = 0,
        kill_grace: float = KILL_GRACE,
        leaves_nothing: bool = False,
        bounds: ChildBounds | None = None,
    ) -> ChildResult:
        """Run a program to its end, with nothing on its standard input, in a process group of its own.

        ``env`` is its whole environment. Lines go to the handlers as they come; the first ``capture_stdout``
        and ``capture_stderr`` bytes are kept. After ``timeout`` seconds the group gets SIGTERM and,
        ``kill_grace`` seconds later, SIGKILL. When the awaiting task is cancelled it is ended in the same
        way, and only then does that go on; a second one kills at once. With ``leaves_nothing``, what the
        program leaves in its group when it ends is killed.

        Raises :class:`ChildStartError` if it cannot be started, :class:`.FencedError` if the fence says no.
        """
        capture = None if capture_stdout is None else output.Capture(capture_stdout)
        said, tail = output.Capture(capture_stderr), output.Tail()
        with (
            output.DrainedPipe(_sinks(capture, on_stdout_line)) as stdout,
            output.DrainedPipe([said, *_sinks(output.Lines(tail.add), on_stderr_line)]) as stderr,
        ):
            self._fence.check()
            started = time.monotonic()
            child = await self._start(argv, env, cwd, (stdout, stderr), bounds)
            leaves_nothing = leaves_nothing or self._leaves_nothing
            ended = await child.wait(timeout, kill_grace, (stdout, stderr), leaves_nothing=leaves_nothing)
        return ChildResult(
            exit_code=ended.code,
            user_cpu_seconds=ended.user_cpu_seconds,
            system_cpu_seconds=ended.system_cpu_seconds,
            wall_seconds=(child.ended_at or time.monotonic()) - started,
            max_rss_bytes=ended.max_rss_bytes,
            timed_out=child.timed_out,
            stdout=capture.data if capture else None,
            stdout_is_cut=capture.is_cut if capture else False,
            stderr_tail=tail.text,
            stderr=said.data,
        )

    async def _start(
        self,
        argv: Sequence[str | pathlib.Path],
        env: Mapping[str, str],
        cwd: pathlib.Path | None,
        streams: Sequence[output.DrainedPipe],
        bounds: ChildBounds | None,
    ) -> "_Child":
        """Start a program; a cancellation goes on when the caller next waits, who has the child then."""
        words = [os.fspath(word) for word in argv]
        stdout, stderr = (stream.write_end for stream in streams)
        try:
            pid = await self._launcher.start(
                words,
                env=env,
                cwd=cwd,
                stdout=stdout,
                stderr=stderr,
                limits={} if bounds is None else bounds.limits,
                is_limited=self._fence is not fencing.OPEN,
            )
        except OSError as error:
            raise start_errors.explain(error, words[0], cwd) from error
        except ValueError as error:
            raise ChildStartError(words[0], f"{error}") from error
        for stream in streams:
            stream.close_write_end()
        try:
            return _Child(pid, self._launcher)
        except OSError as error:
            groups.send(pid, signal.SIGKILL)
            await self._launcher.reap(pid)
            raise start_errors.explain(error, words[0], cwd) from error


def _sinks(first: output.Sink | None, handler: Callable[[str], None] | None) -> list[output.Sink]:
    lines = output.Lines(handler) if handler is not None else None
    return [sink for sink in (first, lines) if sink is not None]


class _Child:
    """A child that was started, as leader of its own session: watched, ended when it must be, reaped once.

    As long as it is not reaped, its process id and its group's id cannot be given to anybody else: that is
    why the group is signalled only here. asyncio's own child processes are not used because their reaper
    throws the resource usage away.
    """

    def __init__(self, pid: int, starter: launcher.Launcher) -> None:
        self._pid = pid
        self._launcher = starter
        self._loop = asyncio.get_running_loop()
        self._exited = asyncio.Event()
        self.timed_out = False
        self.ended_at: float | None = None
        """When the child ended, on the monotonic clock; None as long as it runs."""
        self._pidfd = os.pidfd_open(pid)
        self._loop.add_reader(self._pidfd, self._on_exit)

    async def wait(
        self,
        timeout: float | None,
        grace: float,
        streams: Sequence[output.DrainedPipe],
        *,
        leaves_nothing: bool,
    ) -> launcher.Exit:
        """Wait for its end and its output; whatever happens meanwhile, it has ended and is reaped then."""
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._exited.wait()
            self.timed_out = not self._exited.is_set()
            if self.timed_out:
                await self._end_group(grace)
            elif leaves_nothing:
                # It would hold the pipes open.
                groups.send(self._pid, signal.SIGKILL)
            await _drain(streams)
        except asyncio.CancelledError:
            await self._end_group_whatever_comes(grace)
            raise
        except BaseException:
            groups.send(self._pid, signal.SIGKILL)
            raise
        finally:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            ended = await self._launcher.reap(self._pid)
        return ended

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._pidfd)
        self.ended_at = time.monotonic()
        self._exited.set()

    async def _end_group(self, grace: float) -> None:
        groups.send(self._pid, signal.SIGTERM)
        # A stopped process acts on SIGTERM only when it goes on.
        groups.send(self._pid, signal.SIGCONT)
        if not await self._group_gone_within(grace):
            groups.send(self._pid, signal.SIGKILL)
            await self._exited.wait()
            await self._group_gone_within(_KILL_TAKES_AT_MOST)

    async def _group_gone_within(self, seconds: float) -> bool:
        survivor: int | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._exited.wait()
                # The kernel tells nobody when the last member of a group ends.
                while survivor := groups.living_member(self._pid, survivor):  # noqa: ASYNC110 - see above
                    await asyncio.sleep(_GROUP_POLL)
                return True
        return False

    async def _end_group_whatever_comes(self, grace: float) -> None:
        while True:
            try:
                await self._end_group(grace)
            except asyncio.CancelledError:
                grace = 0.0
            else:
                return


async def _drain(streams: Sequence[output.DrainedPipe]) -> None:
    try:
        async with asyncio.timeout(DRAIN_GRACE):
            for stream in streams:
                await stream.ended()
    except TimeoutError:
        for stream in streams:
            await stream.finish()
