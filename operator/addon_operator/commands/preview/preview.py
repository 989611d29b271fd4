"""The preview of pods: gathers what files give, asks the cluster for the rest, and admits the pods on paper.

With presets and other objects both given by files, the cluster is never asked.
"""

import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from addon_operator import expansion
from addon_operator.commands.preview import (
    preview_admission,
    preview_cluster,
    preview_files,
    preview_objects,
    preview_pods,
)
from addon_operator.kernel import errors, json_types
from addon_operator.kube import api_errors
from addon_operator.kube.access import auth
from addon_operator.kube.client import client
from addon_operator.podpreset import merge, model, selection, volume_types

DEFAULT_NAMESPACE: Final = "default"
EXEMPT_NAMESPACE: Final = "kube-system"
"""The webhook is not called for pods of this namespace."""
_POD_ERRORS: Final = (expansion.MalformedObjectError, expansion.ExpansionSizeError, merge.MergeCostError)
_NO_CLUSTER: Final = "give --presets and --objects, or --no-cluster, to preview from files alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRequest:
    """What is to be previewed, and from what."""

    files: Sequence[str]
    """Manifests with pods and workloads; ``-`` is standard input."""
    presets: Sequence[str] = ()
    """Manifests with presets, instead of those of the cluster."""
    objects: Sequence[str] = ()
    """Manifests with ConfigMaps, Secrets and Services, before those of the cluster."""
    namespace: str | None = None
    use_cluster: bool | None = None
    """Whether to ask the cluster for what no file gives; ``None``: if presets or objects are not given."""
    volume_types: Collection[str] = volume_types.USUAL
    """Types of volumes that presets may have."""
    must_reach: bool = False
    """Whether somebody named the cluster, so that it is an error if there is no way to it."""


@dataclass(frozen=True, slots=True)
class PreviewReport:
    """The previews of all pods, in their order."""

    previews: Sequence[preview_admission.PodPreview]
    notes: Sequence[str]
    """Sentences about what was left out, for standard error; none twice."""
    problems: Sequence[errors.ConfigurationError] = ()
    """Why pods are not among the previews, one for each of these."""


@dataclass(frozen=True, slots=True)
class _PreviewFiles:
    """What the files hold."""

    request: PreviewRequest
    found: preview_pods.ManifestPods
    manifests: list[preview_files.Manifest]
    has_presets: bool

    @property
    def wants_cluster(self) -> bool:
        if self.request.use_cluster is None:
            return not (self.has_presets and self.request.objects)
        return self.request.use_cluster

    @property
    def needs_cluster(self) -> bool:
        """Whether there is no preview without a way to the cluster."""
        named = self.request.use_cluster is True or self.request.must_reach
        return named or not (self.has_presets or self.request.objects)


async def preview(
    request: PreviewRequest, load_access: Callable[[], auth.ClusterAccess], stdin: Callable[[], bytes]
) -> PreviewReport:
    """Preview all pods of some files.

    Raises :class:`.AddonOperatorError` for files that cannot be used, for a
    cluster that is needed and cannot be asked, and when no pod at all can be previewed.
    """
    files = _read(request, stdin)
    notes: list[str] = []
    access = _access(files, load_access, notes) if files.wants_cluster else None
    report = await _report(files, access, notes)
    if not report.previews:
        raise together(report.problems)
    return report


def together(problems: Sequence[errors.ConfigurationError]) -> errors.ConfigurationError:
    """Make one error of all pods that cannot be previewed."""
    if len(problems) == 1:
        return problems[0]
    lines = "".join(f"\n  {problem}" for problem in problems)
    return preview_files.ManifestError(f"{len(problems)} pods cannot be previewed:{lines}")


def _read(request: PreviewRequest, stdin: Callable[[], bytes]) -> _PreviewFiles:
    if [*request.files, *request.presets, *request.objects].count(preview_files.STDIN) > 1:
        raise preview_files.ManifestError("standard input can be read once: give one - only")
    files = preview_files.read(request.files, stdin)
    pods = preview_pods.find(files)
    if not pods.pods and not pods.problems:
        raise preview_files.ManifestError(
            f"{_listed(request.files)} holds neither a Pod nor a workload, such as a Deployment; "
            "name a file with one"
        )
    presets = preview_files.read(request.presets, stdin)
    if presets and not _has_presets(presets):
        raise preview_files.ManifestError(
            f"{_listed(request.presets)} holds no PodPreset; name a file with one"
        )
    manifests = [*files, *presets, *preview_files.read(request.objects, stdin)]
    return _PreviewFiles(request, pods, manifests, bool(request.presets) or _has_presets(manifests))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(preview_files.STDIN_NAME if name == preview_files.STDIN else name for name in names)


def _has_presets(manifests: Iterable[preview_files.Manifest]) -> bool:
    return any(one.kind == model.KIND for one in manifests)


def _access(
    files: _PreviewFiles, load_access: Callable[[], auth.ClusterAccess], notes: list[str]
) -> auth.ClusterAccess | None:
    try:
        return load_access()
    except api_errors.AccessError as error:
        if files.needs_cluster:
            raise errors.ConfigurationError(f"{error}; {_NO_CLUSTER}") from None
        notes.append(f"only files are read: {error}")
        return None


