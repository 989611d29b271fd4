"""What a plan asks the API server about new and changed objects."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from addon_operator.commands.plan import dry_run
from addon_operator.documents import manifest_diff
from addon_operator.helm import release_types
from addon_operator.kernel import names
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.modules import model
from tests.support import kinds, rows

MODULE = model.Module(names.ModuleName("web"), 1, pathlib.Path("modules/010-web"))
PATH = "/api/v1/namespaces/addons/configmaps"


def config_map(name: str, rest: str = "") -> str:
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n{rest}"
    return f"---\n# Source: web/templates/{name}.yaml\n{text}"


class Cluster(client.KubeClient):
    """Answers requests with an error by status; ``there`` are objects that exist."""

    def __init__(self, status: int = 0, message: str = "is invalid: x") -> None:
        self.status, self.message = status, message
        self.asked: list[tuple[str, str, Mapping[str, Any]]] = []
        self.there = True

    @override
    async def create(
        self, path: str, body: Mapping[str, Any], *, query: Mapping[str, str] | None = None
    ) -> client.Object:
        return self._ask("POST", path, body, query)

    @override
    async def patch(
        self,
        path: str,
        patch: Mapping[str, Any] | list[Any],
        type_: client.PatchType = client.PatchType.MERGE,
        *,
        query: Mapping[str, str] | None = None,
    ) -> client.Object:
        if not self.there:
            raise api_errors.NotFound(paths.target("PATCH", path), 404, "NotFound", "gone")
        return self._ask("PATCH", path, patch, query)

    def _ask(self, verb: str, path: str, body: object, query: Mapping[str, str] | None) -> client.Object:
        assert query is not None
        assert isinstance(body, Mapping)
        assert query["dryRun"] == "All"
        self.asked.append((verb, path, body))
        if self.status:
            error = f'{{"message": "{self.message}"}}'.encode()
            raise api_errors.from_answer(paths.target(verb, path), self.status, error)
        return {}


@dataclasses.dataclass
class Asked:
    refused: str
    notes: list[str]


async def ask(cluster: Cluster, after: str, before: str = "", left_out: str = "") -> Asked:
    notes: list[str] = []
    run = dry_run.DryRun(cluster, kinds.Kinds("ConfigMap"), 4, notes.append)
    changes = manifest_diff.diff(manifest_diff.parse(before), manifest_diff.parse(after))
    made = release_types.ReleasePreview(
        release_types.PlannedAction.UPGRADE, "", 1, changes=changes, before=before, manifest=after
    )
    return Asked(await run.refused(MODULE, "addons", made, left_out.__eq__), notes)


async def test_only_what_is_new_or_changes_is_tried() -> None:
    cluster = Cluster()
    before = config_map("same") + config_map("old") + config_map("web", "data: {a: b, c: d}\n")
    after = config_map("same") + config_map("new") + config_map("web", "data: {a: x}\n")
    assert (await ask(cluster, after, before)).refused == ""
    assert [(verb, path) for verb, path, _ in cluster.asked] == [("POST", PATH), ("PATCH", f"{PATH}/web")]
    assert cluster.asked[1][2]["data"] == {"a": "x", "c": None}, "what leaves the chart goes away"


@rows.each("status", [400, 422])
async def test_a_refusal_names_the_file_of_the_module(status: int) -> None:
    found = await ask(Cluster(status), config_map("web"))
    assert found.refused.startswith("modules/010-web/templates/web.yaml: the API server did not create ")
    assert found.notes == []


@rows.each(
    ("status", "message", "is_noted"),
    [
        (403, "no", True),
        (503, "busy", True),
        (400, "admission webhook x denied the request: is invalid", True),
        (404, "no such namespace", False),
    ],
)
async def test_what_says_nothing_of_the_object_is_no_refusal(
    status: int, message: str, is_noted: bool
) -> None:
    found = await ask(Cluster(status, message), config_map("web"))
    assert (found.refused, bool(found.notes)) == ("", is_noted)


async def test_an_object_that_is_gone_is_tried_as_a_new_one() -> None:
    cluster = Cluster(422)
    cluster.there = False
    assert (await ask(cluster, config_map("web", "data: {a: x}\n"), config_map("web"))).refused
    assert [verb for verb, _, _ in cluster.asked] == ["POST"]


async def test_a_hook_of_helm_is_made_anew_and_a_kind_that_a_converge_brings_is_left_out() -> None:
    hook = config_map("web", "data: {a: x}\n").replace("{name", "{annotations: {helm.sh/hook: x}, name")
    cluster = Cluster()
    await ask(cluster, hook, hook.replace("a: x", "a: y"))
    assert [verb for verb, _, _ in cluster.asked] == ["POST"]
    assert (await ask(Cluster(422), config_map("web"), left_out="ConfigMap")).refused == ""
    assert (await ask(Cluster(422), config_map("web").replace("ConfigMap", "Thing"))).refused == ""
