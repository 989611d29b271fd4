"""Notices at once that somebody touches an object that says whom the API server asks."""

import asyncio
from typing import Final

from addon_operator.aio import waiting
from addon_operator.kube import api_errors
from addon_operator.kube.client import client, connection
from addon_operator.kube.informers import wire

_WATCH_SECONDS: Final = 270
# A stream without a word for so long is dead: the server ends it before.
_SILENCE_SECONDS: Final = _WATCH_SECONDS + 30.0
_BACKOFF: Final = waiting.Backoff(1.0, 30.0)
_NO_RIGHT_SECONDS: Final = 300.0


async def keep(
    kube: client.KubeClient,
    collection: str,
    name: str,
    changed: asyncio.Event,
    time: waiting.Time,
) -> None:
    """Set ``changed`` when that object of the collection may have changed, until cancelled.

    Without the right to watch the registrar's regular look has to do.
    """
    failures = 0
    while True:
        try:
            await _watch(kube, collection, name, changed)
        except api_errors.Forbidden:
            failures += 1
            await time.sleep(_NO_RIGHT_SECONDS)
            continue
        except api_errors.KubernetesError:
            failures += 1
        else:
            failures = 0
        await time.sleep(_BACKOFF.after(failures + 1, time.jitter()))


async def _watch(kube: client.KubeClient, collection: str, name: str, changed: asyncio.Event) -> None:
    # Without a resourceVersion the present state comes first, so that nothing is missed between two watches.
    query = {
        "watch": "1",
        "fieldSelector": f"metadata.name={name}",
        "timeoutSeconds": str(_WATCH_SECONDS),
    }
    async with kube.stream(connection.Request("GET", collection, query, timeout=None)) as content:
        # It may have been removed while nobody watched, of which the watch says nothing.
        changed.set()
        async for _ in wire.batches(content.iter_any(), _SILENCE_SECONDS):
            changed.set()
