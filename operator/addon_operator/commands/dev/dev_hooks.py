"""Hooks that run for long: told, and ended when their module is saved, which would wait for them."""

import pathlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from addon_operator.commands.dev import dev_saves, dev_view
from addon_operator.debug import debug_client


class LongRuns:
    """Asks the operator which hooks run."""

    def __init__(
        self,
        client: debug_client.DebugClient,
        saves: dev_saves.Saves,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._saves = saves
        self._monotonic = monotonic
        self._tell_at: dict[int, float] = {}
        self._ended: set[int] = set()
        self.running: Sequence[str] = ()
        """Those that run for long, one sentence each."""

    def look(self) -> Iterator[dev_view.Line]:
        """Ask once; yield what is to be told: at times that double, and when one is ended.

        Raises :class:`.DebugClientError`.
        """
        rows = self._client.get("/hooks/running.json")
        long = [row for row in rows if row["seconds"] >= dev_view.LONG_SECONDS]
        self._tell_at = {row["id"]: self._tell_at.get(row["id"], dev_view.LONG_SECONDS) for row in long}
        self._ended.intersection_update(self._tell_at)
        self.running = [self._sentence(row) for row in long]
        for row in long:
            if row["seconds"] >= self._tell_at[row["id"]]:
                self._tell_at[row["id"]] = 2 * row["seconds"]
                yield dev_view.Line("hook", self._sentence(row))
            # One that does not end at once is waited for.
            if row["id"] not in self._ended and self._is_outdated(row):
                self._ended.add(row["id"])
                self._client.post(f"/hooks/running/{row['id']}/end", {})
                yield dev_view.Line("hook", f"{self._name(row)} is ended: its module was saved")

    def _sentence(self, row: Mapping[str, Any]) -> str:
        return f"{self._name(row)} runs for {row['seconds']:.0f} s"

    def _name(self, row: Mapping[str, Any]) -> str:
        """Return what people call it: its path and arguments, without an interpreter before them."""
        words: list[str] = row["command"]
        for number, word in enumerate(words):
            if (path := self._path(word)) is not None:
                return " ".join([self._saves.shown(path), *words[number + 1 :]])
        return " ".join(words)

    def _is_outdated(self, row: Mapping[str, Any]) -> bool:
        began = self._monotonic() - row["seconds"]
        paths = filter(None, map(self._path, row["command"]))
        return any(self._saves.are_after(began, path) for path in paths)

    def _path(self, word: str) -> pathlib.Path | None:
        path = pathlib.Path(word)
        is_program = self._saves.has(path) and "venv" not in path.parts
        return path if is_program else None
