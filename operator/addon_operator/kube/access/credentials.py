"""Credentials as plain data, and the places they are read from."""

import ast
import asyncio
import base64
import contextlib
import dataclasses
import hashlib
import importlib
import os
import pathlib
import tempfile
import time
import weakref
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from addon_operator.kube import api_errors
from addon_operator.kube.access import kubeconfig, proxies
from addon_operator.process import workspaces

# Tokens in files are rotated by the kubelet; client-go reads them again each minute as well.
_TOKEN_FILE_SECONDS: Final = 60.0
_EXPIRY_MARGIN: Final = 30.0
_EXEC_TIMEOUT: Final = 60.0
_PREFIX: Final = "addon-operator-credentials-"
_PRIVATE: Final = 0o600
_WRITTEN: Final = ". b"
"""Before what a plugin wrote, in the library's error."""


@dataclasses.dataclass(frozen=True, slots=True)
class Credentials:
    """How to speak with the API server, as plain data for any HTTP client."""

    server: str
    """URL without a slash at the end."""
    authorization: str | None = dataclasses.field(default=None, repr=False)
    """Whole ``Authorization`` header."""
    ca_file: pathlib.Path | None = None
    """Authorities to trust; ``None`` for the system's."""
    certificate_file: pathlib.Path | None = None
    key_file: pathlib.Path | None = None
    verify: bool = True
    """Whether the server's certificate is checked."""
    tls_server_name: str | None = None
    """Name in the server's certificate, if it is not the host of the URL."""
    proxy: str | None = None
    expires: float | None = None
    """When to read them again, in seconds since the epoch; ``None``: only when they are refused."""


class AnonymousSource(msgspec.Struct, frozen=True):
    """A server without credentials, such as ``kubectl proxy``."""

    server: str
    environ: Mapping[str, str]

    async def load(self) -> Credentials:
        """Return the server's URL and proxy."""
        return Credentials(server=self.server, proxy=proxies.proxy_for(self.server, self.environ))


class ServiceAccountSource(msgspec.Struct, frozen=True):
    """The files that Kubernetes mounts into a pod."""

    directory: pathlib.Path
    server_override: str | None
    environ: Mapping[str, str]

    @property
    def server(self) -> str:
        """URL of the API server by the pod's variables, unless another one is given."""
        host = self.environ.get("KUBERNETES_SERVICE_HOST", "")
        port = self.environ.get("KUBERNETES_SERVICE_PORT") or "443"
        bracketed = f"[{host}]" if ":" in host else host
        return self.server_override or f"https://{bracketed}:{port}"

    async def load(self) -> Credentials:
        """Return the token as it is now."""
        token = self._token()
        ca_file = self.directory / "ca.crt"
        if not ca_file.is_file():
            raise api_errors.AccessError(f"{ca_file} is missing: mount a service account into the pod")
        return Credentials(
            server=self.server,
            authorization=f"Bearer {token}",
            ca_file=ca_file,
            proxy=proxies.proxy_for(self.server, self.environ),
            expires=time.time() + _TOKEN_FILE_SECONDS,
        )

    def _token(self) -> str:
        path = self.directory / "token"
        try:
            token = path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise api_errors.AccessError(
                f"{path} cannot be read: mount a service account into the pod"
            ) from error
        if not token:
            raise api_errors.AccessError(f"{path} is empty: the service account has no token")
        return token


class CredentialFiles:
    """Certificates and keys that a kubeconfig holds itself, as files: TLS libraries read nothing else.

    The files are private, and end with this object, at the latest with the process or when another begins.
    """

    def __init__(self) -> None:
        self._workspace: workspaces.Workspace | None = None

    def holding(self, content: bytes) -> pathlib.Path:
        """Return a file with that content; the same one for the same content."""
        if self._workspace is None:
            parent = pathlib.Path(tempfile.gettempdir())
            workspaces.remove_dead(parent, _PREFIX)
            self._workspace = workspaces.Workspace(parent, _PREFIX)
            weakref.finalize(self, self._workspace.close)
        path = self._workspace.path / hashlib.sha256(content).hexdigest()
        if not path.exists():
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "wb") as file:
                file.write(content)
        return path


