"""Keys without a value in custom resources: a create leaves them out, and the apply of Helm 4 fails.

Where the schema of the definition has no null, such a key is left out, as Kubernetes' own kinds do. So the
fields of the chart's objects are the same with each Helm.
"""

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from addon_operator.documents import manifest_diff
from addon_operator.modules import manifests

EACH: Final = "*"
"""Stands for every item of a list in a path."""
_PRESERVES: Final = "x-kubernetes-preserve-unknown-fields"
_EMPTY: Final = ("", "null", "Null", "NULL", "~")

Path: TypeAlias = tuple[str, ...]
Kind: TypeAlias = tuple[str, str]
"""API version and kind."""
Nulls: TypeAlias = Mapping[Kind, frozenset[Path]]
"""Where objects of kinds have keys without a value."""


def found(manifest: str) -> dict[Kind, frozenset[Path]]:
    """Return where objects have keys without a value, of kinds that may be custom ones."""
    nulls: dict[Kind, frozenset[Path]] = {}
    for text in manifests.documents(manifest):
        # To read YAML takes long, and few objects have such keys.
        if not _may_have(text):
            continue
        for document in manifest_diff.objects(manifest_diff.parse(text)):
            kind = _kind_of(document.body)
            paths = frozenset(_paths(document.body, ()))
            if paths and "." in kind[0]:
                nulls[kind] = nulls.get(kind, frozenset()) | paths
    return nulls


def refused(paths: frozenset[Path], schema: Mapping[str, Any]) -> frozenset[Path]:
    """Return those of the paths where a schema has no null."""
    return frozenset(path for path in paths if _has_no_null(schema, path))


def without(manifest: str, nulls: Nulls) -> tuple[str, tuple[str, ...]]:
    """Return a manifest without these keys, and a sentence for each object that had some."""
    told: list[str] = []
    texts = manifests.documents(manifest)
    for number, text in enumerate(texts):
        documents = [each.body for each in manifest_diff.parse(text)] if _may_have(text) else []
        if sum(remove(each, nulls, told) for each in documents):
            texts[number] = "\n---\n".join(json.dumps(each) for each in documents)
    return ("\n---\n".join(texts), tuple(told)) if told else (manifest, ())


def remove(document: object, nulls: Nulls, told: list[str] | None = None) -> bool:
    """Remove these keys from an object, and from the items of a list; whether it had some."""
    if not isinstance(document, dict):
        return False
    items = manifests.items_of(document)
    if items is not None:
        return sum(remove(each, nulls, told) for each in items) > 0
    gone = [path for path in nulls.get(_kind_of(document), ()) if _removed(document, path)]
    if gone and told is not None:
        name = (document.get("metadata") or {}).get("name")
        fields = ", ".join(".".join(path) for path in sorted(gone))
        told.append(
            f"{document.get('kind')} {name}: keys without a value are left out ({fields}), as the definition "
            "of the kind has no null there; remove them from the chart"
        )
    return bool(gone)


def _may_have(text: str) -> bool:
    """Say whether a document may have a key without a value: one that nothing follows that is deeper."""
    if "null" in text or "~" in text:
        return True
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for line, after in itertools.zip_longest(lines, lines[1:], fillvalue=""):
        if line.rstrip().endswith(":"):
            below = after.lstrip()
            indent = len(line) - len(line.lstrip(" -"))
            if len(after) - len(below) < indent or (
                len(after) - len(below) == indent and not below.startswith("- ")
            ):
                return True
    return False


def _kind_of(body: object) -> Kind:
    if not isinstance(body, dict):
        return ("", "")
    return str(body.get("apiVersion") or ""), str(body.get("kind") or "")


def _paths(value: object, path: Path) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if inner is None:
                yield (*path, str(key))
            else:
                yield from _paths(inner, (*path, str(key)))
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner, (*path, EACH))


def _has_no_null(schema: Mapping[str, Any], path: Path) -> bool:
    node: Any = schema
    for step in path:
        if step == EACH and node.get("items"):
            node = node["items"]
            continue
        more = node.get("additionalProperties")
        node = (node.get("properties") or {}).get(step, more if isinstance(more, dict) else None)
        if not isinstance(node, dict):
            return False
    is_any = node.get(_PRESERVES) and not node.get("type")
    return not (node.get("nullable") or "default" in node or is_any)


def _removed(value: Any, path: Path) -> bool:  # noqa: ANN401 - YAML
    step, below = path[0], path[1:]
    if isinstance(value, list) and step == EACH:
        return sum(_removed(each, below) for each in value if below) > 0
    if not isinstance(value, dict) or step not in value:
        return False
    if below:
        return _removed(value[step], below)
    if value[step] is not None:
        return False
    del value[step]
    return True
