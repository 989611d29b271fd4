"""A certificate that changes while it is served."""

import asyncio
import contextlib
import json
import re
import ssl
from collections.abc import AsyncIterator

import pytest

from addon_operator.admission.certificates import certificates, tls
from tests.support import rows
from tests.unit.admission import tls_clients

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
OTHER = certificates.make_authority(tls_clients.NOW, tls_clients.LIFE)


def own_tls() -> tls.LiveTls:
    return tls_clients.serving(tls_clients.server_pair())


async def served_certificate(run: tls_clients.Running, authority: certificates.KeyPair) -> bytes:
    async with connected(run, tls_clients.trusting(authority)) as (_, writer):
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        assert isinstance(found, bytes)
        return found


@contextlib.asynccontextmanager
async def connected(run: tls_clients.Running, context: ssl.SSLContext) -> AsyncIterator[Streams]:
    reader, writer = await asyncio.open_connection("127.0.0.1", run.site.port, ssl=context)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()


async def ask(streams: Streams) -> bytes:
    reader, writer = streams
    body = json.dumps(tls_clients.review()).encode()
    head = f"POST {tls_clients.PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", answer, re.IGNORECASE)
    assert length is not None
    await reader.readexactly(int(length[1]))
    return answer.split(b"\r\n")[0]


def der(pair: certificates.KeyPair) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pair.certificate.decode())


async def test_new_connections_get_the_new_certificate() -> None:
    async with tls_clients.running(live=own_tls()) as run:
        fresh = tls_clients.server_pair(OTHER)
        run.tls.use(fresh)
        assert await served_certificate(run, OTHER) == der(fresh)
        with pytest.raises(ssl.SSLCertVerificationError):
            await served_certificate(run, tls_clients.AUTHORITY)


async def test_open_connections_outlive_a_new_certificate() -> None:
    async with (
        tls_clients.running(live=own_tls()) as run,
        connected(run, tls_clients.trusting(tls_clients.AUTHORITY)) as streams,
    ):
        for authority in (tls_clients.AUTHORITY, OTHER, OTHER):
            assert await ask(streams) == b"HTTP/1.1 200 OK"
            run.tls.use(tls_clients.server_pair(authority))
        assert await ask(streams) == b"HTTP/1.1 200 OK"


@rows.each(
    "pair",
    [
        pytest.param(
            certificates.KeyPair(tls_clients.server_pair().certificate, tls_clients.server_pair().key),
            id="another key",
        ),
        pytest.param(certificates.KeyPair(b"nothing", b"of value"), id="no PEM"),
        pytest.param(certificates.KeyPair(b"", b""), id="empty"),
    ],
)
async def test_a_pair_that_cannot_be_used_leaves_the_former_one(pair: certificates.KeyPair) -> None:
    async with tls_clients.running(live=own_tls()) as run:
        before = await served_certificate(run, tls_clients.AUTHORITY)
        with pytest.raises(certificates.CertificateError, match="cannot be used together"):
            run.tls.use(pair)
        assert await served_certificate(run, tls_clients.AUTHORITY) == before


def speaking_only(version: ssl.TLSVersion) -> ssl.SSLContext:
    context = tls_clients.trusting(tls_clients.AUTHORITY)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    return context


@rows.each("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_new_versions_of_tls_are_spoken(version: ssl.TLSVersion) -> None:
    async with tls_clients.running() as run, connected(run, speaking_only(version)) as streams:
        assert await ask(streams) == b"HTTP/1.1 200 OK"


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
async def test_old_versions_of_tls_are_refused() -> None:
    async with tls_clients.running() as run:
        # The server's alert may be lost in the end of the connection.
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            await asyncio.open_connection(
                "127.0.0.1", run.site.port, ssl=speaking_only(ssl.TLSVersion.TLSv1_1)
            )


def test_the_key_is_never_a_file(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    real = ssl.SSLContext.load_cert_chain

    def remembered(self: ssl.SSLContext, certfile: str, **options: object) -> None:
        opened.append(certfile)
        real(self, certfile, **options)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", remembered)
    tls.LiveTls().use(tls_clients.server_pair())
    assert opened
    assert all(path.startswith("/proc/self/fd/") for path in opened)
