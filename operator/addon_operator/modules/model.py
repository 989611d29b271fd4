"""What a module is: a directory with a Helm chart, hooks, values and an ``enabled`` script, each optional."""

import dataclasses
import pathlib

from addon_operator.kernel import names


@dataclasses.dataclass(frozen=True, slots=True)
class Module:
    """A module as found on disk."""

    name: names.ModuleName
    order: int
    """The directory's numeric prefix, or the default for unnumbered modules."""
    path: pathlib.Path
    has_chart: bool = False
    """Whether Helm has something to install: ``Chart.yaml`` or ``templates/`` exists."""
    enabled_script: pathlib.Path | None = None

    @property
    def key(self) -> names.ValuesKey:
        """Key of the module's section in the values."""
        return names.values_key(self.name)

    @property
    def run_order(self) -> tuple[int, str]:
        """Sort key of a run: lower numbers first, then by name."""
        return (self.order, self.name)


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a module is enabled, and why; the reason is a phrase for a person."""

    module: names.ModuleName
    enabled: bool
    reason: str
