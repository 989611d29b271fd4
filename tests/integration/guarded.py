"""ConfigMaps about which hooks are asked, and the webhooks that ask."""

import pathlib
from typing import Any, Final

from addon_operator.devcluster import api
from tests.integration import operator_site

RULE: Final = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["configmaps"],
}
LABELS: Final = {"guarded": "yes"}
FORBIDS: Final = """
if [[ $contexts == *'"forbidden"'* ]]; then
  echo '{"allowed": false, "message": "not this one"}' > "$VALIDATING_RESPONSE_PATH"
else
  echo '{"allowed": true, "warnings": ["be careful"]}' > "$ADMISSION_RESPONSE_PATH"
fi
"""


def binding(site: operator_site.Site, name: str, **fields: object) -> dict[str, object]:
    """A webhook for ConfigMaps of the site's namespace with the label."""
    of_namespace = {"matchLabels": {"kubernetes.io/metadata.name": site.namespace}}
    return {
        "name": name,
        "rules": [RULE],
        "labelSelector": {"matchLabels": LABELS},
        "namespace": {"labelSelector": of_namespace},
        **fields,
    }


def snapshots(name: str, **fields: object) -> dict[str, object]:
    """A binding that only brings snapshots of the ConfigMaps with the label, of all namespaces."""
    return {
        "name": name,
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "labelSelector": {"matchLabels": LABELS},
        "executeHookOnEvent": [],
        "executeHookOnSynchronization": False,
        **fields,
    }


def forbid(site: operator_site.Site, module: pathlib.Path, **config: object) -> None:
    """Give the module a hook that denies ConfigMaps called "forbidden", and warns of all others."""
    validating = {"kubernetesValidating": [binding(site, "guard.shop.example")]}
    site.hook(module, "guard.sh", validating | config, FORBIDS)


def create(site: operator_site.Site, name: str, namespace: str = "", **data: str) -> api.ApiAnswer:
    """Create a ConfigMap that the webhooks are asked about; what the API server says."""
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": dict(LABELS)},
        "data": data,
    }
    return site.request("POST", f"/api/v1/namespaces/{namespace or site.namespace}/configmaps", body)
