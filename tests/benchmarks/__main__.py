"""``python -m tests.benchmarks``: run the benchmarks and print what they found."""

import asyncio
import dataclasses
import json
import os
import pathlib
import platform
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import click
import rich.console
import rich.table

from tests.benchmarks import (
    admission,
    charts,
    drift,
    expand,
    hook_start,
    hooks,
    lifecycle,
    measures,
    memory,
    merge,
    module_tests,
    modules,
    objects,
    pages,
    releases,
    scale,
    scrape,
    values,
    webhooks,
)

_BENCHMARKS: Final[Mapping[str, Callable[[], Sequence[measures.Row]]]] = {
    "expand": expand.run,
    "merge": merge.run,
    "admission": lambda: asyncio.run(admission.run()),
    "values": values.run,
    "modules": modules.run,
    "tests": module_tests.run,
    "objects": lambda: asyncio.run(objects.run()),
    "start": hook_start.run,
    "hooks": hooks.run,
    "webhooks": webhooks.run,
    "lifecycle": lifecycle.run,
    "releases": releases.run,
    "charts": charts.run,
    "drift": drift.run,
    "scale": scale.run,
    "memory": memory.run,
    "scrape": lambda: asyncio.run(scrape.run()),
}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(_BENCHMARKS)))
@click.option("--json", "file", type=click.Path(path_type=pathlib.Path), help="Write the figures to a file.")
@click.option("--page", type=click.Path(path_type=pathlib.Path), help="Write a page with tables and plots.")
@click.option(
    "--before",
    type=click.Path(path_type=pathlib.Path, exists=True),
    help="The JSON of an earlier run: what got worse by a tenth is named.",
)
@click.option("--check", is_flag=True, help="Exit with 1 if an aim is missed.")
def main(
    names: Sequence[str],
    file: pathlib.Path | None,
    page: pathlib.Path | None,
    before: pathlib.Path | None,
    *,
    check: bool,
) -> None:
    """Run the benchmarks of these names, or all."""
    # However it is ended: no control plane and no operator stays behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    rows = [row for name in names or _BENCHMARKS for row in _run(name)]
    rich.console.Console(width=None if os.isatty(1) else 200).print(_table(rows))
    if file is not None:
        file.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=2) + "\n")
    worse: list[str] = []
    if before is not None:
        worse = measures.worse([measures.Row(**each) for each in json.loads(before.read_text())], rows)
        click.echo("\n".join(["worse than before:", *worse] if worse else ["nothing is worse than before"]))
    if page is not None:
        page.write_text(_page(rows, worse))
    if check and any(row.met is False for row in rows):
        raise SystemExit(1)


def _run(name: str) -> Sequence[measures.Row]:
    began = time.monotonic()
    click.echo(f"{name}: begins, load {os.getloadavg()[0]:.1f}", err=True)
    rows = _BENCHMARKS[name]()
    click.echo(f"{name}: done in {time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}", err=True)
    return rows


def _table(rows: Sequence[measures.Row]) -> rich.table.Table:
    title = f"Python {platform.python_version()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}"
    table = rich.table.Table(title=title, box=None, pad_edge=False, title_justify="left")
    for name in ("BENCHMARK", "CASE", "MEASURED"):
        table.add_column(name)
    for name in ("VALUE", "BASELINE", "RATIO"):
        table.add_column(name, justify="right")
    for name in ("BASELINE IS", "AIM"):
        table.add_column(name)
    for row in rows:
        table.add_row(*_cells(row))
    return table


_HEAD: Final = ("BENCHMARK", "CASE", "MEASURED", "VALUE", "BASELINE", "RATIO", "BASELINE IS", "AIM")


def _page(rows: Sequence[measures.Row], worse: Sequence[str]) -> str:
    grows: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        # What is measured at several sizes: the number in its case is the size.
        if (size := re.search(r"[0-9]+", row.case)) is not None:
            grows.setdefault(f"{row.benchmark}: {row.quantity}", []).append((float(size[0]), row.value))
    plots = [pages.plot(what, sorted(set(of))) for what, of in grows.items() if len(set(of)) > 2]
    table = pages.table(_HEAD, map(_cells, rows))
    return pages.page(f"Benchmarks, {os.cpu_count()} CPUs", pages.listed(worse), table, *plots)


def _cells(row: measures.Row) -> list[str]:
    ratio = f"{row.value / row.baseline:.2f}" if row.baseline else ""
    baseline = "" if row.baseline is None else _number(row.baseline)
    verdict = {True: ": met", False: ": MISSED", None: ""}[row.met]
    return [
        row.benchmark, row.case, row.quantity, _number(row.value), baseline, ratio,
        row.baseline_name, row.aim + verdict,
    ]  # fmt: skip


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


if __name__ == "__main__":
    main()
