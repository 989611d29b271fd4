"""ConfigMaps about which hooks are asked, and the webhooks that ask."""

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


def create(site: operator_site.Site, name: str, namespace: str = "", **data: str) -> api.ApiAnswer:
    """Create a ConfigMap that the webhooks are asked about; what the API server says."""
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": dict(LABELS)},
        "data": data,
    }
    return site.request("POST", f"/api/v1/namespaces/{namespace or site.namespace}/configmaps", body)
