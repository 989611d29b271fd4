"""Patterns in ``modules`` of targets that no module's name matches, which may be slips of the pen."""

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Final

from addon_operator.aio import turns
from addon_operator.kernel import names
from addon_operator.status.notifications import notify_config

CALM_SECONDS: Final = 10.0
"""For how long neither targets nor modules change until they are compared: modules are learned one by one."""


class Unmatched:
    """Compares patterns with names, in pieces, when one of them has changed."""

    def __init__(self) -> None:
        self.found: Mapping[str, Sequence[str]] = {}
        """What is said of each target that has such patterns, a text for each."""
        self._compared: tuple[object, frozenset[str]] = (None, frozenset())
        self._due: float | None = None
        """When to compare; ``None`` if nothing has changed since."""

    async def turn(
        self, config: notify_config.NotifyConfig, modules: frozenset[str], now: float
    ) -> float | None:
        """Compare if it is time; when to come back, ``None`` if only after a change."""
        if self._compared != (config, modules):
            self._compared, self._due = (config, modules), now + CALM_SECONDS if modules else None
        if self._due is None or now < self._due:
            return self._due
        self._due = None
        each = [(target.name, pattern) for target in config.targets for pattern in target.modules]
        said = await turns.mapped(lambda pair: _said(pair[1], modules), each)
        found: dict[str, list[str]] = {}
        for (target, _), text in zip(each, said, strict=True):
            if text:
                found.setdefault(target, []).append(text)
        self.found = found
        return None


def _said(pattern: str, modules: frozenset[str]) -> str:
    if pattern == "*" or any(fnmatch.fnmatchcase(name, pattern) for name in modules):
        return ""
    hint = names.did_you_mean(pattern, modules, "correct or remove it")
    return f"{pattern!r} in modules matches no module; {hint}"
