"""Makes the certificates and keys of one cluster; all are signed by a CA of its own."""

import dataclasses
import datetime as dt
import os
import pathlib
from collections.abc import Sequence
from typing import Final

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
ADMIN: Final = "admin"

_LIFETIME: Final = dt.timedelta(days=3650)


@dataclasses.dataclass(frozen=True, slots=True)
class User:
    """Whom a client certificate names."""

    name: str
    """The user's name (CN), also the name of the files."""
    group: str | None = None
    """The user's group (O)."""


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
        self._issue(file, x509.Holder(x509.name_of(file), usages, (*SERVER_NAMES, *SERVER_ADDRESSES)))

    def client(self, file: str, user: User) -> None:
        """Write a certificate that a client shows to say who it is."""
        name = x509.name_of(user.name, user.group)
        self._issue(file, x509.Holder(name, [oid.ExtendedKeyUsageOID.CLIENT_AUTH]))

    def key_pair(self, file: str) -> None:
        """Write a private key and its public key, without a certificate."""
        key = x509.new_key()
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        write_private(self._directory / f"{file}.pub", public)
        write_private(self._directory / f"{file}.key", x509.private_pem(key))

    def _issue(self, file: str, holder: x509.Holder) -> None:
        self._write(file, x509.issue(self._signed, holder, self._life))

    def _write(self, file: str, signed: x509.Signed) -> None:
        write_private(self._directory / f"{file}.crt", signed.certificate_pem())
        write_private(self._directory / f"{file}.key", signed.key_pem())


def write_all(directory: pathlib.Path, users: Sequence[User], now: dt.datetime) -> None:
    """Write everything that a control plane needs into ``directory``; each file has mode 0600."""
    authority = Authority(directory, now)
    authority.server(API_SERVER)
    authority.key_pair(SERVICE_ACCOUNT)
    for user in users:
        authority.client(file_of(user), user)


def file_of(user: User) -> str:
    """Return the name of a user's files, without an ending."""
    return user.name.removeprefix("system:")


def write_private(path: pathlib.Path, content: bytes) -> None:
    """Write a file that only its owner may read (mode 0600), whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    partial.replace(path)
