"""What an operator, and a plan, work with: the API, Helm, the programs that they start, a place for files."""

import contextlib
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Self

import structlog

from addon_operator.aio import waiting
from addon_operator.app import hook_environment, parts
from addon_operator.engine import events, intents
from addon_operator.engine.hooks import (
    hook_lines,
    hook_outputs,
    hook_processes,
    running_hooks,
    settings_programs,
)
from addon_operator.engine.sources import config_sync
from addon_operator.helm import binary, command, helm_bounds, memory, release_types
from addon_operator.helm.releases import releases
from addon_operator.helm.repositories import chart_access, chart_cache, chart_pull
from addon_operator.inspection import values_worker
from addon_operator.kernel import errors, names
from addon_operator.kube import api_errors, cluster, paths
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.kube.objects import config_maps, values_secret
from addon_operator.loading import crd_sources, preflight
from addon_operator.process.children import children
from addon_operator.process.jq import jq_filters, jq_workers
from addon_operator.settings import settings as settings_module
from addon_operator.telemetry import hook_metrics, metrics
from addon_operator.values import store

# The release that installed the operator is never removed. Helm writes its name into annotations of what it
# makes; the operator's pod is made from a Deployment that carries them. HELM_IGNORE_RELEASE names the release
# where this cannot be read.
_NAME: Final = "meta.helm.sh/release-name"
_NAMESPACE: Final = "meta.helm.sh/release-namespace"
_INSTANCE: Final = "app.kubernetes.io/instance"
_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
_LEVELS: Final = 4
_RULE_SECONDS: Final = 5.0
"""Pod, ReplicaSet, Deployment, and whatever may own that."""


