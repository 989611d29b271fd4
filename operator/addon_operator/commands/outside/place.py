"""Where an operator is looked for that does not run on this machine."""

import pathlib
from collections.abc import Mapping
from typing import Final

import msgspec

from addon_operator.kube.access import auth
from addon_operator.settings import settings_loading

_ACCESS: Final = ("kube_config", "kube_context", "kube_server", "lease_name")
_NAMESPACE: Final = "ADDON_OPERATOR_NAMESPACE"
_USUAL_NAMESPACE: Final = "default"
"""As kubectl has it."""


class Place(msgspec.Struct, frozen=True):
    """A namespace of a cluster, and how the user gets there."""

    access: auth.ClusterAccess
    namespace: str
    lease: str
    is_lease_named: bool = False
    """Whether somebody said what the Lease is called."""

    def __str__(self) -> str:
        return f"namespace {self.namespace} of {self.access.description}"


def has_kubeconfig(environ: Mapping[str, str]) -> bool:
    """Say whether there is a kubeconfig on this machine, by a variable or in its usual place."""
    if environ.get("KUBECONFIG") or settings_loading.some(["kube_config"], {}, environ).values["kube_config"]:
        return True
    return pathlib.Path(environ.get("HOME", "/"), ".kube", "config").exists()


def named(
    kubeconfig: str | None, context: str | None, namespace: str | None, environ: Mapping[str, str]
) -> Place:
    """Return the place that flags and variables name, without asking the cluster.

    Raises :class:`.AccessError`, and :class:`.SettingsError` for wrong variables.
    """
    given = settings_loading.some(_ACCESS, {"kube_config": kubeconfig, "kube_context": context}, environ)
    access = auth.load_access(
        given.values["kube_config"], given.values["kube_context"], given.values["kube_server"], environ
    )
    where = namespace or environ.get(_NAMESPACE) or access.namespace or _USUAL_NAMESPACE
    is_named = given.origins["lease_name"] != "default"
    return Place(access, where, str(given.values["lease_name"]), is_named)
