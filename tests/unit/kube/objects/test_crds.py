"""Definitions come to the cluster: written only if they differ, awaited, old stored versions moved first."""

from collections.abc import Callable
from typing import Any

import pytest

from addon_operator.documents import own_manifests
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.kube.objects import crds
from addon_operator.modules import crd_changes, crd_files
from tests.support import api_server

NAME = "crontabs.example.com"
PATH = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{NAME}"
GROUP = "/apis/example.com/v1"
NOT_FOUND = api_server.status(404, "NotFound")
CONFLICT = api_server.status(409, "Conflict")
ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v1"]}
VERSION = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
OLD = {**VERSION, "name": "v1alpha1"}


def crd(*versions: dict[str, Any]) -> crd_files.Crd:
    spec: Any = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "crontabs", "kind": "CronTab"},
        "versions": list(versions or [VERSION]),
    }
    return crd_files.Crd(NAME, "crds/x.yaml, document 1", {}, {}, spec)


def live(given: crd_files.Crd, *, status: dict[str, Any] = ESTABLISHED) -> dict[str, Any]:
    wanted: Any = crd_changes.desired(given, {}, None)
    wanted["metadata"]["resourceVersion"] = "7"
    return {**wanted, "status": status}


def discoverable(server: api_server.ApiServer) -> None:
    def groups(*resources: dict[str, Any]) -> dict[str, Any]:
        version = {"version": "v1", "resources": list(resources)}
        items = [{"metadata": {"name": "example.com"}, "versions": [version]}]
        return {"kind": "APIGroupDiscoveryList", "items": items}

    resource = {"resource": "crontabs", "responseKind": {"kind": "CronTab"}, "scope": "Namespaced"}
    server.on("GET", "/version", {"gitVersion": "v1.36.3"})
    server.on("GET", "/api", {"kind": "APIGroupDiscoveryList", "items": []})
    server.on("GET", "/apis", groups(), groups(resource))


@pytest.fixture
def installer(kube: client.KubeClient, pauses: api_server.Pauses) -> crds.CrdInstaller:
    return crds.CrdInstaller(kube, discovery.Catalog(kube, pauses), {}, pauses)


def writes(server: api_server.ApiServer) -> list[str]:
    return [f"{asked.method} {asked.path}" for asked in server.asked if asked.method != "GET"]


async def test_a_definition_that_does_not_differ_is_not_written(
    server: api_server.ApiServer, installer: crds.CrdInstaller
) -> None:
    server.on("GET", PATH, live(crd()))
    assert not await installer.ensure(crd())
    assert writes(server) == []


async def test_a_new_definition_is_applied_and_awaited_until_discovery_tells_of_it(
    server: api_server.ApiServer, installer: crds.CrdInstaller, pauses: api_server.Pauses
) -> None:
    server.on("GET", PATH, NOT_FOUND, live(crd(), status={}), live(crd()))
    server.on("PATCH", PATH, live(crd()))
    discoverable(server)
    assert await installer.ensure(crd())
    [applied] = [asked for asked in server.asked if asked.method == "PATCH"]
    assert applied.query == {"fieldManager": "addon-operator", "force": "true"}
    assert "resourceVersion" not in applied.body["metadata"]
    assert server.requests.count("GET /apis") == 2
    assert len(pauses.seconds) == 2


async def test_a_live_definition_that_changes_meanwhile_is_read_again(
    server: api_server.ApiServer, installer: crds.CrdInstaller
) -> None:
    server.on("GET", PATH, live(crd(OLD)), live(crd()))
    server.on("PATCH", PATH, CONFLICT)
    discoverable(server)
    assert not await installer.ensure(crd())
    [asked] = [asked for asked in server.asked if asked.method == "PATCH"]
    assert asked.body["metadata"]["resourceVersion"] == "7"


async def test_a_definition_that_never_rests_is_given_up(
    server: api_server.ApiServer, installer: crds.CrdInstaller
) -> None:
    server.on("GET", PATH, live(crd(OLD)))
    server.on("PATCH", PATH, CONFLICT)
    with pytest.raises(crds.CrdError, match="changes faster than it can be written"):
        await installer.ensure(crd())


async def test_refused_names_are_reported_at_once(
    server: api_server.ApiServer, installer: crds.CrdInstaller, pauses: api_server.Pauses
) -> None:
    refused = {"type": "NamesAccepted", "status": "False", "message": '"crontabs" is already in use'}
    server.on("GET", PATH, live(crd(), status={"conditions": [refused]}))
    with pytest.raises(
        crds.CrdError, match=r"not serve crontabs\.example\.com: .crontabs. is already in use"
    ):
        await installer.ensure(crd())
    assert pauses.seconds == []


async def test_a_definition_that_is_never_established_is_an_error_in_the_end(
    server: api_server.ApiServer, installer: crds.CrdInstaller, pauses: api_server.Pauses
) -> None:
    server.on("GET", PATH, live(crd(), status={}))
    with pytest.raises(crds.CrdError, match="not Established after 30 s"):
        await installer.ensure(crd())
    assert 30 <= sum(pauses.seconds) < 32


