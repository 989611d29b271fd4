"""``addon-operator plan``: what the operator would do if it started now."""

import asyncio
import collections
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from addon_operator.cli import optional_imports, printing, settings
from addon_operator.settings import settings as app_settings

if TYPE_CHECKING:
    # Imported when the command runs: the client of the cluster takes time to load.
    from addon_operator.commands.plan import plan_report
    from addon_operator.documents import manifest_diff

EXIT_ERROR: Final = 1
EXIT_CHANGES: Final = 2
_COLUMNS: Final = ("MODULE", "ORDER", "STATE", "why", "ACTION", "because")
_STYLES: Final = {
    "install": "green",
    "upgrade": "yellow",
    "wait": "yellow",
    "restore": "yellow",
    "delete": "red",
    "purge": "red",
    "unknown": "bold red",
}
_SUMMARY: Final = {
    "install": "to install",
    "upgrade": "to upgrade",
    "wait": "to wait for a window",
    "restore": "to restore",
    "delete": "to delete",
    "purge": "to purge",
    "unknown": "not known",
}

Document = dict[str, Any]


@click.command()
@click.option("-m", "--module", "modules", multiple=True, metavar="NAME",
              help="Plan this module only, without purges. May be repeated.")  # fmt: skip
@click.option("--from-pod", "from_pod", metavar="[NAMESPACE/]POD|deployment/NAME",
              help="Take what hooks gave from the operator in this pod; by default from the one on the debug "
                   "socket, else from the last releases.")  # fmt: skip
@printing.output_option("text", printing.FORMATS)
@settings.settings_options
def plan(modules: Sequence[str], from_pod: str | None, output: str, flags: Mapping[str, str | None]) -> int:
    """Show what the operator would do if it started now, and why. Nothing is changed.

    Modules are discovered (their enabled scripts run), releases are compared with what the charts render to,
    and the differences of manifests are shown. Hooks are not run: what they gave is taken from the running
    operator, else from the last releases.

    Takes the same options and variables as 'start'. The exit code is 0 if nothing would change, 2 if
    something would, and 1 after an error.
    """
    loaded = app_settings.load(flags, os.environ)
    with optional_imports.quick_imports():
        from addon_operator.commands.plan import planning
        from addon_operator.telemetry import logs

    logs.configure("error" if loaded.log_level == "error" else "warn", loaded.log_type, no_time=True)
    report = asyncio.run(planning.make(loaded, os.environ, modules, from_pod))
    if output == "text":
        _print_text(report)
    else:
        click.echo(printing.document(_document(report), output), nl=False)
    if report.is_failed:
        return EXIT_ERROR
    return EXIT_CHANGES if report.is_change else 0


def _document(report: "plan_report.PlanReport") -> Document:
    return {
        "namespace": report.namespace,
        "changes": report.is_change,
        "modules": [_module(each) for each in report.modules],
        "purges": [{"release": each.release, "reason": each.reason} for each in report.purges],
        "notes": list(report.notes),
        "hookValues": {
            "from": str(report.given.source),
            "operator": report.given.operator,
            "releases": dict(report.given.releases),
        },
    }


def _module(each: "plan_report.ModuleReport") -> Document:
    return {
        "name": each.name,
        "order": each.order,
        "enabled": each.enabled,
        "enabledReason": each.verdict,
        "release": each.title or each.name,
        "waitsFor": list(each.waits_for),
        "action": str(each.release.step),
        "reason": each.release.reason,
        "revision": each.release.revision,
        "recoveries": list(each.release.recoveries),
        "changes": [_change(change) for change in each.release.changes],
    }


def _change(change: "manifest_diff.ManifestChange") -> Document:
    key = change.key
    return {
        "change": str(change.kind),
        "apiVersion": key.api_version,
        "kind": key.kind,
        "namespace": key.namespace or None,
        "name": key.name,
        "diff": "".join(f"{line}\n" for line in change.diff),
    }


def _print_text(report: "plan_report.PlanReport") -> None:
    click.echo(printing.table(_COLUMNS, _rows(report), lambda row: _STYLES.get(row[4], "")))
    for module in report.modules:
        _print_release(module)
    click.echo(_summary(report))
    for note in report.notes:
        click.echo(f"{click.style('Note:', fg='yellow')} {note}", err=True)


def _rows(report: "plan_report.PlanReport") -> Iterator[tuple[str, ...]]:
    for module in report.modules:
        state = "enabled" if module.enabled else "disabled"
        release = module.release
        titles = (f"release {module.title}",) if module.title else ()
        because = "; ".join((*titles, *release.recoveries, release.reason))
        why = "; ".join((module.verdict, *(f"waits for {name}" for name in module.waits_for)))
        yield module.name, str(module.order), state, why, release.step, because
    for purge in report.purges:
        yield purge.release, "", "", "", "purge", purge.reason


def _print_release(module: "plan_report.ModuleReport") -> None:
    changes = module.release.changes
    if not changes:
        return
    counts = collections.Counter(str(change.kind) for change in changes)
    listed = ", ".join(f"{number} {kind}" for kind, number in counts.items())
    click.secho(f"{module.name}: {listed}", bold=True)
    text = "".join(f"{line}\n" for change in changes for line in change.diff)
    printing.show_highlighted(text, "diff")
    click.echo()


def _summary(report: "plan_report.PlanReport") -> str:
    counts = collections.Counter(str(module.release.step) for module in report.modules)
    counts["purge"] = len(report.purges)
    listed = [f"{counts[step]} {words}" for step, words in _SUMMARY.items() if counts[step]]
    return f"Releases: {', '.join(listed)}." if listed else "No release would change."
