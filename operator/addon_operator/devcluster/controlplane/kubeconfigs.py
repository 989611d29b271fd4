"""Writes kubeconfigs whose certificate and token are inside, so that a copy works anywhere on the machine."""

import base64
import json
import pathlib

import yaml

from addon_operator.devcluster import errors, layout
from addon_operator.devcluster.controlplane import certificates
from addon_operator.documents import yaml_loader
from addon_operator.kernel import json_types


def context_name(cluster: layout.ClusterName) -> str:
    """Return the name of the context, the cluster and the user in a kubeconfig."""
    return f"devcluster-{cluster}"


def document(where: layout.Layout, url: str, user: certificates.User) -> json_types.JsonObject:
    """Return the kubeconfig with which ``user`` talks to the API server at ``url``."""
    name = context_name(where.name)
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": url,
                    "certificate-authority-data": _base64(where.certificate(certificates.CA)),
                },
            }
        ],
        "users": [
            {
                "name": name,
                "user": {"token": certificates.token_of(where.pki, user)},
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }


def write(path: pathlib.Path, kubeconfig: json_types.JsonObject) -> None:
    """Write a kubeconfig (mode 0600)."""
    text = str(yaml.dump(kubeconfig, Dumper=yaml.CSafeDumper, sort_keys=False))
    certificates.write_private(path, text.encode())


def check_export(path: pathlib.Path, cluster: layout.ClusterName) -> None:
    """See to it that a kubeconfig may be written to ``path``: nothing of the user's is overwritten.

    Raises :class:`.DevClusterError` when the file holds anything but a
    kubeconfig of this cluster, or its directory is not there.
    """
    if not path.parent.is_dir():
        raise errors.DevClusterError(
            f"--kubeconfig {path}: there is no directory {path.parent}; make it first"
        )
    if not may_replace(path, cluster):
        raise errors.DevClusterError(
            f"--kubeconfig {path}: the file exists and is not a kubeconfig of the cluster {cluster}; "
            "name another file, or remove this one"
        )


def may_replace(path: pathlib.Path, cluster: layout.ClusterName) -> bool:
    """Say whether ``path`` is missing, empty, or an earlier kubeconfig of that cluster alone."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return True
    except (OSError, UnicodeDecodeError):
        return False
    return not text.strip() or _contexts(text) == [context_name(cluster)]


def remove_export(path: pathlib.Path, cluster: layout.ClusterName) -> None:
    """Remove a kubeconfig that was written to ``path``, unless it has become something else since."""
    if may_replace(path, cluster):
        path.unlink(missing_ok=True)


def _contexts(text: str) -> list[str]:
    try:
        return [str(context["name"]) for context in yaml_loader.load(text)["contexts"]]
    except (yaml.YAMLError, json.JSONDecodeError, KeyError, TypeError):
        return []


def _base64(path: pathlib.Path) -> str:
    return base64.b64encode(path.read_bytes()).decode("ascii")
