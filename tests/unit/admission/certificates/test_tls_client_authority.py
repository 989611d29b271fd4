"""Clients of the admission server that have to show who they are."""

import asyncio
import pathlib
import ssl

import aiohttp
import pytest
from cryptography.x509 import oid

from addon_operator.admission.certificates import certificates, tls
from addon_operator.kernel import x509
from tests.support import logs
from tests.unit.admission import tls_clients
from tests.unit.admission.objects import Gate

LIFE = x509.Life(tls_clients.NOW, tls_clients.NOW + tls_clients.LIFE)


def authority(name: str) -> x509.Signed:
    return x509.make_authority(x509.name_of(name), LIFE, path_length=0, signs_data=False)


def client_of(
    issuer: x509.Signed,
    directory: pathlib.Path,
    usage: oid.ObjectIdentifier = oid.ExtendedKeyUsageOID.CLIENT_AUTH,
) -> ssl.SSLContext:
    made = x509.issue(issuer, x509.Holder(x509.name_of("kube-apiserver"), [usage]), LIFE)
    path = directory / "client.pem"
    path.write_bytes(made.certificate_pem() + made.key_pem())
    context = tls_clients.trusting(tls_clients.AUTHORITY)
    context.load_cert_chain(path)
    return context


async def status(run: tls_clients.Running, context: ssl.SSLContext) -> int | str:
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(connector=connector) as session:
        try:
            async with session.post(run.url + tls_clients.PATH, json=tls_clients.review()) as answer:
                return answer.status
        except (aiohttp.ClientError, ConnectionError):
            return "turned away"


OURS, THEIRS = authority("api-server"), authority("somebody")


def requiring(*authorities: x509.Signed) -> tls.LiveTls:
    live = tls_clients.serving(tls_clients.server_pair())
    live.require_clients(b"".join(each.certificate_pem() for each in authorities))
    return live


async def test_only_who_has_a_certificate_of_the_authority_is_answered(tmp_path: pathlib.Path) -> None:
    async with tls_clients.running(live=requiring(OURS)) as run:
        found = [
            await status(run, tls_clients.trusting_authority()),
            await status(run, client_of(THEIRS, tmp_path)),
            await status(run, client_of(OURS, tmp_path, oid.ExtendedKeyUsageOID.SERVER_AUTH)),
            await status(run, client_of(OURS, tmp_path)),
        ]
    assert found == ["turned away", "turned away", "turned away", 200]
    assert ("handshake", "PEER_DID_NOT_RETURN_A_CERTIFICATE") in run.watcher.closed
    assert run.watcher.statuses == [200]


async def test_the_certificate_of_the_server_changes_as_without(tmp_path: pathlib.Path) -> None:
    async with tls_clients.running(live=requiring(OURS)) as run:
        run.tls.use(tls_clients.server_pair())
        assert await status(run, tls_clients.trusting_authority()) == "turned away"
        assert await status(run, client_of(OURS, tmp_path)) == 200


async def test_a_connection_from_before_a_change_of_the_authority_ends_with_its_next_answer() -> None:
    live = tls_clients.serving(tls_clients.server_pair())
    async with tls_clients.running(live=live) as run:
        assert (await run.ask())[0] == 200
        live.require_clients(OURS.certificate_pem())
        assert (await run.ask())[0] == 200
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await run.ask()


@pytest.fixture
def log() -> logs.Lines:
    return logs.Lines()


async def test_a_file_that_is_replaced_is_read_again(tmp_path: pathlib.Path, log: logs.Lines) -> None:
    live, gate, path = tls_clients.serving(tls_clients.server_pair()), Gate(), tmp_path / "ca.crt"
    path.write_bytes(OURS.certificate_pem())
    followed = tls.ClientAuthority(path, live, log, gate.sleep)
    await followed.load()
    first = live.context
    await followed.load()
    assert live.context is first
    path.write_bytes(THEIRS.certificate_pem())
    await followed.load()
    async with tls_clients.running(live=live) as run:
        assert await status(run, client_of(OURS, tmp_path)) == "turned away"
        assert await status(run, client_of(THEIRS, tmp_path)) == 200


async def test_a_file_that_becomes_useless_changes_nothing_and_is_reported_once(
    tmp_path: pathlib.Path, log: logs.Lines
) -> None:
    rounds = 0

    async def three_times(_: float) -> None:
        nonlocal rounds
        rounds += 1
        if rounds > 3:
            raise asyncio.CancelledError

    live, path = tls_clients.serving(tls_clients.server_pair()), tmp_path / "ca.crt"
    path.write_bytes(OURS.certificate_pem())
    followed = tls.ClientAuthority(path, live, log, three_times)
    await followed.load()
    before = live.context
    path.unlink()
    with pytest.raises(asyncio.CancelledError):
        await followed.keep()
    assert live.context is before
    (warning,) = log.warnings
    assert warning == (
        "clients of the admission server are judged as before: "
        f"WEBHOOK_CLIENT_CA names {path}, which cannot be read: No such file or directory"
    )


@pytest.mark.parametrize("content", [b"", b"nothing", b"\xff\xfe", b"-----BEGIN CERTIFICATE-----\nx\n"])
async def test_a_file_without_a_certificate_is_one_sentence(
    content: bytes, tmp_path: pathlib.Path, log: logs.Lines
) -> None:
    path = tmp_path / "ca.crt"
    path.write_bytes(content)
    with pytest.raises(certificates.CertificateError) as refused:
        await tls.ClientAuthority(path, tls.LiveTls(), log).load()
    assert str(refused.value) == (
        f"WEBHOOK_CLIENT_CA names {path}, which has no certificate in PEM form; it has to hold the "
        "certificate of the authority that signed the API server's client certificate, or of several, as PEM"
    )
