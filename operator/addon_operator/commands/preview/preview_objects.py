"""What decides about a pod besides the pod itself, as files give it: presets and what variables come from."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from addon_operator import expansion
from addon_operator.commands.preview import preview_files
from addon_operator.documents import yaml_loader
from addon_operator.kernel import json_types
from addon_operator.podpreset import model

MASTER_NAMESPACE: Final = "default"
"""Where the Service of the API server is."""

UNKNOWN_ADDRESS: Final = "<spec.clusterIP>"
"""Stands for the address of a Service that is in no cluster yet."""

Services = Mapping[str, json_types.KubernetesObject]
"""Services by name."""
Contents = Mapping[model.SourceRef, Mapping[str, str]]
"""Keys and texts of ConfigMaps and Secrets."""


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects that are in sight of the pods of one namespace."""

    contents: Contents = field(default_factory=dict)
    services: Services = field(default_factory=dict)
    """Services of the namespace."""
    master_services: Services = field(default_factory=dict)
    """Services of the namespace ``default``."""

    def contents_of(self, kind: str) -> dict[str, Mapping[str, str]]:
        """Return name → key → text of all ConfigMaps or all Secrets."""
        return {source.name: texts for source, texts in self.contents.items() if source.kind == kind}


def presets(
    manifests: Iterable[preview_files.Manifest], namespace: str, allowed_volumes: Collection[str]
) -> tuple[tuple[model.Preset, ...], tuple[str, ...]]:
    """Return the valid presets of a namespace, and what there is to say about those that are not used.

    A manifest without a namespace counts as one of it.
    """
    found: list[model.Preset] = []
    notes: list[str] = []
    for manifest in manifests:
        if manifest.kind != model.KIND:
            continue
        if (manifest.namespace or namespace) != namespace:
            continue
        parsed = model.parse(manifest.content, allowed_volumes)
        reasons = (*_api_reasons(manifest), *getattr(parsed, "reasons", ()))
        if isinstance(parsed, model.Preset) and not reasons:
            found.append(parsed)
        else:
            notes.append(ignored(f"{manifest.document.where(manifest.path)}: {manifest.title}", reasons))
    return tuple(found), tuple(notes)


def ignored(subject: str, reasons: Iterable[str]) -> str:
    """Return the sentence about an invalid preset."""
    return f"{subject} is invalid and ignored: {'; '.join(reasons)}"


def _api_reasons(manifest: preview_files.Manifest) -> Iterator[str]:
    if manifest.api_version != model.API_VERSION:
        yield f'apiVersion: "{manifest.api_version}" is not supported; use "{model.API_VERSION}"'
    if not manifest.name:
        yield "metadata.name: is required"


def elsewhere(manifests: Iterable[preview_files.Manifest], namespaces: Collection[str]) -> Iterator[str]:
    """Yield a sentence about each preset whose namespace is none of those."""
    for manifest in manifests:
        if manifest.kind == model.KIND and manifest.namespace and manifest.namespace not in namespaces:
            yield (
                f"{manifest.document.where(manifest.path)}: {manifest.title} is in namespace "
                f"{manifest.namespace} and does not apply to any of the pods; choose their namespace with -n"
            )


def read(manifests: Iterable[preview_files.Manifest], namespace: str) -> Objects:
    """Return ConfigMaps, Secrets and Services that pods of a namespace see; presets are left out.

    Raises :class:`.ManifestError`.
    """
    all_of_them = list(manifests)
    here = [one for one in all_of_them if (one.namespace or namespace) == namespace]
    masters = [one for one in all_of_them if one.namespace == MASTER_NAMESPACE]
    contents: dict[model.SourceRef, Mapping[str, str]] = {}
    for manifest in here:
        if manifest.kind == "ConfigMap":
            contents[_reference(manifest)] = _texts(manifest, "data")
        elif manifest.kind == "Secret":
            contents[_reference(manifest)] = _secret(manifest)
    return Objects(contents, _services(here), _services(masters))


def _services(manifests: Iterable[preview_files.Manifest]) -> dict[str, json_types.KubernetesObject]:
    by_name = {_reference(one).name: one for one in manifests if one.kind == "Service"}
    for manifest in by_name.values():
        try:
            expansion.service_environment([addressed(manifest.content, None)])
        except expansion.MalformedObjectError as error:
            where = manifest.document.where(manifest.path)
            raise preview_files.ManifestError(f"{where}: {error}") from None
    return {name: manifest.content for name, manifest in by_name.items()}


def overlaid(stored: Services, given: Services) -> Services:
    """Return the Services of a cluster after those of files were applied, each with an address."""
    return {**stored, **{name: addressed(one, stored.get(name)) for name, one in given.items()}}


def addressed(
    service: json_types.KubernetesObject, stored: json_types.KubernetesObject | None
) -> json_types.KubernetesObject:
    """Return the Service with its address in the cluster, or a placeholder for the one it will get."""
    spec = service.get("spec") or {}
    if not isinstance(spec, Mapping) or spec.get("clusterIP") or spec.get("type") == "ExternalName":
        return service
    address = ((stored or {}).get("spec") or {}).get("clusterIP")
    return {**service, "spec": {**spec, "clusterIP": address or UNKNOWN_ADDRESS}}


def _reference(manifest: preview_files.Manifest) -> model.SourceRef:
    if not manifest.name:
        raise manifest.error("metadata.name: is required")
    return model.SourceRef(manifest.kind, manifest.name)


def _texts(manifest: preview_files.Manifest, key: str) -> dict[str, str]:
    data = manifest.content.get(key)
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise manifest.error("must be a mapping", (key,))
    for name, text in data.items():
        if not isinstance(text, str):
            raise manifest.error("must be a text; put it in quotes", (key, name))
    return dict(data)


def _secret(manifest: preview_files.Manifest) -> dict[str, str]:
    texts: dict[str, str] = {}
    for key, encoded in _texts(manifest, "data").items():
        try:
            texts[key] = decoded(encoded)
        except ValueError:
            advice = "is not base64; write plain text under stringData"
            raise manifest.error(advice, ("data", key)) from None
    return texts | _texts(manifest, "stringData")


def decoded(encoded: str) -> str:
    """Return the text of a Secret's value; what is not UTF-8 in it is replaced.

    Raises :class:`ValueError` for a text that is not base64.
    """
    return yaml_loader.base64_bytes(encoded).decode(errors="replace")


def texts_of_stored(kind: str, content: Mapping[str, Any]) -> dict[str, str]:
    """Return keys and texts of a ConfigMap or Secret as the API server gives it."""
    data = content.get("data") or {}
    return {key: decoded(text) for key, text in data.items()} if kind == "Secret" else dict(data)
