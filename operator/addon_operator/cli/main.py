"""The command line: a table of verbs, each in a file of its own that is imported when it is used."""

import errno
import importlib
import os
import pathlib
import platform
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import click
from click import shell_completion

import addon_operator
from addon_operator.cli import completion as completing
from addon_operator.cli import exit_codes, printing
from addon_operator.kernel import errors

COMMANDS: Final[Mapping[str, str]] = {
    "config": "addon_operator.cli.config:config",
    "devcluster": "addon_operator.cli.devcluster:devcluster",
    "dev": "addon_operator.cli.authoring.dev:dev",
    "global": "addon_operator.cli.module:global_",
    "health": "addon_operator.cli.health:health",
    "hooks": "addon_operator.cli.authoring.hooks:hooks",
    "lint": "addon_operator.cli.authoring.lint:lint",
    "module": "addon_operator.cli.module:module",
    "new": "addon_operator.cli.authoring.new:new",
    "notify": "addon_operator.cli.notify:notify",
    "plan": "addon_operator.cli.plan:plan",
    "page": "addon_operator.cli.page:page",
    "preview": "addon_operator.cli.preview:preview",
    "queue": "addon_operator.cli.queue_:queue",
    "raw": "addon_operator.cli.debug:raw",
    "settings": "addon_operator.cli.settings:settings",
    "start": "addon_operator.cli.start:start",
    "values": "addon_operator.cli.values:values",
    "wait": "addon_operator.cli.wait:wait",
}
"""Name of each verb and where its click command is; two small ones are at the end of this file."""

ABOUT: Final[Mapping[str, Sequence[str]]] = {
    printing.RUNNING: ("config", "global", "hooks", "module", "notify", "page", "queue", "raw", "wait"),
    printing.FILES: ("dev", "health", "lint", "new", "preview", "values"),
    "The operator": ("plan", "settings", "start"),
}
"""The verbs by what they are about."""

PROGRAM: Final = "addon-operator"
PLUGIN: Final = "kubectl addon-operator"
DEFAULT_COMMAND: Final = "start"
VARIABLE: Final = "_ADDON_OPERATOR_COMPLETE"
"""The variable by which click learns that it is asked for completions."""
SHELLS: Final = ("bash", "zsh", "fish")
_COMPLETION_HELP: Final = """Print the completion script for SHELL.

\b
bash:  source <(addon-operator completion bash)
zsh:   source <(addon-operator completion zsh)
fish:  addon-operator completion fish | source
"""


_OF_PLACE: Final = ("-n", "--namespace", "--context", "--kubeconfig")
_GROUPS: Final = ("module", "queue", "config", "global", "notify")
"""Where a command is looked for that is given without its group, the likeliest first."""


