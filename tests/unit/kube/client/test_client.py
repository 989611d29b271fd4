"""The API client against a loopback server."""

import dataclasses
import pathlib
import socket
from collections.abc import AsyncIterator

import pytest
from msgspec import structs
from typing_extensions import override

from addon_operator.kernel import errors as kernel_errors
from addon_operator.kernel import fencing
from addon_operator.kube import api_errors, paths
from addon_operator.kube.access import auth, credentials
from addon_operator.kube.client import client, connection, retries
from tests.support import api_server, clocks
from tests.support.api_server import Answer, ApiServer, Pauses, status

PATH = "/api/v1/namespaces/addons/configmaps/values"
COLLECTION = "/api/v1/namespaces/addons/configmaps"


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with api_server.running() as running:
        yield running


@pytest.fixture
async def kube(server: ApiServer, pauses: Pauses) -> AsyncIterator[client.KubeClient]:
    async with api_server.client_of(server.url, pauses) as opened:
        yield opened


async def test_an_object_is_read_as_plain_json(server: ApiServer, kube: client.KubeClient) -> None:
    server.on("GET", PATH, {"kind": "ConfigMap", "data": {"global": "a: 1"}})
    assert await kube.get(PATH) == {"kind": "ConfigMap", "data": {"global": "a: 1"}}
    assert server.asked[0].headers["user-agent"].startswith("addon-operator/")
    assert server.asked[0].headers["accept"] == "application/json"


