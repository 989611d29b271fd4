"""``addon-operator module`` and ``global``: modules and global hooks that run, and modules on disk."""

import json
import pathlib
import urllib.parse
from typing import Final

import click

from addon_operator.cli import completion, debug, exit_codes, module_tables, module_verbs, printing
from addon_operator.cli.authoring import lint as linting
from addon_operator.kernel import errors

_module: Final = completion.module_argument("module")
_global: Final = click.option(
    "-g", "--global", "with_global", is_flag=True, help="Also show the global ones."
)

_origin: Final = click.option("--origin", is_flag=True, help="Show where each value of MODULE comes from.")


class RunFailedError(errors.AddonOperatorError):
    """The run that a user waited for failed."""


@click.group(
    cls=printing.Group,
    about={
        printing.RUNNING: (
            "config",
            "describe",
            "diff",
            "list",
            "patches",
            "remove",
            "render",
            "resource-monitor",
            "resume",
            "retry",
            "run",
            "snapshots",
            "suspend",
            "values",
            "why",
        ),
        printing.FILES: ("lint", "schema", "test"),
    },
)
def module() -> None:
    """Show and run the modules of a running operator, and check those on disk."""


module.add_command(module_verbs.suspend)
module.add_command(module_verbs.resume)
module.add_command(module_verbs.test)
module.add_command(module_verbs.why)
module.add_command(linting.lint)


@module.command("list", context_settings={"allow_extra_args": True})
@click.pass_context
@printing.output_option("text", printing.LIST_FORMATS)
@debug.watch_options
@debug.socket_option
def list_(ctx: click.Context, output: str, *, watch: bool, interval: float, socket: str | None) -> None:
    """List the modules with state, health, revision, last run, and a message.

    The message is the last error, or what a module is for, or the reason of its state. -o wide has all of
    them, what modules require, and the objects that several modules have. Modules that do not work are first
    in tables; -o yaml, json and name keep run order. Narrow terminals show fewer columns.
    """
    if ctx.args:
        raise click.UsageError(f"the list has all modules: 'module describe {ctx.args[0]}' shows one", ctx)
    debug.look_or_watch(
        socket, "/module/list.json", output, module_tables.LISTED, watch=watch, interval=interval
    )


for _what, _default, _help, _options in (
    ("values", "yaml", "Print the values of MODULE.", (_module, _global, _origin)),
    ("config", "yaml", "Print the values of MODULE in the ConfigMap.", (_module, _global)),
    ("patches", "json", "Print the JSON patches of MODULE's hooks.", (_module,)),
    (
        "snapshots",
        "yaml",
        "Print the snapshots of MODULE's hooks: the objects of their bindings.",
        (_module,),
    ),
):
    debug.add_dump(module, _what, _default, _help, *_options)


@module.command("resource-monitor")
@printing.output_option("text", printing.LIST_FORMATS)
@debug.socket_option
def resource_monitor(output: str, socket: str | None) -> None:
    """List the watched resources of releases."""
    module_tables.MONITORED.show(debug.client(socket).get("/module/resource-monitor.json"), output)


@module.command()
@_module
@click.option("--diff", is_flag=True, help="Show how the cluster would change, found by a dry run.")
@click.option("--debug", is_flag=True, hidden=True, expose_value=False, help="Accepted for old scripts.")
@exit_codes.option("--diff shows a difference")
@debug.sensitive_option
@debug.socket_option
def render(
    module: str,
    *,
    diff: bool,
    exit_code: bool,
    show_sensitive: bool,
    socket: str | None,
) -> exit_codes.ExitCode:
    """Print the manifest that the chart of MODULE renders to with the current values.

    With --diff, the exit code is 1 if there is a difference, and after an error; --exit-code makes it 3 for
    a difference.
    """
    from addon_operator.debug import debug_client

    query = debug.query(**{"diff": diff, debug.SHOW_SENSITIVE: show_sensitive})
    text = debug.client(socket, is_slow=True).get_text(debug.module_path(module, "render"), query)
    printing.show_text(text)
    if not text:
        click.echo(f"module {module} has no chart, or it renders to nothing", err=True)
    is_found = diff and text != debug_client.NO_DIFFERENCES
    return exit_codes.of_check(is_found=is_found, exit_code=exit_code)


