"""``addon-operator plan``: what the operator would do if it started now."""

import asyncio
import collections
import functools
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from addon_operator.cli import exit_codes, printing, settings, values
from addon_operator.commands.plan import plan_markdown
from addon_operator.kernel import clock, optional_imports, shown_texts
from addon_operator.settings import settings as app_settings
from addon_operator.settings import settings_loading

if TYPE_CHECKING:
    # Imported when the command runs: the client of the cluster takes time to load.
    from addon_operator.commands.plan import plan_report
    from addon_operator.commands.plan_state import plan_state
    from addon_operator.documents import manifest_diff

MARKDOWN: Final = "markdown"
RECORDED: Final = (
    "namespace", "config_map", "values_secret", "allow_empty_modules", "unnumbered_module_order",
    "strict_check_values_mode_enabled", "windows", "enabled_modules_crd_names", "crd_extra_labels",
    "crd_filter_prefixes", "helm_ignore_release", "helm_purge", "take_ownership", "common_labels",
    "common_annotations", "helm_driver",
)  # fmt: skip
"""Settings that decide what a plan says, and are the cluster's: a state file keeps them."""
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


class _Edit(NamedTuple):
    """An edit of the values that nobody has made yet."""

    config: pathlib.Path | None
    secret: pathlib.Path | None
    settings: tuple[str, ...]


