"""``python -m tests.benchmarks.memory_server NUMBER``: the admission server with so many presets.

It writes its port and authority as a line of JSON, and then for each line that it reads what it takes now.
"""

import asyncio
import datetime as dt
import json
import os
import sys
from typing import Final

from addon_operator.admission import events, review_budget, reviews
from addon_operator.admission.certificates import certificates, tls
from addon_operator.admission.presets import preset_cache
from addon_operator.admission.server import site
from addon_operator.app import admission, graph  # noqa: F401 - what every operator has imported
from tests.benchmarks import pods, surroundings
from tests.support import review_handlers

PATH: Final = "/mutate-pods"
_DAY: Final = dt.timedelta(days=1)


class _Observer:
    """Counts what was turned away; everything else is seen from the other side."""

    def __init__(self) -> None:
        self.refused_by_status: dict[int, int] = {}

    def __call__(self, event: events.Event) -> None:
        if isinstance(event, events.ReviewRefused):
            self.refused_by_status[event.status] = self.refused_by_status.get(event.status, 0) + 1


async def main() -> None:
    """Serve until nothing more is asked."""
    observer, entered = _Observer(), 0

    async def holding(review: reviews.Review) -> reviews.ReviewVerdict:
        nonlocal entered
        entered += 1
        await asyncio.Event().wait()
        return reviews.ALLOWED

    cache = preset_cache.PresetCache(observer)
    for preset in pods.many_presets(int(sys.argv[1])):
        cache.put(preset)
    now = dt.datetime.now(dt.UTC)
    authority = certificates.make_authority(now, _DAY)
    live = tls.LiveTls()
    live.use(certificates.make_server(authority, ["127.0.0.1"], now, _DAY))
    account = review_budget.MemoryBudget(review_budget.Limits())
    routes = {PATH: site.Route(review_handlers.Calling(holding), timeout=300)}
    served = site.AdmissionSite(routes, live, site.ListenOptions("127.0.0.1", 0), observer, account)
    await served.start()
    _say({"port": served.port, "authority": authority.certificate.decode()})
    while line := await asyncio.to_thread(sys.stdin.readline):
        # What was sent before has to be read first.
        await asyncio.sleep(0.02 if line.strip() else 1)
        _say(
            {
                "resident": surroundings.resident_mebibytes(os.getpid()),
                "held": account.memory / (1 << 20),
                "entered": entered,
                "refused": observer.refused_by_status,
            }
        )


def _say(document: object) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
