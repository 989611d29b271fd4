"""The certificate that the admission server serves now, kept up to date while it serves."""

import asyncio
import contextlib
import datetime as dt
from typing import Final, Protocol

import msgspec

from addon_operator.admission.certificates import certificates, path_keys, tls
from addon_operator.aio import waiting, warn_once
from addon_operator.kernel import clock, errors

_AFTER_ERROR_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 1.0


class Material(msgspec.Struct, frozen=True):
    """What a source of certificates gives."""

    server: certificates.KeyPair
    bundle: bytes | None
    """Authorities that the API server should trust, PEM; ``None`` leaves that to others."""


class Calling(msgspec.Struct, frozen=True):
    """How the API server calls; what is registered has to follow when that changes."""

    bundle: bytes | None
    """As in :attr:`Material.bundle`."""
    key: str
    """The random part of guarded paths."""


class CertificateSource(Protocol):
    """Where certificates come from; a seam, since there are two: a Secret and files."""

    @property
    def interval(self) -> float:
        """Seconds between two looks at it."""
        ...

    async def load(self) -> Material:
        """Return what is to be served now, rotated first if that is due and the source's business.

        Raises :class:`.AddonOperatorError`.
        """
        ...


class CertificateStore:
    """Keeps a live TLS context, the bundle of its authorities and the keys of paths equal to their source."""

    def __init__(
        self,
        source: CertificateSource,
        tls_: tls.LiveTls,
        keys: path_keys.PathKeys,
        log: warn_once.Log,
        time: waiting.Time,
    ) -> None:
        self.keys = keys
        self._source = source
        self._tls = tls_
        self._time = time
        self.calling_changed = waiting.News()
        """Tells that what :meth:`refresh` returns has changed: registrations have to follow."""
        self._trouble = warn_once.WarnOnce(log)
        self._lock = asyncio.Lock()
        self._material: Material | None = None
        self._calling: Calling | None = None
        self._looking = asyncio.Lock()
        self._looked = float("-inf")
        self._missing = "the admission server has no certificate yet"
        self._expires = 0.0

    def seconds_left(self) -> float:
        """Return when the served certificate expires, for ``webhook_certificate_expiry_seconds``."""
        return self._expires - self._time.time()

    @property
    def unready_reason(self) -> str | None:
        """Why the API server cannot call now, or ``None``: without a certificate that holds, it does not."""
        if self._material is None:
            return self._missing
        return None if self.seconds_left() > 0 else "the certificate of the admission server has expired"

    async def refresh(self) -> Calling:
        """Look at the certificates and the keys of paths now; how the API server calls then.

        Raises :class:`.AddonOperatorError`; what was served is served on.
        """
        async with self._lock:
            material = await self._load()
            calling = Calling(material.bundle, await self.keys.load())
            changed = self._calling is not None and self._calling != calling
            self._calling = calling
            if changed:
                self.calling_changed.set()
            return calling

    async def load(self) -> None:
        """Look at the certificates alone, for which files need no API server."""
        async with self._lock:
            await self._load()

    async def accepts(self, key: str) -> bool:
        """Say whether the API server may call with this key.

        One that is not known is looked for, as another replica may just have made it: once a second at most,
        for all that wait.
        """
        arrived = self._time.monotonic()
        if not key or self.keys.accepts(key):
            return bool(key)
        async with self._looking:
            if self._looked <= arrived:
                await self._time.sleep(max(0.0, self._looked + _LOOK_SECONDS - self._time.monotonic()))
                self._looked = self._time.monotonic()
                with contextlib.suppress(errors.AddonOperatorError):
                    await self.refresh()
        return self.keys.accepts(key)

    def expose(self) -> None:
        """Have the key changed within a minute: the API server may have quoted it in an error."""
        self.keys.expose()

    async def _load(self) -> Material:
        try:
            material = await self._source.load()
        except errors.AddonOperatorError as error:
            self._missing = f"the admission server has no certificate: {error}"
            raise
        if material != self._material:
            expires = certificates.facts(material.server.certificate).not_after
            self._tls.use(material.server)
            self._material = material
            self._expires = expires.timestamp()
        return material

    async def keep(self) -> None:
        """Look at the source again and again, until cancelled; :meth:`refresh` comes first.

        Errors become one warning, and are tried again.
        """
        pause = self._source.interval
        while True:
            await self._time.sleep(pause)
            try:
                await self.refresh()
            except errors.AddonOperatorError as error:
                self._trouble.warn(f"the certificate of the admission server cannot be renewed: {error}")
                pause = min(_AFTER_ERROR_SECONDS, self._source.interval)
            else:
                self._trouble.over("the certificate of the admission server is kept again")
                pause = self._source.interval


def utc(time: clock.Clock) -> dt.datetime:
    """Return the time of a clock in the form that certificates use."""
    return dt.datetime.fromtimestamp(time.time(), dt.UTC)
