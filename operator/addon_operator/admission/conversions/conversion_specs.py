"""What ``spec.conversion`` of a CustomResourceDefinition has to be, as a pure decision; no requests.

A definition that this operator converts has an annotation that says for whom, and what it was before: whoever
leads next, or the same operator after a restart, can set it back.
Source: ``apiextensions.k8s.io/v1`` of the Kubernetes API.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import orjson

from addon_operator.admission.registration import registration_specs as specs
from addon_operator.hook_contract import conversions
from addon_operator.kernel import errors
from addon_operator.kube import paths
from addon_operator.kube.discovery import api_resources

API_VERSION: Final = "apiextensions.k8s.io/v1"
RESOURCE: Final = api_resources.Resource(
    API_VERSION, "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
COLLECTION: Final = RESOURCE.path()
NOTE: Final = conversions.NOTE
"""Annotation: which operator converts objects, for whom, and what ``spec.conversion`` was before."""
PATH: Final = "/convert/"
"""Path on the admission site, after its random part; the name of the definition follows."""
_KEY: Final = re.compile(rf"/[0-9a-f]{{32}}(?={PATH})")
_NONE: Final[Mapping[str, Any]] = {"strategy": "None"}

Object = Mapping[str, Any]


class ConvertedByOtherError(errors.AddonOperatorError):
    """Another operator converts the objects of a definition."""

    def __init__(self, crd_name: str, namespace: str) -> None:
        super().__init__(
            f"CustomResourceDefinition {crd_name} is converted by the operator in namespace {namespace}: "
            "disable the module there; if that operator is gone, run "
            f"'kubectl annotate crd {crd_name} {NOTE}-'"
        )


class Note(msgspec.Struct, frozen=True):
    """What the annotation says."""

    operator: str
    """Namespace of the operator."""
    hooks: tuple[tuple[str, str], ...] = ()
    """Which hooks convert, sorted: the module, empty for global hooks, and the hook's name."""
    before: dict[str, Any] = msgspec.field(default_factory=lambda: dict(_NONE))
    """``spec.conversion`` as it was."""

    @property
    def owners(self) -> frozenset[str]:
        """Whose hooks convert."""
        return frozenset(owner for owner, _ in self.hooks)


_NOTES: Final = msgspec.json.Decoder(Note)


class Wanted(msgspec.Struct, frozen=True):
    """How a definition is to be converted."""

    operator: str
    """Namespace of the operator."""
    hooks: tuple[tuple[str, str], ...]
    """As in :attr:`Note.hooks`."""
    address: specs.ClientAddress
    bundle: bytes | None
    """Authorities to trust, PEM; ``None`` leaves what others gave."""
    key: str
    """The random part of the path."""


def path_of(crd_name: str) -> str:
    """Return the path of the definition in the API."""
    return paths.of(API_VERSION, "customresourcedefinitions", name=crd_name)


def note_of(live: Object) -> Note | None:
    """Return what the annotation says; ``None`` if there is none that can be read."""
    text = ((live.get("metadata") or {}).get("annotations") or {}).get(NOTE)
    if not isinstance(text, str):
        return None
    try:
        return _NOTES.decode(text)
    except msgspec.MsgspecError:
        return None


def conversion_of(live: Object) -> Object:
    """Return ``spec.conversion`` as the API server means it."""
    return (live.get("spec") or {}).get("conversion") or _NONE


def to_set(live: Object, wanted: Wanted) -> Object | None:
    """Return the merge patch that has the objects converted as wanted; ``None`` if they are.

    Raises :class:`ConvertedByOtherError`.
    """
    name, note = live["metadata"]["name"], note_of(live)
    if note is not None and note.operator != wanted.operator:
        raise ConvertedByOtherError(name, note.operator)
    now = conversion_of(live)
    conversion = _wanted_conversion(name, now, wanted)
    before = dict(now) if note is None else note.before
    if note is None and _client(now) == _client(conversion):
        # Somebody took the annotation away; what was before is not known any more.
        before = dict(_NONE)
    wanted_note = Note(wanted.operator, wanted.hooks, before)
    if note == wanted_note and specs.is_within(conversion, now):
        return None
    return _patch(live, msgspec.json.encode(wanted_note).decode(), conversion)


def to_set_back(live: Object, operator: str) -> Object | None:
    """Return the merge patch that sets back what it was; ``None`` if this operator does not convert it."""
    note = note_of(live)
    if note is None or note.operator != operator:
        return None
    return _patch(live, None, note.before)


def storage_version(live: Object) -> str:
    """Return the version that objects are stored in when they are written."""
    versions = (live.get("spec") or {}).get("versions") or ()
    return next((str(each.get("name")) for each in versions if each.get("storage")), "")


def unconverted(live: Object) -> Sequence[str]:
    """Return versions that objects may be stored in and that nothing converts after setting back.

    Without conversion the API server serves what is stored in them as if it were of another version.
    """
    note = note_of(live)
    if note is None or note.before.get("strategy") != "None":
        return ()
    storage = storage_version(live)
    stored = (live.get("status") or {}).get("storedVersions") or ()
    return [str(version) for version in stored if version != storage]


def _wanted_conversion(name: str, now: Object, wanted: Wanted) -> dict[str, Any]:
    client_config = wanted.address.client_config(specs.guarded(f"{PATH}{name}", wanted.key))
    if wanted.bundle is not None:
        client_config["caBundle"] = base64.b64encode(wanted.bundle).decode()
    elif bundle := ((now.get("webhook") or {}).get("clientConfig") or {}).get("caBundle"):
        client_config["caBundle"] = bundle
    webhook = {"clientConfig": client_config, "conversionReviewVersions": ["v1"]}
    return {"strategy": "Webhook", "webhook": webhook}


def _client(conversion: Object) -> str:
    found = (conversion.get("webhook") or {}).get("clientConfig") or {}
    called = {key: value for key, value in found.items() if key != "caBundle"}
    return _KEY.sub("", orjson.dumps(called, option=orjson.OPT_SORT_KEYS).decode())


def _patch(live: Object, note: str | None, conversion: Object) -> Object:
    # With the resourceVersion that was read a change in between is a conflict.
    metadata = {"resourceVersion": live["metadata"]["resourceVersion"], "annotations": {NOTE: note}}
    return {"metadata": metadata, "spec": {"conversion": _replacing(conversion_of(live), conversion)}}


def _replacing(live: Object, wanted: Object) -> dict[str, Any]:
    """Return the merge patch that makes one mapping of another, however deep."""
    patch: dict[str, Any] = dict.fromkeys(live.keys() - wanted.keys())
    for key, value in wanted.items():
        old = live.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            patch[key] = _replacing(old, value)
        else:
            patch[key] = value
    return patch
