"""What has to be written so that a CustomResourceDefinition of the cluster becomes that of a file.

Pure functions over the file's definition and the live one. Sources: "CustomResourceDefinition versioning" of
the Kubernetes documentation, and what the Go operator does: labels and annotations are added and never taken
away, and the live ``spec.conversion`` stays.
"""

import enum
from collections.abc import Mapping
from typing import Any

import msgspec

from addon_operator.kernel.json_types import JsonObject, JsonValue
from addon_operator.modules import crd_files


class CrdPhase(enum.Enum):
    """Where the API server is with a definition."""

    PENDING = "pending"
    ESTABLISHED = "established"
    REFUSED = "refused"


class Progress(msgspec.Struct, frozen=True):
    """What the conditions of a live definition say."""

    phase: CrdPhase
    message: str = ""
    """Why it is refused."""


def desired(crd: crd_files.Crd, labels: Mapping[str, str], live: JsonObject | None) -> JsonObject:
    """Return the object to apply: the file's with the extra ``labels``, and a live conversion."""
    metadata: JsonObject = {"name": crd.name, "labels": {**crd.labels, **labels}}
    if crd.annotations:
        metadata["annotations"] = crd.annotations
    spec = {**crd.spec}
    conversion = _conversion(live)
    if conversion is not None:
        spec["conversion"] = conversion
    return {
        "apiVersion": crd_files.API_VERSION,
        "kind": crd_files.KIND,
        "metadata": metadata,
        "spec": spec,
    }


def differs(wanted: JsonObject, live: JsonObject) -> bool:
    """Say whether applying ``wanted`` would change ``live``, apart from what the server fills in itself."""
    metadata, spec = _part(wanted, "metadata"), _part(wanted, "spec")
    live_spec = _part(live, "spec")
    if _versions(spec) != _versions(live_spec):
        return True
    rest: JsonObject = {key: value for key, value in spec.items() if key != "versions"}
    live_metadata: JsonObject = _part(live, "metadata")
    return not (_contains(live_metadata, metadata) and _contains(live_spec, rest))


def lost_versions(crd: crd_files.Crd, live: JsonObject | None) -> tuple[str, ...]:
    """Return versions in which objects may be stored (``status.storedVersions``) and that the file lacks."""
    stored = _part(live or {}, "status").get("storedVersions")
    names = [str(name) for name in stored] if isinstance(stored, list) else []
    return tuple(name for name in names if name not in crd.versions)


def no_longer_served(crd: crd_files.Crd, live: JsonObject | None) -> tuple[str, ...]:
    """Return versions that the live definition serves and the file's would not."""
    served = served_versions(crd)
    listed = _versions(_part(live or {}, "spec"))
    names = [str(version.get("name")) for version in listed if version.get("served") is True]
    return tuple(name for name in names if name not in served)


def keeping(wanted: JsonObject, live: JsonObject, versions: tuple[str, ...]) -> JsonObject:
    """Return ``wanted`` with the other versions of ``live``, not served and not stored any more.

    So the API server can still read what is stored in them.
    """
    spec = _part(wanted, "spec")
    kept: list[JsonValue] = [
        {**version, "served": False, "storage": False}
        for version in _versions(_part(live, "spec"))
        if version.get("name") in versions
    ]
    return {**wanted, "spec": {**spec, "versions": [*_versions(spec), *kept]}}


def storage_version(crd: crd_files.Crd) -> str:
    """Return the version in which the file wants objects stored."""
    return next((str(v.get("name")) for v in _versions(crd.spec) if v.get("storage") is True), "")


def served_versions(crd: crd_files.Crd) -> tuple[str, ...]:
    """Return the versions that the file wants served."""
    return tuple(str(v.get("name")) for v in _versions(crd.spec) if v.get("served") is True)


def progress(live: Mapping[str, Any]) -> Progress:
    """Say whether the API server serves the definition."""
    status = live.get("status") or {}
    by_type = {condition.get("type"): condition for condition in status.get("conditions") or []}
    for type_, wrong in (("NamesAccepted", "False"), ("NonStructuralSchema", "True")):
        condition = by_type.get(type_) or {}
        if condition.get("status") == wrong:
            return Progress(
                CrdPhase.REFUSED, str(condition.get("message") or condition.get("reason") or type_)
            )
    if (by_type.get("Established") or {}).get("status") == "True":
        return Progress(CrdPhase.ESTABLISHED)
    return Progress(CrdPhase.PENDING)


def _conversion(live: JsonObject | None) -> JsonValue:
    """Return the live conversion; the strategy ``None``, the default, is not a setting that somebody made."""
    conversion = _part(live or {}, "spec").get("conversion")
    if isinstance(conversion, dict) and conversion.get("strategy") != "None":
        return conversion
    return None


def _versions(spec: JsonObject) -> list[JsonObject]:
    return crd_files.versions_of(spec)


def _part(document: JsonObject, key: str) -> JsonObject:
    found = document.get(key)
    return found if isinstance(found, dict) else {}


def _contains(live: JsonValue, wanted: JsonValue) -> bool:
    """Say whether every field of ``wanted`` stands in ``live``; lists have to be equal."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(_contains(live.get(key), value) for key, value in wanted.items())
    return live == wanted or (live is None and wanted is False)
