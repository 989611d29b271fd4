"""Makes the certificate, keys and tokens of one cluster; the certificate is signed by a CA of its own."""

import datetime as dt
import os
import pathlib
import secrets
from collections.abc import Sequence
from typing import Final

import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.x509 import oid

from addon_operator.kernel import x509

SERVICE_IP: Final = "10.96.0.1"
"""Address of the Service ``kubernetes`` inside the cluster: the first of the service network."""
SERVER_NAMES: Final = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
SERVER_ADDRESSES: Final = ("127.0.0.1", "::1", SERVICE_IP)

CA: Final = "ca"
API_SERVER: Final = "apiserver"
SERVICE_ACCOUNT: Final = "service-account"
TOKENS: Final = "tokens.csv"
"""File by which the API server knows who shows which token."""

_LIFETIME: Final = dt.timedelta(days=3650)


class User(msgspec.Struct, frozen=True):
    """Who shows a token.

    The API server would check the signature of a client certificate in each request: a tenth of its work.
    """

    name: str
    """The user's name, also that of the file with the token."""
    group: str | None = None
    """The user's group."""


ADMIN_USER: Final = User("kubernetes-admin", "system:masters")
CONTROLLER_MANAGER_USER: Final = User("system:kube-controller-manager")
SCHEDULER_USER: Final = User("system:kube-scheduler")
# kwok acts as the kubelet of every node, for which RBAC has no role that fits.
KWOK_USER: Final = User("kwok", "system:masters")


class Authority:
    """A certificate authority that writes what it signs into one directory."""

    def __init__(self, directory: pathlib.Path, now: dt.datetime) -> None:
        self._directory = directory
        self._life = x509.Life(now, now + _LIFETIME)
        self._signed = x509.make_authority(
            x509.name_of("devcluster-ca"), self._life, path_length=None, signs_data=True
        )
        self._write(CA, self._signed)

    def server(self, file: str) -> None:
        """Write a certificate for a server on loopback."""
        usages = [oid.ExtendedKeyUsageOID.SERVER_AUTH]
        holder = x509.Holder(x509.name_of(file), usages, (*SERVER_NAMES, *SERVER_ADDRESSES))
        self._write(file, x509.issue(self._signed, holder, self._life))

    def key_pair(self, file: str) -> None:
        """Write a private key and its public key, without a certificate."""
        key = x509.new_key()
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        write_private(self._directory / f"{file}.pub", public)
        write_private(self._directory / f"{file}.key", x509.private_pem(key))

    def _write(self, file: str, signed: x509.Signed) -> None:
        write_private(self._directory / f"{file}.crt", signed.certificate_pem())
        write_private(self._directory / f"{file}.key", signed.key_pem())


def write_all(directory: pathlib.Path, users: Sequence[User], now: dt.datetime) -> None:
    """Write everything that a control plane needs into ``directory``; each file has mode 0600."""
    authority = Authority(directory, now)
    authority.server(API_SERVER)
    authority.key_pair(SERVICE_ACCOUNT)
    known = []
    for user in users:
        token = secrets.token_urlsafe(32)
        write_private(_token_file(directory, user), token.encode())
        known.append(",".join((token, user.name, user.name, *([user.group] if user.group else ()))))
    write_private(directory / TOKENS, "\n".join(known).encode())


def token_of(directory: pathlib.Path, user: User = ADMIN_USER) -> str:
    """Return the token of a user for whom :func:`write_all` wrote one."""
    return _token_file(directory, user).read_text("ascii")


def bearer(directory: pathlib.Path) -> dict[str, str]:
    """Return the header with which the administrator asks."""
    return {"Authorization": f"Bearer {token_of(directory)}"}


def _token_file(directory: pathlib.Path, user: User) -> pathlib.Path:
    return directory / f"{user.name.removeprefix('system:')}.token"


def write_private(path: pathlib.Path, content: bytes) -> None:
    """Write a file that only its owner may read (mode 0600), whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    partial.replace(path)
