"""``addon-operator values``: what is wrong with the values of modules, and what they come to."""

import collections
import dataclasses
import os
import pathlib
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import structs

from addon_operator.cli import debug, exit_codes, printing
from addon_operator.kernel import names
from addon_operator.values import checks

if TYPE_CHECKING:
    from addon_operator.commands.checks import values_check
    from addon_operator.values import store


class _File(click.Path):
    """A file that exists; the error for another one has its absolute path."""

    def convert(
        self, value: "str | os.PathLike[str]", param: click.Parameter | None, ctx: click.Context | None
    ) -> pathlib.Path:
        """Return the path."""
        path = pathlib.Path(value)
        if not path.is_file():
            self.fail(f"there is no file {path.absolute()}", param, ctx)
        return path


modules_dir_option: Final = click.option(
    "--modules-dir",
    "modules_dirs",
    metavar="PATHS",
    type=click.Path(),
    help="Directories with modules. [MODULES_DIR, default modules]",
)
global_hooks_dir_option: Final = click.option(
    "--global-hooks-dir",
    metavar="PATH",
    type=click.Path(),
    help="Directory with schemas of global values in openapi/. [GLOBAL_HOOKS_DIR, default global-hooks]",
)
config_option, plan_config_option = (
    click.option(
        name,
        "config",
        metavar="FILE",
        type=_File(),
        help="File to use instead of the values ConfigMap: its manifest, or a file like modules/values.yaml.",
    )
    for name in ("--values", "--config")
)


secret_option: Final = click.option(
    "--secret",
    metavar="FILE",
    type=_File(),
    help="File to use instead of the values Secret, in the same forms; its values are shown as ***.",
)


_TABLES: Final = ("text", printing.WIDE)


@click.group(cls=printing.Group)
def values() -> None:
    """Check and show the values of modules, without a cluster."""


@values.command()
@click.argument("directory", required=False, metavar="[DIR]", type=click.Path())
@modules_dir_option
@global_hooks_dir_option
@config_option
@secret_option
@click.option("--strict", is_flag=True, help="Treat unknown keywords of schemas as errors, not as warnings.")
@exit_codes.option("the operator would refuse something")
@printing.output_option("text", printing.LIST_FORMATS)
def check(
    directory: str | None,
    modules_dirs: str | None,
    global_hooks_dir: str | None,
    config: pathlib.Path | None,
    secret: pathlib.Path | None,
    output: str,
    *,
    strict: bool,
    exit_code: bool,
) -> exit_codes.ExitCode:
    """Check names, values and schemas of all modules in DIR, enabled or not.

    DIR is a module, a directory of modules, or one with modules/ and global-hooks/; without it, the working
    directory if it is a module, else the modules of the settings.

    The exit code is 1 if the operator would refuse something, or 3 with --exit-code.
    """
    from addon_operator.commands import values_files
    from addon_operator.commands.checks import values_check

    flags, only = {"modules_dirs": modules_dirs, "global_hooks_dir": global_hooks_dir}, None
    if meant := directory or values_files.here(modules_dirs):
        flags, only = values_files.flags_of(meant, global_hooks_dir)
    places = structs.replace(values_files.places(flags), only=only)
    report = values_check.check(places, config, secret, strict=strict)
    print_report(report, output)
    return exit_codes.of_check(is_found=report.failed, exit_code=exit_code)


def print_report(report: "values_check.ValuesReport", output: str) -> None:
    """Print what was found."""
    if output in _TABLES:
        print_table(report, wide=output == printing.WIDE)
    elif output == printing.NAME:
        print_names(report)
    else:
        rows = [
            {"level": str(finding.level), "subject": finding.subject, "problem": finding.problem}
            for finding in report.findings
        ]
        click.echo(printing.document(rows, output), nl=False)
    print_rest(report)


def print_names(report: "values_check.ValuesReport") -> None:
    """Print the names of modules with findings."""
    subjects = dict.fromkeys(finding.subject for finding in report.findings)
    click.echo(printing.names("module", subjects), nl=False)


def print_rest(report: "values_check.ValuesReport") -> None:
    """Print what was not looked at."""
    for note in report.notes:
        printing.note(note)


def print_table(report: "values_check.ValuesReport", *, with_rules: bool = False, wide: bool = False) -> None:
    """Print a row for each finding, and how many there are."""
    if report.findings:
        columns = ("LEVEL", *(("RULE",) if with_rules else ()), "module", "finding")
        rows = [
            (str(each.level), *((str(each.rule),) if with_rules else ()), each.subject, each.problem)
            for each in report.findings
        ]
        shown = printing.listing(
            columns, rows, lambda row: printing.FINDING_STYLES[row[0]], wide=wide, folds=True
        )
        click.echo(shown, nl=False)
    counts = collections.Counter(str(each.level) for each in report.findings)
    tally = printing.findings((counts[level], level) for level in printing.FINDING_STYLES)
    ignored = f" ({report.ignored} ignored by comments)" if report.ignored else ""
    click.echo(f"{printing.count(report.modules, 'module')} checked: {tally}{ignored}")


@values.command()
@click.argument("module", callback=printing.not_empty)
@modules_dir_option
@global_hooks_dir_option
@config_option
@secret_option
@printing.output_option("yaml", printing.LIST_FORMATS)
@click.option(
    "--origin", is_flag=True, help="Show which file or schema each value comes from, by default as a table."
)
def show(
    module: str,
    modules_dirs: str | None,
    global_hooks_dir: str | None,
    config: pathlib.Path | None,
    secret: pathlib.Path | None,
    output: str,
    *,
    origin: bool,
) -> None:
    """Show the values that the first hook of MODULE would see, merged from all files and defaults.

    MODULE is the name of a module, or 'global'. What schemas call sensitive is shown as ***, and
    what comes from the Secret.
    """
    from addon_operator.commands import values_files

    flags = {"modules_dirs": modules_dirs, "global_hooks_dir": global_hooks_dir}
    store = values_files.places(flags).load().store()
    owner = names.find(module, store.modules)
    if config is not None:
        store.set_config(values_files.read_config(config, store.modules))
        _warn(*store.config.warnings)
    if secret is not None:
        read = values_files.read_config(secret, store.modules, "Secret")
        _warn(*read.warnings)
        store.set_config(dataclasses.replace(store.config, secret=read))
    if origin:
        debug.show_origins(values_files.origins_of(store, owner), output)
    else:
        debug.refuse_rows(output)
        debug.show(store.masked_values(owner), output)
    _warn_of_violations(store, owner)


def _warn_of_violations(values: "store.ValuesStore", owner: Any) -> None:  # noqa: ANN401  # a module's name or None
    for part in dict.fromkeys((None, owner)):
        _warn(*map(str, checks.Checks(values).section_violations(part)))


def _warn(*warnings: str) -> None:
    for warning in warnings:
        printing.note(warning, "Warning")
