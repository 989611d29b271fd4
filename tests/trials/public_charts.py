"""``python -m tests.trials.public_charts CHART…``: try charts as modules, from the first install to the end.

A CHART is a chart's directory, an archive, or a directory of those. They are pushed into a registry of the
trial's own, and one operator installs all of them on a control plane of the trial's own.
"""

import contextlib
import pathlib
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any, ParamSpec

import click
import rich.console
import rich.table
import yaml

from addon_operator.devcluster import handle
from tests.benchmarks import surroundings
from tests.integration import chart_repositories, helm_site, operator_site
from tests.trials import other_writers, packed, release_view, scenario

_Given = ParamSpec("_Given")
Table = dict[str, scenario.Told]
"""What became of each chart, by step."""


@click.command()
@click.argument("charts", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path, exists=True))
@click.option("--helm", type=click.Choice(["3", "4"]), default="4", show_default=True)
@click.option(
    "--values",
    type=click.Path(path_type=pathlib.Path, exists=True),
    help="YAML file with the values that charts need, by the chart's name.",
)
@click.option(
    "--alone",
    type=float,
    default=1.0,
    show_default=True,
    help="Minutes for which the charts are left alone while others write to their objects.",
)
@click.option(
    "--directory", type=click.Path(path_type=pathlib.Path), help="Keep modules and logs in this directory."
)
def main(
    charts: Sequence[pathlib.Path],
    helm: str,
    values: pathlib.Path | None,
    alone: float,
    directory: pathlib.Path | None,
) -> None:
    """Try CHARTS as modules; the exit code is 1 if one of them does not behave."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    needed = yaml.safe_load(values.read_text()) if values else None
    with surroundings.control_plane(nodes=True) as cluster, tempfile.TemporaryDirectory() as passing:
        binary = helm_site.helm4_binary() if helm == "4" else cluster.helm
        root = directory or pathlib.Path(passing)
        table, said = run(cluster, binary, charts, needed or {}, root, alone=alone)
    sys.exit(shown(table, said))


def run(
    cluster: handle.DevCluster,
    helm: pathlib.Path,
    paths: Sequence[pathlib.Path],
    values: Mapping[str, Any],
    root: pathlib.Path,
    *,
    alone: float = 0.2,
) -> tuple[Table, Mapping[tuple[str, str], str]]:
    """Try the charts; return what became of each, and the errors that the operator gave for wrong edits.

    They are left alone for ``alone`` minutes.
    """
    with opened(cluster, helm, paths, values, root) as trial:
        with futures.ThreadPoolExecutor(2) as pool:
            found = pool.map(lambda each: packed.edits(each, helm), trial.charts)
            trial.edits.update(zip(trial.names, found, strict=True))
        table = dict(_steps(trial, other_writers.Others(cluster, trial.releases), alone * 60))
    return table, trial.said


@contextlib.contextmanager
def opened(
    cluster: handle.DevCluster,
    helm: pathlib.Path,
    paths: Sequence[pathlib.Path],
    values: Mapping[str, Any],
    root: pathlib.Path,
) -> Iterator[scenario.Trial]:
    """Make a module of each chart, and serve the charts as long as the trial goes on."""
    (root / "packed").mkdir(parents=True)
    charts = packed.find(paths, helm, root / "packed", values)
    site = operator_site.Site(cluster, cluster.namespace("trial"), root / "site")
    site.use_helm(helm, validates=True)
    releases = release_view.Releases(cluster, site.namespace)
    trial = scenario.Trial(charts, site, releases, {}, {})
    with (
        chart_repositories.registry(helm, root) as registry,
        contextlib.closing(site),
        contextlib.closing(releases.api),
    ):
        for chart in charts:
            registry.push(chart.archive)
        trial.write_modules(registry.address)
        yield trial


def _steps(
    trial: scenario.Trial, others: other_writers.Others, alone: float
) -> Iterator[tuple[str, scenario.Told]]:
    """Do all steps, one after another."""
    before = trial.releases.all_objects()
    yield timed("lint", trial.lint)
    yield timed("plan", trial.plan, "install")
    operator, told = trial.install()
    yield "install", told
    yield timed("plan after", trial.plan, "nothing")
    operator, told = trial.restart(operator)
    yield "restart", told
    yield timed("alone", trial.leave_alone, others, operator, alone)
    yield timed("heal", trial.heal)
    yield timed("edit", trial.edit)
    for sort in (packed.Edit.SCHEMA, packed.Edit.RENDER, packed.Edit.API):
        yield timed(sort, trial.wrong, sort, operator)
    yield timed("off", trial.switch_off, before)
    operator.stop()


def timed(
    step: str, do: Callable[_Given, scenario.Told], *given: _Given.args, **named: _Given.kwargs
) -> tuple[str, scenario.Told]:
    began = time.monotonic()
    told = do(*given, **named)
    bad = [f"{name} {text}" for name, text in told.items() if text.startswith(scenario.BAD)]
    click.echo("\n  ".join([f"{step}: {time.monotonic() - began:.0f} s", *bad]), err=True)
    return step, told


def shown(table: Table, said: Mapping[tuple[str, str], str]) -> int:
    """Print what became of the charts; return the exit code."""
    shown = rich.table.Table(box=None, pad_edge=False)
    for title in ("CHART", *table):
        shown.add_column(title.upper())
    for name in dict.fromkeys(name for told in table.values() for name in told):
        cells = [told.get(name, "-") for told in table.values()]
        shown.add_row(name, *("NOT" if cell.startswith(scenario.BAD) else cell for cell in cells))
    rich.console.Console(width=220).print(shown)
    for (name, sort), text in said.items():
        click.echo(f"{name}, {sort}: {text}")
    bad = [
        f"{name}, {step}: {text}"
        for step, told in table.items()
        for name, text in told.items()
        if text.startswith(scenario.BAD)
    ]
    click.echo("\n".join(bad) or "All charts behave.")
    return 1 if bad else 0


if __name__ == "__main__":
    main()
