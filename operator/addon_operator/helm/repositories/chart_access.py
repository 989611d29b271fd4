"""How a repository of charts is reached: credentials, and the CAs that are trusted.

Helm gets credentials in files that only the operator can read, never as arguments. Source: "config.json" of
the Docker documentation.
"""

import base64
import binascii
import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from addon_operator.kernel import errors

# Where Go looks for them, in this order.
_SYSTEM_CAS: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_SECRETS: Final = ("auth", "password", "identitytoken", "registrytoken")
_SHORTEST_SECRET: Final = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Login:
    """User and password of a repository."""

    username: str = ""
    password: str = dataclasses.field(default="", repr=False)


class Access(msgspec.Struct, frozen=True):
    """What settings say of the way to repositories."""

    credentials: pathlib.Path | None = None
    """A Docker configuration (``CHART_CREDENTIALS``)."""
    ca_file: pathlib.Path | None = None
    """Trusted beside the CAs of the system (``CHART_CA_FILE``)."""

    def secrets(self) -> list[str]:
        """Return what of the Docker configuration must not be shown; raises as :meth:`of` does."""
        secrets: set[str] = set()
        for entry in self._entries().values():
            secrets |= {str(entry[key]) for key in _SECRETS if entry.get(key)}
            secrets.add(_credentials(entry).password)
        return [text for text in secrets if len(text) >= _SHORTEST_SECRET]

    def text(self) -> str:
        """Return the Docker configuration; raises as :meth:`of` does."""
        return "{}" if self.credentials is None else _text(self.credentials, "CHART_CREDENTIALS")

    def of(self, repository: str) -> Login:
        """Return the credentials of an HTTP repository; those of the longest address that fits.

        Raises :class:`.ConfigurationError` for a Docker configuration that cannot be read.
        """
        wanted = _without_scheme(repository)
        fitting = [
            (len(address), entry)
            for key, entry in self._entries().items()
            if wanted == (address := _without_scheme(key)) or wanted.startswith(f"{address}/")
        ]
        return _credentials(max(fitting, key=lambda each: each[0])[1]) if fitting else Login()

    def bundle(self, environ: Mapping[str, str]) -> str:
        """Return the certificates of all trusted CAs.

        Raises :class:`.ConfigurationError` when a file that is named cannot be read, and when there is none.
        """
        texts = [] if self.ca_file is None else [_text(self.ca_file, "CHART_CA_FILE")]
        named = [environ["SSL_CERT_FILE"]] if environ.get("SSL_CERT_FILE") else _SYSTEM_CAS
        for path in map(pathlib.Path, named):
            if path.is_file():
                texts.append(_text(path, "SSL_CERT_FILE"))
                break
        if not texts:
            raise errors.ConfigurationError(
                "this machine has no CA certificates; install ca-certificates, or name them in CHART_CA_FILE"
            )
        return "\n".join(texts)

    def _entries(self) -> dict[str, dict[str, Any]]:
        try:
            auths = json.loads(self.text()).get("auths") or {}
            return {str(key): dict(entry) for key, entry in auths.items()}
        except (ValueError, AttributeError, TypeError):
            # Not "from": the parser quotes the text.
            raise errors.ConfigurationError(
                f"CHART_CREDENTIALS names {self.credentials}, which is not a Docker configuration; "
                'it is JSON such as {"auths": {"registry.example.com": {"auth": "…"}}}'
            ) from None


def _credentials(entry: Mapping[str, Any]) -> Login:
    if entry.get("username"):
        return Login(str(entry["username"]), str(entry.get("password") or ""))
    try:
        decoded = base64.b64decode(str(entry.get("auth") or "")).decode()
    except (binascii.Error, UnicodeDecodeError):
        return Login()
    username, _, password = decoded.partition(":")
    return Login(username, password)


def _without_scheme(address: str) -> str:
    return address.rpartition("://")[2].rstrip("/")


def _text(path: pathlib.Path, setting: str) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise errors.ConfigurationError(
            f"{setting} names {path}, which cannot be read: {error.strerror}"
        ) from error
    except UnicodeDecodeError:
        raise errors.ConfigurationError(f"{setting} names {path}, which is not UTF-8 text") from None
