"""Runs of hooks under test: the real process, with the files of a real run, over given objects."""

import asyncio
import logging
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import structlog
from msgspec import structs

from addon_operator.aio import waiting
from addon_operator.documents import document_stream
from addon_operator.engine import intents, state
from addon_operator.engine.hooks import (
    hook_exchange,
    hook_failures,
    hook_lines,
    hook_outputs,
    hook_processes,
    hook_run,
)
from addon_operator.engine.sources import config_sync
from addon_operator.kernel import errors, names
from addon_operator.kube import cluster as clusters
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.kube.objects import config_maps
from addon_operator.loading import hook_files
from addon_operator.telemetry import hook_metrics, series
from addon_operator.testing.given import api, given_objects
from addon_operator.testing.modules import (
    asked,
    hook_contexts,
    manifests,
    module_values,
    runtime,
    snapshots_of_hooks,
)
from addon_operator.values import store

DELETION_SECONDS: Final = 20.0
"""How long a hook waits for an object that it deletes, and that a finalizer holds."""
CONFIG_MAP: Final = "addon-operator"
_SHOWN_LINES: Final = 40


class HookFailedError(errors.AddonOperatorError, AssertionError):
    """A hook failed, or what it gave back is wrong, and the test did not expect that."""


class HookRun(msgspec.Struct, frozen=True):
    """What came of a run of a hook."""

    values: module_values.Values
    """The values afterwards, for a further run or a render."""
    config_values: Mapping[str, Any]
    """What the ConfigMap says afterwards."""
    objects: manifests.Manifests
    """The given objects, with what the hook changed of them."""
    patches: Sequence[Mapping[str, Any]]
    """The operations on objects, as the hook wrote them."""
    metrics: Sequence[Mapping[str, Any]]
    """The operations on metrics, as the hook wrote them."""
    log: str
    """What it printed, to both streams."""
    exit_code: int
    allowed: bool | None = None
    """Whether it lets a reviewed request pass; nothing if it was asked for no review."""
    message: str = ""
    """Why it denies a request, or does not convert objects: for the user."""
    warnings: Sequence[str] = ()
    """What the user sees besides."""
    patched: Mapping[str, Any] | None = None
    """The reviewed object afterwards; nothing if the request is denied, or deletes it."""
    converted: Sequence[Mapping[str, Any]] = ()
    """The objects in the version that was wanted."""
    error: str = ""
    """Why it counts as failed: it ended so, or what it gave back is wrong; nothing of that was applied."""


class HookLines:
    """Keeps what hooks print."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.logger: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
            None,
            processors=[self._keep],
            wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        )

    def _keep(self, _logger: object, _level: str, event: structlog.typing.EventDict) -> str:
        self.lines.append(str(event["event"]))
        raise structlog.DropEvent

    @property
    def text(self) -> str:
        """All lines."""
        return "".join(f"{line}\n" for line in self.lines)


def _ignore(_event: object) -> None:
    """Ignore it: nobody is told of a run in a test."""


class HookRunner:
    """Runs hooks of one owner, a module or the global hooks."""

    def __init__(
        self,
        runtime: runtime.Runtime,
        root: pathlib.Path,
        module: names.ModuleName | None,
        definitions: Sequence[Mapping[str, Any]],
        kubernetes: str,
    ) -> None:
        """``root`` is the directory of the hooks; ``definitions`` are of kinds that the cluster has."""
        self.runtime = runtime
        self._root = root
        self._module = module
        self._definitions = definitions
        self._kubernetes = kubernetes

    async def hook(self, name: str) -> state.Hook:
        """Return a hook by its path below the directory of hooks, with its configuration.

        Raises a :class:`.ConfigurationError` if there is none, or if it is wrong.
        """
        files = {file.name: file for file in hook_files.discover(self._root).executables}
        # Hooks of one program have its path before their own names.
        file = files.get(name) or files.get(name.partition(":")[0])
        hooks = {} if file is None else {hook.name: hook for hook in await self._held(file)}
        if name not in hooks:
            known = hooks or files
            hint = names.did_you_mean(name, known, f"there are: {', '.join(known) or 'none'}")
            raise errors.ConfigurationError(f"{self._root} has no hook {name!r} that can run; {hint}")
        return hooks[name]

    async def all(self) -> list[state.Hook]:
        """Return all hooks with their configurations."""
        found = hook_files.discover(self._root)
        if found.problem:
            raise hook_files.HookFilesError(found.problem)
        return [hook for held in await asyncio.gather(*map(self._held, found.executables)) for hook in held]

    async def _held(self, file: hook_files.HookFile) -> tuple[state.Hook, ...]:
        return await self.runtime.hooks_of(file, self._module, self.processes(HookLines()))

    def processes(self, lines: HookLines) -> hook_processes.HookProcesses:
        """Return what starts hooks, and hands on what they print."""
        return hook_processes.HookProcesses(
            tmp_dir=self.runtime.workspace,
            environment=self.runtime.environment_of_hooks(),
            default_timeout=None,
            log=hook_lines.HookLog(lines.logger),
            programs=self.runtime.programs,
            checking_jq=self.runtime.worker.checking_jq,
        )

    async def run(self, hook: state.Hook, given: hook_contexts.Given) -> HookRun:
        """Run a hook once. What it fails with is in the result; what the test got wrong is raised."""
        cluster = api.GivenApi(given_objects.GivenObjects(given.objects, self._definitions), self._kubernetes)
        await self.runtime.serve(cluster)
        lines = HookLines()
        async with api.client_of(cluster) as kube:
            view = snapshots_of_hooks.HookView(kube, self.runtime.jq)
            why = await hook_contexts.reason(hook, given, view, cluster.given, self._definitions)
            return await _Run(self, hook, given, kube, cluster.given).run(self.processes(lines), why, lines)

    def patcher(self, kube: client.KubeClient) -> clusters.Cluster:
        """Return the operator's way to carry out what hooks ask for, over the given objects."""
        kinds = discovery.Catalog(kube, waiting.SystemTime())
        return clusters.Cluster(kube, kinds, given_objects.NAMESPACE, waiting.SystemTime(), lambda *_: None)

    @property
    def jq(self) -> Any:  # noqa: ANN401 - a seam of kube
        """What runs the programs of patches."""
        return self.runtime.jq