class Tools:
    """Everything that a user's mistake can keep from being made; the workers start when they are needed."""

    worker: ClassVar[type[values_worker.ValuesWorker]] = values_worker.ValuesWorker
    jq_pool: ClassVar[type[jq_workers.JqWorkers]] = jq_workers.JqWorkers

    def __init__(
        self,
        settings: settings_module.Settings,
        environ: Mapping[str, str],
        helm: binary.HelmBinary,
        kube: client.KubeClient,
        programs: children.Children,
        workspace: pathlib.Path,
        alone: children.Children | None = None,
        time: waiting.Time | None = None,
    ) -> None:
        """``alone`` starts programs also in a replica that does not lead; by default nothing does.

        ``time`` is that of all parts; by default the machine's.
        """
        self.settings = settings
        self.environ = environ
        self.kube = kube
        self.time = time or waiting.SystemTime()
        self.log: structlog.typing.FilteringBoundLogger = structlog.get_logger("addon-operator")
        self._programs = programs
        self._alone = alone
        self.running_hooks = running_hooks.RunningHooks(programs)
        """What runs the programs of hooks, and Helm, where this replica leads."""
        self.warned: Callable[[names.ModuleName, str], None] = lambda *_: None
        """Gets what Helm and the API server warn of in a module's release as it is."""
        self._of_hooks: hook_metrics.HookMetrics | None = None
        self._workspace = workspace
        self._ram: pathlib.Path | None = None
        self.jq = self.jq_pool()
        self.jq_filters = jq_filters.JqFilters(self.jq)
        self.inspector = self.worker()
        """Reads and checks what users hand in."""
        self.outputs = self.worker(values_worker.OUTPUT_SECONDS)
        """Reads large outputs of hooks, and indexes: tens of MiB must not hold up the check of an edit."""
        self.healths = self.worker(_RULE_SECONDS)
        """Evaluates rules about health: one that takes long must not hold up anything else."""
        self.settings_programs = settings_programs.SettingsPrograms(
            programs.unfenced, self._hook_environment(), workspace, settings_programs.in_loop()
        )
        """Asks programs of modules whether settings are right: replicas that do not lead, too."""
        self.helm_major = helm.major
        self.kinds = discovery.Catalog(kube, self.time, settings.absence)
        """What the API server offers: all parts share what one of them learnt."""
        self._running = self._helm(helm)
        self.charts = self._chart_cache(self._running)
        """Pulls the charts that modules have from repositories."""
        self.memory = memory.Memory(
            kube, settings.namespace, settings.config_map, self.log.warning, self.time
        )
        """What the operator remembers; whoever leads loads it."""
        self.releases = self._release_manager()

    @classmethod
    async def open(
        cls,
        stack: contextlib.AsyncExitStack,
        settings: settings_module.Settings,
        environ: Mapping[str, str],
        helm: binary.HelmBinary,
        kube: client.KubeClient,
        programs: children.Children,
        alone: children.Children | None = None,
        time: waiting.Time | None = None,
    ) -> Self:
        """Make them; they last until ``stack`` closes.

        Raises :class:`.ConfigurationError` for what keeps the operator from starting.
        """
        await check_namespace(kube, settings.namespace)
        keep = settings.debug_keep_tmp_files
        workspace = stack.enter_context(preflight.workspace(settings, keep=keep))
        tools = cls(settings, environ, helm, kube, programs, workspace, alone, time)
        if not keep:
            tools._ram = stack.enter_context(preflight.memory_workspace(workspace))
        await stack.enter_async_context(tools.jq)
        stack.enter_context(tools.inspector)
        stack.enter_context(tools.outputs)
        stack.enter_context(tools.healths)
        stack.push_async_callback(tools.charts.close)
        return tools

    def _helm(self, helm: binary.HelmBinary) -> command.Helm:
        settings, access = self.settings, self.kube.access
        target = command.HelmTarget(
            settings.namespace,
            access.kubeconfig,
            access.context,
            access.server_override,
            settings.helm_memory or helm_bounds.default_memory(settings.modules_parallelism),
        )
        workspace = self._workspace / "helm"
        workspace.mkdir(mode=0o700)
        environ = {**self.environ, "HELM_DRIVER": settings.helm_driver}
        tell = self._warn_of_helm, self._doubt
        return command.Helm(helm, target, environ, workspace, self.running_hooks, *tell)

    def _chart_cache(self, helm: command.Helm) -> chart_cache.ChartCache:
        access = chart_access.Access(self.settings.chart_credentials, self.settings.chart_ca_file)
        puller = chart_pull.ChartPuller(helm, access, self.environ, self.outputs.read_index)
        return chart_cache.ChartCache(self.settings.charts, puller, self.log.info)

    def without_cluster(self, rework: Callable[[str], str]) -> None:
        """Let charts look nothing up from now on, as there is no cluster; ``rework`` rewrites manifests."""
        self.releases = self._release_manager(rework)

    def _release_manager(self, rework: Callable[[str], str] | None = None) -> releases.ReleaseManager:
        settings = self.settings
        options = release_types.Options(
            settings.helm_history_max,
            settings.helm_timeout,
            settings.crd_extra_labels,
            release_types.TakeOwnership(settings.take_ownership),
            settings.common_labels,
            settings.common_annotations,
            removal_data=settings.removal_data,
            absence=settings.absence,
        )
        known, driver = (self.memory, self.time), settings.helm_driver
        return parts.release_manager(self._running, self.kube, self.kinds, options, *known, driver, rework)

    def _warn_of_helm(self, module: names.ModuleName, text: str) -> None:
        self.log.warning(text, module=module, source="helm")

    def _doubt(self, module: names.ModuleName, text: str) -> None:
        self.warned(module, text)

    def hook_processes(self, *, alone: bool = False) -> hook_processes.HookProcesses:
        """Make what runs hooks and ``enabled`` scripts; ``alone``: whether or not this replica leads."""
        settings = self.settings
        return hook_processes.HookProcesses(
            tmp_dir=self._workspace,
            memory=self._ram,
            environment=self._hook_environment(),
            default_timeout=settings.hook_timeout,
            log=hook_lines.HookLog(self.log, merge_json=settings.log_proxy_hook_json),
            keep_tmp_files=settings.debug_keep_tmp_files,
            programs=(self._alone or self._programs) if alone else self.running_hooks,
            checking_jq=self.outputs.checking_jq,
        )

    def _hook_environment(self) -> dict[str, str]:
        return hook_environment.of_hooks(
            self.environ, self.kube.access, self._workspace, self.settings.hook_env
        )

    def hook_outputs(
        self,
        seen: cluster.Cluster,
        config: config_sync.ConfigSync,
        values: store.ValuesStore,
        meters: metrics.Metrics,
        kind: type[hook_outputs.HookOutputs] = hook_outputs.HookOutputs,
    ) -> hook_outputs.HookOutputs:
        """Make what applies the outputs of hooks."""
        self._of_hooks = of_hooks = self._of_hooks or hook_metrics.HookMetrics(meters.registry)
        patcher = seen.object_patcher(self.jq)
        worker = self.outputs
        return kind(patcher, config, values, of_hooks, worker.load_stream, worker.checking_jq)

    def crd_sources(self, values: store.ValuesStore) -> crd_sources.CrdSources:
        """Make what finds the definitions of modules with these values."""
        # Threads ask.
        return crd_sources.CrdSources(
            self.settings.crd_filter_prefixes, lambda module: values.snapshot(module).values(module)
        )

    def config_sync(
        self, values: store.ValuesStore, inbox: intents.Inbox, tell: events.Listener
    ) -> config_sync.ConfigSync:
        """Make what keeps ``values`` in step with the ConfigMap and the Secret."""
        namespace, name = self.settings.namespace, self.settings.config_map
        config_map = config_maps.ConfigMap(self.kube, namespace, name)
        made = config_sync.ConfigSync(
            values,
            config_map,
            inbox,
            tell,
            source=f"ConfigMap {namespace}/{name}",
            secret=secret_of(self.settings, self.kube),
            empty_after=self.settings.absence if self.settings.config_map_missing == "empty" else None,
        )
        made.remembered = self.memory
        return made