def _no_directory(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(f"--values is a file everywhere; write --values-of {value}", ctx)


@module.command()
@click.option("--tests", "of_tests", is_flag=True, help="Print that of tests/*.yaml instead.")
@click.option(
    "--values-of",
    "of_values",
    metavar="MODULE_DIR",
    type=click.Path(),
    help="Print that of a module's values.yaml instead.",
)
@click.option("--values", hidden=True, expose_value=False, callback=_no_directory)
def schema(*, of_tests: bool, of_values: str | None) -> None:
    """Print the JSON Schema of module.yaml, for editors."""
    from addon_operator.commands.checks import values_schema
    from addon_operator.modules import editor_schema
    from addon_operator.testing.cases import case_schema

    if of_values is not None:
        made = values_schema.of_directory(pathlib.Path(of_values).absolute())
    else:
        made = case_schema.for_editors() if of_tests else editor_schema.schema()
    click.echo(json.dumps(made, indent=2))


@module.command()
@completion.module_argument("name")
@click.option("--wait", "waits", is_flag=True, help="Wait for the end of the run.")
@click.option("--now", is_flag=True, help="Do not wait for a window this once; a disabled module is removed.")
@debug.socket_option
def run(name: str, socket: str | None, *, waits: bool, now: bool) -> None:
    """Run MODULE now, all its steps, although nothing changed; a failed one does not wait for its next try.

    With --wait, exit code 1 if the run fails.
    """
    if (asked := debug.outside_requests(socket)) is not None:
        row = asked.run(name, waits=waits, now=now)
        ends = _has_run if waits else _is_asked
    else:
        query = urllib.parse.urlencode(debug.query(wait=waits, now=now))
        path = debug.module_path(name, f"run?{query}".removesuffix("?"))
        row = debug.client(socket, is_slow=waits).post(path, {})
        ends = _has_run if waits else _will_run
    click.echo(debug.text_of(row, ends))


@module.command()
@completion.module_argument("name")
@click.option("--pending", is_flag=True, help="Show what waits for a window.")
@exit_codes.option("there is a difference")
@printing.output_option("text")
@debug.socket_option
def diff(
    name: str, output: str, socket: str | None, *, pending: bool, exit_code: bool
) -> exit_codes.ExitCode:
    """Show what others changed of MODULE's resources: field, who wrote it, and both values.

    With --pending, show what waits for a window, and how it would change the last revision. Data of Secrets
    and sensitive values are hidden. The exit code is 1 if there is a difference, and after an error;
    --exit-code makes it 3 for a difference.
    """
    from addon_operator.debug import debug_client

    if not pending:
        found = debug.client(socket).get(debug.module_path(name, "diff.json"))
        debug.show(found, output, module_tables.differences)
        return exit_codes.of_check(is_found=bool(found["differences"]), exit_code=exit_code)
    text = debug.client(socket, is_slow=True).get_text(
        debug.module_path(name, "diff"), debug.query(pending=True)
    )
    printing.show_highlighted(text, "diff")
    return exit_codes.of_check(is_found=text != debug_client.NOTHING_PENDING, exit_code=exit_code)


@module.command()
@completion.module_argument("name")
@debug.socket_option
def retry(name: str, socket: str | None) -> None:
    """Try MODULE again now, whose run or removal failed; what succeeded is not repeated."""
    row = debug.client(socket).post(debug.module_path(name, "retry"), {})
    click.echo(debug.text_of(row, _will_run))


@module.command()
@completion.module_argument("name")
@click.option("--confirm", is_flag=True, help="Confirm the removal, which begins then.")
@debug.socket_option
def remove(name: str, socket: str | None, *, confirm: bool) -> None:
    """Confirm the removal of MODULE, or of a release without a module, that waits for it.

    A module is removed when it is disabled or its directory goes; with removal.confirm in its module.yaml
    only after this.
    """
    query = urllib.parse.urlencode(debug.query(confirm=confirm))
    row = debug.client(socket).post(debug.module_path(name, f"remove?{query}".removesuffix("?")), {})
    click.echo(debug.text_of(row, lambda row: f"the removal of {row['name']} is confirmed, and begins"))


def _will_run(row: debug.Document) -> str:
    soon = f"module {row['name']} runs as soon as its queue lets it; 'module describe' shows how it goes"
    return soon + _left_alone(row)


def _is_asked(row: debug.Document) -> str:
    # Only the annotation is known to be there, not whether an operator sees it.
    asked = f"module {row['name']} is asked to run; --wait waits for the operator's answer"
    return asked + _left_alone(row)


def _left_alone(row: debug.Document) -> str:
    return f"; Helm leaves it alone, as it is {text}" if (text := row.get("suspended")) else ""


def _has_run(row: debug.Document) -> str:
    if row["state"] in ("Failed", "Deleting"):
        raise RunFailedError(f"the run of module {row['name']} failed: {row['lastError']}")
    return "; ".join([f"module {row['name']} is {row['state']}", *module_tables.besides(row)])


@module.command()
@completion.module_argument("name")
@printing.output_option("text")
@debug.socket_option
def describe(name: str, output: str, socket: str | None) -> None:
    """Describe MODULE: state, reason, the whole last error, release, hooks, shared and absent objects."""
    path = debug.module_path(name, "describe.json")
    debug.show(debug.client(socket).get(path), output, module_tables.description)


@click.group("global", cls=printing.Group)
def global_() -> None:
    """Show global hooks and values of a running operator."""


@global_.command("list")
@printing.output_option("text", printing.LIST_FORMATS)
@debug.socket_option
def list_global(output: str, socket: str | None) -> None:
    """List the global hooks, what is registered, and what of them does not work."""
    _GLOBAL_HOOKS.show(debug.client(socket).get("/global/list.json"), output)


for _what, _default, _help in (
    ("values", "yaml", "Print the current global values."),
    ("config", "yaml", "Print the global values of the ConfigMap."),
    ("patches", "json", "Print the JSON patches of global hooks."),
    ("snapshots", "yaml", "Print the snapshots of global hooks: the objects of their bindings."),
):
    debug.add_dump(global_, _what, _default, _help)


def _hooks(document: debug.Document, _: bool) -> str:
    answering = map(module_tables.answering_text, document.get("answering", ()))
    said = dict.fromkeys([*document["globalHooks"], *answering, *document.get("troubles", ())])
    return debug.lines([*said], "no global hooks")


_GLOBAL_HOOKS: Final = debug.Listed(_hooks, "hook", lambda document: document["globalHooks"])
