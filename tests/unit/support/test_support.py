"""What unit tests stand on: it refuses what only a real cluster knows, and an operator in memory works."""

from collections.abc import Mapping
from typing import Any

import pytest

from addon_operator.kube import paths
from addon_operator.kube.client import client
from tests.support import api_server, engine, rows

WEB = paths.of("v1", "configmaps", namespace="addons", name="web")


@rows.each(
    ("type_", "query", "what"),
    [
        (client.PatchType.APPLY, {}, "what an apply makes of an object that is there"),
        (client.PatchType.STRATEGIC, {}, "how lists are merged by key"),
        (client.PatchType.MERGE, {"dryRun": "All"}, "what a dry run would make of an object"),
    ],
)
async def test_what_a_real_api_server_alone_knows_fails_the_test_unless_it_says_the_answer(
    type_: client.PatchType, query: Mapping[str, str], what: str
) -> None:
    server = api_server.ApiServer()
    server.put(api_server.an_object("ConfigMap", "web"))
    kube = api_server.client_of(server)
    with pytest.raises(api_server.NotKnown, match=what):
        await kube.patch(WEB, {"data": {}}, type_, query=query)
    assert server.not_known == [f"PATCH {WEB}: {what}"]
    server.on("PATCH", WEB, {"data": {"said": "by the test"}})
    assert (await kube.patch(WEB, {"data": {}}, type_))["data"] == {"said": "by the test"}


def test_a_kind_that_nobody_serves_cannot_be_put() -> None:
    server = api_server.ApiServer()
    widget = api_server.an_object("Widget", "a", api_version="example.com/v1")
    with pytest.raises(api_server.NotKnown, match="no kind Widget is served"):
        server.put(widget)
    server.serve("Widget", "example.com/v1")
    server.put(widget)
    assert server.names("Widget") == ["a"]


async def test_an_edit_of_a_module_upgrades_its_release(op: engine.Operator) -> None:
    op.modules.add("web")
    hook = op.hook("web/a.sh", {"beforeHelm": 1}, lambda run: run.set_values(web={"size": 3}))
    await op.start()
    assert op.statuses == {"web": "Ready"}
    await op.edit(web={"replicas": 2})
    assert op.helm.changes == ["upgrade web", "upgrade web"]
    assert hook.told == ["beforeHelm", "beforeHelm"]
    values: dict[str, Any] = op.helm.content("web", 2)["config"]
    assert values["web"] == {"size": 3, "replicas": 2}
    assert op.heard.failures == []


async def test_an_operator_that_starts_again_over_the_same_cluster_changes_nothing(
    op: engine.Operator,
) -> None:
    op.modules.add("web")
    op.helm.writes_objects = True
    await op.start()
    assert op.server.get("ConfigMap", "web")["metadata"]["annotations"]["meta.helm.sh/release-name"] == "web"
    await op.stop()
    before = list(op.helm.verbs)
    await op.start()
    assert op.statuses == {"web": "Ready"}
    assert op.helm.verbs == before


async def test_time_passes_only_when_a_test_says_so(op: engine.Operator) -> None:
    op.helm.fail["upgrade"] = "no such image"
    op.modules.add("web")
    await op.start()
    assert op.statuses == {"web": "Failed"}
    del op.helm.fail["upgrade"]
    await op.advance(10)
    assert op.statuses == {"web": "Ready"}
