"""The objects of a release as Helm would make them: read from the manifest of its record."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from addon_operator.documents import json_documents, manifest_diff
from addon_operator.modules import manifests

Object: TypeAlias = dict[str, Any]
_DOCUMENT_START: Final = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)


def find(
    manifest: str, is_wanted: Callable[[manifests.ManifestResource], bool]
) -> Iterator[tuple[manifests.ManifestResource, Object]]:
    """The wanted objects of a manifest, in its order, which is that in which Helm makes them.

    Only the documents that hold them are read whole.
    """
    for text in _DOCUMENT_START.split(manifest):
        if any(map(is_wanted, manifests.resources(text))):
            for document in manifest_diff.parse(text):
                yield from _wanted(document.body or {}, is_wanted)


def without(manifest: str, is_spared: Callable[[manifests.ManifestResource], bool]) -> str:
    """The manifest without these objects."""
    return "---\n".join(filter(None, (_rest(text, is_spared) for text in _DOCUMENT_START.split(manifest))))


def _rest(text: str, is_spared: Callable[[manifests.ManifestResource], bool]) -> str:
    found = manifests.resources(text)
    kept = [each for each in found if not is_spared(each)]
    if len(kept) == len(found):
        return text.lstrip("\n")
    # Of a list some may stay: JSON is YAML, too.
    objects = [body for _, body in find(text, lambda each: each in kept)]
    return "---\n".join(json_documents.encode(body).decode() + "\n" for body in objects)


def owned(body: Object, release: str, namespace: str) -> Object:
    """The object with the label and the annotations by which Helm knows that it is the release's."""
    metadata = body.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), "app.kubernetes.io/managed-by": "Helm"}
    annotations = {
        **(metadata.get("annotations") or {}),
        "meta.helm.sh/release-name": release,
        "meta.helm.sh/release-namespace": namespace,
    }
    return {**body, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def _wanted(
    body: Object, is_wanted: Callable[[manifests.ManifestResource], bool]
) -> Iterator[tuple[manifests.ManifestResource, Object]]:
    items = manifests.items_of(body)
    if items is not None:
        for item in items:
            yield from _wanted(item, is_wanted)
    elif (resource := manifests.resource_of(body)) is not None and is_wanted(resource):
        yield resource, body
