"""Hooks that answer the API server, with a real one."""

from typing import Any, Final

import pytest

from addon_operator.devcluster import api, handle
from tests.integration import admitting, operator_site

pytestmark = pytest.mark.integration

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


def create(site: operator_site.Site, name: str, **data: str) -> api.ApiAnswer:
    """Create a ConfigMap that the webhooks are asked about; what the API server says."""
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": dict(LABELS)},
        "data": data,
    }
    return site.request("POST", f"/api/v1/namespaces/{site.namespace}/configmaps", body)


def test_a_hook_answers_the_api_server(site: operator_site.Site, devcluster: handle.DevCluster) -> None:
    module = site.module("010-shop", values="shopEnabled: true\n")
    site.hook(
        module,
        "guard.sh",
        {"kubernetesValidating": [binding(site, "guard.shop.example")]},
        """
        if [[ $contexts == *'"forbidden"'* ]]; then
          echo '{"allowed": false, "message": "not this one"}' > "$VALIDATING_RESPONSE_PATH"
        else
          echo '{"allowed": true, "warnings": ["be careful"]}' > "$ADMISSION_RESPONSE_PATH"
        fi
        """,
    )
    site.config()
    with admitting.admitting(site, devcluster) as operator:
        operator.wait_logged("module run ended")
        operator.wait_until(lambda: "not this one" in create(site, "forbidden").text, "it is denied")
        assert create(site, "fine").is_success
        [context] = site.runs()[-1].contexts
        assert (context["binding"], context["type"]) == ("guard.shop.example", "Validating")
        assert context["review"]["request"]["object"]["metadata"]["name"] == "fine"
        assert context["snapshots"] == {}
