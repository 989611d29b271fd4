"""What a module is: a directory with a Helm chart, hooks, values and an ``enabled`` script, each optional."""

import pathlib

import msgspec

from addon_operator.kernel import errors, names
from addon_operator.modules import module_config


class StockChart(msgspec.Struct, frozen=True):
    """A chart as upstream publishes it, beside the module's own files or from a repository."""

    directory: pathlib.Path
    """Where it lies; what comes from a repository lies there once it was pulled."""
    values: module_config.ValuesScope = module_config.ValuesScope.ROOT
    global_keys: tuple[str, ...] | None = ()
    """Keys of the shared ``global`` that it gets if its values are at the root; ``None`` for all."""
    reference: module_config.ChartReference | None = None
    """From where it is pulled."""


class Module(msgspec.Struct, frozen=True):
    """A module as found on disk."""

    name: names.ModuleName
    order: int
    """The directory's numeric prefix, or the default for unnumbered modules."""
    path: pathlib.Path
    has_chart: bool = False
    """Whether Helm has something to install: a stock chart, or ``Chart.yaml`` or ``templates/`` exists."""
    enabled_script: pathlib.Path | None = None
    config: module_config.ModuleConfig = module_config.NOTHING
    """What ``module.yaml`` says."""
    stock: StockChart | None = None
    """``None`` if the module's directory itself is the chart, if there is one."""
    problem: str = ""
    """What is wrong with ``module.yaml``, if something is: the module fails, and nothing else does."""
    problems: tuple[str, ...] = ()
    """The same, one sentence each, where it was found in files."""
    chart_problems: tuple[str, ...] = ()
    """Those of them that are about the chart."""
    hooks_problem: str = ""
    """Why one of its hooks, or its ``enabled`` script, can never run: the module fails then, too."""

    @property
    def stopped_by(self) -> str:
        """Why the module cannot run; empty if it can."""
        return self.problem or self.hooks_problem

    @property
    def mistakes(self) -> tuple[str, ...]:
        """All that stops it, one sentence each."""
        return tuple(filter(None, (*(self.problems or (self.problem,)), self.hooks_problem)))

    @property
    def key(self) -> names.ValuesKey:
        """Key of the module's section in the values."""
        return names.values_key(self.name)

    @property
    def chart_directory(self) -> pathlib.Path:
        """Where the chart lies, if there is one."""
        return self.path if self.stock is None else self.stock.directory

    @property
    def release(self) -> str:
        """The name of the module's Helm release."""
        return self.config.release_name or self.name

    @property
    def release_title(self) -> str:
        """How people call the release: with its namespace if ``module.yaml`` says one."""
        return f"{self.config.namespace}/{self.release}" if self.config.namespace else self.release

    @property
    def run_order(self) -> tuple[int, str]:
        """Sort key of a run: lower numbers first, then by name."""
        return (self.order, self.name)


class Verdict(msgspec.Struct, frozen=True):
    """Whether a module is enabled, and why; the reason is a phrase for a person."""

    module: names.ModuleName
    enabled: bool
    reason: str
    is_chained: bool = False
    """Whether the reason is that another module is disabled, which it names."""
    lacks: str = ""
    """What it requires of the cluster that is not there, although it is enabled."""
    error: errors.AddonOperatorError | None = None
    """Why its ``enabled`` script gave no verdict, so that it stays as it was."""
