"""Which certificate is made anew, and when."""

import datetime as dt

import pytest
from msgspec import structs

from addon_operator.admission.certificates import certificate_rotation as rotation
from addon_operator.admission.certificates import certificates
from tests.support import rows

NOW = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
LIVES = rotation.Lives(authority=300 * DAY, server=30 * DAY, overlap=DAY)
NAMES = frozenset({"addon-operator.system.svc"})
FIRST = rotation.advance(None, NAMES, NOW, LIVES)


def advance(state: rotation.State, at: dt.datetime) -> rotation.State:
    return rotation.advance(state, NAMES, at, LIVES)


def end(certificate: bytes) -> dt.datetime:
    return certificates.facts(certificate).not_after


def test_the_first_certificates_are_made_together() -> None:
    assert certificates.is_signed_by(FIRST.server.certificate, FIRST.authority.certificate)
    assert certificates.facts(FIRST.server.certificate).names == NAMES
    assert FIRST.former is None
    assert FIRST.bundle == FIRST.authority.certificate


@rows.each("days", [0, 10, 19.9])
def test_nothing_changes_before_it_is_due(days: float) -> None:
    assert advance(FIRST, NOW + days * DAY) is FIRST


@rows.each("days", [20, 29, 31, 150])
def test_the_server_is_signed_anew_after_two_thirds_of_its_life(days: float) -> None:
    later = advance(FIRST, NOW + days * DAY)
    assert later.authority == FIRST.authority
    assert end(later.server.certificate) == NOW + (days + 30) * DAY
    assert later.bundle == FIRST.bundle


def test_a_new_authority_signs_while_the_former_is_still_trusted() -> None:
    due = NOW + 200 * DAY
    state = advance(FIRST, due)
    assert state.authority != FIRST.authority
    assert certificates.is_signed_by(state.server.certificate, state.authority.certificate)
    assert state.bundle == state.authority.certificate + FIRST.authority.certificate
    assert advance(state, due + 0.9 * DAY).former == FIRST.authority.certificate
    assert advance(state, due + 1.1 * DAY).former is None


@rows.each(
    "server",
    [
        pytest.param(certificates.KeyPair(b"", b""), id="no server"),
        pytest.param(certificates.KeyPair(b"rubbish", b"rubbish"), id="rubbish as server"),
        pytest.param(certificates.KeyPair(FIRST.server.certificate, FIRST.authority.key), id="a wrong key"),
        pytest.param(rotation.advance(None, NAMES, NOW, LIVES).server, id="the server of another authority"),
    ],
)
def test_a_damaged_server_is_signed_anew_by_the_same_authority(
    server: certificates.KeyPair,
) -> None:
    repaired = advance(structs.replace(FIRST, server=server), NOW)
    assert repaired.authority == FIRST.authority
    assert certificates.is_signed_by(repaired.server.certificate, FIRST.authority.certificate)
    assert certificates.belong_together(repaired.server)


@rows.each(
    "authority",
    [
        pytest.param(certificates.KeyPair(b"rubbish", FIRST.authority.key), id="rubbish"),
        pytest.param(certificates.KeyPair(FIRST.authority.certificate, FIRST.server.key), id="a wrong key"),
        pytest.param(certificates.make_authority(NOW - 400 * DAY, 300 * DAY), id="expired"),
    ],
)
def test_without_a_usable_authority_all_is_made_anew(authority: certificates.KeyPair) -> None:
    state = structs.replace(FIRST, authority=authority)
    assert not rotation.has_usable_authority(state, NOW)
    made = advance(state, NOW)
    assert certificates.is_signed_by(made.server.certificate, made.authority.certificate)


def test_a_server_gets_the_names_that_it_lacks_and_keeps_those_that_it_has() -> None:
    other = rotation.advance(FIRST, {"operator.example.org"}, NOW, LIVES)
    assert certificates.facts(other.server.certificate).names == {*NAMES, "operator.example.org"}
    assert rotation.advance(other, NAMES, NOW, LIVES) is other


def test_a_slow_clock_does_not_replace_what_a_fast_one_has_made() -> None:
    assert advance(FIRST, NOW - 2 * DAY) is FIRST
