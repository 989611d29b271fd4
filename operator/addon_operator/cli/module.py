"""``addon-operator module``: the modules of a running operator, and those on disk."""

import json
import pathlib
import urllib.parse
from collections.abc import Iterator, Sequence
from typing import Final

import click

from addon_operator.cli import debug, module_verbs, printing
from addon_operator.cli.authoring import lint as linting
from addon_operator.kernel import errors, names

_COLUMNS: Final = ("MODULE", "ORDER", "STATE", "HEALTHY", "REVISION", "LAST RUN", "message")
_WIDE_COLUMNS: Final = (*_COLUMNS[:-1], "shared objects", "last error", "reason")
_HEALTHY: Final = {"Healthy": "True", "Failed": "False", "Progressing": "Unknown"}
"""As kubectl shows the condition."""
_SHARED_SHOWN: Final = 5
_HEAD: Final = 12
EXIT_TROUBLE: Final = 2
"""As diff(1): 0 without differences, 1 with some."""
_STYLES: Final = {"Ready": "green", "Failed": "red", "Running": "cyan", "Disabled": "dim"}
_RESOURCE_COLUMNS: Final = ("MODULE", "STATE", "resource", "reason")

_module: Final = click.argument("module", shell_complete=debug.complete_module)
_global: Final = click.option(
    "-g", "--global", "with_global", is_flag=True, help="Also show the global ones."
)

_origin: Final = click.option("--origin", is_flag=True, help="Show where each value of MODULE comes from.")


class RunFailedError(errors.AddonOperatorError):
    """The run that a user waited for failed."""


@click.group()
def module() -> None:
    """Show and run the modules of a running operator, and check those on disk."""


module.add_command(module_verbs.suspend)
module.add_command(module_verbs.resume)
module.add_command(module_verbs.test)
module.add_command(module_verbs.why)
module.add_command(linting.lint)


@module.command("list")
@printing.output_option("text", printing.LIST_FORMATS)
@debug.watch_options
@debug.socket_option
def list_(output: str, *, watch: bool, interval: float, socket: str | None) -> None:
    """List the modules with state, health, revision, last run, and a message.

    The message is the last error, or what a module is for, or the reason of its state. -o wide has all of
    them, what modules require, and the objects that several modules have.
    """
    debug.look_or_watch(socket, "/module/list.json", output, _LISTED, watch=watch, interval=interval)


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
    _MONITORED.show(debug.client(socket).get("/module/resource-monitor.json"), output)


@module.command()
@_module
@click.option("--diff", is_flag=True, help="Show how the cluster would change, found by a dry run.")
@click.option("--debug", is_flag=True, hidden=True, expose_value=False, help="Accepted for old scripts.")
@debug.sensitive_option
@debug.socket_option
def render(
    module: str,
    *,
    diff: bool,
    show_sensitive: bool,
    socket: str | None,
) -> int:
    """Print the manifest that the chart of MODULE renders to with the current values.

    With --diff, the exit code is that of diff: 0 without differences, 1 with some, 2 for an error.
    """
    from addon_operator.debug import debug_client

    query = debug.query(**{"diff": diff, debug.SHOW_SENSITIVE: show_sensitive})
    try:
        text = debug.client(socket, is_slow=True).get_text(debug.module_path(module, "render"), query)
    except errors.AddonOperatorError as error:
        if not diff:
            raise
        printing.show_error(str(error))
        return EXIT_TROUBLE
    click.echo(text, nl=False)
    if not text:
        click.echo(f"module {module} has no chart, or it renders to nothing", err=True)
    return int(diff and text != debug_client.NO_DIFFERENCES)


@module.command()
@click.option("--tests", "of_tests", is_flag=True, help="Print that of tests/*.yaml instead.")
@click.option(
    "--values",
    "of_values",
    metavar="MODULE_DIR",
    type=click.Path(),
    help="Print that of a module's values.yaml instead.",
)
def schema(*, of_tests: bool, of_values: str | None) -> None:
    """Print the JSON Schema of module.yaml, for editors."""
    from addon_operator.commands.authoring import values_schema
    from addon_operator.modules import editor_schema
    from addon_operator.testing.cases import case_schema

    if of_values is not None:
        made = values_schema.of_directory(pathlib.Path(of_values).absolute())
    else:
        made = case_schema.for_editors() if of_tests else editor_schema.schema()
    click.echo(json.dumps(made, indent=2))


