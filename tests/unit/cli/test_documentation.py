"""The reference of commands names each command with its arguments and options."""

import pathlib
import re
from collections.abc import Iterator

import click
import structlog

from addon_operator.debug import debug_site
from addon_operator.settings import settings
from addon_operator.status import http_site
from tests.unit.cli import verbs
from tests.unit.debug import inspected

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "reference" / "cli.md"
ROW = re.compile(r"^\| `(?P<usage>[^`]+)` \| (?P<options>.*?) ?\| (?P<text>.*) \|$", re.MULTILINE)
COMMANDS_PART, ENDPOINT_PART = PAGE.read_text().split("## The debug endpoint")
ROWS = {row["usage"].replace("\\|", "|"): row["options"] for row in ROW.finditer(COMMANDS_PART)}
FLAGS_OF_SETTINGS = {flag for row in settings.TABLE.values() for flag in row.flags}
IN_THE_TEXT = {"--debug-unix-socket", "--kubeconfig", "--context", "--namespace"}


def usage(name: str, command: click.Command) -> str:
    context = click.Context(command)
    arguments = [param.make_metavar(context) for param in command.params if isinstance(param, click.Argument)]
    return " ".join([name, *arguments])


LEAVES = {usage(name, command): command for name, command in verbs.LEAVES.items()}


def test_the_reference_has_a_row_for_each_command_and_no_other() -> None:
    assert set(ROWS) == set(LEAVES)


def options(command: click.Command) -> Iterator[tuple[str, ...]]:
    asks_the_operator = any("--debug-unix-socket" in option.opts for option in command.params)
    in_the_text = IN_THE_TEXT if asks_the_operator else set[str]()
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden and not in_the_text & set(option.opts):
            yield tuple(option.opts)


def is_named(names: tuple[str, ...], row: str) -> bool:
    covered = "all [settings]" in row and bool(FLAGS_OF_SETTINGS & set(names))
    return covered or any(f"`{name}`" in row for name in names)


def test_rows_name_all_options() -> None:
    missing = {
        (usage, names)
        for usage, command in LEAVES.items()
        for names in options(command)
        if not is_named(names, ROWS[usage])
    }
    assert missing == set()


def test_rows_name_no_option_that_there_is_not() -> None:
    known = {(usage, name) for usage in LEAVES for names in options(LEAVES[usage]) for name in names}
    named = {(usage, name) for usage, row in ROWS.items() for name in re.findall(r"`(-[-a-z]+)`", row)}
    assert named - known == set()


def test_the_reference_has_all_paths_of_the_endpoint() -> None:
    app = debug_site.application(inspected.make().api, structlog.get_logger())
    for line in http_site.endpoints(app).splitlines():
        method, _, path = line.partition(" ")
        shown = (
            path.replace("{name}", "MODULE")
            .replace("{target}", "TARGET")
            .replace("{id}", "ID")
            .replace("{format}", "json")
        )
        assert f"`{shown}`" in ENDPOINT_PART or f"`{method} {shown}`" in ENDPOINT_PART, line
