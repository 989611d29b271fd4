"""What commands print: tables as wide as the terminal, lines where there is none, documents, and help."""

import dataclasses
import datetime as dt
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import msgspec
import orjson
from click import shell_completion

from addon_operator.kernel import names as known_names
from addon_operator.kernel import shown_texts

if TYPE_CHECKING:
    import rich.console

Command = TypeVar("Command", bound=Callable[..., Any])
FORMATS: Final = ("text", "yaml", "json")
"""Of commands that print one document."""
LIST_FORMATS: Final = ("text", "wide", "yaml", "json", "name")
"""Of commands that print rows."""
TABLE: Final = "table"
"""How the format ``text`` is called; the old name is still taken."""
WIDE: Final = "wide"
NAME: Final = "name"
FINDING_STYLES: Final = {"error": "bold red", "warning": "yellow"}
_THEME: Final = "ansi_dark"
_UNFOLDED_WIDTH: Final = 100_000
"""Where there is no terminal, each row is one line: for ``grep`` and the like."""
_GAP: Final = 2
"""Between two columns."""
_LINE_WIDTH: Final = 200
"""What is cut to a line gets no more than this, whatever there is room for."""
_TEXT_WIDTH: Final = 20
"""A column of texts is not made narrower, as long as others can be."""
_USEFUL_WIDTH: Final = 48
"""A column of texts says something with so much; less important columns make room for it."""
_LEAST_WIDTH: Final = 8
"""A column is not cut to less, unless it has less."""


def console(least: int = 0) -> "rich.console.Console":
    """Return a console as wide as the terminal and at least ``least``, so that a long line is readable."""
    import rich.console

    console = rich.console.Console(markup=False, highlight=False, emoji=False)
    if not sys.stdout.isatty():
        console.width = _UNFOLDED_WIDTH
    elif console.width < least:
        console.width = least
    return console


def listing(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    style: Callable[[Sequence[str]], str] = lambda _: "",
    *,
    wide: bool = False,
    folds: bool = False,
    spared: Sequence[str] = (),
) -> str:
    """Return the one kind of table that commands print: as wide as the terminal, or ``wide`` with all of it.

    Each row is one line. Columns whose names are written in lower case are cut first, the longest one before
    the others. Where there is no terminal, nothing is cut but what is longer than a line. With ``folds``,
    these columns go on in the next line instead, and where there is no terminal, nothing is cut: for findings
    and reasons, of which the end counts as much as the beginning. A text with a word that has no room in its
    column, such as a path, stands below its row, where nothing breaks it. Columns that are ``spared`` go, one
    after the other, as long as texts have no useful width.
    """
    import rich.cells

    shown = [tuple(map(shown_texts.shown_line, row)) for row in rows]
    widths = [max(map(rich.cells.cell_len, cells)) for cells in zip(columns, *shown, strict=True)]
    room = console().width if folds else min(console().width, _LINE_WIDTH)
    kept = _kept(columns, widths, () if wide else spared, room)
    widths = [widths[number] for number in kept]
    cut_first = [columns[number].islower() for number in kept]
    if not wide:
        widths = _fitted(widths, cut_first, room - _GAP * (len(kept) - 1))
    titles = [_cut(columns[number].upper(), width) for number, width in zip(kept, widths, strict=True)]
    layout = _Layout(titles, widths, [folds and may for may in cut_first])
    rendered, pending = "", list[tuple[list[str], str]]()
    for row in shown:
        cells, below = layout.cells([row[number] for number in kept])
        pending.append((cells, style(row)))
        if below:
            rendered += layout.lines(pending, with_titles=not rendered) + below
            pending = []
    return rendered + (layout.lines(pending, with_titles=not rendered) if pending or not rendered else "")


class _Layout(msgspec.Struct, frozen=True):
    """The columns of a table, and how wide they are."""

    titles: Sequence[str]
    widths: Sequence[int]
    folded: Sequence[bool]

    def cells(self, row: Sequence[str]) -> tuple[list[str], str]:
        """Return what stands in the columns, and the lines below for what has no room there."""
        cells, below = [], ""
        is_one = sum(self.folded) == 1
        for title, width, is_folded, text in zip(self.titles, self.widths, self.folded, row, strict=True):
            if is_folded and any(len(word) > width for word in text.split()):
                below += f"  {text}\n" if is_one else f"  {title.lower()}: {text}\n"
                cells.append("…")
            else:
                cells.append(text if is_folded else _cut(text, width))
        return cells, below

    def lines(self, rows: Sequence[tuple[Sequence[str], str]], *, with_titles: bool) -> str:
        """Return rows, each with its style, as lines."""
        import rich.table
        import rich.text

        made = rich.table.Table(
            box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", show_header=with_titles
        )
        for title, width, is_folded in zip(self.titles, self.widths, self.folded, strict=True):
            made.add_column(title, width=width, no_wrap=not is_folded, overflow="fold")
        for cells, style in rows:
            made.add_row(*map(rich.text.Text, cells), style=style)
        printer = console(_UNFOLDED_WIDTH)
        with printer.capture() as captured:
            printer.print(made)
        return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def _kept(columns: Sequence[str], widths: Sequence[int], spared: Sequence[str], room: int) -> list[int]:
    """Return the numbers of the columns that stay, so that those of texts have a useful width."""
    kept = list(range(len(columns)))
    for name in spared:
        wanted = (
            min(widths[number], _USEFUL_WIDTH) if columns[number].islower() else widths[number]
            for number in kept
        )
        if sum(wanted) + _GAP * (len(kept) - 1) <= room:
            break
        kept.remove(columns.index(name))
    return kept