async def _report(files: _PreviewFiles, access: auth.ClusterAccess | None, notes: list[str]) -> PreviewReport:
    previews, problems = [], list[errors.ConfigurationError](files.found.problems)
    async with _cluster(access, files.request.volume_types) as cluster:
        previewer = _Previewer(files, cluster, access.namespace if access else None, notes)
        for pod in files.found.pods:
            try:
                previews.append(await previewer.preview(pod))
            except preview_files.ManifestError as error:
                problems.append(error)
            except api_errors.Unreachable as error:
                raise errors.ConfigurationError(f"{error}; {_NO_CLUSTER}") from None
    notes += preview_objects.elsewhere(files.manifests, previewer.namespaces)
    said = dict.fromkeys([*notes, *(cluster.notes if cluster else ())])
    return PreviewReport(previews, tuple(said), tuple(problems))


@contextlib.asynccontextmanager
async def _cluster(
    access: auth.ClusterAccess | None, allowed_volumes: Collection[str]
) -> AsyncIterator[preview_cluster.ClusterObjects | None]:
    if access is None:
        yield None
        return
    async with client.KubeClient(access) as kube:
        yield preview_cluster.ClusterObjects(kube, allowed_volumes)


class _Previewer:
    """Previews pods one after the other; what files give is read once for each namespace."""

    def __init__(
        self,
        given: _PreviewFiles,
        cluster: preview_cluster.ClusterObjects | None,
        context_namespace: str | None,
        notes: list[str],
    ) -> None:
        self.given = given
        self.cluster = cluster
        self.context_namespace = context_namespace
        self.notes = notes
        self.namespaces: set[str] = set()
        """Those of the pods so far."""
        self._preset_files: dict[str, tuple[model.Preset, ...]] = {}
        self._object_files: dict[str, preview_objects.Objects] = {}

    async def preview(self, source: preview_pods.PodSource) -> preview_admission.PodPreview:
        namespace = self._namespace(source)
        self.namespaces.add(namespace)
        pod = source.in_namespace(namespace)
        presets = await self._selected(source, pod, namespace)
        objects = await self._objects(pod, presets, namespace)
        try:
            return preview_admission.admit(source.title, pod, presets, objects)
        except _POD_ERRORS as error:
            where = source.manifest.document.where((*source.manifest.path, *source.path))
            raise preview_files.ManifestError(f"{where}: {error}") from None

    def _namespace(self, source: preview_pods.PodSource) -> str:
        own, wanted = source.manifest.namespace, self.given.request.namespace
        if own and wanted and own != wanted:
            raise source.manifest.error(f"metadata.namespace: is {own}, but -n says {wanted}; leave one out")
        return own or wanted or self.context_namespace or DEFAULT_NAMESPACE

    async def _selected(
        self, source: preview_pods.PodSource, pod: json_types.KubernetesObject, namespace: str
    ) -> tuple[model.Preset, ...]:
        if exemption := _exemption(source.title, pod, namespace):
            self.notes.append(exemption)
            return ()
        return selection.select(pod, await self._presets(namespace))

    async def _presets(self, namespace: str) -> tuple[model.Preset, ...]:
        if self.given.has_presets:
            if namespace not in self._preset_files:
                allowed = self.given.request.volume_types
                presets, notes = preview_objects.presets(self.given.manifests, namespace, allowed)
                self.notes.extend(notes)
                self._preset_files[namespace] = presets
            return self._preset_files[namespace]
        return await self.cluster.presets(namespace) if self.cluster else ()

    async def _objects(
        self, pod: json_types.KubernetesObject, presets: Sequence[model.Preset], namespace: str
    ) -> preview_objects.Objects:
        if namespace not in self._object_files:
            self._object_files[namespace] = preview_objects.read(self.given.manifests, namespace)
        files = self._object_files[namespace]
        stored = await self._stored(pod, presets, namespace, files)
        return preview_objects.Objects(
            contents={**stored.contents, **files.contents},
            services=preview_objects.overlaid(stored.services, files.services),
            master_services=preview_objects.overlaid(stored.master_services, files.master_services),
        )

    async def _stored(
        self,
        pod: json_types.KubernetesObject,
        presets: Sequence[model.Preset],
        namespace: str,
        files: preview_objects.Objects,
    ) -> preview_objects.Objects:
        if self.cluster is None:
            return preview_objects.Objects()
        wanted = preview_admission.sources_of(pod, presets) - files.contents.keys()
        return preview_objects.Objects(
            contents=await self.cluster.contents(namespace, wanted),
            services=await self.cluster.services(namespace),
            master_services=await self.cluster.services(preview_objects.MASTER_NAMESPACE),
        )


def _exemption(title: str, pod: json_types.KubernetesObject, namespace: str) -> str | None:
    if namespace == EXEMPT_NAMESPACE:
        return f"{title}: presets do not apply in namespace {namespace}"
    if selection.is_exempt(pod):
        return f"{title}: presets do not apply to a mirror pod, or to one with the exclude annotation"
    return None
