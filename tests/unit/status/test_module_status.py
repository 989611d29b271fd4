"""What the status of a module says in each state, and which Events tell of the way between them."""

import pathlib
from typing import Any

from msgspec import structs

from addon_operator.engine import state
from addon_operator.hook_contract.configuration import hook_config, webhook_bindings
from addon_operator.kernel import clock, names
from addon_operator.kube.objects import suspension
from addon_operator.modules import findings, model, module_config, windows
from addon_operator.modules.drift import drift_report
from addon_operator.modules.health import module_health
from addon_operator.modules.health.resource_health import HealthState
from addon_operator.status import condition_times, module_conditions, module_status
from addon_operator.status.module_status import ModulePhase, Moment
from tests.support import rows

NOW = 1_700_000_000.0
LATER = NOW + 60
ERROR = "helm upgrade: no such chart"
RELEASE = module_status.ShownRelease(revision=3, checksum="abc")
Status = state.ModuleStatus


def module(
    status: state.ModuleStatus = Status.READY, error: str = "", last_run: float | None = NOW
) -> state.ModuleState:
    found = model.Module(names.ModuleName("web"), 20, pathlib.Path("020-web"))
    return state.ModuleState(
        found, status, "by values.yaml", last_error=error, last_error_without_values=error, last_run=last_run
    )


def times(of: state.ModuleState, stored: Any = None, now: float = NOW) -> condition_times.Times:  # noqa: ANN401
    return module_conditions.times(of, condition_times.stored(stored or {}), now)


def noting(of: state.ModuleState, kind: findings.FindingKind, text: str) -> state.ModuleState:
    made = structs.replace(of, noted=dict(of.noted))
    made.note(kind, text)
    return made


def document(of: state.ModuleState, stored: Any = None, now: float = NOW) -> dict[str, Any]:  # noqa: ANN401
    return dict(module_status.document(of, RELEASE, stored or {}, 1, times(of, stored, now)))


def conditions(of: state.ModuleState) -> dict[str, str]:
    return {each["type"]: f"{each['status']} {each['reason']}" for each in document(of)["conditions"]}


CONDITIONS = {
    "Disabled": (module(Status.DISABLED), "False Disabled", "False Disabled", "False", "False"),
    "Pending": (module(Status.PENDING), "True Enabled", "Unknown Pending", "True", "False"),
    "Running": (module(Status.RUNNING), "True Enabled", "Unknown Running", "True", "False"),
    "Running again": (module(Status.RUNNING, ERROR), "True Enabled", "False Failed", "True", "False"),
    "Ready": (module(Status.READY), "True Enabled", "True RunSucceeded", "False", "False"),
    "Failed": (module(Status.FAILED, ERROR), "True Enabled", "False Failed", "False", "False"),
    "Stalled": (
        structs.replace(module(Status.FAILED, ERROR), tries=3),
        "True Enabled",
        "False Failed",
        "False",
        "True",
    ),
    "Rolled back": (
        structs.replace(module(Status.FAILED, ERROR), failure="RolledBack"),
        "True Enabled",
        "False RolledBack",
        "False",
        "False",
    ),
    "Rolled back, and not tried again": (
        structs.replace(module(Status.FAILED, ERROR), failure="RolledBack", is_final=True),
        "True Enabled",
        "False RolledBack",
        "False",
        "True",
    ),
    "Off without a verdict": (
        structs.replace(module(Status.FAILED, ERROR), stays_off=True),
        "False Disabled",
        "False Failed",
        "False",
        "False",
    ),
    "Deleting": (module(Status.DELETING), "False Removing", "False Deleting", "True", "False"),
    "Stuck": (module(Status.DELETING, ERROR), "False Removing", "False DeleteFailed", "False", "True"),
}


@rows.each(("of", "enabled", "ready", "reconciling", "stalled"), CONDITIONS.values(), ids=CONDITIONS.keys())
def test_each_state_has_its_conditions(
    of: state.ModuleState, enabled: str, ready: str, reconciling: str, stalled: str
) -> None:
    found = conditions(of)
    assert list(found) == [
        "Enabled",
        "Ready",
        "Healthy",
        "Drifted",
        "Reconciling",
        "Stalled",
        "ConfigValid",
        "DefinitionsInForce",
        "WebhooksRegistered",
        "Requires",
        "HooksWork",
        "Warnings",
        "Suspended",
    ]
    assert (found["Enabled"], found["Ready"]) == (enabled, ready)
    assert (found["Reconciling"].split()[0], found["Stalled"].split()[0]) == (reconciling, stalled)


