"""What the operator remembers of its releases, and the key that proves which records are its own.

All of it is in one Secret of the operator's namespace. The leader alone writes it, with its resourceVersion
as precondition: everything else that the operator reads can have been changed by others.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from addon_operator.aio import waiting
from addon_operator.helm import places, remembered
from addon_operator.kernel import errors
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client

_KEY: Final = "key"
_STATE: Final = "state"
_KEY_BYTES: Final = 32
_LABEL: Final = 63
"""Characters that the value of a label may have."""
_MAX_STORED: Final = 1024 * 1024
"""What the API server takes as the data of a Secret."""
_PAUSE: Final = 1.0
"""Seconds in which changes gather before they are written, unless something waits for them."""
_RETRY: Final = waiting.Backoff(2.0, 30.0)
_ATTEMPTS: Final = 5
# By this the webhook that checks edits recognises the operator's own writes, which it lets pass.
_AS_OPERATOR: Final = {"fieldManager": client.FIELD_MANAGER}


class MemoryTakenError(errors.AddonOperatorError):
    """Another operator has begun to write the memory."""


class _Stored(msgspec.Struct, frozen=True):
    """The Secret at one moment."""

    resource_version: str
    data: Mapping[str, str]

    @property
    def key(self) -> bytes:
        """Return the key; empty if there is none that can be used."""
        try:
            key = base64.b64decode(self.data.get(_KEY) or "", validate=True)
        except binascii.Error:
            return b""
        return key if len(key) == _KEY_BYTES else b""

    def state(self) -> tuple[remembered.State, dict[str, Any]]:
        """Return the content, and all of it as it is stored; raises :class:`ValueError` for what is none."""
        return remembered.unpack(base64.b64decode(self.data[_STATE], validate=True))


_NOTHING: Final = _Stored("", {})


class Memory:
    """The memory of one operator; until it is read or loaded, nothing is known."""

    def __init__(
        self,
        kube: client.KubeClient,
        namespace: str,
        config_map: str,
        warn: Callable[[str], object],
        time: waiting.Time | None = None,
    ) -> None:
        """``config_map``: the values ConfigMap, after which the Secret is named."""
        self._kube = kube
        self._collection = paths.of("v1", "secrets", namespace=namespace)
        self._name = f"{config_map}-state"
        self._owner = config_map
        if len(config_map) > _LABEL:
            self._owner = hashlib.sha256(config_map.encode()).hexdigest()[:_LABEL]
        self._path = paths.of("v1", "secrets", namespace=namespace, name=self._name)
        self._title = f"Secret {namespace}/{self._name}"
        self._warn = warn
        self._time = time or waiting.SystemTime()
        self._key = b""
        self._state = remembered.State()
        self._raw: dict[str, Any] = {}
        self._releases: dict[str, remembered.RememberedRelease] = {}
        self._stored = _NOTHING
        self._changes = self._written = 0
        self._changed = asyncio.Event()
        self._writing = asyncio.Lock()
        self.left = asyncio.Event()
        """Set when other objects than before are kept, for ever or for now, or wait for finalizers."""

    # What is remembered. Nothing here waits.

    @property
    def owner(self) -> str:
        """Return the name of the ConfigMap as the value of a label."""
        return self._owner

    @property
    def is_known(self) -> bool:
        """Whether there is a key, by which records can be told apart."""
        return bool(self._key)

    @property
    def taken_over(self) -> bool:
        """Whether releases from before the memory have been taken over; until then it is a first start."""
        return self._state.taken_over

    def has_taken_over(self) -> None:
        """Remember that the first start is over."""
        self._change(taken_over=True)

    def uid(self, kind: str) -> str:
        """Return the uid of the values ``ConfigMap`` or ``Secret``; empty if none was seen."""
        return self._state.uids.get(kind, "")

    def remember_uid(self, kind: str, uid: str) -> None:
        """Remember the values ``ConfigMap`` or ``Secret``; an empty uid forgets it."""
        if uid != self.uid(kind):
            uids = {**self._state.uids, kind: uid}
            self._change(uids={key: value for key, value in uids.items() if value})

    def of(self, place: places.ReleaseLocation) -> remembered.RememberedRelease:
        """Return what is remembered of a release."""
        return self._releases.get(str(place), remembered.UNKNOWN)

    def put(self, place: places.ReleaseLocation, state: remembered.RememberedRelease) -> None:
        """Remember a release as this from now on, or forget it if nothing is to be remembered."""
        before = self.of(place)
        if state == before:
            return
        if (state.kept, state.leaving, state.moving) != (before.kept, before.leaving, before.moving):
            self.left.set()
        if state == remembered.UNKNOWN:
            del self._releases[str(place)]
        else:
            self._releases[str(place)] = state
        self._touch()

    def change(self, place: places.ReleaseLocation, **fields: Any) -> None:  # noqa: ANN401 - of the shape
        """Remember these fields of a release otherwise."""
        self.put(place, msgspec.structs.replace(self.of(place), **fields))

    @property
    def has_releases(self) -> bool:
        """Whether there is a release of ours."""
        return any(each.last for each in self._releases.values())

    @property
    def locations(self) -> Sequence[places.ReleaseLocation]:
        """Where the releases are of which something is remembered."""
        return [places.ReleaseLocation(*key.split("/", 1)) for key in self._releases]

    @property
    def moving(self) -> Mapping[places.ReleaseLocation, tuple[remembered.RememberedObject, ...]]:
        """What left releases and may be in another one soon, by these releases."""
        return {
            places.ReleaseLocation(*key.split("/", 1)): state.moving
            for key, state in self._releases.items()
            if state.moving
        }

    def digest(self, parts: Sequence[str]) -> str:
        """Return the keyed digest of texts, as the value of a label; empty as long as there is no key."""
        if not self._key:
            return ""
        keyed = hmac.new(self._key, digestmod=hashlib.sha256)
        for part in parts:
            encoded = part.encode(errors="surrogatepass")
            keyed.update(len(encoded).to_bytes(8))
            keyed.update(encoded)
        return base64.b32encode(keyed.digest()).decode().rstrip("=").lower()

    # The Secret.

    @property
    def path(self) -> str:
        """Return where it is in the API."""
        return self._path

    def outline(self) -> client.Object:
        """Return the Secret as far as a plan without the cluster needs it: where releases are."""
        releases = dict.fromkeys(self._releases, remembered.UNKNOWN)
        packed = remembered.pack(msgspec.to_builtins(remembered.State(taken_over=True, releases=releases)))
        return {"metadata": {}, "data": {_STATE: base64.b64encode(packed).decode()}}

    async def read(self) -> None:
        """Read it as it is, for somebody who does not lead; what nobody wrote yet is not known.

        Raises what the client raises, but not for a Secret that does not exist.
        """
        self._take(await self._get())

    async def load(self) -> None:
        """Read it, as the leader: what is missing is made, and earlier leaders must not write from then on.

        Waits for the right to read it. What cannot be written yet is written by :meth:`keep`, and before the
        first call of Helm. Raises :class:`.ConfigurationError` for one of a newer version.
        """
        failures = 0
        while True:
            try:
                self._take(await self._get())
                break
            except api_errors.Forbidden as error:
                if not failures:
                    self._warn(
                        f"{self._title}, in which the operator remembers its releases, cannot be used: "
                        f"{error}; let the operator get, update and patch this Secret, and create it, empty, "
                        "if it is missing; it is tried again"
                    )
            await self._time.sleep(_RETRY.after(failures))
            failures += 1
        self._key = self._key or secrets.token_bytes(_KEY_BYTES)
        self._change(term=self._state.term + 1)
        try:
            await self.write()
        except api_errors.ApiError as error:
            self._warn(f"what the operator remembers cannot be saved, and is tried again: {error}")

    async def write(self) -> None:
        """Write what changed; when this returns, all changes from before the call are in the cluster.

        Callers at the same time share a request. Raises :class:`MemoryTakenError` when a later leader has
        written, and what the client raises.
        """
        wanted = self._changes
        async with self._writing:
            if self._written >= wanted:
                return
            for _ in range(_ATTEMPTS):
                changes = self._changes
                data = await self._encoded()
                try:
                    self._stored = await self._put(data)
                except (api_errors.Conflict, api_errors.NotFound):
                    self._stored = await self._looked_at()
                    continue
                self._written = changes
                return
        raise errors.AddonOperatorError(
            f"{self._title} cannot be written: something else changes it all the time; leave it alone"
        )

    async def keep(self) -> None:
        """Write changes soon after they happen, for ever."""
        failures = 0
        while True:
            await self._changed.wait()
            await self._time.sleep(_RETRY.after(failures) if failures else _PAUSE)
            self._changed.clear()
            try:
                await self.write()
            except errors.AddonOperatorError as error:
                failures += 1
                self._changed.set()
                if failures == 1:
                    self._warn(f"what the operator remembers cannot be saved, and is tried again: {error}")
            else:
                failures = 0

    def _change(self, **fields: Any) -> None:  # noqa: ANN401 - of the shape
        self._state = msgspec.structs.replace(self._state, **fields)
        self._touch()

    def _touch(self) -> None:
        self._changes += 1
        self._changed.set()

    async def _get(self) -> _Stored:
        try:
            return _stored(await self._kube.get(self._path))
        except api_errors.NotFound:
            return _NOTHING

    def _take(self, stored: _Stored) -> None:
        """Have in memory what is stored."""
        self._stored, self._key = stored, stored.key
        if not stored.data.get(_STATE):
            return
        try:
            self._state, self._raw = stored.state()
        except (KeyError, ValueError) as error:
            self._warn(
                f"{self._title} cannot be read ({type(error).__name__}): the operator starts as if for the "
                "first time"
            )
            return
        if self._state.version > remembered.FORMAT:
            raise errors.ConfigurationError(
                f"{self._title} was written by a newer version of the operator (format {self._state.version},"
                f" this one knows {remembered.FORMAT}): run that version, or delete the Secret to have all "
                "releases taken over once more"
            )
        self._releases = dict(self._state.releases)

    async def _encoded(self) -> dict[str, str]:
        self._state = msgspec.structs.replace(
            self._state, version=remembered.FORMAT, releases=dict(self._releases)
        )
        self._raw = remembered.over(self._raw, self._state)
        packed = await asyncio.to_thread(remembered.pack, self._raw)
        if len(packed) > _MAX_STORED - 1024:
            raise errors.AddonOperatorError(
                f"{self._title} would have {len(packed)} bytes, and may have {_MAX_STORED}: there are "
                f"{len(self._releases)} releases; run a second operator for some of the modules"
            )
        return {
            _KEY: base64.b64encode(self._key).decode(),
            _STATE: base64.b64encode(packed).decode(),
        }

    async def _put(self, data: Mapping[str, str]) -> _Stored:
        if not self._stored.resource_version:
            body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": self._name}, "data": data}
            return _stored(await self._kube.create(self._collection, body, query=_AS_OPERATOR))
        patch = {"metadata": {"resourceVersion": self._stored.resource_version}, "data": data}
        return _stored(await self._kube.patch(self._path, patch, query=_AS_OPERATOR))

    async def _looked_at(self) -> _Stored:
        """Read the Secret after somebody else wrote it: of what they wrote nothing counts.

        Raises :class:`MemoryTakenError` if that is an operator that began later.
        """
        found, before = await self._get(), self._stored
        try:
            term = found.state()[0].term if found.data.get(_STATE) else 0
        except ValueError:
            term = 0
        if term > self._state.term or (term == self._state.term and found.key not in (b"", self._key)):
            raise MemoryTakenError(
                f"{self._title} is written by another operator, which began later: end one of the two"
            )
        if before.data and found.data != before.data:
            self._warn(f"{self._title} was changed or deleted by others; it is written again as it was")
        return found


def _stored(body: client.Object) -> _Stored:
    return _Stored(str(body["metadata"].get("resourceVersion") or ""), dict(body.get("data") or {}))
