"""What the shell is offered: names of the operator here, or else of the cluster or the kubeconfig."""

import atexit
import os
import pathlib
import signal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from addon_operator.cli import printing
from addon_operator.kernel import errors

if TYPE_CHECKING:
    from addon_operator.cli import debug
    from addon_operator.commands.outside import place as places

_SECONDS: Final = 1.0
"""Who presses Tab does not wait longer."""
_SPARE_SECONDS: Final = 0.25
"""What is needed besides to ask somebody for so long."""

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def bounded(last_words: str = "", *, is_asked: bool = True) -> None:
    """See to it that completing ends in time, whatever hangs, and writes nothing but what is offered.

    ``last_words`` are printed if there is nothing to offer by then; nothing happens unless the shell asks.
    """
    if not is_asked:
        return

    def end(_: int, __: object) -> None:
        os.write(1, last_words.encode())
        os._exit(0)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS + _SPARE_SECONDS)
    # The interpreter takes the handler away first when it ends.
    atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def completing(path: str, names: Callable[["debug.Document"], Sequence[str]]) -> Complete:
    """Return what completes names of the answer at a path for the shell; none if nobody answers at once."""
    return _offering(lambda ctx: names(_answer(ctx, path)))


def _offering(find: Callable[[click.Context], Sequence[Any]]) -> Complete:
    """Return what offers names that begin as the word does; none if they cannot be found."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        try:
            found = [str(name) for name in find(ctx)]
        except (errors.AddonOperatorError, click.ClickException, OSError, KeyError, TypeError):
            return []
        return [name for name in found if name.startswith(incomplete)]

    return complete


def _answer(ctx: click.Context, path: str, **query: str) -> Any:  # noqa: ANN401  # decoded JSON
    """Ask the operator here, or else that of the cluster."""
    from addon_operator.cli import debug

    return debug.client_of(_place(ctx), _SECONDS).get(path, query)


def _place(ctx: click.Context) -> "places.Place | pathlib.Path":
    from addon_operator.cli import debug

    # While the shell completes, no command is current.
    with ctx:
        return debug.place_or_socket(ctx.params.get("socket"))


def complete_module(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of modules for the shell: of the operator here, or else of the cluster, if quick."""
    return _complete_module(ctx, parameter, incomplete)


def _modules(ctx: click.Context) -> Sequence[str]:
    from addon_operator.cli import debug

    place = _place(ctx)
    if isinstance(place, pathlib.Path):
        return [row["name"] for row in debug.client_of(place, _SECONDS).get("/module/list.json")["modules"]]
    from addon_operator.commands.outside import module_requests

    # Module objects are there for more people than the pod is.
    return module_requests.listed(place, _SECONDS)


_complete_module: Final = _offering(_modules)


def _contexts(ctx: click.Context) -> Sequence[str]:
    from addon_operator.kube.access import auth

    return auth.contexts(_kubeconfig(ctx), os.environ)


complete_context: Final = _offering(_contexts)
"""Offers the contexts of the kubeconfig."""


def _namespaces(ctx: click.Context) -> Sequence[str]:
    from addon_operator.commands.outside import module_requests
    from addon_operator.commands.outside import place as places

    place = places.named(_kubeconfig(ctx), _given(ctx, "context", "kube_context"), None, os.environ)
    return module_requests.namespaces(place, _SECONDS)


complete_namespace: Final = _offering(_namespaces)
"""Offers the namespaces of the cluster."""


def _kubeconfig(ctx: click.Context) -> str | None:
    return _given(ctx, "kubeconfig", "kube_config")


def _given(ctx: click.Context, *names: str) -> str | None:
    """Return the value of an option that commands keep in one of two ways."""
    from addon_operator.cli import debug

    found = [ctx.params.get(name) or ctx.meta.get(debug.OUTSIDE + name) for name in names]
    return next((str(each) for each in found if each), None)


def _objects(ctx: click.Context) -> Sequence[str]:
    return [row["object"] for row in _why(ctx)["objects"]]


complete_object: Final = _offering(_objects)
"""Offers KIND/NAME of what the chart of a module renders."""


def _why(ctx: click.Context, **query: str) -> Any:  # noqa: ANN401  # decoded JSON
    from addon_operator.cli import debug

    return _answer(ctx, debug.module_path(str(ctx.params["name"]), "why.json"), **query)


def complete_path(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return paths of an object's fields for the shell: in dots, or as pointers."""

    def paths(ctx: click.Context) -> list[str]:
        found = _why(ctx, object=str(ctx.params["wanted"]), paths="true")["paths"]
        return [path if incomplete[:1] == "/" else _dotted(path) for path in found]

    return _offering(paths)(ctx, parameter, incomplete)


def _dotted(pointer: str) -> str:
    has_dots = "." in pointer or "~" in pointer
    return pointer if has_dots else pointer.removeprefix("/").replace("/", ".")


def module_argument(name: str) -> Callable[[printing.Command], printing.Command]:
    """Return the argument of a command that asks an operator about a module: its name, completed."""
    return click.argument(name, metavar="MODULE", callback=printing.not_empty, shell_complete=complete_module)
