"""Looks again and again at what releases left in the cluster, and shows it with the modules."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Final

from addon_operator.aio import waiting
from addon_operator.engine import module_states, state
from addon_operator.helm import helm_errors
from addon_operator.helm.releases import left_objects
from addon_operator.kernel import errors, names

_LOOKS: Final = waiting.Backoff(0.5, 10.0)
"""Between two looks at objects that wait for finalizers."""
_SELDOM: Final = waiting.Backoff(0.5, 60.0)
"""Between two looks at what is kept: somebody may delete it."""


class LeftWatch:
    """The one loop that looks at them."""

    def __init__(self, left: left_objects.LeftObjects, states: module_states.ModuleStates) -> None:
        self._left = left
        self._states = states
        self._changed = asyncio.Event()

    @property
    def leaving(self) -> Mapping[names.ModuleName, str]:
        """Objects of removed releases that wait for finalizers, as a person calls them."""
        return self._left.leaving

    @property
    def in_the_way(self) -> tuple[Mapping[names.ModuleName, str], frozenset[names.ModuleName]]:
        """These, and the modules whose calls of Helm move objects."""
        return self._left.leaving, self._left.moves.under_way

    async def change(self, stopping: asyncio.Event) -> None:
        """Wait until a look finds others than before, a call of Helm ends, or ``stopping`` is set."""
        events = (self._changed, self._left.moves.ended, stopping)
        waits = [asyncio.ensure_future(event.wait()) for event in events]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def work(self) -> None:
        """Look until cancelled; what has just been left is looked at more often."""
        looks, shown = 0, None
        while True:
            self._left.news.clear()
            with contextlib.suppress(errors.AddonOperatorError):
                await self._left.look()
            found = (self._left.leaving, self._left.kept)
            self._show(*found)
            looks += 1
            if found != shown:
                looks, shown = 1, found
                self._changed.set()
                self._changed = asyncio.Event()
            pause = None
            if any(found):
                pause = (_LOOKS if self._left.leaving else _SELDOM).after(looks)
            await waiting.wait_within(self._left.news, pause)

    def _show(
        self,
        leaving: Mapping[names.ModuleName, str],
        kept: Mapping[names.ModuleName, tuple[left_objects.Kept, ...]],
    ) -> None:
        for module in self._states:
            name = module.module.name
            self._states.note_kept(name, kept.get(name, ()))
            if module.status not in _SHOWN:
                continue
            waits = helm_errors.leaving_text(leaving.get(name, ""))
            is_over = bool(module.leaving) and not waits
            self._states.note_leaving(name, waits)
            if is_over and module.status is state.ModuleStatus.DELETING:
                self._states.mark(name, state.ModuleStatus.DISABLED, "")
            elif waits and module.status is state.ModuleStatus.DISABLED and module.discovered:
                self._states.mark(name, state.ModuleStatus.DELETING, "")


_SHOWN: Final = (state.ModuleStatus.PENDING, state.ModuleStatus.DELETING, state.ModuleStatus.DISABLED)
"""Of others, their runs say that they wait."""
