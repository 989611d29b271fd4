"""What a plan asks the cluster: missing resources, and kinds that are not served."""

import pathlib

import pytest
from typing_extensions import override

from addon_operator.commands.plan import cluster_lookup
from addon_operator.documents import manifest_diff
from addon_operator.kube.client import client
from addon_operator.kube.discovery import api_resources, discovery
from tests.support import api_server, kinds, rows

NAMESPACE = "addons"
ADDED = manifest_diff.ChangeKind.ADDED


def manifest(*documents: str) -> str:
    return "\n---\n".join(documents)


def config_map(name: str, namespace: str = "") -> str:
    place = f", namespace: {namespace}" if namespace else ""
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}{place}}}\n"


async def absent(kube: client.KubeClient, text: str) -> tuple[tuple[str, ...], list[str]]:
    notes: list[str] = []
    catalog = kinds.Kinds("ConfigMap", "Secret", "Namespace")
    return await cluster_lookup.ClusterLookup(kube, catalog, notes.append).absent(text, NAMESPACE), notes


async def test_what_is_not_there_is_named_in_the_order_of_the_manifest(
    server: api_server.ApiServer, kube: client.KubeClient
) -> None:
    server.put(api_server.an_object("ConfigMap", "a"))
    found, _ = await absent(kube, manifest(config_map("b"), config_map("a"), config_map("a", "other")))
    assert found == ("ConfigMap b", "ConfigMap other/a")


async def test_objects_without_a_namespace_are_asked_for_without_one(
    server: api_server.ApiServer, kube: client.KubeClient
) -> None:
    server.put(api_server.an_object("Namespace", "blue", None))
    text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: blue}\n"
    assert (await absent(kube, text))[0] == ()


async def test_many_objects_of_a_kind_are_listed_once(
    server: api_server.ApiServer, kube: client.KubeClient
) -> None:
    for number in range(19):
        server.put(api_server.an_object("ConfigMap", f"c{number}"))
    found, _ = await absent(kube, manifest(*(config_map(f"c{number}") for number in range(20))))
    assert found == ("ConfigMap c19",)
    assert server.requests == ["GET /api/v1/namespaces/addons/configmaps"]


async def test_what_may_not_be_read_counts_as_present_and_is_noted(
    server: api_server.ApiServer, kube: client.KubeClient
) -> None:
    server.refuse(403, lambda asked: "secrets" in asked.path)
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
    found, notes = await absent(kube, manifest(secret, config_map("a")))
    assert found == ("ConfigMap a",)
    assert len(notes) == 1
    assert "Secret s" in notes[0]


async def test_a_kind_that_is_gone_is_noted(kube: client.KubeClient) -> None:
    found, notes = await absent(kube, "apiVersion: x/v1\nkind: Thing\nmetadata: {name: t}\n")
    assert found == ()
    assert "Thing t" in notes[0]


class Catalog(discovery.Catalog):
    def __init__(self) -> None:
        """It is known what is served."""

    @override
    async def find(self, kind: str, api_version: str | None = None) -> api_resources.Resource:
        if kind != "DaemonSet" or api_version != "apps/v1":
            raise discovery.NoSuchKind(kind, api_version, ("apps/v1",) if kind == "DaemonSet" else ())
        return api_resources.Resource("apps/v1", "daemonsets", kind, namespaced=True)


def added(api_version: str, kind: str) -> manifest_diff.ManifestChange:
    return manifest_diff.ManifestChange(ADDED, manifest_diff.ManifestKey(kind, "x", "", api_version), ())


@rows.each(
    ("changes", "reason", "notes"),
    [
        pytest.param([added("apps/v1", "DaemonSet")], None, 0, id="served"),
        pytest.param(
            [added("extensions/v1beta1", "DaemonSet")],
            "the API server has no kind 'DaemonSet' in extensions/v1beta1: it serves it in apps/v1",
            0,
            id="served in another version",
        ),
        pytest.param([added("a.io/v1", "Foo")], None, 1, id="not served"),
        pytest.param([added("a.io/v1", "Bar")], None, 0, id="defined by a module"),
        pytest.param([added("a.io/v1", "Foo"), added("x/v1", "CustomResourceDefinition")], None, 0,
                     id="perhaps defined by the manifest"),
        pytest.param([added("", "templates/notes.yaml")], None, 0, id="not an object"),
    ],
)  # fmt: skip
async def test_a_kind_that_is_not_served_is_reported(
    changes: list[manifest_diff.ManifestChange],
    reason: str | None,
    notes: int,
    tmp_path: pathlib.Path,
    kube: client.KubeClient,
) -> None:
    (tmp_path / "bar.yaml").write_text("spec:\n  names:\n    kind: Bar\n")
    noted: list[str] = []
    found = await cluster_lookup.ClusterLookup(kube, Catalog(), noted.append).refused(changes, [tmp_path])
    assert (found, len(noted)) == (reason, notes)
