"""Running a hook: values in, outputs out, all of them checked before the first is applied."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from addon_operator.documents import document_stream
from addon_operator.engine import events, state
from addon_operator.engine.hooks import hook_runner
from addon_operator.engine.queues import tasks
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.outputs import metric_operations, object_operations
from addon_operator.kernel import errors, names
from addon_operator.kernel.json_types import JsonObject
from addon_operator.kube.objects import own_deletions
from addon_operator.process.children import children
from addon_operator.telemetry import hook_metrics
from addon_operator.values import config_map, section, store
from addon_operator.values.patches import patches

LARGE_CHARS: Final = 64 * 1024
"""From so many characters of documents on, YAML takes so long that it is not read in this process."""

HOLDS_AFTER: Final = 30.0
"""Seconds after which it is told that a hook still runs."""


@dataclasses.dataclass(frozen=True, slots=True)
class HookEffects:
    """What a run changed."""

    values_changed: bool = False
    flags_changed: bool = False
    """An Enabled flag of some module changed."""

    def __or__(self, other: "HookEffects") -> "HookEffects":
        return HookEffects(
            self.values_changed or other.values_changed, self.flags_changed or other.flags_changed
        )


class ConfigWriter(Protocol):
    """Writes config values; see :mod:`.config_state`."""

    def check(
        self, owner: names.ModuleName | None, patch: patches.ValuesPatch
    ) -> config_map.ConfigPatchResult:
        """What the patch will make of the section; called from another thread.

        Raises :class:`.PatchError` or
        :class:`.InvalidValuesError` for a patch that cannot be applied.
        """
        ...

    async def write(self, owner: names.ModuleName | None, patch: patches.ValuesPatch) -> bool:
        """Apply the patch to the ConfigMap in the cluster and to the store; whether it changed something."""
        ...


class ObjectPatcher(Protocol):
    """Changes objects of the cluster; see :mod:`.object_patches`."""

    async def apply(
        self, operations: Sequence[object_operations.Operation], owner: own_deletions.Owner, source: str
    ) -> None:
        """Carry the operations out in their order, up to the first that fails, which is raised."""
        ...


class MetricStore(Protocol):
    """Keeps the metrics of hooks; see :mod:`.hook_metrics`."""

    def plan(
        self, operations: Sequence[metric_operations.Operation], added: Mapping[str, str]
    ) -> hook_metrics.MetricPlan:
        """What the operations make of the metrics, or an error; ``added`` are labels for all series."""
        ...

    def carry_out(self, plan: hook_metrics.MetricPlan) -> bool:
        """Apply a plan; ``False`` if it is out of date."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Sinks:
    """Where outputs go that are no values."""

    objects: ObjectPatcher
    metrics: MetricStore
    load_large: object_operations.LoadDocuments = document_stream.load_stream
    """Reads the documents of an output of more than :data:`LARGE_CHARS`."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Outputs:
    objects: tuple[object_operations.Operation, ...]
    metrics: tuple[metric_operations.Operation, ...]
    values: patches.ValuesPatch | None
    config_values: patches.ValuesPatch | None
    ready: section.SectionPatch | None = None
    metric_plan: hook_metrics.MetricPlan | None = None


class HookExecutor:
    """Runs hooks and applies what they give back."""

    def __init__(
        self,
        runner: hook_runner.HookRunner,
        values: store.ValuesStore,
        config_writer: ConfigWriter,
        sinks: Sinks,
        tell: events.Listener,
        *,
        enabled_modules: Callable[[], Sequence[names.ModuleName]],
        is_current: Callable[[state.Hook], bool],
        warn: Callable[[str], None],
    ) -> None:
        """``is_current``: whether there is still somebody for whom a hook has run."""
        self._runner = runner
        self._values = values
        self._config_writer = config_writer
        self._sinks = sinks
        self._tell = tell
        self._enabled_modules = enabled_modules
        self._is_current = is_current
        self._warn = warn

    async def run(
        self,
        hook: state.Hook,
        contexts: Iterable[binding_contexts.Context],
        labels: events.HookLabels,
        *,
        allow_failure: bool = False,
    ) -> HookEffects:
        """Run ``hook`` with these binding contexts.

        Raises :class:`.HookFailed` when it fails, and an
        :class:`.AddonOperatorError` when one of its outputs is wrong; nothing of
        a wrong output is applied. Raises :class:`.SupersededError` when the
        module of the hook was removed meanwhile; nothing is applied then, either.
        """
        result: children.ChildResult | None = None
        try:
            async with self._told_when_long(labels):
                ran = await self._runner.run(self._request(hook, contexts, labels))
            result = ran.result
            self._check_current(hook)
            outputs = await self._read(hook, ran)
            self._check_current(hook)
            effects = await self._apply(hook, outputs)
        except tasks.SupersededError:
            raise
        except errors.AddonOperatorError as error:
            self._check_current(hook)
            failed = error.result if isinstance(error, hook_runner.HookFailed) else result
            if isinstance(error, hook_runner.HookFailed):
                await self._tell_of_failure(hook, error)
            self._tell(events.HookFailed(labels, failed, allow_failure))
            raise
        self._tell(events.HookSucceeded(labels, ran.result))
        return effects

    @contextlib.asynccontextmanager
    async def _told_when_long(self, labels: events.HookLabels) -> AsyncIterator[None]:
        """Tell of a hook that holds its queue, at times that double."""
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle

        def tell(seconds: float) -> None:
            nonlocal timer
            self._tell(events.HookHolds(labels, seconds))
            timer = loop.call_later(seconds, tell, 2 * seconds)

        timer = loop.call_later(HOLDS_AFTER, tell, HOLDS_AFTER)
        try:
            yield
        finally:
            timer.cancel()

    def _check_current(self, hook: state.Hook) -> None:
        if not self._is_current(hook):
            raise tasks.SupersededError(f"hook {hook.name}: module {hook.module} was removed while it ran")

    def _request(
        self, hook: state.Hook, contexts: Iterable[binding_contexts.Context], labels: events.HookLabels
    ) -> hook_runner.HookRunRequest:
        fields = {"hook": labels.hook, "binding": labels.binding, "queue": labels.queue}
        return hook_runner.HookRunRequest(
            path=hook.path,
            contexts=contexts,
            config_values=self._values.config_values(hook.module),
            values=self._values.values(hook.module, self._visible_modules(hook)),
            log_fields=fields | ({"module": hook.module} if hook.module else {}),
            timeout=hook.config.settings.execution_timeout,
        )

    def _visible_modules(self, hook: state.Hook) -> Sequence[names.ModuleName] | None:
        return self._enabled_modules() if hook.module is not None else None

    async def _read(self, hook: state.Hook, ran: hook_runner.HookRunResult) -> _Outputs:
        outputs = _Outputs(
            objects=await self._objects(hook, ran.kubernetes_patch),
            metrics=await _metrics(hook, ran.metrics),
            values=await _patch(ran.values_patch, f"hook {hook.name}: VALUES_JSON_PATCH_PATH"),
            config_values=await _patch(
                ran.config_values_patch, f"hook {hook.name}: CONFIG_VALUES_JSON_PATCH_PATH"
            ),
        )
        ready = await self._check_values(hook.module, outputs)
        metric_plan = await self._plan_metrics(hook, outputs.metrics)
        return dataclasses.replace(outputs, ready=ready, metric_plan=metric_plan)

    async def _plan_metrics(
        self, hook: state.Hook, operations: Sequence[metric_operations.Operation]
    ) -> hook_metrics.MetricPlan | None:
        if not operations:
            return None
        return await asyncio.to_thread(self._sinks.metrics.plan, operations, _metric_labels(hook))

    async def _check_values(
        self, owner: names.ModuleName | None, outputs: _Outputs
    ) -> section.SectionPatch | None:
        """Check the patches of values in a thread, that of ``VALUES`` over what the other one will make."""
        config: JsonObject | None = None
        if outputs.config_values is not None:
            result = await asyncio.to_thread(self._config_writer.check, owner, outputs.config_values)
            config = result.section
        if outputs.values is None:
            return None
        return await asyncio.to_thread(self._values.frozen(owner, config).patched, outputs.values)

    async def _apply(self, hook: state.Hook, outputs: _Outputs) -> HookEffects:
        effects, owner = HookEffects(), hook.module
        if outputs.objects:
            await self._change_objects(hook, outputs.objects)
        if outputs.config_values is not None:
            effects |= HookEffects(
                values_changed=await self._config_writer.write(owner, outputs.config_values)
            )
        if outputs.values is not None:
            ready = outputs.ready
            while ready is None or not self._values.is_current(owner, ready):
                ready = await asyncio.to_thread(self._values.frozen(owner).patched, outputs.values)
            outcome = self._values.apply_values_patch(owner, outputs.values, ready)
            effects |= HookEffects(outcome.values_changed, outcome.flags_changed)
        plan = outputs.metric_plan
        while plan is not None and not self._sinks.metrics.carry_out(plan):
            plan = await self._plan_metrics(hook, outputs.metrics)
        return effects

    async def _change_objects(
        self, hook: state.Hook, operations: Sequence[object_operations.Operation]
    ) -> None:
        owner = own_deletions.Owner(hook.module or "")
        await self._sinks.objects.apply(operations, owner, _object_source(hook))

    async def _objects(self, hook: state.Hook, text: str) -> tuple[object_operations.Operation, ...]:
        if not text or text.isspace():
            return ()
        load = self._sinks.load_large if len(text) > LARGE_CHARS else document_stream.load_stream
        # Large documents take their time.
        return await asyncio.to_thread(object_operations.parse, text, _object_source(hook), load)

    async def _tell_of_failure(self, hook: state.Hook, failure: hook_runner.HookFailed) -> None:
        """Carry out what is to be done even though the hook failed; a mistake there does not hide that."""
        try:
            written = await self._objects(hook, failure.kubernetes_patch)
            operations = object_operations.for_failed_hook(written)
            if operations:
                await self._change_objects(hook, operations)
        except errors.AddonOperatorError as error:
            self._warn(f"the hook failed, and what it wrote about that cannot be applied: {error}")


async def _patch(text: str, source: str) -> patches.ValuesPatch | None:
    return await asyncio.to_thread(patches.parse_patch, text, source) if text.strip() else None


async def _metrics(hook: state.Hook, text: str) -> tuple[metric_operations.Operation, ...]:
    if not text or text.isspace():
        return ()
    return await asyncio.to_thread(metric_operations.parse, text, f"hook {hook.name}: METRICS_PATH")


def _object_source(hook: state.Hook) -> str:
    return f"hook {hook.name}: KUBERNETES_PATCH_PATH"


def _metric_labels(hook: state.Hook) -> dict[str, str]:
    return {"hook": hook.name} | ({"module": hook.module} if hook.module else {})
