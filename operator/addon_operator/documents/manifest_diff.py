"""How two rendered manifests differ: whether they ask for the same, and what a person sees of it.

Documents are compared, not their text: order, layout and comments make no difference, and Helm's test hooks
are not part of a release's state.
"""

import contextlib
import enum
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import yaml
from msgspec import structs

from addon_operator.documents import json_documents, text_diff, yaml_loader, yaml_writing

_SEPARATOR: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_SOURCE: Final = re.compile(r"^# Source: (?P<path>.+)$", re.MULTILINE)
_SECRET_PARTS: Final = ("data", "stringData")
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation with a copy of an object as it was applied."""
_LIST: Final = "List"
_HIDDEN: Final = "***"
_HIDDEN_BEFORE: Final = "*** (before)"
_HIDDEN_AFTER: Final = "*** (after)"
HOOK: Final = "helm.sh/hook"
"""Annotation of what Helm runs as a hook, with its events."""
_TEST_EVENTS: Final = frozenset({"test", "test-success", "test-failure"})

Object: TypeAlias = dict[str, Any]
Redact: TypeAlias = Callable[[str], str]


class ManifestKey(msgspec.Struct, frozen=True):
    """Which object of a cluster a document of a manifest is."""

    kind: str
    """The file of the chart for a document that is not an object."""
    name: str = ""
    namespace: str = ""
    """Empty if the document names none: that of the release, or none at all."""
    api_version: str = ""

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place}".rstrip()


class ManifestDocument(msgspec.Struct, frozen=True):
    """One document of a manifest."""

    key: ManifestKey
    text: str
    body: Object | None
    """``None`` when the text is not a mapping, or not YAML at all."""

    @property
    def source(self) -> str:
        """The file of the chart that it comes from, as Helm says it."""
        return _source(self.text)


def parse(manifest: str) -> tuple[ManifestDocument, ...]:
    """Return the documents of a manifest; those with nothing but comments are left out."""
    documents = (_document(text.strip("\n")) for text in _SEPARATOR.split(manifest))
    return tuple(document for document in documents if document is not None)


def _document(text: str) -> ManifestDocument | None:
    try:
        body = yaml_loader.load(f"{text}\n")
    except (yaml.YAMLError, ValueError):
        body = text
    if body is None:
        return None
    if not isinstance(body, dict):
        return ManifestDocument(ManifestKey(_source(text)), text, None)
    return ManifestDocument(_key(body, text), text, body)


def objects(documents: Iterable[ManifestDocument]) -> Iterator[ManifestDocument]:
    """Yield the documents with each list of objects taken apart, also one within another."""
    for document in documents:
        items = None if document.body is None else document.body.get("items")
        if document.body is None or not isinstance(items, list) or not _is_list(document.body, items):
            yield document
            continue
        for item in items:
            body = _of_list(document.body, item)
            text = _dumped(body) if isinstance(body, dict) else str(body)
            key = _key(body, text) if isinstance(body, dict) else ManifestKey(document.key.kind)
            inner = ManifestDocument(key, text, body if isinstance(body, dict) else None)
            yield from objects([inner])


def _is_list(body: Object, items: Sequence[Any]) -> bool:
    is_called_so = str(body.get("kind")).endswith(_LIST)
    return is_called_so or any(isinstance(item, dict) and "kind" in item for item in items)


def _of_list(body: Object, item: Any) -> Any:  # noqa: ANN401  # JSON
    """Return an item as an object: those of a list of one kind need not say it again."""
    kind = str(body.get("kind"))
    if not isinstance(item, dict) or kind == _LIST or not kind.endswith(_LIST):
        return item
    return {"apiVersion": body.get("apiVersion"), "kind": kind.removesuffix(_LIST), **item}


def _key(body: Mapping[str, Any], text: str) -> ManifestKey:
    metadata = body.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    kind = str(body.get("kind") or _source(text))
    name = metadata.get("name") or metadata.get("generateName") or ""
    return ManifestKey(
        kind, str(name), str(metadata.get("namespace") or ""), str(body.get("apiVersion") or "")
    )


def _source(text: str) -> str:
    match = _SOURCE.search(text)
    return match["path"] if match else "a document without a kind"


def fingerprint(documents: Sequence[ManifestDocument]) -> bytes:
    """Return a digest that is equal for manifests that ask for the same."""
    return b"\n".join(sorted(map(_canonical, without_tests(documents))))


def without_tests(documents: Iterable[ManifestDocument]) -> tuple[ManifestDocument, ...]:
    """Return all but Helm's test hooks, which only ``helm test`` makes."""
    return tuple(document for document in documents if not _is_test(document))


def _is_test(document: ManifestDocument) -> bool:
    events = _hook_events(document)
    return bool(events) and events <= _TEST_EVENTS


