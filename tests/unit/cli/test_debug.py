"""The debug commands, and what they print."""

import json
import os
import pathlib
import socket as sockets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import click
import pytest
import rich.console
import yaml
from click import shell_completion, testing

from addon_operator.cli import completion, debug, main, module_tables, printing
from addon_operator.cli import module as module_commands
from addon_operator.commands.outside import dev_operators, module_requests
from addon_operator.commands.outside import place as places
from addon_operator.debug import debug_client
from addon_operator.devcluster import locations
from addon_operator.engine import state
from addon_operator.engine.bindings import webhooks
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import errors
from addon_operator.kube.client import retries
from addon_operator.modules import findings, windows
from tests.support import rows
from tests.unit.cli import debug_server
from tests.unit.debug import inspected
from tests.unit.engine import bound_fakes
from tests.unit.status import page_samples


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[pathlib.Path, inspected.World]]:
    with tempfile.TemporaryDirectory(prefix="ao-") as directory:
        path = pathlib.Path(directory) / "debug.socket"
        with debug_server.running(path) as world:
            yield path, world


@pytest.fixture(autouse=True)
def socket(served: tuple[pathlib.Path, inspected.World], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUG_UNIX_SOCKET", str(served[0]))
    # Where no API server answers, that is what a test is about.
    monkeypatch.setattr(retries, "MAX_ATTEMPTS", 1)


def invoke(*arguments: str) -> testing.Result:
    return testing.CliRunner().invoke(main.cli, arguments)


def text(*arguments: str) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def document(*arguments: str) -> Any:  # noqa: ANN401  # JSON
    return json.loads(text(*arguments, "-o", "json"))


def error(*arguments: str) -> str:
    result = invoke(*arguments)
    assert isinstance(result.exception, errors.AddonOperatorError)
    return str(result.exception)


def test_a_module_is_run_and_tried_again() -> None:
    assert text("module", "run", "web").startswith("module web runs as soon as its queue lets it")
    assert text("module", "retry", "web").startswith("module web runs as soon as its queue lets it")
    assert "nothing of it waits for another try" in error("module", "retry", "kube-dns")
    assert error("module", "run", "wbe") == "there is no module 'wbe'; did you mean 'web'?"


def compared(*arguments: str) -> tuple[int, str]:
    ran = testing.CliRunner().invoke(main.cli, ["module", "diff", "web", *arguments], standalone_mode=False)
    return ran.return_value, ran.stdout


def test_what_waits_for_a_window_is_shown_where_one_looks(
    served: tuple[pathlib.Path, inspected.World],
) -> None:
    assert text("module", "diff", "web", "--pending") == "Nothing is held back.\n"
    held = windows.HeldBack("upgrade to revision 8", 1000.0, 500.0)
    served[1].states.hold_back(inspected.WEB, held)
    try:
        waits = "waits for a window, which opens at 1970-01-01T00:16:40Z: upgrade to revision 8"
        assert waits in text("module", "list", "-o", "wide")
        lines = text("module", "describe", "web").splitlines()
        place = lines.index("Held back:")
        assert lines[place + 1] == f"  {waits}"
        assert lines[place + 2].startswith("  since 1970-01-01T00:08:20Z (")
        assert compared("--pending") == (1, f"{waits}\nthe difference of web\n")
        assert text("module", "run", "web", "--now").startswith("module web runs as soon as")
    finally:
        served[1].states.hold_back(inspected.WEB, None)


def test_what_others_changed_is_shown_with_both_values() -> None:
    code, shown = compared()
    assert code == 1
    assert shown.startswith("ConfigMap web: /data/a (by alice)\n  - b\n  + z\nSecret hidden: ")
    assert shown.endswith("/data/password\n  - ***\n  + (missing)\n")


def test_modules_are_a_table() -> None:
    lines = text("module", "list").splitlines()
    assert lines[0].split() == [
        "MODULE",
        "ORDER",
        "STATE",
        "HEALTHY",
        "REVISION",
        "LAST",
        "RUN",
        "MESSAGE",
    ]
    assert [line.split()[:3] for line in lines[1:]] == [
        ["kube-dns", "10", "Disabled"],
        ["web", "20", "Disabled"],
    ]


UNHEALTHY: dict[str, Any] = {
    "health": "Failed",
    "healthMessage": "ImagePullBackOff (pod web-1): Deployment web",
}
SUSPENDED: dict[str, Any] = {
    "suspended": "suspended: the disk (by alice)",
    "reason": "suspended: the disk (by alice); enabled",
}
HELD: dict[str, Any] = {
    "heldBack": {"what": "revision 2", "until": "2026-01-01T04:00:00Z", "since": "x", "confirm": ""}
}


@rows.each(
    ("row", "style"),
    [
        ({}, "green"),
        (UNHEALTHY, "red"),
        ({"state": "Running", **UNHEALTHY}, "red"),
        ({"state": "Failed", "lastError": "no"}, "red"),
        ({"health": "Progressing", "healthMessage": "0 of 1 pods"}, "cyan"),
        ({"drift": "ConfigMap web"}, "yellow"),
        ({"wrongValues": "web is invalid"}, "yellow"),
        (SUSPENDED, "yellow"),
        (HELD, "yellow"),
        ({"state": "Disabled", "health": ""}, "dim"),
    ],
)
def test_a_row_is_painted_as_the_worst_that_it_says(row: dict[str, Any], style: str) -> None:
    module = page_samples.row("web", **row)
    assert module_tables._styles([module])(module_tables._row(module)) == style


def test_a_module_that_waits_is_still_said_to_be_suspended_and_held_back() -> None:
    waits: dict[str, Any] = {"state": "Pending", "waitsFor": ["badhook (Failed)"], **SUSPENDED, **HELD}
    told = (
        "waits for a window, which opens at 2026-01-01T04:00:00Z: revision 2; "
        "Helm and healing leave it alone: suspended: the disk (by alice); "
        "'addon-operator module resume web' ends that; waits for badhook (Failed)"
    )
    listed: dict[str, Any] = {"modules": [page_samples.row("web", **waits)]}
    wide = module_tables.LISTED.rendered(listed, "wide")
    assert told in wide
    assert wide.count("suspended: the disk") == 1
    assert "waits for a window" in module_tables.LISTED.rendered(listed, "text")


def test_a_run_that_ends_with_pods_that_do_not_run_says_so() -> None:
    told = module_commands._has_run(page_samples.row("web", **UNHEALTHY))
    assert told == "module web is Ready; it is not healthy: ImagePullBackOff (pod web-1): Deployment web"
    assert module_commands._has_run(page_samples.row("web", health="Progressing")) == (
        "module web is Ready; it is not healthy yet: a resource"
    )


def test_it_is_said_since_when_a_module_is_as_it_is() -> None:
    failed: dict[str, Any] = {"state": "Failed", "lastError": "no", "since": "2020-01-01T00:00:00Z"}
    row = page_samples.row("web", **failed)
    header, shown = module_tables.LISTED.rendered({"modules": [row]}, "wide").splitlines()
    assert header.split()[:4] == ["MODULE", "ORDER", "STATE", "SINCE"]
    assert shown.split()[3].startswith("2")
    more: dict[str, Any] = {
        "revision": None,
        "tries": 4,
        "hooks": None,
    }
    lists: dict[str, Any] = {"sharedObjects": [], "absentObjects": [], "restoredObjects": {}}
    described = module_tables.description(row | more | lists).splitlines()
    assert any(line.startswith("Since:       2020-01-01T00:00:00Z (") for line in described)
    assert "Tries:       4 failed" in described


def test_a_binding_that_waits_for_its_objects_stands_with_its_module() -> None:
    expected = "binding pods (Pod) of hook pods.sh waits: the operator may not list pods"
    (web,) = [line for line in text("module", "list").splitlines() if line.startswith("web")]
    assert expected in web
    (row,) = [row for row in document("module", "list")["modules"] if row["name"] == "web"]
    assert row["waitingBindings"] == [
        {"hook": "pods.sh", "binding": "pods", "kind": "Pod", "reason": "the operator may not list pods"}
    ]
    assert document("global", "list") == {
        "globalHooks": ["pods.sh"],
        "troubles": [],
        "runningHooks": [],
        "waitingBindings": [],
        "answering": [],
    }


def note(
    monkeypatch: pytest.MonkeyPatch, world: inspected.World, kind: findings.FindingKind, text: str
) -> None:
    """Let something be known of the module web until the test ends."""
    monkeypatch.setitem(world.states[inspected.WEB].noted, kind, findings.Finding(kind, (text,)))


def test_wrong_values_that_are_not_in_force_stand_above_the_modules_and_at_those_that_they_concern(
    served: tuple[pathlib.Path, inspected.World], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "ConfigMap a/b is invalid since 1970-01-01T00:00:00Z: web.size: must be at most 9"
    world = served[1]
    assert document("module", "list")["wrongValues"] == []
    monkeypatch.setattr(world.engine.views, "refusals", lambda: [said])
    note(monkeypatch, world, findings.WRONG_VALUES, said)
    for arguments in (("list",), ("list", "-o", "wide")):
        assert text("module", *arguments).splitlines()[:1] == [said]
    assert document("module", "list")["wrongValues"] == [said]
    lines = text("module", "describe", "web").splitlines()
    assert lines[lines.index("Not in force:") + 1] == f"  {said}"
    assert "Not in force:" not in text("module", "describe", "kube-dns")


def test_a_hook_that_fails_beside_the_runs_of_its_module_is_described_with_what_it_wrote(
    served: tuple[pathlib.Path, inspected.World], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Failing hooks:" not in text("module", "describe", "web"), "the run itself fails"
    (task,) = served[1].queue.pending
    monkeypatch.setattr(task, "hook", "pods.sh")
    monkeypatch.setattr(task, "binding", "pods")
    monkeypatch.setattr(task, "attempts", 2)
    monkeypatch.setattr(task, "last_error", "hook pods.sh failed with exit code 3: line 1\nline 2")
    lines = text("module", "describe", "web").splitlines()
    place = lines.index("Failing hooks:")
    assert lines[place + 1 : place + 4] == [
        "  pods.sh, binding pods, queue main, failed 2 times",
        "    hook pods.sh failed with exit code 3: line 1",
        "    line 2",
    ]


def test_what_hooks_answer_the_api_server_is_described(
    served: tuple[pathlib.Path, inspected.World], monkeypatch: pytest.MonkeyPatch
) -> None:
    text_of_config = json.dumps(
        {
            "configVersion": "v1",
            "kubernetesValidating": [
                {
                    "name": "guard.shop.example",
                    "rules": [
                        {
                            "apiGroups": ["apps"],
                            "apiVersions": ["v1"],
                            "operations": ["CREATE"],
                            "resources": ["deployments"],
                        }
                    ],
                }
            ],
            "kubernetesCustomResourceConversion": [
                {
                    "name": "up",
                    "crdName": "crons.shop.example",
                    "conversions": [{"fromVersion": "v1", "toVersion": "v2"}],
                }
            ],
        }
    )
    config = hook_config.parse(text_of_config, hook_config.HookKind.MODULE, "guard.sh")
    hook = state.Hook("guard.sh", pathlib.Path("guard.sh"), config)
    monkeypatch.setattr(served[1].states[inspected.WEB], "hooks", (hook,))
    lines = text("module", "describe", "web").splitlines()
    place = lines.index("  guard.sh")
    assert lines[place + 1 : place + 3] == [
        "    kubernetesValidating guard.shop.example (CREATE deployments.apps)",
        "    kubernetesCustomResourceConversion up (crons.shop.example v1 to v2)",
    ]


def test_whether_the_api_server_asks_hooks_stands_with_their_module(
    served: tuple[pathlib.Path, inspected.World], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: webhooks.AnsweringRow = {
        "hook": "guard.sh",
        "binding": "kubernetesValidating",
        "name": "a.b.c",
        "notRegistered": "",
        "unanswered": "",
    }
    other: webhooks.AnsweringRow = {**asked, "name": "d.e.f", "notRegistered": "a right is missing"}
    failing: webhooks.AnsweringRow = {**asked, "name": "g.h.i", "unanswered": "hook guard.sh failed"}
    of_owner = {"web": [asked, other, failing], "": [other]}
    monkeypatch.setattr(
        bound_fakes.WaitingBindings, "answering", lambda _bindings, owner: of_owner.get(owner, [])
    )
    wrong = "kubernetesValidating d.e.f of hook guard.sh is not registered: a right is missing"
    note(monkeypatch, served[1], findings.NOT_REGISTERED, wrong)
    monkeypatch.setattr(served[1].states[inspected.WEB], "status", state.ModuleStatus.READY)
    (web,) = [line for line in text("module", "list").splitlines() if line.startswith("web")]
    assert wrong.partition(":")[0] in web
    above, head, _, wide = text("module", "list", "-o", "wide").splitlines()
    assert above == f"global hooks: {wrong}"
    assert wide[head.index("ANSWERS") :].startswith("2/3 registered  ")
    assert wrong in wide
    lines = text("module", "describe", "web").splitlines()
    place = lines.index("Answers the API server:")
    silent = (
        "kubernetesValidating g.h.i of hook guard.sh is registered, and did not answer the last request: "
        "hook guard.sh failed"
    )
    assert "kubernetesValidating g.h.i of hook guard.sh did not answer the last request" in wide
    assert lines[place + 1 : place + 4] == [
        "  kubernetesValidating a.b.c of hook guard.sh is registered",
        f"  {wrong}",
        f"  {silent}",
    ]
    assert wrong in text("global", "list")
    assert document("module", "describe", "web")["answering"] == of_owner["web"]


def test_objects_of_several_modules_stand_in_the_wide_list_and_in_documents() -> None:
    head, dns, web = text("module", "list", "-o", "wide").splitlines()
    place = head.index("SHARED OBJECTS")
    assert dns[place:].startswith("ConfigMap addons/a (also of web; belongs to web), ")
    told = ", ".join(
        f"ConfigMap addons/{name} (also of kube-dns; belongs to web)" for name in inspected.SHARED[:5]
    )
    assert web[place:].startswith(f"{told} and 2 more  ")
    assert "SHARED OBJECTS" not in text("module", "list")
    rows = {row["name"]: row["sharedObjects"] for row in document("module", "list")["modules"]}
    assert rows["kube-dns"][0] == {"resource": "ConfigMap addons/a", "modules": ["web"], "owner": "web"}
    assert rows["web"][0] == {"resource": "ConfigMap addons/a", "modules": ["kube-dns"], "owner": "web"}
    assert len(rows["web"]) == len(inspected.SHARED)


def test_a_module_is_described_with_its_whole_error(served: tuple[pathlib.Path, inspected.World]) -> None:
    world = served[1]
    module = world.states[inspected.WEB]
    module.last_run, module.last_error = 1.0, "helm upgrade:\n" + "a long message " * 50
    try:
        lines = text("module", "describe", "web").splitlines()
        found = document("module", "describe", "web")
    finally:
        module.last_run, module.last_error = None, ""
    assert lines[:7] == [
        "Name:        web", "State:       Disabled", "Health:      -",
        "Reason:      not discovered yet", "Order:       20",
        "Release:     revision 7", "Namespace:   addons",
    ]  # fmt: skip
    assert lines[7].startswith("Last run:    1970-01-01T00:00:01Z (")
    assert lines[8] == f"Next try:    {found['nextTry']}"
    assert lines[9:12] == ["Last error:", "  helm upgrade:", "  " + "a long message " * 50]
    assert lines[12:19] == [
        "Binding waits:", "  binding pods (Pod) of hook pods.sh waits: the operator may not list pods",
        "Hooks:", "  pods.sh", "    beforeHelm, order 10, queue main",
        "    kubernetes secrets (secret), queue main", "    kubernetes pods (Pod), queue main",
    ]  # fmt: skip
    assert lines[-5:] == [
        "Absent objects:", "  v1/ConfigMap addons/gone",
        "Restored lately:", "  ConfigMap addons/web (times: 3)", "Events: -",
    ]  # fmt: skip
    assert found["absentObjects"] == ["v1/ConfigMap addons/gone"]
    assert found["hooks"][0]["bindings"][0] == {"binding": "beforeHelm", "order": 10, "queue": "main"}
    assert (found["revision"], found["restoredObjects"]) == (7, {"ConfigMap addons/web": 3})
    assert yaml.safe_load(text("module", "describe", "web", "-o", "yaml"))["revision"] == 7


def test_a_module_that_never_ran_is_described() -> None:
    lines = text("module", "describe", "kube-dns").splitlines()
    assert lines[5:] == [
        "Release:     -", "Namespace:   addons", "Last run:    -", "Next try:    -", "Last error: -",
        "Hooks:", "  not known yet",
        "Shared objects:",
        *(f"  ConfigMap addons/{name} (also of web; belongs to web)" for name in inspected.SHARED),
        "Absent objects: -", "Restored lately: -", "Events: -",
    ]  # fmt: skip
    assert error("module", "describe", "kube-dsn").endswith("did you mean 'kube-dns'?")


def test_queues_are_a_table_with_age_tries_and_the_last_error() -> None:
    lines = text("queue", "list").splitlines()
    assert lines[0].split() == ["QUEUE", "#", "TASK", "AGE", "TRIES", "STATE", "LAST", "ERROR"]
    assert lines[1].split() == [
        *("main", "1", "ModuleRun", "web", "0.0s", "1", "next", "try", "in", "5.0s"),
        *("the", "chart", "is", "broken"),
    ]  # fmt: skip
    assert lines[-1] == "main: 1 task; 1 other queue, 1 of them empty: no tasks"
    assert "Empty queues: idle" in text("queue", "list", "-e")


def test_the_main_queue_stands_alone() -> None:
    assert "the chart is broken" in text("queue", "main")
    assert document("queue", "main")["name"] == "main"


def test_every_format_says_the_same() -> None:
    as_json = document("module", "list")
    assert yaml.safe_load(text("module", "list", "-o", "yaml")) == as_json
    assert [row["name"] for row in as_json["modules"]] == ["kube-dns", "web"]


@rows.each(
    ("arguments", "expected"),
    [
        (("global", "list"), "pods.sh\n"),
        (("global", "values"), "domain: example.org\ntoken: '***'\nzone: a\n"),
        (("global", "config"), "domain: example.org\ntoken: '***'\n"),
        (("global", "values", "-o", "text"), "domain: example.org\ntoken: '***'\nzone: a\n"),
        (("module", "config", "web"), "size: 2\n"),
        (("module", "values", "web"), "size: 2\npassword: '***'\n"),
        (("module", "snapshots", "kube-dns"), "{}\n"),
        (("module", "render", "web"), "manifest of web, sensitive: False\n"),
        (("module", "render", "--diff", "--debug", "web"), "diff of web, sensitive: False\n"),
        (("raw", "/"), "debug endpoint is alive\n"),
        (("raw", "module/web/config.json"), '{"size":2}\n'),
    ],
    ids=lambda row: " ".join(row[0]),
)
def test_a_command_prints_what_the_operator_says(arguments: tuple[str, ...], expected: str) -> None:
    assert text(*arguments) == expected


def test_patches_are_json_unless_something_else_is_wanted() -> None:
    patches = json.loads(text("module", "patches", "web"))
    assert patches == [{"op": "add", "path": "/web/password", "value": "***"}]
    assert yaml.safe_load(text("module", "patches", "web", "-o", "yaml")) == patches
    assert json.loads(text("global", "patches")) == [{"op": "add", "path": "/global/zone", "value": "a"}]


def test_where_values_come_from_is_a_table_unless_a_format_is_asked_for() -> None:
    asked = ("module", "values", "web", "--origin")
    assert text(*asked).split()[:3] == ["PATH", "VALUE", "ORIGIN"]
    assert text(*asked, "-o", "text") == text(*asked)
    told = document(*asked)
    assert told["module"] == "web"
    assert {row["path"] for row in told["values"]} == {"web.password", "web.size"}
    assert text(*asked, "-o", "yaml").startswith("module: web\nvalues:\n")
    assert yaml.safe_load(text(*asked, "-o", "yaml")) == told


@pytest.mark.parametrize("named", [("--context", "x"), ("--debug-unix-socket", "x")])
def test_files_or_an_operator_tell_where_a_field_comes_from(named: tuple[str, str]) -> None:
    result = invoke("module", "why", "web", "--modules-dir", "modules", *named)
    assert result.exit_code == 2
    assert "files answer, and no operator is asked: leave out what names one" in result.stderr


def test_global_values_are_shown_beside_those_of_a_module() -> None:
    assert set(document("module", "values", "-g", "web")) == {"global", "web"}
    assert set(document("module", "config", "--global", "web")) == {"global", "web"}


@rows.each(
    "arguments",
    [
        ("global", "values"),
        ("global", "config"),
        ("global", "snapshots"),
        ("module", "values", "web"),
        ("module", "patches", "web"),
        ("module", "snapshots", "web"),
    ],
    ids=" ".join,
)
def test_what_is_sensitive_is_shown_only_on_demand(arguments: tuple[str, ...]) -> None:
    assert inspected.SECRET not in text(*arguments)
    assert inspected.SECRET in text(*arguments, "--show-sensitive")


def test_watched_resources_are_a_table() -> None:
    lines = text("module", "resource-monitor").splitlines()
    assert lines[0].split() == ["MODULE", "STATE", "RESOURCE", "REASON"]
    assert lines[1].split() == ["web", "present", "v1/ConfigMap", "addons/web", "-"]
    assert lines[2].split() == ["web", "absent", "v1/ConfigMap", "addons/gone", "-"]
    assert lines[3].split() == ["kube-dns", "No", "monitor", "-", "-"]


def test_the_level_of_the_log_is_set_and_listed() -> None:
    assert text("config", "set", "log.level", "debug", "90s") == "log.level is debug for 1m30s, then info\n"
    row = document("config", "list")[0]
    assert (row["name"], row["value"], row["expiresIn"]) == ("log.level", "debug", 90.0)
    assert text("config", "list").splitlines()[1].split()[:4] == ["log.level", "debug", "info", "1m30s"]
    assert text("config", "set", "log.level", "info") == "log.level is info\n"


def test_an_unknown_module_is_reported_with_the_nearest_name() -> None:
    assert error("module", "values", "kube-dsn") == "there is no module 'kube-dsn'; did you mean 'kube-dns'?"


@rows.each("name", ["a/b", "..", "a b?c#d", "%2f"])
def test_no_name_of_a_module_leads_elsewhere(name: str) -> None:
    assert "there is no" in error("module", "values", name) or "nothing at" in error("module", "values", name)


def test_a_wrong_parameter_is_reported() -> None:
    assert "did you mean 'log.level'?" in error("config", "set", "log.leve", "debug")


def test_a_wrong_duration_is_a_mistake_in_the_arguments() -> None:
    result = invoke("config", "set", "log.level", "debug", "soon")
    assert result.exit_code == 2
    assert "invalid duration 'soon'" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("module", "list"),
        ("module", "describe", "web"),
        ("queue", "list"),
        ("queue", "main"),
        ("global", "list"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("answer", ["{}", "[]", "3", '{"modules": [{}], "active": 5, "globalHooks": null}'])
def test_an_operator_of_another_version_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], answer: str
) -> None:
    monkeypatch.setattr(debug_client.DebugClient, "_request", lambda *_: answer)
    assert error(*arguments).startswith("the answer is not one of this version of addon-operator")
    assert document(*arguments) == json.loads(answer)
    assert completions("module", "values", "w") == []


def test_texts_of_several_lines_can_be_read() -> None:
    assert debug.rendered({"a": "one\ntwo\n", "b": "off"}, "yaml") == "a: |\n  one\n  two\nb: 'off'\n"


def test_rows_are_not_folded_where_there_is_no_terminal() -> None:
    made = printing.listing(["NAME", "last error"], [["web", "x" * 5000]], folds=True)
    assert made.splitlines()[1] == f"web   {'x' * 5000}"


@pytest.mark.parametrize("columns", [44, 60, 200])
def test_what_is_folded_for_a_narrow_terminal_keeps_its_words(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    words = "helm upgrade failed with a message"
    made = printing.listing(
        ["MODULE", "STATE", "last error"], [["ingress-nginx", "Ready", words]], folds=True
    )
    shown = click.unstyle(made).splitlines()
    assert shown[0].split() == ["MODULE", "STATE", "LAST", "ERROR"]
    assert shown[1].startswith("ingress-nginx  Ready  helm upgrade")
    assert " ".join(line[22:].strip() for line in shown[1:]) == words
    assert max(map(len, shown)) <= columns


PATH = "/home/somebody/a-project-of-addons/modules/010-web/values.yaml"


@pytest.mark.parametrize("columns", [40, 60, 80, 100])
def test_a_path_that_has_no_room_in_its_column_is_whole_below_the_row(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    why, because = f"enabled by webEnabled in {PATH}", f"{PATH}, line 2: it is wrong"
    rows = [("web", "unknown", why, because), ("db", "nothing", "enabled", "it is as it was")]
    made = printing.listing(("MODULE", "ACTION", "why", "because"), rows, folds=True)
    lines = click.unstyle(made).splitlines()
    assert lines[1].split() == ["web", "unknown", "…", "…"]
    assert lines[2:4] == [f"  why: {why}", f"  because: {because}"]
    assert lines[4].startswith("db      nothing  enabled")
    one = click.unstyle(printing.listing(("LEVEL", "finding"), [("error", because)], folds=True))
    fits = len(PATH) + 1 <= columns - 7
    assert one.splitlines()[1:][-1 if not fits else 0].startswith("error  /home" if fits else f"  {because}")
    assert all(PATH in text for text in (made, one))


def test_without_an_operator_there_is_one_sentence(tmp_path: pathlib.Path) -> None:
    missing = tmp_path / "none.socket"
    sentence = error("queue", "list", "--debug-unix-socket", str(missing))
    assert sentence.startswith(f"no operator runs: there is no socket {missing}; start one with ")
    assert "\n" not in sentence


def test_an_operator_of_a_cluster_is_asked_if_one_is_named(tmp_path: pathlib.Path) -> None:
    assert "/nowhere/config" in error("module", "list", "--kubeconfig", "/nowhere/config")
    result = invoke("module", "list", "-n", "addons", "--debug-unix-socket", "/x")
    assert result.exit_code == 2
    assert "leave out what names a cluster" in result.output


def test_without_a_socket_the_cluster_of_the_kubeconfig_is_asked(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DEBUG_UNIX_SOCKET", "KUBECONFIG", "KUBE_CONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    missing = tmp_path / "default.socket"
    monkeypatch.setattr(debug, "_is_here", lambda _: missing.exists())
    for arguments in (("module", "list"), ("module", "suspend", "web", "--reason", "x"), ("raw", "/")):
        assert error(*arguments).startswith("no operator runs: there is no socket ")
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    for asked in (("module", "list"), ("module", "run", "web"), ("module", "resume", "web")):
        assert error(*asked).startswith("KUBECONFIG names /nowhere/config, which does not exist")
    missing.touch()
    assert error("module", "list").startswith("no operator runs: there is no socket ")


def test_the_operator_of_dev_is_found_by_its_cluster_and_alone_without_any(
    served: tuple[pathlib.Path, inspected.World], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DEBUG_UNIX_SOCKET", "KUBECONFIG", "KUBE_CONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(locations.STATE_VARIABLE, str(tmp_path / "state"))
    monkeypatch.setattr(debug, "_is_here", lambda _: False)
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(config_of("https://127.0.0.1:1"))
    there = ("--kubeconfig", str(kubeconfig), "-n", "addon-operator-dev")
    operator = dev_operators.DevOperator(served[0], "https://127.0.0.1:1", "addon-operator-dev")
    with dev_operators.noted(operator, os.environ):
        assert "web" in text("module", "list", *there)
        assert "web" in text("module", "list")
        assert completions("module", "describe", "w") == ["web"]
        elsewhere = error("module", "list", "--kubeconfig", str(kubeconfig), "-n", "other")
        assert "127.0.0.1:1" in elsewhere, "the cluster is asked"
    assert error("module", "list").startswith("no operator runs: there is no socket ")
    gone = dev_operators.DevOperator(tmp_path / "gone.socket", operator.server, operator.namespace)
    with dev_operators.noted(gone, os.environ):
        assert error("module", "list").startswith("no operator runs: there is no socket ")


@pytest.mark.parametrize("has_kubeconfig", [True, False])
def test_an_operator_here_is_asked_at_its_socket_if_it_works_where_the_flags_say(
    has_kubeconfig: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KUBECONFIG", "KUBE_CONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(locations.STATE_VARIABLE, str(tmp_path / "state"))
    other, own = tmp_path / "other", tmp_path / "own"
    other.write_text(config_of("https://127.0.0.1:1"))
    own.write_text(config_of(inspected.HOME[1]))
    if has_kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(own))
    assert "web" in text("module", "list", "-n", "addons")
    assert "web" in text("module", "list", "-n", "addons", "--kubeconfig", str(own))
    assert text("module", "run", "web", "-n", "addons").startswith("module web runs as soon as its queue")
    assert "127.0.0.1:1" in error("module", "list", "-n", "addons", "--kubeconfig", str(other))
    elsewhere = error("module", "list", "-n", "elsewhere")
    assert (inspected.HOME[1] if has_kubeconfig else "no credentials") in elsewhere, "the cluster is asked"
    monkeypatch.setenv("DEBUG_UNIX_SOCKET", str(tmp_path / "none"))
    assert (inspected.HOME[1] if has_kubeconfig else "no credentials") in error(
        "queue", "list", "-n", "addons"
    )


def config_of(server: str) -> str:
    return json.dumps(
        {
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    )


def test_a_module_is_suspended_and_resumed_on_the_socket(
    served: tuple[pathlib.Path, inspected.World], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, dict[str, str]]] = []
    # A user of a container may have a number and no name.
    monkeypatch.setenv("LOGNAME", "ops")

    def post(_: debug_client.DebugClient, path: str, form: dict[str, str]) -> object:
        asked.append((path, form))
        return {"name": "web", "suspended": "suspended: x (since now)"}

    assert error("module", "resume", "web") == "module web is not suspended"
    monkeypatch.setattr(debug_client.DebugClient, "post", post)
    assert text("module", "suspend", "web", "--reason", "x", "--for", "90m") == (
        "module web is suspended: x (since now)\n"
    )
    assert text("module", "resume", "web") == "module web is looked after again\n"
    assert [path for path, _ in asked] == ["/module/web/suspend", "/module/web/resume"]
    form = asked[0][1]
    assert (form["reason"], form["for"]) == ("x", "5400.0s")
    assert form["by"] == f"ops on {sockets.gethostname()}"
    text("module", "suspend", "web", "--reason", "x", "--replace")
    assert asked[-1][1]["replace"] == "true"
    assert invoke("module", "suspend", "web").exit_code == 2
    empty = invoke("module", "suspend", "web", "--reason", " ")
    assert (empty.exit_code, "it is empty: say why" in empty.output) == (2, True)


def test_resuming_says_no_more_than_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    removed = "the annotations that suspend module web are removed from the Module object addons/web"

    class Nobody:
        """No operator had said that it is suspended."""

        def resume(self, name: str) -> object:
            return {"name": name, "unseen": removed}

    monkeypatch.setattr(debug, "outside_requests", lambda _: Nobody())
    told = text("module", "resume", "web")
    assert told.startswith(f"{removed}; no operator had taken them in")
    assert "is looked after again" not in told


def test_tables_have_no_colours_where_there_is_no_terminal() -> None:
    assert "\x1b" not in text("module", "list") + text("queue", "list")


def test_a_watched_list_is_printed_until_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    printed = text("module", "list", "--watch", "-t", "250ms")
    assert pauses == [0.25, 0.25, 0.25]
    assert printed.count("MODULE") == 3


def test_a_watch_goes_on_when_the_operator_is_away_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = errors.AddonOperatorError("no operator runs")
    answers: Iterator[str | errors.AddonOperatorError] = iter(["first\n", refusal, "third\n"])
    shown: list[str] = []

    def look() -> str:
        answer = next(answers)
        if isinstance(answer, errors.AddonOperatorError):
            raise answer
        return answer

    def sleep(_: float) -> None:
        if len(shown) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(click, "echo", shown.append)
    debug.watched(look, 1.0)
    assert shown == ["first\n", "no operator runs\n", "third\n"]


@rows.each(
    ("seconds", "shown"),
    [
        (0.04, "0.0s"),
        (9.94, "9.9s"),
        (12.7, "12s"),
        (185, "3m5s"),
        (15_000, "4h10m"),
        (183_600, "2d3h"),
    ],
)
def test_ages_are_short(seconds: float, shown: str) -> None:
    assert printing.age(seconds) == shown


def completions(*words: str) -> list[str]:
    """What the shell offers for the last word."""
    *before, incomplete = words
    completer = shell_completion.ShellComplete(main.cli, {}, main.PROGRAM, main.VARIABLE)
    return [item.value for item in completer.get_completions(before, incomplete)]


@rows.each(
    ("words", "offered"),
    [
        (("q",), ["queue"]),
        (("module", "re"), ["remove", "render", "resource-monitor", "resume", "retry"]),
        (("module", "values", ""), ["kube-dns", "web"]),
        (("module", "values", "k"), ["kube-dns"]),
        (("module", "values", "--show"), ["--show-sensitive"]),
        (("queue", "list", "-o", ""), ["table", "wide", "yaml", "json", "name"]),
        (("config", "set", ""), ["log.level"]),
        (("config", "set", "log.level", "d"), ["debug"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
    ],
    ids=lambda row: " ".join(row[0]),
)
def test_the_shell_is_offered_what_fits(words: tuple[str, ...], offered: list[str]) -> None:
    assert completions(*words) == offered


def test_without_an_operator_no_module_is_offered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setenv("DEBUG_UNIX_SOCKET", str(tmp_path / "none"))
    assert completions("module", "values", "") == []


def test_commands_are_offered_without_being_imported() -> None:
    assert completions("") == sorted([*main.COMMANDS, "completion", "version"])


@rows.each(
    ("shell", "words"),
    [
        ("bash", ("complete", "-F")),
        ("zsh", ("#compdef addon-operator",)),
        ("fish", ("complete --no-files --command addon-operator",)),
    ],
)
def test_a_shell_gets_a_script_that_asks_us(shell: str, words: tuple[str, ...]) -> None:
    script = text("completion", shell)
    assert f"{main.VARIABLE}={shell}_complete" in script
    assert all(word in script for word in words)


LONG = "helm upgrade: " + "a long reason " * 100 + "the end"


ENABLED = "enabled by webEnabled in modules/010-web/values.yaml"


@pytest.mark.parametrize("columns", [80, 100, 160, 1000])
def test_a_long_error_is_cut_to_one_line_of_the_terminal_and_wide_shows_all(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    cells = [("web", "20", "Failed", "-", LONG, ENABLED), ("b", "1", "Ready", "-", "-", ENABLED)]
    names = ("MODULE", "ORDER", "STATE", "LAST RUN", "last error", "reason")
    cut = click.unstyle(printing.listing(names, cells)).splitlines()
    assert len(cut) == 3
    assert "helm upgrade: a" in cut[1]
    assert "enabled by web" in cut[1]
    assert "…" in cut[1]
    assert max(map(len, cut)) <= min(columns, 200)
    whole = click.unstyle(printing.listing(names, cells, wide=True)).splitlines()
    assert len(whole) == 3
    assert "the end" in whole[1]


def test_a_long_error_is_one_line_in_a_pipe_too() -> None:
    lines = printing.listing(("a", "b", "c"), [("x", LONG, "enabled")]).splitlines()
    assert lines[1].startswith("x  helm upgrade: a long reason")
    assert lines[1].endswith("…  enabled")
    assert len(lines[1]) == 200


@pytest.mark.parametrize(("width", "spared"), [(80, 2), (90, 1), (100, 0)])
def test_less_important_columns_make_room_for_the_message_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, width: int, spared: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    names = ("MODULE", "ORDER", "STATE", "LAST RUN", "message")
    cells = [("badchart-of-shop", "110", "Failed", "12m20s ago", "nil pointer evaluating " + "x" * 100)]
    made = printing.listing(names, cells, lambda row: {"Failed": "red"}[row[2]], spared=("ORDER", "LAST RUN"))
    head, line = click.unstyle(made).splitlines()
    assert [name in head for name in ("ORDER", "LAST RUN")] == [spared < 1, spared < 2]
    assert len(line.partition("nil")[2]) > 40


def test_a_module_row_says_each_sentence_once_and_what_fails_is_first() -> None:
    why = "the API server does not take guard.example.com"
    bound = {"hook": "g.py", "binding": "kubernetesValidating", "name": "guard", "notRegistered": why}
    plain = page_samples.row("web", suspended="suspended: the disks", reason="suspended: the disks; enabled")
    rows = [plain, page_samples.row("policy", 160, "Failed", lastError=why, answering=[bound])]
    for output in ("text", "wide"):
        shown = module_tables.LISTED.rendered({"modules": rows}, output)
        assert (shown.count(why), shown.count("the disks")) == (1, 1)
        assert [line.split()[0] for line in shown.splitlines()] == ["MODULE", "policy", "web"]
    assert module_tables.LISTED.rendered({"modules": rows}, "name") == "module/web\nmodule/policy\n"


def test_names_that_leave_no_room_are_cut_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    cells = [("m" * 53, "n" * 53, "a message of some words")]
    cut = click.unstyle(printing.listing(("MODULE", "RESOURCE", "message"), cells)).splitlines()
    assert max(map(len, cut)) <= 80
    assert cut[1].count("…") == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("module", "list"),
        ("module", "resource-monitor"),
        ("module", "values", "web", "--origin"),
        ("queue", "list"),
        ("queue", "main"),
        ("config", "list"),
        ("settings", "--crd-filter-prefixes", "a" * 200),
    ],
    ids=" ".join,
)
def test_tables_fit_eighty_columns_and_wide_has_all_of_them(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setattr(
        printing, "console", lambda least=0: rich.console.Console(width=max(80, least), color_system=None)
    )
    shown, wide = text(*arguments).splitlines(), text(*arguments, "-o", "wide").splitlines()
    assert max(map(len, shown)) <= 80
    assert len(shown) == len(wide)
    assert not any("…" in line for line in wide)


@rows.each(
    ("arguments", "names"),
    [
        (("module", "values", "web", "--origin"), "value/web.size\nvalue/web.password\n"),
        (("module", "list"), "module/kube-dns\nmodule/web\n"),
        (("queue", "list"), "queue/main\n"),
        (("queue", "main"), "queue/main\n"),
        (("global", "list"), "hook/pods.sh\n"),
        (("config", "list"), "parameter/log.level\n"),
    ],
)
def test_lists_are_names_alone_for_other_programs(arguments: tuple[str, ...], names: str) -> None:
    assert text(*arguments, "-o", "name") == names


def test_table_and_its_old_name_are_the_same() -> None:
    assert text("module", "list", "-o", "table") == text("module", "list", "-o", "text")
    wrong = invoke("module", "list", "-o", "txt")
    assert wrong.exit_code == 2
    assert "'txt' is not one of 'table', 'wide', 'yaml', 'json', 'name'." in wrong.output


def test_an_empty_queue_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debug_client.DebugClient, "get", lambda *_: {"name": "main", "tasks": []})
    assert text("queue", "main") == "queue main is empty\n"


def test_a_module_that_renders_to_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debug_client.DebugClient, "get_text", lambda *_: "")
    ran = testing.CliRunner().invoke(main.cli, ["module", "render", "web"], standalone_mode=False)
    assert (ran.stdout, ran.stderr) == ("", "module web has no chart, or it renders to nothing\n")


def test_targets_of_notifications_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {
        "name": "ops", "format": "slack", "host": "hooks.example", "on": ["failed"], "modules": ["*"],
        "after": "2m", "waiting": 1, "lastSent": None, "problem": "hooks.example answers with status 500",
    }  # fmt: skip
    right = {"secret": "addons/addon-operator-notify", "problem": ""}
    answers = {"/notify/list.json": [row], "/notify/source.json": right}
    monkeypatch.setattr(debug_client.DebugClient, "get", lambda _, path: answers[path])
    assert "ops     slack   hooks.example  2m     -" in text("notify", "list")
    listed = testing.CliRunner().invoke(main.cli, ["notify", "list"], standalone_mode=False)
    assert listed.stderr == "Warning: target ops: hooks.example answers with status 500\n", "never cut"
    assert text("notify", "list", "-o", "name") == "target/ops\n"
    answers["/notify/list.json"] = []
    assert text("notify", "list") == "no targets: nobody is notified\n"
    answers["/notify/source.json"] = right | {"problem": "Secret addons/x is gone"}
    ran = testing.CliRunner().invoke(main.cli, ["notify", "list"], standalone_mode=False)
    assert (ran.stdout, ran.stderr) == (
        "no targets: nobody is notified\n",
        "Warning: Secret addons/x is gone\n",
    )


def test_modules_of_a_cluster_are_offered_if_no_operator_is_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    asked = []

    def listed(place: places.Place, seconds: float) -> list[str]:
        asked.append((place.namespace, seconds))
        return ["web", "db"]

    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(config_of("https://127.0.0.1:1"))
    monkeypatch.delenv("DEBUG_UNIX_SOCKET")
    monkeypatch.setattr(module_requests, "listed", listed)
    flags = ("--kubeconfig", str(kubeconfig), "-n", "addons")
    assert completions("module", "describe", *flags, "w") == ["web"]
    assert asked == [("addons", 1.0)]
    monkeypatch.undo()
    monkeypatch.setattr(completion, "_SECONDS", 0.1)
    assert completions("module", "describe", "--kubeconfig", str(tmp_path / "none"), "w") == []
    assert completions("module", "describe", *flags, "w") == [], "nobody answers there"


def test_namespaces_and_contexts_are_offered_wherever_a_cluster_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    asked = []

    def namespaces(place: places.Place, seconds: float) -> list[str]:
        asked.append((place.access.context, seconds))
        return ["addons", "kube-system"]

    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(config_of("https://127.0.0.1:1"))
    monkeypatch.setattr(module_requests, "namespaces", namespaces)
    for command in (("module", "list"), ("plan",), ("start",), ("dev",), ("preview", "pod")):
        assert completions(*command, "--kubeconfig", str(kubeconfig), "--context", "") == ["x"]
        assert completions(*command, "--kubeconfig", str(kubeconfig), "-n", "a") == ["addons"]
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    assert completions("module", "list", "--context", "") == ["x"]
    assert completions("module", "list", "--context", "x", "-n", "") == ["addons", "kube-system"]
    assert asked[-1] == ("x", 1.0)
    assert completions("module", "list", "--context", "nowhere", "-n", "") == []
    kubeconfig.write_text("nonsense")
    assert completions("module", "list", "--context", "") == []


WHY: dict[str, Any] = {"objects": [{"object": "ConfigMap/web"}, {"object": "Deployment/web"}]}
PATHS = {"paths": ["/spec/replicas", "/metadata/labels/a.b~1c"]}


def test_objects_and_paths_are_offered_as_they_may_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(_: object, path: str, query: dict[str, str]) -> dict[str, Any]:
        assert path == "/module/web/why.json"
        assert query in ({}, {"object": "Deployment/web", "paths": "true"})
        return PATHS if query else WHY

    monkeypatch.setattr(debug_client.DebugClient, "get", get)
    assert completions("module", "why", "web", "D") == ["Deployment/web"]
    assert completions("module", "why", "web", "Deployment/web", "s") == ["spec.replicas"]
    assert completions("module", "why", "web", "Deployment/web", "/m") == ["/metadata/labels/a.b~1c"]
    assert completions("module", "why", "web", "Deployment/web", "") == ["spec.replicas", PATHS["paths"][1]]


@pytest.mark.slow
def test_completing_ends_in_time_and_without_a_word_whatever_hangs(tmp_path: pathlib.Path) -> None:
    with sockets.create_server(("127.0.0.1", 0)) as silent:
        kubeconfig = tmp_path / "config"
        kubeconfig.write_text(config_of(f"https://127.0.0.1:{silent.getsockname()[1]}"))
        words = f"addon-operator module list --kubeconfig {kubeconfig} -n a"
        environ = {
            "HOME": str(tmp_path),
            main.VARIABLE: "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": "6",
        }
        asked = [sys.executable, "-m", "addon_operator"]
        ran = subprocess.run(asked, env=environ, capture_output=True, check=False, timeout=60, cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_hooks_of_every_kind_of_binding_are_described() -> None:
    bindings: list[dict[str, object]] = [
        {"binding": "beforeHelm", "order": 10, "queue": "main"},
        {"binding": "schedule", "name": "often", "crontab": "* * * * *", "queue": "q"},
        {"binding": "kubernetes", "name": "pods", "apiVersion": "v1", "kind": "Pod", "queue": "main"},
        {"binding": "kubernetesValidating", "name": "a.b.c", "resources": "CREATE pods"},
        {"binding": "kubernetesCustomResourceConversion", "crdName": "a.b", "conversions": ["v1 to v2"]},
    ]
    assert list(module_tables._hook({"name": "x.sh", "bindings": bindings})) == [
        "x.sh",
        "  beforeHelm, order 10, queue main",
        "  schedule often (* * * * *), queue q",
        "  kubernetes pods (v1 Pod), queue main",
        "  kubernetesValidating a.b.c (CREATE pods)",
        "  kubernetesCustomResourceConversion (a.b v1 to v2)",
    ]
