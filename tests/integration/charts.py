"""The chart of the operator: rendered, and installed with an operator that runs under its ServiceAccount."""

import contextlib
import dataclasses
import json
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from addon_operator.devcluster import handle, locations, reporters
from addon_operator.devcluster.binaries import binaries, components
from addon_operator.process import commands
from tests.integration import admitting, operator_process, operator_site

ROOT: Final = pathlib.Path(__file__).parents[2]
CHART: Final = ROOT / "deploy" / "chart" / "addon-operator"
RELEASE: Final = "addon-operator"
ADMISSION: Final = "addon-operator-admission"
"""The Deployment, and its ServiceAccount, of ``admission.separate``."""
UNCHECKED: Final = "--disable-openapi-validation"
"""For Helm: the API server checks objects, too, and the schemas of all kinds take more time than the rest."""
_TIMEOUT: Final = 120.0

Object = dict[str, Any]


def helm_binaries() -> Mapping[str, pathlib.Path]:
    """Both versions of Helm, by name."""
    found = {"helm3": components.CONTROL_PLANE, "helm4": components.HELM4}
    with binaries.workshop(locations.locate(os.environ), os.environ, reporters.Reporter()) as store:
        return {
            name: store.ensure([binaries.Wanted(one, (components.HELM,))])[components.HELM]
            for name, one in found.items()
        }


def flags(values: Mapping[str, object]) -> list[str]:
    """Values by their dotted name, as flags."""
    return [flag for key, value in values.items() for flag in ("--set-json", f"{key}={json.dumps(value)}")]


def render(
    helm: pathlib.Path,
    values: Mapping[str, object] | None = None,
    namespace: str = "addons",
    release: str = RELEASE,
) -> list[Object]:
    """The objects that an installation makes, without CRDs."""
    argv = [str(helm), "template", release, str(CHART), "--namespace", namespace, *flags(values or {})]
    text = commands.run(argv, timeout=_TIMEOUT).stdout
    return [found for found in yaml.load_all(text, yaml.CSafeLoader) if found]


def notes(helm: pathlib.Path, values: Mapping[str, object]) -> str:
    """What an installation prints."""
    argv = [str(helm), "install", RELEASE, str(CHART), "--dry-run=client", *flags(values)]
    return commands.run(argv, timeout=_TIMEOUT).stdout.partition("\nNOTES:\n")[2]


def refusal(helm: pathlib.Path, values: Mapping[str, object]) -> str:
    """Why the chart does not take these values."""
    argv = [str(helm), "template", RELEASE, str(CHART), *flags(values)]
    done = commands.run(argv, timeout=_TIMEOUT, check=False)
    assert done.exit_code != 0, f"{values} were taken"
    return done.stderr


def name_of(found: Object) -> str:
    """Name of an object."""
    return str(found["metadata"]["name"])


def user_roles(objects: list[Object]) -> list[Object]:
    """The roles for users of presets."""
    return [role for role in of_kind(objects, "ClusterRole") if "-podpresets-" in name_of(role)]


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    """The objects of a kind."""
    return [found for found in objects if found["kind"] == kind]


def only(objects: list[Object], kind: str) -> Object:
    """The one object of a kind."""
    (found,) = of_kind(objects, kind)
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class Installation:
    """The chart in a namespace of the cluster, and the way of its operator to the API server."""

    cluster: handle.DevCluster
    site: operator_site.Site

    def environment(self, webhook_port: int, deployment: str = RELEASE) -> dict[str, str]:
        """What the container would have; what is different outside of it is replaced."""
        template = self.site.get("deployment", deployment)["spec"]["template"]
        container = template["spec"]["containers"][0]
        fields = {"metadata.namespace": self.site.namespace, "metadata.name": "addon-operator-0"}
        given = {
            entry["name"]: entry["value"]
            if "value" in entry
            else fields[entry["valueFrom"]["fieldRef"]["fieldPath"]]
            for entry in container["env"]
        }
        account = template["spec"]["serviceAccountName"]
        here = self.site.environment(
            {"KUBE_CONFIG": str(kubeconfig_with_token(self.cluster, self.site, account))}
        )
        outside = admitting.webhook_environment(webhook_port)
        return {**here, **given, **_taken(here, given), **outside}


def _taken(here: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Paths of the image that are elsewhere on this machine; the port is a flag, which wins."""
    moved = ("MODULES_DIR", "GLOBAL_HOOKS_DIR", "ADDON_OPERATOR_TMP_DIR", "DEBUG_UNIX_SOCKET")
    assert set(moved) <= set(given)
    return {name: here[name] for name in moved}


@contextlib.contextmanager
def installed(
    cluster: handle.DevCluster, site: operator_site.Site, values: Mapping[str, object], *arguments: str
) -> Iterator[Installation]:
    """Install the chart; its release is removed at the end."""
    where = ("--namespace", site.namespace)
    # No pod has to become ready: the operator runs beside the cluster.
    given = (*arguments, *flags({"replicas": 1, **values}))
    cluster.run_helm("install", RELEASE, str(CHART), *where, UNCHECKED, *given)
    try:
        yield Installation(cluster, site)
    finally:
        cluster.run_helm("uninstall", RELEASE, *where, "--ignore-not-found")


def kubeconfig_with_token(cluster: handle.DevCluster, site: operator_site.Site, account: str) -> pathlib.Path:
    """A kubeconfig whose only credential is a token of that ServiceAccount of the chart."""
    token = site.token(account)
    config = yaml.safe_load(cluster.kubeconfig.read_text("utf-8"))
    for user in config["users"]:
        user["user"] = {"token": token}
    path = site.root / f"{account}.kubeconfig"
    path.write_text(yaml.safe_dump(config), "utf-8")
    path.chmod(0o600)
    return path


@contextlib.contextmanager
def operating(
    installation: Installation, deployment: str = RELEASE, **environment: str
) -> Iterator[operator_process.OperatorProcess]:
    """The operator as the Deployment would run it."""
    given = installation.environment(operator_process.free_port(), deployment) | environment
    operator = installation.site.start_with((), given)
    try:
        yield operator
    finally:
        operator.kill()


def env_of(deployment: Object) -> dict[str, str]:
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    return {entry["name"]: entry.get("value", "") for entry in container["env"]}
