"""Manifests without secrets: hashes of Secrets' data, and stand-ins where hidden values were.

A chart may make anything of a value: text around it, its hash, a file in base64. So a manifest is not
searched for values. The chart is rendered twice, with the values and with their stand-ins. Where a manifest
of the cluster is like the first, the second tells how it reads with stand-ins. Whatever else is in it may be
made of values that nobody has any more, and is hidden: keys, too, but not which object it is.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from addon_operator.commands.plan_state import hidden_values
from addon_operator.documents import manifest_diff, yaml_writing
from addon_operator.modules import manifests

_PARTS: Final = ("data", "stringData")
_SECRET: Final = "Secret"  # noqa: S105 - a kind, not a password
_ANNOTATIONS: Final = "annotations"
_KEPT: Final = (manifest_diff.HOOK, "helm.sh/resource-policy")
_SOURCE: Final = "# Source: "
_BYTES: Final = 12
_UNREADABLE: Final = "# A document that is not an object: left out.\n"
Hash = Callable[[str], str]
_Pairs = dict[manifest_diff.ManifestKey, tuple[Any, Any]]


def with_hashes(manifest: str, hashes: hidden_values.StandIns) -> str:
    """Return a manifest with keyed hashes in place of Secrets' data; the documents stay in their order."""
    return _joined(
        document.text
        if document.body is None or not _has_secret(document.body)
        else _written(document, _hashed(document.body, hashes.digest))
        for document in manifest_diff.parse(manifest)
    )


class Recorder:
    """Rewrites the manifests of one module's release."""

    def __init__(
        self,
        rendered: Sequence[str],
        hashes: hidden_values.StandIns,
    ) -> None:
        """Take as ``rendered`` what the chart renders to now, with the values and with their stand-ins.

        ``hashes`` are those of :func:`with_hashes`. What the chart does not render to now becomes something
        by chance: equal values must not be known for that.
        """
        real, stood_in = (list(manifest_diff.parse(each)) for each in rendered)
        known = {document.key: document.body for document in stood_in}
        self._pairs: _Pairs = {
            document.key: (document.body, known[document.key]) for document in real if document.key in known
        }
        if len(real) == len(stood_in):
            # A value may be a part of a name.
            self._pairs |= {
                one.key: (one.body, other.body)
                for one, other in zip(real, stood_in, strict=True)
                if one.key.kind == other.key.kind
            }
        self._hashes = hashes

    def rewritten(self, manifest: str) -> str:
        """Return a manifest of the cluster as it reads with stand-ins and hashes."""
        return _joined(map(self._document, manifest_diff.parse(manifest)))

    def _document(self, document: manifest_diff.ManifestDocument) -> str:
        if document.body is None:
            return _UNREADABLE
        if document.key not in self._pairs:
            return _outlined(document)
        return _written(document, self._body(document.body, *self._pairs[document.key]))

    def _body(self, body: Any, real: Any, stood_in: Any) -> Any:  # noqa: ANN401  # YAML
        if not isinstance(body, dict) or not isinstance(real, dict) or not isinstance(stood_in, dict):
            real = stood_in = {}
        if isinstance(items := body.get("items"), list) and body.get("kind") != _SECRET:
            others = [
                each if isinstance(each, list) and len(each) == len(items) else [None] * len(items)
                for each in (real.get("items"), stood_in.get("items"))
            ]
            rest = {key: value for key, value in body.items() if key != "items"}
            inner = [
                self._body(*each) if isinstance(each[0], dict) else self._value(*each)
                for each in zip(items, *others, strict=True)
            ]
            return {**self._object(rest, real, stood_in), "items": inner}
        if body.get("kind") != _SECRET:
            return self._object(body, real, stood_in)
        rest = {key: value for key, value in body.items() if key not in _PARTS}
        kept = _without_copy(self._object(rest, real, stood_in))
        return kept | {part: self._data(part, body, real, stood_in) for part in _PARTS if part in body}

    def _object(self, body: dict[Any, Any], real: Any, stood_in: Any) -> dict[Any, Any]:  # noqa: ANN401  # YAML
        """Hide what is not known of an object, but for what says which it is, and whether it stays."""
        shown, told = self._mapping(body, real, stood_in), _identity(body)
        metadata, known = told.pop("metadata"), _mapping_in(real, "metadata")
        for key, value in told.items():
            shown[key] = value
        if isinstance(shown.get("metadata"), dict):
            wanted = metadata.pop(_ANNOTATIONS, {})
            # A name that is rendered so now may have a value in it, and is shown with its stand-in.
            shown["metadata"] |= {key: value for key, value in metadata.items() if known.get(key) != value}
            if wanted:
                shown["metadata"][_ANNOTATIONS] = _mapping_in(shown["metadata"], _ANNOTATIONS) | wanted
        return shown

    def _data(self, part: str, *bodies: Any) -> Any:  # noqa: ANN401  # YAML
        body, real, stood_in = (each.get(part) if isinstance(each, dict) else None for each in bodies)
        if not isinstance(body, dict):
            return secrets.token_hex()
        real, stood_in = (each if isinstance(each, dict) else {} for each in (real, stood_in))
        return {
            self._key(key, real, stood_in): self._hashes.digest(str(stood_in[key]))
            if key in stood_in and key in real and real[key] == value
            else secrets.token_hex()
            for key, value in body.items()
        }

    def _mapping(self, body: dict[Any, Any], real: Any, stood_in: Any) -> dict[Any, Any]:  # noqa: ANN401
        reals, stood_ins = (each if isinstance(each, dict) else {} for each in (real, stood_in))
        return {
            self._key(key, reals, stood_ins): self._value(value, reals.get(key), stood_ins.get(key))
            for key, value in body.items()
        }

    def _key(self, key: Any, real: Any, stood_in: Any) -> Any:  # noqa: ANN401  # YAML
        return key if key in real and key in stood_in else _hidden()

    def _value(self, value: Any, real: Any, stood_in: Any) -> Any:  # noqa: ANN401  # YAML
        if value == real and type(value) is type(real) and type(real) is type(stood_in):
            return stood_in
        if isinstance(value, dict):
            return self._mapping(value, real, stood_in)
        if isinstance(value, list):
            others = [
                each if isinstance(each, list) and len(each) == len(value) else [None] * len(value)
                for each in (real, stood_in)
            ]
            return [self._value(*each) for each in zip(value, *others, strict=True)]
        return value if value is None or isinstance(value, bool) else _hidden()


