"""Answer questions about a running operator with documents, and have its modules run.

Names and shapes are those of the Go operator's endpoint where it has them; more fields stand beside them.
"""

from collections.abc import Callable
from typing import Final

from addon_operator.debug import engine_api, runtime_config
from addon_operator.engine.hooks import running_hooks
from addon_operator.kernel import clock, errors
from addon_operator.status import page_content
from addon_operator.status.notifications import notifier as notifying


class NotReadyError(errors.AddonOperatorError):
    """The operator runs, but what is asked for is not there yet."""


class DebugApi:
    """Answers questions; before the engine is there, only those about parameters."""

    def __init__(
        self,
        runtime: runtime_config.RuntimeConfig,
        why_not: Callable[[], str],
        page: page_content.PageContent,
    ) -> None:
        """``why_not`` says what the operator is doing as long as there is no engine, and what to do."""
        self._runtime = runtime
        self.page: Final = page
        """What the page shows."""
        self._why_not = why_not
        self._engine: engine_api.EngineApi | None = None
        self._notifier: notifying.Notifier | None = None
        self._running_hooks: running_hooks.RunningHooks | None = None

    def show_running(self, running: running_hooks.RunningHooks) -> None:
        """Begin to answer which programs run: one that hangs may keep the engine away."""
        self._running_hooks = running

    def serve(self, engine: engine_api.EngineApi, notifier: notifying.Notifier | None = None) -> None:
        """Begin to answer questions about the engine, and the notifier if there is one."""
        self._engine, self._notifier = engine, notifier

    @property
    def engine(self) -> engine_api.EngineApi:
        """What answers questions about the engine; raises :class:`NotReadyError` before it is there."""
        if self._engine is None:
            raise NotReadyError(self._why_not())
        return self._engine

    @property
    def notifier(self) -> notifying.Notifier:
        """What notifies people; raises :class:`NotReadyError` without an engine, and if nobody is to be."""
        if self._engine is None:
            raise NotReadyError(self._why_not())
        if self._notifier is None:
            raise NotReadyError("this operator notifies nobody: NOTIFY_SECRET is none")
        return self._notifier

    @property
    def running_hooks(self) -> running_hooks.RunningHooks:
        """What knows which programs run; raises :class:`NotReadyError` before any can."""
        if self._running_hooks is None:
            raise NotReadyError(self._why_not())
        return self._running_hooks

    def parameters(self) -> list[runtime_config.ParameterRow]:
        """Return all parameters that can be changed now."""
        return self._runtime.rows()

    def set_parameter(self, name: str, value: str, duration: str = "") -> runtime_config.ParameterRow:
        """Change one, if a duration (as in Go) is given, for that long.

        Raises :class:`.RuntimeConfigError` or
        :class:`.DurationError`.
        """
        seconds = clock.parse_duration(duration) if duration else None
        if seconds is not None and seconds <= 0:
            raise runtime_config.RuntimeConfigError(f"the duration {duration!r} must be more than 0")
        return self._runtime.set(name, value, seconds)