def _hook_events(document: ManifestDocument) -> frozenset[str]:
    metadata = (document.body or {}).get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    events = annotations.get(HOOK) if isinstance(annotations, dict) else None
    return frozenset(event.strip() for event in events.split(",")) if isinstance(events, str) else frozenset()


def _canonical(document: ManifestDocument) -> bytes:
    if document.body is not None:
        with contextlib.suppress(TypeError):  # what has no JSON form, such as a binary value
            return json_documents.canonical(document.body)
    return document.text.encode(errors="replace")


def unlabelled(
    documents: Iterable[ManifestDocument], extra_labels: Mapping[str, str], namespace: str
) -> tuple[ManifestDocument, ...]:
    """Return documents without what makes no difference between operators.

    ``extra_labels`` are those that another operator puts on each object after rendering. An object that names
    no namespace is the same as one that names ``namespace``.
    """
    return tuple(_without(document, extra_labels, namespace) for document in documents)


def _without(document: ManifestDocument, extra_labels: Mapping[str, str], namespace: str) -> ManifestDocument:
    if document.body is None:
        return document
    body = _body_without(document.body, extra_labels, namespace)
    return structs.replace(document, key=_key(body, document.text), body=body)


def _body_without(body: Object, extra_labels: Mapping[str, str], namespace: str) -> Object:
    metadata = body.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(labels, dict | None):
        return body
    kept = {key: value for key, value in (labels or {}).items() if extra_labels.get(key) != value}
    changed = {"labels": kept, "namespace": metadata.get("namespace") or namespace}
    return {**body, "metadata": {**metadata, **changed}}


class ChangeKind(enum.StrEnum):
    """What becomes of an object."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


class ManifestChange(msgspec.Struct, frozen=True):
    """An object that is not the same in two manifests."""

    kind: ChangeKind
    key: ManifestKey
    diff: tuple[str, ...]
    """Unified diff without line ends; data of Secrets is hidden in it."""


def diff(
    before: Sequence[ManifestDocument], after: Sequence[ManifestDocument], redact: Redact = str
) -> tuple[ManifestChange, ...]:
    """Return what changes between manifests: new and changed objects in their order, then removed ones.

    ``redact`` hides what must not be shown in a line.
    """
    old = {document.key: document for document in objects(before)}
    new = {document.key: document for document in objects(after)}
    changes = (_change(key, old.get(key), new.get(key), redact) for key in {**new, **old})
    return tuple(change for change in changes if change is not None)


def _change(
    key: ManifestKey, old: ManifestDocument | None, new: ManifestDocument | None, redact: Redact
) -> ManifestChange | None:
    if old is not None and new is not None and _canonical(old) == _canonical(new):
        return None
    before, after = (text.splitlines() for text in _shown(old, new))
    lines = tuple(map(redact, text_diff.unified(before, after, f"applied {key}", f"rendered {key}")))
    if old is None:
        return ManifestChange(ChangeKind.ADDED, key, lines)
    return ManifestChange(ChangeKind.REMOVED if new is None else ChangeKind.CHANGED, key, lines)


def _shown(old: ManifestDocument | None, new: ManifestDocument | None) -> tuple[str, str]:
    before, after = (document.body if document is not None else None for document in (old, new))
    if any(body is not None and body.get("kind") == "Secret" for body in (before, after)):
        before, after = _mask_secrets(before or {}, after or {})
    return _text(old, before), _text(new, after)


def _text(document: ManifestDocument | None, body: Object | None) -> str:
    if document is None:
        return ""
    return document.text if body is None else _dumped(body)


def _dumped(body: Object) -> str:
    return str(
        yaml.dump(body, Dumper=yaml_writing.LinesDumper, sort_keys=False, allow_unicode=True, width=10**6)
    )


def _mask_secrets(old: Object, new: Object) -> tuple[Object, Object]:
    """Return both Secrets with their data hidden; where it differs, that is still seen."""
    masked_old, masked_new = dict(old), dict(new)
    for part in _SECRET_PARTS:
        before, after = old.get(part), new.get(part)
        if part in masked_old:
            masked_old[part] = _mask_data(before, after, _HIDDEN_BEFORE)
        if part in masked_new:
            masked_new[part] = _mask_data(after, before, _HIDDEN_AFTER)
    return _without_copy(masked_old), _without_copy(masked_new)


def _without_copy(secret: Object) -> Object:
    """Return a Secret without the copy of it that kubectl leaves in an annotation."""
    metadata = secret.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(annotations, dict) or LAST_APPLIED not in annotations:
        return secret
    return {**secret, "metadata": {**metadata, "annotations": {**annotations, LAST_APPLIED: _HIDDEN}}}


def _mask_data(data: object, other: object, when_differing: str) -> object:
    if not isinstance(data, dict):
        return _HIDDEN
    others = other if isinstance(other, dict) else {}
    return {
        key: when_differing if key in others and others[key] != value else _HIDDEN
        for key, value in data.items()
    }
