"""``addon-operator lint``: all that is wrong with modules on disk."""

from typing import TYPE_CHECKING

import click
from msgspec import structs

from addon_operator.cli import exit_codes, printing, values

if TYPE_CHECKING:
    from addon_operator.commands.checks import lint_formats

_FORMATS = (*printing.LIST_FORMATS, "github", "sarif")


@click.command()
@click.argument("directories", nargs=-1, metavar="[DIR]...", type=click.Path())
@values.modules_dir_option
@values.global_hooks_dir_option
@click.option(
    "--only",
    "topics",
    multiple=True,
    type=click.Choice(["module", "values", "hooks"]),
    help="Show what is wrong with this alone. May be repeated.",
)
@click.option("--strict", is_flag=True, help="Treat unknown keywords of schemas as errors, not as warnings.")
@exit_codes.option("the operator or Helm would refuse something")
@printing.output_option("text", _FORMATS)
def lint(
    directories: tuple[str, ...],
    modules_dirs: str | None,
    global_hooks_dir: str | None,
    topics: tuple[str, ...],
    output: str,
    *,
    strict: bool,
    exit_code: bool,
) -> exit_codes.ExitCode:
    """Find all mistakes in modules on disk: module.yaml, hooks, charts and what they render to, values.

    Charts are rendered with the values of the files alone, and once more with each file in examples/. What
    comes out is checked by the schemas of Kubernetes that the last local control plane left in its cache.
    Hooks are started with --config.

    DIR is a module, a directory of modules, or one with modules/ and global-hooks/; several are looked at one
    by one, but for definitions (crds/) that modules of several have. Without it, the working
    directory is looked at if it is a module, else the modules of the settings. No cluster is needed.

    A comment '# lint: ignore RULE REASON' ignores a rule in its file; in module.yaml, in all of the module.

    The exit code is 1 if the operator or Helm would refuse something, or 3 with --exit-code.
    """
    from addon_operator.commands import values_files
    from addon_operator.commands.checks import lint_formats, lint_rules, module_lint

    flags: dict[str, str | None] = {"modules_dirs": modules_dirs, "global_hooks_dir": global_hooks_dir}
    if not directories and (here := values_files.here(modules_dirs)):
        directories = (here,)
    chosen = [values_files.flags_of(each, global_hooks_dir) for each in directories] or [({}, None)]
    places = [structs.replace(values_files.places(flags | below), only=only) for below, only in chosen]
    report = module_lint.of_all(places, strict=strict)
    if topics:
        kept = tuple(each for each in report.findings if lint_rules.topic(each.rule) in topics)
        report = structs.replace(report, findings=kept)
    if output in ("text", printing.WIDE):
        values.print_table(report, with_rules=True, wide=output == printing.WIDE)
    elif output == printing.NAME:
        values.print_names(report)
    else:
        located = lint_formats.located(report.findings, module_lint.directories(places))
        printing.show_text(_text(located, output))
    values.print_rest(report)
    return exit_codes.of_check(is_found=report.failed, exit_code=exit_code)


def _text(located: "lint_formats.Located", output: str) -> str:
    from addon_operator.commands.checks import lint_formats

    if output == "github":
        return "".join(f"{line}\n" for line in lint_formats.github(located))
    if output == "sarif":
        return printing.document(lint_formats.sarif(located), "json")
    return printing.document(lint_formats.rows(located), output)
