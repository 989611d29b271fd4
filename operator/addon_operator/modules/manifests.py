"""The resources in a release's manifest, as far as watching needs them, and its objects as Helm makes them.

Manifests may be megabytes of YAML of which three fields are wanted: only those parts of a document are parsed
that hold them. Documents that are not laid out in the usual way are parsed whole.
"""

import copy
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import yaml

from addon_operator.documents import json_documents, manifest_diff, yaml_loader

POLICY: Final = "helm.sh/resource-policy"
KEEP: Final = "keep"
"""The value of that annotation with which Helm leaves an object that it would delete."""
_DOCUMENT_START: Final = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
_TOP_KEY: Final = re.compile(r"^([A-Za-z][A-Za-z0-9]*):(?:[ \t\r].*)?$", re.MULTILINE)
_UNUSUAL: Final = re.compile(r"^[^\sA-Za-z#\-.]", re.MULTILINE)
_WANTED: Final = ("apiVersion", "kind", "metadata")
_LIST: Final = "List"
_FIELD: Final = re.compile(r"(?!(?i:items)\Z)[a-z][A-Za-z]*")
"""Of an object; what has items is a list for Helm, whatever it is called."""


Object: TypeAlias = dict[str, Any]
Identity: TypeAlias = tuple[str, str, str, str]
"""What an object is, whatever version of its API group a manifest names."""


class ManifestResource(msgspec.Struct, frozen=True):
    """What a manifest calls an object."""

    api_version: str
    kind: str
    namespace: str | None
    """As written; ``None`` means the release's, if the kind has namespaces."""
    name: str

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    def __str__(self) -> str:
        """Name it for a person: ``ConfigMap x/y``."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    def identity(self, namespace: str) -> Identity:
        """Return group, kind, namespace and name; ``namespace`` is that of the release."""
        return self.group, self.kind, self.namespace or namespace, self.name


Fields: TypeAlias = Mapping[Identity, Sequence[tuple[Sequence[str], Any]]]
"""Values of fields of objects, by path."""
Select: TypeAlias = Callable[[ManifestResource], bool]


def resources(manifest: str) -> tuple[ManifestResource, ...]:
    """Return the objects that Helm keeps for a release, each once; items of lists one by one.

    Helm's hooks are not among them: Helm creates and deletes them as it likes. Neither is what has no name
    of its own, such as objects with ``generateName``, nor what cannot be read: Helm would not have taken it.
    ``helm.sh/resource-policy: keep`` makes no difference: Helm creates such a resource again as any other.
    """
    parsed = (resource for text in _DOCUMENT_START.split(manifest) for resource in _of_document(text))
    return tuple(dict.fromkeys(parsed))


def documents(manifest: str) -> list[str]:
    """Return the texts of a manifest's documents."""
    return [text.strip() for text in _DOCUMENT_START.split(manifest)]


def dropped(before: str, after: str, namespace: str) -> tuple[ManifestResource, ...]:
    """Return what the next manifest no longer has, whatever version of its API group it names.

    What it has as one of Helm's hooks, if hooks are in it, is not dropped.
    ``namespace`` is that of the release.
    """
    return exchanged(before, after, (), namespace).lost


class Exchange(msgspec.Struct, frozen=True):
    """How a manifest differs from the one before."""

    gained: tuple[ManifestResource, ...] = ()
    """What only the next manifest has."""
    lost: tuple[ManifestResource, ...] = ()
    """What only the last one has."""
    of_tries: tuple[ManifestResource, ...] = ()
    """What only tries since have."""
    hooked: tuple[ManifestResource, ...] = ()
    """What the last one has, and the next one has as Helm's hooks: that is not lost."""


def exchanged(before: str, after: str, tried: Sequence[str], namespace: str) -> Exchange:
    """Say what the next manifest, with its hooks, gains and loses; ``namespace`` is that of the release."""
    had, has = resources(before), resources(after)
    known, staying = ({each.identity(namespace) for each in known} for known in (had, has))
    more = dict.fromkeys(each for text in tried for each in resources(text))
    lost = tuple(each for each in had if each.identity(namespace) not in staying)
    of_tries = tuple(each for each in more if each.identity(namespace) not in staying | known)
    # Hooks are looked for only where something is missing: that reads all documents whole.
    hooked = {each.identity(namespace) for each in hooks(after)} if lost or of_tries else set()
    return Exchange(
        tuple(each for each in has if each.identity(namespace) not in known),
        tuple(each for each in lost if each.identity(namespace) not in hooked),
        tuple(each for each in of_tries if each.identity(namespace) not in hooked),
        tuple(each for each in lost if each.identity(namespace) in hooked),
    )


