"""The random part of the paths at which hooks answer and convert, and edits of values are checked.

It keeps out who merely reaches the port. It is no proof: the API server quotes the address in its errors. So
it changes, and is kept in a Secret, beside the certificates, for all replicas. Only one that leads changes
it, as only that one has all registrations follow. What was registered before is taken until two minutes
after the change, or longer, until all of them followed.
"""

import secrets
from collections.abc import Mapping
from typing import Final

from addon_operator.admission.certificates import shared_secret
from addon_operator.aio import waiting
from addon_operator.kube import api_errors
from addon_operator.kube.client import client, retries

_KEYS: Final = "path-keys"
"""One a line, the newest first, each with the seconds since 1970 of its beginning."""
_SEEN: Final = "path-key-seen"
"""The one that somebody else may have read in an error of the API server."""
_LIFE_SECONDS: Final = 3600.0
_LEAST_SECONDS: Final = 60.0
"""So long one lasts that was seen, however often that happens."""
_LEFT_SECONDS: Final = 120.0
_MOST: Final = 6
"""While registrations do not follow, there are no more."""


class PathKeys:
    """The keys in a Secret of the operator's namespace."""

    def __init__(
        self, kube: client.KubeClient, namespace: str, name: str, time: waiting.Time, *, alone: bool = False
    ) -> None:
        """``alone``: there is no leader, and each replica keeps all registrations."""
        self._secret = shared_secret.SharedSecret(kube, namespace, name)
        self._time = time
        self._changes = alone
        self._is_due = False
        self._is_seen = False
        self._known: dict[str, float] = {}
        self.registered: dict[object, str] = {}
        """With which key each registration that this process keeps was written last."""

    def lead(self) -> None:
        """Change it now, and whenever that is due: all registrations are kept here."""
        self._changes = self._is_due = True

    def expose(self) -> None:
        """Have it changed within a minute: the API server may have quoted it in an error."""
        self._is_seen = True

    def accepts(self, key: str) -> bool:
        """Say whether a request may have this key, as far as is known."""
        return any(secrets.compare_digest(key.encode(), known.encode()) for known in self._known)

    async def load(self) -> str:
        """Return what to register, after it was made, changed or tidied if that is due.

        Raises a :class:`.KubernetesError`.
        """
        return await retries.until_written(self._settle, self._time.sleep, api_errors.NotFound)

    async def _settle(self) -> str:
        stored, data = await self._secret.read()
        keys, was_seen = (data.get(name, b"").decode(errors="replace") for name in (_KEYS, _SEEN))
        found, seen = _parsed(keys), was_seen
        wanted = self._wanted(found or self._known, seen)
        newest = next(iter(wanted))
        if self._is_seen and newest in found:
            # Who leads changes it, which may be another replica.
            seen = newest
        is_written = wanted == found and seen == was_seen
        if not is_written:
            lines = "".join(f"{key} {since:.0f}\n" for key, since in wanted.items())
            await self._secret.write(stored, {**data, _KEYS: lines.encode(), _SEEN: seen.encode()})
            self._is_due = False
        self._is_seen = False
        self._known = wanted
        return newest

    def _wanted(self, found: Mapping[str, float], seen: str) -> dict[str, float]:
        now = round(self._time.time())
        wanted = dict(found)
        if not wanted:
            return {secrets.token_hex(16): now}
        if not self._changes:
            return wanted
        newest, since = next(iter(wanted.items()))
        was_seen = self._is_seen or seen == newest
        is_old = now >= since + (_LEAST_SECONDS if was_seen else _LIFE_SECONDS) or since > now
        if (self._is_due or is_old) and len(wanted) < _MOST:
            return {secrets.token_hex(16): now, **wanted}
        if now >= since + _LEFT_SECONDS and all(key == newest for key in self.registered.values()):
            return {newest: since}
        return wanted


def _parsed(text: str) -> dict[str, float]:
    """Return the keys, and since when they are; lines that are wrong are passed over."""
    split = (line.split() for line in text.splitlines()[:_MOST])
    return {
        line[0]: int(line[1])
        for line in split
        if len(line) == 2 and line[0].isalnum() and line[0].isascii() and line[1].isdigit()
    }
