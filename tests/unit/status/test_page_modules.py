"""What is wrong with a module is said by the page, its Module object, a standby and ``module list`` alike."""

import dataclasses
import itertools
import json
import pathlib
from collections.abc import Callable
from typing import Any, Final

from addon_operator.cli import module_tables
from addon_operator.engine import introspection, module_states, state, tasks
from addon_operator.engine.bindings import hook_bindings, hook_tasks, webhooks
from addon_operator.engine.hooks import running_hooks
from addon_operator.engine.queues import queue_set
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import names
from addon_operator.kube.objects import suspension
from addon_operator.modules import findings, model, windows
from addon_operator.modules.drift import drift_report
from addon_operator.modules.health import module_health, resource_health
from addon_operator.status import (
    condition_times,
    health,
    module_conditions,
    module_status,
    page_content,
    page_modules,
    stored_modules,
)
from tests.support import clocks, rows
from tests.unit.debug import inspected
from tests.unit.engine import bound_fakes, fakes

NOW: Final = 1_700_000_000.0
WEB, DB = names.ModuleName("web"), names.ModuleName("db")
HOOK: Final = state.Hook("pods.sh", pathlib.Path("pods.sh"), hook_config.HookConfig(), WEB)
Status = state.ModuleStatus
Group = page_modules.Group


class World:
    """A module that is ready, and another one that it requires."""

    def __init__(self) -> None:
        modules = [model.Module(DB, 10, pathlib.Path("db")), model.Module(WEB, 20, pathlib.Path("web"))]
        self.states = module_states.ModuleStates(modules, fakes.ignore)
        self.states.enabled = (DB, WEB)
        self.web = self.states[WEB]
        for each in self.states:
            each.discovered, each.verdict, each.status = True, "by values.yaml", Status.READY
        self.web.hooks = (HOOK,)
        self.queues = queue_set.QueueSet(fakes.ignore, clock=clocks.Clock())
        self.bindings = bound_fakes.WaitingBindings({})
        self.running: list[running_hooks.RunningHook] = []
        self.views = introspection.Introspection(
            self.states, self.queues, self.bindings, (), clocks.Clock(), running=lambda: self.running
        )

    def task(self, owner: str, hook: str = "", binding: str = "", error: str = "") -> tasks.Task:
        async def run(_: tasks.Task) -> None:
            raise AssertionError("nothing is run here")

        task = fakes.CallTask(tasks.TaskKind.MODULE_RUN, run, owner=owner, hook=hook, binding=binding)
        task.last_error, task.last_error_without_values = error and f"{error}: hunter2", error
        task.attempts = 2 if error else 0
        # A hook that fails on events mostly has a queue of its own.
        return self.queues["pods" if hook else "main"].add(task)

    async def look(self) -> None:
        self.web.explain()
        for _ in range(3):
            await self.views.looks.note()

    def object(self) -> dict[str, Any]:
        since = module_conditions.times(self.web, {}, NOW)
        return {
            "metadata": {"name": "web", "namespace": "addons"},
            "status": module_status.document(self.web, None, {}, 1, since),
        }

    def ready(self) -> dict[str, str]:
        found: dict[str, str]
        (found,) = (each for each in self.object()["status"]["conditions"] if each["type"] == "Ready")
        return found

    async def card(self) -> page_modules.Card:
        stored = self.object()["status"]
        shown = module_status.shown(stored, condition_times.stored(stored), [])

        async def recall() -> None:
            pass

        content = page_content.PageContent(health.OperatorStatus())
        content.show(self.views, inspected.Resources(), page_content.Objects(lambda _: shown, recall))
        return next(card for card in page_modules.cards(await content.gather()) if card.name == "web")

    def standby_card(self) -> page_modules.Card:
        found = stored_modules.read(json.dumps(self.object()).encode())
        errors = {"web": error} if (error := found.row["lastError"]) else {}
        content = page_content.Content(
            state="x", modules=[found.row], errors=errors, objects={"web": found.shown}
        )
        return page_modules.cards(content)[0]