WITH_CHART = module()
WITH_CHART.module = structs.replace(WITH_CHART.module, has_chart=True)


@rows.each(
    ("health", "condition"),
    {
        "healthy": (module_health.ModuleHealth(HealthState.HEALTHY), "True Healthy"),
        "a rollout": (module_health.ModuleHealth(HealthState.PROGRESSING, "x"), "Unknown Progressing"),
        "failed": (module_health.ModuleHealth(HealthState.FAILED, "x"), "False Failed"),
        "not known yet": (None, "Unknown NotKnown"),
    }.values(),
)
def test_how_the_resources_are_is_a_condition(
    health: module_health.ModuleHealth | None, condition: str
) -> None:
    assert conditions(structs.replace(WITH_CHART, health=health))["Healthy"] == condition


def test_a_module_without_a_release_is_healthy_and_one_in_maintenance_is_not_watched() -> None:
    assert conditions(module())["Healthy"] == "True NoResources"
    assert conditions(structs.replace(WITH_CHART, maintenance="x"))["Healthy"] == "Unknown Maintenance"
    assert conditions(module(Status.DISABLED))["Healthy"] == "Unknown Disabled"


def test_what_the_next_try_waits_for_is_told() -> None:
    failed = structs.replace(
        module(Status.FAILED, ERROR), tries=3, next_try=NOW, cure=("endpoints of Service a/b",)
    )
    told = {each["type"]: each["message"] for each in document(failed)["conditions"]}
    assert told["Ready"].endswith("; it waits for endpoints of Service a/b")
    assert told["Reconciling"].endswith("or sooner: it waits for endpoints of Service a/b.")
    assert told["Stalled"].startswith("It failed 3 times in a row, and waits for endpoints of Service a/b: ")


def test_what_somebody_changed_is_a_condition() -> None:
    assert conditions(WITH_CHART)["Drifted"] == "Unknown NotKnown"
    as_installed = structs.replace(WITH_CHART, drift=drift_report.DriftReport())
    assert conditions(as_installed)["Drifted"] == "False AsInstalled"
    told = drift_report.DriftReport(1, "ConfigMap web: /data/a (by alice)")
    assert conditions(structs.replace(WITH_CHART, drift=told))["Drifted"] == "True Changed"


def test_a_run_that_waits_for_health_says_for_whose() -> None:
    own = structs.replace(
        module(Status.RUNNING),
        awaits_health=(module().module.name,),
        health=module_health.ModuleHealth(HealthState.PROGRESSING, "0 of 1 pods ready: Deployment web."),
    )
    ready = document(own)["conditions"][1]
    assert (ready["status"], ready["reason"]) == ("Unknown", "WaitsForHealth")
    assert ready["message"] == (
        "The release is in place; the run waits until it is healthy: 0 of 1 pods ready: Deployment web."
    )
    others = tuple(map(names.ModuleName, ("db", "dns")))
    waiting = structs.replace(module(Status.PENDING), awaits_health=others)
    assert document(waiting)["conditions"][1]["message"] == "The module waits until db and dns are healthy."


HELD = windows.HeldBack("upgrade to revision 4", NOW)
REMOVAL = windows.HeldBack("removal of the release", NOW, is_removal=True)
BROKEN = windows.HeldBack("upgrade to revision 4", NOW, is_broken=True)
HELD_BACK = {
    "an upgrade": (module(), HELD, "True WaitsForWindow", "False"),
    "of a broken release": (module(Status.FAILED, ERROR), BROKEN, "False WaitsForWindow", "False"),
    "a removal": (module(Status.DELETING), REMOVAL, "False WaitsForWindow", "False"),
    "and a run goes on": (module(Status.RUNNING), HELD, "Unknown Running", "True"),
    "and a hook failed": (module(Status.FAILED, ERROR), HELD, "False Failed", "False"),
    "and the removal fails": (module(Status.DELETING, ERROR), REMOVAL, "False DeleteFailed", "False"),
}


@rows.each(("of", "held", "ready", "reconciling"), HELD_BACK.values(), ids=HELD_BACK.keys())
def test_what_waits_for_a_window_is_the_reason_of_ready_if_nothing_else_is(
    of: state.ModuleState, held: windows.HeldBack, ready: str, reconciling: str
) -> None:
    found = conditions(structs.replace(of, held_back=held))
    assert found["Ready"] == ready
    assert found["Reconciling"].split()[0] == reconciling


