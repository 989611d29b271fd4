"""``addon-operator new``: a new module, or a new hook of one."""

import pathlib

import click

from addon_operator.cli import printing, values
from addon_operator.commands.authoring import new_hook, new_module
from addon_operator.commands.checks import hook_places

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
    place = directory or hook_places.configured({}).modules_dirs[0]
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
    # A test pulls a chart from a repository, and lint looks at those that were pulled.
    verbs = ("module lint", "module test") if chart is None else ("module test", "module lint")
    for verb in (*verbs, "dev"):
        click.echo(f"  addon-operator {verb} {path}")


@new.command()
@click.argument("place", metavar="MODULE/NAME", callback=printing.not_empty)
@click.option(
    "--on",
    "binding",
    type=click.Choice([str(each) for each in new_hook.Binding]),
    metavar="BINDING",
    help=f"When it runs: {', '.join(new_hook.Binding)}; by default beforeHelm, or beforeAll if it is global.",
)
@click.option("--language", type=_LANGUAGES, help="Its language; by default that of the suffix, or Python.")
@click.option("--hook", "former", type=_LANGUAGES, hidden=True, help="The former name of --language.")
@values.modules_dir_option
def hook(
    place: str, binding: str | None, language: str | None, former: str | None, modules_dirs: str | None
) -> None:
    """Write a hook NAME of MODULE, with a test; or a global hook, as global-hooks/NAME.

    MODULE is the name of a module in the modules directories, or the directory of one. NAME may end in .py or
    .sh.
    """
    flags = {"modules_dirs": modules_dirs, "global_hooks_dir": None}
    language = language or former
    where, name = new_hook.find(place, hook_places.configured(flags))
    written = new_hook.create(
        where,
        name,
        None if binding is None else new_hook.Binding(binding),
        None if language is None else new_hook.Language(language),
    )
    click.echo(written.hook)
    click.echo(written.test)
    if written.hint:
        click.echo(f"Note: {written.hint}")