def _modules(document: debug.Document, wide: bool) -> str:
    if wide:
        return _all_of_modules(document)
    rows = [(*_row(module)[:-2], _message(module)) for module in document["modules"]]
    listed = printing.listing(_COLUMNS, rows, _style, wide=wide) if rows else "no modules\n"
    return _wrong_values(document) + listed


def _message(module: debug.Document) -> str:
    """Return what is wrong; of a module that is well what it is for, or why it is enabled."""
    *_, error, reason = _row(module)
    if error != "-":
        return error
    return (module["description"] if module["state"] == "Ready" else "") or reason


_LISTED: Final = debug.Listed(
    _modules, "module", lambda document: [module["name"] for module in document["modules"]]
)


def _wrong_values(document: debug.Document) -> str:
    return "".join(f"{text}\n" for text in document.get("wrongValues", ()))


def _described(
    columns: tuple[str, ...], rows: list[tuple[str, ...]], modules: Sequence[debug.Document]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Add what the modules are for, if one of them says it."""
    if not any(module["description"] for module in modules):
        return columns, rows
    texts = [module["description"] or "-" for module in modules]
    described = [(*row[:-2], text, *row[-2:]) for row, text in zip(rows, texts, strict=True)]
    return (*columns[:-2], "description", *columns[-2:]), described


def _all_of_modules(document: debug.Document) -> str:
    modules = document["modules"]
    columns: tuple[str, ...] = _WIDE_COLUMNS
    rows = [_wide_row(module) for module in modules]
    if any(module["release"] != module["name"] for module in modules):
        columns = (*columns[:3], "RELEASE", *columns[3:])
        rows = [(*row[:3], module["release"], *row[3:]) for row, module in zip(rows, modules, strict=True)]
    if any(map(_requirements, modules)):
        columns = (*columns[:-2], "requires", *columns[-2:])
        needs = [_requirements(module) or "-" for module in modules]
        rows = [(*row[:-2], each, *row[-2:]) for row, each in zip(rows, needs, strict=True)]
    columns, rows = _described(columns, rows, modules)
    listed = printing.listing(columns, rows, _style, wide=True) if rows else "no modules\n"
    return _wrong_values(document) + listed


def _requirements(module: debug.Document) -> str:
    return ", ".join(module.get("requires", ()))


def _row(module: debug.Document) -> tuple[str, ...]:
    waiting = [
        *_waits(module),
        *_held(module),
        *_unhealthy(module),
        *debug.waiting_texts(module.get("waitingBindings", ())),
    ]
    return (
        module["name"],
        str(module["order"]),
        module["state"],
        _HEALTHY.get(module.get("health") or "", "-"),
        str(module.get("revision") or "-"),
        debug.ago(module["lastRun"]),
        debug.one_line("; ".join(filter(None, [*_cure(module), module["lastError"], *waiting]))),
        module["reason"],
    )


def _unhealthy(module: debug.Document) -> list[str]:
    drift = module.get("drift")
    return [*filter(None, [module.get("healthMessage")]), *([f"drifted: {drift}"] if drift else [])]


def _cure(module: debug.Document) -> list[str]:
    cure = module.get("cure")
    return [f"waits for {', '.join(cure)}"] if cure else []


def _waits(module: debug.Document) -> list[str]:
    others = module.get("waitsFor")
    return [f"waits for {', '.join(others)}"] if others else []


def _held(module: debug.Document) -> list[str]:
    held = module.get("heldBack")
    return [f"waits for a window, which opens at {held['until']}: {held['what']}"] if held else []


def _wide_row(module: debug.Document) -> tuple[str, ...]:
    *first, error, reason = _row(module)
    shared = [debug.shared_text(each) for each in module.get("sharedObjects", ())]
    return (*first, names.listed(shared, _SHARED_SHOWN) or "-", error, reason)


def _style(row: Sequence[str]) -> str:
    return _STYLES.get(row[2], "")


def _resources(document: debug.Document, wide: bool) -> str:
    rows = [line for module, resources in document.items() for line in _resource_rows(module, resources)]
    return printing.listing(_RESOURCE_COLUMNS, rows, wide=wide) if rows else "no enabled modules\n"


_MONITORED: Final = debug.Listed(_resources, "module", list)


def _resource_rows(module: str, resources: debug.Document) -> Iterator[tuple[str, ...]]:
    if isinstance(resources, str):
        yield (module, resources, "-", "-")
        return
    for resource in resources:
        yield (module, resource["state"], resource["resource"], resource.get("reason") or "-")


@module.command()
@click.argument("name", metavar="MODULE", shell_complete=debug.complete_module)
@click.option("--wait", "waits", is_flag=True, help="Wait for the end of the run.")
@click.option("--now", is_flag=True, help="Do not wait for a window this once; a disabled module is removed.")
@debug.socket_option
def run(name: str, socket: str | None, *, waits: bool, now: bool) -> None:
    """Run MODULE now, all its steps, although nothing changed; a failed one does not wait for its next try.

    With --wait, exit code 1 if the run fails.
    """
    if (asked := debug.outside_requests(socket)) is not None:
        row = asked.run(name, waits=waits, now=now)
    else:
        query = urllib.parse.urlencode(debug.query(wait=waits, now=now))
        path = debug.module_path(name, f"run?{query}".removesuffix("?"))
        row = debug.client(socket, is_slow=waits).post(path, {})
    click.echo(debug.text_of(row, _has_run if waits else _will_run))


@module.command()
@click.argument("name", metavar="MODULE", shell_complete=debug.complete_module)
@click.option("--pending", is_flag=True, help="Show what waits for a window.")
@printing.output_option("text")
@debug.socket_option
def diff(name: str, output: str, socket: str | None, *, pending: bool) -> int:
    """Show what others changed of MODULE's resources: field, who wrote it, and both values.

    With --pending, show what waits for a window, and how it would change the last revision. Data of Secrets
    and sensitive values are hidden. The exit code is that of diff: 0 without a difference, 1 with one, 2 for
    an error.
    """
    from addon_operator.debug import debug_client

    try:
        if not pending:
            found = debug.client(socket).get(debug.module_path(name, "diff.json"))
            debug.show(found, output, _differences)
            return 1 if found["differences"] else 0
        text = debug.client(socket, is_slow=True).get_text(
            debug.module_path(name, "diff"), debug.query(pending=True)
        )
    except errors.AddonOperatorError as error:
        printing.show_error(str(error))
        return EXIT_TROUBLE
    if text == debug_client.NOTHING_PENDING:
        click.echo(text, nl=False)
        return 0
    printing.show_highlighted(text, "diff")
    return 1


@module.command()
@click.argument("name", metavar="MODULE", shell_complete=debug.complete_module)
@debug.socket_option
def retry(name: str, socket: str | None) -> None:
    """Try MODULE again now, whose run or removal failed; what succeeded is not repeated."""
    row = debug.client(socket).post(debug.module_path(name, "retry"), {})
    click.echo(debug.text_of(row, _will_run))


def _will_run(row: debug.Document) -> str:
    left_alone = f"; Helm leaves it alone, as it is {text}" if (text := row.get("suspended")) else ""
    soon = f"module {row['name']} runs as soon as its queue lets it; 'module describe' shows how it goes"
    return soon + left_alone


def _has_run(row: debug.Document) -> str:
    if row["state"] in ("Failed", "Deleting"):
        raise RunFailedError(f"the run of module {row['name']} failed: {row['lastError']}")
    left_alone = [suspended] if (suspended := row.get("suspended")) else []
    return "; ".join([f"module {row['name']} is {row['state']}", *left_alone, *_held(row)])


def _differences(rows: debug.Document) -> str:
    lines = "".join(line for row in rows["differences"] for line in _difference(row))
    if lines or rows.get("compared", True):
        return lines or "no differences\n"
    return (
        "nothing is compared: the module has no release yet, drift.mode is ignore, or it is in maintenance\n"
    )


def _difference(row: debug.Document) -> Iterator[str]:
    by = f" (by {row['manager']})" if row["manager"] else ""
    yield f"{row['resource']}: {row['path']}{by}\n"
    for sign, text in (("-", row["expected"]), ("+", row["live"])):
        lines = ["(missing)"] if text is None else text.splitlines() or [""]
        yield from (f"  {sign} {line}\n" for line in lines)


@module.command()
@click.argument("name", metavar="MODULE", shell_complete=debug.complete_module)
@printing.output_option("text")
@debug.socket_option
def describe(name: str, output: str, socket: str | None) -> None:
    """Describe MODULE: state, reason, the whole last error, release, hooks, shared and absent objects."""
    path = debug.module_path(name, "describe.json")
    debug.show(debug.client(socket).get(path), output, _description)


def _description(module: debug.Document) -> str:
    return "".join(f"{line}\n" for line in [*_description_head(module), *_sections(module)])


def _description_head(module: debug.Document) -> Iterator[str]:
    title = "" if module["release"] == module["name"] else module["release"]
    revision = "" if module["revision"] is None else f"revision {module['revision']}"
    release = ", ".join(filter(None, (title, revision))) or "-"
    chart, namespace = module.get("chart"), module.get("namespace")
    for name, value in (
        ("Name", module["name"]),
        *((("Description", module["description"]),) if module["description"] else ()),
        ("State", module["state"]),
        ("Health", ": ".join(filter(None, (module["health"], module["healthMessage"]))) or "-"),
        *((("Drift", module["drift"]),) if module["drift"] else ()),
        ("Reason", module["reason"]),
        *(
            (("Suspended", suspended.removeprefix("suspended: ")),)
            if (suspended := module.get("suspended"))
            else ()
        ),
        ("Order", module["order"]),
        *((("Requires", required),) if (required := _requirements(module)) else ()),
        *((("Chart", chart),) if chart else ()),
        ("Release", release),
        *((("Namespace", namespace),) if namespace else ()),
        ("Last run", _moment(module["lastRun"])),
        ("Next try", module["nextTry"] or "-"),
    ):
        yield f"{name + ':':<{_HEAD}} {value}"


def _moment(moment: str | None) -> str:
    return "-" if moment is None else f"{moment} ({debug.ago(moment)})"


def _sections(module: debug.Document) -> Iterator[str]:
    if wrong := module.get("wrongValues"):
        yield from _section("Not in force", [wrong])
    yield from _section("Last error", module["lastError"].splitlines())
    if failing := module.get("failingHooks"):
        yield from _section("Failing hooks", [line for each in failing for line in _failing(each)])
    hooks = module["hooks"]
    lines = ["not known yet"] if hooks is None else [line for hook in hooks for line in _hook(hook)]
    yield from _section("Hooks", lines)
    if (held := module.get("heldBack")) is not None:
        yield from _section("Held back", [*_held(module), f"since {_moment(held['since'])}"])
    yield from _section(
        "Waiting", [*_cure(module), *_waits(module), *debug.waiting_texts(module["waitingBindings"])]
    )
    yield from _section("Shared objects", [debug.shared_text(each) for each in module["sharedObjects"]])
    yield from _section("Absent objects", module["absentObjects"])
    restored = [f"{name} (times: {times})" for name, times in sorted(module["restoredObjects"].items())]
    yield from _section("Restored lately", restored)
    yield from _section("Events", [_event(each) for each in module.get("events", ())])


def _event(event: debug.Document) -> str:
    return f"{debug.ago(event['time'])}  {event['type']}  {event['reason']}  {event['message']}"


def _failing(module: debug.Document) -> Iterator[str]:
    times = "once" if module["tries"] == 1 else f"{module['tries']} times"
    yield f"{module['hook']}, binding {module['binding']}, queue {module['queue']}, failed {times}"
    yield from (f"  {line}" for line in module["lastError"].splitlines())


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if not lines:
        yield f"{title}: -"
        return
    yield f"{title}:"
    yield from (f"  {line}" for line in lines)


def _hook(hook: debug.Document) -> Iterator[str]:
    yield hook["name"]
    for bound in hook["bindings"]:
        about = _about(bound)
        name = f"{bound['binding']} {bound.get('name', '')}".rstrip() + (f" ({about})" if about else "")
        order = f", order {bound['order']}" if "order" in bound else ""
        # Hooks that answer the API server wait in no queue.
        queue = f", queue {bound['queue']}" if "queue" in bound else ""
        yield f"  {name}{order}{queue}"


def _about(bound: debug.Document) -> str:
    """Say what a binding is about."""
    if "crdName" in bound:
        return f"{bound['crdName']} {', '.join(bound.get('conversions', ()))}".rstrip()
    kind = f"{bound.get('apiVersion', '')} {bound.get('kind', '')}".strip()
    return str(bound.get("crontab") or bound.get("resources") or kind)