def ending(given: crd_files.Crd) -> dict[str, Any]:
    there = live(given)
    return {**there, "metadata": {**there["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


async def test_a_definition_that_is_being_deleted_is_applied_once_it_is_gone(
    server: api_server.ApiServer, installer: crds.CrdInstaller
) -> None:
    server.on("GET", PATH, ending(crd()), NOT_FOUND, live(crd()))
    server.on("PATCH", PATH, live(crd()))
    discoverable(server)
    assert await installer.ensure(crd())
    assert writes(server) == [f"PATCH {PATH}"]


async def test_a_definition_that_goes_while_it_is_awaited_is_applied_anew(
    server: api_server.ApiServer, installer: crds.CrdInstaller
) -> None:
    server.on("GET", PATH, live(crd()), ending(crd()), NOT_FOUND, live(crd()))
    server.on("PATCH", PATH, live(crd()))
    discoverable(server)
    assert await installer.ensure(crd())
    assert writes(server) == [f"PATCH {PATH}"]


async def test_a_definition_whose_deletion_does_not_end_is_an_error_that_says_who_may_hold_it(
    server: api_server.ApiServer, installer: crds.CrdInstaller, pauses: api_server.Pauses
) -> None:
    server.on("GET", PATH, ending(crd()))
    with pytest.raises(crds.CrdError, match=rf"still there after 30 s: .*finalizers.*get {NAME}"):
        await installer.ensure(crd())
    assert 30 <= sum(pauses.seconds) < 32


async def test_discovery_has_one_time_for_all_versions_of_a_definition(
    server: api_server.ApiServer, installer: crds.CrdInstaller, pauses: api_server.Pauses
) -> None:
    given = crd(*({**VERSION, "name": f"v{number}", "storage": number == 1} for number in range(1, 41)))
    server.on("GET", PATH, NOT_FOUND, live(given))
    server.on("PATCH", PATH, live(given))
    server.on("GET", "/version", {"gitVersion": "v1.36.3"})
    lists = [{"kind": "APIGroupDiscoveryList", "items": _served(number)} for number in range(1, 41)]
    server.on("GET", "/api", {"kind": "APIGroupDiscoveryList", "items": []})
    server.on("GET", "/apis", *(each for made in lists for each in [made] * 20))
    with pytest.raises(crds.CrdError, match=r"Established, but discovery does not list v\d+$"):
        await installer.ensure(given)
    assert sum(pauses.seconds) < crds.ESTABLISH_SECONDS + 2


def _served(number: int) -> list[dict[str, Any]]:
    resource = {"resource": "crontabs", "responseKind": {"kind": "CronTab"}, "scope": "Namespaced"}
    versions = [{"version": f"v{each}", "resources": [resource]} for each in range(1, number)]
    return [{"metadata": {"name": "example.com"}, "versions": versions}]


async def test_what_the_server_refuses_is_reported_in_its_words(
    server: api_server.ApiServer, installer: crds.CrdInstaller
) -> None:
    server.on("GET", PATH, NOT_FOUND)
    server.on("PATCH", PATH, api_server.status(422, "Invalid", "spec.group: Required value"))
    with pytest.raises(api_errors.Invalid, match=r"spec\.group: Required value"):
        await installer.ensure(crd())


def stored_in_both(asked: Callable[[], bool]) -> Callable[[api_server.Asked], api_server.Answer]:
    """A live definition whose objects may be stored in the old version until ``asked`` says otherwise."""

    def answer(_: api_server.Asked) -> api_server.Answer:
        stored = ["v1"] if asked() else ["v1alpha1", "v1"]
        there = live(crd(OLD), status={**ESTABLISHED, "storedVersions": stored})
        return api_server.Answer(there)

    return answer


async def test_objects_leave_a_stored_version_before_it_is_dropped(
    server: api_server.ApiServer, installer: crds.CrdInstaller
) -> None:
    moved = {"metadata": {"name": "a:b", "namespace": "x", "resourceVersion": "3"}, "spec": {"n": 1}}
    lost = {"metadata": {"name": "gone", "namespace": "x"}}
    status = f"{PATH}/status"
    server.on("GET", PATH, stored_in_both(lambda: f"PATCH {status}" in server.requests))
    server.on("PATCH", PATH, live(crd()))
    server.on("PATCH", status, live(crd()))
    server.on("GET", f"{GROUP}/crontabs", {"items": [moved, lost], "metadata": {}})
    server.on("PUT", f"{GROUP}/namespaces/x/crontabs/a:b", moved)
    server.on("PUT", f"{GROUP}/namespaces/x/crontabs/gone", NOT_FOUND)
    discoverable(server)
    assert await installer.ensure(crd())
    assert writes(server) == [
        f"PATCH {PATH}",
        f"PUT {GROUP}/namespaces/x/crontabs/a:b",
        f"PUT {GROUP}/namespaces/x/crontabs/gone",
        f"PATCH {status}",
        f"PATCH {PATH}",
    ]
    first, put, *_, stored, last = (asked.body for asked in server.asked if asked.method != "GET")
    assert [version["name"] for version in first["spec"]["versions"]] == ["v1", "v1alpha1"]
    assert put == moved
    assert stored == {"status": {"storedVersions": ["v1"]}}
    assert [version["name"] for version in last["spec"]["versions"]] == ["v1"]


COLLECTION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def noted(digest: str, generation: int = 3, module: str = "") -> dict[str, Any]:
    found = live(crd())
    found["metadata"] |= {
        "generation": generation,
        "annotations": {"addon-operator.io/applied": f"{digest}.3{module}"},
    }
    return found


async def test_what_was_applied_is_noted_down_with_its_generation(
    server: api_server.ApiServer, installer: crds.CrdInstaller
) -> None:
    found = live(crd())
    found["metadata"]["generation"] = 3
    server.on("GET", PATH, found)
    server.on("PATCH", PATH, found)
    assert not await installer.ensure(crd(), crds.Applied("abc", "web"))
    [patched] = [asked for asked in server.asked if asked.method == "PATCH"]
    assert patched.body == {"metadata": {"annotations": {"addon-operator.io/applied": "abc.3.web"}}}


async def test_what_is_noted_down_already_is_not_written_again(
    server: api_server.ApiServer, installer: crds.CrdInstaller
) -> None:
    server.on("GET", PATH, noted("abc", module=".web"))
    assert not await installer.ensure(crd(), crds.Applied("abc", "web"))
    assert writes(server) == []


async def test_the_module_and_the_release_of_a_definition_are_known_too(
    server: api_server.ApiServer, installer: crds.CrdInstaller
) -> None:
    found = noted("abc", module=".web.v2")
    found["metadata"]["annotations"]["meta.helm.sh/release-name"] = "db"
    server.on("GET", COLLECTION, {"items": [found]})
    assert await installer.applied() == {NAME: crds.Applied("abc", "web.v2", "db")}


async def test_versions_that_were_added_stay_as_they_are_and_are_noted(
    server: api_server.ApiServer, installer: crds.CrdInstaller
) -> None:
    added = frozenset({"db/v1alpha1/123", "db/gone/123"})
    kept: Any = {**OLD, "storage": False, "schema": {"openAPIV3Schema": {"type": "object", "x": 1}}}
    found = live(crd(VERSION, kept)) | {}
    found["metadata"] |= {"generation": 3}
    server.on("GET", PATH, found)
    server.on("PATCH", PATH, found)
    assert not await installer.ensure(crd(), crds.Applied("abc", "web", added=added))
    [patched] = [asked for asked in server.asked if asked.method == "PATCH"]
    note = "abc.3.web+db/gone/123+db/v1alpha1/123"
    assert patched.body == {"metadata": {"annotations": {"addon-operator.io/applied": note}}}
    server.on("GET", COLLECTION, {"items": [noted("abc", module=".web+db/gone/123+db/v1alpha1/123")]})
    assert await installer.applied() == {NAME: crds.Applied("abc", "web", added=added)}


async def test_what_another_module_left_is_not_replaced_if_versions_would_go(
    server: api_server.ApiServer, installer: crds.CrdInstaller
) -> None:
    server.on("GET", PATH, live(crd(VERSION, OLD)))
    with pytest.raises(crds.StillServedError) as caught:
        await installer.ensure(crd(), spares=True)
    assert caught.value.versions == ("v1alpha1",)
    assert writes(server) == []


async def test_one_list_tells_what_was_applied_and_not_changed_since(
    server: api_server.ApiServer, installer: crds.CrdInstaller
) -> None:
    server.on("GET", COLLECTION, {"items": [noted("abc"), {"metadata": {"name": "other"}}]})
    assert await installer.applied() == {NAME: crds.Applied("abc"), "other": crds.Applied()}


async def test_a_definition_that_somebody_changed_or_deletes_counts_as_not_applied(
    server: api_server.ApiServer, installer: crds.CrdInstaller
) -> None:
    going = noted("abc")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    server.on("GET", COLLECTION, {"items": [noted("abc", generation=4)]}, {"items": [going]})
    assert await installer.applied() == {NAME: crds.Applied()}
    assert await installer.applied() == {}


async def test_without_the_right_to_list_definitions_each_is_looked_at(
    server: api_server.ApiServer, installer: crds.CrdInstaller
) -> None:
    server.on("GET", COLLECTION, api_server.status(403, "Forbidden"))
    assert await installer.applied() == {}


def test_other_labels_are_another_digest(kube: client.KubeClient, pauses: api_server.Pauses) -> None:
    catalog = discovery.Catalog(kube, pauses)
    one, other = (crds.CrdInstaller(kube, catalog, labels, pauses) for labels in ({}, {"a": "b"}))
    assert one.digest("x") != other.digest("x")


async def test_a_definition_is_applied_whole() -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/modules.addon-operator.io"
    server = api_server.ApiServer()
    kube = api_server.client_of(server, api_server.Pauses())
    server.on("PATCH", path, {})
    await crds.apply_own(kube, own_manifests.MODULES)
    (asked,) = server.asked
    assert asked.query == {"fieldManager": "addon-operator", "force": "true"}
    assert asked.body == own_manifests.load(own_manifests.MODULES)