def _fitted(widths: Sequence[int], is_cut_first: Sequence[bool], room: int) -> list[int]:
    """Return widths that fit into a room, if that leaves some of each column."""
    fitted = list(widths)
    for least, cut in (
        (_TEXT_WIDTH, is_cut_first),
        (_LEAST_WIDTH, is_cut_first),
        (_LEAST_WIDTH, [True] * len(widths)),
    ):
        numbers = [number for number, may in enumerate(cut) if may]
        while sum(fitted) > room and numbers:
            widest = max(numbers, key=lambda number: fitted[number])
            if fitted[widest] <= least:
                break
            fitted[widest] -= 1
    return fitted


def names(kind: str, found: Iterable[str]) -> str:
    """Return what ``-o name`` prints: ``module/web``, one in each line."""
    return "".join(f"{kind}/{shown_texts.shown_line(name)}\n" for name in found)


def _cut(text: str, room: int) -> str:
    import rich.cells

    if rich.cells.cell_len(text) <= room:
        return text
    return rich.cells.set_cell_size(text, room - 1).rstrip() + "…"


def count(number: int, noun: str) -> str:
    """Return a count of something: ``1 file``, ``2 files``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def findings(counts: Iterable[tuple[int, str]], nothing: str = "nothing is wrong") -> str:
    """Say how many errors and warnings a check found."""
    return ", ".join(count(number, noun) for number, noun in counts if number) or nothing


class _Format(click.ParamType[str]):
    """One of the formats; ``table`` is ``text`` for the command."""

    name = "format"

    def __init__(self, formats: Sequence[str]) -> None:
        self._taken = {TABLE if each == "text" else each: each for each in formats}

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002 - as click calls it
        return f"[{'|'.join(self._taken)}]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if text in self._taken.values():
            return text
        if text not in self._taken:
            self.fail(f"{text!r} is not one of {', '.join(map(repr, self._taken))}.", param, ctx)
        return self._taken[text]

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - as click calls it
        param: click.Parameter,  # noqa: ARG002 - as click calls it
        incomplete: str,
    ) -> list[shell_completion.CompletionItem]:
        return [shell_completion.CompletionItem(each) for each in self._taken if each.startswith(incomplete)]


def output_option(default: str, formats: Sequence[str] = FORMATS) -> Callable[[Command], Command]:
    """Add the option for the format of the output."""
    return click.option(
        "-o",
        "--output",
        type=_Format(formats),
        default=TABLE if default == "text" else default,
        show_default=True,
        help="Format of the output.",
    )


def show_error(message: str, color: bool | None = None) -> None:
    """Print an error of the user's."""
    word = click.style("Error:", fg="red", bold=True)
    click.echo(f"{word} {shown_texts.shown(message)}", err=True, color=color)


def note(text: str, word: str = "Note") -> None:
    """Print something beside the output that people should know."""
    click.echo(f"{click.style(f'{word}:', fg='yellow')} {shown_texts.shown(text)}", err=True)


def show_text(text: str) -> None:
    """Print a text of somebody else: as it is, but on a terminal only what that shows and does not obey."""
    click.echo(shown_texts.shown(text) if sys.stdout.isatty() else text, nl=False)


def document(value: Any, output: str) -> str:  # noqa: ANN401  # decoded JSON
    """Return a document as JSON or YAML."""
    if output == "json":
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
    from addon_operator.documents import yaml_writing

    return yaml_writing.dump(value)


@dataclasses.dataclass(frozen=True, slots=True)
class Listed:
    """How a list is shown as a table and by names."""

    table: Callable[[Any, bool], str]
    """Gets the list, and whether all of it is wanted."""
    kind: str
    """What one of the list is, in ``-o name``."""
    names: Callable[[Any], Iterable[str]]

    def rendered(self, listed: Any, output: str) -> str:  # noqa: ANN401  # decoded JSON
        """Return the list in a format."""
        if output == NAME:
            return names(self.kind, self.names(listed))
        if output in ("text", WIDE):
            return self.table(listed, output == WIDE)
        return document(listed, output)


def show_highlighted(text: str, language: str) -> None:
    """Print a text as :func:`show_text` does, with colors on a terminal."""
    import rich.syntax

    printer = console()
    if printer.is_terminal and not printer.no_color:
        made = rich.syntax.Syntax("", language, theme=_THEME).highlight(shown_texts.shown(text))
        printer.print(made, soft_wrap=True, end="")
    else:
        show_text(text)