def test_the_message_says_what_waits_and_until_when() -> None:
    upgrade = document(structs.replace(module(), held_back=HELD))["conditions"][1]
    waits = "waits for a window, which opens at 2023-11-14T22:13:20Z"
    assert upgrade["message"] == f"The last run succeeded; {waits}: upgrade to revision 4."
    removal = document(structs.replace(module(Status.DELETING), held_back=REMOVAL))["conditions"]
    assert removal[1]["message"] == f"The module is disabled; {waits}: removal of the release."
    assert removal[4]["message"] == f"Nothing is in progress; {waits}: removal of the release."


def test_definitions_of_another_module_that_count_are_a_condition() -> None:
    assert conditions(CONDITIONS["Ready"][0])["DefinitionsInForce"] == "True DefinitionsInForce"
    found = noting(CONDITIONS["Ready"][0], findings.DEFINITIONS_LEFT_OUT, "x.example.com is that of db")
    (condition,) = (each for each in document(found)["conditions"] if each["type"] == "DefinitionsInForce")
    assert (condition["status"], condition["reason"]) == ("False", "OfAnotherModule")
    assert condition["message"] == "x.example.com is that of db"


NOT_REGISTERED = "kubernetesValidating a.b.c of hook guard.sh is not registered: correct it"
GUARD = state.Hook(
    "guard.sh",
    pathlib.Path("guard.sh"),
    hook_config.HookConfig(
        webhooks=(webhook_bindings.WebhookBinding(webhook_bindings.ReviewType.VALIDATING, "a.b.c"),)
    ),
)


@rows.each(
    ("of", "condition"),
    {
        "hooks are not known": (module(), "Unknown NotKnown"),
        "no webhooks": (structs.replace(module(), hooks=()), "True NoWebhooks"),
        "all are registered": (structs.replace(module(), hooks=(GUARD,)), "True Registered"),
        "one is not": (noting(module(), findings.NOT_REGISTERED, NOT_REGISTERED), "False NotRegistered"),
        "the run goes on": (
            noting(module(Status.RUNNING), findings.NOT_REGISTERED, NOT_REGISTERED),
            "Unknown NotRegistered",
        ),
        "it has failed": (
            noting(module(Status.RUNNING, ERROR), findings.NOT_REGISTERED, NOT_REGISTERED),
            "False NotRegistered",
        ),
        "disabled": (module(Status.DISABLED), "Unknown Disabled"),
    }.values(),
)
def test_whether_the_api_server_asks_all_hooks_is_a_condition(of: state.ModuleState, condition: str) -> None:
    assert conditions(of)["WebhooksRegistered"] == condition


def test_a_module_is_not_simply_ready_while_the_api_server_does_not_ask_its_hooks() -> None:
    found = document(noting(module(), findings.NOT_REGISTERED, NOT_REGISTERED))["conditions"]
    told = {each["type"]: each["message"] for each in found}
    assert told["WebhooksRegistered"] == f"{NOT_REGISTERED}."
    assert told["Ready"] == f"The last run succeeded; {NOT_REGISTERED}."


def test_a_module_that_somebody_suspended_says_so_everywhere() -> None:
    assert conditions(CONDITIONS["Ready"][0])["Suspended"] == "False NotAnnotated"
    now = suspension.Suspension("new disks", NOW, "alice", NOW + 60)
    found = document(structs.replace(CONDITIONS["Ready"][0], suspended=now, handled_run="7"))
    by_type = {each["type"]: each for each in found["conditions"]}
    told = f"suspended: new disks (by alice, since {clock.rfc3339(NOW)}, until {clock.rfc3339(NOW + 60)})"
    assert by_type["Suspended"]["message"] == f"The module is {told}."
    assert by_type["Ready"]["reason"] == "Suspended"
    assert by_type["Ready"]["message"].endswith(
        f"Helm and healing leave it alone: {told}; 'addon-operator module resume web' ends that."
    )
    assert found["suspended"] == {
        "reason": "new disks",
        "by": "alice",
        "since": clock.rfc3339(NOW),
        "until": clock.rfc3339(NOW + 60),
    }
    assert found["lastHandledRun"] == "7"
    assert (
        module_status.is_stored(
            module_status.document(module(), RELEASE, found, 1, times(module(), found)), found
        )
        is False
    )


def test_what_was_served_before_a_restart_stays_known() -> None:
    assert document(module(), {"lastHandledRun": "7"})["lastHandledRun"] == "7"
    assert "suspended" not in document(module(), {"suspended": {"reason": "x"}})


