"""A debug endpoint in a thread of its own, for commands that know no event loop."""

import asyncio
import contextlib
import pathlib
import threading
from collections.abc import Iterator

import structlog

from addon_operator.debug import debug_site
from addon_operator.settings import settings
from tests.unit.debug import inspected


@contextlib.contextmanager
def running(path: pathlib.Path) -> Iterator[inspected.World]:
    """Serve a small operator at ``path``; its main queue has a task that fails."""
    started, made = threading.Event(), list[inspected.World]()
    stop: asyncio.Future[None]
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        nonlocal stop
        stop = loop.create_future()
        world = inspected.make()
        world.api.serve(world.engine)
        await inspected.fail_a_task(world)
        made.append(world)
        where = settings.Settings(namespace="addons", debug_unix_socket=path)
        async with debug_site.serving(where, world.api, structlog.get_logger()):
            started.set()
            await stop

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert started.wait(60), "the endpoint does not come up"
    try:
        yield made[0]
    finally:
        loop.call_soon_threadsafe(stop.set_result, None)
        thread.join(60)
        loop.close()