def _edit_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of an edit to a command, and call the function with ``edit``."""

    @functools.wraps(function)
    def with_edit(config: Any, secret: Any, set_values: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return function(edit=_Edit(config, secret, set_values), **kwargs)

    for add in (
        values.secret_option,
        click.option(
            "--set",
            "set_values",
            multiple=True,
            metavar="KEY=VALUE",
            help="Set a value or a switch of the values ConfigMap, such as web.replicas=2. May be repeated.",
        ),
        values.plan_config_option,
    ):
        with_edit = add(with_edit)
    return with_edit


@click.command(cls=settings.SettingsCommand)
@click.option("-m", "--module", "modules", multiple=True, metavar="NAME",
              help="Plan this module only, without purges. May be repeated.")  # fmt: skip
@click.option("--from-pod", "from_pod", metavar="[NAMESPACE/]POD|deployment/NAME",
              help="Take what hooks gave from the operator in this pod; by default from the one on the debug "
                   "socket, else from the last releases.")  # fmt: skip
@click.option(
    "--record",
    metavar="FILE",
    type=click.Path(),
    help="Write what a plan needs of the cluster into FILE, without secrets, and plan nothing.",
)
@click.option(
    "--state",
    metavar="FILE",
    type=click.Path(),
    help="Plan by what --record wrote into FILE: no cluster is asked, and no credentials are needed.",
)
@click.option(
    "--base",
    metavar="DIR|GIT-REF",
    type=click.Path(),
    help="With --state, mark what would happen with the files of DIR, or of a commit, just as well.",
)
@_edit_options
@printing.output_option("text", (*printing.LIST_FORMATS, MARKDOWN))
@settings.settings_options
def plan(
    modules: Sequence[str],
    from_pod: str | None,
    record: str | None,
    state: str | None,
    base: str | None,
    edit: _Edit,
    output: str,
    flags: Mapping[str, str | None],
) -> exit_codes.ExitCode:
    """Show what the operator would do if it started now, and why. Nothing is changed.

    Modules are discovered (their enabled scripts run), releases are compared with what the charts render to,
    and the differences of manifests are shown. Hooks are not run: what they gave is taken from the running
    operator, else from the last releases.

    With --record, a cluster is read into a file; with --state, that file stands in for the cluster, so that
    a change of modules can be planned before it is merged. -o markdown fits a comment on a pull request.
    With --config, --set and --secret, an edit of the values is planned that nobody has made yet.

    Takes the same options and variables as 'start'; with --state, those that count are taken from the file
    unless they are given. The exit code is 0 if nothing would change, 3 if something would, and 1 after an
    error.
    """
    _check_options(from_pod, record, state, base, modules, edit)
    with optional_imports.quick_imports():
        from addon_operator.commands.plan import planning, proposal, recording
        from addon_operator.commands.plan_state import plan_state

    recorded = None if state is None else plan_state.read(pathlib.Path(state).absolute())
    environ = dict(os.environ) if recorded is None else {**settings_of(recorded), **os.environ}
    loaded = settings_loading.load(flags, environ)
    _configure_logs(loaded)
    if record is not None:
        texts = settings_loading.texts(RECORDED, flags, os.environ)
        made = asyncio.run(recording.make(loaded, texts, os.environ, from_pod))
        plan_state.write(made, pathlib.Path(record).absolute())
        _print_recorded(made, record)
        return exit_codes.ExitCode.NOTHING
    if base is not None and recorded is not None:
        report = asyncio.run(planning.make_compared(loaded, environ, modules, base, recorded))
    else:
        proposed = proposal.Proposal(
            edit.config, edit.secret, tuple(map(proposal.Setting.parse, edit.settings))
        )
        report = asyncio.run(planning.make(loaded, environ, modules, from_pod, recorded, proposed))
    _print(report, output)
    if report.is_failed:
        return exit_codes.ExitCode.FAILED
    return exit_codes.of_check(is_found=report.is_change, exit_code=True)


def settings_of(recorded: "plan_state.PlanState") -> Mapping[str, str]:
    """Return what a state file may set: whoever wrote it names no program and no directory."""
    return settings_loading.texts(RECORDED, {}, recorded.settings)


def _check_options(
    from_pod: str | None,
    record: str | None,
    state: str | None,
    base: str | None,
    modules: Sequence[str],
    edit: _Edit,
) -> None:
    """Raise a usage error for options that do not go together."""
    if any(edit) and (record is not None or state is not None):
        raise click.UsageError(
            "--config, --set and --secret belong to a plan with the cluster: leave --record and --state out"
        )
    if state is not None and (record is not None or from_pod is not None):
        raise click.UsageError("--state stands in for a cluster: leave --record and --from-pod out")
    if base is not None and state is None:
        raise click.UsageError("--base needs --state: write a file with --record first")
    if "" in (record, state, base):
        # As a variable of a workflow is that nobody has set.
        raise click.UsageError("--record, --state and --base need a name that is not empty")
    if record is not None and modules:
        raise click.UsageError("--record reads all modules: leave --module out")


def _configure_logs(loaded: app_settings.Settings) -> None:
    from addon_operator.telemetry import logs

    logs.configure("error" if loaded.log_level == "error" else "warn", loaded.log_type, no_time=True)


def _print_recorded(state: "plan_state.PlanState", file: str) -> None:
    released = len({each["labels"].get("name") for each in state.releases})
    hidden = printing.count(len(state.hidden), "hidden value")
    click.echo(f"{file}: {printing.count(released, 'release')} of namespace {state.namespace}, {hidden}")
    unplannable = (
        f"changes of module {name} will not be known: {why}" for name, why in state.unplannable.items()
    )
    for note in (*state.notes, *unplannable):
        printing.note(note)


def _document(report: "plan_report.PlanReport") -> Document:
    return {
        "namespace": report.namespace,
        "recordedAt": None if report.recorded_at is None else _time(report.recorded_at),
        "changes": report.is_change,
        "modules": [_module(each) for each in report.modules],
        "purges": [
            {"release": each.release, "reason": each.reason, "pending": each.is_pending}
            for each in report.purges
        ],
        "losses": list(report.losses),
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
        "unknown": list(each.unknown),
        "pending": each.is_pending,
        "action": str(each.release.step),
        "reason": each.release.reason,
        "revision": each.release.revision,
        "recoveries": list(each.release.recoveries),
        "changes": [_change(change) for change in each.release.changes],
    }


def _time(moment: float) -> str:
    return clock.rfc3339(moment)


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


def _print(report: "plan_report.PlanReport", output: str) -> None:
    if output in ("text", printing.WIDE):
        _print_text(report, wide=output == printing.WIDE)
    elif output == printing.NAME:
        click.echo(_names(report), nl=False)
    elif output == MARKDOWN:
        printing.show_text(plan_markdown.comment(report, _summary(report)))
    else:
        click.echo(printing.document(_document(report), output), nl=False)


def _names(report: "plan_report.PlanReport") -> str:
    """Return what would change."""
    modules = printing.names("module", (each.name for each in report.modules if each.is_change))
    return modules + printing.names("release", (each.release for each in report.purges))


def _print_text(report: "plan_report.PlanReport", *, wide: bool) -> None:
    for loss in report.losses:
        click.secho(shown_texts.shown(loss), fg="red")
    click.echo(printing.listing(_COLUMNS, _rows(report), _style, wide=wide, folds=True))
    for module in report.modules:
        _print_release(module)
    click.echo(_summary(report))
    if report.recorded_at is not None:
        click.echo(f"Planned by the state of {_time(report.recorded_at)}, without the cluster.", err=True)
    for module in report.modules:
        for unknown in module.unknown:
            printing.note(f"module {module.name}: {unknown}", "Not known")
    for note in report.notes:
        printing.note(note)


def _style(row: Sequence[str]) -> str:
    return _STYLES.get(row[4], "")


def _rows(report: "plan_report.PlanReport") -> Iterator[tuple[str, ...]]:
    for module in report.modules:
        state = "enabled" if module.enabled else "disabled"
        release = module.release
        titles = (f"release {module.title}",) if module.title else ()
        pending = (plan_markdown.PENDING,) if module.is_pending and module.is_change else ()
        because = "; ".join((*pending, *titles, *release.recoveries, release.reason))
        why = "; ".join((module.verdict, *(f"waits for {name}" for name in module.waits_for)))
        yield module.name, str(module.order), state, why, release.step, because
    for purge in report.purges:
        yield (
            purge.release,
            "",
            "",
            "",
            "purge",
            "; ".join([*([plan_markdown.PENDING] if purge.is_pending else []), purge.reason]),
        )


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
