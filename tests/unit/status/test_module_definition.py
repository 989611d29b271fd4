"""The definition of Modules in a fake API server, where an older version has left one."""

from typing import Any

import pytest

from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.status import module_definition
from tests.support import api_server, logs
from tests.support.api_server import Answer, Asked

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/modules.addon-operator.io"
KIND = "/apis/addon-operator.io/v1alpha1"
OURS = {"manager": "addon-operator", "operation": "Apply"}
HELM = {"manager": "helm", "operation": "Update"}
REMOVE = "run 'kubectl delete crd modules.addon-operator.io'"
Object = dict[str, Any]


class Cluster:
    """A cluster with one definition, whose scope cannot be changed."""

    def __init__(self, server: api_server.ApiServer) -> None:
        self.server = server
        self.live: Object | None = None
        self.looks_until_gone = 2
        self._serial = 0
        server.on("PATCH", CRD, self._apply)
        server.on("GET", CRD, self._get)
        server.on("DELETE", CRD, self._delete)
        server.on("GET", KIND, self._discover)

    def leave(self, *managers: Object, scope: str = "Cluster") -> None:
        self._serial += 1
        metadata = {"uid": f"uid-{self._serial}", "managedFields": list(managers)}
        self.live = {"metadata": metadata, "spec": {"scope": scope}}

    @property
    def scope(self) -> str | None:
        return str(self.live["spec"]["scope"]) if self.live else None

    def _apply(self, asked: Asked) -> Answer:
        if self.live is None:
            self.leave(OURS, scope=asked.body["spec"]["scope"])
        elif asked.body["spec"]["scope"] != self.scope:
            return api_server.status(422, "Invalid", "spec.scope: field is immutable")
        return Answer(self.live)

    def _get(self, _: Asked) -> Answer:
        if self.live and "deletionTimestamp" in self.live["metadata"]:
            self.looks_until_gone -= 1
            if self.looks_until_gone == 0:
                self.live = None
        return Answer(self.live) if self.live else api_server.status(404, "NotFound")

    def _delete(self, asked: Asked) -> Answer:
        assert self.live
        if asked.body["preconditions"] != {"uid": self.live["metadata"]["uid"]}:
            return api_server.status(409, "Conflict")
        self.live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return Answer(self.live)

    def _discover(self, _: Asked) -> Answer:
        kinds = [{"name": "modules", "namespaced": self.scope != "Cluster"}, {"name": "modules/status"}]
        return Answer({"resources": kinds}) if self.live else api_server.status(404, "NotFound")


@pytest.fixture
def cluster(server: api_server.ApiServer) -> Cluster:
    return Cluster(server)


@pytest.fixture
def definition(
    kube: client.KubeClient, pauses: api_server.Pauses, log: logs.Lines
) -> module_definition.ModuleDefinition:
    return module_definition.ModuleDefinition(kube, log, sleep=pauses.sleep)


@pytest.mark.parametrize("scope", [None, "Namespaced"], ids=["missing", "there"])
async def test_where_there_is_no_older_one_it_is_applied_and_nothing_else_is_asked_for(
    definition: module_definition.ModuleDefinition, cluster: Cluster, scope: str | None
) -> None:
    if scope:
        cluster.leave(OURS, scope=scope)
    await definition.apply()
    assert cluster.server.requests == [f"PATCH {CRD}"]
    assert cluster.scope == "Namespaced"


async def test_that_of_an_older_version_is_replaced_once_it_is_gone(
    definition: module_definition.ModuleDefinition, cluster: Cluster, log: logs.Lines
) -> None:
    cluster.leave(HELM, OURS)
    await definition.apply()
    assert cluster.scope == "Namespaced"
    ((level, text),) = log.lines
    assert (level, "is replaced" in text) == ("info", True)


async def test_that_of_somebody_else_is_in_the_way(
    definition: module_definition.ModuleDefinition, cluster: Cluster
) -> None:
    cluster.leave(HELM, OURS | {"operation": "Update"})
    with pytest.raises(module_definition.InTheWayError, match=f"no operator has applied it.*{REMOVE}$"):
        await definition.apply()
    assert f"DELETE {CRD}" not in cluster.server.requests
    cluster.live = None
    await definition.apply()
    assert cluster.scope == "Namespaced"


async def test_one_that_was_put_back_is_not_replaced_again(
    definition: module_definition.ModuleDefinition, cluster: Cluster
) -> None:
    cluster.leave(OURS)
    await definition.apply()
    cluster.leave(OURS)
    with pytest.raises(module_definition.InTheWayError, match=f"put the old one back.*{REMOVE}$"):
        await definition.apply()
    assert cluster.server.requests.count(f"DELETE {CRD}") == 1


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_without_the_right_to_replace_it_the_right_is_named(
    definition: module_definition.ModuleDefinition, cluster: Cluster, verb: str
) -> None:
    cluster.leave(OURS)
    cluster.server.on(verb, CRD, api_server.status(403, "Forbidden", 'User "op" cannot do that'))
    with pytest.raises(module_definition.InTheWayError, match=rf"op may not {verb.lower()} .*{REMOVE}$"):
        await definition.apply()
    assert cluster.scope == "Cluster"


async def test_without_the_right_to_apply_it_the_new_one_is_for_others_to_apply(
    definition: module_definition.ModuleDefinition, cluster: Cluster
) -> None:
    cluster.leave(OURS)
    cluster.server.on("PATCH", CRD, api_server.status(403, "Forbidden"))
    with pytest.raises(module_definition.InTheWayError, match=f"{REMOVE}, then run 'kubectl apply .*'$"):
        await definition.apply()
    cluster.leave(OURS, scope="Namespaced")
    with pytest.raises(api_errors.Forbidden):
        await definition.apply()


async def test_one_that_another_operator_has_just_replaced_stays(
    definition: module_definition.ModuleDefinition, cluster: Cluster
) -> None:
    cluster.leave(OURS)

    def overtaken(_: Asked) -> Answer:
        cluster.leave(OURS, scope="Namespaced")
        return api_server.status(409, "Conflict")

    cluster.server.on("DELETE", CRD, overtaken)
    await definition.apply()
    assert (cluster.scope, cluster.live and cluster.live["metadata"]["uid"]) == ("Namespaced", "uid-2")


async def test_one_that_is_being_deleted_is_waited_for(
    definition: module_definition.ModuleDefinition, cluster: Cluster
) -> None:
    cluster.leave(HELM)
    assert cluster.live
    cluster.live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    await definition.apply()
    assert cluster.scope == "Namespaced"
    assert f"DELETE {CRD}" not in cluster.server.requests


async def test_other_problems_are_reported_as_they_are(
    definition: module_definition.ModuleDefinition, cluster: Cluster
) -> None:
    cluster.leave(OURS, scope="Namespaced")
    cluster.server.on("PATCH", CRD, api_server.status(422, "Invalid", "spec.versions: too many"))
    with pytest.raises(api_errors.Invalid, match="too many"):
        await definition.apply()
