"""The certificate that the admission server serves now, kept up to date while it serves."""

import asyncio
import datetime as dt
from typing import Final, Protocol

import msgspec

from addon_operator.admission.certificates import certificates, tls
from addon_operator.aio import waiting, warn_once
from addon_operator.kernel import clock, errors

_AFTER_ERROR_SECONDS: Final = 10.0


class Material(msgspec.Struct, frozen=True):
    """What a source of certificates gives."""

    server: certificates.KeyPair
    bundle: bytes | None
    """Authorities that the API server should trust, PEM; ``None`` leaves that to others."""


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
    """Keeps a live TLS context and the bundle of its authorities equal to their source."""

    def __init__(
        self,
        source: CertificateSource,
        tls_: tls.LiveTls,
        log: warn_once.Log,
        time: waiting.Time,
    ) -> None:
        self._source = source
        self._tls = tls_
        self._time = time
        self.bundle_changed = waiting.News()
        """Tells that the bundle has changed: registrations have to follow."""
        self._trouble = warn_once.WarnOnce(log)
        self._lock = asyncio.Lock()
        self._material: Material | None = None
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

    async def refresh(self) -> bytes | None:
        """Look at the source now; the bundle then.

        Raises :class:`.AddonOperatorError`; what was served is served on.
        """
        async with self._lock:
            try:
                material = await self._source.load()
            except errors.AddonOperatorError as error:
                self._missing = f"the admission server has no certificate: {error}"
                raise
            if material != self._material:
                self._use(material)
            return material.bundle

    def _use(self, material: Material) -> None:
        expires = certificates.facts(material.server.certificate).not_after
        self._tls.use(material.server)
        bundle_changed = self._material is not None and self._material.bundle != material.bundle
        self._material = material
        self._expires = expires.timestamp()
        if bundle_changed:
            self.bundle_changed.set()

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
