"""``addon-operator health``: how objects are, by the rules of the operator."""

import sys
from typing import Final

import click

from addon_operator.cli import exit_codes, printing

_COLUMNS: Final = ("RESOURCE", "HEALTH", "message", "rule")


@click.group(cls=printing.Group)
def health() -> None:
    """Say how objects are, without a cluster."""


@health.command()
@click.argument("file", type=click.Path(allow_dash=True))
@printing.output_option("text", printing.LIST_FORMATS)
def explain(file: str, output: str) -> exit_codes.ExitCode:
    """Say how the objects in FILE, YAML or JSON, are, and which rule decides; '-' is standard input.

    Rules of module.yaml and of settings do not count, and nothing is asked of the cluster. The exit code is 3
    if an object is not healthy.
    """
    from addon_operator.commands import health_explain
    from addon_operator.commands.preview import preview_files
    from addon_operator.modules.health import resource_health
    from addon_operator.values.schema import cel_rules

    if not file:
        raise click.UsageError("FILE is empty; name a file, or - for standard input")
    manifests = preview_files.read([file], sys.stdin.buffer.read)
    evaluator = cel_rules.CelEvaluator()
    found = [health_explain.explained(each.content, evaluator) for each in manifests]
    rows = [
        (manifest.title, str(one.state), one.message, one.rule)
        for manifest, one in zip(manifests, found, strict=True)
    ]
    if output in ("text", printing.WIDE):
        click.echo(printing.listing(_COLUMNS, rows, wide=output == printing.WIDE, folds=True), nl=False)
    elif output == printing.NAME:
        click.echo("".join(printing.names(each.kind.lower(), [each.name]) for each in manifests), nl=False)
    else:
        documents = [dict(zip(map(str.lower, _COLUMNS), row, strict=True)) for row in rows]
        click.echo(printing.document(documents, output), nl=False)
    is_found = any(one.state is not resource_health.HealthState.HEALTHY for one in found)
    return exit_codes.of_check(is_found=is_found, exit_code=True)