def renamed(real: str, stood_in: str) -> list[tuple[manifests.ManifestResource, manifests.ManifestResource]]:
    """Return the objects that are called otherwise in a render with stand-ins, each with what it is there."""
    parsed = [list(manifest_diff.parse(each)) for each in (real, stood_in)]
    if len(parsed[0]) != len(parsed[1]):
        return []
    found = []
    for one, other in zip(*parsed, strict=True):
        if one.key.kind == other.key.kind and one.key != other.key and one.body and other.body:
            pair = manifests.resource_of(one.body), manifests.resource_of(other.body)
            found += [(had, has) for had, has in [pair] if had and has]
    return found


def _hidden() -> str:
    return f"{hidden_values.PREFIX}{secrets.token_hex(_BYTES)}"


def outline(manifest: str) -> str:
    """Return what stays of a manifest of which nobody knows what is secret: which objects there are."""
    return _joined(_outlined(document) for document in manifest_diff.objects(manifest_diff.parse(manifest)))


def _outlined(document: manifest_diff.ManifestDocument) -> str:
    if document.body is None:
        return _UNREADABLE
    return _written(document, _identity(document.body))


def _identity(body: Any) -> dict[Any, Any]:  # noqa: ANN401  # YAML
    """Return what says which object it is, and what becomes of it."""
    metadata = _mapping_in(body, "metadata")
    annotations = _mapping_in(metadata, _ANNOTATIONS)
    kept = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
    if wanted := {key: annotations[key] for key in _KEPT if key in annotations}:
        kept[_ANNOTATIONS] = wanted
    return {"apiVersion": body.get("apiVersion"), "kind": body.get("kind"), "metadata": kept}


def _mapping_in(body: Any, key: str) -> dict[Any, Any]:  # noqa: ANN401  # YAML
    found = body.get(key) if isinstance(body, dict) else None
    return found if isinstance(found, dict) else {}


def _has_secret(body: Any) -> bool:  # noqa: ANN401  # YAML
    if not isinstance(body, dict):
        return False
    items = body.get("items")
    return body.get("kind") in (_SECRET, "SecretList") or (
        isinstance(items, list) and any(map(_has_secret, items))
    )


def _hashed(body: Any, digest: Hash) -> Any:  # noqa: ANN401  # YAML
    if not isinstance(body, dict):
        return body
    if isinstance(items := body.get("items"), list) and body.get("kind") != _SECRET:
        return {**body, "items": [_hashed(item, digest) for item in items]}
    if body.get("kind") != _SECRET:
        return body
    return _without_copy({key: _hashed_part(key, value, digest) for key, value in body.items()})


def _hashed_part(part: str, value: Any, digest: Hash) -> Any:  # noqa: ANN401  # YAML
    if part not in _PARTS:
        return value
    if not isinstance(value, dict):
        return digest(str(value))
    return {key: digest(str(inner)) for key, inner in value.items()}


def _without_copy(secret: dict[Any, Any]) -> dict[Any, Any]:
    """Return a Secret without the copy of it that kubectl leaves in an annotation."""
    metadata = secret.get("metadata")
    annotations = metadata.get(_ANNOTATIONS) if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict) or manifest_diff.LAST_APPLIED not in annotations:
        return secret
    kept = {key: value for key, value in annotations.items() if key != manifest_diff.LAST_APPLIED}
    return {**secret, "metadata": {**secret["metadata"], _ANNOTATIONS: kept}}


def _written(document: manifest_diff.ManifestDocument, body: Any) -> str:  # noqa: ANN401  # YAML
    source = f"# Source: {document.source}\n" if _SOURCE in document.text else ""
    return f"{source}{yaml_writing.dump(body)}"


def _joined(documents: Iterable[str]) -> str:
    return "".join(f"---\n{text.rstrip()}\n" for text in documents)
