"""What tells two rendered manifests apart: whether they ask for the same, and what a person sees of it."""

import dataclasses
import difflib
import enum
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import yaml

from addon_operator.kernel import bounded_yaml

_SEPARATOR: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_SOURCE: Final = re.compile(r"^# Source: (?P<path>.+)$", re.MULTILINE)
_SECRET_PARTS: Final = ("data", "stringData")
_HIDDEN: Final = "***"
_HIDDEN_BEFORE: Final = "*** (before)"
_HIDDEN_AFTER: Final = "*** (after)"
# Helm reads dates as texts, and so do the API server and people.
_NOT_READ: Final = frozenset({"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value"})

Object: TypeAlias = dict[str, Any]
Redact: TypeAlias = Callable[[str], str]


class _Loader(bounded_yaml.Loader):
    """YAML as Helm reads it: version 1.1 without dates; of duplicate keys the last one counts."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _NOT_READ]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


class _Dumper(yaml.CSafeDumper):
    """Texts of several lines stay lines, so that a difference is that of a line."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  # PyYAML's interface
        """Write everything out."""
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectKey:
    """Which object of a cluster a document of a manifest is."""

    kind: str
    """The file of the chart for a document that is no object."""
    name: str = ""
    namespace: str = ""
    """Empty if the document names none: that of the release, or none at all."""
    api_version: str = ""

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place}".rstrip()


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """One document of a manifest."""

    key: ObjectKey
    text: str
    body: Object | None
    """``None`` when the text is no mapping, or no YAML at all."""


def parse(manifest: str) -> tuple[Document, ...]:
    """The documents of a manifest; empty ones are left out."""
    found = (_document(text.strip("\n")) for text in _SEPARATOR.split(manifest))
    return tuple(document for document in found if document is not None)


def _document(text: str) -> Document | None:
    try:
        body = yaml.load(text, Loader=_Loader)  # noqa: S506 - derived from the safe loader
    except (yaml.YAMLError, ValueError):
        body = text
    if body is None:
        return None
    if not isinstance(body, dict):
        return Document(ObjectKey(_source(text)), text, None)
    return Document(_key(body, text), text, body)


def _key(body: Mapping[str, Any], text: str) -> ObjectKey:
    metadata = body.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    kind = str(body.get("kind") or _source(text))
    name = metadata.get("name") or metadata.get("generateName") or ""
    return ObjectKey(kind, str(name), str(metadata.get("namespace") or ""), str(body.get("apiVersion") or ""))


def _source(text: str) -> str:
    match = _SOURCE.search(text)
    return match["path"] if match else "a document without a kind"


def same(
    applied: Sequence[Document],
    rendered: Sequence[Document],
    *,
    extra_labels: Mapping[str, str],
    namespace: str = "",
) -> bool:
    """Whether two manifests ask for the same objects, whatever their order, layout and comments.

    ``extra_labels`` are those that another operator puts on each object after rendering: they make no
    difference. An object that names no namespace is the same as one that names ``namespace``.
    """
    return _comparable(applied, extra_labels, namespace) == _comparable(rendered, extra_labels, namespace)


def _comparable(
    documents: Iterable[Document], extra_labels: Mapping[str, str], namespace: str
) -> dict[ObjectKey, list[object]]:
    found: dict[ObjectKey, list[object]] = {}
    for document in documents:
        key = dataclasses.replace(document.key, namespace=document.key.namespace or namespace)
        body = document.text if document.body is None else _without(document.body, extra_labels, namespace)
        found.setdefault(key, []).append(body)
    return found


def _without(body: Object, extra_labels: Mapping[str, str], namespace: str) -> Object:
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


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """An object that is not the same in two manifests."""

    kind: ChangeKind
    key: ObjectKey
    diff: tuple[str, ...]
    """Unified diff without line ends; data of Secrets is hidden in it."""


def diff(before: Sequence[Document], after: Sequence[Document], redact: Redact = str) -> tuple[Change, ...]:
    """What changes from one manifest to another: new and changed objects in their order, then removed ones.

    ``redact`` hides what must not be shown in a line.
    """
    old = {document.key: document for document in before}
    new = {document.key: document for document in after}
    changes = (_change(key, old.get(key), new.get(key), redact) for key in {**new, **old})
    return tuple(change for change in changes if change is not None)


def _change(key: ObjectKey, old: Document | None, new: Document | None, redact: Redact) -> Change | None:
    if old is not None and new is not None and _same_body(old, new):
        return None
    lines = tuple(map(redact, _unified(key, *_shown(old, new))))
    if old is None:
        return Change(ChangeKind.ADDED, key, lines)
    return Change(ChangeKind.REMOVED if new is None else ChangeKind.CHANGED, key, lines)


def _same_body(old: Document, new: Document) -> bool:
    if old.body is None or new.body is None:
        return old.text == new.text
    return old.body == new.body


def _unified(key: ObjectKey, old: str, new: str) -> Iterator[str]:
    return difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"applied {key}", f"rendered {key}", lineterm=""
    )


def _shown(old: Document | None, new: Document | None) -> tuple[str, str]:
    before, after = (document.body if document is not None else None for document in (old, new))
    if any(body is not None and body.get("kind") == "Secret" for body in (before, after)):
        before, after = _mask_secrets(before or {}, after or {})
    return _text(old, before), _text(new, after)


def _text(document: Document | None, body: Object | None) -> str:
    if document is None:
        return ""
    if body is None:
        return document.text
    return str(yaml.dump(body, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6))


def _mask_secrets(old: Object, new: Object) -> tuple[Object, Object]:
    """Both Secrets with their data hidden; where it differs, that it does is still seen."""
    masked_old, masked_new = dict(old), dict(new)
    for part in _SECRET_PARTS:
        before, after = old.get(part), new.get(part)
        if part in masked_old:
            masked_old[part] = _mask_data(before, after, _HIDDEN_BEFORE)
        if part in masked_new:
            masked_new[part] = _mask_data(after, before, _HIDDEN_AFTER)
    return masked_old, masked_new


def _mask_data(data: object, other: object, when_differing: str) -> object:
    if not isinstance(data, dict):
        return _HIDDEN
    others = other if isinstance(other, dict) else {}
    return {
        key: when_differing if key in others and others[key] != value else _HIDDEN
        for key, value in data.items()
    }
