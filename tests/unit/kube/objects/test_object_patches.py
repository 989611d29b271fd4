"""Carrying out what hooks write about objects, against an API server with the rules that matter here."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from addon_operator.hook_contract.outputs import object_operations
from addon_operator.kernel import errors
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.kube.objects import object_patches, own_deletions
from tests.support import kinds, rows, unused
from tests.support.api_server import Answer, ApiServer, Asked, Pauses, status
from tests.unit.kube import informing

PATH = "/api/v1/namespaces/default/configmaps"
X = f"{PATH}/x"
OWNER = own_deletions.Owner("web")
KEY = own_deletions.DeletedObject("", "ConfigMap", "default", "x")
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}}
TARGET = {"kind": "ConfigMap", "name": "x", "namespace": "default"}


class Bench:
    """A patcher on a fake API server."""

    def __init__(self, server: ApiServer, kube: client.KubeClient, pauses: Pauses) -> None:
        self.server = server
        self.pauses = pauses
        self.waited_for: list[str] = []
        self.looks = 0
        self.stop_after: int | None = None
        self.deletions = own_deletions.OwnDeletions()
        catalog = discovery.Catalog(kube, pauses)
        self.patcher = object_patches.ObjectPatcher(kube, catalog, self.deletions, informing.JqHere(), pauses)

    def store(self, **data: Any) -> None:  # noqa: ANN401 - JSON
        """Let the ConfigMap ``x`` have this data."""
        self.server.put({**CONFIG_MAP, "data": data})

    @property
    def body(self) -> dict[str, Any]:
        return self.server.get("ConfigMap", "x", "default")

    @property
    def data(self) -> dict[str, Any] | None:
        data: dict[str, Any] | None = self.body["data"] if self.server.names("ConfigMap") else None
        return data

    def edit_after_reading(self, *edits: Callable[[], None]) -> None:
        """Have others do this between our reading and our writing, one for each time."""

        def read(edit: Callable[[], None] = lambda: None) -> Answer:
            answer = Answer(self.body) if self.server.names("ConfigMap") else status(404, "NotFound")
            edit()
            return answer

        self.server.on("GET", X, *(lambda _, edit=each: read(edit) for each in edits), lambda _: read())

    async def run(self, *documents: dict[str, Any]) -> None:
        operations = object_operations.parse("\n".join(map(json.dumps, documents)), "hook a.sh")
        writer = object_patches.HookWriter(
            "hook a.sh: KUBERNETES_PATCH_PATH", OWNER, "addon-operator:web/a.sh", 1800.0, self.waiting
        )
        await self.patcher.apply(operations, writer)

    @contextlib.contextmanager
    def waiting(self, waits_for: str) -> Iterator[Callable[[], None]]:
        """Note what is waited for; whoever waits is to stop after some looks, if the test says so."""
        self.waited_for.append(waits_for)

        def check() -> None:
            self.looks += 1
            if self.looks == self.stop_after:
                raise errors.AddonOperatorError("superseded")

        yield check

    async def refusal(self, *documents: dict[str, Any]) -> str:
        with pytest.raises(object_patches.ObjectPatchError) as caught:
            await self.run(*documents)
        return str(caught.value)

    @property
    def writes(self) -> list[str]:
        return [request for request in self.server.requests if not request.startswith("GET ")]

    def last(self, method: str) -> Asked:
        return [asked for asked in self.server.asked if asked.method == method][-1]


@pytest.fixture
def bench(server: ApiServer, kube: client.KubeClient, pauses: Pauses) -> Bench:
    return Bench(server, kube, pauses)


def creation(operation: str, **data: object) -> dict[str, Any]:
    return {"operation": operation, "object": {**CONFIG_MAP, "data": data}}


@pytest.mark.parametrize("operation", ["Create", "CreateOrUpdate", "CreateIfNotExists"])
async def test_a_missing_object_is_created(bench: Bench, operation: str) -> None:
    await bench.run(creation(operation, a="1"))
    assert bench.data == {"a": "1"}
    assert bench.last("POST").query == {"fieldManager": "addon-operator"}


async def test_create_fails_when_the_object_exists(bench: Bench) -> None:
    bench.store(old="1")
    assert await bench.refusal(creation("Create", a="1")) == (
        "hook a.sh: KUBERNETES_PATCH_PATH, document [0] (Create): the API server did not create "
        'configmaps in namespace "default" (409 AlreadyExists): configmaps "x" already exists'
    )
    assert bench.data == {"old": "1"}


async def test_create_if_not_exists_leaves_an_object_alone(bench: Bench) -> None:
    bench.store(old="1")
    await bench.run(creation("CreateIfNotExists", a="1"))
    assert bench.data == {"old": "1"}


async def test_create_or_update_replaces_the_whole_object(bench: Bench) -> None:
    bench.store(old="1")
    await bench.run(creation("CreateOrUpdate", a="1"))
    assert bench.data == {"a": "1"}


async def test_create_or_update_survives_edits_of_others(bench: Bench) -> None:
    bench.store(old="1")
    bench.edit_after_reading(lambda: bench.store(other="1"), lambda: bench.store(other="2"))
    await bench.run(creation("CreateOrUpdate", a="1"))
    assert bench.data == {"a": "1"}
    assert len(bench.pauses.seconds) == 2


async def test_create_or_update_survives_a_deletion_by_others(bench: Bench) -> None:
    bench.store(old="1")
    bench.edit_after_reading(lambda: bench.server.delete("ConfigMap", "x", "default"))
    await bench.run(creation("CreateOrUpdate", a="1"))
    assert bench.data == {"a": "1"}


async def test_a_conflict_that_does_not_end_is_reported(bench: Bench) -> None:
    bench.store(old="1")
    bench.edit_after_reading(*[lambda: bench.store(other="1")] * 20)
    assert "(409 Conflict): " in await bench.refusal(creation("CreateOrUpdate", a="1"))
    assert len(bench.pauses.seconds) == 7


async def test_an_update_of_a_subresource_leaves_the_rest_of_the_object_alone(bench: Bench) -> None:
    bench.store(old="1")
    bench.server.on("PUT", f"{X}/status", bench.body)
    await bench.run({**creation("CreateOrUpdate", a="1"), "subresource": "status"})
    assert bench.writes == [f"POST {PATH}", f"PUT {X}/status"]


async def test_a_merge_patch_changes_what_it_names(bench: Bench) -> None:
    bench.store(old="1")
    await bench.run({"operation": "MergePatch", **TARGET, "mergePatch": {"data": {"new": "2"}}})
    assert bench.data == {"old": "1", "new": "2"}
    assert bench.last("PATCH").headers["content-type"] == "application/merge-patch+json"


async def test_a_json_patch_is_sent_as_one(bench: Bench) -> None:
    bench.store(old="1", keep="2")
    await bench.run(
        {"operation": "JSONPatch", **TARGET, "jsonPatch": [{"op": "remove", "path": "/data/old"}]}
    )
    assert bench.data == {"keep": "2"}
    assert bench.last("PATCH").body == [{"op": "remove", "path": "/data/old"}]


@rows.each(
    ("entry", "said"),
    [
        ({"op": "replace", "path": "/data/b/c", "value": "1"}, "(replace /data/b/c): it does not apply: "),
        ({"op": "test", "path": "/data/old", "value": "3"}, "(test /data/old): it does not apply: "),
        ({"op": "add", "path": "/data/new", "value": "1"}, ""),
    ],
)
async def test_of_a_json_patch_that_does_not_apply_the_entry_is_told(
    bench: Bench, entry: dict[str, Any], said: str
) -> None:
    bench.store(old="2")
    nothing = "the server rejected our request due to an error in our request"
    bench.server.refuse(status(422, "Invalid", nothing), lambda asked: asked.method == "PATCH")
    entries = [{"op": "add", "path": "/data/a", "value": "1"}, entry]
    refused = await bench.refusal({"operation": "JSONPatch", **TARGET, "jsonPatch": entries})
    assert (f"jsonPatch[1] {said}" if said else nothing) in refused


async def test_a_patch_may_be_for_a_subresource(bench: Bench) -> None:
    bench.store()
    bench.server.on("PATCH", f"{X}/status", bench.body)
    patch = {"operation": "MergePatch", **TARGET, "mergePatch": {"status": {}}, "subresource": "/status"}
    await bench.run(patch)
    assert bench.writes == [f"PATCH {X}/status"]


async def test_a_conflict_of_a_patch_is_tried_again(bench: Bench) -> None:
    bench.store(old="1")
    bench.server.refuse(409, lambda asked: asked.method == "PATCH")
    await bench.run({"operation": "MergePatch", **TARGET, "mergePatch": {"data": {"new": "2"}}})
    assert bench.data == {"old": "1", "new": "2"}


async def test_a_patch_that_asks_for_a_version_fails_on_another_one(bench: Bench) -> None:
    bench.store(old="1")
    patch = {"metadata": {"resourceVersion": "77"}, "data": {"new": "2"}}
    assert "409 Conflict" in await bench.refusal({"operation": "MergePatch", **TARGET, "mergePatch": patch})
    assert bench.data == {"old": "1"}


PATCHES: list[dict[str, Any]] = [
    {"operation": "MergePatch", "mergePatch": {}},
    {"operation": "JSONPatch", "jsonPatch": []},
    {"operation": "JQPatch", "jqFilter": "."},
]


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch["operation"])
async def test_a_patch_of_a_missing_object_fails_unless_that_is_ignored(
    bench: Bench, patch: dict[str, Any]
) -> None:
    assert "404 NotFound" in await bench.refusal({**patch, **TARGET})
    await bench.run({**patch, **TARGET, "ignoreMissingObject": True})


async def test_a_jq_patch_replaces_the_object_by_its_result(bench: Bench) -> None:
    bench.store(a="1")
    await bench.run({"operation": "JQPatch", **TARGET, "jqFilter": ".data.b = .data.a | del(.data.a)"})
    assert bench.data == {"b": "1"}
    assert bench.last("PUT").body["metadata"]["uid"] == bench.body["metadata"]["uid"]


async def test_a_jq_patch_starts_from_the_newest_object_after_a_conflict(bench: Bench) -> None:
    bench.store(n=1)
    bench.edit_after_reading(lambda: bench.store(n=10))
    await bench.run(
        {"operation": "JQPatch", **TARGET, "jqFilter": ".data.n += 1 | del(.metadata.resourceVersion)"}
    )
    assert bench.data == {"n": 11}


async def test_a_jq_patch_that_changes_nothing_writes_nothing(bench: Bench) -> None:
    bench.store(n=1)
    await bench.run({"operation": "JQPatch", **TARGET, "jqFilter": ".data.n = 1"})
    assert bench.writes == []


async def test_a_jq_patch_tells_true_from_1(bench: Bench) -> None:
    bench.store(n=1)
    await bench.run({"operation": "JQPatch", **TARGET, "jqFilter": ".data.n = true"})
    assert bench.data == {"n": True}


async def test_a_jq_patch_of_the_scale_reads_the_scale(bench: Bench) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments/d/scale"
    scale = {"kind": "Scale", "metadata": {"name": "d", "resourceVersion": "5"}, "spec": {"replicas": 1}}
    bench.server.on("GET", path, scale)
    bench.server.on("PUT", path, scale)
    target = {"kind": "Deployment", "name": "d", "namespace": "default", "subresource": "scale"}
    await bench.run({"operation": "JQPatch", **target, "jqFilter": ".spec.replicas = 3"})
    assert bench.last("PUT").body["spec"] == {"replicas": 3}


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("empty", "jqFilter gives 0 results for ConfigMap default/x; it has to give one object"),
        ("., .", "jqFilter gives 2 results for ConfigMap default/x"),
        (".data", "the API server did not update"),
        ("1", "jqFilter gives something that is not an object for ConfigMap default/x"),
        ('error("no luck")', "no luck"),
        (".data.n = 100000000000000000000000", "the API server cannot read it as JSON"),
    ],
    ids=["none", "two", "another", "number", "error", "large"],
)
async def test_a_jq_patch_without_a_usable_object_fails(bench: Bench, expression: str, message: str) -> None:
    bench.store(n=1)
    bench.server.on("PUT", X, status(400, "BadRequest"))
    text = await bench.refusal({"operation": "JQPatch", **TARGET, "jqFilter": expression})
    assert text.startswith("hook a.sh: KUBERNETES_PATCH_PATH, document [0] (JQPatch): ")
    assert message in text


async def test_what_jq_says_of_a_secret_is_not_reported(bench: Bench) -> None:
    bench.server.on("GET", X, {**CONFIG_MAP, "kind": "Secret", "data": {"key": "czNjcmV0"}})
    text = await bench.refusal({"operation": "JQPatch", **TARGET, "jqFilter": ".data.key | @base64d - 1"})
    assert "the log shows what jq says, but for a Secret" in text
    assert "s3cret" not in text


async def test_apply_is_server_side(bench: Bench) -> None:
    await bench.run({**creation("Apply", a="1"), "fieldManager": "me", "force": True})
    asked = bench.last("PATCH")
    assert asked.headers["content-type"] == "application/apply-patch+yaml"
    assert asked.query == {"fieldManager": "me", "force": "true"}
    assert bench.data == {"a": "1"}


async def test_each_hook_applies_under_its_own_name(bench: Bench) -> None:
    await bench.run(creation("Apply", a="1"))
    assert bench.last("PATCH").query["fieldManager"] == "addon-operator:web/a.sh"


async def test_a_conflict_over_fields_is_reported_at_once_with_the_remedy(bench: Bench) -> None:
    bench.server.on("PATCH", X, status(409, "Conflict", 'conflict with "kubectl": .data.a'))
    text = await bench.refusal(creation("Apply", a="1"))
    assert text.endswith(
        "conflict with \"kubectl\": .data.a; leave these fields out, or take them over with 'force: true'"
    )
    assert bench.writes == [f"PATCH {X}"]


async def test_what_a_webhook_says_of_an_apply_is_in_the_log_alone(bench: Bench) -> None:
    bench.server.on("PATCH", X, status(409, "Conflict", "webhook x denied it: s3cret"))
    with pytest.raises(object_patches.ObjectPatchError, match="s3cret") as caught:
        await bench.run(creation("Apply", a="1"))
    assert "the operator's log says why; leave these fields out" in caught.value.without_values


@pytest.mark.parametrize(
    ("operation", "policy"),
    [("Delete", "Foreground"), ("DeleteInBackground", "Background"), ("DeleteNonCascading", "Orphan")],
)
async def test_a_deletion_has_its_policy(bench: Bench, operation: str, policy: str) -> None:
    bench.store()
    await bench.run({"operation": operation, **TARGET})
    assert bench.data is None
    assert bench.last("DELETE").body["propagationPolicy"] == policy
    assert bench.deletions.deleted_by(KEY) == OWNER


@pytest.mark.parametrize("operation", ["Delete", "DeleteInBackground", "DeleteNonCascading"])
async def test_a_missing_object_is_deleted_already_unless_the_hook_insists(
    bench: Bench, operation: str
) -> None:
    await bench.run({"operation": operation, **TARGET})
    assert bench.deletions.deleted_by(KEY) is None
    assert "404 NotFound" in await bench.refusal(
        {"operation": operation, **TARGET, "ignoreMissingObject": False}
    )


def lingering(bench: Bench, answers: list[Answer], **metadata: object) -> None:
    body = {**CONFIG_MAP, "metadata": {"name": "x", "uid": "u1", "deletionTimestamp": "now", **metadata}}
    bench.server.on("DELETE", X, Answer(body))
    bench.server.on("GET", X, *[Answer(body)] * 3, *answers)


@pytest.mark.parametrize(
    "end",
    [status(404, "NotFound"), Answer({"metadata": {"name": "x", "uid": "u2"}})],
    ids=["gone", "made-anew"],
)
async def test_a_foreground_deletion_waits_until_the_object_is_gone(bench: Bench, end: Answer) -> None:
    lingering(bench, [end])
    await bench.run({"operation": "Delete", **TARGET})
    assert bench.server.requests.count(f"GET {X}") == 4
    assert sum(bench.pauses.seconds) < 1


async def test_the_wait_for_a_deletion_ends_and_names_what_holds_the_object(bench: Bench) -> None:
    lingering(bench, [], finalizers=["foregroundDeletion", "example.org/keep"])
    text = await bench.refusal({"operation": "Delete", **TARGET})
    assert text.endswith(
        "ConfigMap default/x is still there 30m after its deletion: the finalizers foregroundDeletion, "
        "example.org/keep hold it; use DeleteInBackground to continue without waiting"
    )
    assert 1800 <= sum(bench.pauses.seconds) < 1802
    assert bench.waited_for == [
        "ConfigMap default/x to be gone: the finalizers foregroundDeletion, example.org/keep hold it"
    ]


async def test_a_deletion_that_meets_nothing_waits_for_nothing(bench: Bench) -> None:
    bench.store(a="1")
    await bench.run({"operation": "Delete", **TARGET})
    assert bench.waited_for == []


async def test_a_wait_for_a_deletion_ends_as_soon_as_its_run_is_pointless(bench: Bench) -> None:
    lingering(bench, [], finalizers=["example.org/keep"])
    bench.stop_after = 3
    with pytest.raises(errors.AddonOperatorError, match=r"^superseded$"):
        await bench.run({"operation": "Delete", **TARGET}, creation("Create"))
    assert not [write for write in bench.writes if write.startswith("POST")]


async def test_other_deletions_do_not_wait(bench: Bench) -> None:
    lingering(bench, [])
    await bench.run({"operation": "DeleteInBackground", **TARGET})
    assert bench.server.requests.count(f"GET {X}") == 0


async def test_a_deletion_is_noted_before_the_api_server_knows_of_it(bench: Bench) -> None:
    noted: list[str | None] = []

    def delete(_: Asked) -> Answer:
        noted.append(bench.deletions.deleted_by(KEY))
        return Answer({"kind": "Status"})

    bench.server.on("DELETE", X, delete)
    await bench.run({"operation": "DeleteInBackground", **TARGET})
    assert noted == [OWNER]


async def test_a_deletion_that_is_refused_is_not_noted(bench: Bench) -> None:
    bench.server.on("DELETE", X, status(403, "Forbidden"))
    await bench.refusal({"operation": "Delete", **TARGET})
    assert bench.deletions.deleted_by(KEY) is None


async def test_operations_run_in_order_up_to_the_first_that_fails(bench: Bench) -> None:
    later = {"operation": "MergePatch", **TARGET, "mergePatch": {"data": {"late": "1"}}}
    text = await bench.refusal(creation("Create", a="1"), creation("Create", a="2"), later)
    assert "document [1] (Create)" in text
    assert bench.data == {"a": "1"}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            {"operation": "Delete", "kind": "Widget", "name": "w"},
            "document [1] (Delete): the API server has no kind 'Widget': is its CRD installed?",
        ),
        (
            {"operation": "Delete", "kind": "Pod", "name": "p"},
            "document [1] (Delete): Pod p has no namespace; every Pod needs one",
        ),
        (
            {"operation": "Delete", "kind": "Namespace", "name": "n", "namespace": "default"},
            "document [1] (Delete): Namespace default/n: a Namespace is in no namespace; remove it",
        ),
    ],
    ids=["kind", "namespace-missing", "namespace-too-much"],
)
async def test_what_cannot_be_meant_is_reported_before_anything_is_done(
    bench: Bench, bad: dict[str, Any], message: str
) -> None:
    assert (
        await bench.refusal(creation("Create", a="1"), bad) == f"hook a.sh: KUBERNETES_PATCH_PATH, {message}"
    )
    assert bench.writes == []


async def test_an_object_may_follow_the_definition_of_its_kind(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
    }
    widget = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    bench.server.on("POST", path, Answer(definition, 201))
    bench.server.on("POST", "/apis/example.org/v1/widgets", Answer(widget, 201))
    slow = 2

    async def sleep(seconds: float) -> None:
        await Pauses.sleep(bench.pauses, seconds)
        if len(bench.pauses.seconds) == slow:
            bench.server.serve("Widget", "example.org/v1", namespaced=False)

    monkeypatch.setattr(bench.pauses, "sleep", sleep)
    await bench.run({"operation": "Create", "object": definition}, {"operation": "Create", "object": widget})
    assert bench.writes == [f"POST {path}", "POST /apis/example.org/v1/widgets"]


async def test_a_kind_that_never_comes_is_reported(bench: Bench) -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
    }
    bench.server.on(
        "PATCH", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.org", definition
    )
    text = await bench.refusal(
        {"operation": "Apply", "object": definition}, {"operation": "Delete", "kind": "Widget", "name": "w"}
    )
    assert "document [1] (Delete): the API server has no kind 'Widget'" in text
    assert sum(bench.pauses.seconds) == 10


async def test_no_operation_asks_for_nothing(bench: Bench) -> None:
    await bench.run()
    assert bench.server.requests == []


@pytest.mark.slow
async def test_many_operations_are_looked_at_in_turns() -> None:
    pod = {"operation": "Delete", "kind": "Pod", "namespace": "a", "name": "b"}
    text = "\n".join(map(json.dumps, [*[pod] * 2500, {**pod, "kind": "Wrong"}]))
    operations = object_operations.parse(text, "hook")
    patcher = object_patches.ObjectPatcher(
        unused.unused(client.KubeClient),
        kinds.Kinds("Pod"),
        own_deletions.OwnDeletions(),
        informing.JqHere(),
        Pauses(),
    )
    turns = 0

    async def look() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    looking = asyncio.ensure_future(look())
    with pytest.raises(object_patches.ObjectPatchError, match=r"document \[2500\]"):
        await patcher.apply(operations, object_patches.HookWriter("hook", own_deletions.Owner(""), "m"))
    looking.cancel()
    assert turns == 2
