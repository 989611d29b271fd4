"""How often a hook runs for events: the settings of the hook as token buckets."""

from typing import Final

import msgspec

from addon_operator.engine import state
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import clock as clocks

_TOLERANCE: Final = 1e-6
"""Seconds by which a timer may be early because of rounding."""


class _TokenBucket(msgspec.Struct):
    interval: float
    size: int
    tokens: float
    filled_at: float

    def seconds_to_wait(self, now: float) -> float:
        self.tokens = min(self.size, self.tokens + (now - self.filled_at) / self.interval)
        self.filled_at = now
        missing = (1 - self.tokens) * self.interval
        return missing if missing > _TOLERANCE else 0.0

    def take(self) -> None:
        self.tokens = max(0.0, self.tokens - 1)


class HookRates:
    """The buckets of all hooks."""

    def __init__(self, clock: clocks.Clock) -> None:
        self._clock = clock
        self._by_hook: dict[tuple[str, str], tuple[hook_config.HookSettings, _TokenBucket]] = {}

    def seconds_to_wait(self, hook: state.Hook) -> float:
        """Return the seconds until the hook may run for an event, 0 if it may now."""
        bucket = self._bucket(hook)
        return 0.0 if bucket is None else bucket.seconds_to_wait(self._clock.monotonic())

    def ran(self, hook: state.Hook) -> None:
        """Count a run of the hook, which begins."""
        if (bucket := self._bucket(hook)) is not None:
            bucket.seconds_to_wait(self._clock.monotonic())
            bucket.take()

    def forget(self, hook: state.Hook) -> None:
        """Forget a hook that is gone."""
        self._by_hook.pop(_key(hook), None)

    def _bucket(self, hook: state.Hook) -> _TokenBucket | None:
        settings = hook.config.settings
        if not settings.execution_min_interval:
            return None
        entry = self._by_hook.get(_key(hook))
        if entry is None or entry[0] != settings:
            size = settings.execution_burst or 1
            bucket = _TokenBucket(settings.execution_min_interval, size, size, self._clock.monotonic())
            entry = self._by_hook[_key(hook)] = settings, bucket
        return entry[1]


def _key(hook: state.Hook) -> tuple[str, str]:
    return (hook.module or "", hook.name)
