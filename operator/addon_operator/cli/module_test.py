"""``addon-operator module test``: tests of modules on disk."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from addon_operator.cli import printing

if TYPE_CHECKING:
    from addon_operator.testing import suites

_COLUMNS: Final = ("MODULE", "PASSED", "FAILED", "SKIPPED")
_END_OF_OPTIONS: Final = "--"
_ARGUMENTS: Final = "arguments of pytest"


class _WithArgumentsOfPytest(click.Command):
    """Takes what stands after ``--`` for pytest."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index(_END_OF_OPTIONS) if _END_OF_OPTIONS in args else len(args)
        ctx.meta[_ARGUMENTS] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


@click.command(
    "test", cls=_WithArgumentsOfPytest, options_metavar="[OPTIONS]", short_help="Run the tests of modules."
)
@click.argument("directories", nargs=-1, metavar="[DIR]... [-- PYTEST ARGUMENTS]")
@click.option("--snapshot-update", "updates", is_flag=True, help="Write snapshots anew.")
@click.option(
    "--keep-namespace", "keeps", is_flag=True, help="Keep the namespace of an operator whose test failed."
)
@click.pass_context
def test(ctx: click.Context, directories: tuple[str, ...], *, updates: bool, keeps: bool) -> int:
    """Run the tests of modules on disk: tests/*.yaml and tests/test_*.py of each.

    DIR is a module, a directory of modules, or one with modules/ in it; without it, the current directory if
    it is one of these, else the modules of the settings. What stands after -- is for pytest.

    It needs pytest: pip install 'addon-operator[testing]'. The exit code is 1 if a test fails, or if there
    are no tests.
    """
    from addon_operator.testing import suites

    own = [*(["--snapshot-update"] if updates else []), *(["--keep-namespace"] if keeps else [])]
    outcome = suites.run(suites.chosen(directories), [*own, *ctx.meta[_ARGUMENTS]])
    click.echo()
    click.echo(printing.table(_COLUMNS, _rows(outcome.counts)), nl=False)
    if not any(each.has_tests for each in outcome.counts):
        click.echo("no tests; write some into tests/ of a module")
    return outcome.exit_code


def _rows(counts: "Sequence[suites.Counts]") -> list[tuple[str, ...]]:
    return [
        (each.module.name, *map(str, (each.passed, each.failed, each.skipped)))
        if each.has_tests
        else (each.module.name, "no tests", "-", "-")
        for each in counts
    ]