def is_kept(body: Mapping[str, Any]) -> bool:
    """Say whether Helm leaves an object alone that it would delete, as its annotation asks for."""
    annotations = (body.get("metadata") or {}).get("annotations")
    return isinstance(annotations, dict) and annotations.get(POLICY) == KEEP


def _of_document(text: str) -> Iterator[ManifestResource]:
    if not text.strip():
        return
    parts = _wanted_parts(text)
    is_whole = parts is None or str(parts.get("kind")).endswith(_LIST)
    yield from _of_object(_parse(text) if is_whole else parts)


def _of_object(document: object) -> Iterator[ManifestResource]:
    if not isinstance(document, dict):
        return
    items = items_of(document)
    if items is not None:
        for item in items:
            yield from _of_object(item)
        return
    resource = resource_of(document)
    if resource is not None:
        yield resource


def items_of(document: dict[Any, Any]) -> list[Any] | None:
    """Return the objects in a list of objects; ``None`` for a single one."""
    items = document.get("items")
    is_list = str(document.get("kind")).endswith(_LIST) and isinstance(items, list)
    return items if is_list else None


def resource_of(document: dict[Any, Any]) -> ManifestResource | None:
    """Return what a manifest calls the object; ``None`` for a Helm hook and for what has no name."""
    return None if is_hook(document) else _named(document)


def _named(document: dict[Any, Any]) -> ManifestResource | None:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return None
    api_version, kind, name = document.get("apiVersion"), document.get("kind"), metadata.get("name")
    if not (api_version and kind and name):
        return None
    namespace = metadata.get("namespace")
    return ManifestResource(str(api_version), str(kind), str(namespace) if namespace else None, str(name))


def hooks(manifest: str) -> tuple[ManifestResource, ...]:
    """Return Helm's hooks in a manifest, each once."""
    documents = (_parse(text) for text in _DOCUMENT_START.split(manifest))
    found = (_named(each) for each in documents if isinstance(each, dict) and is_hook(each))
    return tuple(dict.fromkeys(filter(None, found)))


def is_hook(document: object) -> bool:
    """Say whether an object is one of Helm's hooks: it is no resource of a release."""
    metadata = document.get("metadata") if isinstance(document, Mapping) else None
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return isinstance(annotations, Mapping) and manifest_diff.HOOK in annotations


def _wanted_parts(text: str) -> dict[Any, Any] | None:
    """Return a document with the wanted keys alone, or ``None`` when it has to be parsed whole."""
    starts = [(match[1], match.start()) for match in _TOP_KEY.finditer(text)]
    if not starts or _UNUSUAL.search(text):
        return None
    ends = [start for _, start in starts[1:]] + [len(text)]
    parts = [(key, text[start:end]) for (key, start), end in zip(starts, ends, strict=True) if key in _WANTED]
    if sorted(key for key, _ in parts) != sorted(_WANTED):
        return None
    parsed = _parse("".join(part if part.endswith("\n") else part + "\n" for _, part in parts))
    return parsed if isinstance(parsed, dict) else None


def _parse(text: str) -> object:
    """Read a document; names that look like numbers, dates or booleans keep their spelling."""
    try:
        return yaml_loader.load(text, lambda word: None if word in _NULL else word)
    except yaml.YAMLError:
        return None


_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})


def bodies(manifest: str, wanted: Collection[ManifestResource]) -> dict[ManifestResource, Object]:
    """Return the wanted objects of a manifest by what they are; see :func:`find_objects`."""
    return dict(find_objects(manifest, wanted.__contains__))


def find_objects(manifest: str, is_wanted: Select) -> Iterator[tuple[ManifestResource, Object]]:
    """Yield the wanted objects of a manifest, in its order, which is that in which Helm makes them.

    Only the documents that hold them are read whole.
    """
    for text in _DOCUMENT_START.split(manifest):
        if any(map(is_wanted, resources(text))):
            for document in manifest_diff.parse(text):
                yield from _wanted(document.body or {}, is_wanted)


def common(manifest: str, other: str, namespace: str) -> str:
    """Return the objects of a manifest that another one has in the same version, written anew.

    So Helm reads of them what is read here, and no other objects that one of them may hold.
    """
    wanted = {(each.api_version, *each.identity(namespace)) for each in resources(other)}
    found = find_objects(manifest, lambda each: (each.api_version, *each.identity(namespace)) in wanted)
    bodies = [body for _, body in found if all(map(_FIELD.fullmatch, body))]
    return "---\n".join(json_documents.encode(body).decode() + "\n" for body in bodies)


def without(manifest: str, is_spared: Select) -> str:
    """Return the manifest without these objects."""
    return "---\n".join(filter(None, (_rest(text, is_spared) for text in _DOCUMENT_START.split(manifest))))