def test_the_facts_stand_beside_the_conditions() -> None:
    ready = module()
    ready.hooks = tuple(
        state.Hook(name, pathlib.Path(name), hook_config.HookConfig(), ready.module.name)
        for name in ("b.sh", "a/b.py")
    )
    found = document(ready)
    del found["conditions"]
    assert found == {
        "observedGeneration": 1,
        "state": "Ready",
        "order": 20,
        "hooks": ["a/b.py", "b.sh"],
        "release": {"revision": 3, "checksum": "abc"},
        "lastRun": "2023-11-14T22:13:20Z",
    }


def test_what_the_module_is_for_stands_there_too() -> None:
    described = module()
    described.module = structs.replace(
        described.module, config=module_config.ModuleConfig(description="Ingress " * 100)
    )
    assert len(document(described)["description"]) == 300
    assert "description" not in document(module())


def test_newer_values_that_are_wrong_have_a_condition_of_their_own_and_leave_readiness() -> None:
    found = module()
    right = {each["type"]: each for each in document(found)["conditions"]}["ConfigValid"]
    assert (right["status"], right["reason"]) == ("True", "ValuesInForce")
    said = "ConfigMap a/b is invalid since today: web.size: must be at most 9"
    found.note(findings.WRONG_VALUES, said)
    conditions = {each["type"]: each for each in document(found)["conditions"]}
    wrong, ready = conditions["ConfigValid"], conditions["Ready"]
    assert (wrong["status"], wrong["reason"]) == ("False", "InvalidValues")
    assert wrong["message"] == said
    assert (ready["status"], ready["reason"]) == ("True", "WrongValues")
    assert ready["message"].endswith(f"; what is newer is not in force: {said}.")


def test_changed_files_that_are_wrong_are_said_beside_readiness() -> None:
    found = module()
    files, hooks = f"{state.REFUSED}: web/values.yaml, line 1: wrong", f"{state.HOOKS_REFUSED}: a.sh is not"
    found.note(findings.WRONG_FILES, files)
    found.note(findings.WRONG_HOOKS, hooks)
    conditions = {each["type"]: each for each in document(found)["conditions"]}
    wrong, ready = conditions["ConfigValid"], conditions["Ready"]
    assert (wrong["status"], wrong["reason"]) == ("False", "InvalidFiles")
    assert wrong["message"] == f"{files}; {hooks}"
    assert (ready["status"], ready["reason"]) == ("True", "NotInForce")
    assert ready["message"] == f"The last run succeeded; what is newer is not in force: {wrong['message']}."


def test_an_error_is_one_line_of_a_bounded_length_without_broken_characters() -> None:
    found = document(module(Status.FAILED, "a\n  b \udc80 " + "c" * 5000))
    assert found["lastError"].startswith("a b \N{REPLACEMENT CHARACTER} ccc")
    assert len(found["lastError"]) == 1024
    assert found["lastError"].encode()


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    first = document(module(Status.RUNNING))
    second = document(module(Status.READY), first, LATER)
    third = document(module(Status.READY), second, LATER + 60)
    times = {each["type"]: each["lastTransitionTime"] for each in second["conditions"]}
    assert times["Enabled"] == times["Stalled"] == clock.rfc3339(NOW)
    assert times["Ready"] == times["Reconciling"] == clock.rfc3339(LATER)
    assert third["conditions"] == second["conditions"]


def test_a_module_that_waits_for_others_is_still_suspended_and_held_back() -> None:
    now, held = suspension.Suspension("new disks", NOW), windows.HeldBack("upgrade to revision 2", LATER, NOW)
    pending = module(Status.PENDING)
    assert conditions(structs.replace(pending, suspended=now))["Ready"] == "Unknown Suspended"
    assert conditions(structs.replace(pending, held_back=held))["Ready"] == "Unknown WaitsForWindow"
    found = document(structs.replace(pending, suspended=now, held_back=held))
    (ready,) = [each for each in found["conditions"] if each["type"] == "Ready"]
    assert ready["message"] == f"The module has not run yet; {now}; {held}."
    assert found["heldBack"] == {
        "what": "upgrade to revision 2",
        "until": clock.rfc3339(LATER),
        "since": clock.rfc3339(NOW),
    }


def at(found: dict[str, Any], type_: str) -> str:
    return str(next(each["lastTransitionTime"] for each in found["conditions"] if each["type"] == type_))


