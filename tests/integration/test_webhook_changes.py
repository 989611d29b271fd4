"""Webhooks of modules that change on disk, call each other, or block their own module, on a real server."""

import json
import pathlib
from typing import Any, Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import admitting, operator_site

pytestmark = pytest.mark.integration

OPERATIONS: Final = ("CREATE", "UPDATE")


def binding(site: operator_site.Site, name: str, **fields: object) -> dict[str, object]:
    """A webhook for all ConfigMaps of the site's namespace."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": OPERATIONS, "resources": ["configmaps"]}
    of_namespace = {"matchLabels": {"kubernetes.io/metadata.name": site.namespace}}
    return {"name": name, "rules": [rule], "namespace": {"labelSelector": of_namespace}, **fields}


def create(site: operator_site.Site, name: str, query: str = "") -> str:
    """Create a ConfigMap; what the API server answers."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}
    return site.request("POST", f"/api/v1/namespaces/{site.namespace}/configmaps{query}", body).text


def registered(site: operator_site.Site, configurations: str) -> list[str]:
    """The names of webhooks of hooks."""
    path = f"{configurations}/addon-operator-{site.namespace}-hooks"
    found: dict[str, Any] = json.loads(site.request("GET", path).text)
    return [each["name"] for each in found.get("webhooks") or []]


def guard(site: operator_site.Site, module: pathlib.Path, kind: str, name: str, body: str) -> pathlib.Path:
    """Write a hook that is called as its webhook's name begins."""
    return site.hook(module, f"{name.partition('.')[0]}.sh", {kind: [binding(site, name)]}, body)


def deny(message: str, name: str) -> str:
    """A hook that denies an object of this name only."""
    return f"""
        jq -c '.[0].review.request.object.metadata.name as $name |
          {{allowed: ($name != "{name}"), message: "{message}"}}' \\
          "$BINDING_CONTEXT_PATH" > "$VALIDATING_RESPONSE_PATH"
        """


def test_webhooks_follow_hooks_that_change_on_disk_and_one_that_blocks_its_module_is_named_in_its_error(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    mutating, validating = admitting.CONFIGURATIONS
    module = site.module("010-shop", {"color": "{{ .Values.shop.color }}"}, values="""\
        shopEnabled: true
        shop: {color: green}
        """)  # fmt: skip
    path = guard(site, module, "kubernetesValidating", "guard.shop.example", deny("as it was", "x"))
    site.config()
    with admitting.admitting(site, devcluster, WATCH_MODULES="yes") as operator:
        operator.wait_until(lambda: "as it was" in create(site, "x"), "the hook denies")
        guard(site, module, "kubernetesValidating", "guard.shop.example", deny("as it is now", "x"))
        operator.wait_until(lambda: "as it is now" in create(site, "x"), "the changed hook denies")
        added = guard(site, module, "kubernetesMutating", "added.shop.example", """
            echo '{"allowed": true, "patch": [{"op": "add", "path": "/data/added", "value": "c"}]}' \\
              > "$VALIDATING_RESPONSE_PATH"
            """)  # fmt: skip
        operator.wait_until(lambda: registered(site, mutating) == ["added.shop.example"], "it is added")
        operator.wait_until(lambda: '"added":"c"' in create(site, "y", "?dryRun=All"), "it is asked")
        added.unlink()
        guard(site, module, "kubernetesValidating", "guard.shop.example", deny("not the chart", "shop"))
        operator.wait_until(lambda: registered(site, mutating) == [], "it is gone")
        operator.wait_until(lambda: "not the chart" in create(site, "shop", "?dryRun=All"), "it blocks")
        site.config(shop="color: red")
        line = operator.wait_logged(
            "run of the module failed", 'admission webhook \\"guard.shop.example\\" denied'
        )
        assert "not the chart" in line
        path.unlink()
        operator.wait_until(lambda: registered(site, validating) == [], "the last one is gone")
        operator.wait_until(lambda: (site.data("shop") or {}).get("color") == "red", "the chart is in force")


def test_a_hook_is_called_again_when_a_later_one_changes_the_object_and_a_dry_run_leaves_no_trace(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    module = site.module("010-shop", values="shopEnabled: true\n")
    for name, key in (("first.shop.example", "color"), ("second.shop.example", "size")):
        bound = binding(site, name, sideEffects="NoneOnDryRun")
        site.hook(module, f"{key}.sh", {"kubernetesMutating": [bound]}, f"""
            echo '{{"name": "addon_operator_{key}_calls_total", "add": 1}}' > "$METRICS_PATH"
            jq -c '.[0].review.request.object.data | {{allowed: true, patch: (if has("{key}") then [] else
              [{{op: "add", path: "/data/{key}", value: "\\(length)"}}] end)}}' \\
              "$BINDING_CONTEXT_PATH" > "$VALIDATING_RESPONSE_PATH"
            """)  # fmt: skip
    site.config()
    with admitting.admitting(site, devcluster) as operator:
        mutating = admitting.CONFIGURATIONS[0]
        operator.wait_until(lambda: len(registered(site, mutating)) == 2, "both are registered")
        operator.wait_until(lambda: '"size":' in create(site, "x", "?dryRun=All"), "both are asked")
        assert not {"color_calls_total", "size_calls_total"} & operator.metrics().names()
        data = json.loads(create(site, "x"))["data"]
        assert data == {"a": "b", "color": "1", "size": "2"}
        asked = [run.hook for run in site.runs() if not run.contexts[0]["review"]["request"]["dryRun"]]
        assert asked == ["color.sh", "size.sh", "color.sh"]
        totals = {each: operator.metrics().total(f"{each}_calls_total") for each in ("color", "size")}
        assert totals == {"color": 2, "size": 1}, operator.metrics().names()