def age(seconds: float) -> str:
    """Return a time span for people: ``0.3s``, ``12s``, ``3m5s``, ``4h10m``, ``2d3h``."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    if not minutes:
        return f"{rest}s"
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes}m{rest}s"
    days, hours = divmod(hours, 24)
    return f"{days}d{hours}h" if days else f"{hours}h{minutes}m"


def ago(moment: str | None) -> str:
    """Say how long ago a moment (RFC 3339) was; ``-`` for never."""
    if moment is None:
        return "-"
    then = dt.datetime.fromisoformat(moment)
    return f"{age(max(0.0, (dt.datetime.now(dt.UTC) - then).total_seconds()))} ago"


def one_line(text: str) -> str:
    """Return a text without line breaks; ``-`` for an empty one."""
    return shown_texts.shown_line(text) or "-"


_NEAR: Final = 0.75
_EXTRA: Final = "got unexpected extra argument"
"""How click begins when there are too many words; it has no class of its own for that."""
_WHOLE: Final = 10_000


RUNNING: Final = "About a running operator"
FILES: Final = "About files, without an operator"


class Group(click.Group):
    """A group whose help has a whole sentence for each command, on as many lines as it needs.

    ``about`` are commands by what they are about, such as :data:`FILES`; others are just commands.
    """

    def __init__(self, *args: Any, about: Mapping[str, Sequence[str]] | None = None, **kwargs: Any) -> None:  # noqa: ANN401 - as click's
        super().__init__(*args, **kwargs)
        self._about = about or {}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a row for each command, below what it is about."""
        rest = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        sections = {title: {name: rest.pop(name) for name in names} for title, names in self._about.items()}
        for title, commands in (*sections.items(), ("Commands", rest)):
            rows = [
                (name, command.get_short_help_str(_WHOLE))
                for name, command in commands.items()
                if command is not None and not command.hidden
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def not_empty(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Return what was given for an argument; refuse an empty word, as of a variable that is not set."""
    if not value.strip():
        raise click.BadParameter("it is empty", ctx, param)
    return value


def usage_sentence(error: click.UsageError) -> str:
    """Return what is wrong with a command line, and what to write instead, on one line."""
    said = _lower(" ".join(error.format_message().split()).rstrip("."))
    return said if error.ctx is None else _with_context(error, error.ctx, said)


def _with_context(error: click.UsageError, ctx: click.Context, said: str) -> str:
    options = [each for each in ctx.command.get_params(ctx) if isinstance(each, click.Option)]
    needed = [f"{max(each.opts, key=len)} {each.make_metavar(ctx)}" for each in options if each.required]
    usage = " ".join([ctx.command_path, *ctx.command.collect_usage_pieces(ctx), *needed])
    help_ = f"'{ctx.command_path} --help'"
    match error:
        case click.NoSuchOption():
            hint = _nearest_option(error.option_name, ctx) or _behind_command(error.option_name, ctx)
            said = f"there is no option {error.option_name!r}; {hint or f'{help_} lists them all'}"
        case click.exceptions.NoSuchCommand():
            hint = known_names.did_you_mean(error.command_name, _commands(ctx), f"{help_} lists them all")
            said = f"there is no command {error.command_name!r}; {hint}"
        case click.MissingParameter(param=click.Argument() as param):
            said = f"{param.make_metavar(ctx)} is missing; write {usage}"
        case click.MissingParameter(param=click.Option() as param):
            purpose = _lower((param.help or "").partition(". ")[0].rstrip("."))
            said = f"the option {max(param.opts, key=len)} is missing: {purpose}; write {usage}"
        case _ if said.startswith(_EXTRA):
            said = f"{said.removeprefix('got ')}; write {usage}"
    return said


def _nearest_option(name: str, ctx: click.Context) -> str:
    shown = [each for each in ctx.command.get_params(ctx) if not getattr(each, "hidden", False)]
    flags = [flag for each in shown for flag in (*each.opts, *each.secondary_opts) if flag.startswith("--")]
    near = known_names.nearest(name.lstrip("-"), [flag.removeprefix("--") for flag in flags], _NEAR)
    return f"did you mean '--{near}'?" if near else ""


def _behind_command(name: str, ctx: click.Context) -> str:
    """Say that an option of the commands of a group stands behind their names."""
    group = ctx.command
    commands = (
        [group.get_command(ctx, each) for each in _commands(ctx)] if isinstance(group, click.Group) else []
    )
    is_theirs = any(name in option.opts for each in commands if each for option in each.params)
    return f"put it behind the command: '{ctx.command_path} COMMAND {name} …'" if is_theirs else ""


def _commands(ctx: click.Context) -> list[str]:
    return ctx.command.list_commands(ctx) if isinstance(ctx.command, click.Group) else []


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
