"""``addon-operator hooks``: what hooks say of themselves, and which run in an operator."""

import itertools
import pathlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from addon_operator.cli import debug, exit_codes, printing
from addon_operator.hook_contract.configuration import hook_config

if TYPE_CHECKING:
    from addon_operator.commands.checks import hooks_check

_COLUMNS: Final = ("FILE", "bindings", "ORDER", "QUEUE", "error")
_RUNNING_COLUMNS: Final = ("ID", "MODULE", "HOOK", "RUNS FOR", "command")
_WARNING: Final = "warning: "


@click.group(
    cls=printing.Group, about={printing.RUNNING: ("end", "running"), printing.FILES: ("check", "schema")}
)
def hooks() -> None:
    """Check hooks without a cluster, show those that run in an operator, and end one."""


@hooks.command()
@click.argument("directory", required=False, metavar="[DIR]", type=click.Path(path_type=pathlib.Path))
@click.option("--modules-dir", "modules_dirs", metavar="PATHS", type=click.Path(),
              help="Directories with modules. [MODULES_DIR, default modules]")  # fmt: skip
@click.option("--global-hooks-dir", metavar="PATH", type=click.Path(),
              help="Directory with global hooks. [GLOBAL_HOOKS_DIR, default global-hooks]")  # fmt: skip
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@exit_codes.option("the operator would refuse a hook")
@printing.output_option("text", printing.LIST_FORMATS)
def check(
    directory: pathlib.Path | None,
    modules_dirs: str | None,
    global_hooks_dir: str | None,
    output: str,
    *,
    strict: bool,
    exit_code: bool,
) -> exit_codes.ExitCode:
    """Start every hook with --config, and check what it prints; programs with many hooks with 'hook config'.

    DIR is a directory of modules, a module, a directory of hooks, one with modules/ and global-hooks/, or one
    hook; without it, the working directory if it is a module, else all modules and global hooks of the
    settings. The exit code is 1 if the operator would refuse one, or 3 with --exit-code.
    """
    from addon_operator.commands import values_files
    from addon_operator.commands.checks import hook_places, hooks_check

    if directory is None and (here := values_files.here(modules_dirs)):
        directory = pathlib.Path(here)
    configured = hook_places.configured({"modules_dirs": modules_dirs, "global_hooks_dir": global_hooks_dir})
    places = list(configured.places()) if directory is None else configured.below(directory)
    report = hooks_check.check(places, configured.hook_env)
    if output in ("text", printing.WIDE):
        _print_table(report, wide=output == printing.WIDE)
    elif output == printing.NAME:
        click.echo(printing.names("hook", (file.shown for file in report.files)), nl=False)
    else:
        click.echo(printing.document([_plain(file) for file in report.files], output), nl=False)
    return exit_codes.of_check(is_found=report.failed(strict=strict), exit_code=exit_code)


@hooks.command()
@click.option("--global", "is_global", is_flag=True, help="Print that of global hooks instead.")
def schema(*, is_global: bool) -> None:
    """Print the JSON Schema of what a module's hook prints for --config, for editors."""
    from addon_operator.commands.authoring import hook_schema

    kind = hook_config.HookKind.GLOBAL if is_global else hook_config.HookKind.MODULE
    click.echo(printing.document(hook_schema.document(kind), "json"), nl=False)


@hooks.command()
@printing.output_option("text", printing.LIST_FORMATS)
@debug.watch_options
@debug.socket_option
def running(output: str, *, watch: bool, interval: float, socket: str | None) -> None:
    """List the hooks, enabled scripts and Helm calls that run, the longest first."""
    path = "/hooks/running.json"
    debug.look_or_watch(socket, path, output, _RUNNING, watch=watch, interval=interval)


@hooks.command()
@click.argument("number", metavar="ID", callback=printing.not_empty)
@debug.socket_option
def end(number: str, socket: str | None) -> None:
    """End what has the ID in 'hooks running', as its time limit would: it failed, and is tried again."""
    client = debug.client(socket)
    found = next((row for row in client.get("/hooks/running.json") if str(row["id"]) == number), None)
    if found is None or not client.post(f"/hooks/running/{found['id']}/end", {})["ended"]:
        raise click.ClickException(f"nothing runs with the ID {number}: 'hooks running' lists what does")
    what = f"hook {found['hook']}" if found["hook"] else found["command"][0]
    click.echo(f"{what} is being ended: that run has failed, and is tried again")


def _running(rows: debug.Document, wide: bool) -> str:
    lines = [
        (
            str(row["id"]),
            row["module"] or ("(global)" if row["hook"] else ""),
            row["hook"],
            printing.age(row["seconds"]),
            printing.one_line(" ".join(row["command"])),
        )
        for row in rows
    ]
    return (
        printing.listing(_RUNNING_COLUMNS, lines, wide=wide) if lines else "no hook and no Helm call runs\n"
    )


_RUNNING: Final = debug.Listed(_running, "hook", lambda rows: [str(row["id"]) for row in rows])


def _plain(file: "hooks_check.CheckedFile") -> dict[str, Any]:
    return {
        "file": file.shown,
        "owner": file.owner,
        "bindings": [hook_config.row_document(bound) for bound in file.bindings],
        "errors": list(file.errors),
        "warnings": list(file.warnings),
    }


def _print_table(report: "hooks_check.HooksReport", *, wide: bool) -> None:
    if report.files:
        rows = [row for file in report.files for row in _rows(file)]
        click.echo(printing.listing(_COLUMNS, rows, _style, wide=wide, folds=True), nl=False)
    errors = sum(len(file.errors) for file in report.files)
    warnings = sum(len(file.warnings) for file in report.files)
    nothing = "nothing is wrong" if report.files else "there are no hooks"
    verdict = printing.findings(((errors, "error"), (warnings, "warning")), nothing)
    click.echo(f"{printing.count(len({file.path for file in report.files}), 'file')} checked: {verdict}")


def _rows(file: "hooks_check.CheckedFile") -> Iterator[tuple[str, ...]]:
    """Yield the bindings, one below the other, and beside them what is wrong."""
    cells = [_cells(bound) for bound in file.bindings]
    findings = [*file.errors, *(f"{_WARNING}{sentence}" for sentence in file.warnings)]
    lines = list(itertools.zip_longest(cells, findings)) or [(None, None)]
    for number, (cell, finding) in enumerate(lines):
        yield file.shown if number == 0 else "", *(cell or ("", "", "")), finding or ""


def _style(row: Sequence[str]) -> str:
    if not (finding := row[-1]):
        return ""
    return printing.FINDING_STYLES["warning" if finding.startswith(_WARNING) else "error"]


def _cells(bound: "hook_config.BindingRow") -> tuple[str, str, str]:
    about = bound.crontab or bound.resources or f"{bound.api_version} {bound.kind}".strip()
    if bound.crd_name:
        about = f"{bound.crd_name}: {', '.join(bound.conversions)}"
    order = "" if bound.order is None else str(bound.order)
    return f"{bound.binding} {bound.name}".rstrip() + (f" ({about})" if about else ""), order, bound.queue
