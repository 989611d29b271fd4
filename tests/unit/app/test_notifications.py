"""The Secret of notifications: what is said of one that is right, wrong, gone, and there again."""

import asyncio
import base64
import json
from collections.abc import Callable

from addon_operator.app import notifications
from addon_operator.documents import json_documents
from addon_operator.kernel import fencing
from addon_operator.kube.informers import object_changes
from addon_operator.settings import settings as settings_module
from addon_operator.telemetry import metrics
from tests.support import api_server, clocks, logs, told_events, unused, watches

RIGHT = "targets: [{name: ops, url: 'https://hooks.example/canary', format: slack}]"
PLACE = "Secret addons/addon-operator-notify"
MISSING_KEY = "the key notify.yaml is missing; did you mean 'notify.yml'?"


class Bench:
    def __init__(self) -> None:
        self.log, self.meters, self.events = logs.Lines(), metrics.Metrics(), told_events.Recorder()
        settings = settings_module.Settings(namespace="addons")
        made = notifications.of_settings(
            settings, lambda *_: None, self.events, self.meters, unused.unused(fencing.Fence), self.log
        )
        assert made is not None
        self.made = made

    async def secret(self, key: str | None) -> None:
        """Have the Secret hold a file below a key, or be gone."""
        document = {"data": {key: base64.b64encode(RIGHT.encode()).decode()}} if key else {}
        kept = json_documents.pack(json.dumps({"object": document}).encode())
        type_ = object_changes.ChangeType.MODIFIED if key else object_changes.ChangeType.DELETED
        where = object_changes.ObjectKey("addons", "addon-operator-notify")
        await self.shown_after(lambda: self.made.changed([object_changes.Change(type_, where, kept, "1")]))

    async def shown_after(self, happen: Callable[[], None]) -> None:
        """Wait until ``notify list`` says anew what is wrong; a thread reads the file."""
        before = self.made.notifier.source
        happen()
        async with asyncio.timeout(30):
            while self.made.notifier.source is before:  # noqa: ASYNC110 - nothing is told of it
                await asyncio.sleep(0.001)
        await clocks.settle()

    def problem(self) -> str:
        return self.made.notifier.source["problem"]

    def gauges(self) -> tuple[float, float]:
        """How many targets there are, and whether the file is wrong."""
        counted = self.meters.notifications
        return counted.targets._value.get(), counted.config_invalid._value.get()


async def test_a_secret_that_is_wrong_or_gone_is_said_in_the_log_the_list_and_by_gauges() -> None:
    bench = Bench()
    # It knows no Module objects.
    kube = api_server.client_of(api_server.ApiServer(), api_server.Pauses())
    bench.made.begin(kube, watches.Watches(), lambda _: None)
    await bench.shown_after(bench.made.synced)
    assert bench.problem() == f"nobody is notified, as there is no {PLACE}"
    assert bench.gauges() == (0, 0)

    await bench.secret("notify.yaml")
    assert (bench.problem(), bench.gauges()) == ("", (1, 0))
    await bench.secret("notify.yml")
    assert bench.problem() == f"{PLACE} is wrong, and what it said before stays in force: {MISSING_KEY}"
    assert (bench.log.warnings[-1], bench.gauges()) == (bench.problem(), (1, 1))

    await bench.secret(None)
    assert bench.problem().startswith(f"{PLACE} is gone, and nobody is notified from now on")
    assert (bench.log.warnings[-1], bench.gauges()) == (bench.problem(), (0, 0))
    await bench.secret("notify.yml")
    assert bench.problem() == f"{PLACE} is wrong, and nobody is notified: {MISSING_KEY}"
    assert bench.events.told[-1][-1] == f"Nobody is notified. {MISSING_KEY}"
    bench.made.trouble("the operator may not list Secrets")
    assert "cannot be followed: the operator may not list Secrets; Secret" in bench.problem()
    bench.made.trouble(None)
    await bench.secret("notify.yaml")
    assert (bench.problem(), bench.gauges()) == ("", (1, 0))
    assert "canary" not in str(bench.log.lines)
    await bench.made.close()


async def test_a_pattern_that_matches_no_module_is_an_event_on_the_secret() -> None:
    bench = Bench()
    bench.made.unmatched("target ops may hear of fewer modules than it should: 'w?.e' matches no module")
    assert bench.events.told[-1][-2:] == (
        "UnmatchedPattern",
        "Target ops may hear of fewer modules than it should: 'w?.e' matches no module.",
    )
    bench.made.unmatched("'wbe' matches no module; did you mean 'web'?")
    assert bench.events.told[-1][-1] == "'wbe' matches no module; did you mean 'web'?"
