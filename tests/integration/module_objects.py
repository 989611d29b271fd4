"""Modules of the operator of a test, as kubectl shows them."""

import json
import pathlib
from typing import Any

from addon_operator.devcluster import api, handle, layout
from tests.integration import charts, operator_process, operator_site

CRD = "modules.addon-operator.io"
Object = dict[str, Any]


class Modules:
    """The modules of one operator, and the objects that it keeps of them."""

    def __init__(self, site: operator_site.Site, cluster: handle.DevCluster) -> None:
        self.site = site
        self._cluster = cluster
        self._client = api.ApiClient(layout.Layout(cluster.kubeconfig.parent), cluster.url)
        self._objects = f"/apis/addon-operator.io/v1alpha1/namespaces/{site.namespace}/modules"

    def add(self, order: int, name: str, *, enabled: bool = True, data: Object | None = None) -> pathlib.Path:
        return self.site.module(f"{order:03}-{name}", data, values=f"{name}Enabled: {str(enabled).lower()}\n")

    def get(self, name: str) -> Object | None:
        answer = self._client.request("GET", f"{self._objects}/{name}")
        found: Object | None = json.loads(answer.text) if answer.is_success else None
        return found

    def condition(self, name: str, kind: str) -> dict[str, str]:
        """One condition of a module, with empty texts as long as there is none."""
        found = (self.get(name) or {}).get("status", {}).get("conditions", ())
        none = {"status": "", "reason": "", "message": ""}
        return next((each for each in found if each["type"] == kind), none)

    def conditions(self, name: str) -> dict[str, str]:
        found = (self.get(name) or {}).get("status", {})
        return {each["type"]: each["status"] for each in found.get("conditions", ())}

    def wait(self, operator: operator_process.OperatorProcess, name: str, **conditions: str) -> Object:
        """Wait until it has these conditions; its status."""
        operator.wait_until(
            lambda: conditions.items() <= self.conditions(name).items(), f"module {name} is {conditions}"
        )
        found = self.get(name)
        assert found is not None
        status: Object = found["status"]
        return status

    def reasons(self, name: str) -> list[str]:
        """Reasons of the Events about it, in their order."""
        found = self.site.objects(
            "events", fieldSelector=f"involvedObject.kind=Module,involvedObject.name={name}"
        )
        return [event["reason"] for event in sorted(found, key=lambda event: event["metadata"]["name"])]

    def kubectl(self, *arguments: str) -> str:
        return self.site.kubectl(*arguments)

    def leave_definition(self, manager: str) -> None:
        """Have the definition that an older version had, as if that was its last word."""
        self.site.delete("crd", CRD)
        own = (charts.ROOT / "crds" / "modules.yaml").read_text()
        self.site.apply(own.replace("scope: Namespaced", "scope: Cluster"), manager=manager)
        operator_process.wait_until(self._is_without_namespaces, "Modules are objects of the cluster")

    def leave_object_of_the_cluster(self, name: str) -> None:
        """Make an object as an older version had them; kubectl may still know them as those of namespaces."""
        old: Any = {"apiVersion": "addon-operator.io/v1alpha1", "kind": "Module", "metadata": {"name": name}}
        assert self._client.request("POST", "/apis/addon-operator.io/v1alpha1/modules", old).is_success

    def _is_without_namespaces(self) -> bool:
        asked = ("/apis/addon-operator.io/v1alpha1/modules", self._objects)
        return [self._client.request("GET", path).is_success for path in asked] == [True, False]

    @property
    def scope(self) -> str:
        scope: str = self.site.get("crd", CRD)["spec"]["scope"]
        return scope