async def test_metadata_alone_is_asked_for_by_media_type(server: ApiServer, kube: client.KubeClient) -> None:
    server.on("GET", PATH, {"kind": "PartialObjectMetadata"})
    server.on("GET", COLLECTION, {"items": []})
    await kube.get(PATH, metadata_only=True)
    await kube.list_all(COLLECTION, metadata_only=True)
    one, many = (asked.headers["accept"] for asked in server.asked)
    assert one.startswith("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
    assert many.startswith("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")


@pytest.mark.parametrize(
    ("type_", "patch"),
    [
        (client.PatchType.MERGE, {"data": {"a": None}}),
        (client.PatchType.JSON, [{"op": "remove", "path": "/data/a"}]),
        (client.PatchType.STRATEGIC, {"spec": {}}),
    ],
    ids=lambda value: value.name if isinstance(value, client.PatchType) else None,
)
async def test_a_patch_names_its_kind(
    server: ApiServer,
    kube: client.KubeClient,
    type_: client.PatchType,
    patch: dict[str, object] | list[object],
) -> None:
    server.on("PATCH", PATH, {"kind": "ConfigMap"})
    await kube.patch(PATH, patch, type_)
    assert server.asked[0].headers["content-type"] == type_.value
    assert server.asked[0].body == patch


async def test_server_side_apply_names_its_manager(server: ApiServer, kube: client.KubeClient) -> None:
    server.on("PATCH", PATH, {"kind": "ConfigMap"})
    await kube.apply(PATH, {"kind": "ConfigMap"}, field_manager="me", force=True)
    assert server.asked[0].headers["content-type"] == "application/apply-patch+yaml"
    assert server.asked[0].query == {"fieldManager": "me", "force": "true"}


async def test_create_replace_and_delete_send_what_they_say(
    server: ApiServer, kube: client.KubeClient
) -> None:
    server.on("POST", COLLECTION, {"kind": "ConfigMap"})
    server.on("PUT", PATH, {"kind": "ConfigMap"})
    server.on("DELETE", PATH, {"kind": "Status"})
    await kube.create(COLLECTION, {"a": 1}, query={"dryRun": "All"})
    await kube.replace(PATH, {"a": 2})
    await kube.delete(PATH, uid="u", propagation="Foreground")
    assert server.requests == [f"POST {COLLECTION}", f"PUT {PATH}", f"DELETE {PATH}"]
    assert server.asked[0].query == {"dryRun": "All"}
    assert server.asked[2].body["preconditions"] == {"uid": "u"}
    assert server.asked[2].body["propagationPolicy"] == "Foreground"


async def test_a_list_is_read_in_pages(server: ApiServer, kube: client.KubeClient) -> None:
    server.on(
        "GET",
        COLLECTION,
        {"items": [{"n": 1}, {"n": 2}], "metadata": {"continue": "next", "resourceVersion": "7"}},
        {"items": [{"n": 3}], "metadata": {"resourceVersion": "7"}},
    )
    found = await kube.list_all(
        COLLECTION, label_selector="a=b,c!=d", field_selector="metadata.name=x", page_size=2
    )
    assert [item["n"] for item in found.items] == [1, 2, 3]
    assert found.resource_version == "7"
    first, second = (asked.query for asked in server.asked)
    assert first == {"labelSelector": "a=b,c!=d", "fieldSelector": "metadata.name=x", "limit": "2"}
    assert second == first | {"continue": "next"}


async def test_a_list_whose_place_was_forgotten_is_begun_anew_in_one_piece(
    server: ApiServer, kube: client.KubeClient
) -> None:
    server.on(
        "GET",
        COLLECTION,
        {"items": [{"n": 1}], "metadata": {"continue": "next"}},
        status(410, "Expired"),
        {"items": [{"n": 1}, {"n": 2}], "metadata": {"resourceVersion": "9"}},
    )
    found = await kube.list_all(COLLECTION)
    assert [item["n"] for item in found.items] == [1, 2]
    assert server.asked[2].query == {}


async def test_refused_credentials_are_read_anew_once(server: ApiServer, pauses: Pauses) -> None:
    tokens = api_server.Tokens(server.url)
    server.on("POST", COLLECTION, status(401, "Unauthorized"), {"kind": "ConfigMap"})
    async with api_server.client_of(server.url, pauses, source=tokens) as kube:
        await kube.create(COLLECTION, {})
    assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer token-1", "Bearer token-2"]
    assert pauses.seconds == []


async def test_credentials_that_stay_refused_are_an_error(server: ApiServer, pauses: Pauses) -> None:
    tokens = api_server.Tokens(server.url)
    server.on("GET", PATH, status(401, "Unauthorized", "Unauthorized"))
    async with api_server.client_of(server.url, pauses, source=tokens) as kube:
        with pytest.raises(api_errors.Unauthorized, match="does not accept the credentials"):
            await kube.get(PATH)
    assert len(server.asked) == 2


async def test_credentials_that_expire_are_read_anew_before_the_request(
    server: ApiServer, pauses: Pauses
) -> None:
    tokens = api_server.Tokens(server.url, seconds=60, now=pauses.time)
    server.on("GET", PATH, {})
    async with api_server.client_of(server.url, pauses, source=tokens) as kube:
        await kube.get(PATH)
        await kube.get(PATH)
        pauses.now += 61
        await kube.get(PATH)
    assert [asked.headers["authorization"][-1] for asked in server.asked] == ["1", "1", "2"]


async def test_many_refused_requests_renew_the_credentials_once(server: ApiServer, pauses: Pauses) -> None:
    tokens = api_server.Tokens(server.url)
    held = connection.Connection(api_server.access_to(server.url, tokens), pauses)
    stale = await held.current()
    assert await held.renew(stale) is await held.renew(stale)
    assert tokens.loaded == 2
    await held.close()


async def test_an_overloaded_server_is_asked_again_when_it_says_so(
    server: ApiServer, kube: client.KubeClient, pauses: Pauses
) -> None:
    server.on("POST", COLLECTION, Answer({}, 429, {"Retry-After": "3"}), {"kind": "ConfigMap"})
    assert await kube.create(COLLECTION, {}) == {"kind": "ConfigMap"}
    assert pauses.seconds == [pytest.approx(3.1)]


async def test_a_server_that_stays_overloaded_is_given_up(server: ApiServer, kube: client.KubeClient) -> None:
    server.on("GET", PATH, status(429, "TooManyRequests", "slow down"))
    with pytest.raises(api_errors.TooManyRequests, match="slow down"):
        await kube.get(PATH)
    assert len(server.asked) == 5


# HTTP itself repeats a GET once when the connection is closed without an answer.
@pytest.mark.parametrize(
    "failures",
    [[status(503, "ServiceUnavailable")] * 2, [Answer(hang_up=True)] * 4],
    ids=["503", "hang up"],
)
async def test_a_read_is_repeated_after_a_failure_of_the_server(
    server: ApiServer, kube: client.KubeClient, pauses: Pauses, failures: list[Answer]
) -> None:
    server.on("GET", PATH, *failures, {"kind": "ConfigMap"})
    assert await kube.get(PATH) == {"kind": "ConfigMap"}
    assert pauses.seconds == [pytest.approx(0.2), pytest.approx(0.4)]


async def test_a_write_is_not_repeated_after_a_failure_of_the_server(
    server: ApiServer, kube: client.KubeClient
) -> None:
    server.on("PATCH", PATH, status(500, "InternalError", "etcd is away"))
    with pytest.raises(api_errors.ApiError, match="etcd is away"):
        await kube.patch(PATH, {})
    assert len(server.asked) == 1


async def test_a_write_whose_connection_broke_is_not_repeated(
    server: ApiServer, kube: client.KubeClient
) -> None:
    server.on("POST", COLLECTION, Answer(hang_up=True))
    with pytest.raises(api_errors.Unreachable):
        await kube.create(COLLECTION, {})
    assert len(server.asked) == 1


async def test_an_answer_that_is_not_a_json_object_is_reported(
    server: ApiServer, kube: client.KubeClient
) -> None:
    for text in ("{broken", "[]", "<html>", ""):
        server.on("GET", PATH, Answer(text=text))
        with pytest.raises(api_errors.BrokenAnswer, match=PATH):
            await kube.get(PATH)


async def test_an_error_of_a_proxy_is_shown_shortened(server: ApiServer, kube: client.KubeClient) -> None:
    server.on("PUT", PATH, Answer(text="<html>\n" + "x" * 5000, status=502))
    with pytest.raises(api_errors.ApiError, match="502") as refused:
        await kube.replace(PATH, {})
    assert len(str(refused.value)) < 700
    assert "\n" not in str(refused.value)


async def test_a_server_that_is_not_there_is_one_sentence(pauses: Pauses) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    async with api_server.client_of(url, pauses) as kube:
        with pytest.raises(api_errors.Unreachable) as refused:
            await kube.get("/version")
    assert str(refused.value) == f"the API server {url} cannot be reached (Connection refused)"
    assert isinstance(refused.value, kernel_errors.AddonOperatorError)
    assert len(pauses.seconds) == 4


def of_a_kubeconfig(url: str) -> auth.ClusterAccess:
    files = (pathlib.Path("/home/me/config"),)
    source = credentials.AnonymousSource(url, {})
    return auth.ClusterAccess("context 'prod' of /home/me/config", url, source, files, "prod")


async def test_a_server_that_is_not_there_is_told_with_who_named_it_and_what_to_do() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    opened = connection.Connection(of_a_kubeconfig(url), clocks.Clock())
    using = await opened.current()
    with pytest.raises(api_errors.Unreachable) as refused:
        await opened.send(connection.Request("GET", "/version"), using)
    await opened.close()
    assert str(refused.value) == (
        f"the API server {url} cannot be reached (Connection refused); context 'prod' of /home/me/config "
        "names it: check that it runs, or choose another cluster with --context or --kubeconfig"
    )


async def test_a_url_that_a_setting_gives_is_told_with_the_setting() -> None:
    access = structs.replace(of_a_kubeconfig("https://5"), server_override="https://5")
    told = connection.sentence_of(TimeoutError(), "https://5", access)
    assert told.endswith(
        "did not answer in time; KUBE_SERVER or --kube-server names it: check the URL, and that it runs"
    )


async def test_an_answer_that_is_read_while_its_connection_is_closed_is_unreachable(
    server: ApiServer,
) -> None:
    server.on("GET", "/version", {"gitVersion": "v1"})
    opened = connection.Connection(of_a_kubeconfig(server.url), clocks.Clock())
    using = await opened.current()

    async def read_on() -> None:
        async with opened.open(connection.Request("GET", "/version"), using) as answer:
            await answer.read()
            await opened.close()
            answer.content._eof = False
            await answer.content.readany()

    with pytest.raises(api_errors.Unreachable, match="was closed"):
        await read_on()


async def test_credentials_that_are_refused_are_told_with_where_they_come_from(server: ApiServer) -> None:
    server.on("GET", PATH, status(401, "Unauthorized", "Unauthorized"))
    async with client.KubeClient(of_a_kubeconfig(server.url)) as kube:
        with pytest.raises(api_errors.Unauthorized) as refused:
            await kube.get(PATH)
    assert str(refused.value) == (
        "the API server does not accept the credentials (Unauthorized): check the token, certificate or exec "
        "plugin of context 'prod' of /home/me/config, or choose another cluster with --context or "
        "--kubeconfig"
    )


async def test_a_host_without_address_is_one_sentence(pauses: Pauses) -> None:
    async with api_server.client_of("http://does-not-exist.invalid", pauses) as kube:
        with pytest.raises(api_errors.Unreachable, match=r"cannot be reached \(.+\)"):
            await kube.get("/version")


async def test_a_closed_client_says_so(server: ApiServer, kube: client.KubeClient) -> None:
    server.on("GET", PATH, {})
    await kube.get(PATH)
    await kube.close()
    with pytest.raises(api_errors.Unreachable, match="closed"):
        await kube.create(COLLECTION, {})


ERRORS = [
    (404, "NotFound", api_errors.NotFound),
    (409, "Conflict", api_errors.Conflict),
    (409, "AlreadyExists", api_errors.AlreadyExists),
    (410, "Gone", api_errors.Gone),
    (422, "Invalid", api_errors.Invalid),
    (403, "Forbidden", api_errors.Forbidden),
    (418, "", api_errors.ApiError),
]


async def test_each_status_has_its_error(server: ApiServer, kube: client.KubeClient) -> None:
    found = []
    for code, reason, _ in ERRORS:
        server.on("POST", COLLECTION, status(code, reason, "because of this"))
        with pytest.raises(api_errors.ApiError, match="because of this") as refused:
            await kube.create(COLLECTION, {})
        found.append((refused.value.status, refused.value.reason, type(refused.value)))
    assert found == ERRORS


class Seen:
    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str, float]] = []

    def request_done(self, target: paths.Target, method: str, code: str, seconds: float) -> None:
        self.requests.append((target.verb, target.template, code, seconds))


