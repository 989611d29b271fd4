"""When what somebody changed is told, and when it is put back."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest
from typing_extensions import override

from addon_operator.engine import events
from addon_operator.engine.drift import content_drift, drift, drift_backoff, live_contents, watched_resources
from addon_operator.helm import release_types
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.kube.objects import own_deletions
from addon_operator.modules import manifests
from addon_operator.modules.drift import drift_config
from addon_operator.modules.drift.drift_config import DriftMode
from tests.support import clocks
from tests.unit.engine import fakes, watching

WEB = watching.WEB
INVALID = api_errors.Invalid(paths.Target("patch", "/x"), 422, "Invalid", "field is immutable")
MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data: {a: "1", b: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
data: {c: "3"}
"""


class Contents(live_contents.LiveContents):
    """Objects by name, written as the API server writes them."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {
            "app": {"metadata": {"name": "app"}, "data": {"a": "1", "b": "2"}},
            "other": {"metadata": {"name": "other"}, "data": {"c": "3"}},
        }
        self.asked: list[list[str]] = []
        self.writes: list[tuple[str, bool]] = []
        self.error: api_errors.KubernetesError | None = None
        self.refusal: api_errors.KubernetesError | None = None
        """What the API server says to each write."""
        self.mutated: dict[str, str] = {}
        """What an admission webhook writes at each write."""
        self.unknown = ""
        """A field that the API server does not know."""
        self.meanwhile: Callable[[], None] = lambda: None
        """What happens while the API server answers a write."""

    @override
    async def read(self, wanted: Iterable[watched_resources.Watched]) -> live_contents.Contents:
        names = sorted(each.key.name for each in wanted)
        if names:
            self.asked.append(names)
        if self.error is not None:
            raise self.error
        return {each: copy.deepcopy(self.objects[each.key.name]) for each in wanted}

    @override
    async def patch(
        self,
        watched: watched_resources.Watched,
        operations: Sequence[Mapping[str, Any]],
        *,
        dry_run: bool = False,
        manager: str = "helm",
    ) -> client.Object:
        name = watched.key.name
        self.writes.append((name, dry_run))
        self.meanwhile()
        if self.refusal is not None:
            raise self.refusal
        after = copy.deepcopy(self.objects[name])
        for operation in operations:
            if operation["op"] != "test":
                after["data"][operation["path"].rpartition("/")[2]] = operation["value"]
        after["data"] |= self.mutated
        after["data"].pop(self.unknown, None)
        if not dry_run:
            self.objects[name] = after
        return after

    @override
    async def apply(self, watched: watched_resources.Watched, body: manifests.Object) -> client.Object:
        self.writes.append((f"apply {watched.key.name}", False))
        self.objects[watched.key.name]["data"] = dict(body["data"])
        return self.objects[watched.key.name]


class Bench:
    def __init__(self) -> None:
        self.clock = clocks.Clock()
        self.cluster = watching.Cluster()
        self.cluster.record = release_types.Deployed(1, MANIFEST)
        self.resources = watching.resources_of(self.cluster)
        self.told: list[events.Event] = []
        self.opens: float | None = None
        self.config = drift_config.DriftConfig(DriftMode.WARN)
        self.absences = drift.Drift(
            self.resources,
            watching.restorer_of(self.cluster),
            own_deletions.OwnDeletions(),
            self.told.append,
            fakes.Inbox(),
            self.clock,
        )
        self.contents = Contents()
        self.drift = content_drift.ContentDrift(
            self.resources,
            self.absences,
            watching.Records(self.cluster),
            self.contents,
            lambda _: self.config,
            lambda _: self.opens,
            self.told.append,
            self.clock,
        )

    async def follow(self) -> None:
        self.cluster.put("app", "other")
        await self.resources.follow(WEB, watching.wanted("app", "other"))
        self.cluster.sync()
        await self.after(content_drift.JOINS)

    async def edit(self, **data: str) -> None:
        """Somebody writes fields of the first ConfigMap."""
        self.contents.objects["app"]["data"].update(data)
        self.cluster.put("app")
        await self.after(content_drift.GATHER)

    async def after(self, seconds: float) -> None:
        self.clock.now += seconds
        await self.drift.look()
        await clocks.settle()

    @property
    def shown(self) -> list[str]:
        found = [each.report for each in self.told if isinstance(each, events.DriftChanged)]
        return ["unknown" if each is None else each.message for each in found]

    def of(self, kind: type[events.Event]) -> int:
        return sum(isinstance(each, kind) for each in self.told)


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_all_resources_are_compared_when_they_are_followed_and_then_what_is_written(
    bench: Bench,
) -> None:
    await bench.follow()
    assert bench.shown == [""]
    await bench.edit(b="x")
    assert bench.shown == ["", "ConfigMap app: /data/b"]
    assert bench.contents.asked == [["app", "other"], ["app"]]
    await bench.edit(b="2")
    assert bench.shown[-1] == ""


async def test_modules_that_come_one_after_another_are_read_together_and_not_too_late(bench: Bench) -> None:
    bench.cluster.put("app", "other")
    for module, name in ((WEB, "app"), (watching.DB, "other")):
        await bench.resources.follow(module, watching.wanted(name))
        await bench.after(content_drift.JOINS / 2)
    assert bench.contents.asked == []
    await bench.after(content_drift.JOINS / 2)
    assert bench.contents.asked == [["app", "other"]]

    for _ in range(20):
        await bench.resources.follow(WEB, watching.wanted("app"))
        await bench.after(content_drift.JOINS / 2)
    assert len(bench.contents.asked) > 1


async def test_the_record_that_was_just_read_is_not_read_again(bench: Bench) -> None:
    bench.cluster.put("app", "other")
    await bench.resources.follow(WEB, watching.wanted("app", "other"))
    bench.drift.begin(WEB, bench.cluster.record)
    await bench.after(content_drift.JOINS)
    assert (bench.shown, bench.cluster.records_read) == ([""], 0)


async def test_a_warning_writes_nothing(bench: Bench) -> None:
    await bench.follow()
    await bench.edit(b="x")
    assert bench.contents.writes == [("app", True)]
    assert bench.contents.objects["app"]["data"]["b"] == "x"


async def test_a_correction_puts_back_what_was_changed(bench: Bench) -> None:
    bench.config = drift_config.DriftConfig(DriftMode.CORRECT)
    await bench.follow()
    await bench.edit(b="x", mine="y")
    assert bench.contents.objects["app"]["data"] == {"a": "1", "b": "2", "mine": "y"}
    assert (bench.contents.writes, bench.of(events.ResourcesCorrected)) == ([("app", False)], 1)
    assert bench.shown == [""]


async def test_what_helm_applied_on_the_servers_side_is_put_back_so(bench: Bench) -> None:
    bench.config = drift_config.DriftConfig(DriftMode.CORRECT)
    bench.cluster.record = release_types.Deployed(1, MANIFEST, is_server_side=True)
    await bench.follow()
    await bench.edit(b="x")
    assert bench.contents.writes == [("apply app", False)]


@pytest.mark.parametrize("mode", [DriftMode.WARN, DriftMode.CORRECT])
@pytest.mark.parametrize("refusal", [None, INVALID])
async def test_nothing_more_of_a_module_that_goes_meanwhile_is_written_or_reported(
    bench: Bench, mode: DriftMode, refusal: api_errors.KubernetesError | None
) -> None:
    bench.config = drift_config.DriftConfig(mode)
    bench.contents.mutated = {"b": "x", "c": "x"}
    bench.contents.refusal = refusal
    bench.contents.meanwhile = lambda: bench.resources.unfollow(WEB)
    bench.contents.objects["app"]["data"]["b"] = bench.contents.objects["other"]["data"]["c"] = "x"
    await bench.follow()
    assert (len(bench.contents.writes), bench.of(events.PartFailed)) == (1, 0)
    assert bench.shown == []


async def test_what_a_webhook_writes_each_time_is_told_once_and_no_drift(bench: Bench) -> None:
    bench.config = drift_config.DriftConfig(DriftMode.CORRECT)
    bench.contents.mutated = {"b": "x"}
    await bench.follow()
    for number in range(10):
        await bench.edit(b="x", more=str(number))
    assert (bench.of(events.Noted), len(bench.contents.writes)) == (1, 1)
    assert bench.shown == [""]
    assert bench.of(events.ResourcesCorrected) == 0
    (noted,) = (each for each in bench.told if isinstance(each, events.Noted))
    said = "ConfigMap app: the API server or an admission webhook changes /data/b at each write"
    assert noted.text == f"{said}; that does not count as drift"


async def test_a_field_that_the_api_server_does_not_know_is_told_as_such_and_no_drift(bench: Bench) -> None:
    bench.contents.unknown = "b"
    del bench.contents.objects["app"]["data"]["b"]
    await bench.follow()
    for number in range(3):
        await bench.edit(more=str(number))
    assert (bench.shown, len(bench.contents.writes)) == ([""], 1)
    (noted,) = (each for each in bench.told if isinstance(each, events.Noted))
    said = "leaves /data/b out, as it knows no such field, or an admission webhook removes it"
    assert noted.text == f"ConfigMap app: the API server {said}; that does not count as drift"


DENIED = api_errors.Forbidden(paths.Target("patch", "/x"), 403, "Forbidden", "a policy says no")


@pytest.mark.parametrize(
    ("mode", "refusal", "tries", "told"),
    [
        (DriftMode.CORRECT, INVALID, 2, 1),
        (DriftMode.CORRECT, DENIED, 1, 1),
        (DriftMode.WARN, INVALID, 2, 0),
    ],
)
async def test_what_the_api_server_does_not_take_back_is_told_once_and_not_tried_for_ever(
    bench: Bench, mode: DriftMode, refusal: api_errors.ApiError, tries: int, told: int
) -> None:
    bench.config, bench.contents.refusal = drift_config.DriftConfig(mode), refusal
    await bench.follow()
    await bench.edit(b="x")
    for _ in range(10):
        await bench.after(content_drift.RETRY)
    assert len(bench.contents.writes) == tries
    assert bench.shown[-1] == "ConfigMap app: /data/b"
    await bench.edit(mine="y")
    assert len(bench.contents.writes) == tries + 1
    assert bench.of(events.Warned) == told
    bench.contents.refusal = None
    await bench.edit(b="z")
    assert (bench.shown[-1] == "") is (mode is DriftMode.CORRECT)


async def test_who_insists_wins_for_ten_minutes(bench: Bench) -> None:
    bench.config = drift_config.DriftConfig(DriftMode.CORRECT)
    await bench.follow()
    for number in range(8):
        await bench.edit(b=f"x{number}")
    assert bench.of(events.ResourcesCorrected) == drift_backoff.MOST_CORRECTIONS
    assert bench.of(events.CorrectionsGivenUp) == 1
    assert bench.contents.objects["app"]["data"]["b"] == "x7"
    assert bench.shown[-1] == "ConfigMap app: /data/b"
    await bench.after(drift_backoff.CORRECTION_SECONDS)
    assert bench.contents.objects["app"]["data"]["b"] == "2"


async def test_a_correction_waits_for_a_window(bench: Bench) -> None:
    bench.config, bench.opens = drift_config.DriftConfig(DriftMode.CORRECT), bench.clock.time() + 60.0
    await bench.follow()
    await bench.edit(b="x")
    assert bench.shown[-1] == "ConfigMap app: /data/b"
    bench.opens = None
    await bench.after(60.0)
    assert bench.contents.objects["app"]["data"]["b"] == "2"


async def test_while_helm_works_nothing_is_compared(bench: Bench) -> None:
    await bench.follow()
    async with bench.absences.helm_at_work(WEB):
        await bench.edit(b="x")
    assert bench.shown == [""]
    bench.cluster.record = release_types.Deployed(1, MANIFEST, is_busy=True)
    await bench.after(content_drift.RETRY)
    assert bench.shown == [""]
    bench.cluster.record = release_types.Deployed(1, MANIFEST)
    await bench.after(content_drift.RETRY)
    assert bench.shown[-1] == "ConfigMap app: /data/b"


async def test_without_an_answer_it_is_looked_at_again(bench: Bench) -> None:
    await bench.follow()
    bench.contents.error = api_errors.Unreachable("GET", "/", "no route")
    await bench.edit(b="x")
    bench.contents.error = None
    await bench.after(content_drift.RETRY)
    assert bench.shown[-1] == "ConfigMap app: /data/b"


async def test_ignored_fields_and_exempt_resources_are_left_alone(bench: Bench) -> None:
    bench.config = drift_config.read(
        {"mode": "correct", "ignore": [{"kind": "ConfigMap", "name": "a*", "paths": ["/data/b"]}]}
    )
    await bench.follow()
    await bench.edit(b="x")
    bench.contents.objects["app"]["metadata"]["annotations"] = {"addon-operator.io/drift": "ignore"}
    await bench.edit(a="x")
    assert (bench.shown, bench.contents.writes) == ([""], [])


async def test_a_mode_that_ignores_reads_nothing(bench: Bench) -> None:
    bench.config = drift_config.DriftConfig(DriftMode.IGNORE)
    await bench.follow()
    await bench.edit(b="x")
    assert (bench.contents.asked, bench.shown) == ([], [""])


async def test_of_a_module_that_is_not_followed_any_more_nothing_is_known(bench: Bench) -> None:
    await bench.follow()
    await bench.edit(b="x")
    assert list(bench.drift.found(WEB)) == ["ConfigMap app"]
    bench.resources.unfollow(WEB)
    assert (bench.shown[-1], bench.drift.found(WEB)) == ("unknown", {})
