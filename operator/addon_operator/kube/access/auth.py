"""The way to the cluster: which kubeconfig or service account, and the credentials it gives.

A service account, and a kubeconfig with nothing but a token and certificates, are read by our own code: a pod
needs no more. The library ``kubernetes`` reads the rest (exec plugins, OIDC, token files) if it is installed:
it takes 126 MB, and its import 0.3 s and 31 MiB of memory.
"""

import pathlib
from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from addon_operator.kube import api_errors
from addon_operator.kube.access import credentials, kubeconfig

SERVICE_ACCOUNT: Final = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")


class CredentialSource(Protocol):
    """Where credentials are read from, again whenever they may have changed.

    A seam: a service account, a kubeconfig, and a server that wants none are read in different ways.
    """

    async def load(self) -> credentials.Credentials:
        """Load credentials as they are now; raises :class:`.AccessError`."""
        ...


class ClusterAccess(msgspec.Struct, frozen=True):
    """Everything that a client of the cluster needs: ours, Kopf's and helm's."""

    description: str
    """For people: ``context 'kind' of /home/me/.kube/config`` or ``the pod's service account``."""
    server: str
    """URL of the API server."""
    source: CredentialSource
    kubeconfig: tuple[pathlib.Path, ...] = ()
    """Files for ``KUBECONFIG`` of child processes; empty with a service account."""
    context: str | None = None
    """Context to name to child processes; ``None`` with a service account."""
    server_override: str | None = None
    """URL given by ``KUBE_SERVER``, which child processes need as well."""
    namespace: str | None = None
    """Namespace of the kubeconfig's context, as kubectl uses it; ``None`` when it names none."""

    @property
    def server_advice(self) -> str:
        """Who names the server, and what to do if it does not answer; empty in a pod."""
        if self.server_override is not None:
            return "KUBE_SERVER or --kube-server names it: check the URL, and that it runs"
        if not self.chosen:
            return ""
        return f"{self.chosen} names it: check that it runs, or {api_errors.OTHER_CLUSTER}"

    @property
    def chosen(self) -> str:
        """The context and its files, which name server and credentials; empty if something else does."""
        return self.description if self.kubeconfig and self.server_override is None else ""


def load_access(
    config: str | pathlib.Path | None,
    context: str | None,
    server: str | None,
    environ: Mapping[str, str],
    service_account: pathlib.Path = SERVICE_ACCOUNT,
) -> ClusterAccess:
    """Return the way to the cluster, checked without asking the server.

    Looked up in this order: ``config``, ``$KUBECONFIG``, the pod's service account (not if a context is asked
    for), ``~/.kube/config``, and ``server`` alone without credentials.

    Raises :class:`.AccessError` with one sentence.
    """
    if config is not None:
        return _from_files((expanded(config, environ),), context, server, environ)
    if environ.get("KUBECONFIG"):
        return _from_files(_existing(environ["KUBECONFIG"], environ), context, server, environ)
    if context is None and environ.get("KUBERNETES_SERVICE_HOST"):
        return _from_service_account(service_account, server, environ)
    home = expanded("~/.kube/config", environ)
    if home.exists():
        return _from_files((home,), context, server, environ)
    return _without_config(context, server, environ)


def contexts(config: str | pathlib.Path | None, environ: Mapping[str, str]) -> list[str]:
    """Return the names of all contexts that :func:`load_access` could choose; none without a kubeconfig.

    Raises :class:`.AccessError`.
    """
    if config is not None:
        return kubeconfig.contexts((expanded(config, environ),))
    if environ.get("KUBECONFIG"):
        return kubeconfig.contexts(_existing(environ["KUBECONFIG"], environ))
    home = expanded("~/.kube/config", environ)
    return kubeconfig.contexts((home,)) if home.exists() else []


def expanded(path: str | pathlib.Path, environ: Mapping[str, str]) -> pathlib.Path:
    """Return the path with the home directory in place of ``~``, as client-go does."""
    text = str(path)
    home = environ.get("HOME", "/")
    return pathlib.Path(home + text[1:] if text == "~" or text.startswith("~/") else text)


def _existing(paths: str, environ: Mapping[str, str]) -> tuple[pathlib.Path, ...]:
    named = [expanded(path, environ) for path in paths.split(":") if path]
    existing = tuple(path for path in named if path.exists())
    if not existing:
        raise api_errors.AccessError(
            f"KUBECONFIG names {paths}, which does not exist: correct or remove the variable"
        )
    return existing


def _from_files(
    paths: tuple[pathlib.Path, ...], context: str | None, server: str | None, environ: Mapping[str, str]
) -> ClusterAccess:
    chosen = kubeconfig.choose(paths, context)
    return ClusterAccess(
        description=f"context {chosen.context!r} of {chosen.files}",
        server=server or chosen.server,
        source=credentials.KubeconfigSource(paths, chosen.context, server, environ),
        kubeconfig=paths,
        context=chosen.context,
        server_override=server,
        namespace=chosen.namespace,
    )


def _from_service_account(
    directory: pathlib.Path, server: str | None, environ: Mapping[str, str]
) -> ClusterAccess:
    source = credentials.ServiceAccountSource(directory, server, environ)
    return ClusterAccess(
        description="the pod's service account",
        server=source.server,
        source=source,
        server_override=server,
    )


def _without_config(context: str | None, server: str | None, environ: Mapping[str, str]) -> ClusterAccess:
    if context is not None:
        raise api_errors.AccessError(
            f"there is no kubeconfig to find the context {context!r} in: name one with --kubeconfig or "
            "KUBECONFIG"
        )
    if server is None:
        raise api_errors.AccessError(
            "no credentials for a cluster were found: set KUBE_CONFIG or KUBECONFIG, create ~/.kube/config, "
            "or run in a pod with a service account"
        )
    return ClusterAccess(
        description=f"{server} without credentials",
        server=server,
        source=credentials.AnonymousSource(server, environ),
        server_override=server,
    )