async def test_every_try_is_observed(server: ApiServer, pauses: Pauses) -> None:
    seen = Seen()
    server.on("GET", PATH, Answer(hang_up=True), Answer(hang_up=True), status(503, "x"), {})
    async with api_server.client_of(server.url, pauses, done=seen.request_done) as kube:
        await kube.get(PATH)
    template = "/api/v1/namespaces/{namespace}/configmaps/{name}"
    assert [(verb, path, code) for verb, path, code, _ in seen.requests] == [
        ("get", template, "<error>"), ("get", template, "503"), ("get", template, "200"),
    ]  # fmt: skip


async def test_requests_beyond_the_burst_wait_for_their_turn(server: ApiServer, pauses: Pauses) -> None:
    server.on("GET", PATH, {})
    async with api_server.client_of(server.url, pauses, rate=retries.Rate(5, 2)) as kube:
        for _ in range(4):
            await kube.get(PATH)
    assert pauses.seconds == [pytest.approx(0.2), pytest.approx(0.2)]


async def test_a_request_out_of_the_limit_does_not_wait(server: ApiServer, pauses: Pauses) -> None:
    server.on("GET", PATH, {})
    async with api_server.client_of(server.url, pauses, rate=retries.Rate(1, 1)) as kube:
        for _ in range(3):
            await kube.request(connection.Request("GET", PATH), limited=False)
    assert pauses.seconds == []


