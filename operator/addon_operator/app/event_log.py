"""What happens in the engine, as log records."""

from collections.abc import Sequence
from typing import Final

import structlog

from addon_operator.app import resource_notices
from addon_operator.engine import config_events, events, state, tasks
from addon_operator.engine.bindings import binding_events, hook_bindings
from addon_operator.helm import release_types
from addon_operator.kernel import errors, names

Logger = structlog.typing.FilteringBoundLogger

_SHOWN: Final = 5
_EDITED: Final = {
    "ConfigMap": "values ConfigMap changed",
    "Secret": "values Secret changed",
    "Module": "annotations of Module objects changed",
}
_NOTHING_DONE: Final = (release_types.ReleaseAction.SKIPPED, release_types.ReleaseAction.HELD_BACK)


class EventLog:
    """Writes events to the log; a :data:`.events.Listener`."""

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._global_hooks = 0
        self._found = ""

    def __call__(self, event: events.Event) -> None:
        """Find out what the event belongs to."""
        match event:
            case events.Warned() | events.RemovalDue():
                self._log.warning(event.text)
            case events.Noted(module=module):
                self._log.info(event.text, **({"module": module} if module else {}))
            case binding_events.BindingEvent() | events.RegistrationsChanged():
                self._of_bindings(event)
            case events.TaskStarted() | events.TaskFailed():
                self._of_tasks(event)
            case events.ReviewAnswered():
                self._review_answered(event)
            case events.HookHolds() | events.HookSucceeded() | events.HookDoubted():
                self._of_hooks(event)
            case events.ConvergeStarted() | events.ConvergeEnded() | events.ConvergeUnsettled():
                self._of_converges(event)
            case events.ConfigTaken() | config_events.ConfigEvent():
                self._of_config(event)
            case config_events.ConfigNotRead() | events.PartFailed():
                self._of_defects(event)
            case _:
                self._of_modules(event)
                self._of_releases(event)
                self._of_drift(event)

    def _of_tasks(self, event: events.TaskStarted | events.TaskFailed) -> None:
        task, fields = event.task, _fields_of(event.task)
        if isinstance(event, events.TaskStarted):
            self._log.debug("task begins", queue=event.queue, **fields)
            return
        next_try = "" if event.delay is None else f"; next try in {event.delay:.1f} s"
        if event.delay is None:
            next_try = "; a newer task takes its place" if task.superseded else "; failure is allowed"
        if event.is_final:
            # Its text says what has to change; to look whether that has is no next try.
            if task.attempts > 1:
                return
            next_try = ""
        # A traceback only for what is a defect of ours.
        expected = isinstance(event.error, errors.AddonOperatorError)
        self._log.error(
            f"{task.kind.doing} failed: {event.error}{next_try}",
            queue=event.queue,
            tries=task.attempts,
            exc_info=None if expected else event.error,
            **fields,
        )

    def _of_hooks(self, event: events.HookHolds | events.HookSucceeded | events.HookDoubted) -> None:
        """Log what hooks did, but no failures: their queues log them."""
        fields = _fields_of_run(event.labels)
        match event:
            case events.HookSucceeded(result=result):
                self._log.info("hook run done", seconds=round(result.wall_seconds, 3), **fields)
            case events.HookHolds(seconds=seconds):
                running = f"the hook has been running for {seconds:.0f} s"
                self._log.info(f"queue {event.labels.queue} waits: {running}", **fields)
            case events.HookDoubted(labels=labels, text=text, is_new=True):
                place = f"module {labels.module}: " if labels.module else ""
                self._log.warning(f"{place}hook {labels.hook} {text}", **fields)

    def _review_answered(self, event: events.ReviewAnswered) -> None:
        """Log in full why a request got no answer of its hook; the others on demand."""
        fields = {**_fields_of_run(event.labels), "seconds": round(event.seconds, 3)}
        if event.details:
            self._log.error(f"a request of the API server got no answer: {event.details}", **fields)
        else:
            self._log.debug("request of the API server answered", result=event.result, **fields)

    def _of_modules(self, event: events.Event) -> None:
        match event:
            case events.ModuleDecided(verdict=verdict):
                said = "enabled" if verdict.enabled else "disabled"
                self._log.debug(f"module {verdict.module} is {said}: {verdict.reason}", module=verdict.module)
            case events.ModuleRan(module=module, activation=activation):
                seconds = round(event.seconds, 3)
                self._log.info(
                    "module run ended",
                    module=module,
                    activation=activation,
                    seconds=seconds,
                    reason=_reason(event),
                )
            case events.HooksRegistered(module=None):
                self._global_hooks = len(event.hooks)
            case events.ModulesDiscovered():
                self._discovered(event)
            case events.ModuleGone():
                self._log.warning(f"module {event.module}: {event.path} is gone", module=event.module)
            case events.ModulesReloaded():
                for warning in event.warnings:
                    self._log.warning(warning)
                touched = ", ".join(event.touched)
                self._log.info(
                    f"changed on disk and reloaded: {touched}", modules=touched, reason=_reason(event)
                )
            case events.ReloadRefused(problem=problem, is_of_hooks=is_of_hooks):
                what = state.HOOKS_REFUSED if is_of_hooks else state.REFUSED
                self._log.error(f"{what}: {problem}", reason=_reason(event))
            case events.NothingRefused():
                self._log.info("nothing that changed on disk is refused any more", reason=_reason(event))

    def _registrations_changed(self, event: events.RegistrationsChanged) -> None:
        whose = f"module {event.owner}" if event.owner else "global hooks"
        fields = {"module": event.owner} if event.owner else {}
        if event.is_due:
            return
        if event.text:
            self._log.warning(f"{whose}: {event.text}", **fields)
        else:
            self._log.info(f"{whose}: all webhooks and conversions are registered", **fields)

    def _discovered(self, event: events.ModulesDiscovered) -> None:
        """Log discovered modules at the start, and when that changes."""
        counts = (
            f"{self._global_hooks} global hooks, {event.modules} modules, {event.enabled} of them enabled"
        )
        if counts != self._found:
            self._log.info(f"found {counts}")
        self._found = counts

    def _of_releases(self, event: events.Event) -> None:
        match event:
            case events.ReleaseEnsured():
                self._release_ensured(event)
            case events.HeldBack(held=held):
                text = "nothing waits for a window any more" if held is None else f"held back: {held}"
                self._log.info(text, module=event.module)

    def _release_ensured(self, event: events.ReleaseEnsured) -> None:
        module, outcome = event.module, event.outcome
        for repair in outcome.recovered:
            self._log.warning(f"release {module}: {repair}", module=module)
        if outcome.adopted:
            adopted = ", ".join(outcome.adopted)
            self._log.warning(
                f"release {module} took over objects that existed already: {adopted}", module=module
            )
        skipped = outcome.action in _NOTHING_DONE
        (self._log.debug if skipped else self._log.info)(
            f"release {outcome.action}: {outcome.reason}", module=module, revision=outcome.revision
        )

    def _of_converges(
        self, event: events.ConvergeStarted | events.ConvergeEnded | events.ConvergeUnsettled
    ) -> None:
        match event:
            case events.ConvergeStarted(activation=activation):
                self._log.info("converge begins", activation=activation)
            case events.ConvergeEnded(activation=activation, superseded=True):
                self._log.info(
                    "converge stopped for a newer intent, or for the end of the operator",
                    activation=activation,
                )
            case events.ConvergeEnded(activation=activation):
                self._log.info("converge done", activation=activation, seconds=round(event.seconds, 3))
            case events.ConvergeUnsettled():
                self._log.error(
                    f"global values still change after {event.rounds} converges in a row, by the afterAll "
                    f"hooks {', '.join(event.hooks)}: the next converge begins in {event.delay:.1f} s; "
                    "make the hooks stop changing values"
                )

    def _of_defects(self, event: config_events.ConfigNotRead | events.PartFailed) -> None:
        """Log a defect of ours with what a developer needs."""
        again = f"next try in {event.delay:.0f} s; report this bug with the log"
        if isinstance(event, config_events.ConfigNotRead):
            what = f"an edit of {event.source} could not be read, and the last good values stay in force"
        else:
            what = f"a part of the operator failed: {event.part}"
        self._log.error(f"{what}; {again}", exc_info=event.error)

    def _of_config(self, event: events.ConfigTaken | config_events.ConfigEvent) -> None:
        """Log an edit by what it touches and what follows; never by its values."""
        match event:
            case config_events.ConfigRight():
                self._log.info(f"the values {event.kind} is valid again")
            case config_events.ConfigRefused():
                self._log.error(f"{event.error}; {event.follows}")
            case config_events.ConfigMissing():
                self._log.warning(f"{event.source} is missing: {event.follows}")
            case config_events.ConfigFound():
                self._log.info(f"{event.source} is there again")
                if event.loss:
                    self._log.warning(event.loss)
            case events.ConfigTaken(change=change, reaction=reaction):
                touched = change.sections_changed | change.flags_changed | change.maintenance_changed
                runs = f"runs of {', '.join(reaction.runs) or 'no module'}"
                self._log.info(
                    _EDITED[event.kind],
                    **{
                        "global": change.global_changed,
                        "modules": ", ".join(sorted(touched)),
                        "follows": "converge" if reaction.converge else runs,
                    },
                )

    def _of_bindings(self, event: binding_events.BindingEvent | events.RegistrationsChanged) -> None:
        if isinstance(event, events.RegistrationsChanged):
            self._registrations_changed(event)
            return
        hook, binding = event.hook, event.binding
        fields = {"hook": hook.name} | ({"module": hook.module} if hook.module else {})
        named = f"binding {binding.name} ({binding.kind}) of hook {hook.name}"
        match event:
            case binding_events.BindingWaits(reason=None):
                self._log.info(f"{named} follows all of its objects again", **fields)
            case binding_events.BindingWaits(reason=str(reason)):
                row = hook_bindings.waiting_row(hook, binding, reason)
                self._log.warning(hook_bindings.waiting_text(row), **fields)

    def _of_drift(self, event: events.Event) -> None:
        if isinstance(event, events.ModuleEvent) and (notice := resource_notices.of(event)) is not None:
            log = self._log.info if notice.type == "Normal" else self._log.warning
            log(notice.text, module=event.module)
            return
        match event:
            case events.AbsentFound():
                self._log.info(
                    f"absent in the cluster: {shown(event.resources)}; the module runs, because it cannot "
                    f"be restored: {event.reason}",
                    module=event.module,
                )
            case events.ResourcesHealed():
                how = "restored by Helm" if event.by_helm else "restored from the record of the release"
                self._log.info(f"absent in the cluster, {how}: {shown(event.resources)}", module=event.module)
            case events.HealPostponed():
                self._log.warning(
                    f"{shown(event.resources)} disappears again and again; it is restored in "
                    f"{event.seconds:.0f} s. Find out who removes it, or remove it from the chart",
                    module=event.module,
                )
            case events.KindNotWatched(modules=modules):
                self._log.warning(
                    f"resources of the kind {event.kind} of module {', '.join(modules)} are not watched, so "
                    f"nobody notices when they disappear: {event.reason}"
                )
            case events.ResourcesShared(modules=modules):
                self._log.warning(
                    f"modules {' and '.join(modules)} both have {shown(event.resources)}, which belongs to "
                    f"{modules[-1]}, and {modules[0]} leaves it out; remove it from one of the charts",
                    modules=", ".join(modules),
                )
            case events.MaintenanceChanged():
                self._maintenance_changed(event)
            case state.SuspensionChanged(now=None):
                self._log.info("no longer suspended", module=event.module)
            case state.SuspensionChanged():
                self._log.warning(str(event.now), module=event.module)

    def _maintenance_changed(self, event: events.MaintenanceChanged) -> None:
        if event.mode:
            text = (
                f"in maintenance ({event.mode}): Helm and healing leave the module alone, its hooks continue"
            )
            self._log.warning(text, module=event.module)
        else:
            text = "maintenance has ended: Helm and healing manage the module again"
            self._log.info(text, module=event.module)


def _reason(event: events.Event) -> str:
    """Return what programs that read the log know the record by."""
    return type(event).__name__


def shown(resources: Sequence[str]) -> str:
    """Return the first resources, and how many more there are."""
    return names.listed(resources, _SHOWN)


def _fields_of(task: tasks.Task) -> dict[str, str]:
    fields = {"task": str(task.kind), "module": task.owner, "hook": task.hook, "binding": task.binding}
    return {key: value for key, value in fields.items() if value}


def _fields_of_run(labels: events.HookLabels) -> dict[str, str]:
    fields = {
        "hook": labels.hook,
        "module": labels.module or "",
        "binding": labels.binding,
        "queue": labels.queue,
        "activation": labels.activation,
    }
    return {key: str(value) for key, value in fields.items() if value}
