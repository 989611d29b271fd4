"""What a hook gives back: all of it read and checked before the first part is applied."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from addon_operator.aio import threads
from addon_operator.documents import document_stream
from addon_operator.engine import state
from addon_operator.engine.hooks import hook_exchange, hook_processes
from addon_operator.engine.sources import config_sync
from addon_operator.hook_contract.outputs import metric_operations, object_operations
from addon_operator.kernel import names
from addon_operator.kernel.json_types import JsonObject
from addon_operator.kube.objects import object_patches, own_deletions
from addon_operator.telemetry import hook_metrics
from addon_operator.values import section_state, store
from addon_operator.values.patches import patches

Read = TypeVar("Read")

LARGE_CHARS: Final = 64 * 1024
"""From so many characters of documents on, YAML takes so long that it is not read in this process."""


_MOST_HINTS: Final = 5


class HookEffects(msgspec.Struct, frozen=True):
    """What a run changed."""

    values_changed: bool = False
    flags_changed: bool = False
    """An Enabled flag of some module changed."""

    def __or__(self, other: "HookEffects") -> "HookEffects":
        return HookEffects(
            self.values_changed or other.values_changed, self.flags_changed or other.flags_changed
        )


class CheckedOutputs(msgspec.Struct, frozen=True):
    """The outputs of one run, none of which breaks a rule."""

    objects: tuple[object_operations.Operation, ...]
    config_values: patches.ValuesPatch | None
    values: patches.ValuesPatch | None
    new_values: section_state.SectionPatch | None
    """What :attr:`values` makes of the section, as long as that does not change."""
    metrics: tuple[metric_operations.Operation, ...]
    metric_plan: hook_metrics.MetricPlan | None
    hints: tuple[str, ...] = ()
    """What the author of the hook may not have meant: the sentence after its name, for each output."""


class HookOutputs:
    """Applies the outputs of hooks to the cluster, the ConfigMap, the values and the metrics."""

    def __init__(
        self,
        objects: object_patches.ObjectPatcher,
        config: config_sync.ConfigSync,
        values: store.ValuesStore,
        metrics: hook_metrics.HookMetrics,
        load_large: object_operations.LoadDocuments = document_stream.load_stream,
        checking_jq: hook_processes.CheckingJq = contextlib.nullcontext,
    ) -> None:
        """``load_large`` reads the documents of an output of more than :data:`LARGE_CHARS`.

        ``checking_jq`` is entered while operations on objects are read.
        """
        self._checking_jq = checking_jq
        self._objects = objects
        self._config = config
        self._values = values
        self._metrics = metrics
        self._load_large = load_large

    async def check(self, hook: state.Hook, ran: hook_processes.HookRunResult) -> CheckedOutputs:
        """Read all outputs; raises an :class:`.AddonOperatorError` for the first that is wrong."""
        objects = await self._read_objects(hook, ran.written[hook_exchange.KUBERNETES_PATCH])
        metrics = await _read(hook, ran, hook_exchange.METRICS, metric_operations.parse) or ()
        values = await _read(hook, ran, hook_exchange.VALUES_PATCH, patches.parse_patch)
        config_values = await _read(hook, ran, hook_exchange.CONFIG_VALUES_PATCH, patches.parse_patch)
        config: JsonObject | None = None
        if config_values is not None:
            self._config.check_writable()
            config = (
                await threads.run(threads.OUTPUTS, self._values.config_patched, hook.module, config_values)
            ).section
        return CheckedOutputs(
            objects,
            config_values,
            values,
            None if values is None else await self._patched(hook.module, values, config),
            metrics,
            await self._plan_metrics(hook, metrics),
            tuple(
                _hints(
                    objects,
                    metrics,
                    {hook_exchange.VALUES_PATCH: values, hook_exchange.CONFIG_VALUES_PATCH: config_values},
                )
            ),
        )

    async def apply(
        self,
        hook: state.Hook,
        outputs: CheckedOutputs,
        seconds: float | None,
        waiting: object_patches.Waiting = object_patches.uninterrupted,
    ) -> HookEffects:
        """Apply objects first, then the ConfigMap, values and metrics, up to the first that fails.

        A deletion may take ``seconds``; ``waiting`` is entered meanwhile.
        """
        effects, owner = HookEffects(), hook.module
        if outputs.objects:
            await self._objects.apply(outputs.objects, _writer(hook, seconds, waiting))
        if outputs.config_values is not None:
            effects |= HookEffects(values_changed=await self._config.write(owner, outputs.config_values))
        if outputs.values is not None:
            new_values = outputs.new_values
            while new_values is None or not self._values.is_current(owner, new_values):
                new_values = await self._patched(owner, outputs.values)
            effects |= HookEffects(*self._values.apply_values_patch(owner, outputs.values, new_values))
            self._values.note_writer(owner, outputs.values, time.time())
        plan = outputs.metric_plan
        while plan is not None and not self._metrics.carry_out(plan):
            plan = await self._plan_metrics(hook, outputs.metrics)
        return effects

    async def apply_after_failure(self, hook: state.Hook, kubernetes_patch: str) -> None:
        """Apply what is to be done even though the hook failed."""
        written = await self._read_objects(hook, kubernetes_patch)
        operations = object_operations.for_failed_hook(written)
        if operations:
            await self._objects.apply(operations, _writer(hook))

    async def _patched(
        self,
        owner: names.ModuleName | None,
        patch: patches.ValuesPatch,
        config: JsonObject | None = None,
    ) -> section_state.SectionPatch:
        """Return what the patch makes of the values, over what the ConfigMap will say."""
        return await threads.run(threads.OUTPUTS, self._values.frozen(owner, config).patched, patch)

    async def _plan_metrics(
        self, hook: state.Hook, operations: Sequence[metric_operations.Operation]
    ) -> hook_metrics.MetricPlan | None:
        if not operations:
            return None
        labels = {"hook": hook.name} | ({"module": hook.module} if hook.module else {})
        return await asyncio.to_thread(self._metrics.plan, operations, labels)

    async def _read_objects(self, hook: state.Hook, text: str) -> tuple[object_operations.Operation, ...]:
        if not text or text.isspace():
            return ()
        load = self._load_large if len(text) > LARGE_CHARS else document_stream.load_stream
        # Large documents take their time.
        source = _source(hook, hook_exchange.KUBERNETES_PATCH)
        with self._checking_jq():
            return await threads.run(threads.OUTPUTS, object_operations.parse, text, source, load)


async def _read(
    hook: state.Hook, ran: hook_processes.HookRunResult, variable: str, parse: Callable[[str, str], Read]
) -> Read | None:
    """Read what the hook wrote to a file; ``None`` if that is nothing."""
    text = ran.written[variable]
    if not text or text.isspace():
        return None
    return await asyncio.to_thread(parse, text, _source(hook, variable))


def _hints(
    objects: Sequence[object_operations.Operation],
    metrics: Sequence[metric_operations.Operation],
    values: Mapping[str, patches.ValuesPatch | None],
) -> Iterator[str]:
    """Yield for each output which keys of it have no effect, or two values."""
    for variable, patch in values.items():
        if patch is not None and patch.ambiguity:
            yield (
                f"wrote an ambiguous patch to the file ${variable}: {patch.ambiguity}, of which the last "
                "counts"
            )
    for variable, origins in (
        (hook_exchange.KUBERNETES_PATCH, [operation.origin for operation in objects]),
        (hook_exchange.METRICS, metrics),
    ):
        found = [f"document [{origin.index}], {text}" for origin in origins for text in origin.ignored]
        if found:
            more = f"; and {len(found) - _MOST_HINTS} more" if len(found) > _MOST_HINTS else ""
            yield f"wrote keys to ${variable} that have no effect: {'; '.join(found[:_MOST_HINTS])}{more}"


def _writer(
    hook: state.Hook,
    seconds: float | None = None,
    waiting: object_patches.Waiting = object_patches.uninterrupted,
) -> object_patches.HookWriter:
    owner = own_deletions.Owner(hook.module or "")
    source = _source(hook, hook_exchange.KUBERNETES_PATCH)
    return object_patches.HookWriter(source, owner, hook.field_manager, seconds, waiting)


def _source(hook: state.Hook, variable: str) -> str:
    return f"hook {hook.name}: {variable}"
