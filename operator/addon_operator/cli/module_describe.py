"""``addon-operator module describe``: all that is known of one module."""

import urllib.parse
from collections.abc import Iterator, Sequence

import click

from addon_operator.cli import debug


@click.command()
@click.argument("module", shell_complete=debug.complete_module)
@debug.output_option("text")
@debug.socket_option
def describe(module: str, output: str, socket: str | None) -> None:
    """Tell of MODULE: state, reason, the whole last error, release, hooks, shared and absent objects."""
    path = f"/module/{urllib.parse.quote(module, safe='')}/describe.json"
    debug.show(debug.client(socket).get(path), output, _text)


def _text(found: debug.Document) -> str:
    return "".join(f"{line}\n" for line in [*_head(found), *_sections(found)])


def _head(found: debug.Document) -> Iterator[str]:
    release = "-" if found["revision"] is None else f"revision {found['revision']}"
    for name, value in (
        ("Name", found["name"]),
        ("State", found["state"]),
        ("Reason", found["reason"]),
        ("Order", found["order"]),
        ("Release", release),
        ("Last run", _moment(found["lastRun"])),
        ("Next try", found["nextTry"] or "-"),
    ):
        yield f"{name + ':':<10} {value}"


def _moment(moment: str | None) -> str:
    return "-" if moment is None else f"{moment} ({debug.ago(moment)})"


def _sections(found: debug.Document) -> Iterator[str]:
    yield from _section("Last error", found["lastError"].splitlines())
    hooks = found["hooks"]
    told = ["not known yet"] if hooks is None else [line for hook in hooks for line in _hook(hook)]
    yield from _section("Hooks", told)
    yield from _section("Waiting", debug.waiting_texts(found["waitingBindings"]))
    yield from _section("Shared objects", [debug.shared_text(each) for each in found["sharedObjects"]])
    yield from _section("Absent objects", found["absentObjects"])
    restored = [f"{name} (times: {times})" for name, times in sorted(found["restoredObjects"].items())]
    yield from _section("Restored lately", restored)


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if not lines:
        yield f"{title}: -"
        return
    yield f"{title}:"
    yield from (f"  {line}" for line in lines)


def _hook(hook: debug.Document) -> Iterator[str]:
    yield hook["name"]
    for bound in hook["bindings"]:
        about = bound.get("crontab") or f"{bound.get('apiVersion', '')} {bound.get('kind', '')}".strip()
        name = f"{bound['binding']} {bound.get('name', '')}".rstrip() + (f" ({about})" if about else "")
        order = f", order {bound['order']}" if "order" in bound else ""
        yield f"  {name}{order}, queue {bound['queue']}"
