"""How often a hook may run: ``executionMinInterval`` and ``executionBurst`` of its ``settings``.

A token bucket, as in the Go operator: it begins with ``executionBurst`` tokens (1 unless given) and gets one
more every ``executionMinInterval``. Runs for schedules and events wait for a token, while more events join
them. A Synchronization takes a token if there is one and does not wait, and steps of life know of no limit,
so that one hook's interval does not hold up its module.
"""

import dataclasses

from addon_operator.engine import state
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import clock as clocks

_TOLERANCE = 1e-6
"""Seconds by which a timer may be early because of rounding."""


@dataclasses.dataclass(slots=True)
class _Bucket:
    interval: float
    size: int
    tokens: float
    filled_at: float

    def wait(self, now: float) -> float:
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
        self._by_hook: dict[tuple[str, str], tuple[hook_config.HookSettings, _Bucket]] = {}

    def wait(self, hook: state.Hook) -> float:
        """Seconds until the hook may run for an event, 0 if it may now."""
        bucket = self._bucket(hook)
        return 0.0 if bucket is None else bucket.wait(self._clock.monotonic())

    def ran(self, hook: state.Hook) -> None:
        """A run of the hook begins."""
        if (bucket := self._bucket(hook)) is not None:
            bucket.wait(self._clock.monotonic())
            bucket.take()

    def forget(self, hook: state.Hook) -> None:
        """The hook is gone."""
        self._by_hook.pop(_key(hook), None)

    def _bucket(self, hook: state.Hook) -> _Bucket | None:
        settings = hook.config.settings
        if not settings.execution_min_interval:
            return None
        known = self._by_hook.get(_key(hook))
        if known is None or known[0] != settings:
            size = settings.execution_burst or 1
            known = settings, _Bucket(settings.execution_min_interval, size, size, self._clock.monotonic())
            self._by_hook[_key(hook)] = known
        return known[1]


def _key(hook: state.Hook) -> tuple[str, str]:
    return (hook.module or "", hook.name)
