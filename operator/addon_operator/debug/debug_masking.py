"""Objects and manifests as people are shown them: without what Secrets hold."""

import re
from collections.abc import Mapping
from typing import Any, Final

from addon_operator.documents import manifest_diff, yaml_reading, yaml_writing
from addon_operator.kernel import json_types
from addon_operator.values.schema import schemas

HIDDEN: Final = schemas.HIDDEN
_HOLDERS: Final = ("data", "stringData")
_LAST_APPLIED: Final = manifest_diff.LAST_APPLIED
_KIND: Final = "Secret"
_LIST: Final = f"{_KIND}List"
_SEPARATOR: Final = re.compile(r"^---[ \t]*$", re.MULTILINE)
_UNREADABLE: Final = "\n# A document that mentions Secrets and cannot be read is not shown.\n"

Object = Mapping[str, Any]


def is_secret_kind(name: str) -> bool:
    """Return whether a binding's ``kind`` (or plural) means Secrets."""
    return name.lower() in ("secret", "secrets")


def without_secret_data(found: Object) -> json_types.JsonObject:
    """Return a copy of the object with what a Secret holds hidden; in a list, of its items."""
    if isinstance(found.get("items"), list):
        items = [without_secret_data(item) if isinstance(item, dict) else item for item in _items(found)]
        return {**found, "items": items}
    if found.get("kind") != _KIND:
        return dict(found)
    return _masked_secret(found)


def _items(found: Object) -> list[Any]:
    """Return the items of a list; those of a list of Secrets need not say that they are some."""
    if found.get("kind") != _LIST:
        return list(found["items"])
    return [{"kind": _KIND, **item} if isinstance(item, dict) else item for item in found["items"]]


def _masked_secret(secret: Object) -> json_types.JsonObject:
    shown: dict[str, Any] = dict(secret)
    for holder in _HOLDERS:
        if secret.get(holder) is not None:
            is_usual = isinstance(secret[holder], dict)
            shown[holder] = dict.fromkeys(secret[holder], HIDDEN) if is_usual else HIDDEN
    metadata = secret.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(metadata, dict) and isinstance(annotations, dict) and _LAST_APPLIED in annotations:
        shown["metadata"] = {**metadata, "annotations": {**annotations, _LAST_APPLIED: HIDDEN}}
    return shown


def masked_pair(before: Object, after: Object) -> tuple[json_types.JsonObject, json_types.JsonObject]:
    """Return two states of an object for a diff: hidden, but a value that changed is seen to have changed."""
    left, right = without_secret_data(before), without_secret_data(after)
    if before.get("kind") == after.get("kind") == _KIND:
        for holder in _HOLDERS:
            _mark_changes(before, after, left.get(holder), right.get(holder), holder)
    return left, right


def _mark_changes(before: Object, after: Object, left: object, right: object, holder: str) -> None:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in left.keys() & right.keys():
            if before[holder][key] != after[holder][key]:
                left[key], right[key] = f"{HIDDEN} (before)", f"{HIDDEN} (after)"


def masked_manifest(text: str) -> str:
    """Return a manifest of several documents with the data of its Secrets hidden, the rest as written."""
    return "---".join(_masked_document(document) for document in _SEPARATOR.split(text))


def _masked_document(text: str) -> str:
    if _KIND not in text and "\\" not in text:  # A text in quotes may be written in other ways.
        return text
    try:
        document = yaml_reading.load(text, "the manifest")
    except yaml_reading.YamlError:
        return _UNREADABLE
    if not isinstance(document, dict) or not _holds_secret(document):
        return text
    comments = "".join(line + "\n" for line in text.splitlines() if line.startswith("# Source:"))
    return "\n" + comments + yaml_writing.dump(without_secret_data(document))


def _holds_secret(found: Object) -> bool:
    items = found.get("items")
    inner = items if isinstance(items, list) else []
    if found.get("kind") in (_KIND, _LIST):
        return True
    return any(_holds_secret(item) for item in inner if isinstance(item, dict))


def masked_snapshot(kind: str, entry: Object) -> json_types.JsonObject:
    """Return an entry of a binding's snapshot; of Secrets, neither data nor filter results."""
    shown = dict(entry)
    if isinstance(found := entry.get("object"), dict):
        shown["object"] = without_secret_data({"kind": _KIND, **found} if is_secret_kind(kind) else found)
    if "filterResult" in entry and is_secret_kind(kind):
        shown["filterResult"] = HIDDEN
    return shown
