"""Where threads come from.

* What takes only this process's own time, or reads a file: :func:`asyncio.to_thread`. The loop has a few of
  these threads, and requests of the API server are read and answered there, so nothing may stay long.
* What waits for another process, which may take a minute: :func:`run`, in the pool for that purpose. It
  holds up nothing in other pools.
* What may be left behind when the process ends: :func:`run_apart`.
"""

import asyncio
import contextvars
import functools
import threading
from collections.abc import Callable
from concurrent import futures
from typing import Final, ParamSpec, TypeVar

EDITS: Final = futures.ThreadPoolExecutor(16, "checks of values")
"""For checks of ConfigMap, Secret and modules' values by the worker for that and by programs of modules.

More threads than ask at once: what has a time limit waits for the worker, and not for a thread.
"""
OUTPUTS: Final = futures.ThreadPoolExecutor(4, "outputs of hooks")
"""For what hooks print and write, and indexes of charts."""
RULES: Final = futures.ThreadPoolExecutor(2, "rules of health")
"""For modules' rules about health."""
FILES: Final = futures.ThreadPoolExecutor(4, "files of hooks")
"""Which write and read the files of runs; each waits for the disk, and for its turn in this process."""

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


async def run(
    pool: futures.Executor,
    function: Callable[_Arguments, _Result],
    *args: _Arguments.args,
    **kwargs: _Arguments.kwargs,
) -> _Result:
    """Do as :func:`asyncio.to_thread`, in a thread of the pool."""
    call = functools.partial(contextvars.copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(pool, call)


async def run_apart(
    function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> _Result:
    """Run work in a thread of its own; a cancellation, and the end of the process, leave it behind.

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
