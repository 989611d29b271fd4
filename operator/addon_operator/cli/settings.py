"""``addon-operator settings``, and the options that ``start`` shares with it."""

import functools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import click

from addon_operator.cli import completion, printing
from addon_operator.kernel import json_types
from addon_operator.settings import setting_names, setting_resolution
from addon_operator.settings import settings as app_settings

_GIVEN: Final = "addon_operator.arguments"
"""Where click keeps what was typed: it tells only which option is meant, not how it was spelled."""
_MISSING_ORIGIN: Final = "required, not set"

Row = dict[str, json_types.JsonValue]


def settings_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add a flag for each setting to a click command, and call the function with ``flags``.

    ``flags`` has the texts that were given, by field name, as :func:`.load` wants
    them; a flag that was not given is ``None``. If another spelling than the first was typed, the text is
    there by that, too. The command has to be a :class:`SettingsCommand`.
    """

    @functools.wraps(function)
    def with_flags(*args: object, **kwargs: object) -> object:
        flags = {field: kwargs.pop(field) for field in app_settings.TABLE}
        unused = {flag: kwargs.pop(_parameter(flag)) for flag in setting_names.FLAGS_WITHOUT_MEANING}
        flags |= {flag: text for flag, text in unused.items() if text is not None}
        typed = _typed(click.get_current_context().meta[_GIVEN])
        flags |= {flag: text for flag in typed if (text := flags.get(_FIELDS[flag])) is not None}
        return function(*args, flags=flags, **kwargs)

    command: Callable[..., Any] = with_flags
    for flag in setting_names.FLAGS_WITHOUT_MEANING:
        hidden = click.option(flag, _parameter(flag), hidden=True, is_flag=False, flag_value="true")
        command = hidden(command)
    for field, row in reversed(list(app_settings.TABLE.items())):
        command = _option(field, row)(command)
    return command


def _parameter(flag: str) -> str:
    return "without_meaning_" + flag.removeprefix("--").replace("-", "_")


def _option(
    field: str, row: setting_resolution.Setting
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    default = "required" if row.default is None else f"default {row.default}" if row.default else ""
    note = ", ".join(part for part in (row.documented, default) if part)
    bare_flag: dict[str, Any] = {"is_flag": False, "flag_value": "true"} if row.type.is_switch else {}
    type_ = click.Path() if row.type.metavar in ("PATH", "PATHS") else str
    return click.option(
        *row.flags,
        field,
        metavar=row.type.metavar,
        type=type_,
        help=f"{row.help} [{note}]",
        shell_complete=_COMPLETED.get(field),
        **bare_flag,
    )


_COMPLETED: Final = {
    "namespace": completion.complete_namespace,
    "kube_context": completion.complete_context,
}
_FIELDS: Final = {flag: field for field, row in app_settings.TABLE.items() for flag in row.flags}


def _typed(arguments: Sequence[str]) -> list[str]:
    """Return the other spellings of settings that were typed, of each setting the last if it counts."""
    last: dict[str, str] = {}
    for argument in arguments:
        flag = argument.partition("=")[0] if argument.startswith("--") else argument[:2]
        if flag in _FIELDS:
            last[_FIELDS[flag]] = flag
    return [flag for field, flag in last.items() if flag != app_settings.TABLE[field].flags[0]]


class SettingsCommand(click.Command):
    """A command that takes all settings, and knows how their flags were spelled."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and keep what was typed."""
        ctx.meta[_GIVEN] = tuple(args)
        return super().parse_args(ctx, args)


class GroupedCommand(SettingsCommand):
    """One whose help lists the settings below the headings of the documentation."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, each below its heading."""
        groups = {field: row.group for field, row in app_settings.TABLE.items()}
        rows: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                rows.setdefault(groups.get(str(parameter.name), "Options"), []).append(record)
        for title in (*dict.fromkeys(groups.values()), "Options"):
            if rows.get(title):
                with formatter.section(title):
                    formatter.write_dl(rows[title])


@click.command(cls=GroupedCommand)
@printing.output_option("text", printing.LIST_FORMATS)
@settings_options
def settings(output: str, flags: Mapping[str, str | None]) -> None:
    """Print every setting with its value and where the value came from.

    Takes the same flags and variables as 'start'.
    """
    resolution = setting_resolution.resolve(app_settings.TABLE, flags, os.environ)
    warnings = setting_names.warnings(app_settings.TABLE.values(), os.environ, flags)
    if resolution.problems:
        raise setting_resolution.SettingsError(resolution.problems, warnings)
    for warning in warnings:
        printing.note(warning, "Warning")
    rows = list(_rows(resolution))
    listed = printing.Listed(_table, "setting", lambda found: [str(row["name"]) for row in found])
    click.echo(listed.rendered(rows, output), nl=False)


def _rows(resolution: setting_resolution.Resolution) -> Iterable[Row]:
    config_map, like_it = resolution.values.get("config_map"), app_settings.NAMED_LIKE_CONFIG_MAP
    for field, row in app_settings.TABLE.items():
        given = field in resolution.values
        value = row.type.plain(row.type.in_force(resolution.values[field])) if given else None
        if value is None and config_map is not None and field in like_it:
            value = f"{config_map}{like_it[field]}"
        yield {
            "name": row.documented,
            "value": value,
            "origin": resolution.origins.get(field, _MISSING_ORIGIN),
        }


def _table(rows: list[Row], wide: bool) -> str:
    cells = [(str(row["name"]), _cell(row["value"]), str(row["origin"])) for row in rows]
    return printing.listing(("NAME", "value", "origin"), cells, wide=wide)


def _cell(value: json_types.JsonValue) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return str(value).lower()
        case list() if any(isinstance(each, dict) for each in value):
            return json.dumps(value)
        case list():
            return ",".join(map(str, value)) or "-"
        case dict():
            return ",".join(f"{key}={item}" for key, item in value.items()) or "-"
        case _:
            return str(value) or "-"
