"""The page in a browser, as people look at it: on phones and screens, in both themes, while things change."""

import asyncio
import contextlib
import os
import pathlib
import signal
from collections.abc import AsyncIterator
from typing import Final

import pytest
from aiohttp import web

from addon_operator.debug import debug_client, page_server
from addon_operator.status import page_content, page_site
from tests.integration import browser, operator_process, operator_site
from tests.unit.status import page_samples

AXE: Final = pathlib.Path(__file__).parent / "axe/node_modules/axe-core/axe.min.js"
CANARY: Final = "hunter2-canary"
SIZES: Final = ((360, 800), (768, 1000), (1400, 900))
SCHEMES: Final = ("light", "dark")
SHOTS: Final = "PAGE_SCREENSHOTS"
"""Variable with a directory that keeps the screenshots, for people who want to look at them."""
_CHECK: Final = """
axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]}).then(
  (found) => found.violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.html).join(" ")}`))
"""
_VISIBLE: Final = """
[...document.querySelectorAll(".modules > li")].filter((each) => each.offsetParent !== null)
  .map((each) => each.querySelector(".name").textContent)
"""

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(browser.PROGRAM is None, reason=browser.MISSING),
]


@pytest.fixture
async def tab(tmp_path: pathlib.Path) -> AsyncIterator[browser.Tab]:
    async with browser.tab(tmp_path / "profile") as opened:
        yield opened


class Served:
    """The page, with what it shows to be changed."""

    def __init__(self, content: page_content.Content) -> None:
        self.content = content
        self.address = ""

    async def gather(self) -> page_content.Content:
        return self.content

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator["Served"]:
        app = web.Application()
        page_site.PageSite(self.gather).serve(app)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        port = operator_process.free_port()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        self.address = f"http://127.0.0.1:{port}/"
        try:
            yield self
        finally:
            await runner.cleanup()


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not there: npm ci --prefix tests/integration/axe")
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(page_samples.every_state(), id="leader"),
        pytest.param(page_samples.standby(), id="standby", marks=pytest.mark.slow),
    ],
)
async def test_it_reads_well_on_phones_and_screens_in_both_themes(
    content: page_content.Content, tab: browser.Tab, tmp_path: pathlib.Path
) -> None:
    shots = pathlib.Path(os.environ.get(SHOTS) or tmp_path)
    whose = "leader" if content.leader is None else "standby"
    async with Served(content).serving() as served:
        await tab.open(served.address)
        await tab.until("document.querySelector('summary time').textContent.startsWith('for ')")
        await tab.run(f"Date.now = () => Date.parse('{page_samples.AT}') + 150_000; 0")
        next_try = "document.querySelector('#m-ingress-nginx .next').textContent"
        await tab.until(f"{next_try}.startsWith('next try in 2 min, or sooner')")
        await tab.run("document.querySelector('#m-ingress-nginx details').open = true")
        last_run = "[...document.querySelectorAll('#m-ingress-nginx dd')].at(-1).textContent"
        assert await tab.run(last_run) == "2 min ago (2026-11-25 03:12:40 UTC)", "as logs have it"
        places = (
            "[...document.querySelectorAll('.operator, fieldset, .modules')].map((each) => each.className)"
        )
        assert await tab.run(places) == ["operator failed", "", "modules"], "what is wrong stands first"
        await tab.run(f"{await asyncio.to_thread(AXE.read_text)}; 0")
        for width, height in SIZES:
            for scheme in SCHEMES:
                await tab.look_like(width, height, scheme)
                assert await tab.run(_CHECK) == []
                assert await tab.run("document.documentElement.scrollWidth") <= width, "nothing is cut off"
                await tab.screenshot(shots / f"{whose}-{width}-{scheme}.png")
    assert tab.complaints == []
    assert set(tab.requested) == {served.address, f"{served.address}live"}


@pytest.mark.slow
async def test_of_a_thousand_modules_some_are_found_by_state_and_by_name(tab: browser.Tab) -> None:
    async with Served(page_samples.many(1000)).serving() as served:
        await tab.open(served.address)
        assert len(await tab.run(_VISIBLE)) == 1000
        await tab.run("document.getElementById('show-failed').click()")
        assert await tab.run(_VISIBLE) == []
        assert await tab.run("document.querySelector('.none').offsetParent !== null")
        await tab.run("document.getElementById('show-ready').click()")
        await tab.run(
            "const name = document.getElementById('find'); name.value = '-77'; "
            "name.dispatchEvent(new Event('input'))"
        )
        found = ["module-77", *(f"module-77{digit}" for digit in range(10))]
        assert await tab.run(_VISIBLE) == found


