"""Certificates that are made here."""

import datetime as dt
import ipaddress

import pytest
from cryptography import x509
from cryptography.x509 import verification

from addon_operator.admission.certificates import certificates
from tests.support import rows

NOW = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
YEAR = dt.timedelta(days=365)
AUTHORITY = certificates.make_authority(NOW, 10 * YEAR)
NAMES = ["addon-operator.system.svc", "10.0.0.7", "2001:db8::1"]
SERVER = certificates.make_server(AUTHORITY, NAMES, NOW, YEAR)


def verify(name: x509.GeneralName, server: certificates.KeyPair, at: dt.datetime = NOW) -> None:
    store = verification.Store([x509.load_pem_x509_certificate(AUTHORITY.certificate)])
    assert isinstance(name, x509.DNSName | x509.IPAddress)
    verifier = verification.PolicyBuilder().store(store).time(at).build_server_verifier(name)
    verifier.verify(x509.load_pem_x509_certificate(server.certificate), [])


@rows.each("name", NAMES)
def test_clients_trust_the_server_by_each_name(name: str) -> None:
    address = name[0].isdigit()
    verify(x509.IPAddress(ipaddress.ip_address(name)) if address else x509.DNSName(name), SERVER)


@rows.each("name", ["system.svc", "other.system.svc"])
def test_nobody_trusts_the_server_by_another_name(name: str) -> None:
    with pytest.raises(verification.VerificationError):
        verify(x509.DNSName(name), SERVER)


def test_a_clock_that_is_slow_sees_a_valid_certificate() -> None:
    verify(x509.DNSName(NAMES[0]), SERVER, NOW - certificates.CLOCK_SKEW)


def test_a_server_does_not_outlive_its_authority() -> None:
    late = certificates.make_server(AUTHORITY, NAMES, NOW + 9.5 * YEAR, YEAR)
    ends = [certificates.facts(pair.certificate).not_after for pair in (late, AUTHORITY)]
    assert ends[0] == ends[1]


def test_the_facts_are_those_of_the_certificate() -> None:
    facts = certificates.facts(SERVER.certificate)
    assert facts.names == frozenset(NAMES)
    assert facts.not_after == NOW + YEAR
    assert facts.not_before == NOW - certificates.CLOCK_SKEW


def test_rotation_is_due_at_two_thirds_of_life() -> None:
    facts = certificates.Facts(NOW, NOW + dt.timedelta(days=90), frozenset())
    assert facts.rotate_at() == NOW + dt.timedelta(days=60)


def test_keys_belong_to_their_certificates_only() -> None:
    assert certificates.belong_together(SERVER)
    assert not certificates.belong_together(certificates.KeyPair(SERVER.certificate, AUTHORITY.key))
    assert not certificates.belong_together(certificates.KeyPair(b"no certificate", SERVER.key))
    assert not certificates.belong_together(certificates.KeyPair(SERVER.certificate, b"no key"))


def test_a_signature_is_that_of_one_authority() -> None:
    other = certificates.make_authority(NOW, YEAR)
    assert certificates.is_signed_by(SERVER.certificate, AUTHORITY.certificate)
    assert not certificates.is_signed_by(SERVER.certificate, other.certificate)
    assert not certificates.is_signed_by(b"no certificate", other.certificate)
    assert certificates.is_self_signed(other.certificate)
    assert not certificates.is_self_signed(SERVER.certificate)


def test_an_authority_forged_by_name_is_found_out() -> None:
    forged = certificates.make_authority(NOW, YEAR)
    server = certificates.make_server(forged, NAMES, NOW, YEAR)
    # Made in the same second, so that both authorities have one name.
    assert not certificates.is_signed_by(server.certificate, AUTHORITY.certificate)


def test_keys_are_not_shown() -> None:
    assert "PRIVATE" not in repr(SERVER)
    assert b"PRIVATE" in SERVER.key