async def test_credentials_for_other_clients_are_given_and_renewed(server: ApiServer, pauses: Pauses) -> None:
    tokens = api_server.Tokens(server.url)
    async with api_server.client_of(server.url, pauses, source=tokens) as kube:
        assert (await kube.current_credentials()).authorization == "Bearer token-1"
        assert (await kube.current_credentials(renew=True)).authorization == "Bearer token-2"


async def test_the_token_is_in_no_text_of_the_credentials() -> None:
    assert "secret" not in repr(credentials.Credentials("https://x", "Bearer secret"))


async def test_a_name_with_special_characters_reaches_the_server_unchanged(
    server: ApiServer, kube: client.KubeClient
) -> None:
    path = paths.of("rbac.authorization.k8s.io/v1", "clusterroles", name="system:a/b c%")
    server.on("GET", path, {"kind": "ClusterRole"})
    assert await kube.get(path) == {"kind": "ClusterRole"}


def test_access_tells_no_secret() -> None:
    access = auth.ClusterAccess("x", "https://x", credentials.AnonymousSource("https://x", {}))
    assert access.kubeconfig == ()


@dataclasses.dataclass
class Fence(fencing.Fence):
    left: float = 0.0

    @override
    def check(self) -> None:
        if not self.left:
            raise fencing.FencedError("this replica does not lead")

    @override
    def remaining(self) -> float:
        return self.left


