"""Certificates of the admission server: made, read and judged; nothing is stored here."""

import dataclasses
import datetime as dt
import ipaddress
import typing
from collections.abc import Collection

from cryptography import exceptions, x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509 import oid

from addon_operator.kernel import errors

CLOCK_SKEW: typing.Final = dt.timedelta(hours=1)
"""How far a certificate is dated back, for clocks that are slow."""
_SERVER_NAME: typing.Final = "addon-operator-admission"
_AUTHORITY_NAME: typing.Final = "addon-operator-admission-ca"


class CertificateError(errors.ConfigurationError):
    """A certificate or key cannot be used."""


@dataclasses.dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate, or a chain of them, and its private key; both PEM."""

    certificate: bytes
    key: bytes = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What a certificate says."""

    not_before: dt.datetime
    not_after: dt.datetime
    names: frozenset[str]
    """DNS names and IP addresses of a server."""

    def rotate_at(self) -> dt.datetime:
        """When two thirds of its life are over."""
        return self.not_before + (self.not_after - self.not_before) * 2 / 3


def make_authority(now: dt.datetime, life: dt.timedelta) -> KeyPair:
    """A certificate authority that signs nothing but servers of its own level."""
    key = ec.generate_private_key(ec.SECP256R1())
    # Two authorities are in use while they change places; equal names would make verifiers guess.
    name = _name(f"{_AUTHORITY_NAME}-{now:%Y%m%d%H%M%S}")
    builder = (
        _builder(name, name, key.public_key(), now, now + life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    )
    return _signed(builder, key, key)


def make_server(authority: KeyPair, names: Collection[str], now: dt.datetime, life: dt.timedelta) -> KeyPair:
    """A certificate for a server with these DNS names and IP addresses, not outliving its authority."""
    issuer, issuer_key = _certificate(authority.certificate), _issuer_key(authority)
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key())  # type: ignore[arg-type]  # what signs certificates has a public key of these types
    builder = (
        _builder(_name(_SERVER_NAME), issuer.subject, key.public_key(), now, min(now + life, _end(issuer)))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(_alternative_names(names), critical=False)
    )
    return _signed(builder, key, issuer_key)


def facts(certificate: bytes) -> Facts:
    """What the first certificate of a PEM text says.

    Raises :class:`CertificateError` if there is none.
    """
    parsed = _certificate(certificate)
    return Facts(parsed.not_valid_before_utc, _end(parsed), _names_in(parsed))


def belong_together(pair: KeyPair) -> bool:
    """Whether the key is that of the certificate."""
    try:
        key = serialization.load_pem_private_key(pair.key, password=None)
        return key.public_key() == _certificate(pair.certificate).public_key()
    except (ValueError, TypeError, exceptions.UnsupportedAlgorithm, CertificateError):
        return False


def is_signed_by(certificate: bytes, authority: bytes) -> bool:
    """Whether the certificate was signed with the key of the authority's certificate."""
    try:
        _certificate(certificate).verify_directly_issued_by(_certificate(authority))
    except (ValueError, TypeError, exceptions.InvalidSignature, CertificateError):
        return False
    return True


def is_self_signed(certificate: bytes) -> bool:
    """Whether the certificate is its own authority."""
    return is_signed_by(certificate, certificate)


def _certificate(pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise CertificateError(f"the text is no certificate in PEM form: {error}") from error


def _issuer_key(authority: KeyPair) -> CertificateIssuerPrivateKeyTypes:
    # A key that belongs to the certificate of an authority can sign.
    key = serialization.load_pem_private_key(authority.key, password=None)
    return typing.cast("CertificateIssuerPrivateKeyTypes", key)


def _end(certificate: x509.Certificate) -> dt.datetime:
    return certificate.not_valid_after_utc


def _names_in(certificate: x509.Certificate) -> frozenset[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return frozenset()
    addresses = names.get_values_for_type(x509.IPAddress)
    return frozenset([*names.get_values_for_type(x509.DNSName), *map(str, addresses)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: dt.datetime,
    end: dt.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _signed(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: CertificateIssuerPrivateKeyTypes,
) -> KeyPair:
    certificate = builder.sign(issuer_key, hashes.SHA256())
    return KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(oid.NameOID.COMMON_NAME, common)])


def _alternative_names(names: Collection[str]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([_general_name(name) for name in sorted(names)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
