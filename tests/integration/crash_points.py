"""Has an operator tell each effect that it is about to have or has had, and kills it at one of them.

The effects are the writes to the API server, the programs that change something (hooks, and ``helm`` with the
verbs ``install``, ``upgrade``, ``uninstall``, ``rollback`` and ``test``), and the values patches of hooks. A
point is a moment of one of them, such as
``edit: started helm upgrade web #1``: the phase that the test is in, the moment (``before``, ``started``,
``ended`` or ``after``), the effect, and how often that point was passed in this process and phase.

The operator's own code knows nothing of this. :func:`environment` has Python import :func:`install` when it
starts the operator, which wraps the borders that effects pass; a test talks to it through a :class:`Desk`.
"""

import functools
import json
import os
import pathlib
import signal
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_Answer: TypeAlias = Coroutine[Any, Any, R]

_DIRECTORY: Final = "CRASH_POINTS"
_UNTOLD: Final = ("events", "leases")
"""Kinds of objects that are written whenever there is time for it, and tell only what was done."""
_CHANGING_VERBS: Final = frozenset({"install", "upgrade", "uninstall", "rollback", "test"})


class Desk:
    """A directory by which a test and its operators talk; at home on both sides."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory
        self._at = directory / "at"
        self._phase = directory / "phase"
        self._passed = directory / "passed"

    @property
    def phase(self) -> str:
        """What the test is doing."""
        return self._phase.read_text() if self._phase.exists() else ""

    @property
    def fatal(self) -> str:
        """The point at which the operator will be killed; empty if it will not, or was."""
        try:
            return self._at.read_text()
        except FileNotFoundError:
            return ""

    @property
    def passed(self) -> list[str]:
        """All points that were passed, in their order."""
        return self._passed.read_text().splitlines() if self._passed.exists() else []

    def begin(self, phase: str, fatal: str = "") -> None:
        """Enter a phase, in which the operator is killed at the point ``fatal``, if that is given."""
        self._phase.write_text(phase)
        if fatal:
            self._at.write_text(fatal)

    def note(self, point: str) -> None:
        """Write down that the operator passes a point, and kill it if that is the one."""
        with self._passed.open("a") as file:
            file.write(f"{point}\n")
        if point == self.fatal:
            self._at.unlink()
            os.kill(os.getpid(), signal.SIGKILL)


def environment(desk: pathlib.Path, given: Mapping[str, str]) -> dict[str, str]:
    """The environment ``given``, in which an operator keeps that desk, a new directory, informed."""
    desk.mkdir()
    return {**prelude(desk, "install", given), _DIRECTORY: str(desk)}


def prelude(directory: pathlib.Path, function: str, given: Mapping[str, str]) -> dict[str, str]:
    """The environment ``given``, in which Python calls that function of this file before all else."""
    (directory / "sitecustomize.py").write_text(
        f"from tests.integration import crash_points\ncrash_points.{function}()\n"
    )
    tests = pathlib.Path(__file__).parents[2]
    return {**given, "PYTHONPATH": f"{directory}:{given['PYTHONPATH']}:{tests}"}


def install() -> None:
    """Wrap the borders, if this process is the operator itself."""
    if sys.orig_argv[1:4] == ["-m", "addon_operator", "start"]:
        _Borders(Desk(pathlib.Path(os.environ[_DIRECTORY]))).wrap()


def crash_the_converger() -> None:
    """Have the engine meet a defect as soon as it begins."""
    # Imported here, as below; and by name, so that a move of the class is met by the type check.
    from addon_operator.engine.converge.converge import Converger

    async def work(self: Converger) -> None:
        raise ValueError("a defect")

    Converger.work = work  # type: ignore[method-assign]  # the defect


def kill_while_unpacking() -> None:
    """Kill the process once the first file of a pulled chart is in the cache."""
    from addon_operator.helm.charts import chart_archives

    write = chart_archives._write

    def write_and_die(path: pathlib.Path, content: bytes, mode: int) -> None:
        write(path, content, mode)
        os.kill(os.getpid(), signal.SIGKILL)

    chart_archives._write = write_and_die


class _Borders:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._counts: Counter[str] = Counter()
        self._children: dict[int, str] = {}

    def wrap(self) -> None:
        # Imported here: in the test's own process none of this is wanted.
        from addon_operator.kube.client import client
        from addon_operator.process.children import launcher
        from addon_operator.values import store

        # Every border stands on one function of its class, whoever calls it.
        client.KubeClient._write = self._writing(client.KubeClient._write)  # type: ignore[method-assign]  # wrapped
        launcher.Launcher.start = self._starting(launcher.Launcher.start)  # type: ignore[method-assign]  # wrapped
        launcher.Launcher.reap = self._reaping(launcher.Launcher.reap)  # type: ignore[method-assign]  # wrapped
        patching = self._patching(store.ValuesStore.apply_values_patch)
        store.ValuesStore.apply_values_patch = patching  # type: ignore[method-assign]  # wrapped

    def _pass(self, moment: str, effect: str) -> None:
        point = f"{self._desk.phase}: {moment} {effect}"
        self._counts[point] += 1
        self._desk.note(f"{point} #{self._counts[point]}")

    def _writing(self, write: Callable[P, _Answer[R]]) -> Callable[P, _Answer[R]]:
        @functools.wraps(write)
        async def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            _, method, path, body, *_ = args
            effect = _request(str(method), str(path), body)
            if effect is None:
                return await write(*args, **kwargs)
            self._pass("before", effect)
            answer = await write(*args, **kwargs)
            self._pass("after", effect)
            return answer

        return wrapped

    def _patching(self, patch: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(patch)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            effect = f"values of {args[1] or 'global'}"
            self._pass("before", effect)
            outcome = patch(*args, **kwargs)
            self._pass("after", effect)
            return outcome

        return wrapped

    def _starting(self, start: Callable[..., _Answer[int]]) -> Callable[..., _Answer[int]]:
        @functools.wraps(start)
        async def wrapped(
            launcher: object, argv: list[str], *, env: Mapping[str, str], **more: object
        ) -> int:
            effect = _program(argv, env)
            if effect is None:
                return await start(launcher, argv, env=env, **more)
            self._pass("before", effect)
            pid = await start(launcher, argv, env=env, **more)
            self._children[pid] = effect
            self._pass("started", effect)
            return pid

        return wrapped

    def _reaping(self, reap: Callable[..., _Answer[R]]) -> Callable[..., _Answer[R]]:
        @functools.wraps(reap)
        async def wrapped(launcher: object, pid: int) -> R:
            ended = await reap(launcher, pid)
            effect = self._children.pop(pid, None)
            if effect is not None:
                self._pass("ended", effect)
            return ended

        return wrapped


def _request(method: str, path: str, body: object) -> str | None:
    """A name for a write; ``None`` for one that is no effect."""
    words = [*_words(path)]
    if words[0] in _UNTOLD or words[0].endswith("reviews"):
        return None
    if method == "POST" and isinstance(body, dict):
        words.append(body["metadata"]["name"])
    return f"{method} {'/'.join(words)}"


def _words(path: str) -> Iterator[str]:
    """The words of an API path from the plural on: ``configmaps``, ``web``."""
    words = path.strip("/").split("/")
    words = words[2:] if words[0] == "api" else words[3:]
    yield from words[2:] if words[0] == "namespaces" and len(words) > 2 else words


def _program(argv: list[str], env: Mapping[str, str]) -> str | None:
    """A name for a program that changes something, or tells what is to be changed."""
    name = pathlib.Path(argv[0]).name
    if name == "helm":
        return f"helm {argv[1]} {argv[2]}" if argv[1] in _CHANGING_VERBS else None
    if "BINDING_CONTEXT_PATH" not in env:
        return None
    contexts = json.loads(pathlib.Path(env["BINDING_CONTEXT_PATH"]).read_text())
    return f"hook {name} {contexts[0]['binding']}"
