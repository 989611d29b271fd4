"""Certificates: what stands in them, and who trusts them."""

import datetime as dt
import ipaddress

import pytest
from cryptography import x509 as library
from cryptography.hazmat.primitives import serialization
from cryptography.x509 import oid, verification

from addon_operator.kernel import x509
from tests.support import rows

NOW = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
LIFE = x509.Life(NOW, NOW + dt.timedelta(days=365))
SERVER_AUTH = oid.ExtendedKeyUsageOID.SERVER_AUTH
CLIENT_AUTH = oid.ExtendedKeyUsageOID.CLIENT_AUTH
ADDRESSES = ("web.example.org", "10.0.0.7", "a.example.org", "2001:db8::1")


def authority(path_length: int | None = None, *, signs_data: bool = False) -> x509.Signed:
    return x509.make_authority(x509.name_of("root"), LIFE, path_length=path_length, signs_data=signs_data)


AUTHORITY = authority()
SERVER = x509.issue(AUTHORITY, x509.Holder(x509.name_of("web"), [SERVER_AUTH], ADDRESSES), LIFE)
CLIENT = x509.issue(AUTHORITY, x509.Holder(x509.name_of("jane"), [CLIENT_AUTH]), LIFE)
ALL = [
    pytest.param(AUTHORITY, id="authority"),
    pytest.param(SERVER, id="server"),
    pytest.param(CLIENT, id="client"),
]


def policy(root: x509.Signed = AUTHORITY) -> verification.PolicyBuilder:
    return verification.PolicyBuilder().store(verification.Store([root.certificate])).time(NOW)


@rows.each("address", ADDRESSES)
def test_clients_trust_a_server_by_each_address(address: str) -> None:
    is_ip = address[0].isdigit()
    subject = library.IPAddress(ipaddress.ip_address(address)) if is_ip else library.DNSName(address)
    chain = policy().build_server_verifier(subject).verify(SERVER.certificate, [])
    assert chain == [SERVER.certificate, AUTHORITY.certificate]


def test_nobody_trusts_a_server_of_another_authority_with_the_same_name() -> None:
    verifier = policy(authority()).build_server_verifier(library.DNSName(ADDRESSES[0]))
    with pytest.raises(verification.VerificationError):
        verifier.verify(SERVER.certificate, [])


def test_addresses_keep_their_order() -> None:
    names = SERVER.certificate.extensions.get_extension_for_class(library.SubjectAlternativeName).value
    assert tuple(str(name.value) for name in names) == ADDRESSES


def test_a_holder_without_addresses_has_no_alternative_names() -> None:
    with pytest.raises(library.ExtensionNotFound):
        CLIENT.certificate.extensions.get_extension_for_class(library.SubjectAlternativeName)


@rows.each(("signed", "usage"), [(SERVER, SERVER_AUTH), (CLIENT, CLIENT_AUTH)])
def test_a_holder_has_the_usages_that_were_asked_for(
    signed: x509.Signed, usage: library.ObjectIdentifier
) -> None:
    found = signed.certificate.extensions.get_extension_for_class(library.ExtendedKeyUsage).value
    assert list(found) == [usage]


def test_a_name_is_a_common_name() -> None:
    assert x509.name_of("jane").rfc4514_string() == "CN=jane"


@rows.each("path_length", [None, 0, 2])
def test_an_authority_says_how_many_may_stand_below_it(path_length: int | None) -> None:
    found = authority(path_length).certificate.extensions.get_extension_for_class(library.BasicConstraints)
    assert found.critical
    assert (found.value.ca, found.value.path_length) == (True, path_length)


@rows.each("signed", [SERVER, CLIENT], ids=["server", "client"])
def test_a_holder_is_not_an_authority(signed: x509.Signed) -> None:
    found = signed.certificate.extensions.get_extension_for_class(library.BasicConstraints)
    assert found.critical
    assert not found.value.ca


@rows.each(
    ("signed", "signs_data", "signs_certificates"),
    [
        pytest.param(authority(signs_data=False), False, True, id="authority for certificates only"),
        pytest.param(authority(signs_data=True), True, True, id="authority for all"),
        pytest.param(SERVER, True, False, id="server"),
    ],
)
def test_a_key_may_be_used_for_what_its_holder_does(
    signed: x509.Signed, signs_data: bool, signs_certificates: bool
) -> None:
    found = signed.certificate.extensions.get_extension_for_class(library.KeyUsage)
    assert found.critical
    assert found.value.digital_signature is signs_data
    assert found.value.key_cert_sign is signs_certificates
    assert found.value.crl_sign is signs_certificates


@rows.each("signed", ALL)
def test_a_certificate_points_at_the_key_of_its_authority(signed: x509.Signed) -> None:
    issuer = AUTHORITY.certificate.extensions.get_extension_for_class(library.SubjectKeyIdentifier).value
    found = signed.certificate.extensions.get_extension_for_class(library.AuthorityKeyIdentifier).value
    assert found.key_identifier == issuer.key_identifier


@rows.each("signed", ALL)
def test_a_certificate_lives_as_long_as_was_asked_for_and_a_little_into_the_past(signed: x509.Signed) -> None:
    assert signed.certificate.not_valid_before_utc == LIFE.start - x509.CLOCK_SKEW
    assert signed.certificate.not_valid_after_utc == LIFE.end


@rows.each("signed", ALL)
def test_the_key_in_pem_is_that_of_the_certificate_in_pem(signed: x509.Signed) -> None:
    key = serialization.load_pem_private_key(signed.key_pem(), password=None)
    certificate = library.load_pem_x509_certificate(signed.certificate_pem())
    assert certificate == signed.certificate
    assert key.public_key() == certificate.public_key()


def test_no_two_certificates_share_a_key_or_a_number() -> None:
    made = [AUTHORITY, authority(), SERVER, CLIENT]
    assert len({one.certificate.serial_number for one in made}) == 4
    assert len({one.key_pem() for one in made}) == 4


def test_a_key_is_not_shown() -> None:
    assert "key" not in repr(SERVER)
