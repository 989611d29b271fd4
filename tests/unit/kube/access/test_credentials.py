"""Credentials out of kubeconfigs, exec plugins and service accounts, and TLS with them."""

import base64
import datetime as dt
import gc
import json
import pathlib
import ssl
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from typing_extensions import override

from addon_operator.aio import waiting
from addon_operator.kube import api_errors
from addon_operator.kube.access import auth, credentials
from addon_operator.kube.client import client
from tests.support import rows
from tests.unit.kube import certifying, kubeconfigs


async def load(path: pathlib.Path, config: dict[str, Any], **environ: str) -> credentials.Credentials:
    access = auth.load_access(kubeconfigs.write(path / "config", config), None, None, environ)
    return await access.source.load()


async def test_a_token_becomes_a_header(tmp_path: pathlib.Path) -> None:
    found = await load(tmp_path, kubeconfigs.document(token="t0ken"))
    assert found.authorization == "Bearer t0ken"
    assert found.server == kubeconfigs.SERVER
    assert found.expires is None


async def test_a_token_file_is_read_again_within_a_minute(tmp_path: pathlib.Path) -> None:
    (tmp_path / "token").write_text("first\n")
    config = kubeconfigs.document(tokenFile="token")
    found = await load(tmp_path, config)
    assert found.authorization == "Bearer first"
    assert found.expires is not None
    assert found.expires <= time.time() + 60
    (tmp_path / "token").write_text("second\n")
    assert (await load(tmp_path, config)).authorization == "Bearer second"


async def test_name_and_password_become_a_header(tmp_path: pathlib.Path) -> None:
    found = await load(tmp_path, kubeconfigs.document(username="me", password="pw"))
    assert found.authorization == "Basic " + base64.b64encode(b"me:pw").decode()


async def test_no_user_is_anonymous(tmp_path: pathlib.Path) -> None:
    assert (await load(tmp_path, kubeconfigs.document())).authorization is None


async def test_settings_of_the_cluster_are_taken_over(tmp_path: pathlib.Path) -> None:
    config = kubeconfigs.document(token="t")
    config["clusters"][0]["cluster"] |= {
        "insecure-skip-tls-verify": True,
        "tls-server-name": "kubernetes",
        "proxy-url": "http://proxy:3128",
    }
    found = await load(tmp_path, config, HTTPS_PROXY="http://other")
    assert (found.verify, found.tls_server_name, found.proxy) == (False, "kubernetes", "http://proxy:3128")


@rows.each(
    ("user", "cluster"),
    [
        pytest.param({}, {}, id="anonymous"),
        pytest.param({"token": "t0ken"}, {"server": "https://10.0.0.1:6443/"}, id="token"),
        pytest.param(
            {"client-certificate": "crt", "client-key": "key"}, {"certificate-authority": "ca"}, id="files"
        ),
        pytest.param(
            {"client-certificate": "crt", "client-key": "key"},
            {"server": "http://10.0.0.1", "certificate-authority": "ca"},
            id="files without TLS",
        ),
        pytest.param({}, {"insecure-skip-tls-verify": True, "tls-server-name": "api"}, id="unchecked"),
        pytest.param({}, {"insecure-skip-tls-verify": False, "proxy-url": "http://proxy"}, id="proxy"),
    ],
)
async def test_plain_entries_mean_what_the_library_makes_of_them(
    tmp_path: pathlib.Path, user: dict[str, Any], cluster: dict[str, Any]
) -> None:
    for name in ("crt", "key", "ca"):
        (tmp_path / name).touch()
    config = kubeconfigs.document(**user)
    config["clusters"][0]["cluster"] |= cluster
    plain = await load(tmp_path, config)
    config["clusters"][0]["cluster"]["extensions"] = []
    assert plain == await load(tmp_path, config)


async def test_certificates_in_the_kubeconfig_are_private_files_as_long_as_they_are_used(
    tmp_path: pathlib.Path,
) -> None:
    data = {"client-certificate-data": b"certificate", "client-key-data": b"key"}
    config = kubeconfigs.document(**{key: base64.b64encode(text).decode() for key, text in data.items()})
    access = auth.load_access(kubeconfigs.write(tmp_path / "config", config), None, None, {})
    found = await access.source.load()
    assert found.certificate_file is not None
    assert found.key_file is not None
    assert (found.certificate_file.read_bytes(), found.key_file.read_bytes()) == (b"certificate", b"key")
    assert [oct(path.stat().st_mode) for path in (found.key_file, found.key_file.parent)] == [
        "0o100600",
        "0o40700",
    ]
    assert await access.source.load() == found
    del access
    gc.collect()
    assert not found.key_file.parent.exists()


async def test_the_proxy_of_the_environment_is_taken(tmp_path: pathlib.Path) -> None:
    found = await load(tmp_path, kubeconfigs.document(), HTTPS_PROXY="http://proxy")
    assert found.proxy == "http://proxy"


