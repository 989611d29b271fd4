"""Hooks and Helm that run for long: told, and ended by a save of their owner, which would wait for them."""

import pathlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from addon_operator.commands.dev import dev_saves, dev_view
from addon_operator.debug import debug_client

_HELM: Final = "helm"
_RELEASE: Final = 2
"""Which word of a call of Helm is the release."""


class LongRuns:
    """Asks the operator which programs run."""

    def __init__(
        self,
        client: debug_client.DebugClient,
        saves: Sequence[dev_saves.Saves],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take ``saves`` of the modules, and those of global hooks if there are some."""
        self._client = client
        self._saves = saves
        self._monotonic = monotonic
        self._tell_at: dict[int, float] = {}
        self._ended: set[int] = set()
        self.running: Sequence[str] = ()
        """Those that run for long, one sentence each."""

    def forget(self) -> None:
        """Forget what ran in an operator that has ended: another one begins to count anew."""
        self._tell_at, self._ended, self.running = {}, set(), ()

    def look(self, modules: Mapping[str, str]) -> Iterator[dev_view.Line]:
        """Ask once; yield what is to be told: at times that double, and when one is ended.

        ``modules`` are those that releases belong to. Raises :class:`.DebugClientError`.
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
            if row["id"] not in self._ended and (what := self._outdated(row, modules)):
                self._ended.add(row["id"])
                self._client.post(f"/hooks/running/{row['id']}/end", {})
                yield dev_view.Line("hook", f"{self._name(row)} is ended: {what} saved")

    def _sentence(self, row: Mapping[str, Any]) -> str:
        return f"{self._name(row)} runs for {row['seconds']:.0f} s"

    def _name(self, row: Mapping[str, Any]) -> str:
        """Return what people call it: its path and arguments, without an interpreter before them."""
        words: list[str] = row["command"]
        if (release := _release(words)) is not None:
            return f"helm {words[1]} of {release}"
        for number, word in enumerate(words):
            for path, saves in self._programs([word]):
                return " ".join([saves.shown(path), *words[number + 1 :]])
        return " ".join(words)

    def _outdated(self, row: Mapping[str, Any], modules: Mapping[str, str]) -> str:
        """Say what of its owner was saved since it began; empty if nothing was."""
        began = self._monotonic() - row["seconds"]
        if (release := _release(row["command"])) is not None:
            module = modules.get(release, release)
            return "its module was" if self._saves[0].is_module_after(began, module) else ""
        for path, saves in self._programs(row["command"]):
            if saves.are_after(began, path):
                return "its module was" if saves is self._saves[0] else "global hooks were"
        return ""

    def _programs(self, words: Sequence[str]) -> Iterator[tuple[pathlib.Path, dev_saves.Saves]]:
        for path in map(pathlib.Path, words):
            # Global hooks may lie in the directory of the modules.
            saves = next((each for each in reversed(self._saves) if each.has(path)), None)
            if saves is not None and "venv" not in path.parts:
                yield path, saves


def _release(words: Sequence[str]) -> str | None:
    """Return the release that a call of Helm is about; ``None`` for other programs."""
    is_helm = len(words) > _RELEASE and pathlib.Path(words[0]).name.startswith(_HELM)
    return words[_RELEASE] if is_helm and words[1].isalpha() else None
