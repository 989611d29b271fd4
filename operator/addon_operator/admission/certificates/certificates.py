"""Certificates of the admission server: made, read and judged; nothing is stored here."""

import dataclasses
import datetime as dt
import typing
from collections.abc import Collection

import msgspec
from cryptography import exceptions, x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509 import oid

from addon_operator.kernel import errors
from addon_operator.kernel import x509 as making

CLOCK_SKEW: typing.Final = making.CLOCK_SKEW
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


class Facts(msgspec.Struct, frozen=True):
    """What a certificate says."""

    not_before: dt.datetime
    not_after: dt.datetime
    names: frozenset[str]
    """DNS names and IP addresses of a server."""

    def rotate_at(self) -> dt.datetime:
        """Return when two thirds of its life are over."""
        return self.not_before + (self.not_after - self.not_before) * 2 / 3


def make_authority(now: dt.datetime, life: dt.timedelta) -> KeyPair:
    """Make a certificate authority that signs nothing but servers of its own level."""
    # Two authorities are in use while they change places; equal names would make verifiers guess.
    name = making.name_of(f"{_AUTHORITY_NAME}-{now:%Y%m%d%H%M%S}")
    return _pair(making.make_authority(name, making.Life(now, now + life), path_length=0, signs_data=False))


def make_server(authority: KeyPair, names: Collection[str], now: dt.datetime, life: dt.timedelta) -> KeyPair:
    """Make a certificate for these DNS names and IP addresses, not outliving its authority."""
    issuer = making.Signed(_certificate(authority.certificate), _issuer_key(authority))
    holder = making.Holder(making.name_of(_SERVER_NAME), [oid.ExtendedKeyUsageOID.SERVER_AUTH], sorted(names))
    end = min(now + life, issuer.certificate.not_valid_after_utc)
    return _pair(making.issue(issuer, holder, making.Life(now, end)))


def facts(certificate: bytes) -> Facts:
    """Return what the first certificate of a PEM text says.

    Raises :class:`CertificateError` if there is none.
    """
    parsed = _certificate(certificate)
    return Facts(parsed.not_valid_before_utc, parsed.not_valid_after_utc, _names_in(parsed))


def belong_together(pair: KeyPair) -> bool:
    """Say whether the key is that of the certificate."""
    try:
        key = serialization.load_pem_private_key(pair.key, password=None)
        return key.public_key() == _certificate(pair.certificate).public_key()
    except (ValueError, TypeError, exceptions.UnsupportedAlgorithm, CertificateError):
        return False


def is_signed_by(certificate: bytes, authority: bytes) -> bool:
    """Say whether the certificate was signed with the key of the authority's certificate."""
    try:
        _certificate(certificate).verify_directly_issued_by(_certificate(authority))
    except (ValueError, TypeError, exceptions.InvalidSignature, CertificateError):
        return False
    return True


def is_self_signed(certificate: bytes) -> bool:
    """Say whether the certificate is its own authority."""
    return is_signed_by(certificate, certificate)


def _certificate(pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise CertificateError(f"the text is not a certificate in PEM form: {error}") from error


def _issuer_key(authority: KeyPair) -> CertificateIssuerPrivateKeyTypes:
    # A key that belongs to the certificate of an authority can sign.
    key = serialization.load_pem_private_key(authority.key, password=None)
    return typing.cast("CertificateIssuerPrivateKeyTypes", key)


def _names_in(certificate: x509.Certificate) -> frozenset[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return frozenset()
    addresses = names.get_values_for_type(x509.IPAddress)
    return frozenset([*names.get_values_for_type(x509.DNSName), *map(str, addresses)])


def _pair(signed: making.Signed) -> KeyPair:
    return KeyPair(signed.certificate_pem(), signed.key_pem())
