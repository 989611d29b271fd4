"""The TLS of the admission site, whose certificate can change, and who may ask it.

Clients may be held to certificates of authorities that a file names.
"""

import asyncio
import os
import pathlib
import ssl
from typing import Final

from addon_operator.admission.certificates import certificates
from addon_operator.aio import waiting, warn_once

_SETTING: Final = "WEBHOOK_CLIENT_CA"
_SECONDS: Final = 10.0
_MAX_BYTES: Final = 1 << 20


class LiveTls:
    """A server context whose certificate and trust are replaced while it serves.

    Handshakes that begin afterwards get the new certificate; connections that are open stay so.
    """

    def __init__(self) -> None:
        self.context = _server_context()
        """For the next handshake; another one after every change of who may ask."""
        self._pair: certificates.KeyPair | None = None

    def use(self, pair: certificates.KeyPair) -> None:
        """Serve this certificate from now on.

        Raises :class:`.CertificateError` if certificate and key cannot
        be used; the former ones are served then.
        """
        # A context that refuses a key has already taken its certificate: try it on one that serves nobody.
        _load(_server_context(), pair)
        _load(self.context, pair)
        self._pair = pair

    def require_clients(self, authorities: bytes) -> None:
        """Take clients only that have a certificate of one of these authorities (PEM).

        Raises :class:`.CertificateError` if there is none among them.
        """
        # A context never forgets an authority, so there is a new one.
        context = _server_context()
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(cadata=authorities.decode("ascii", errors="ignore"))
        except (ssl.SSLError, ValueError) as error:
            raise certificates.CertificateError("which has no certificate in PEM form") from error
        if self._pair is not None:
            _load(context, self._pair)
        self.context = context


class ClientAuthority:
    """Has the site ask for certificates, and follows the file, which others may replace."""

    def __init__(
        self,
        path: pathlib.Path,
        live: LiveTls,
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
        """Look at the file every ten seconds, until cancelled; what cannot be used is logged once."""
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


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    return context


def _load(context: ssl.SSLContext, pair: certificates.KeyPair) -> None:
    # The library reads keys from files only; this one exists in memory alone.
    descriptor = os.memfd_create("webhook-certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(pair.certificate + b"\n" + pair.key)
        # Without a password an encrypted key would ask for one at the terminal.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password="")
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise certificates.CertificateError(
            f"the certificate and key of the admission server cannot be used together: {reason}"
        ) from error
    finally:
        os.close(descriptor)
