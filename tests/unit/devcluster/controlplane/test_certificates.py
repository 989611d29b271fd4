"""Certificates of a cluster."""

import datetime as dt
import ipaddress
import pathlib

import pytest
from cryptography import x509
from cryptography.x509 import verification

from addon_operator.devcluster.controlplane import certificates

NOW = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
USERS = [certificates.ADMIN_USER, certificates.CONTROLLER_MANAGER_USER]


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    directory = tmp_path_factory.mktemp("pki")
    certificates.write_all(directory, USERS, NOW)
    return directory


def load(pki: pathlib.Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((pki / f"{name}.crt").read_bytes())


def verifier(pki: pathlib.Path) -> verification.PolicyBuilder:
    return verification.PolicyBuilder().store(verification.Store([load(pki, "ca")])).time(NOW)


def test_every_file_is_for_its_owner_only(pki: pathlib.Path) -> None:
    assert {path.stat().st_mode & 0o777 for path in pki.iterdir()} == {0o600}


@pytest.mark.parametrize("name", ["127.0.0.1", "10.96.0.1", "localhost", "kubernetes.default.svc"])
def test_clients_trust_the_server_by_every_name(pki: pathlib.Path, name: str) -> None:
    is_address = name[0].isdigit()
    subject = x509.IPAddress(ipaddress.ip_address(name)) if is_address else x509.DNSName(name)
    chain = verifier(pki).build_server_verifier(subject).verify(load(pki, "apiserver"), [])
    assert chain[-1] == load(pki, "ca")


def test_nobody_trusts_the_server_by_another_name(pki: pathlib.Path) -> None:
    with pytest.raises(verification.VerificationError):
        verifier(pki).build_server_verifier(x509.DNSName("example.com")).verify(load(pki, "apiserver"), [])


def test_certificates_are_valid_for_years_and_a_little_into_the_past(pki: pathlib.Path) -> None:
    found = load(pki, "apiserver")
    assert found.not_valid_before_utc < NOW < found.not_valid_after_utc - dt.timedelta(days=3000)


def test_no_two_clusters_share_a_key_or_token(pki: pathlib.Path, tmp_path: pathlib.Path) -> None:
    certificates.write_all(tmp_path, USERS, NOW)
    assert (tmp_path / "ca.key").read_bytes() != (pki / "ca.key").read_bytes()
    assert certificates.token_of(tmp_path) != certificates.token_of(pki)


def test_a_file_is_replaced_as_a_whole(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("old")
    path.chmod(0o644)
    certificates.write_private(path, b"new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
