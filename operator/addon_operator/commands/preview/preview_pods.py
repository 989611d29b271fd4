"""The pods that manifests describe: pods themselves, and the templates of workloads."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from addon_operator.commands.preview import preview_files
from addon_operator.documents import json_pointers
from addon_operator.kernel import json_types
from addon_operator.podpreset import pod_shape

_WORKLOAD: Final = ("spec", "template")
_STATEFUL: Final = "StatefulSet"
_CLAIMS: Final = "volumeClaimTemplates"
_TEMPLATES: Final[Mapping[str, json_pointers.Path]] = {
    "Pod": (),
    "PodTemplate": ("template",),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "DaemonSet": _WORKLOAD,
    "Deployment": _WORKLOAD,
    "Job": _WORKLOAD,
    "ReplicaSet": _WORKLOAD,
    "ReplicationController": _WORKLOAD,
    _STATEFUL: _WORKLOAD,
}


@dataclass(frozen=True, slots=True)
class PodSource:
    """A pod, and where it stands."""

    manifest: preview_files.Manifest
    path: json_pointers.Path
    """Where in the object the pod or its template begins."""
    pod: json_types.KubernetesObject
    """The pod as it would be submitted; without a namespace if the manifest names none."""

    @property
    def title(self) -> str:
        """Kind and name of what was given, for people."""
        return self.manifest.title

    def in_namespace(self, namespace: str) -> json_types.KubernetesObject:
        """Return the pod as the API server sees it when it is created in a namespace."""
        metadata = self.pod.get("metadata") or {}
        return {**self.pod, "metadata": {**metadata, "namespace": namespace}}

    def error(self, problem: str) -> preview_files.ManifestError:
        """Return an error about a field of the pod."""
        return self.manifest.error(problem, self.path)


@dataclass(frozen=True, slots=True)
class ManifestPods:
    """The pods of some manifests."""

    pods: list[PodSource]
    problems: list[preview_files.ManifestError]
    """Why others cannot be looked at, one for each."""


def find(manifests: Iterable[preview_files.Manifest]) -> ManifestPods:
    """Return the pods of all pods and workloads; other objects have none."""
    pods = ManifestPods([], [])
    for manifest in manifests:
        try:
            pods.pods.extend(_pod_of(manifest))
        except preview_files.ManifestError as error:
            pods.problems.append(error)
    return pods


def _pod_of(manifest: preview_files.Manifest) -> Iterator[PodSource]:
    path = _TEMPLATES.get(manifest.kind, _WORKLOAD)
    template = _at(manifest, path, required=manifest.kind in _TEMPLATES)
    if template is None or (manifest.kind not in _TEMPLATES and not _has_containers(template)):
        return
    pod = dict(template) if not path else _from_template(manifest, template)
    source = PodSource(manifest, path, pod)
    for problem in pod_shape.problems(pod):
        advice = "; put it in quotes" if problem.endswith(": must be a text") else ""
        raise source.error(problem + advice)
    yield replace(source, pod=_with_claims(manifest, pod)) if manifest.kind == _STATEFUL else source


def _with_claims(
    manifest: preview_files.Manifest, pod: json_types.KubernetesObject
) -> json_types.KubernetesObject:
    """Return the pod with the volumes of its claim templates, as the first replica has them."""
    spec = manifest.content["spec"]
    claims = [_claim_volume(manifest, index) for index in range(len(_items(manifest, spec)))]
    names = {volume["name"] for volume in claims}
    # A claim stands in for a volume of its name.
    others = [volume for volume in pod["spec"].get("volumes") or () if volume["name"] not in names]
    return {**pod, "spec": {**pod["spec"], "volumes": [*claims, *others]}} if claims else pod


def _items(manifest: preview_files.Manifest, spec: Mapping[str, Any]) -> list[Any]:
    templates = spec.get(_CLAIMS) or []
    if not isinstance(templates, list):
        raise manifest.error("must be a list", ("spec", _CLAIMS))
    return templates


def _claim_volume(manifest: preview_files.Manifest, index: int) -> dict[str, Any]:
    spec = manifest.content["spec"]
    template = spec[_CLAIMS][index]
    metadata = template.get("metadata") if isinstance(template, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not isinstance(name, str) or not name:
        raise manifest.error("metadata.name: is required", ("spec", _CLAIMS, index))
    ordinals = spec.get("ordinals")
    start = ordinals.get("start") if isinstance(ordinals, Mapping) else None
    return {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{manifest.name}-{start or 0}"}}


def _at(
    manifest: preview_files.Manifest, path: json_pointers.Path, *, required: bool
) -> Mapping[str, Any] | None:
    value: object = manifest.content
    for length, key in enumerate(path, start=1):
        value = value.get(key) if isinstance(value, Mapping) else None
        if required and not isinstance(value, Mapping):
            field = json_pointers.format_path(path[:length])
            raise manifest.error(f"{field}: " + ("is required" if value is None else "must be a mapping"))
    return value if isinstance(value, Mapping) else None


def _has_containers(template: Mapping[str, Any]) -> bool:
    """Say whether this is a pod's template: others use the same place for other things."""
    spec = template.get("spec")
    return isinstance(spec, Mapping) and isinstance(spec.get("containers"), list)


def _from_template(
    manifest: preview_files.Manifest, template: Mapping[str, Any]
) -> json_types.KubernetesObject:
    metadata = template.get("metadata")
    if metadata is None or isinstance(metadata, Mapping):
        # Controllers name the pods; the namespace is that of the workload.
        metadata = {"generateName": f"{manifest.name}-"} | dict(metadata or {})
        metadata.pop("name", None)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec")}
