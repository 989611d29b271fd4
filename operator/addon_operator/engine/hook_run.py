"""Running a hook: values in, outputs out, all of them checked before the first is applied."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

from addon_operator.engine import hook_runner, state
from addon_operator.kernel import errors, names
from addon_operator.kernel.json_types import JsonObject
from addon_operator.process import children
from addon_operator.values import patches, store


@dataclasses.dataclass(frozen=True, slots=True)
class HookLabels:
    """The labels of a run in metrics and logs."""

    hook: str
    binding: str
    queue: str
    activation: str
    module: names.ModuleName | None = None


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
    """Writes config values; see :mod:`addon_operator.engine.config_state`."""

    def check(self, owner: names.ModuleName | None, patch: patches.ValuesPatch) -> None:
        """Raise a :class:`~addon_operator.values.patches.PatchError` for a patch that cannot be applied."""
        ...

    async def write(self, owner: names.ModuleName | None, patch: patches.ValuesPatch) -> bool:
        """Apply the patch to the ConfigMap in the cluster and to the store; whether it changed something."""
        ...


class HookObserver(Protocol):
    """Who is told of runs: metrics."""

    def hook_succeeded(self, labels: HookLabels, result: children.ChildResult) -> None:
        """The hook exited with 0 and its outputs were applied."""
        ...

    def hook_failed(self, labels: HookLabels, result: children.ChildResult | None, *, allowed: bool) -> None:
        """The hook or one of its outputs failed; ``result`` is there if a process ended."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class _Outputs:
    values: patches.ValuesPatch | None
    config_values: patches.ValuesPatch | None


class HookExecutor:
    """Runs hooks and applies what they give back."""

    def __init__(
        self,
        runner: hook_runner.HookRunner,
        values: store.ValuesStore,
        config_writer: ConfigWriter,
        observer: HookObserver,
        *,
        enabled_modules: Callable[[], Sequence[names.ModuleName]],
        warn: Callable[[str], None],
    ) -> None:
        self._runner = runner
        self._values = values
        self._config_writer = config_writer
        self._observer = observer
        self._enabled_modules = enabled_modules
        self._warn = warn

    async def run(
        self,
        hook: state.Hook,
        contexts: Sequence[JsonObject],
        labels: HookLabels,
        *,
        allow_failure: bool = False,
    ) -> HookEffects:
        """Run ``hook`` with these binding contexts.

        Raises :class:`~addon_operator.engine.hook_runner.HookFailed` when it fails, and an
        :class:`~addon_operator.kernel.errors.AddonOperatorError` when one of its outputs is wrong; nothing of
        a wrong output is applied.
        """
        result: children.ChildResult | None = None
        try:
            ran = await self._runner.run(self._request(hook, contexts, labels))
            result = ran.result
            outputs = self._read(hook, ran)
            effects = await self._apply(hook.module, outputs)
        except errors.AddonOperatorError as error:
            failed = error.result if isinstance(error, hook_runner.HookFailed) else result
            self._observer.hook_failed(labels, failed, allowed=allow_failure)
            raise
        self._observer.hook_succeeded(labels, ran.result)
        return effects

    def _request(
        self, hook: state.Hook, contexts: Sequence[JsonObject], labels: HookLabels
    ) -> hook_runner.HookRunRequest:
        fields = {"hook": labels.hook, "binding": labels.binding, "queue": labels.queue}
        return hook_runner.HookRunRequest(
            path=hook.path,
            contexts=list(contexts),
            config_values=self._values.config_values(hook.module),
            values=self._values.values(hook.module, self._visible_modules(hook)),
            log_fields=fields | ({"module": hook.module} if hook.module else {}),
            timeout=hook.config.settings.execution_timeout,
        )

    def _visible_modules(self, hook: state.Hook) -> Sequence[names.ModuleName] | None:
        return self._enabled_modules() if hook.module is not None else None

    def _read(self, hook: state.Hook, ran: hook_runner.HookRunResult) -> _Outputs:
        for name, text in (("METRICS_PATH", ran.metrics), ("KUBERNETES_PATCH_PATH", ran.kubernetes_patch)):
            if text.strip():
                self._warn(f"hook {hook.name} wrote to {name}, which this version does not read yet")
        outputs = _Outputs(
            values=_patch(ran.values_patch, f"hook {hook.name}: VALUES_JSON_PATCH_PATH"),
            config_values=_patch(ran.config_values_patch, f"hook {hook.name}: CONFIG_VALUES_JSON_PATCH_PATH"),
        )
        if outputs.config_values is not None:
            self._config_writer.check(hook.module, outputs.config_values)
        if outputs.values is not None:
            self._values.check_values_patch(hook.module, outputs.values)
        return outputs

    async def _apply(self, owner: names.ModuleName | None, outputs: _Outputs) -> HookEffects:
        effects = HookEffects()
        if outputs.config_values is not None:
            effects |= HookEffects(
                values_changed=await self._config_writer.write(owner, outputs.config_values)
            )
        if outputs.values is not None:
            outcome = self._values.apply_values_patch(owner, outputs.values)
            effects |= HookEffects(outcome.values_changed, outcome.flags_changed)
        return effects


def _patch(text: str, source: str) -> patches.ValuesPatch | None:
    return patches.parse_patch(text, source) if text.strip() else None
