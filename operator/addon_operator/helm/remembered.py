"""What the operator remembers, as it is stored: shapes, and the packed text of them."""

import zlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

FORMAT: Final = 1
_MAX_STATE: Final = 64 * 1024 * 1024


class _Shape(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of the content; what other versions of the operator wrote beside it stays."""


class RememberedObject(_Shape, frozen=True):
    """An object of the cluster."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    """Empty for one of the whole cluster."""
    uid: str = ""
    since: float = 0.0
    """When it began to be what it is remembered for, in seconds since the epoch."""
    with_data: bool = False
    """Whether it goes although it holds data."""

    def __str__(self) -> str:
        """Name it for a person."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class LeftField(RememberedObject, frozen=True):
    """What an object still has of an earlier revision, as the API server lets nobody remove it."""

    path: tuple[str, ...] = ()


class SaidField(RememberedObject, frozen=True):
    """What the chart says of a field that is others': the record has the live value."""

    path: tuple[str, ...] = ()
    said: str = ""
    """As JSON; of a Secret a digest."""


class Removal(_Shape, frozen=True):
    """``removal`` of ``module.yaml``, as the deployed revision had it."""

    data: str = ""
    """``keep`` or ``delete``; empty if the module did not say it."""
    confirm: bool = False


class CallUnderWay(_Shape, frozen=True):
    """A call of Helm that has begun, and of which nobody knows yet how it ended."""

    verb: str
    number: int
    """Of the revision that it makes, or works on."""
    began: float = 0.0


class Rejected(_Shape, frozen=True):
    """A first install that failed after it had taken objects over."""

    inputs: str = ""
    """Checksum of what it was made from; empty if there was none."""
    because: str = ""


class RememberedRelease(_Shape, frozen=True):
    """What is remembered of one release."""

    last: int = 0
    """The number of the last revision that this operator made; 0 if it made none."""
    deployed: int = 0
    """The number of the deployed revision; 0 if none is."""
    healthy: int = 0
    """The number of the last revision that was seen to be healthy; 0 if none was."""
    failed: tuple[int, ...] = ()
    """Revisions since then that calls of Helm failed to make."""
    life: str = ""
    """Drawn when the release was installed or taken over: records from before prove nothing."""
    digests: tuple[str, ...] = ()
    """The digest of the deployed revision; two while its record is edited."""
    first: float = 0.0
    """When the first revision was made, in seconds since the epoch."""
    call: CallUnderWay | None = None
    removal: Removal = Removal()
    confirmed: int = 0
    """The revision whose removal somebody confirmed; 0 if nobody did."""
    adopted: tuple[RememberedObject, ...] = ()
    """Objects that were there before the release, and are not in a deployed revision yet."""
    rejected: Rejected = Rejected()
    """What is not tried again by itself."""
    kept: tuple[RememberedObject, ...] = ()
    """Objects that stayed in the cluster when the release lost them."""
    leaving: tuple[RememberedObject, ...] = ()
    """Objects that were deleted with the release, and wait for finalizers."""
    moving: tuple[RememberedObject, ...] = ()
    """Objects that left the release, and go unless a module that has yet to run gains them."""
    left: tuple[LeftField, ...] = ()
    """What objects of the deployed revision still have of earlier ones."""
    said: tuple[SaidField, ...] = ()
    """What the deployed revision's chart says of fields that are others'."""
    ended: tuple[RememberedObject, ...] = ()
    """Jobs and Pods of the deployed revision that were seen to end."""


class State(_Shape, frozen=True):
    """All of it."""

    version: int = FORMAT
    term: int = 0
    """Grows with each leader: one that began earlier must not write any more."""
    taken_over: bool = False
    """Whether releases from before the memory have been taken over."""
    uids: dict[str, str] = {}
    """Of the values ConfigMap and the values Secret, by their kinds."""
    releases: dict[str, RememberedRelease] = {}
    """By ``namespace/name``."""


UNKNOWN: Final = RememberedRelease()


def unpack(packed: bytes) -> tuple[State, dict[str, Any]]:
    """Return the content, and all of it as it is stored; raises :class:`ValueError` for what is none."""
    try:
        decompress = zlib.decompressobj()
        text = decompress.decompress(packed, _MAX_STATE)
        raw: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
        return msgspec.convert(raw, State), raw
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(str(error)) from error


def pack(raw: Mapping[str, Any]) -> bytes:
    """Return the content as it is stored; takes a moment for thousands of releases."""
    return zlib.compress(msgspec.json.encode(raw), 6)


def over(raw: Mapping[str, Any], state: State) -> dict[str, Any]:
    """Return the content, with what other versions of the operator know of it and of its releases."""
    known: dict[str, Any] = msgspec.to_builtins(state)
    had: Mapping[str, Any] = raw.get("releases") or {}
    for key, release in known.get("releases", {}).items():
        known["releases"][key] = _unknown(had.get(key) or {}, RememberedRelease) | release
    return _unknown(raw, State) | known


def _unknown(raw: Mapping[str, Any], shape: type[_Shape]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if key not in shape.__struct_fields__}
