"""Releases and their objects, as the API server shows them."""

import base64
import dataclasses
import functools
import gzip
import json
import urllib.parse
from collections.abc import Mapping
from typing import Any, Final

import yaml

from addon_operator.devcluster import handle
from tests.benchmarks import surroundings

CLAIM: Final = "PersistentVolumeClaim"
_STAYS: Final = frozenset({"Namespace", "CustomResourceDefinition", CLAIM})
_PASSING: Final = frozenset(
    {
        "events",
        "endpoints",
        "endpointslices",
        "pods",
        "replicasets",
        "controllerrevisions",
        "leases",
        "apiservices",
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class Thing:
    """An object of a release."""

    path: str
    """In the API."""
    kind: str


class Releases:
    """All releases of a trial; the release of a chart has its name, in a namespace of its own."""

    def __init__(self, cluster: handle.DevCluster, prefix: str) -> None:
        self._cluster = cluster
        self._prefix = prefix
        self.api = surroundings.Api(cluster)
        self._resources = functools.cache(self._ask_resources)

    def namespace(self, chart: str) -> str:
        """Return the namespace of a chart's release."""
        return f"{self._prefix}-{chart}"

    def revisions(self) -> dict[str, dict[int, str]]:
        """Return number and status of all revisions, by chart."""
        found: dict[str, dict[int, str]] = {}
        answer = self.api.request("GET", "/api/v1/secrets?labelSelector=owner%3Dhelm")
        for secret in answer["items"]:
            labels = secret["metadata"]["labels"]
            chart = secret["metadata"]["namespace"].removeprefix(f"{self._prefix}-")
            found.setdefault(chart, {})[int(labels["version"])] = labels["status"]
        return found

    def deployed(self, chart: str) -> int:
        """Return the number of the deployed revision."""
        return max(number for number, status in self.revisions()[chart].items() if status == "deployed")

    def things(self, chart: str) -> list[Thing]:
        """Return what the deployed revision has, without what outlives it."""
        return [each for each in self._all_things(chart) if each.kind not in _STAYS]

    def claims(self, chart: str) -> list[Thing]:
        """Return the claims of the deployed revision."""
        return [each for each in self._all_things(chart) if each.kind == CLAIM]

    def _all_things(self, chart: str) -> list[Thing]:
        manifest = yaml.load_all(self._record(chart).get("manifest") or "", Loader=yaml.CSafeLoader)
        return [Thing(self._path(body, chart), body["kind"]) for body in manifest if body]

    def hook_objects(self, chart: str) -> set[str]:
        """Return ``Kind/name`` of the objects of Helm's hooks, which Helm leaves."""
        return {f"{hook['kind']}/{hook['name']}" for hook in self._record(chart).get("hooks") or ()}

    def read(self, thing: Thing) -> dict[str, Any]:
        """Return the object; empty if there is none."""
        return self.api.request("GET", thing.path)

    def all_objects(self) -> dict[str, set[str]]:
        """Return ``Kind/name`` of everything that somebody could have left, by namespace."""
        listed = self._cluster.run_kubectl("api-resources", "--verbs=list,delete", "--output=name").stdout
        kinds = [line for line in listed.split() if line.partition(".")[0] not in _PASSING]
        text = self._cluster.run_kubectl(
            "get", ",".join(kinds), "--all-namespaces", "--output=json", "--ignore-not-found"
        ).stdout
        found: dict[str, set[str]] = {}
        for each in json.loads(text or '{"items": []}')["items"]:
            if each["kind"] not in _STAYS:
                space = each["metadata"].get("namespace", "")
                found.setdefault(space, set()).add(f"{each['kind']}/{each['metadata']['name']}")
        return found

    def _record(self, chart: str) -> dict[str, Any]:
        name = f"sh.helm.release.v1.{chart}.v{self.deployed(chart)}"
        secret = self.api.request("GET", f"/api/v1/namespaces/{self.namespace(chart)}/secrets/{name}")
        packed = base64.b64decode(base64.b64decode(secret["data"]["release"]))
        record: dict[str, Any] = json.loads(gzip.decompress(packed))
        return record

    def _path(self, body: Mapping[str, Any], chart: str) -> str:
        version, metadata = body["apiVersion"], body["metadata"]
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        plural, namespaced = self._resources(base)[body["kind"]]
        space = f"/namespaces/{metadata.get('namespace') or self.namespace(chart)}" if namespaced else ""
        return f"{base}{space}/{plural}/{urllib.parse.quote(metadata['name'])}"

    def _ask_resources(self, base: str) -> dict[str, tuple[str, bool]]:
        resources = self.api.request("GET", base)["resources"]
        return {
            each["kind"]: (each["name"], each["namespaced"]) for each in resources if "/" not in each["name"]
        }
