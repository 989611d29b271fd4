"""What a plan tells of objects that others wrote to: whether Helm could merge an upgrade with that."""

import json
from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from addon_operator.commands.plan import merge_check
from addon_operator.helm import release_types
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from tests.support import kinds, rows
from tests.unit.helm import recorded_upgrades

SERVICE = recorded_upgrades.CASES["service-port-number", 3]
PATH = "/api/v1/namespaces/addons/services/web"
TWICE = 'Service "web" is invalid: spec.ports[2].name: Duplicate value: "metrics"'


class Cluster(client.KubeClient):
    """One Service, to which somebody wrote; it takes what removes a port and adds none."""

    def __init__(self, live: Mapping[str, Any]) -> None:
        self.live = live
        self.asked: list[tuple[client.PatchType, str]] = []

    @override
    async def get(
        self, path: str, *, query: Mapping[str, str] | None = None, metadata_only: bool = False
    ) -> client.Object:
        assert path == PATH
        return dict(self.live)

    @override
    async def patch(
        self,
        path: str,
        patch: Mapping[str, Any] | list[Any],
        type_: client.PatchType = client.PatchType.MERGE,
        *,
        query: Mapping[str, str] | None = None,
    ) -> client.Object:
        assert query is not None
        assert query["dryRun"] == "All"
        self.asked.append((type_, json.dumps(patch)))
        if type_ is client.PatchType.APPLY or '"add"' in json.dumps(patch):
            body = json.dumps({"message": TWICE}).encode()
            raise api_errors.from_answer(paths.target("PATCH", path), 422, body)
        return {}


async def refused(cluster: Cluster, major: int = 3) -> str:
    manifest = f"---\n# Source: web/templates/x.yaml\n{SERVICE['manifest']}"
    preview = release_types.ReleasePreview(
        release_types.PlannedAction.UPGRADE, "", 1, before=manifest, manifest=manifest
    )
    check = merge_check.MergeCheck(cluster, kinds.Kinds("Service"), major)
    return await check.refused("addons", preview)


@rows.each(("major", "asked"), [(3, client.PatchType.JSON), (4, client.PatchType.APPLY)])
async def test_what_helm_could_not_merge_is_told_with_the_command_also_of_what_the_chart_leaves_as_it_is(
    major: int, asked: client.PatchType
) -> None:
    cluster = Cluster(SERVICE["live"])
    told = await refused(cluster, major)
    assert told.startswith("Service web: kubectl-edit added /spec/ports/1, ")
    assert "; remove it with: kubectl -n addons patch service web --type=json -p '[" in told
    assert [kind for kind, _ in cluster.asked] == [asked, client.PatchType.JSON]


async def test_where_others_wrote_nothing_nothing_is_tried() -> None:
    cluster = Cluster({**SERVICE["live"], "metadata": {"name": "web"}})
    assert (await refused(cluster), cluster.asked) == ("", [])
