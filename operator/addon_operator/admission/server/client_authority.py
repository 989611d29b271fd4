"""Who may ask the admission site: clients with a certificate of an authority that a file names."""

import asyncio
import pathlib
from typing import Final

from addon_operator.admission.certificates import certificates
from addon_operator.admission.server import tls
from addon_operator.aio import waiting, warn_once

_SETTING: Final = "WEBHOOK_CLIENT_CA"
_SECONDS: Final = 10.0
_MAX_BYTES: Final = 1 << 20


class ClientAuthority:
    """Has the site ask for certificates, and follows the file, which others may replace."""

    def __init__(
        self,
        path: pathlib.Path,
        live: tls.LiveTls,
        log: warn_once.Log,
        sleep: waiting.Sleep = asyncio.sleep,
    ) -> None:
        self._path = path
        self._tls = live
        self._trouble = warn_once.WarnOnce(log)
        self._sleep = sleep
        self._used: bytes | None = None

    async def load(self) -> None:
        """Have the site trust what is in the file now, and nobody else.

        Raises :class:`.CertificateError` that names the file; the site
        goes on as before then.
        """
        content = await asyncio.to_thread(self._read)
        if content == self._used:
            return
        try:
            self._tls.require_clients(content)
        except certificates.CertificateError as error:
            raise certificates.CertificateError(
                f"{_SETTING} names {self._path}, {error}; it has to hold the certificate of the authority "
                "that signed the API server's client certificate, or of several, as PEM"
            ) from error
        self._used = content

    async def keep(self) -> None:
        """Look at the file every ten seconds, until cancelled; what cannot be used is told once."""
        while True:
            await self._sleep(_SECONDS)
            try:
                await self.load()
            except certificates.CertificateError as error:
                self._trouble.warn(f"clients of the admission server are judged as before: {error}")
            else:
                self._trouble.over("the authority of the admission server's clients can be used again")

    def _read(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                return file.read(_MAX_BYTES)
        except OSError as error:
            raise certificates.CertificateError(
                f"{_SETTING} names {self._path}, which cannot be read: {error.strerror or error}"
            ) from error