def _rest(text: str, is_spared: Select) -> str:
    parsed = resources(text)
    kept = [each for each in parsed if not is_spared(each)]
    if len(kept) == len(parsed):
        return text.lstrip("\n")
    # Of a list some may stay: JSON is YAML, too.
    objects = [body for _, body in find_objects(text, lambda each: each in kept)]
    return "---\n".join(json_documents.encode(body).decode() + "\n" for body in objects)


def in_versions(manifest: str, versions: Mapping[tuple[str, str], str]) -> str:
    """Return the manifest with other API versions: ``versions`` says which, by the one it has, and kind."""
    return _changed(
        manifest,
        lambda each: (each.api_version, each.kind) in versions,
        lambda body: {**body, "apiVersion": versions[body["apiVersion"], body["kind"]]},
    )


def hook_in_versions(manifest: str, versions: Mapping[Any, str]) -> str:
    """Return the manifest of one of Helm's hooks in its API version of ``versions``; empty without one."""
    parsed = _parse(manifest)
    if not isinstance(parsed, dict) or (hook := _named(parsed)) is None:
        return manifest
    version = versions.get((hook.api_version, hook.kind), "")
    if version in ("", hook.api_version):
        return manifest if version else ""
    bodies = ({**(each.body or {}), "apiVersion": version} for each in manifest_diff.parse(manifest))
    return "---\n".join(json_documents.encode(each).decode() + "\n" for each in bodies)


def with_policy(manifest: str, is_kept: Select) -> str:
    """Return the manifest with the annotation on these objects that makes Helm leave them."""
    return _changed(manifest, is_kept, _keeping)


def without_policy(manifest: str, is_kept: Select) -> str:
    """Return the manifest without that annotation on these objects."""
    return _changed(manifest, is_kept, _not_keeping)


def _changed(manifest: str, is_meant: Select, change: Callable[[Object], Object]) -> str:
    def changed(text: str) -> str:
        if not any(map(is_meant, resources(text))):
            return text.lstrip("\n")
        objects = [
            change(body) if is_meant(each) else body for each, body in find_objects(text, lambda _: True)
        ]
        return "---\n".join(json_documents.encode(body).decode() + "\n" for body in objects)

    return "---\n".join(filter(None, map(changed, _DOCUMENT_START.split(manifest))))


def _keeping(body: Object) -> Object:
    metadata = body.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), POLICY: KEEP}
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def _not_keeping(body: Object) -> Object:
    metadata = {key: value for key, value in (body.get("metadata") or {}).items() if key != "annotations"}
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    if left := {key: value for key, value in annotations.items() if key != POLICY}:
        metadata["annotations"] = left
    return {**body, "metadata": metadata}


def with_fields(manifest: str, fields: Fields, namespace: str) -> str:
    """Return the manifest with these fields; ``namespace`` is that of the release."""
    if not fields:
        return manifest

    def changed(body: Object) -> Object:
        made = copy.deepcopy(body)
        put_fields(made, fields, namespace)
        return made

    return _changed(manifest, lambda each: each.identity(namespace) in fields, changed)


def put_fields(body: Object, fields: Fields, namespace: str) -> None:
    """Set those of the fields that are the object's."""
    resource = resource_of(body)
    for path, value in fields.get(resource.identity(namespace), ()) if resource else ():
        put(body, path, value)


def put(body: Object, path: Sequence[str], value: Any) -> None:  # noqa: ANN401 - JSON
    """Set a field of an object; what it lies in is made if it is missing."""
    place: Any = body
    for step in path[:-1]:
        place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
    if isinstance(place, list):
        place[int(path[-1])] = value
    else:
        place[path[-1]] = value
    if (
        body.get("kind") == "Secret"
        and path[0] == "data"
        and isinstance(texts := body.get("stringData"), dict)
    ):
        texts.pop(path[-1], None)


def owned(body: Object, release: str, namespace: str) -> Object:
    """Return the object with the label and annotations by which Helm knows that it is the release's."""
    metadata = body.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), "app.kubernetes.io/managed-by": "Helm"}
    annotations = {
        **(metadata.get("annotations") or {}),
        "meta.helm.sh/release-name": release,
        "meta.helm.sh/release-namespace": namespace,
    }
    return {**body, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def _wanted(body: Object, is_wanted: Select) -> Iterator[tuple[ManifestResource, Object]]:
    items = items_of(body)
    if items is not None:
        for item in items:
            yield from _wanted(item, is_wanted)
    elif (resource := resource_of(body)) is not None and is_wanted(resource):
        yield resource, body
