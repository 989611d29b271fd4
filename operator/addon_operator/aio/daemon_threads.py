"""Blocking work that nobody waits for when the process ends."""

import asyncio
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


async def run(
    function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> _Result:
    """Run work in a thread; a cancellation, and the end of the process, leave it behind.

    Only for what may stop anywhere, such as reading files. The loop's own threads are waited for at the end.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Result] = loop.create_future()

    def settle(result: _Result | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # without an error there is a result

    def work() -> None:
        result, error = None, None
        try:
            result = function(*args, **kwargs)
        except BaseException as raised:  # noqa: BLE001 - passed on
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, name=getattr(function, "__name__", "work"), daemon=True).start()
    return await done
