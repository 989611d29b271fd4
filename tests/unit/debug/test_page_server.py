"""The page with values is for who has its link, and shows what the operator's debug endpoint says."""

import contextlib
import pathlib
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import aiohttp
import orjson
import pytest
from typing_extensions import override

from addon_operator.debug import debug_client, page_details, page_server
from tests.unit.debug import inspected
from tests.unit.status import page_samples

DETAILS: Final = page_details.Details(
    name="web",
    values={"size": 1, "password": "***"},
    error="helm upgrade failed: <no>",
    differences=[
        {
            "resource": "ConfigMap web",
            "path": "/data/level",
            "manager": "kubectl-edit",
            "expected": "info",
            "live": "debug",
        }
    ],
    revisions="revision 6 → 7\n--- a\n+++ b\n-old\n+new\n",
    pending="",
    outputs={"pods.sh": "found <3> pods"},
)


class Client(debug_client.DebugClient):
    """Answers with what it was given."""

    def __init__(self, **documents: object) -> None:
        super().__init__(pathlib.Path("socket"))
        self.documents = documents

    @override
    def get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        found = self.documents[path.rpartition("/")[2].removesuffix(".json")]
        if isinstance(found, Exception):
            raise found
        return orjson.loads(orjson.dumps(found))


def client() -> Client:
    return Client(page=page_samples.every_state(), details=DETAILS)


@contextlib.asynccontextmanager
async def opened(asked: Client) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    async with page_server.serving(asked, 0) as link, aiohttp.ClientSession() as session:
        yield session, link


async def test_the_link_opens_the_page_and_pages_of_modules() -> None:
    async with opened(client()) as (session, link):
        async with session.get(link) as answer:
            page = await answer.text()
            assert "Set-Cookie" not in answer.headers, "browsers send cookies to all ports of this machine"
        assert "ingress-nginx" in page
        assert 'href="module/grafana"' in page
        assert 'href="/metrics"' not in page, "the operator has that, and this page has not"
        async with session.get(f"{link}module/web") as answer:
            module = await answer.text()
    head = module.partition("<h2>")[0]
    assert "Progressing" in head, "how it is stands at the top, as the page of all says it"
    assert "2 of 5 pods updated: Deployment web" in head
    assert "password: &#x27;***&#x27;" in module
    assert "helm upgrade failed: &lt;no&gt;" in module
    assert "found &lt;3&gt; pods" in module
    assert "ConfigMap web: /data/level (by kubectl-edit)" in module
    assert '<span class="del">-info</span>\n<span class="add">+debug</span>' in module
    assert '--- a\n+++ b\n<span class="del">-old</span>\n<span class="add">+new</span>' in module


async def test_nobody_else_sees_anything() -> None:
    async with opened(client()) as (session, link):
        address = link.removesuffix("/").rpartition("/")[0]
        for path in ("/", "/wrong/", "/wrong/live", "/wrong/module/web", "/live"):
            async with session.get(address + path) as answer:
                assert answer.status in (403, 404)
                assert "web" not in await answer.text()
        async with session.get(f"{address}/wrong/") as answer:
            assert await answer.text() == "open the link that 'addon-operator page' printed\n"
        async with session.get(link, headers={"Host": "evil.example"}) as answer:
            assert answer.status == 403, "a name of somebody else that leads to this machine"


async def test_an_operator_that_cannot_be_asked_is_said_in_one_sentence() -> None:
    gone = debug_client.DebugClientError("no operator runs")
    async with opened(Client(page=gone, details=gone)) as (session, link), session.get(link) as answer:
        assert (answer.status, await answer.text()) == (502, "no operator runs\n")


async def test_an_operator_of_another_version_is_said() -> None:
    async with opened(Client(page={"unknown": 1})) as (session, link), session.get(link) as answer:
        assert answer.status == 502
        assert "the operator is one of another version" in await answer.text()


async def test_a_port_that_is_taken_is_said() -> None:
    async with opened(client()) as (_, link):
        port = int(re.search(r":(\d+)/", link)[1])  # type: ignore[index]  # it has one
        with pytest.raises(page_server.PageListenError, match=f"port {port} of 127.0.0.1 .*choose another"):
            async with page_server.serving(client(), port):
                pass


async def test_details_of_a_module_hide_what_is_sensitive() -> None:
    world = inspected.make()
    details = await world.engine.details("web")
    assert details.outputs == {"pods.sh": "found 3 pods\nthe password is ***"}
    assert inspected.SECRET not in page_details.render(details, page_samples.every_state())
    assert details.revisions == "revision 6 → 7\n+the change of web\n"