class _Run:
    """One run, and the outputs applied as the operator applies them."""

    def __init__(
        self,
        runner: HookRunner,
        hook: state.Hook,
        given: hook_contexts.Given,
        kube: client.KubeClient,
        cluster: given_objects.GivenObjects,
    ) -> None:
        self._runner = runner
        self._hook = hook
        self._given = given
        self._kube = kube
        self._cluster = cluster
        self._values = given.values.stored()

    async def run(
        self,
        processes: hook_processes.HookProcesses,
        why: hook_contexts.Reason,
        lines: HookLines,
    ) -> HookRun:
        hook, store_now = self._hook, self._values
        written: Mapping[str, str] = {}
        exit_code, error, answer = 0, "", asked.Answer()
        try:
            enabled = store_now.enabled if hook.module is not None else None
            values = hook_exchange.values_now(store_now, hook.module, enabled)
            ran = await processes.run(hook, hook_exchange.Given(why.contexts, values, why.question), {})
            written = ran.written
            answer = await self._take(ran, why)
        except hook_processes.HookRunError as failed:
            exit_code, error = failed.result.exit_code, str(failed)
            drops_outputs = why.question is not None and why.question.drops_outputs
            if hook_failures.has_failed(failed.result) and not drops_outputs:
                await self._after_failure(failed)
        except errors.AddonOperatorError as wrong:
            error = str(wrong)
        return structs.replace(self._result(written, lines.text, exit_code, error), **structs.asdict(answer))

    async def _take(self, ran: hook_processes.HookRunResult, why: hook_contexts.Reason) -> asked.Answer:
        """Apply the outputs, nothing of them if one is wrong, and return the answer."""
        question = why.question
        if question is None:
            await self._apply(ran, None)
            return asked.Answer()
        if not question.drops_outputs:
            await self._apply(ran, None if question.may_patch_values else why.binding)
        answer: asked.Answer = ran.answer
        return answer

    async def _apply(self, ran: hook_processes.HookRunResult, reviewing: str | None) -> None:
        """Apply what it wrote; ``reviewing`` is a binding that may not patch values."""
        sync = _config_sync(self._values, self._given.values.data)
        outputs = self._outputs(sync)
        if ran.written[hook_exchange.CONFIG_VALUES_PATCH].strip():
            await sync.load()
        checked_outputs = await outputs.check(self._hook, ran)
        if reviewing is not None:
            hook_run.check_without_values(self._hook, reviewing, checked_outputs)
        await outputs.apply(self._hook, checked_outputs, DELETION_SECONDS)

    async def _after_failure(self, failed: hook_processes.HookRunError) -> None:
        outputs = self._outputs(_config_sync(self._values, self._given.values.data))
        await outputs.apply_after_failure(self._hook, failed.kubernetes_patch)

    def _outputs(self, sync: config_sync.ConfigSync) -> hook_outputs.HookOutputs:
        patcher = self._runner.patcher(self._kube).object_patcher(self._runner.jq)
        metrics = hook_metrics.HookMetrics(series.Registry())
        return hook_outputs.HookOutputs(patcher, sync, self._values, metrics)

    def _result(self, written: Mapping[str, str], log: str, exit_code: int, error: str) -> HookRun:
        after = self._given.values.after(self._values)
        return HookRun(
            values=after,
            config_values=after.config,
            objects=manifests.Manifests(self._cluster.all()),
            patches=_documents(written.get(hook_exchange.KUBERNETES_PATCH, "")),
            metrics=_documents(written.get(hook_exchange.METRICS, "")),
            log=log,
            exit_code=exit_code,
            error=error,
        )


def _config_sync(values_now: store.ValuesStore, data: Mapping[str, str]) -> config_sync.ConfigSync:
    """Return what writes to the ConfigMap: one of its own, as it is not among the objects of the test."""
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": given_objects.NAMESPACE},
        "data": dict(data),
    }
    own = api.client_of(api.GivenApi(given_objects.GivenObjects([body]), runtime.KUBERNETES))
    config_map = config_maps.ConfigMap(own, given_objects.NAMESPACE, CONFIG_MAP)
    return config_sync.ConfigSync(
        values_now, config_map, intents.Inbox(), _ignore, source=module_values.SOURCE
    )


def _documents(text: str) -> list[Mapping[str, Any]]:
    if not text.strip():
        return []
    try:
        return [each for each in document_stream.load_stream(text) if isinstance(each, Mapping)]
    except document_stream.DocumentError:
        # What is wrong is the error of the run.
        return []


def checked(hook: str, run: HookRun) -> HookRun:
    """Return a run that succeeded.

    Raises :class:`HookFailedError`, with what the hook printed, for another one.
    """
    __tracebackhide__ = True
    if run.error:
        lines = run.log.splitlines()
        printed = "\n".join(lines[-_SHOWN_LINES:]) or "(nothing)"
        raise HookFailedError(
            f"{run.error}\n\nhook {hook} printed:\n{printed}\n\n"
            "To expect that, run it with check=False, or write expect.error in YAML."
        )
    return run