def plugin(path: pathlib.Path, status: dict[str, Any] | str, exit_code: int = 0) -> dict[str, Any]:
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    (path / "answer").write_text(status if isinstance(status, str) else json.dumps(answer))
    script = path / "plugin"
    script.write_text(
        f'#!/bin/sh\necho run >> "{path}/runs"\ncat "{path}/answer"\nprintf "usage: é\\noops\\n" >&2\n'
        f"exit {exit_code}\n"
    )
    script.chmod(0o700)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script), "args": ["a"]}}


async def test_an_exec_plugin_gives_a_token_until_it_expires(tmp_path: pathlib.Path) -> None:
    expiry = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    config = kubeconfigs.document(
        **plugin(tmp_path, {"token": "t", "expirationTimestamp": "2026-01-02T03:04:05Z"})
    )
    found = await load(tmp_path, config)
    assert found.authorization == "Bearer t"
    assert found.expires == expiry.timestamp() - 30
    assert (tmp_path / "runs").read_text() == "run\n"


async def test_an_exec_plugin_is_run_each_time_credentials_are_read(tmp_path: pathlib.Path) -> None:
    path = kubeconfigs.write(tmp_path / "config", kubeconfigs.document(**plugin(tmp_path, {"token": "t"})))
    source = auth.load_access(path, None, None, {}).source
    await source.load()
    await source.load()
    assert (tmp_path / "runs").read_text() == "run\nrun\n"


async def test_an_exec_plugin_may_give_a_certificate(tmp_path: pathlib.Path) -> None:
    config = kubeconfigs.document(**plugin(tmp_path, {"clientCertificateData": "C", "clientKeyData": "K"}))
    found = await load(tmp_path, config)
    assert found.certificate_file is not None
    assert found.key_file is not None
    assert (found.certificate_file.read_text(), found.key_file.read_text()) == ("C", "K")


@rows.each(
    ("status", "exit_code", "complaint"),
    [
        ({}, 0, "neither a token nor a certificate"),
        (
            {"token": "t"},
            3,
            "plugin '.*' of context 'one' gives no credentials: process returned 3: oops; run it by hand",
        ),
        ("no json", 0, "plugin '.*' of context 'one' gives no credentials: failed to decode"),
    ],
    ids=["nothing", "failed", "no json"],
)
async def test_a_failing_exec_plugin_is_an_error_and_not_anonymous_access(
    tmp_path: pathlib.Path, status: dict[str, Any] | str, exit_code: int, complaint: str
) -> None:
    config = kubeconfigs.document(**plugin(tmp_path, status, exit_code))
    with pytest.raises(api_errors.AccessError, match=complaint):
        await load(tmp_path, config)


async def test_an_exec_plugin_that_is_not_there_is_reported_with_its_hint(tmp_path: pathlib.Path) -> None:
    config = kubeconfigs.document(
        exec={
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "no-such-plugin",
            "installHint": "get\nit",
        }
    )
    with pytest.raises(
        api_errors.AccessError, match="'no-such-plugin' of context 'one' is not there: get it"
    ):
        await load(tmp_path, config)


async def test_without_the_client_library_plain_kubeconfigs_serve_and_others_are_reported_in_one_sentence(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes.aio.config.kube_config", None)
    assert (await load(tmp_path, kubeconfigs.document(token="t0ken"))).authorization == "Bearer t0ken"
    config = kubeconfigs.document(**plugin(tmp_path, {"token": "t"}))
    with pytest.raises(api_errors.AccessError, match=r"'one' has .*: pip install 'kubernetes>=37,<38'$"):
        await load(tmp_path, config)


async def test_the_token_of_a_service_account_is_read_again_within_a_minute(tmp_path: pathlib.Path) -> None:
    (tmp_path / "token").write_text("first\n")
    (tmp_path / "ca.crt").write_text("x")
    environ = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}
    source = auth.load_access(None, None, None, environ, tmp_path).source
    found = await source.load()
    assert (found.authorization, found.ca_file) == ("Bearer first", tmp_path / "ca.crt")
    assert found.expires is not None
    (tmp_path / "token").write_text("second\n")
    assert (await source.load()).authorization == "Bearer second"


