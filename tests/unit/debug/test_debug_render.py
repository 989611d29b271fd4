"""Manifests and their difference to the cluster."""

import copy
import pathlib
from collections.abc import Mapping
from typing import Any

import pytest
from typing_extensions import override

from addon_operator.debug import debug_render
from addon_operator.documents import manifest_diff
from addon_operator.helm import helm_errors, places, release_types
from addon_operator.helm.releases import releases
from addon_operator.helm.repositories import chart_cache
from addon_operator.kernel import errors, names
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.modules import model
from addon_operator.values import config_map_reader, store
from addon_operator.values.schema import schemas
from tests.support import kinds

WEB = names.ModuleName("web")
SECRET = "hunter2-and-more"
MODULE = model.Module(WEB, 1, pathlib.Path("web"), has_chart=True)
MANIFEST = f"""\
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: web}}
data: {{size: "3", hidden: {SECRET}}}
---
apiVersion: v1
kind: Secret
metadata: {{name: web}}
stringData: {{key: other-secret}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: web}}
---
apiVersion: v1
kind: Pod
metadata: {{name: test, annotations: {{helm.sh/hook: test}}}}
"""


class Releases(releases.ReleaseManager):
    def __init__(self) -> None:
        self.rendered = MANIFEST
        self.places = places.ReleaseLocations("addons")
        self.requests: list[release_types.ReleaseRequest] = []
        self.is_broken = False

    @override
    async def preview(self, request: release_types.ReleaseRequest) -> release_types.ReleasePreview:
        self.requests.append(request)
        key = manifest_diff.ManifestKey("ConfigMap", "web")
        lines = ("-  size: '2'", "+  size: '3'")
        changes = (manifest_diff.ManifestChange(manifest_diff.ChangeKind.CHANGED, key, lines),)
        upgrade = release_types.PlannedAction.UPGRADE
        return release_types.ReleasePreview(upgrade, "the values changed", 1, changes=changes)

    @override
    async def manifest(self, module: names.ModuleName) -> str | None:
        return MANIFEST.replace("3", "former-password")

    @override
    async def render(self, request: release_types.ReleaseRequest) -> str:
        self.requests.append(request)
        return self.rendered

    @override
    async def revision_inputs(self, module: names.ModuleName) -> release_types.RevisionInputs | None:
        if self.is_broken:
            raise helm_errors.ReleaseRecordError("the record sh.helm.release.v1.web.v1 cannot be decoded")
        before = {str(names.values_key(module)): {"password": "former-password"}}
        return release_types.RevisionInputs(1, False, before, None, 0)


class Charts(chart_cache.ChartCache):
    """Every chart is there already."""

    def __init__(self) -> None:
        """There is no directory."""

    @override
    async def ensure(self, module: model.Module, patience: float | None = chart_cache.PATIENCE) -> None:
        pass


class Cluster(client.KubeClient):
    """Keeps objects by path, and answers a dry run with what would become of one."""

    def __init__(self, objects: Mapping[str, Any]) -> None:
        self.objects = dict(objects)
        self.queries: list[Mapping[str, str]] = []

    @override
    async def get(
        self, path: str, *, query: Mapping[str, str] | None = None, metadata_only: bool = False
    ) -> client.Object:
        if path not in self.objects:
            raise api_errors.NotFound(paths.target("GET", path), 404, "NotFound", "no")
        return copy.deepcopy(self.objects[path])

    @override
    async def patch(
        self,
        path: str,
        patch: Mapping[str, Any] | list[Any],
        type_: client.PatchType = client.PatchType.MERGE,
        *,
        query: Mapping[str, str] | None = None,
    ) -> client.Object:
        assert isinstance(patch, Mapping)
        assert type_ is client.PatchType.APPLY
        self.queries.append(query or {})
        live: client.Object = copy.deepcopy(self.objects.get(path, {}))
        live.update(patch)
        live["metadata"] = {**patch["metadata"], "uid": "new", "managedFields": [1]}
        return live


OWNED = {
    "labels": {"app.kubernetes.io/managed-by": "Helm"},
    "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "addons"},
}
LIVE = {
    "/api/v1/namespaces/addons/configmaps/web": {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "web", "uid": "old", "generation": 4, **OWNED},
        "data": {"size": "2", "hidden": SECRET},
    },
    "/api/v1/namespaces/addons/secrets/web": {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "web", **OWNED},
        "stringData": {"key": "before-secret"},
    },
    "/api/v1/namespaces/web": {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "web", **OWNED},
        "status": {"phase": "Active"},
    },
}


def values() -> store.ValuesStore:
    schema = "properties: {password: {type: string, x-sensitive: true}}"
    section = schemas.load_schemas((schema, "config-values.yaml"))
    made = store.ValuesStore([store.ModuleValues(WEB, schemas=section)])
    made.set_config(
        config_map_reader.ConfigMapReader(made.modules).read({"web": f"password: {SECRET}"}).usable()
    )
    return made


