"""Webhooks of hooks: when they are registered, when somebody else answers, and what ends them."""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import NoReturn

import pytest
from typing_extensions import override

from addon_operator.engine import state
from addon_operator.engine.bindings import hook_answers, process_slots, review_runs, triggers, webhooks
from addon_operator.hook_contract import hook_entries
from addon_operator.hook_contract.outputs import review_answers
from addon_operator.kernel import clock, errors
from tests.support import clocks
from tests.unit.engine import bound_fakes, fakes

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
POD, LATE = ({"name": name, "kind": name, "apiVersion": "v1"} for name in ("Pod", "Late"))


def guard(name: str, *webhooks_: Mapping[str, object]) -> state.Hook:
    """A hook with webhooks; each takes snapshots of Pods, of Late, or of nothing."""
    validating = [{"rules": [RULE], **each} for each in webhooks_]
    return bound_fakes.hook(name, {"kubernetes": [POD, LATE], "kubernetesValidating": validating}, "shop")


SIMPLE = {"name": "simple.shop.example"}
ON_PODS = {"name": "pods.shop.example", "includeSnapshotsFrom": ["Pod"]}
ON_LATE = {"name": "late.shop.example", "includeSnapshotsFrom": ["Late"]}


class Registry(webhooks.NoRegistry):
    """Notes what it is told, as names of webhooks."""

    def __init__(self) -> None:
        self.replaced: list[tuple[str, list[str]]] = []
        self.opened: list[list[str]] = []
        self.kept: list[set[str]] = []
        self.troubles: dict[str, str] = {}
        self.refuse: list[errors.AddonOperatorError] = []
        """What the next attempts to open end with."""

    @override
    def replace(self, owner: str, entries: Sequence[object]) -> None:
        self.replaced.append((owner, [_name(entry) for entry in entries]))

    @override
    async def open(self, owner: str, entries: Sequence[object]) -> None:
        if self.refuse:
            raise self.refuse.pop(0)
        self.opened.append([_name(entry) for entry in entries])

    @override
    def trouble(self, entry: object) -> str:
        return self.troubles.get(_name(entry), "")

    @override
    async def keep_only(self, owners: Collection[str]) -> None:
        self.kept.append(set(owners))


def _name(entry: object) -> str:
    assert isinstance(entry, hook_entries.Entry)
    return str(entry.binding.name)


class Bench:
    """Webhooks of the module shop, and the objects that its hooks follow."""

    def __init__(self) -> None:
        self.clock, self.cluster, self.heard = clocks.Clock(), bound_fakes.Cluster(), fakes.Heard()
        self.registry, self.objects = Registry(), triggers.FollowedObjects()
        self.hooks = bound_fakes.AnsweringHooks(lambda: review_answers.ALLOWED)
        runs = review_runs.ReviewRuns(self.hooks, process_slots.ProcessSlots(1), fakes.ignore)
        self.answers = hook_answers.WebhookAnswers(runs, self.objects, self.heard.append)
        self.webhooks = webhooks.Webhooks(self.answers, self.registry)

    def follow(self, hook: state.Hook, *, listed: Collection[str]) -> list[bound_fakes.Subscription]:
        made = []
        for binding in hook.config.kubernetes:
            subscription = bound_fakes.Subscription(self.cluster, binding.kind, None, binding.kind in listed)  # type: ignore[arg-type]
            self.objects.add(hook, binding, subscription)
            made.append(subscription)
        return made

    @property
    def not_registered(self) -> dict[str, str]:
        rows = self.webhooks.rows("shop")
        return {row["name"]: row["notRegistered"] for row in rows if row["notRegistered"]}


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_what_is_registered_already_is_answered_before_snapshots_are_there(bench: Bench) -> None:
    bench.webhooks.begin("shop", [guard("guard.sh", SIMPLE, ON_LATE)])
    assert bench.registry.replaced == [("shop", ["simple.shop.example", "late.shop.example"])]
    assert bench.registry.opened == []


async def test_webhooks_are_registered_when_their_own_snapshots_are_there(bench: Bench) -> None:
    hook = guard("guard.sh", SIMPLE, ON_PODS, ON_LATE)
    _, late = bench.follow(hook, listed=["Pod"])
    await bench.webhooks.open("shop", [hook])
    assert bench.registry.opened == [["simple.shop.example", "pods.shop.example"]]
    await bench.clock.advance(5.0)
    assert len(bench.registry.opened) == 1, "nothing became complete"
    late.synced = True
    await bench.clock.advance(1.0)
    assert bench.registry.opened[1:] == [["simple.shop.example", "pods.shop.example", "late.shop.example"]]
    await bench.clock.advance(60.0)
    assert len(bench.registry.opened) == 2


async def test_an_error_at_the_first_registration_is_raised_and_one_of_a_late_one_shown_until_it_is_over(
    bench: Bench,
) -> None:
    hook = guard("guard.sh", SIMPLE, ON_LATE)
    _, late = bench.follow(hook, listed=["Pod"])
    refused = errors.AddonOperatorError("it is not taken")
    bench.registry.refuse = [refused]
    with pytest.raises(errors.AddonOperatorError, match="it is not taken"):
        await bench.webhooks.open("shop", [hook])
    await bench.webhooks.open("shop", [hook])
    await clocks.settle()
    late.synced, bench.registry.refuse = True, [refused] * 3
    for _ in range(3):
        await bench.clock.advance(1.1)
        assert bench.not_registered == {"late.shop.example": "it is not taken"}
    await bench.clock.advance(1.1)
    assert bench.not_registered == {}
    assert bench.registry.opened == [["simple.shop.example"], ["simple.shop.example", "late.shop.example"]]