@rows.each(
    ("files", "complaint"),
    [({}, "token cannot be read"), ({"token": " "}, "token is empty"), ({"token": "t"}, "ca.crt is missing")],
    ids=["nothing", "empty token", "no authority"],
)
async def test_an_incomplete_service_account_is_reported(
    tmp_path: pathlib.Path, files: dict[str, str], complaint: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    access = auth.load_access(None, None, None, {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}, tmp_path)
    with pytest.raises(api_errors.AccessError, match=complaint):
        await access.source.load()


# --- TLS


class Rotating:
    """A TLS server whose certificate, and with it the authority in the pod's file, is replaced."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory
        self._runner: web.AppRunner | None = None
        self._port = 0
        self.account = directory / "account"
        self.account.mkdir()
        (self.account / "token").write_text("t0ken")

    async def serve(self) -> auth.ClusterAccess:
        """Serve with a new certificate that the account's file trusts."""
        certificate, key = certifying.certify(self._directory, "localhost")
        (self.account / "ca.crt").write_bytes(certificate.read_bytes())
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        await self.stop()
        app = web.Application()
        app.router.add_get("/version", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=context, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]
        environ = {"KUBERNETES_SERVICE_HOST": "localhost", "KUBERNETES_SERVICE_PORT": str(self._port)}
        return auth.load_access(None, None, None, environ, self.account)

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, _: web.Request) -> web.Response:
        return web.json_response({"gitVersion": "v1"})


@pytest.fixture
async def rotating(tmp_path: pathlib.Path) -> AsyncIterator[Rotating]:
    server = Rotating(tmp_path)
    yield server
    await server.stop()


async def test_a_rotated_authority_is_trusted_by_the_next_connection(rotating: Rotating) -> None:
    async with client.KubeClient(await rotating.serve(), time=Nowhere()) as kube:
        await kube.get("/version")
        await rotating.serve()
        await kube.get("/version")


async def test_an_authority_that_is_not_rotated_in_time_is_reported_and_read_as_soon_as_it_is(
    rotating: Rotating,
) -> None:
    async with client.KubeClient(await rotating.serve(), time=Nowhere()) as kube:
        await kube.get("/version")
        before = (rotating.account / "ca.crt").read_bytes()
        await rotating.serve()
        now = (rotating.account / "ca.crt").read_bytes()
        (rotating.account / "ca.crt").write_bytes(before)
        with pytest.raises(api_errors.Unreachable, match="is not trusted"):
            await kube.get("/version")
        (rotating.account / "ca.crt").write_bytes(now)
        await kube.get("/version")


async def test_an_authority_that_cannot_be_read_leaves_the_connections_as_they_were(
    rotating: Rotating, caplog: pytest.LogCaptureFixture
) -> None:
    async with client.KubeClient(await rotating.serve()) as kube:
        await kube.get("/version")
        (rotating.account / "ca.crt").write_text("half of a file")
        await kube.current_credentials(renew=True)
        await kube.get("/version")
    assert "cannot be used" in caplog.text


@pytest.fixture
async def secure(tmp_path: pathlib.Path) -> AsyncIterator[str]:
    """URL of a TLS server that calls itself ``kubernetes`` and wants the client's certificate."""

    async def handle(request: web.Request) -> web.Response:
        assert request.transport is not None
        return web.json_response({"subject": request.transport.get_extra_info("peercert")["subject"]})

    certificate, key = certifying.certify(tmp_path, "kubernetes")
    own, _ = certifying.certify(tmp_path, "operator")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=own)
    context.load_cert_chain(certificate, key)
    context.verify_mode = ssl.CERT_REQUIRED
    app = web.Application()
    app.router.add_get("/version", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


def secure_config(server: str, **cluster: object) -> dict[str, Any]:
    config = kubeconfigs.document(**{"client-certificate": "operator.crt", "client-key": "operator.key"})
    config["clusters"][0]["cluster"] = {"server": server, **cluster}
    return config


async def test_certificates_of_the_kubeconfig_work_both_ways(tmp_path: pathlib.Path, secure: str) -> None:
    config = secure_config(
        secure, **{"certificate-authority": "kubernetes.crt", "tls-server-name": "kubernetes"}
    )
    access = auth.load_access(kubeconfigs.write(tmp_path / "config", config), None, None, {})
    async with client.KubeClient(access) as kube:
        assert "operator" in str(await kube.get("/version"))


class Nowhere(waiting.SystemTime):
    """Its pauses take no time."""

    @override
    async def sleep(self, seconds: float) -> None:
        pass


async def test_an_authority_that_is_not_trusted_is_one_sentence(tmp_path: pathlib.Path, secure: str) -> None:
    config = secure_config(
        secure, **{"certificate-authority": "operator.crt", "tls-server-name": "kubernetes"}
    )
    access = auth.load_access(kubeconfigs.write(tmp_path / "config", config), None, None, {})
    async with client.KubeClient(access, time=Nowhere()) as kube:
        with pytest.raises(api_errors.Unreachable, match=r"is not trusted .*check certificate-authority"):
            await kube.get("/version")


async def test_files_that_hold_no_certificate_are_reported(tmp_path: pathlib.Path, secure: str) -> None:
    (tmp_path / "bad.crt").write_text("no certificate")
    config = secure_config(secure, **{"certificate-authority": "bad.crt"})
    access = auth.load_access(kubeconfigs.write(tmp_path / "config", config), None, None, {})
    async with client.KubeClient(access) as kube:
        with pytest.raises(api_errors.AccessError, match=r"certificates for .* cannot be used"):
            await kube.get("/version")