class World:
    def __init__(self) -> None:
        self.releases = Releases()
        self.cluster = Cluster(LIVE)
        self.renderer = debug_render.Renderer(
            self.releases,
            values(),
            self.cluster,
            kinds.Kinds(),
            Charts(),
        )


@pytest.fixture
def world() -> World:
    return World()


async def test_a_manifest_hides_secrets_and_sensitive_values(world: World) -> None:
    shown = await world.renderer.render(MODULE, show_sensitive=False)
    assert SECRET not in shown
    assert "other-secret" not in shown
    assert 'data: {size: "3", hidden: ***}' in shown


async def test_a_manifest_is_whole_if_that_is_asked_for(world: World) -> None:
    assert await world.renderer.render(MODULE, show_sensitive=True) == MANIFEST


async def test_the_values_in_force_are_rendered_and_hidden_in_messages_of_helm(world: World) -> None:
    await world.renderer.render(MODULE, show_sensitive=False)
    (request,) = world.releases.requests
    assert request.values["web"] == {"password": SECRET}
    assert request.redact(f"error near {SECRET}") == "error near ***"


async def test_a_module_without_a_chart_renders_to_nothing(world: World) -> None:
    bare = model.Module(WEB, 1, pathlib.Path("web"))
    assert await world.renderer.render(bare, show_sensitive=False) == ""
    assert await world.renderer.diff(bare, show_sensitive=False) == "No differences.\n"
    assert world.releases.requests == []


async def test_a_difference_shows_what_an_apply_would_change(world: World) -> None:
    shown = await world.renderer.diff(MODULE, show_sensitive=False)
    assert "--- in the cluster: ConfigMap web\n+++ rendered: ConfigMap web\n" in shown
    assert "-  size: '2'\n+  size: '3'\n" in shown
    assert "-  key: '*** (before)'\n+  key: '*** (after)'\n" in shown
    for hidden in (
        SECRET,
        "other-secret",
        "before-secret",
        "uid",
        "managedFields",
        "Namespace",
        "Pod",
        "meta.helm.sh",
    ):
        assert hidden not in shown


async def test_the_cluster_is_only_asked_for_a_dry_run(world: World) -> None:
    await world.renderer.diff(MODULE, show_sensitive=True)
    assert len(world.cluster.queries) == 3
    assert {query["dryRun"] for query in world.cluster.queries} == {"All"}


async def test_a_difference_is_whole_if_that_is_asked_for(world: World) -> None:
    shown = await world.renderer.diff(MODULE, show_sensitive=True)
    assert "-  key: before-secret\n+  key: other-secret\n" in shown


async def test_a_difference_that_cannot_hide_former_values_is_not_shown_and_that_is_one_sentence(
    world: World,
) -> None:
    world.releases.is_broken = True
    with pytest.raises(errors.ModuleError) as caught:
        await world.renderer.diff(MODULE, show_sensitive=False)
    assert str(caught.value) == (
        "module web: the difference is not shown: which former values to hide in it is not known, as the "
        "record sh.helm.release.v1.web.v1 cannot be decoded; 'module render' without --diff shows what the "
        "chart renders to, and --show-sensitive shows the difference with all values"
    )
    assert "size" in await world.renderer.diff(MODULE, show_sensitive=True)


async def test_what_waits_is_the_difference_of_the_last_revision_with_all_that_is_hidden(
    world: World,
) -> None:
    shown = await world.renderer.pending(MODULE, is_removal=False)
    assert shown == "-  size: '2'\n+  size: '3'\n"
    (request,) = world.releases.requests
    assert request.redact(f"{SECRET} former-password") == "*** ***"


async def test_a_removal_that_waits_takes_everything_away(world: World) -> None:
    shown = await world.renderer.pending(MODULE, is_removal=True)
    assert "-kind: ConfigMap\n" in shown
    assert "former-password" not in shown
    assert SECRET not in shown
    assert not [line for line in shown.splitlines() if line.startswith("+") and not line.startswith("+++")]


async def test_a_difference_that_cannot_hide_former_values_waits_unseen(world: World) -> None:
    world.releases.is_broken = True
    with pytest.raises(errors.ModuleError, match=r"'module render' shows what the chart renders to$"):
        await world.renderer.pending(MODULE, is_removal=False)


async def test_an_object_that_is_not_there_is_all_new(world: World) -> None:
    del world.cluster.objects["/api/v1/namespaces/addons/configmaps/web"]
    shown = await world.renderer.diff(MODULE, show_sensitive=False)
    assert "+kind: ConfigMap\n" in shown
    assert "-kind: ConfigMap\n" not in shown


async def test_objects_in_other_namespaces_and_in_lists_are_compared_there(world: World) -> None:
    world.releases.rendered = (
        "kind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: other}}\n"
    )
    shown = await world.renderer.diff(MODULE, show_sensitive=False)
    assert "+  namespace: other\n" in shown


async def test_without_changes_there_is_no_difference(world: World) -> None:
    world.releases.rendered = "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n"
    assert await world.renderer.diff(MODULE, show_sensitive=False) == "No differences.\n"