HEALTHY = structs.replace(module(), health=module_health.ModuleHealth(HealthState.HEALTHY, ""), runs=1)
UNHEALTHY = structs.replace(module(), health=module_health.ModuleHealth(HealthState.FAILED, "x"), runs=1)
DRIFTED = structs.replace(module(), drift=drift_report.DriftReport(1, "ConfigMap x"), runs=1)
GIVEN_UP = structs.replace(module(Status.FAILED, ERROR), tries=3, runs=3)


@rows.each("restarts", [1, 2])
@rows.each(
    ("type_", "status", "of"),
    [
        ("Ready", "True", HEALTHY),
        ("Ready", "False", GIVEN_UP),
        ("Healthy", "True", HEALTHY),
        ("Healthy", "False", UNHEALTHY),
        ("Drifted", "True", DRIFTED),
        ("WebhooksRegistered", "True", structs.replace(module(), hooks=(), runs=1)),
        ("Stalled", "True", GIVEN_UP),
    ],
)
def test_a_condition_that_says_after_restarts_what_it_said_has_the_time_that_it_had(
    type_: str, status: str, of: state.ModuleState, restarts: int
) -> None:
    """Each restart comes while nothing is known yet again."""
    found = document(of)
    for restart in range(restarts):
        for begun in (module(Status.PENDING, last_run=None), module(Status.RUNNING, last_run=None)):
            found = document(begun, found, LATER + restart)
            assert at(found, type_) == clock.rfc3339(LATER), "meanwhile it says since when it is unknown"
    found = document(of, found, LATER + 60)
    assert (by_type := {each["type"]: each for each in found["conditions"]})[type_]["status"] == status
    assert by_type[type_]["lastTransitionTime"] == clock.rfc3339(NOW)
    assert type_ not in [each["type"] for each in found.get("earlier", ())]


def test_a_run_while_the_operator_stays_is_a_new_time() -> None:
    running = structs.replace(module(Status.RUNNING), runs=1)
    assert at(
        document(HEALTHY, document(running, document(HEALTHY), LATER), LATER), "Ready"
    ) == clock.rfc3339(LATER)


def test_a_module_that_was_disabled_has_not_failed_since_then() -> None:
    found = document(module(Status.PENDING), document(module(Status.DISABLED)), LATER)
    assert "Ready" not in [each["type"] for each in found.get("earlier", ())]
    assert at(document(GIVEN_UP, found, LATER), "Ready") == clock.rfc3339(LATER)


def test_a_module_is_stalled_since_the_same_time_while_it_is_tried_again() -> None:
    again = structs.replace(GIVEN_UP, status=Status.RUNNING)
    assert at(
        document(GIVEN_UP, document(again, document(GIVEN_UP), LATER), LATER), "Stalled"
    ) == clock.rfc3339(NOW)


def test_what_an_earlier_operator_reported_stays_until_this_one_knows() -> None:
    stored = {
        "release": {"revision": 7, "checksum": "x"},
        "hooks": ["a.sh"],
        "lastRun": "2020-01-01T00:00:00Z",
    }
    waits, off = module(Status.PENDING, last_run=None), module(Status.DISABLED, last_run=None)
    pending = module_status.document(waits, None, stored, 1, times(waits))
    assert {key: pending.get(key) for key in stored} == stored
    disabled = module_status.document(off, None, stored, 1, times(off))
    assert "release" not in disabled
    assert disabled["hooks"] == []


def test_what_is_stored_is_recognized_beside_conditions_of_others() -> None:
    wanted = module_status.document(module(), RELEASE, {}, 1, times(module()))
    stored = {**wanted, "conditions": [{"type": "Audited", "status": "True"}, *wanted["conditions"]]}
    assert module_status.is_stored(wanted, stored)


@rows.each(
    "change",
    [{"state": "Failed"}, {"lastError": "an old one"}, {"conditions": []}, {"release": None}],
    ids=["state", "error", "conditions", "release"],
)
def test_any_difference_is_seen(change: dict[str, Any]) -> None:
    wanted = module_status.document(module(), RELEASE, {}, 1, times(module()))
    assert not module_status.is_stored(wanted, {**wanted, **change})


@rows.each(
    ("of", "phase"),
    [
        (module(Status.PENDING), ModulePhase.ENABLED),
        (module(Status.RUNNING), None),
        (module(Status.READY), ModulePhase.READY),
        (module(Status.FAILED, ERROR), ModulePhase.FAILED),
        (module(Status.DELETING), None),
        (module(Status.DELETING, ERROR), ModulePhase.DELETE_FAILED),
        (module(Status.DISABLED), ModulePhase.DISABLED),
    ],
    ids=["pending", "running", "ready", "failed", "deleting", "stuck", "disabled"],
)
def test_a_state_is_a_phase_or_on_the_way_to_one(of: state.ModuleState, phase: ModulePhase | None) -> None:
    found = module_status.moment(of)
    assert (found.phase if found else None) is phase


