"""What the debug commands have in common: options, asking the operator, formats and tables."""

import contextlib
import datetime as dt
import json
import os
import pathlib
import time
import urllib.parse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from addon_operator.cli import completion, printing
from addon_operator.kernel import clock, errors, names, shown_texts

if TYPE_CHECKING:
    from addon_operator.commands.outside import module_requests
    from addon_operator.commands.outside import place as places
    from addon_operator.debug import debug_client

SHOW_SENSITIVE: Final = "showSensitive"
OUTSIDE: Final = "addon_operator.outside."
"""Begins the keys under which click's context keeps what names a cluster."""

_UNKNOWN_ANSWER: Final = (
    "the answer is not one of this version of addon-operator; use the command of the operator's own version, "
    "or -o json to see it as it is"
)

Command = TypeVar("Command", bound=Callable[..., Any])
Document = Any
"""Decoded JSON."""


class UnknownAnswerError(errors.AddonOperatorError):
    """What answers is an operator of another version, or not an operator."""


class Listed(printing.Listed):
    """How a list of an operator is shown as a table and by names."""

    def rendered(self, listed: Document, output: str) -> str:
        """Return the list in a format; raises :class:`UnknownAnswerError` if it is of another version."""
        return text_of(listed, lambda found: printing.Listed.rendered(self, found, output), exact=True)

    def show(self, listed: Document, output: str) -> None:
        """Print the list in a format."""
        click.echo(self.rendered(listed, output), nl=False)


def socket_option(function: Command) -> Command:
    """Add the options of a command that asks the operator, on this machine or in a cluster."""
    function = click.option(
        "--debug-unix-socket",
        "socket",
        metavar="PATH",
        type=click.Path(),
        help="Debug socket of the operator. [DEBUG_UNIX_SOCKET]",
    )(function)
    for flags, name, metavar, type_, complete, help_ in (
        (
            ("-n", "--namespace"),
            "namespace",
            "NAME",
            str,
            completion.complete_namespace,
            "Its namespace, by default that of the context.",
        ),
        (("--context",), "context", "NAME", str, completion.complete_context, "Context of the kubeconfig."),
        (
            ("--kubeconfig",),
            "kubeconfig",
            "PATH",
            click.Path(),
            None,
            "Ask that cluster's operator. [KUBECONFIG]",
        ),
    ):
        # Their values are for `place_or_socket` alone, and no command's business.
        function = click.option(
            *flags,
            name,
            metavar=metavar,
            type=type_,
            help=help_,
            expose_value=False,
            callback=_remember,
            shell_complete=complete,
        )(function)
    return function


