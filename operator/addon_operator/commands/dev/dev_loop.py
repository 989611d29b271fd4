"""The loop of edits: the operator runs, and what it does is told until somebody ends it."""

import contextlib
import json
import os
import pathlib
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from addon_operator.commands.dev import dev_hooks, dev_place, dev_saves, dev_view
from addon_operator.commands.outside import dev_operators
from addon_operator.debug import debug_client
from addon_operator.kernel import errors
from addon_operator.process import commands

_LOOK_SECONDS: Final = 0.25
_NOTE_SECONDS: Final = 0.05
_ANSWER_SECONDS: Final = 5.0
_GRACE_SECONDS: Final = 15.0
_LAST_LINES: Final = 20
_END: Final = None
_ERRORS: Final = ("error", "critical")
_CANNOT_START: Final = (
    "the operator cannot start with these files: correct what is wrong, and it starts again"
)

Start = Callable[[], contextlib.AbstractContextManager[commands.Background]]
"""Starts an operator, and ends it with the context."""
Tell = Callable[[dev_view.Line], None]
Draw = Callable[[dev_view.DevView], None]


class Screen(msgspec.Struct, frozen=True):
    """Where it is shown."""

    tell: Tell
    """Takes each line."""
    draw: Draw
    """Takes the picture of the moment, whenever it may have changed."""


def run(
    target: dev_place.Target,
    of: dev_place.Modules,
    work: pathlib.Path,
    screen: Screen,
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Run the operator until Ctrl-C; ``work`` is a directory for its files.

    Raises :class:`.DevError` when the operator ends by itself, and not over files that a save may correct.
    """
    (work / dev_place.NO_GLOBAL_HOOKS).mkdir(exist_ok=True)
    options = dev_place.operator_options(target, of, work, environ)
    env = {**dev_place.operator_environment(environ), **options}
    argv = [sys.executable, "-m", "addon_operator", "start"]
    socket = pathlib.Path(options["DEBUG_UNIX_SOCKET"])
    with dev_operators.noted(target.operator(socket, environ), environ):
        view = dev_view.DevView({f"{of.modules_dir}/": f"{of.shown}/"} if of.modules_dir != of.shown else {})
        client = debug_client.DebugClient(socket, _ANSWER_SECONDS)
        saves = [dev_saves.Saves(of.modules_dir, of.shown)]
        if of.global_hooks_dir is not None and of.global_hooks_dir.is_dir():
            directory = of.global_hooks_dir
            saves.append(dev_saves.Saves(directory, directory, of_modules=False))
        loop = Loop(view, client, saves, dev_hooks.LongRuns(client, saves), screen)
        loop.keep(lambda: commands.background(argv, env=env, grace=_GRACE_SECONDS))


class Loop:
    """Follows one operator after another."""

    def __init__(
        self,
        view: dev_view.DevView,
        client: debug_client.DebugClient,
        saves: Sequence[dev_saves.Saves],
        hooks: dev_hooks.LongRuns,
        screen: Screen,
    ) -> None:
        self._view = view
        self._client = client
        self._saves = saves
        self._hooks = hooks
        self._screen = screen
        self._records: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._last: list[str] = []
        self._failure = ""
        """What the last record says, if that is an error."""

    def keep(self, start: Start) -> None:
        """Follow the operator, and start it again when files were saved that it could not start with.

        Raises :class:`.DevError` when it ends for another reason.
        """
        while True:
            began = time.monotonic()
            with start() as operator:
                self._follow(operator)
            self._await_save(began)

    def _await_save(self, began: float) -> None:
        """Wait for a save after the operator began, which may be there already: a hook was ended for it."""
        if not any(each.is_named_in(self._failure) for each in self._saves):
            raise dev_place.DevError("\n".join(["the operator has ended:", *self._last]))
        self._hooks.forget()
        self._view.rows = self._view.running = self._view.refusals = ()
        self._screen.tell(dev_view.Line("ended", _CANNOT_START))
        while True:
            self._look_for_saves_in_time()
            if any(each.is_any_after(began) for each in self._saves):
                break
            self._screen.draw(self._view)
            time.sleep(_LOOK_SECONDS)
        self._view.forget_told()
        self._screen.tell(dev_view.Line("start", "the operator starts again, with what was saved"))

    def _follow(self, operator: commands.Background) -> None:
        threading.Thread(target=self._read, args=(operator,), daemon=True).start()
        try:
            self._take_all()
        except KeyboardInterrupt:
            # A hook that runs has some seconds to end.
            self._view.is_ending = True
            self._screen.tell(dev_view.Line("ending", dev_view.ENDING))
            self._screen.draw(self._view)
            raise

    def _take_all(self) -> None:
        """Take each record until the operator has ended."""
        looked = 0.0
        while True:
            with contextlib.suppress(queue.Empty):
                line = self._records.get(timeout=_LOOK_SECONDS)
                if line is _END:
                    return
                self._take(line)
            if time.monotonic() - looked >= _LOOK_SECONDS:
                self._look()
                looked = time.monotonic()

    def _read(self, operator: commands.Background) -> None:
        for line in operator.lines():
            self._records.put(line)
        self._records.put(_END)

    def _take(self, line: str) -> None:
        record = _parsed(line)
        said = str(record.get("msg", line))
        self._last = [*self._last[1 - _LAST_LINES :], said]
        self._failure = said if record.get("level") in _ERRORS else ""
        for found in self._view.record(record):
            match found:
                case dev_view.Line():
                    self._screen.tell(found)
                case dev_view.Reloaded(modules=modules):
                    self._look_for_saves()
                    self._saves[0].take(modules)
                case dev_view.Ran(module=module, seconds=seconds):
                    self._ended(module, seconds)

    def _ended(self, module: str, seconds: float) -> None:
        at = time.time()
        # The operator says that a run has ended before it notes how.
        time.sleep(_NOTE_SECONDS)
        try:
            details: Mapping[str, Any] = self._client.get(f"/module/{module}/details.json")
            row = self._client.get(f"/module/{module}/describe.json")
        except errors.AddonOperatorError as error:
            self._screen.tell(dev_view.Line("warning", f"{module}: {error}"))
            return
        saved = self._saves[0].of(module)
        change = dev_view.Change(
            module,
            files=[] if saved is None else saved.files,
            revision=row["revision"],
            seconds=None if saved is None else max(at - saved.at, 0.0),
            run_seconds=seconds,
            has_failed=bool(row["lastError"]),
        )
        for line in self._view.ended(change, details):
            self._screen.tell(line)

    def _look(self) -> None:
        self._look_for_saves_in_time()
        with contextlib.suppress(errors.AddonOperatorError):
            listed = self._client.get("/module/list.json")
            self._view.rows, self._view.refusals = listed["modules"], listed["wrongValues"]
        # A hook that hangs at the start may be why there is no list.
        with contextlib.suppress(errors.AddonOperatorError):
            for line in self._hooks.look({row["release"]: row["name"] for row in self._view.rows}):
                self._screen.tell(line)
            self._view.running = self._hooks.running
        self._screen.draw(self._view)

    def _look_for_saves_in_time(self) -> None:
        if any(each.is_due for each in self._saves):
            self._look_for_saves()

    def _look_for_saves(self) -> None:
        for saves in self._saves:
            for line in saves.look():
                self._screen.tell(line)


def _parsed(line: str) -> Mapping[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        return {"msg": line}
    return record if isinstance(record, dict) else {"msg": line}
