"""``addon-operator version``."""

import click

import addon_operator


@click.command()
def version() -> None:
    """Print the version of the operator."""
    click.echo(f"addon-operator {addon_operator.__version__}")
