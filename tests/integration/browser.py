"""A headless Chromium, driven through its debugging protocol, to look at pages as people do."""

import asyncio
import base64
import contextlib
import itertools
import json
import pathlib
import re
import shutil
import signal
from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp

PROGRAM: Final = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
MISSING: Final = "there is no Chromium on this machine: apt-get install chromium"

_FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--remote-debugging-port=0",
    "--hide-scrollbars",
)
_LISTENING: Final = re.compile(rb"DevTools listening on (ws://\S+)")
_START_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.05


class Tab:
    """One page of the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loaded = asyncio.Event()
        self.complaints: list[str] = []
        """Errors and warnings of the console, and exceptions."""
        self.requested: list[str] = []
        """Addresses that were asked for."""

    async def listen(self) -> None:
        """Take in what the browser says, until cancelled."""
        async for message in self._socket:
            document = json.loads(message.data)
            if (number := document.get("id")) in self._answers:
                self._answers.pop(number).set_result(document)
            self._note(document.get("method", ""), document.get("params", {}))

    def _note(self, method: str, said: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded.set()
        elif method == "Network.requestWillBeSent":
            self.requested.append(said["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(said["exceptionDetails"]))
        elif method == "Log.entryAdded" and said["entry"]["level"] in ("warning", "error"):
            self.complaints.append(said["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and said["type"] in ("warning", "error"):
            self.complaints.append(json.dumps(said["args"]))

    async def ask(self, method: str, **params: object) -> dict[str, Any]:
        """Return what a method of the protocol answers."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        document = await asyncio.wait_for(answer, _START_SECONDS)
        assert "error" not in document, f"{method}: {document['error']}"
        return document.get("result", {})  # type: ignore[no-any-return]  # JSON

    async def open(self, address: str) -> None:
        """Load a page."""
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.ask(f"{domain}.enable")
        loaded = self._loaded = asyncio.Event()
        await self.ask("Page.navigate", url=address)
        await asyncio.wait_for(loaded.wait(), _START_SECONDS)

    async def run(self, script: str) -> Any:  # noqa: ANN401 - JSON
        """Return what a script gives, waited for."""
        answer = await self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, script: str, seconds: float = _START_SECONDS) -> None:
        """Wait until a script gives what is true."""
        every = round(_LOOK_SECONDS * 1000)
        waiting = f"if ({script}) resolve(true); else setTimeout(look, {every});"
        await asyncio.wait_for(
            self.run(f"new Promise((resolve) => {{ const look = () => {{ {waiting} }}; look(); }})"), seconds
        )

    async def look_like(self, width: int, height: int, scheme: str) -> None:
        """Be a screen of that size, with the color scheme ``light`` or ``dark``."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < height}
        await self.ask("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.ask("Emulation.setEmulatedMedia", features=features)

    async def screenshot(self, path: pathlib.Path) -> None:
        """Write what is seen, the whole page, as a PNG."""
        shot = await self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        await asyncio.to_thread(path.write_bytes, base64.b64decode(shot["data"]))


@contextlib.asynccontextmanager
async def tab(profile: pathlib.Path) -> AsyncIterator[Tab]:
    """Start a browser with one empty page, until the context ends."""
    assert PROGRAM is not None, MISSING
    async with contextlib.AsyncExitStack() as stack:
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            *_FLAGS,
            f"--user-data-dir={profile}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        stack.push_async_callback(_end, process)
        address = await asyncio.wait_for(_listening(process), _START_SECONDS)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        pages = re.sub(r"^ws(://[^/]+)/.*", r"http\1/json/list", address)
        async with session.get(pages) as answer:
            page = next(each for each in await answer.json() if each["type"] == "page")
        socket = await stack.enter_async_context(
            session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)
        )
        made = Tab(socket)
        listening = asyncio.create_task(made.listen())
        stack.callback(listening.cancel)
        yield made


async def _listening(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async for line in process.stderr:
        if (found := _LISTENING.search(line)) is not None:
            return found[1].decode()
    raise AssertionError("Chromium ended before it listened")


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), 5.0)
    except TimeoutError:
        process.kill()
        await process.wait()
