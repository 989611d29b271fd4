"""``python -m tests.trials quiet --charts DIR``: nothing happens to charts that are left alone.

``DIR`` has the charts, one in each directory or archive. One operator installs them on a control plane of the
trial's own. An autoscaler, a platform, an inventory, an injector and admission policies write meanwhile what
is theirs. No module may have drifted, nothing may be corrected, no release may get a revision, and after a
restart no module may be red.
"""

import pathlib
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import click
import yaml

from addon_operator.devcluster import handle
from tests.benchmarks import surroundings
from tests.integration import helm_site, operator_process
from tests.trials import other_writers, public_charts, scenario


@click.command()
@click.option("--charts", type=click.Path(path_type=pathlib.Path, exists=True), required=True)
@click.option("--minutes", type=float, default=10.0, show_default=True)
@click.option("--helm", type=click.Choice(["3", "4"]), default="4", show_default=True)
@click.option(
    "--values",
    type=click.Path(path_type=pathlib.Path, exists=True),
    help="YAML file with the values that charts need, by the chart's name.",
)
@click.option(
    "--directory", type=click.Path(path_type=pathlib.Path), help="Keep modules and logs in this directory."
)
def main(
    charts: pathlib.Path,
    minutes: float,
    helm: str,
    values: pathlib.Path | None,
    directory: pathlib.Path | None,
) -> None:
    """Leave charts alone; the exit code is 1 if something happened to one."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    needed = yaml.safe_load(values.read_text()) if values else None
    with surroundings.control_plane(nodes=True) as cluster, tempfile.TemporaryDirectory() as passing:
        binary = helm_site.helm4_binary() if helm == "4" else cluster.helm
        table = run(cluster, binary, charts, needed or {}, directory or pathlib.Path(passing), minutes)
    sys.exit(public_charts.shown(table, {}))


def run(
    cluster: handle.DevCluster,
    helm: pathlib.Path,
    charts: pathlib.Path,
    values: Mapping[str, Any],
    root: pathlib.Path,
    minutes: float,
) -> public_charts.Table:
    """Return what became of each chart, by step."""
    with public_charts.opened(cluster, helm, [charts], values, root) as trial:
        return dict(_steps(trial, other_writers.Others(cluster, trial.releases), minutes * 60))


def _steps(
    trial: scenario.Trial, others: other_writers.Others, seconds: float
) -> Iterator[tuple[str, scenario.Told]]:
    operator, told = trial.install(DRIFT_MODE="correct")
    yield "install", told
    yield public_charts.timed("alone", trial.leave_alone, others, operator, seconds)
    yield "corrections", _corrections(trial, operator)
    operator, told = trial.restart(operator, DRIFT_MODE="correct")
    yield "restart", told
    operator.stop()


def _corrections(trial: scenario.Trial, operator: operator_process.OperatorProcess) -> scenario.Told:
    lines = operator.get("/metrics").text.splitlines()
    counted = [line for line in lines if "_corrected_total{" in line and not line.endswith(" 0.0")]
    return {
        name: next((f"{scenario.BAD}{line}" for line in counted if f'"{name}"' in line), "ok")
        for name in trial.names
    }


if __name__ == "__main__":
    main()
