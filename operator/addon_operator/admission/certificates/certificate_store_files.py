"""Certificates that others put into a directory: cert-manager, or an administrator."""

import asyncio
import pathlib
from typing import Final

from addon_operator.admission.certificates import certificate_store, certificates

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
AUTHORITY: Final = "ca.crt"
_SETTING: Final = "ADMISSION_SERVER_CERTS_DIR"


class FileSource:
    """``tls.crt``, ``tls.key`` and, if it is there, ``ca.crt`` of a directory: the form of a TLS Secret.

    Without ``ca.crt`` a self-signed certificate is its own authority; of any other it is left to others who
    trusts it (the API server's own roots, or whoever injects a bundle into the registration).
    """

    interval = 10.0

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory

    async def load(self) -> certificate_store.Material:
        """Return what the files hold.

        Raises :class:`.CertificateError` that names the file.
        """
        return await asyncio.to_thread(self._load)

    def _load(self) -> certificate_store.Material:
        pair = certificates.KeyPair(self._read(CERTIFICATE), self._read(KEY))
        self._check(CERTIFICATE, pair.certificate)
        if not certificates.belong_together(pair):
            raise certificates.CertificateError(
                f"{self._directory / KEY} is not the unencrypted PEM key of {CERTIFICATE} beside it: "
                "put a matching pair there"
            )
        return certificate_store.Material(pair, self._bundle(pair))

    def _bundle(self, pair: certificates.KeyPair) -> bytes | None:
        if (self._directory / AUTHORITY).exists():
            bundle = self._read(AUTHORITY)
            self._check(AUTHORITY, bundle)
            return bundle
        return pair.certificate if certificates.is_self_signed(pair.certificate) else None

    def _read(self, name: str) -> bytes:
        path = self._directory / name
        try:
            return path.read_bytes()
        except OSError as error:
            raise certificates.CertificateError(
                f"cannot read {path}: {error.strerror or error}; {_SETTING} has to be a directory with "
                f"{CERTIFICATE}, {KEY} and, for an authority of your own, {AUTHORITY}"
            ) from error

    def _check(self, name: str, content: bytes) -> None:
        try:
            certificates.facts(content)
        except certificates.CertificateError as error:
            raise certificates.CertificateError(f"{self._directory / name}: {error}") from error
