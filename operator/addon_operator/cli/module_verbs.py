"""Verbs of ``addon-operator module`` in a file of their own: suspending, resuming, testing, and why."""

import asyncio
import getpass
import os
import pathlib
import socket as sockets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from addon_operator.cli import completion, debug, exit_codes, plan, printing, values

if TYPE_CHECKING:
    from addon_operator.testing import counting

_COLUMNS: Final = ("MODULE", "PASSED", "FAILED", "SKIPPED")
_END_OF_OPTIONS: Final = "--"
_ARGUMENTS: Final = "arguments of pytest"


class _Text(click.ParamType[str]):
    """A text that says something."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.strip():
            self.fail("it is empty: say why, for everybody who looks at the module", param, ctx)
        return value


@click.command()
@completion.module_argument("name")
@click.option(
    "--reason",
    metavar="'TEXT'",
    type=_Text(),
    required=True,
    help="Why it is left alone, and whom to ask, as everybody sees in 'module list' and on the page.",
)
@click.option(
    "--for", "duration", metavar="DURATION", type=debug.Seconds(), help="End it by itself after this time."
)
@click.option("--replace", "replaces", is_flag=True, help="Replace what somebody said before.")
@debug.socket_option
def suspend(name: str, reason: str, duration: float | None, socket: str | None, *, replaces: bool) -> None:
    """Have Helm and healing leave MODULE alone, also after a restart; its hooks continue.

    This is the maintenance of the values ConfigMap, kept in annotations of the Module object.
    """
    if (asked := debug.outside_requests(socket)) is not None:
        told = asked.suspend(name, reason, duration, replaces=replaces)
    else:
        form = {"reason": reason, "by": f"{_user()} on {sockets.gethostname()}"}
        form |= {} if duration is None else {"for": f"{duration}s"}
        form |= {"replace": "true"} if replaces else {}
        told = debug.client(socket).post(debug.module_path(name, "suspend"), form)
    click.echo(debug.text_of(told, _suspended))


@click.command()
@completion.module_argument("name")
@debug.socket_option
def resume(name: str, socket: str | None) -> None:
    """Look after MODULE again that was suspended: what changed meanwhile is applied."""
    if (asked := debug.outside_requests(socket)) is not None:
        told = asked.resume(name)
    else:
        told = debug.client(socket).post(debug.module_path(name, "resume"), {})
    click.echo(debug.text_of(told, _resumed))


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A container's user without a name.
        return "somebody"


def _suspended(told: debug.Document) -> str:
    return f"module {told['name']} is {told['suspended']}"


def _resumed(told: debug.Document) -> str:
    if unseen := told.get("unseen"):
        return (
            f"{unseen}; no operator had taken them in, so whether one looks after the module is not known: "
            "'module list' shows it"
        )
    return f"module {told['name']} is looked after again"


class _WithArgumentsOfPytest(click.Command):
    """Takes what stands after ``--`` for pytest."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index(_END_OF_OPTIONS) if _END_OF_OPTIONS in args else len(args)
        ctx.meta[_ARGUMENTS] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


@click.command(
    "test", cls=_WithArgumentsOfPytest, options_metavar="[OPTIONS]", short_help="Run the tests of modules."
)
@click.argument("directories", nargs=-1, metavar="[DIR]... [-- PYTEST ARGUMENTS]", type=click.Path())
@click.option("--snapshot-update", "updates", is_flag=True, help="Write snapshots anew.")
@click.option(
    "--keep-namespace", "keeps", is_flag=True, help="Keep the namespace of an operator whose test failed."
)
@click.pass_context
def test(
    ctx: click.Context, directories: tuple[str, ...], *, updates: bool, keeps: bool
) -> exit_codes.ExitCode:
    """Run the tests of modules and global hooks on disk: tests/*.yaml and tests/test_*.py of each.

    DIR is a module, a directory of modules, global-hooks/, or one with both in it; without it, the
    current directory if it is one of these, else the modules of the settings. What stands after -- is for
    pytest.

    It needs pytest: pip install 'pytest>=9.1'. The exit code is 1 if a test fails, or if there are no tests.
    """
    from addon_operator.testing import suites

    own = [*(["--snapshot-update"] if updates else []), *(["--keep-namespace"] if keeps else [])]
    modules = suites.chosen(directories)
    try:
        outcome = suites.run(modules, [*own, *ctx.meta[_ARGUMENTS]])
    except suites.ArgumentsError as error:
        raise click.UsageError(str(error)) from None
    click.echo()
    click.echo(printing.listing(_COLUMNS, _rows(outcome.counts)), nl=False)
    if not any(each.has_tests for each in outcome.counts):
        click.echo("no tests; write some into tests/ of a module")
    return exit_codes.of_check(is_found=not outcome.has_passed, exit_code=False)


