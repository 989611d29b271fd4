"""What healing and maintenance tell, as metrics, log records and the modules' states."""

from collections.abc import Callable, Sequence
from typing import Final

import structlog

from addon_operator.engine import state
from addon_operator.kernel import names
from addon_operator.telemetry import metrics

_SHOWN: Final = 5


class HealingObserver:
    """Implements the observers of healing, of the watches behind it, and of maintenance."""

    def __init__(
        self,
        states: state.ModuleStates,
        meters: metrics.Metrics,
        log: structlog.typing.FilteringBoundLogger,
        tell: Callable[[names.ModuleName, str, str], None],
    ) -> None:
        """``tell`` writes an Event of warning about a module: its reason and text."""
        self._tell = tell
        self._states = states
        self._meters = meters
        self._log = log

    def absent_found(self, module: names.ModuleName, resources: Sequence[str], reason: str) -> None:
        """Log what makes a run."""
        self._log.info(
            f"absent in the cluster: {_shown(resources)}; the module is run, for it cannot be restored: "
            f"{reason}",
            module=module,
        )

    def healed(self, module: names.ModuleName, resources: Sequence[str], *, by_helm: bool) -> None:
        """Count and log what was brought back."""
        self._meters.modules.resources_healed_total.labels(module=module).inc(len(resources))
        how = "brought back by Helm" if by_helm else "restored from the record of the release"
        self._log.info(f"absent in the cluster, {how}: {_shown(resources)}", module=module)

    def heal_postponed(self, module: names.ModuleName, resources: Sequence[str], seconds: float) -> None:
        """Warn of somebody who works against the module."""
        self._log.warning(
            f"{_shown(resources)} disappears again and again; it is brought back in {seconds:.0f} s. "
            "Find out who removes it, or take it out of the chart",
            module=module,
        )

    def not_watched(self, modules: Sequence[names.ModuleName], kind: str, reason: str) -> None:
        """Warn of resources whose end will not be noticed."""
        self._log.warning(
            f"resources of the kind {kind} of module {', '.join(modules)} are not watched, so nobody notices "
            f"when they disappear: {reason}"
        )

    def shared(self, modules: Sequence[names.ModuleName], resources: Sequence[str]) -> None:
        """Warn of objects that two modules have."""
        text = f"modules {' and '.join(modules)} both have {_shown(resources)}"
        self._log.warning(
            f"{text}, and each overwrites what the other says; take it out of one of the charts",
            modules=", ".join(modules),
        )
        for module in modules:
            self._tell(module, "SharedObject", f"{text[0].upper()}{text[1:]}.")

    def maintenance_changed(self, module: names.ModuleName, mode: str) -> None:
        """Show and log that a module is left alone, or no longer."""
        self._meters.modules.maintenance.remove_by_labels({"module": module})
        if mode:
            self._meters.modules.maintenance.labels(module=module, state=mode).set(1)
            self._log.warning(
                f"in maintenance ({mode}): Helm and healing leave the module alone, its hooks go on",
                module=module,
            )
        else:
            self._log.info("maintenance has ended: Helm and healing look after the module", module=module)
        self._states.maintain(module, mode)


def _shown(resources: Sequence[str]) -> str:
    more = len(resources) - _SHOWN
    return ", ".join(resources[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