@dataclasses.dataclass(frozen=True, slots=True)
class KubeconfigSource:
    """One context of kubeconfig files that were checked by :mod:`.kubeconfig`."""

    paths: tuple[pathlib.Path, ...]
    context: str
    server_override: str | None
    environ: Mapping[str, str]
    files: CredentialFiles = dataclasses.field(default_factory=CredentialFiles, compare=False)

    async def load(self) -> Credentials:
        """Load credentials by the kubeconfig as it is now; runs its exec plugin if it has one."""
        try:
            return await self._load()
        except api_errors.AccessError:
            raise
        except Exception as error:  # the library raises anything for what stands in a file
            text = " ".join(str(error).split()) or type(error).__name__
            raise api_errors.AccessError(f"context {self.context!r} gives no credentials: {text}") from error

    async def _load(self) -> Credentials:
        plain = kubeconfig.choose(self.paths, self.context).plain
        return await self._by_library() if plain is None else self._by_entries(plain)

    def _by_entries(self, plain: kubeconfig.Plain) -> Credentials:
        server = self.server_override or plain.server
        return Credentials(
            server=server.rstrip("/"),
            authorization=f"Bearer {plain.token.strip()}" if plain.token else None,
            ca_file=self._as_file(plain.authority),
            certificate_file=self._as_file(plain.certificate),
            key_file=self._as_file(plain.key),
            verify=plain.verify,
            tls_server_name=plain.tls_server_name,
            proxy=plain.proxy or proxies.proxy_for(server, self.environ),
        )

    def _as_file(self, content: pathlib.Path | bytes | None) -> pathlib.Path | None:
        return self.files.holding(content) if isinstance(content, bytes) else content

    async def _by_library(self) -> Credentials:
        library, configuration = self._library()
        merged = library.KubeConfigMerger(":".join(map(str, self.paths))).config
        user = _user_of(merged.value, self.context)
        expires = await self._run_exec_plugin(library, user) if "exec" in user else None
        if "tokenFile" in user:
            expires = time.time() + _TOKEN_FILE_SECONDS
        loader = library.KubeConfigLoader(merged, active_context=self.context, config_base_path=None)
        await loader.load_and_set(configuration)
        return self._plain(configuration, expires)

    def _library(self) -> tuple[Any, Any]:
        # Untyped, and a third of a second to import.
        try:
            library = importlib.import_module("kubernetes.aio.config.kube_config")
            return library, importlib.import_module("kubernetes.aio.client").Configuration()
        except ModuleNotFoundError as error:
            raise api_errors.AccessError(
                f"context {self.context!r} has more than a token and certificates (an exec plugin, OIDC, a "
                "token file or a password), and the Python package kubernetes, which reads that, is not "
                "installed: pip install 'kubernetes>=37,<38'"
            ) from error

    def _plain(self, configuration: Any, expires: float | None) -> Credentials:  # noqa: ANN401 - an untyped library's
        server = self.server_override or configuration.host
        token = configuration.api_key.get("BearerToken")
        return Credentials(
            server=server.rstrip("/"),
            authorization=token.strip() if token else None,
            ca_file=_optional_path(configuration.ssl_ca_cert),
            certificate_file=_optional_path(configuration.cert_file),
            key_file=_optional_path(configuration.key_file),
            verify=configuration.verify_ssl,
            tls_server_name=configuration.tls_server_name,
            proxy=configuration.proxy or proxies.proxy_for(server, self.environ),
            expires=expires,
        )

    async def _run_exec_plugin(self, library: Any, user: dict[str, Any]) -> float | None:  # noqa: ANN401 - an untyped library's
        """Put what the plugin says into the user's entry, in place of the plugin; returns when it expires.

        The library would do this itself, but turns any failure into a log line and anonymous requests.
        """
        plugin = user.pop("exec")
        provider = library.ExecProvider(library.ConfigNode("exec", plugin))
        try:
            async with asyncio.timeout(_EXEC_TIMEOUT):
                status = await provider.run()
        except FileNotFoundError as error:
            hint = " ".join(str(plugin.get("installHint") or "install it").split())
            raise api_errors.AccessError(
                f"the exec plugin {plugin['command']!r} of context {self.context!r} is not there: {hint}"
            ) from error
        except TimeoutError as error:
            raise api_errors.AccessError(
                f"the exec plugin {plugin['command']!r} of context {self.context!r} did not end in "
                f"{_EXEC_TIMEOUT:.0f} seconds"
            ) from error
        except Exception as error:
            # The library raises errors of its own, and whatever a broken answer makes it stumble over.
            raise api_errors.AccessError(
                f"the exec plugin {plugin['command']!r} of context {self.context!r} gives no credentials: "
                f"{_said_by_plugin(error)}; run it by hand, or {api_errors.OTHER_CLUSTER}"
            ) from error
        user.update(_as_user_entry(status))
        expiry = status.get("expirationTimestamp")
        return library.parse_rfc3339(expiry).timestamp() - _EXPIRY_MARGIN if expiry else None


def _said_by_plugin(error: Exception) -> str:
    """Say why a plugin failed, with its last line; the library has all lines, as Python writes bytes."""
    text = " ".join(str(error).removeprefix("exec: ").split()) or type(error).__name__
    ended, mark, written = text.partition(_WRITTEN)
    with contextlib.suppress(SyntaxError, ValueError, AttributeError):
        lines = ast.literal_eval(f"b{written}").decode(errors="replace").splitlines()
        return f"{ended}: {lines[-1].strip()}" if mark else text
    return text


def _user_of(config: Mapping[str, Any], context: str) -> dict[str, Any]:
    """Return the user's entry in the merged kubeconfig, which may be changed: it is read again each time."""
    by_name = {entry.value["name"]: entry.value for entry in reversed(config["users"])}
    contexts = {entry.value["name"]: entry.value["context"] for entry in reversed(config["contexts"])}
    user: dict[str, Any] = by_name.get(contexts[context].get("user"), {}).get("user") or {}
    return user


def _as_user_entry(status: Mapping[str, Any]) -> dict[str, str]:
    entry: dict[str, str] = {}
    if status.get("token"):
        entry["token"] = status["token"]
    if status.get("clientCertificateData") and status.get("clientKeyData"):
        entry["client-certificate-data"] = _base64(status["clientCertificateData"])
        entry["client-key-data"] = _base64(status["clientKeyData"])
    if not entry:
        raise api_errors.AccessError("the exec plugin gave neither a token nor a certificate with its key")
    return entry


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _optional_path(path: str | None) -> pathlib.Path | None:
    return pathlib.Path(path) if path else None