def _rows(counts: "Sequence[counting.Counts]") -> list[tuple[str, ...]]:
    names = [each.module.name for each in counts]
    shown = names if len(set(names)) == len(names) else [os.path.relpath(each.module) for each in counts]
    return [
        (name, *map(str, (each.passed, each.failed, each.skipped)))
        if each.has_tests
        else (name, "no tests", "-", "-")
        for name, each in zip(shown, counts, strict=True)
    ]


Document = dict[str, Any]


@click.command()
@completion.module_argument("name")
@click.argument(
    "wanted", metavar="[KIND/NAME]", required=False, default="", shell_complete=completion.complete_object
)
@click.argument("path", metavar="[PATH]", required=False, default="", shell_complete=completion.complete_path)
@values.modules_dir_option
@values.global_hooks_dir_option
@values.config_option
@values.secret_option
@click.option(
    "--state",
    metavar="FILE",
    type=click.Path(),
    help="File of 'plan --record' to use instead of the cluster.",
)
@printing.output_option("text", printing.LIST_FORMATS)
@debug.socket_option
def why(name: str, wanted: str, path: str, output: str, socket: str | None, **given: Any) -> None:  # noqa: ANN401
    """Show where a field of an object of MODULE comes from: values, their sources, the template's line.

    PATH is that of the field, as /spec/replicas or spec.replicas. Without it, all fields are shown; without
    KIND/NAME, all objects. The chart is rendered with other values to find it out, a few times and for two
    seconds at most; what is not found then is said to be unknown. Values that are sensitive are not shown.

    A running operator answers. With one of --modules-dir, --global-hooks-dir, --values, --secret and --state,
    files do, with the same words; no cluster is needed then, and hooks are not run.
    """
    if any(each is not None for each in given.values()):
        debug.refuse_operator(socket, "files answer")
        _show(_by_files(given, name, wanted, path), output)
        return
    query = {key: text for key, text in (("object", wanted), ("path", path)) if text}
    found = debug.client(socket, is_slow=True).get(debug.module_path(name, "why.json"), query)
    _show(found, output)


def _show(found: Document, output: str) -> None:
    (_OBJECTS if "objects" in found else _FIELDS).show(found, output)


def _by_files(given: Document, name: str, wanted: str, path: str) -> Any:  # noqa: ANN401  # decoded JSON
    from addon_operator.commands import offline_why
    from addon_operator.commands.plan_state import plan_state

    state = given["state"] and plan_state.read(pathlib.Path(given["state"]).absolute())
    environ = {**(plan.settings_of(state) if state else {}), **os.environ}
    flags = {field: given[field] for field in ("modules_dirs", "global_hooks_dir")}
    chosen = offline_why.Given(flags, given["config"], given["secret"], state)
    answer = asyncio.run(offline_why.of(chosen, environ, name, wanted, path))
    for note in answer.notes:
        printing.note(note)
    return answer.document


def _objects(document: Document, wide: bool) -> str:
    rows = [(each["object"], each["template"]) for each in document["objects"]]
    return printing.listing(("OBJECT", "template"), rows, wide=wide, folds=True) if rows else "no objects\n"


def _fields(document: Document, _: bool) -> str:
    lines = [f"{document['object']} ({document['template']})"]
    for field in document["fields"]:
        lines += _field(field)
    return "".join(f"{line}\n" for line in lines)


def _field(field: Document) -> Iterator[str]:
    line = "" if field["line"] is None else f", line {field['line']} of the template"
    yield f"{field['path']}: {printing.one_line(field['value'])}"
    if not field["values"]:
        yield f"  {field['cause']}{line}"
        return
    yield f"  {field['cause']} {', '.join(each['key'] for each in field['values'])}{line}"
    yield from (f"    {each['key']}: {each['origin']}" for each in field["values"])


_OBJECTS: Final = debug.Listed(
    _objects, "object", lambda document: [each["object"] for each in document["objects"]]
)
_FIELDS: Final = debug.Listed(
    _fields, "field", lambda document: [str(each["path"]).lstrip("/") for each in document["fields"]]
)