@pytest.mark.slow
async def test_who_looks_keeps_filter_details_and_place_when_something_changes(tab: browser.Tab) -> None:
    plain = page_samples.every_state()
    starting = page_content.Content(state="x", unready="the operator is starting", knows_modules=False)
    async with Served(starting).serving() as served:
        await tab.open(served.address)
        await tab.run("window.isKept = true")
        served.content = plain
        await tab.until("document.getElementById('show-failed') !== null")
        await tab.run("document.getElementById('show-failed').click()")
        await tab.run("document.querySelector('#m-grafana details').open = true")
        await tab.run("document.querySelector('#m-grafana summary').focus()")
        fallen = [
            page_samples.row("web", 50, "Failed") if row["name"] == "web" else row for row in plain.modules
        ]
        served.content = page_content.Content(
            namespace="addons", state="x", modules=fallen, errors={**plain.errors, "web": "helm failed"}
        )
        await tab.until("document.getElementById('count-failed').textContent === '3'")
        assert await tab.run(_VISIBLE) == ["ingress-nginx", "grafana", "web"]
        assert await tab.run("document.querySelector('#m-grafana details').open")
        assert await tab.run("document.activeElement.closest('li').id") == "m-grafana"
        assert "3 failed" in await tab.run("document.getElementById('said').textContent"), "read aloud"
        assert await tab.run("document.title") == "3 failed · addons · addon-operator"
        assert await tab.run("window.isKept"), "the page was not loaded anew"


@pytest.mark.slow
async def test_a_failure_and_the_end_of_the_operator_are_seen_while_one_looks(
    tab: browser.Tab, site: operator_site.Site
) -> None:
    web_module = site.module(
        "020-web", {"size": "{{ .Values.web.size | quote }}"}, values="webEnabled: true\nweb: {size: 1}\n"
    )
    site.hook(
        web_module,
        "check.sh",
        {"beforeHelm": 1},
        f'grep -q \'"size":1\' "$VALUES_PATH" || {{ echo {CANARY} >&2; exit 1; }}',
    )
    first = await asyncio.to_thread(_started, site)
    address = f"http://127.0.0.1:{first.port}/"
    await tab.open(address)
    await tab.until("document.querySelector('#m-web .word').textContent === 'Ready'")
    await asyncio.to_thread(lambda: site.config(web=f"size: 2\nnote: {CANARY}\n"))
    await tab.until("document.querySelector('#m-web').className === 'failed'")
    assert "hook check.sh failed" in await tab.run("document.querySelector('#m-web .what').textContent")
    os.kill(first.pid, signal.SIGKILL)
    await tab.until("!document.getElementById('lost').hidden")
    assert "The operator does not answer. What is shown is" in await tab.run(
        "document.getElementById('lost').textContent"
    )
    assert await tab.run("document.title.startsWith('no answer · ')")
    banner = "getComputedStyle(document.querySelector('.operator')).borderLeftColor"
    assert await tab.run(banner) == await tab.run(
        "getComputedStyle(document.getElementById('lost')).borderTopColor"
    )
    assert CANARY not in await tab.run("document.documentElement.outerHTML")
    second = await asyncio.to_thread(_started, site, first.port)
    await tab.until("document.getElementById('lost').hidden")
    await tab.until("!document.title.startsWith('no answer')")
    assert {each for each in tab.requested if not each.startswith(address)} == set()
    second.stop()


async def test_who_may_sees_values_changes_and_outputs_but_no_secret(
    tab: browser.Tab, site: operator_site.Site
) -> None:
    web_module = site.module(
        "020-web", {"size": "{{ .Values.web.size | quote }}"}, values="webEnabled: true\n"
    )
    site.hook(web_module, "look.sh", {"beforeHelm": 1}, f"echo looked at {CANARY}")
    site.config(web="size: 1\n")
    site.secret(web=f"token: {CANARY}\n")
    operator = await asyncio.to_thread(_started, site)
    await asyncio.to_thread(operator.wait_metric, 1, "module_info", module="web", state="Ready")
    await asyncio.to_thread(lambda: site.config(web="size: 2\n"))
    await asyncio.to_thread(operator.wait_until, lambda: site.revisions() == {"web": 2}, "the edit is there")
    client = debug_client.DebugClient(pathlib.Path(site.environment()["DEBUG_UNIX_SOCKET"]))
    async with page_server.serving(client, 0) as link:
        await tab.open(link)
        await tab.open(await tab.run("document.querySelector('#m-web a').href"))
        assert await tab.run("document.querySelector('h1').textContent") == "web"
        text = await tab.run("document.body.innerText")
        await tab.screenshot(site.root / "module.png")
    assert "looked at ***" in text
    assert "revision 1 → 2" in text
    assert "-  size: '1'" in text
    assert "+  size: '2'" in text
    assert "token: '***'" in text
    assert CANARY not in await tab.run("document.documentElement.outerHTML")
    assert tab.complaints == []


def _started(site: operator_site.Site, port: int | None = None) -> operator_process.OperatorProcess:
    operator = site.start_with((), site.environment({}), port=port)
    operator.wait_until(lambda: "m-web" in operator.get("/").text, "the page shows the module")
    return operator
