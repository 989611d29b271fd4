"""Tell whether the operator is alive, ready and converged, and why not."""

import abc
from collections.abc import Callable, Iterable, Sequence

from addon_operator.engine import engine
from addon_operator.engine import state as engine_state
from addon_operator.status import converge_words


class Part:
    """A part of the operator that probes ask; it answers with a reason without values, or ``None``."""

    def unhealthy_reason(self) -> str | None:
        """Say why the operator should be restarted."""
        return None

    def unready_reason(self) -> str | None:
        """Say why the operator is not ready, and cannot admit pods."""
        return None

    def trouble(self) -> str | None:
        """Say why the operator is not ready, although it can admit pods."""
        return None


class Beginning(abc.ABC):
    """An engine on its way, and what its sources refuse then and later."""

    @property
    @abc.abstractmethod
    def waits_for(self) -> str | None:
        """Why it is not there yet, without values; ``None`` if nothing has to be mended."""

    @abc.abstractmethod
    def refusals(self) -> Sequence[str]:
        """Return what is wrong with values and files that are not in force, without values."""

    @abc.abstractmethod
    def troubles(self) -> Sequence[str]:
        """Return which modules are not as they should be, and why, without values."""


class OperatorStatus:
    """Answers probes, from the start to the end: it asks the parts, and knows the stage of this replica."""

    def __init__(self, *, only_admits: bool = False) -> None:
        """``only_admits``: there never will be an engine, and the process is ready when it can admit pods."""
        self._only_admits = only_admits
        self._parts: list[Part] = []
        self._admits = False
        self._leader: Callable[[], str] | None = None
        self._beginning: Beginning | None = None
        self._engine: engine.Engine | None = None
        self._stopping = False

    def add(self, part: Part) -> None:
        """Ask a further part."""
        self._parts.append(part)

    def admit(self) -> None:
        """Admit pods: every part that this needs was added."""
        self._admits = True

    def stand_by(self, leader: Callable[[], str] | None) -> None:
        """Stand by while another replica, named by ``leader``, leads; ``None`` when that is over."""
        self._leader = leader

    def begin(self, beginning: Beginning) -> None:
        """Begin to lead: the engine is on its way."""
        self._beginning = beginning

    def serve(self, running: engine.Engine) -> None:
        """Begin to serve: the engine is there now."""
        self._engine = running

    def stop(self) -> None:
        """Stop being ready."""
        self._stopping = True

    @property
    def _waits_for(self) -> str | None:
        return None if self._beginning is None else self._beginning.waits_for

    def unhealthy_reason(self) -> str | None:
        """Say why the operator should be restarted, if it should: the event loop answers by answering."""
        return None if self._stopping else _first(part.unhealthy_reason() for part in self._parts)

    def unready_reason(self) -> str | None:
        """Return why the operator is not ready, or ``None``."""
        if self._stopping:
            return "the operator is stopping"
        if self._only_admits:
            return self.admission_unready_reason()
        if self._engine is None and self._leader is None:
            return self._waits_for or "the operator is starting"
        if (reason := self._parts_reason() or _first(part.trouble() for part in self._parts)) is not None:
            return reason
        if self._engine is None or self._engine.converger.first_done.is_set():
            return None
        waiting = "; ".join(self._engine.waiting_for())
        return "the first converge is not done" + (f": {waiting}" if waiting else "")

    def absent_reason(self) -> str:
        """Return what this replica does as long as it has no engine, and whom to ask instead."""
        if self._stopping:
            return "the operator is stopping"
        if self._only_admits:
            return "this process only admits pods (ADMISSION_ONLY); ask the operator, which runs beside it"
        if self._leader is None:
            return self._waits_for or "the operator is starting; ask again in a moment"
        if leader := self._leader():
            return (
                f"this replica stands by, and {leader!r} leads: ask that; 'addon-operator module list -n "
                "NAMESPACE' finds it by itself"
            )
        return "this replica stands by and nobody leads yet; ask again in a moment"

    @property
    def leader(self) -> str | None:
        """Who leads while this replica stands by, empty if nobody does; ``None`` if it does not stand by."""
        return None if self._leader is None else self._leader()

    def admission_unready_reason(self) -> str | None:
        """Return why pods cannot be admitted now, or ``None``, regardless of the first converge."""
        if self._stopping:
            return "the operator is stopping"
        return self._parts_reason() if self._admits else "the operator is starting"

    def _parts_reason(self) -> str | None:
        return _first(part.unready_reason() for part in self._parts)

    def refusals(self) -> Sequence[str]:
        """Return what is wrong although the operator may be ready: values and files that are not in force."""
        return () if self._beginning is None else self._beginning.refusals()

    def details(self) -> Sequence[str]:
        """Return all that is wrong although the operator may be ready: the refusals, then modules."""
        return () if self._beginning is None else [*self.refusals(), *self._beginning.troubles()]

    def converge(self) -> tuple[str, int]:
        """Return the original's word for the state of the converge, and the number of tasks that remain.

        A replica that stands by says so instead, and who leads.
        """
        if self._leader is not None:
            return f"{converge_words.STANDBY}: {self._leader() or 'nobody'} leads", 0
        if self._engine is None:
            return (converge_words.ADMISSION_ONLY if self._only_admits else converge_words.NOT_STARTED), 0
        converger = self._engine.converger
        if converger.state is engine_state.ConvergeState.NOT_STARTED:
            return converge_words.NOT_STARTED, 0
        if not converger.first_done.is_set():
            return converge_words.STARTING, converger.remaining
        if converger.state is engine_state.ConvergeState.RUNNING:
            return converge_words.RUNNING, converger.remaining
        return converge_words.DONE, 0

    @property
    def removals(self) -> int:
        """How many modules and releases are being removed; a converge is done when that has begun."""
        return 0 if self._engine is None else self._engine.removals


def _first(reasons: Iterable[str | None]) -> str | None:
    return next(filter(None, reasons), None)