async def test_each_row_says_whether_the_api_server_asks_and_why_not(bench: Bench) -> None:
    hook = guard("guard.sh", SIMPLE, ON_LATE)
    bench.follow(hook, listed=["Pod"])
    assert bench.webhooks.rows("shop") == []
    bench.webhooks.begin("shop", [hook])
    late = "the objects of its snapshots are not listed yet"
    assert bench.not_registered == {"simple.shop.example": webhooks.DUE, "late.shop.example": late}
    await bench.webhooks.open("shop", [hook])
    assert bench.webhooks.rows("shop")[0] == {
        "hook": "guard.sh",
        "binding": "kubernetesValidating",
        "name": "simple.shop.example",
        "notRegistered": "",
        "unanswered": "",
    }
    assert bench.not_registered == {"late.shop.example": late}
    bench.registry.troubles = {"simple.shop.example": "a right is missing"}
    assert bench.not_registered["simple.shop.example"] == "a right is missing"
    await bench.webhooks.keep_only({"web"})
    assert bench.not_registered["simple.shop.example"] == webhooks.DUE
    bench.webhooks.end("shop")
    assert bench.webhooks.rows("shop") == []


async def test_a_row_says_what_went_wrong_with_the_last_request_until_one_is_answered(bench: Bench) -> None:
    hook = guard("guard.sh", SIMPLE, ON_LATE)
    bench.webhooks.begin("shop", [hook])
    entry = bench.answers.entries([hook])[0]
    request = hook_entries.ReviewRequest(b"{}", time.monotonic(), 10.0, dry_run=False)

    def unanswered() -> list[str]:
        return [row["unanswered"].partition("; that was at ")[0] for row in bench.webhooks.rows("shop")]

    def fail() -> NoReturn:
        raise errors.AddonOperatorError("failed with exit code 1: token=abc")

    assert unanswered() == ["", ""]
    bench.hooks.answer = fail
    await entry.answer(request)
    wrong = "hook guard.sh of module shop failed; the operator's log says more"
    assert unanswered() == [wrong, ""], "nothing of what the hook wrote"
    at = bench.webhooks.rows("shop")[0]["unanswered"].partition("; that was at ")[2]
    when, _, where = at.partition(", ")
    assert abs(clock.parse_rfc3339(when) - time.time()) < 60
    assert where == "on this replica"
    bench.hooks.answer = lambda: review_answers.AdmissionAnswer(allowed=False)
    await entry.answer(request)
    assert unanswered() == ["", ""], "to deny is an answer"
    bench.hooks.answer = fail
    await entry.answer(request)
    bench.webhooks.end("shop")
    bench.webhooks.begin("shop", [hook])
    assert unanswered() == ["", ""], "the hook may be another one"


async def test_a_request_that_leaves_no_time_is_denied_without_a_time_before_its_beginning(
    bench: Bench,
) -> None:
    entry = bench.answers.entries([guard("guard.sh", SIMPLE)])[0]
    request = hook_entries.ReviewRequest(b"{}", time.monotonic(), 0.001, dry_run=False)
    bench.hooks.may.clear()
    answer = await entry.answer(request)
    assert not answer.allowed
    assert answer.message.endswith("within 0s")


@pytest.mark.parametrize("way", ["end", "keep only", "open"])
async def test_what_ends_or_opens_anew_waits_for_no_late_snapshots_any_more(bench: Bench, way: str) -> None:
    hook = guard("guard.sh", SIMPLE, ON_LATE)
    _, late = bench.follow(hook, listed=["Pod"])
    await bench.webhooks.open("shop", [hook])
    if way == "end":
        bench.webhooks.end("shop")
        assert bench.registry.replaced == [("shop", [])]
    elif way == "keep only":
        await bench.webhooks.keep_only({"web"})
        assert bench.registry.kept == [{"web"}]
    else:
        await bench.webhooks.open("shop", [])
        assert bench.registry.opened[-1] == []
    before = list(bench.registry.opened)
    late.synced = True
    await bench.clock.advance(5.0)
    assert bench.registry.opened == before


async def test_without_an_admission_server_a_webhook_is_an_error_that_says_what_to_set() -> None:
    registry = webhooks.NoRegistry()
    await registry.open("shop", [])
    with pytest.raises(
        errors.ConfigurationError,
        match=r"kubernetesValidating simple\.shop\.example of hook guard\.sh of module shop cannot be "
        "registered: this operator serves no admission; set WEBHOOK_URL or ADMISSION_SERVER_ENABLED",
    ):
        await registry.open("shop", _entries(guard("guard.sh", SIMPLE)))


def _entries(hook: state.Hook) -> list[hook_entries.WebhookEntry]:
    runs = review_runs.ReviewRuns(bound_fakes.AnsweringHooks(), process_slots.ProcessSlots(1), fakes.ignore)
    return hook_answers.WebhookAnswers(runs, triggers.FollowedObjects(), fakes.ignore).entries([hook])
