"""``addon-operator new``: a new module, or a new hook of one."""

import pathlib

import click

from addon_operator.cli import printing, values
from addon_operator.commands.authoring import new_hook, new_module

_LANGUAGES = click.Choice([str(each) for each in new_hook.Language])


@click.group(cls=printing.Group)
def new() -> None:
    """Write a new module, or a hook of one, to begin with; nothing is overwritten."""


@new.command()
@click.argument("name", callback=printing.not_empty)
@click.argument("directory", required=False, metavar="[DIR]", type=click.Path(path_type=pathlib.Path))
@click.option("--order", type=click.IntRange(0, 999_999), help="Its order; by default behind all others.")
@click.option(
    "--chart", metavar="REPOSITORY/NAME@VERSION", help="Install this chart, from oci://… or https://…."
)
@click.option("--hook", "language", type=_LANGUAGES, help="Write a first hook, too.")
@click.option("--schema", "with_schema", is_flag=True, help="Write schemas for the values, also for editors.")
def module(
    name: str,
    directory: pathlib.Path | None,
    order: int | None,
    chart: str | None,
    language: str | None,
    *,
    with_schema: bool,
) -> None:
    """Write a module NAME into DIR, by default the modules directory of the settings.

    It has a chart that renders, values, a test and a README. With --chart it has that chart instead of one of
    its own.
    """
    place = directory or _modules_dirs(None)[0]
    path = new_module.create(
        new_module.Request(
            name=name,
            directory=place,
            order=order,
            chart=None if chart is None else new_module.parse_chart(chart),
            language=None if language is None else new_hook.Language(language),
            with_schema=with_schema,
        )
    )
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        click.echo(file)
    click.echo("Next:")
    for verb in ("module lint", "module test", "dev"):
        click.echo(f"  addon-operator {verb} {path}")


@new.command()
@click.argument("place", metavar="MODULE/NAME", callback=printing.not_empty)
@click.option(
    "--on",
    "binding",
    type=click.Choice([str(each) for each in new_hook.Binding]),
    metavar="BINDING",
    default=str(new_hook.Binding.BEFORE_HELM),
    show_default=True,
    help=f"When it runs: {', '.join(new_hook.Binding)}.",
)
@click.option(
    "--hook", "language", type=_LANGUAGES, help="Its language; by default that of the suffix, or Python."
)
@values.modules_dir_option
def hook(place: str, binding: str, language: str | None, modules_dirs: str | None) -> None:
    """Write a hook NAME of MODULE, with a test.

    MODULE is the name of a module in the modules directories, or the directory of one. NAME may end in .py or
    .sh.
    """
    path, name = new_hook.find(place, _modules_dirs(modules_dirs))
    chosen = None if language is None else new_hook.Language(language)
    written = new_hook.create(path, name, new_hook.Binding(binding), chosen)
    click.echo(written.hook)
    click.echo(written.test)
    if written.hint:
        click.echo(f"Note: {written.hint}")


def _modules_dirs(named: str | None) -> tuple[pathlib.Path, ...]:
    from addon_operator.commands.checks import values_files

    return values_files.places({"modules_dirs": named, "global_hooks_dir": None}).modules_dirs
