"""Makes X.509 certificates and their keys: authorities, and what they sign.

The module knows neither where certificates are kept nor how long they live. Every key is one of NIST P-256.
Source of the fields: RFC 5280, section 4.
"""

import dataclasses
import datetime as dt
import ipaddress
from collections.abc import Sequence
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes as SigningKey
from cryptography.x509 import oid

CLOCK_SKEW: Final = dt.timedelta(hours=1)
"""How far a certificate is dated back, for clocks that are slow."""


@dataclasses.dataclass(frozen=True, slots=True)
class Signed:
    """A certificate and the private key that belongs to it."""

    certificate: x509.Certificate
    key: SigningKey = dataclasses.field(repr=False)

    def certificate_pem(self) -> bytes:
        """Return the certificate as PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def key_pem(self) -> bytes:
        """Return the private key as PEM, in PKCS #8, not encrypted."""
        return private_pem(self.key)


class Life(msgspec.Struct, frozen=True):
    """From when to when a certificate is wanted; slow clocks are allowed for besides."""

    start: dt.datetime
    end: dt.datetime


class Holder(msgspec.Struct, frozen=True):
    """Whom a certificate names, and what for."""

    name: x509.Name
    usages: Sequence[x509.ObjectIdentifier]
    """The extended key usages: server or client authentication, or both."""
    addresses: Sequence[str] = ()
    """DNS names and IP addresses of a server, in the order of the certificate."""


def new_key() -> ec.EllipticCurvePrivateKey:
    """Make a private key."""
    return ec.generate_private_key(ec.SECP256R1())


def private_pem(key: SigningKey) -> bytes:
    """Return a private key as PEM, in PKCS #8, not encrypted."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def name_of(common: str) -> x509.Name:
    """Return a distinguished name that is a common name alone."""
    return x509.Name([x509.NameAttribute(oid.NameOID.COMMON_NAME, common)])


def make_authority(name: x509.Name, life: Life, *, path_length: int | None, signs_data: bool) -> Signed:
    """Make a certificate authority that is signed by itself.

    ``path_length`` is how many authorities may stand below it in a chain (``None``: any number);
    ``signs_data`` says whether its key may sign anything but certificates and lists of revoked ones.
    """
    key = new_key()
    builder = (
        _builder(name, key, life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=path_length), critical=True)
        .add_extension(_usage(signs_data=signs_data, signs_certificates=True), critical=True)
    )
    return _sign(builder, key, name, key)


def issue(authority: Signed, holder: Holder, life: Life) -> Signed:
    """Make a certificate for a server or client, signed by the authority."""
    key = new_key()
    builder = (
        _builder(holder.name, key, life)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_data=True, signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(holder.usages), critical=False)
    )
    if holder.addresses:
        names = x509.SubjectAlternativeName([_general_name(address) for address in holder.addresses])
        builder = builder.add_extension(names, critical=False)
    return _sign(builder, key, authority.certificate.subject, authority.key)


def _builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey, life: Life) -> x509.CertificateBuilder:
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(life.start - CLOCK_SKEW)
        .not_valid_after(life.end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _sign(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: SigningKey,
) -> Signed:
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    builder = builder.issuer_name(issuer).add_extension(identifier, critical=False)
    return Signed(builder.sign(issuer_key, hashes.SHA256()), key)


def _general_name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _usage(*, signs_data: bool, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=signs_data,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