def secret_of(
    settings: settings_module.Settings, kube: client.KubeClient
) -> values_secret.ValuesSecret | None:
    """Return the Secret with values, which need not exist; ``None`` if the settings want none."""
    name = settings.values_secret_name
    if name is None:
        return None
    is_named = settings.values_secret is not None
    return values_secret.ValuesSecret(kube, settings.namespace, name, is_named=is_named)


async def check_namespace(kube: client.KubeClient, namespace: str) -> None:
    """Ask for the operator's namespace, which also shows whether the API server can be reached.

    Raises a :class:`ConfigurationError` when the namespace does not exist.
    """
    try:
        await kube.get(paths.of("v1", "namespaces", name=namespace), metadata_only=True)
    except api_errors.NotFound:
        raise errors.ConfigurationError(
            f"namespace {namespace} does not exist; create it with 'kubectl create namespace {namespace}' "
            "or name another one with ADDON_OPERATOR_NAMESPACE or --namespace"
        ) from None
    except api_errors.Unreachable as error:
        raise errors.ConfigurationError(str(error)) from None
    except api_errors.Forbidden:
        # A namespaced role is enough for the operator; whether the namespace is there shows in what follows.
        return


async def ignored_releases(
    kube: client.KubeClient, settings: settings_module.Settings, environ: Mapping[str, str]
) -> frozenset[str]:
    """Return the releases that are never removed: those that a setting names, and the operator's own."""
    pod = settings.pod or environ.get("HOSTNAME", "")
    return frozenset(settings.helm_ignore_release) | await find_own(kube, settings.namespace, pod)


async def find_own(kube: client.KubeClient, namespace: str, pod: str) -> frozenset[str]:
    """Return the releases of ``namespace`` that a pod belongs to; none if there is no such pod."""
    own: set[str] = set()
    try:
        path: str | None = paths.of("v1", "pods", namespace=namespace, name=pod)
        for _ in range(_LEVELS):
            if path is None:
                break
            metadata: Mapping[str, Any] = (await kube.get(path, metadata_only=True)).get("metadata") or {}
            own |= _releases_of(metadata, namespace)
            path = _controller(metadata, namespace)
    except (api_errors.KubernetesError, ValueError):
        # Not in a pod, or without the right to look: what is known until here counts.
        return frozenset(own)
    return frozenset(own)


def _releases_of(metadata: Mapping[str, Any], namespace: str) -> set[str]:
    annotations: Mapping[str, str] = metadata.get("annotations") or {}
    labels: Mapping[str, str] = metadata.get("labels") or {}
    releases = set()
    if annotations.get(_NAMESPACE) == namespace and _NAME in annotations:
        releases.add(annotations[_NAME])
    if labels.get(_MANAGED_BY) == "Helm" and _INSTANCE in labels:
        # A pod has labels of its template only: charts put the release there by convention.
        releases.add(labels[_INSTANCE])
    return releases


def _controller(metadata: Mapping[str, Any], namespace: str) -> str | None:
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            plural = f"{str(owner['kind']).lower()}s"
            return paths.of(owner["apiVersion"], plural, namespace=namespace, name=owner["name"])
    return None
