"""``addon-operator completion``: what a shell runs to complete our commands."""

from typing import Final

import click
from click import shell_completion

PROGRAM: Final = "addon-operator"
VARIABLE: Final = "_ADDON_OPERATOR_COMPLETE"
"""The variable by which click learns that it is asked for completions."""
SHELLS: Final[dict[str, type[shell_completion.ShellComplete]]] = {
    "bash": shell_completion.BashComplete,
    "zsh": shell_completion.ZshComplete,
    "fish": shell_completion.FishComplete,
}


_HELP: Final = """Print the completion script for SHELL.

\b
bash:  source <(addon-operator completion bash)
zsh:   source <(addon-operator completion zsh)
fish:  addon-operator completion fish | source
"""


@click.command(help=_HELP)
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell."""
    made = SHELLS[shell](ctx.find_root().command, {}, PROGRAM, VARIABLE)
    # BashComplete.source starts a bash to learn its version; the shell that reads this knows it.
    click.echo(shell_completion.ShellComplete.source(made))