@dataclasses.dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is wrong with a module, or waits."""

    apply: Callable[[World], object]
    word: str
    """On the page."""
    reason: str
    """Of the condition ``Ready``."""
    said: str
    """Words of the sentence."""


def having(field: str, value: object) -> Callable[[World], object]:
    return lambda world: setattr(world.web, field, value)


def noting(kind: findings.FindingKind, text: str) -> Callable[[World], object]:
    return lambda world: world.web.note(kind, text)


def unhealthy(kind: resource_health.HealthState, text: str) -> Callable[[World], object]:
    return having("health", module_health.ModuleHealth(kind, text))


def waits_for_db(world: World) -> None:
    world.states[DB].status = Status.FAILED
    world.task(DB)
    world.task(WEB).after = frozenset({DB})


def answering(not_registered: str = "", unanswered: str = "") -> Callable[[World], object]:
    row = webhooks.AnsweringRow(
        hook="guard.sh",
        binding="kubernetesValidating",
        name="a.b.c",
        notRegistered=not_registered,
        unanswered=unanswered,
    )

    def apply(world: World) -> None:
        rows = world.bindings.answers.setdefault(WEB, [])
        rows.append(row)
        world.web.note(findings.NOT_REGISTERED, hook_bindings.not_registered(rows))

    return apply


def fails_as_allowed(world: World) -> None:
    world.bindings.failures.append(
        hook_tasks.AllowedFailure(HOOK, "nodes", "main", 3, "exit code 7: hunter2", "exit code 7")
    )


def waits_for_shops(world: World) -> None:
    world.bindings.of_owner[WEB] = [
        {"hook": "shops.sh", "binding": "shops", "kind": "Shop", "reason": "there is no kind 'Shop'"}
    ]


TROUBLES: Final = {
    "unhealthy": Trouble(
        unhealthy(resource_health.HealthState.FAILED, "1 of 3 pods ready"),
        "Unhealthy",
        "Unhealthy",
        "1 of 3 pods",
    ),
    "a record of others": Trouble(
        noting(findings.CHANGED_BY_OTHERS, "revision 3 was changed by others"),
        "Changed by others",
        "ChangedByOthers",
        "revision 3",
    ),
    "a lost chart": Trouble(
        noting(findings.CHART_LOST, "put Chart.yaml back into web"),
        "Chart lost",
        "ChartLost",
        "put Chart.yaml back",
    ),
    "wrong values": Trouble(
        noting(findings.WRONG_VALUES, "ConfigMap a/b is invalid: web.port"),
        "Not in force",
        "WrongValues",
        "web.port",
    ),
    "wrong files": Trouble(
        noting(findings.WRONG_FILES, "web/values.yaml, line 2: not YAML"),
        "Not in force",
        "NotInForce",
        "line 2",
    ),
    "wrong hooks": Trouble(
        noting(findings.WRONG_HOOKS, "a.sh is not executable"), "Not in force", "NotInForce", "not executable"
    ),
    "an edit that waits": Trouble(
        having("edit_since", 1000.0),
        "Edit waits",
        "EditWaits",
        "an edit waits since 1970-01-01T00:16:40Z: for",
    ),
    "what it requires": Trouble(
        having("lacks", "requires API a.example.com/v1, which the cluster does not serve"),
        "Requirement not met",
        "RequiresNotMet",
        "requires API a.example.com/v1",
    ),
    "not registered": Trouble(
        answering(not_registered="a right is missing"),
        "Not registered",
        "NotRegistered",
        "a.b.c of hook guard.sh is not registered: a right is missing",
    ),
    "a hook that fails on events": Trouble(
        lambda world: world.task(WEB, "pods.sh", "every pod", "hook pods.sh failed with exit code 5"),
        "Hook fails",
        "HookFails",
        "hook pods.sh on 'every pod' failed 2 times: exit code 5",
    ),
    "a hook that may fail": Trouble(
        fails_as_allowed, "Hook fails", "HookFails", "hook pods.sh on nodes failed, which is allowed"
    ),
    "a hook without an answer": Trouble(
        answering(unanswered="it was ended after 10 s"),
        "Hook fails",
        "HookFails",
        "a.b.c of hook guard.sh did not answer the last request",
    ),
    "drift": Trouble(
        having("drift", drift_report.DriftReport(1, "ConfigMap x: /data/a")), "Drifted", "Drifted", "/data/a"
    ),
    "held back": Trouble(
        having("held_back", windows.HeldBack("upgrade to revision 2", NOW, NOW)),
        "Held back",
        "WaitsForWindow",
        "upgrade to revision 2",
    ),
    "suspended": Trouble(
        having("suspended", suspension.Suspension("new disks", NOW, "alice")),
        "Suspended",
        "Suspended",
        "new disks",
    ),
    "maintenance": Trouble(
        having("maintenance", "NoResourceReconciliation"),
        "In maintenance",
        "Maintenance",
        "NoResourceReconciliation",
    ),
    "definitions": Trouble(
        noting(findings.DEFINITIONS_LEFT_OUT, "shops.example.com is that of db"),
        "Definition left out",
        "DefinitionsLeftOut",
        "shops.example.com is that of db",
    ),
    "a binding that waits": Trouble(
        waits_for_shops,
        "Binding waits",
        "BindingWaits",
        "binding shops (Shop) of hook shops.sh waits: there is",
    ),
    "Go hooks": Trouble(
        noting(findings.HOOK_LEFT_OUT, "a.go"), "Hook left out", "HookLeftOut", "never run here: a.go"
    ),
    "a warning": Trouble(
        noting(findings.WARNED, 'Deployment/web: unknown field "spec.replcas"'),
        "Warned",
        "Warned",
        'Deployment/web: unknown field "spec.replcas"',
    ),
    "a slip of the keyboard": Trouble(
        noting(findings.MISSPELT, "the chart has no value web.replicaCoutn"),
        "Warned",
        "Warned",
        "web.replicaCoutn",
    ),
    "a module that it requires": Trouble(waits_for_db, "Waits", "WaitsForModules", "db (Failed)"),
    "a rollout": Trouble(
        unhealthy(resource_health.HealthState.PROGRESSING, "2 of 3 pods"),
        "Progressing",
        "Progressing",
        "2 of 3 pods",
    ),
}
"""The worst first."""
OF_STATE: Final = {
    "noted", "health", "drift", "held_back", "suspended", "maintenance", "lacks", "edit_since",
}  # fmt: skip
"""Fields that say that something is wrong with a module whose last run succeeded; all are in ``TROUBLES``."""
OTHERWISE: Final = {
    "module", "status", "reason", "verdict", "waits_for", "hooks", "readiness", "started", "settled",
    "progress", "last_error", "last_error_without_values", "failure", "tries", "cure", "awaits_health",
    "next_try", "discovered", "handled_now", "handled_run", "undecided", "last_run", "runs",
    "leaving", "awaits_config", "kept", "edits", "edits_seen", "warned",
    "stays_off", "helm_hook", "runs_hook", "is_final",
}  # fmt: skip
"""Fields about runs, which the state of a module says."""


def test_nothing_that_is_known_of_a_module_is_left_out() -> None:
    fields = set(state.ModuleState.__struct_fields__)
    assert fields == OF_STATE | OTHERWISE, "say it in TROUBLES, or that it is about runs"
    told = list(dict.fromkeys((each.word, each.reason) for each in TROUBLES.values()))
    assert told == list(dict.fromkeys((kind.word, kind.reason or kind.type) for kind in findings.TABLE)), (
        "in the order of the table"
    )


@rows.each("trouble", TROUBLES.values(), ids=TROUBLES)
async def test_what_is_wrong_is_said_alike_wherever_people_look(trouble: Trouble) -> None:
    world = World()
    trouble.apply(world)
    await world.look()
    card, ready = await world.card(), world.ready()
    assert card.word == trouble.word
    assert card.group is not Group.READY
    assert trouble.said in card.sentence
    assert card.since or trouble.word == "Chart lost", "a condition says it"
    is_ready = trouble.reason != "ChangedByOthers"
    assert (ready["status"], ready["reason"]) == ("True" if is_ready else "False", trouble.reason)
    assert trouble.said in ready["message"]
    assert without_places(world.standby_card()) == without_places(card)
    listed = world.views.module(WEB)
    assert trouble.said in module_tables._message(listed)
    assert module_tables._style(listed) != "green"
    assert "hunter2" not in json.dumps([str(card), world.object()])


@rows.each(("status", "word"), [(Status.RUNNING, "Running"), (Status.READY, "Not registered")])
async def test_a_webhook_is_not_missed_before_the_run_that_registers_it_has_ended(
    status: state.ModuleStatus, word: str
) -> None:
    world = World()
    TROUBLES["not registered"].apply(world)
    world.web.status = status
    assert (await world.card()).word == word


def test_conditions_that_say_since_when_are_there() -> None:
    assert {kind.condition for kind in findings.TABLE} <= {"", *module_conditions.TYPES}


async def test_a_module_of_which_nothing_is_wrong_is_green_everywhere() -> None:
    world = World()
    await world.look()
    card, ready = await world.card(), world.ready()
    assert (card.group, card.word, ready["reason"]) == (Group.READY, "Ready", "RunSucceeded")
    assert ready["message"] == "The last run succeeded."
    assert module_tables._style(world.views.module(WEB)) == "green"


PAIRS: Final = [pair for pair in itertools.combinations(TROUBLES, 2) if pair != ("unhealthy", "a rollout")]
"""All that can be at the same time."""


@rows.each(("worse", "other"), PAIRS)
async def test_of_several_troubles_the_worst_is_first_and_none_is_lost(worse: str, other: str) -> None:
    world = World()
    for name in (worse, other):
        TROUBLES[name].apply(world)
    await world.look()
    card, ready = await world.card(), world.ready()
    assert (card.word, ready["reason"]) == (TROUBLES[worse].word, TROUBLES[worse].reason)
    texts = [card.sentence, *(str(text) for _, fact in card.facts for text in fact)]
    for name in (worse, other):
        said = TROUBLES[name].said
        assert any(said in text for text in texts), texts
        assert said in ready["message"]
        assert said in module_tables._message(world.views.module(WEB))
    assert without_places(world.standby_card()) == without_places(card)


@rows.each("error", ["", "hook tick.sh is not executable"])
async def test_a_run_that_is_at_a_hook_for_a_while_says_so(error: str) -> None:
    world, since = World(), "2023-11-14T22:13:20Z"
    world.web.status = Status.RUNNING
    world.web.last_error = world.web.last_error_without_values = error
    said = f"its hook tick.sh has been running since {since}; 'addon-operator hooks end 8' ends it"
    for seconds, is_told in ((2.9, False), (3.0, True)):
        world.running = [
            {"id": 8, "module": "web", "hook": "tick.sh", "command": [], "seconds": seconds, "since": since}
        ]
        await world.look()
        shown = (world.ready()["message"], module_tables._message(world.views.module(WEB)))
        assert [said in text for text in shown] == [is_told, is_told], shown
        assert error in world.ready()["message"]
    world.states.mark(WEB, Status.READY, "")
    assert said not in world.ready()["message"] + world.web.reason


def without_places(card: page_modules.Card) -> page_modules.Card:
    """Return a card without what only the leader knows: its place in the queue, and what its hooks answer."""
    return dataclasses.replace(
        card,
        facts=[fact for fact in card.facts if fact[0] not in ("Queue", "Answers the API server")],
    )
