"""Tell whether the operator is alive, ready and converged, and why not."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from addon_operator.engine import engine, introspection
from addon_operator.engine import state as engine_state
from addon_operator.status import status_page

NOT_STARTED: Final = "STARTUP_CONVERGE_NOT_STARTED"
STARTING: Final = "STARTUP_CONVERGE_IN_PROGRESS"
DONE: Final = "STARTUP_CONVERGE_DONE"
RUNNING: Final = "CONVERGE_IN_PROGRESS"
WAITING: Final = "CONVERGE_WAIT_TASK"
STANDBY: Final = "STANDBY"
_ADMISSION_ONLY: Final = "ADMISSION_ONLY"


class OperatorStatus:
    """Answers probes: it gathers what the parts of the operator report, from the start to the end."""

    def __init__(self) -> None:
        self._engine: engine.Engine | None = None
        self._views: introspection.Introspection | None = None
        self._shared: Callable[[], status_page.Shared] = dict
        self._refusals: Callable[[], Sequence[str]] = tuple
        self._watch_alive: Callable[[], bool] = lambda: True
        self._stopping = False
        self._leader: Callable[[], str] | None = None
        self._waits_for: Callable[[], str | None] = lambda: None
        self._conditions: list[Callable[[], str | None]] = []
        self._needed_for_work: list[Callable[[], str | None]] = []
        self._vital: list[Callable[[], str | None]] = []
        self._admits = False
        self._only_admits = False

    def live_while(self, unhealthy_reason: Callable[[], str | None]) -> None:
        """Require a further part to live: it gives the reason why it does not, or ``None``."""
        self._vital.append(unhealthy_reason)

    def require(self, unready_reason: Callable[[], str | None]) -> None:
        """Require a further part to be ready: it gives the reason why it is not, or ``None``."""
        self._conditions.append(unready_reason)

    def require_for_work(self, unready_reason: Callable[[], str | None]) -> None:
        """Require a part to be ready without which pods are admitted all the same."""
        self._needed_for_work.append(unready_reason)

    def admit(self) -> None:
        """Admit pods: everything that was required and answers pods has been started."""
        self._admits = True

    def only_admit(self) -> None:
        """Admit pods only: there never will be an engine, and the process is ready when it can admit."""
        self._only_admits = True

    def stand_by(self, leader: Callable[[], str] | None) -> None:
        """Stand by while another replica, named by ``leader``, leads; ``None`` when that is over."""
        self._leader = leader

    def begin_when(
        self, waits_for: Callable[[], str | None], refusals: Callable[[], Sequence[str]] = tuple
    ) -> None:
        """Set what the engine waits for on its way: why it is not there yet, or ``None``.

        ``refusals`` gives what is wrong with values that are not in force, then and later.
        """
        self._waits_for = waits_for
        self._refusals = refusals

    def serve(self, running: engine.Engine, watch_alive: Callable[[], bool]) -> None:
        """Begin to serve: the engine is there now."""
        self._engine = running
        self._watch_alive = watch_alive

    def show(
        self,
        views: introspection.Introspection,
        shared: Callable[[], status_page.Shared] = dict,
    ) -> None:
        """Show these on the status page, and which objects several modules have."""
        self._views = views
        self._shared = shared

    def stop(self) -> None:
        """Stop being ready."""
        self._stopping = True

    def unhealthy_reason(self) -> str | None:
        """Say why the operator should be restarted, if it should: the event loop answers by answering."""
        if self._stopping:
            return None
        if not self._watch_alive():
            return "the watch of the values ConfigMap has ended"
        return _first(self._vital)

    def unready_reason(self) -> str | None:
        """Return why the operator is not ready, or ``None``."""
        if self._stopping:
            return "the operator is stopping"
        if self._only_admits:
            return self.admission_unready_reason()
        if self._engine is None and self._leader is None:
            return self._waits_for() or "the operator is starting"
        if (first := _first(self._conditions) or _first(self._needed_for_work)) is not None:
            return first
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
            return self._waits_for() or "the operator is starting; ask again in a moment"
        if leader := self._leader():
            return f"this replica stands by; ask {leader}, which leads"
        return "this replica stands by and nobody leads yet; ask again in a moment"

    def admission_unready_reason(self) -> str | None:
        """Return why pods cannot be admitted now, or ``None``, regardless of the first converge."""
        if self._stopping:
            return "the operator is stopping"
        return _first(self._conditions) if self._admits else "the operator is starting"

    def warnings(self) -> list[str]:
        """Return what is wrong although the operator may be ready: values and files that are not in force."""
        return list(self._refusals())

    async def page(self) -> status_page.Content:
        """Gather what the status page shows, in pieces: others have their turn meanwhile."""
        unready = self.unready_reason()
        state, _ = self.converge()
        refusals, views = self._refusals(), self._views
        if views is None:
            return status_page.Content(state=state, unready=unready, refusals=refusals)
        return status_page.Content(
            state=state,
            unready=unready,
            refusals=refusals,
            modules=await views.modules(),
            errors=views.errors_without_values(),
            queues=views.queue_heads(),
            shared=self._shared(),
        )

    def converge(self) -> tuple[str, int]:
        """Return the original's word for the state of the converge, and the number of tasks that remain.

        A replica that stands by says so instead, and who leads.
        """
        if self._leader is not None:
            return f"{STANDBY}: {self._leader() or 'nobody'} leads", 0
        if self._engine is None:
            return (_ADMISSION_ONLY if self._only_admits else NOT_STARTED), 0
        converger = self._engine.converger
        if converger.state is engine_state.ConvergeState.NOT_STARTED:
            return NOT_STARTED, 0
        if not converger.first_done.is_set():
            return STARTING, converger.remaining
        if converger.state is engine_state.ConvergeState.RUNNING:
            return RUNNING, converger.remaining
        return DONE, 0


def _first(reasons: Iterable[Callable[[], str | None]]) -> str | None:
    return next((text for reason in reasons if (text := reason())), None)
