"""Programs of tests: functions in this process (:class:`Programs`), or real children of one launcher."""

import asyncio
import atexit
import functools
import inspect
import pathlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from typing_extensions import override

from addon_operator.kernel import fencing
from addon_operator.process.children import children, launcher

SIGTERM_CODE: Final = -15


class ProgramError(Exception):
    """How a program that is a function fails: with an exit code, and this text on its standard error."""

    def __init__(self, text: str = "", exit_code: int = 1) -> None:
        super().__init__(text)
        self.text = text
        self.exit_code = exit_code


class Call:
    """One start of a program."""

    def __init__(
        self, argv: Sequence[str | pathlib.Path], env: Mapping[str, str], cwd: pathlib.Path | None
    ) -> None:
        self.program = pathlib.Path(argv[0])
        self.arguments = [str(word) for word in argv[1:]]
        self.env = env
        self.cwd = cwd
        self.stdout: list[str] = []
        """Its lines; a program appends them."""
        self.stderr: list[str] = []

    def file(self, variable: str) -> pathlib.Path:
        """The file that a variable of its environment names."""
        return pathlib.Path(self.env[variable])

    def option(self, name: str) -> str:
        """The word behind an option."""
        return self.arguments[self.arguments.index(name) + 1]

    @override
    def __str__(self) -> str:
        return " ".join([self.program.name, *self.arguments])


Program = Callable[[Call], Awaitable[None] | None]
"""Writes to the call's output and files; raises :class:`ProgramError` to fail."""


def result(
    exit_code: int = 0, stdout: bytes | None = None, stderr: str = "", *, timed_out: bool = False
) -> children.ChildResult:
    """How a child ended that took nothing."""
    return children.ChildResult(
        exit_code, 0.0, 0.0, 0.0, 0, timed_out, stdout, False, stderr, stderr.encode()
    )


class Programs(children.Children):
    """Starts functions in place of programs: each stands for a path, and nothing else can be started."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._programs: dict[pathlib.Path, Program] = {}

    def add(self, path: pathlib.Path, program: Program) -> None:
        """Have ``program`` run where this path is started."""
        self._programs[path] = program

    @property
    @override
    def unfenced(self) -> "Programs":
        return self

    @override
    async def run(
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
        kill_grace: float = children.KILL_GRACE,
        leaves_nothing: bool = False,
        bounds: children.ChildBounds | None = None,
    ) -> children.ChildResult:
        call = Call(argv, env, cwd)
        self.calls.append(call)
        program = self._programs.get(call.program)
        if program is None:
            raise children.ChildStartError(str(call.program), "No such file or directory")
        exit_code, timed_out = 0, False
        try:
            async with asyncio.timeout(timeout):
                running = program(call)
                if inspect.isawaitable(running):
                    await running
        except TimeoutError:
            exit_code, timed_out = SIGTERM_CODE, True
        except ProgramError as error:
            exit_code = error.exit_code
            call.stderr += error.text.splitlines()
        for lines, tell in ((call.stdout, on_stdout_line), (call.stderr, on_stderr_line)):
            if tell is not None:
                for line in lines:
                    tell(line)
        stdout = "".join(f"{line}\n" for line in call.stdout).encode()
        said = "\n".join(call.stderr)
        return result(exit_code, None if capture_stdout is None else stdout, said, timed_out=timed_out)


def programs(fence: fencing.Fence = fencing.OPEN) -> children.Children:
    """Real children, without a fence or with that one."""
    return children.Children(_starter(), fence)


@functools.cache
def _starter() -> launcher.Launcher:
    starter = launcher.Launcher()
    atexit.register(starter.close)
    return starter
