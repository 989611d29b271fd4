"""``addon-operator dev``: the loop of edits, with a cluster and an operator."""

import contextlib
import os
import pathlib
import signal
import sys
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

import click

from addon_operator.cli import completion, devcluster

if TYPE_CHECKING:
    from addon_operator.commands.dev import dev_loop, dev_place


@click.command()
@click.argument("directory", default=".", metavar="[DIR]", type=click.Path())
@click.option(
    "--context",
    metavar="NAME",
    shell_complete=completion.complete_context,
    help="Work in the cluster of this context, not in a local one.",
)
@click.option(
    "--kubeconfig", metavar="PATH", type=click.Path(), help="The kubeconfig of --context. [KUBECONFIG]"
)
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    shell_complete=completion.complete_namespace,
    help="Namespace in the cluster of --context.",
)
@click.option("--keep", is_flag=True, help="Keep the local cluster for the next time.")
def dev(
    directory: str, context: str | None, kubeconfig: str | None, namespace: str | None, *, keep: bool
) -> None:
    """Try modules while you write them: save a file, and see what it changes.

    DIR is a directory of modules, one with modules/ and global-hooks/ in it, or one module, which is then
    alone.

    A local cluster is started, and the operator on it, which takes in what you save. You see the state of the
    modules, what the last save changed, what hooks print, and how long it took: on a terminal as one screen,
    elsewhere as lines. Ctrl-C ends all of it.

    No other cluster is ever touched, unless --context names one; --namespace is needed then. What the
    operator installed there stays.
    """
    from addon_operator.commands.dev import dev_loop, dev_place

    if context is None and (kubeconfig or namespace):
        raise click.UsageError(
            "--kubeconfig and --namespace need --context: they are about a cluster of yours"
        )
    if context is not None and namespace is None:
        raise click.UsageError("--context needs --namespace: the one in which the operator is to work")
    if context is not None and keep:
        raise click.UsageError("--keep is about the local cluster; a cluster of --context stays as it is")
    signal.signal(signal.SIGINT, _end)
    with devcluster.cleaning_up(), contextlib.ExitStack() as stack:
        of = stack.enter_context(dev_place.modules(directory))
        dev_place.check_modules(of)
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="addon-operator-dev-")))
        target = stack.enter_context(_target(context, kubeconfig, namespace, work, keep=keep))
        click.echo(f"cluster  {target.title}")
        click.echo(f"modules  {of.shown}")
        click.echo(f"ask      {target.example}")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt), _screen(target) as screen:
            dev_loop.run(target, of, work, screen)
        click.echo("ended    the operator is stopped")


def _end(*_: object) -> NoReturn:
    """Begin to end it; who presses Ctrl-C again must not leave a cluster or an operator behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _screen(target: "dev_place.Target") -> "contextlib.AbstractContextManager[dev_loop.Screen]":
    from addon_operator.cli.authoring import dev_screen

    return dev_screen.full(target.title, target.example) if sys.stdout.isatty() else dev_screen.lines()


@contextlib.contextmanager
def _target(
    context: str | None, kubeconfig: str | None, namespace: str | None, work: pathlib.Path, *, keep: bool
) -> Iterator["dev_place.Target"]:
    from addon_operator.commands.dev import dev_place

    if context is not None and namespace is not None:
        yield dev_place.named_cluster(context, namespace, kubeconfig, work, os.environ)
        return
    with dev_place.local_cluster(os.environ, devcluster.reporter(), keep=keep) as target:
        yield target