@rows.each(
    "of",
    [
        module(Status.PENDING),
        module(Status.READY),
        module(Status.FAILED, ERROR),
        module(Status.DELETING, ERROR),
        module(Status.DISABLED),
    ],
    ids=["pending", "ready", "failed", "stuck", "disabled"],
)
def test_a_phase_can_be_read_from_what_was_stored(of: state.ModuleState) -> None:
    assert module_status.stored_moment(document(of)) == module_status.moment(of)


def test_an_object_without_status_tells_of_no_phase() -> None:
    assert module_status.stored_moment({}) is None


@rows.each(
    ("reason", "phase"),
    [
        ("RunFailed", ModulePhase.FAILED),
        ("WrongValues", ModulePhase.FAILED),
        ("ChangedByOthers", ModulePhase.READY),
    ],
)
def test_what_an_earlier_operator_wrote_is_not_told_once_more(reason: str, phase: ModulePhase) -> None:
    ready = {"type": "Ready", "status": "False", "reason": reason}
    assert module_status.stored_moment({"conditions": [ready]}) == Moment(phase)


ENABLED, READY, DISABLED = (
    Moment(ModulePhase.ENABLED),
    Moment(ModulePhase.READY),
    Moment(ModulePhase.DISABLED),
)
FAILED, OTHERWISE, STUCK = (
    Moment(ModulePhase.FAILED, "a"),
    Moment(ModulePhase.FAILED, "b"),
    Moment(ModulePhase.DELETE_FAILED),
)
WAYS = {
    "first start": (None, [ENABLED, READY], ["Enabled", "Ready"]),
    "disabled from the beginning": (None, [DISABLED], []),
    "restart": (READY, [ENABLED, READY], []),
    "run again": (READY, [READY], []),
    "switched on": (DISABLED, [ENABLED, READY], ["Enabled", "Ready"]),
    "switched off": (READY, [DISABLED], ["Disabled"]),
    "failure": (READY, [FAILED], ["Failed"]),
    "the same failure again": (FAILED, [FAILED, FAILED], []),
    "another failure": (FAILED, [OTHERWISE], ["Failed"]),
    "recovery": (FAILED, [READY], ["Ready"]),
    "failing delete": (READY, [STUCK, STUCK, DISABLED], ["DeleteFailed", "Disabled"]),
    "given up to delete": (STUCK, [ENABLED, READY], ["Enabled", "Ready"]),
}


@rows.each(("before", "moments", "told"), WAYS.values(), ids=WAYS.keys())
def test_events_tell_of_news_alone(before: Moment | None, moments: list[Moment], told: list[str]) -> None:
    found, last = module_status.notices(before, moments)
    assert [each.reason for each in found] == told
    assert last == moments[-1]


def test_failures_are_warnings_that_hold_no_error() -> None:
    (notice,), _ = module_status.notices(READY, [Moment(ModulePhase.FAILED, "password 1234 is too short")])
    assert notice.type == "Warning"
    assert "1234" not in notice.message


def test_a_recovery_says_so() -> None:
    (notice,), _ = module_status.notices(FAILED, [READY])
    assert notice == module_status.Notice("Normal", "Ready", "The module is ready again, after a failure.")


@rows.each("status", [Status.FAILED, Status.DELETING])
def test_a_module_that_waits_for_its_next_try_is_progressing_with_retry(status: state.ModuleStatus) -> None:
    waiting = module(status, ERROR)
    waiting.next_try = NOW + 25
    (found,) = (each for each in document(waiting)["conditions"] if each["type"] == "Reconciling")
    assert (found["status"], found["reason"]) == ("True", "ProgressingWithRetry")
    assert found["message"] == "The last try failed; next try at 2023-11-14T22:13:45Z."


def test_the_release_is_named_where_module_yaml_names_it() -> None:
    plain = module()
    config = module_config.ModuleConfig(release_name="front", namespace="edge")
    elsewhere = structs.replace(plain, module=structs.replace(plain.module, config=config))
    assert document(plain)["release"] == {"revision": 3, "checksum": "abc"}
    assert document(elsewhere)["release"] == {
        "revision": 3,
        "checksum": "abc",
        "name": "front",
        "namespace": "edge",
    }