class LazyGroup(printing.Group):
    """A group whose commands are imported on first use, and whose default is ``start``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted, without importing one."""
        return sorted({*super().list_commands(ctx), *COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of that name."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        return cast("click.Command", getattr(importlib.import_module(module), attribute))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; options of ``start`` may stand without it, as with the Go operator."""
        own = {"--", *(option for parameter in self.get_params(ctx) for option in parameter.opts)}
        args = self._with_place_behind(ctx, args)
        if args and args[0].startswith("-") and args[0] not in own:
            args = [DEFAULT_COMMAND, *args]
        return super().parse_args(ctx, args)

    def _with_place_behind(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put options that say where the operator is, which kubectl takes before a command, behind it."""
        number = 0
        while number < len(args) and args[number].partition("=")[0] in _OF_PLACE:
            number += 1 if "=" in args[number] else 2
        place, rest = args[:number], args[number:]
        words, group = 0, cast("click.Command | None", self)
        while words < len(rest) and isinstance(group, click.Group):
            if (group := group.get_command(ctx, rest[words])) is None:
                break
            words += 1
        return [*rest[:words], *place, *rest[words:]] if words else args

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is named; the error for an unknown one has the names that are like it."""
        if args[0] not in self.list_commands(ctx) and not ctx.resilient_parsing:
            name = args[0]
            groups = {each: self.get_command(ctx, each) for each in _GROUPS}
            found = [each for each, group in groups.items() if name in getattr(group, "commands", ())]
            if found:
                raise click.UsageError(
                    f"there is no command {name!r}; did you mean '{found[0]} {name}'?", ctx
                )
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[shell_completion.CompletionItem]:
        """Return names of commands for the shell, without importing one: their help would cost a second."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [
            *map(shell_completion.CompletionItem, names),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]


@click.group(
    cls=LazyGroup,
    about=ABOUT,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(addon_operator.__version__, message="addon-operator %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Install and keep alive the add-ons of a Kubernetes cluster.

    Without a command, the operator starts; it takes the options of start.
    """
    if ctx.invoked_subcommand is None:
        command = cli.get_command(ctx, DEFAULT_COMMAND)
        if command is None:
            raise click.UsageError("name a command")
        with command.make_context(DEFAULT_COMMAND, [], parent=ctx) as started:
            command.invoke(started)


@cli.command(help=_COMPLETION_HELP)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell."""
    completion = cast("type[shell_completion.ShellComplete]", shell_completion.get_completion_class(shell))(
        ctx.find_root().command, {}, PROGRAM, VARIABLE
    )
    # BashComplete.source starts a bash to learn its version; the shell that reads this knows it.
    click.echo(shell_completion.ShellComplete.source(completion))


@cli.command()
@printing.output_option("text")
def version(output: str) -> None:
    """Print the version of the operator."""
    found = {"version": addon_operator.__version__, "python": platform.python_version()}
    text = f"addon-operator {addon_operator.__version__}\n"
    click.echo(text if output == "text" else printing.document(found, output), nl=False)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line, and end with an exit code; an error of the user's is one sentence."""
    _open_what_is_closed()
    color = False if os.environ.get("NO_COLOR") else None
    completing.bounded(is_asked=VARIABLE in os.environ)
    try:
        result: Any = cli.main(
            args=None if args is None else list(args),
            prog_name=_program(),
            standalone_mode=False,
            color=color,
        )
        sys.stdout.flush()
        sys.exit(result if isinstance(result, int) else exit_codes.ExitCode.NOTHING)
    except errors.AddonOperatorError as error:
        _fail(str(error) if sys.stderr.isatty() else error.line, color=color)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(exit_codes.ExitCode.USAGE)
    except click.UsageError as error:
        printing.show_error(printing.usage_sentence(error), color)
        sys.exit(exit_codes.ExitCode.USAGE)
    except click.ClickException as error:
        _fail(error.format_message(), color=color)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(exit_codes.ExitCode.INTERRUPTED)
    except BrokenPipeError:
        _write_no_more()
        sys.exit(exit_codes.ExitCode.FAILED)
    except OSError as error:
        if error.errno in _OF_OUTPUT and error.filename is None:
            _write_no_more()
            _fail(f"the output cannot be written: {error.strerror}", color=color)
        _fail(_of_system(error), color=color)


def _open_what_is_closed() -> None:
    """Let what is written to a closed output go nowhere, and not into the next file that is opened."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            os.dup2(opened, number)
            if opened != number:
                os.close(opened)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


_NO_FILES, _FILES, _DIRECTORIES = 4, 0, 16
"""What the shell offers besides, as cobra numbers it for kubectl."""


def complete_for_kubectl(args: Sequence[str] | None = None) -> None:
    """Print completions of ``kubectl addon-operator`` as kubectl wants them; it gives all words so far.

    kubectl 1.26 and later looks for this program as ``kubectl_complete-addon_operator``.
    """
    if args is None:
        completing.bounded(f":{_NO_FILES}\n")
    *before, incomplete = list(sys.argv[1:] if args is None else args) or [""]
    completer = shell_completion.ShellComplete(cli, {}, PLUGIN, VARIABLE)
    found = completer.get_completions(before, incomplete)
    kinds = {item.type for item in found}
    for item in found:
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(f":{_FILES if 'file' in kinds else _DIRECTORIES if 'dir' in kinds else _NO_FILES}")


def _program() -> str:
    """Return how the user calls this program: it is a plugin of kubectl, too."""
    return PLUGIN if pathlib.Path(sys.argv[0]).name.startswith("kubectl-") else PROGRAM


_OF_OUTPUT: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def _of_system(error: OSError) -> str:
    """Say what the system refused that nobody expected: no user can do anything with the way to it."""
    reason = error.strerror or type(error).__name__
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)[-_SHOWN:]}: {reason}; correct its name or its permissions"
    try:
        pathlib.Path.cwd()
    except OSError:
        return "the working directory does not exist any more; change into another one"
    return f"the system refuses what this command needs: {reason}"


_SHOWN: Final = 300
"""How many characters of a path are shown, the last ones."""


def _write_no_more() -> None:
    """Have nothing fail once more at the end: what was printed is still in a buffer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, *, color: bool | None) -> None:
    printing.show_error(message, color)
    sys.exit(exit_codes.ExitCode.FAILED)
