"""Who the operator is for the API server."""

import base64
import json

import pytest

from addon_operator.kube.access import credentials
from addon_operator.kube.client import client, own_user
from tests.support import api_server

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
NAME = "system:serviceaccount:addons:operator"


def answer(name: str) -> api_server.Answer:
    return api_server.Answer({"status": {"userInfo": {"username": name}}}, 201)


async def test_the_api_server_is_asked_once(server: api_server.ApiServer, kube: client.KubeClient) -> None:
    server.on("POST", REVIEWS, answer(NAME))
    own = own_user.OwnUser(kube)
    assert [await own.name(), await own.name()] == [NAME, NAME]
    assert server.requests == [f"POST {REVIEWS}"]


async def test_what_is_not_known_yet_is_asked_for_again(
    server: api_server.ApiServer, kube: client.KubeClient
) -> None:
    server.on("POST", REVIEWS, api_server.status(403, "Forbidden"), answer("jane"))
    own = own_user.OwnUser(kube)
    assert [await own.name(), await own.name()] == [None, "jane"]


def token(**claims: str) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.sig"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (token(sub=NAME), NAME),
        (token(sub="jane"), None),
        (token(), None),
        ("e30.!.sig", None),
        ("opaque", None),
    ],
    ids=["a service account", "somebody of another issuer", "no subject", "not base64", "opaque"],
)
async def test_the_token_of_a_service_account_tells_when_the_api_server_does_not(
    server: api_server.ApiServer, monkeypatch: pytest.MonkeyPatch, given: str, name: str | None
) -> None:
    server.on("POST", REVIEWS, api_server.status(404, "NotFound"))
    kube = api_server.client_of(server, api_server.Pauses())

    async def current(*, renew: bool = False) -> credentials.Credentials:
        return credentials.Credentials(server="https://x", authorization=f"Bearer {given}")

    monkeypatch.setattr(kube, "current_credentials", current)
    assert await own_user.OwnUser(kube).name() == name