def _remember(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    if not value.strip():
        raise click.BadParameter("it is empty; leave the option out for the usual one", ctx, param)
    if param.name == "namespace" and not names.is_dns_label(value):
        no_name = f"{value!r} cannot be the name of a namespace: lower-case letters, digits and dashes"
        raise click.BadParameter(no_name, ctx, param)
    ctx.meta[OUTSIDE + str(param.name)] = value


def place_or_socket(socket: str | None) -> "places.Place | pathlib.Path":
    """Return the cluster whose operator is asked, or the socket of one on this machine, such as of ``dev``.

    Raises :class:`.AccessError` if there is no way to a cluster.
    """
    meta = click.get_current_context().meta
    flags = {name: meta.get(OUTSIDE + name) for name in ("kubeconfig", "context", "namespace")}
    is_named, is_here = any(flags.values()), _is_here(socket)
    if is_named and socket is not None:
        raise click.UsageError("--debug-unix-socket is on this machine: leave out what names a cluster")
    if is_here and not is_named:
        return _socket_path(socket)
    from addon_operator.commands.outside import dev_operators
    from addon_operator.commands.outside import place as places

    has_kubeconfig = any((flags["kubeconfig"], flags["context"], places.has_kubeconfig(os.environ)))
    here = _socket_path(None) if is_here else None
    if here and not has_kubeconfig and dev_operators.works_in(here, flags["namespace"], None):
        return here
    place = places.named(**flags, environ=os.environ) if is_named or has_kubeconfig else None
    # Without a kubeconfig, it was asked already.
    if (
        here
        and has_kubeconfig
        and place
        and dev_operators.works_in(here, place.namespace, place.access.server)
    ):
        return here
    return dev_operators.socket(place, os.environ) or place or _socket_path(socket)


def refuse_operator(socket: str | None, why: str) -> None:
    """Raise a usage error if an operator is named that is not asked."""
    meta = click.get_current_context().meta
    if socket is not None or any(str(key).startswith(OUTSIDE) for key in meta):
        raise click.UsageError(f"{why}, and no operator is asked: leave out what names one")


def outside_requests(socket: str | None) -> "module_requests.ModuleRequests | None":
    """Return what asks something of modules through their objects; ``None`` for an operator here."""
    if isinstance(place := place_or_socket(socket), pathlib.Path):
        return None
    from addon_operator.commands.outside import module_requests

    return module_requests.ModuleRequests(place)


def _is_here(socket: str | None) -> bool:
    """Say whether an operator's socket is named, or there."""
    from addon_operator.settings import settings_loading

    field = "debug_unix_socket"
    found = settings_loading.some([field], {field: socket}, os.environ)
    return found.origins[field] != "default" or found.values[field].exists()


def sensitive_option(function: Command) -> Command:
    """Add the option of a command that prints values."""
    return click.option(
        "--show-sensitive", is_flag=True, help="Show values marked x-sensitive, and the data of Secrets."
    )(function)


def watch_options(function: Command) -> Command:
    """Return the options of a command that can be watched."""
    watch = click.option("-w", "--watch", is_flag=True, help="Refresh the output until Ctrl-C.")
    interval = click.option(
        "-t",
        "--interval",
        "--watch-interval",
        type=Seconds(),
        default="1s",
        show_default=True,
        metavar="DURATION",
        help="Time between two refreshes.",
    )
    return watch(interval(function))


class Seconds(click.ParamType[float]):
    """A duration as Go writes it, more than 0."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds of a time span."""
        if isinstance(value, float):
            return value
        try:
            seconds = clock.parse_duration(str(value))
        except clock.DurationError as error:
            self.fail(str(error), param, ctx)
        if seconds <= 0:
            self.fail(f"{value!r} must be more than 0", param, ctx)
        return seconds


def client(socket: str | None, *, is_slow: bool = False) -> "debug_client.DebugClient":
    """Return the way to the operator; ``is_slow``: it may take long to answer.

    Raises :class:`.SettingsError` for an invalid path, and :class:`.AccessError`.
    """
    from addon_operator.debug import debug_client

    timeout = debug_client.RENDER_SECONDS if is_slow else debug_client.TIMEOUT_SECONDS
    return client_of(place_or_socket(socket), timeout)


def client_of(place: "places.Place | pathlib.Path", seconds: float) -> "debug_client.DebugClient":
    """Return the way to the operator there, which has so long to answer."""
    if isinstance(place, pathlib.Path):
        from addon_operator.debug import debug_client

        return debug_client.DebugClient(place, seconds)
    from addon_operator.commands.outside import pod_client

    return pod_client.PodClient(place, seconds)


def _socket_path(socket: str | None) -> pathlib.Path:
    """Return the socket of the operator on this machine; raises :class:`.SettingsError`."""
    from addon_operator.settings import settings_loading

    field = "debug_unix_socket"
    path: pathlib.Path = settings_loading.some([field], {field: socket}, os.environ).values[field]
    return path


def module_path(module: str, rest: str) -> str:
    """Return the path of a question about a module."""
    return f"/module/{urllib.parse.quote(module, safe='')}/{rest}"


def add_dump(group: click.Group, what: str, default: str, help_: str, *options: Any) -> None:  # noqa: ANN401
    """Add the command that prints values, patches or snapshots: of a module if that is among ``options``."""

    def dump(
        output: str,
        socket: str | None,
        *,
        show_sensitive: bool,
        module: str | None = None,
        with_global: bool = False,
        origin: bool = False,
    ) -> None:
        if origin and module is not None:
            found = client(socket).get(
                module_path(module, "origins.json"), query(**{SHOW_SENSITIVE: show_sensitive})
            )
            show_origins(found, output)
            return
        refuse_rows(output)
        path = f"/global/{what}.json" if module is None else module_path(module, f"{what}.json")
        flags = {"global": with_global, SHOW_SENSITIVE: show_sensitive}
        show(client(socket).get(path, query(**flags)), output)

    command: Callable[..., Any] = dump
    formats = printing.LIST_FORMATS if what == "values" and group.name == "module" else printing.FORMATS
    output = printing.output_option(default, formats)
    for option in (socket_option, sensitive_option, output, *reversed(options)):
        command = option(command)
    group.command(what, help=help_)(command)


def show_origins(document: Document, output: str) -> None:
    """Print where values come from: as a table, unless a format was asked for."""
    source = click.get_current_context().get_parameter_source("output")
    is_chosen = source is not click.core.ParameterSource.DEFAULT
    _ORIGINS.show(document, output if is_chosen else "text")


def refuse_rows(output: str) -> None:
    """Refuse formats of rows for a document; raises a usage error."""
    if output in (printing.WIDE, printing.NAME):
        raise click.UsageError(f"-o {output} is for --origin, which prints rows")


_VALUE_SHOWN: Final = 120
"""Characters of a value in a table that is not wide: there is a row for each value, however long it is."""


def _origins(document: Document, wide: bool) -> str:
    def shown(value: object) -> str:
        text = printing.one_line(json.dumps(value, ensure_ascii=False))
        return text if wide or len(text) <= _VALUE_SHOWN else f"{text[: _VALUE_SHOWN - 1]}…"

    rows = [(each["path"], shown(each["value"]), each["origin"]) for each in document["values"]]
    # The end of an origin says the line.
    return (
        printing.listing(("PATH", "value", "origin"), rows, wide=wide, folds=True) if rows else "no values\n"
    )


_ORIGINS: Final = Listed(
    _origins, "value", lambda document: [str(each["path"]).lstrip("/") for each in document["values"]]
)


def query(**flags: bool) -> dict[str, str]:
    """Return the flags of a request that are set."""
    return {name: "true" for name, is_set in flags.items() if is_set}


def show(document: Document, output: str, text: "Callable[[Document], str] | None" = None) -> None:
    """Print a document in a format; ``text`` makes its text, which is YAML otherwise."""
    click.echo(rendered(document, output, text), nl=False)


def rendered(document: Document, output: str, text: "Callable[[Document], str] | None" = None) -> str:
    """Return the document in a format."""
    if output == "text" and text is not None:
        return text_of(document, text)
    return printing.document(document, output)


def text_of(document: Document, text: Callable[[Document], str], *, exact: bool = False) -> str:
    """Return the document as ``text`` writes it; raises :class:`UnknownAnswerError` if it cannot."""
    try:
        return text(document if exact else shown_texts.shown_within(document))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UnknownAnswerError(_UNKNOWN_ANSWER) from None


def look_or_watch(
    socket: str | None,
    path: str,
    output: str,
    listed: Listed,
    *,
    watch: bool,
    interval: float,
    **flags: bool,
) -> None:
    """Show what the operator answers at a path, once or again and again; ``flags`` go into the request."""
    asked = client(socket)

    def look() -> str:
        return listed.rendered(asked.get(path, query(**flags)), output)

    if watch:
        watched(look, interval)
    else:
        click.echo(look(), nl=False)


def watched(look: Callable[[], str], interval: float) -> None:
    """Show what ``look`` gives again and again, in place on a terminal, until Ctrl-C.

    Raises what ``look`` raises the first time; later it is shown instead.
    """
    import rich.live
    import rich.text

    shown = look()
    console = printing.console()
    live = rich.live.Live(console=console, screen=True, auto_refresh=False)
    with live if console.is_terminal else contextlib.nullcontext():
        try:
            while True:
                if console.is_terminal:
                    moment = dt.datetime.now().astimezone().isoformat(timespec="seconds")
                    text = rich.text.Text.from_ansi(f"{moment}\n\n{shown}", no_wrap=True)
                    live.update(text, refresh=True)
                else:
                    click.echo(shown)
                time.sleep(interval)
                shown = _look_again(look)
        except KeyboardInterrupt:
            return


def _look_again(look: Callable[[], str]) -> str:
    try:
        return look()
    except errors.AddonOperatorError as error:
        return f"{shown_texts.shown(str(error))}\n"


def lines(texts: Sequence[str], nothing: str) -> str:
    """Return one text per line, or ``nothing`` if there are none."""
    return "".join(f"{text}\n" for text in texts or [nothing])


@click.command()
@click.argument("urlpath", callback=printing.not_empty)
@click.option(
    "--post", metavar="FORM", help="Send this form, such as name=log.level&value=debug; or none: ''."
)
@socket_option
def raw(urlpath: str, post: str | None, socket: str | None) -> None:
    """Print the answer of the debug endpoint at URLPATH, such as /queue/list.yaml; /discovery lists all."""
    path = urlpath if urlpath.startswith("/") else f"/{urlpath}"
    asked = client(socket, is_slow=True)
    text = asked.get_text(path) if post is None else asked.post_text(path, post)
    printing.show_text(text if text.endswith("\n") else f"{text}\n")
