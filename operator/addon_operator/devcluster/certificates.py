"""Makes the certificates and keys of one cluster; all are signed by a CA of its own."""

import dataclasses
import datetime as dt
import ipaddress
import os
import pathlib
from collections.abc import Sequence
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import oid

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
ETCD: Final = "etcd"
ETCD_CLIENT: Final = "apiserver-etcd-client"
SERVICE_ACCOUNT: Final = "service-account"
ADMIN: Final = "admin"

_LIFETIME: Final = dt.timedelta(days=3650)
_CLOCK_SKEW: Final = dt.timedelta(hours=1)


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
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject("devcluster-ca", None)
        usage = _key_usage(certificate_sign=True)
        builder = self._builder(self._name, self._key.public_key(), is_ca=True).add_extension(
            usage, critical=True
        )
        self._write(CA, builder.sign(self._key, hashes.SHA256()), self._key)

    def server(self, file: str, *, also_client: bool = False) -> None:
        """Write a certificate for servers on loopback."""
        usages = [oid.ExtendedKeyUsageOID.SERVER_AUTH]
        if also_client:
            usages.append(oid.ExtendedKeyUsageOID.CLIENT_AUTH)
        self._sign(file, User(file), usages, _alternative_names())

    def client(self, file: str, user: User) -> None:
        """Write a certificate that a client shows to say who it is."""
        self._sign(file, user, [oid.ExtendedKeyUsageOID.CLIENT_AUTH], None)

    def key_pair(self, file: str) -> None:
        """Write a private key and its public key, without a certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        write_private(self._directory / f"{file}.pub", public)
        write_private(self._directory / f"{file}.key", _private_pem(key))

    def _sign(
        self,
        file: str,
        user: User,
        usages: Sequence[x509.ObjectIdentifier],
        names: x509.SubjectAlternativeName | None,
    ) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_subject(user.name, user.group), key.public_key(), is_ca=False)
        builder = builder.add_extension(_key_usage(certificate_sign=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        self._write(file, builder.sign(self._key, hashes.SHA256()), key)

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, is_ca: bool
    ) -> x509.CertificateBuilder:
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - _CLOCK_SKEW)
            .not_valid_after(self._now + _LIFETIME)
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(identifier, critical=False)
        )

    def _write(self, file: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        write_private(self._directory / f"{file}.crt", certificate.public_bytes(serialization.Encoding.PEM))
        write_private(self._directory / f"{file}.key", _private_pem(key))


def write_all(directory: pathlib.Path, users: Sequence[User], now: dt.datetime) -> None:
    """Write everything that a control plane needs into ``directory``; each file has mode 0600."""
    authority = Authority(directory, now)
    authority.server(API_SERVER)
    authority.server(ETCD, also_client=True)
    authority.client(ETCD_CLIENT, User(ETCD_CLIENT))
    authority.key_pair(SERVICE_ACCOUNT)
    for user in users:
        authority.client(file_of(user), user)


def file_of(user: User) -> str:
    """Name of a user's files, without an ending."""
    return user.name.removeprefix("system:")


def write_private(path: pathlib.Path, content: bytes) -> None:
    """Write a file that only its owner may read (mode 0600), whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    partial.replace(path)


def _subject(name: str, group: str | None) -> x509.Name:
    attributes = [x509.NameAttribute(oid.NameOID.COMMON_NAME, name)]
    if group is not None:
        attributes.append(x509.NameAttribute(oid.NameOID.ORGANIZATION_NAME, group))
    return x509.Name(attributes)


def _alternative_names() -> x509.SubjectAlternativeName:
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in SERVER_NAMES]
    addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in SERVER_ADDRESSES]
    return x509.SubjectAlternativeName([*names, *addresses])


def _key_usage(*, certificate_sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=certificate_sign,
        crl_sign=certificate_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
