"""What of a plan would wait for a window."""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping

from msgspec import structs

from addon_operator.commands.plan import plan_report
from addon_operator.kernel import clock, names
from addon_operator.modules import model, requirements, windows


class PlanWindows:
    """Knows which windows are open at one moment."""

    def __init__(
        self,
        modules: Mapping[names.ModuleName, model.Module],
        default: windows.Windows | None,
        moment: dt.datetime,
    ) -> None:
        """``default``: the windows of modules that have none of their own, and of releases without one."""
        self._modules = modules
        self._default = default
        self._moment = moment
        self._dependants = requirements.dependants(list(modules.values()))

    def upgrade(self, module: model.Module, report: plan_report.ReleaseReport) -> plan_report.ReleaseReport:
        """Return the report on an upgrade that no window holds back, or that one does."""
        return self._waiting(report, self._opening([module.name]))

    def removal(
        self, module: model.Module, report: plan_report.ReleaseReport, is_there: Callable[[str], bool]
    ) -> plan_report.ReleaseReport:
        """Return the same for the removal of a disabled module: those that require it go first."""
        owners, found = [module.name], {module.name}
        while owners:
            first = [each for each in self._dependants.get(owners.pop(), ()) if is_there(each)]
            owners += set(first) - found
            found.update(first)
        return self._waiting(report, self._opening(found))

    def purge(self, purge: plan_report.Purge, successor: str | None) -> plan_report.Purge:
        """Return the same for a purge; ``successor``: the module whose release moved away from there."""
        opens = self._opening([names.ModuleName(successor or purge.release)])
        return purge if opens is None else structs.replace(purge, reason=_reason(opens, purge.reason))

    def _opening(self, owners: Iterable[names.ModuleName]) -> dt.datetime | None:
        found = (self._modules.get(name) for name in owners)
        chosen = (windows.chosen(each.config.windows if each else None, self._default) for each in found)
        return max(filter(None, (each.next_opening(self._moment) for each in chosen)), default=None)

    @staticmethod
    def _waiting(report: plan_report.ReleaseReport, opens: dt.datetime | None) -> plan_report.ReleaseReport:
        if opens is None:
            return report
        return structs.replace(report, step=plan_report.PlanStep.WAIT, reason=_reason(opens, report.reason))


def _reason(opens: dt.datetime, reason: str) -> str:
    return f"{windows.waiting(clock.rfc3339(opens.timestamp()))}: {reason}"
