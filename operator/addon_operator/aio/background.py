"""Work that goes on until the end of the process, whatever goes wrong in it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from addon_operator.aio import waiting

RESTART_SECONDS: Final = 10.0
"""From a defect to the next beginning."""


async def kept(
    work: Callable[[], Awaitable[None]],
    failed: Callable[[Exception, float], None],
    sleep: waiting.Sleep = asyncio.sleep,
) -> None:
    """Do the work, and begin again after a defect; ends when the work ends by itself.

    ``failed`` gets the defect, and the seconds until it begins again.
    """
    while True:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - nobody else waits for this task
            failed(error, RESTART_SECONDS)
            await sleep(RESTART_SECONDS)
        else:
            return
