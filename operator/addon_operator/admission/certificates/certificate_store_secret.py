"""Certificates in a Secret that all replicas share; made and rotated by whichever comes first.

A Secret with a usable ``tls.crt`` and ``tls.key`` but no ``ca.key`` is somebody else's, such as
cert-manager's: it is served as it is.
"""

import asyncio
import datetime as dt
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from msgspec import structs

from addon_operator.admission.certificates import (
    certificate_rotation,
    certificate_store,
    certificates,
    shared_secret,
)
from addon_operator.aio import waiting
from addon_operator.kube import api_errors
from addon_operator.kube.client import client, retries
from addon_operator.kube.objects import events

_SERVER: Final = ("tls.crt", "tls.key")
_AUTHORITY: Final = ("ca.crt", "ca.key")
_FORMER: Final = "former-ca.crt"
_OURS: Final = frozenset([*_SERVER, *_AUTHORITY, _FORMER])

_Object = Mapping[str, Any]
Tell = Callable[[events.ObjectReference, str], None]
"""Is called with the Secret and a sentence when what somebody did to it was mended."""


class SecretSource:
    """One Secret in the operator's namespace."""

    interval = 60.0

    def __init__(
        self,
        kube: client.KubeClient,
        about: events.ObjectReference,
        server_names: Collection[str],
        time: waiting.Time,
        tell: Tell,
        lives: certificate_rotation.Lives | None = None,
    ) -> None:
        """``server_names`` are the names and addresses that the API server calls; ``about``: the Secret."""
        self._about = about
        self._namespace = about.event_namespace
        self._name = about.name
        self._tell = tell
        self._names = frozenset(server_names)
        self._time = time
        self._lives = lives or certificate_rotation.Lives()
        self._secret = shared_secret.SharedSecret(kube, self._namespace, self._name, "kubernetes.io/tls")
        self._known: certificate_rotation.State | None = None

    async def load(self) -> certificate_store.Material:
        """Return what the Secret holds, after it was made, repaired or rotated if need be.

        Replicas that write at the same time end with what one of them wrote.

        Raises :class:`.Forbidden` with the right that is missing, and
        :class:`.Conflict` if others write faster, every time.
        """
        return await retries.until_written(self._settle, self._time.sleep, api_errors.NotFound)

    async def _settle(self) -> certificate_store.Material:
        stored, data = await self._secret.read()
        now = certificate_store.utc(self._time)
        if (foreign := _foreign(data, now)) is not None:
            return foreign
        found = _state_of(data)
        step = self._start(found, now)
        state = await asyncio.to_thread(certificate_rotation.advance, step, self._names, now, self._lives)
        ours = _data_of(state)
        if ours != {key: value for key, value in data.items() if key in _OURS}:
            mended = self._mended(stored, found, step, now)
            others = {key: value for key, value in data.items() if key not in _OURS}
            written = await self._secret.write(stored, others | ours)
            if mended:
                uid = str(written["metadata"].get("uid") or "")
                self._tell(structs.replace(self._about, uid=uid), mended)
        self._known = state
        return certificate_store.Material(state.server, state.bundle)

    def _start(
        self, stored: certificate_rotation.State | None, now: dt.datetime
    ) -> certificate_rotation.State | None:
        """Return what to go on from: for a Secret that was deleted or damaged it is what is served now."""
        candidates = [state for state in (stored, self._known) if state is not None]
        usable = (state for state in candidates if certificate_rotation.has_usable_authority(state, now))
        return next(usable, None)

    def _mended(
        self,
        stored: _Object | None,
        found: certificate_rotation.State | None,
        step: certificate_rotation.State | None,
        now: dt.datetime,
    ) -> str:
        """Say what is wrong with the Secret and how that is mended; empty if it is new, or only rotated."""
        if found is not None and certificate_rotation.is_usable(found, now):
            return ""
        if self._known is None and found is None:
            return ""
        wrong = "was deleted" if stored is None else "held no certificate that can be used"
        how = "with a new authority, which the API server trusts once the webhooks are registered with it"
        if step is not None:
            is_known = step is self._known
            how = "from what is in use, so that nothing changes" if is_known else "with its own authority"
        return (
            f"Secret {self._namespace}/{self._name} {wrong}, and is written again {how}; see who changes it"
        )


def _foreign(data: Mapping[str, bytes], now: dt.datetime) -> certificate_store.Material | None:
    server = _pair(data, _SERVER)
    if server is None or data.get("ca.key") or not certificates.belong_together(server):
        return None
    facts = certificates.facts(server.certificate)
    if not facts.not_before <= now < facts.not_after:
        return None
    return certificate_store.Material(server, data.get("ca.crt") or None)


def _state_of(data: Mapping[str, bytes]) -> certificate_rotation.State | None:
    authority = _pair(data, _AUTHORITY)
    if authority is None:
        return None
    server = _pair(data, _SERVER) or certificates.KeyPair(b"", b"")
    return certificate_rotation.State(authority, server, data.get(_FORMER) or None)


def _pair(data: Mapping[str, bytes], keys: tuple[str, str]) -> certificates.KeyPair | None:
    certificate, key = (data.get(name) for name in keys)
    return certificates.KeyPair(certificate, key) if certificate and key else None


def _data_of(state: certificate_rotation.State) -> dict[str, bytes]:
    data: dict[str, bytes] = {}
    for (certificate, key), pair in ((_SERVER, state.server), (_AUTHORITY, state.authority)):
        data |= {certificate: pair.certificate, key: pair.key}
    return data | ({_FORMER: state.former} if state.former else {})