def fenced(server: ApiServer, fence: Fence) -> client.KubeClient:
    return client.KubeClient(api_server.access_to(server.url), fence=fence)


async def test_a_replica_that_does_not_lead_writes_nothing_and_reads_all(server: ApiServer) -> None:
    server.on("GET", PATH, {"kind": "ConfigMap"})
    async with fenced(server, Fence()) as kube:
        for write in (kube.create, kube.replace, kube.patch):
            with pytest.raises(api_errors.Fenced, match="does not lead"):
                await write(PATH, {})
        with pytest.raises(api_errors.Fenced):
            await kube.delete(PATH)
        assert await kube.get(PATH) == {"kind": "ConfigMap"}
    assert server.requests == [f"GET {PATH}"]


async def test_a_write_is_given_up_when_the_right_to_write_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with client.KubeClient(api_server.access_to(url), fence=Fence(0.05)) as kube:
            with pytest.raises(api_errors.Unreachable, match="did not answer in time"):
                await kube.create(COLLECTION, {})


async def test_a_leader_writes(server: ApiServer) -> None:
    server.on("POST", COLLECTION, {"kind": "ConfigMap"})
    async with fenced(server, Fence(10.0)) as kube:
        assert await kube.create(COLLECTION, {}) == {"kind": "ConfigMap"}


async def test_pages_are_the_smaller_the_larger_their_objects(
    server: ApiServer, kube: client.KubeClient
) -> None:
    large, small = {"data": {"k": "x" * 700_000}}, {"data": {"k": "x" * 1000}}
    server.on(
        "GET",
        COLLECTION,
        {"items": [large] * 5, "metadata": {"continue": "a"}},
        {"items": [small] * 2, "metadata": {"continue": "b"}},
        {"items": [large]},
    )
    found = [page async for page in kube.pages(COLLECTION, label_selector="a=b")]
    assert [len(page) for page in found] == [5, 2, 1]
    assert [asked.query["limit"] for asked in server.asked] == ["5", "2", "500"]
    assert [asked.query.get("continue") for asked in server.asked] == [None, "a", "b"]
