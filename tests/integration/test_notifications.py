"""Who is told what becomes of modules: a receiver on this machine, real failures, restarts and fail-over."""

import hashlib
import hmac
import json
import pathlib
from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml

from addon_operator.devcluster import handle
from tests.integration import definitions, operator_process, operator_site, receivers
from tests.integration.module_objects import Modules

pytestmark = pytest.mark.integration

HMAC_KEY: Final = "canary-hmac"


@pytest.fixture
def modules(site: operator_site.Site, devcluster: handle.DevCluster) -> Modules:
    return Modules(site, devcluster)


@pytest.fixture
def receiver() -> Iterator[receivers.Receiver]:
    with receivers.receiving() as made:
        yield made


def fragile(modules: Modules, name: str = "web") -> pathlib.Path:
    """A module that fails until a file is there; that file."""
    mended = modules.site.root / f"{name}.mended"
    modules.site.hook(modules.add(10, name), "look.sh", {"beforeHelm": 1}, f"test -e {mended}")
    return mended


def test_a_failure_and_its_end_are_told_once_although_the_operator_is_killed_in_between(
    modules: Modules, receiver: receivers.Receiver
) -> None:
    site = modules.site
    site.first_retry = operator_site.SOON
    mended = fragile(modules)
    receivers.write_targets(
        site,
        [
            receivers.target(receiver, "chat", "slack"),
            receivers.target(receiver, "teams", "msteams"),
            receivers.target(receiver, "bus", "cloudevents", hmacKey=HMAC_KEY),
            receivers.target(receiver, "other", "slack", modules=["db*"]),
        ],
        cluster="lab",
    )
    operator = site.start()
    where = {"/chat": "lab: ", "/teams": "lab: ", "/bus": ""}
    for path, before in where.items():
        assert receiver.wait(path, 1) == [f"{before}web failed"]
    place, what, more = receiver.bodies("/chat")[0]["text"].splitlines()[1:]
    assert place == f"Module web (cluster lab, namespace {site.namespace})."
    assert what.startswith("It has failed since ")
    assert "look.sh failed with exit code 1" in what
    assert "Next try " in what
    assert more == f"More: addon-operator module describe web -n {site.namespace}"

    ((_, headers, body),) = [each for each in receiver.got if each[0] == "/bus"]
    digest = hmac.new(HMAC_KEY.encode(), body, hashlib.sha256).hexdigest()
    assert headers["X-Signature"] == f"sha256={digest}"
    assert headers["Content-Type"].startswith("application/cloudevents+json")
    event = json.loads(body)
    assert (event["specversion"], event["subject"], event["source"]) == (
        "1.0",
        "web",
        f"/addon-operator/{site.namespace}",
    )
    (item,) = event["data"]["items"]
    assert (item["module"], item["kind"], item["state"]) == ("web", "failed", "began")

    operator.wait_until(lambda: len(remembered(modules, "web")) == 3, "what was told is remembered")
    operator.kill()
    again = site.start()
    again.wait_logged("notifications go to")
    mended.touch()
    for path, before in where.items():
        works = receiver.wait(path, 2)[1]
        assert works.startswith(f"{before}web works again, after ")
    again.wait_until(lambda: not problems(modules, "web"), "there is nothing more to remember")
    again.stop()
    assert sorted(path for path, _, _ in receiver.got) == [
        "/bus",
        "/bus",
        "/chat",
        "/chat",
        "/teams",
        "/teams",
    ]
    assert HMAC_KEY not in again.log
    assert receiver.url not in again.log


@pytest.mark.slow
def test_what_fails_and_waits_beside_runs_is_told_and_seen_wherever_people_look(
    modules: Modules, receiver: receivers.Receiver
) -> None:
    site = modules.site
    site.first_retry = operator_site.SOON
    web, mended = modules.add(10, "web"), site.root / "mended"
    group = f"{site.namespace}.example.org"
    maps = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": {"nameSelector": {"matchNames": [site.namespace]}},
        "labelSelector": {"matchLabels": {"watched": "yes"}},
        "executeHookOnSynchronization": False,
    }
    endless = 'if .metadata.name == "odd" then last(repeat(1)) else .metadata.name end'
    site.hook(
        web,
        "maps.sh",
        {"kubernetes": [{**maps, "name": "changed", "queue": "changes"}]},
        f"test -e {mended} || {{ echo hunter2-canary >&2; exit 3; }}",
    )
    site.hook(web, "names.sh", {"kubernetes": [{**maps, "name": "names", "jqFilter": endless}]})
    site.hook(
        web, "shops.sh", {"kubernetes": [{"name": "shops", "apiVersion": f"{group}/v1", "kind": "Shop"}]}
    )
    receivers.write_targets(site, [receivers.target(receiver, "chat", "slack")])
    high = {"ADDON_OPERATOR_HA": "true"}
    operator = site.start(**high).wait_ready()
    standby = site.start(**high, DEBUG_UNIX_SOCKET=str(site.root / "standby.socket"))
    assert receiver.wait("/chat", 1) == ["web has trouble with its hooks"]
    assert "binding shops (Shop) of hook shops.sh waits: " in receiver.bodies("/chat")[0]["text"]
    seen_everywhere(
        modules, operator, standby, "BindingWaits", "binding shops (Shop) of hook shops.sh waits: "
    )

    put_watched(site, "fine")
    seen_everywhere(modules, operator, standby, "HookFails", "hook maps.sh on changed failed ")
    wide = site.kubectl("get", "modules", "-o", "wide")
    assert "HookFails" in wide
    assert "exit code 3" in wide
    put_watched(site, "odd")
    skipped = f"binding names (ConfigMap) of hook names.sh skips ConfigMap {site.namespace}/odd: jqFilter: "
    seen_everywhere(modules, operator, standby, "HookFails", skipped)
    told = operator.wait_logged(skipped)
    assert "did not end within 5 s; look for endless recursion or repeat; until that is corrected, " in told

    site.delete("configmap", "odd")
    mended.touch()
    site.create("crd", f"shops.{group}", yaml.safe_load(definitions.definition(group, "shops", "v1")))
    wait_told(receiver, "web has no trouble with its hooks any more, after ")
    modules.wait(operator, "web", HooksWork="True")
    operator.wait_until(
        lambda: modules.condition("web", "Ready")["reason"] == "RunSucceeded", "nothing is wrong any more"
    )
    told = str(receiver.bodies("/chat"))
    standby.stop()
    operator.stop()
    site.delete("crd", f"shops.{group}")
    assert "hunter2" not in f"{told}{modules.get('web')}"


@pytest.mark.slow
def test_a_chart_that_is_lost_is_told_and_seen_until_it_is_back(
    modules: Modules, receiver: receivers.Receiver
) -> None:
    site = modules.site
    web = modules.add(10, "web", data={"a": "b"})
    receivers.write_targets(site, [receivers.target(receiver, "chat", "slack")])
    operator = site.start(WATCH_MODULES="true", WATCH_MODULES_INTERVAL="1s").wait_ready()
    kept = site.root / "kept"
    kept.mkdir()
    for name in ("Chart.yaml", "templates"):
        (web / name).rename(kept / name)
    assert receiver.wait("/chat", 1) == ["web has lost its chart"]
    mends = "put Chart.yaml or templates/ back into "
    assert mends in receiver.bodies("/chat")[0]["text"]
    ready = modules.condition("web", "Ready")
    assert (ready["reason"], mends in ready["message"]) == ("ChartLost", True)
    assert mends in site.command("module", "list", "-o", "wide").stdout
    assert "Chart lost" in operator.get("/").text
    for name in ("Chart.yaml", "templates"):
        (kept / name).rename(web / name)
    assert receiver.wait("/chat", 2)[1].startswith("web has its chart again, after ")
    operator.stop()


def seen_everywhere(
    modules: Modules,
    operator: operator_process.OperatorProcess,
    standby: operator_process.OperatorProcess,
    reason: str,
    said: str,
) -> None:
    """Wait until the object, both pages and the commands say it."""

    def condition() -> bool:
        ready, work = modules.condition("web", "Ready"), modules.condition("web", "HooksWork")
        return (ready["reason"], work["reason"]) == (reason, reason) and said in ready["message"]

    operator.wait_until(condition, f"Ready is {reason}: {said}")
    listed = modules.site.command("module", "list", "-o", "wide").stdout
    assert said in listed
    operator.wait_until(lambda: said in operator.get("/").text, f"the page of the leader says: {said}")
    standby.wait_until(lambda: said in standby.get("/").text, f"the page of a standby says: {said}")


def put_watched(site: operator_site.Site, name: str) -> None:
    site.create("configmap", name)
    site.label("configmap", name, {"watched": "yes"})


@pytest.mark.slow
def test_a_busy_receiver_gets_everything_later_and_a_fail_over_misses_no_recovery(
    modules: Modules, receiver: receivers.Receiver
) -> None:
    site = modules.site
    site.first_retry = operator_site.SOON
    mended = fragile(modules)
    modules.add(20, "db", data={"a": "b"})
    receiver.status = 500
    receivers.write_targets(
        site, [receivers.target(receiver, "chat", "slack", on=["failed", "recovered", "upgraded"])]
    )
    high = {"CONVERGE_ON_FAILURE": "continue", **operator_site.SHORT_LEASE}
    first = site.start(**high, DEBUG_UNIX_SOCKET=str(site.root / "first.socket"))
    first.wait_logged("notifications do not reach target chat, and are tried again", "500")
    second = site.start(**high)
    second.wait_logged("standing by")
    receiver.status = 202
    assert receiver.wait("/chat", 2)[-1] == "web failed"
    first.wait_until(lambda: remembered(modules, "web") == ["chat"], "what was told is remembered")
    first.kill()
    mended.touch()
    wait_told(receiver, "web works again, after ")

    site.chart(site.modules / "020-db", {"a": "c"})
    second.stop()
    third = site.start(**high)
    wait_told(receiver, "db was upgraded to revision 2")
    assert str(receiver.titles("/chat")).count("web works again") == 1

    assert site.command("notify", "test", "chat").stdout == (
        "target chat took the test; look whether it is shown at 127.0.0.1\n"
    )
    assert receiver.titles("/chat")[-1] == "This is a test of notifications"
    unknown = site.command("notify", "test", "chta")
    assert (unknown.returncode, unknown.stderr) == (
        1,
        "Error: there is no target 'chta' in notify.yaml; did you mean 'chat'?\n",
    )
    receiver.headers, receiver.status = {"Location": f"{receiver.url}/elsewhere"}, 302
    assert "another address, which is not followed" in site.command("notify", "test", "chat").stderr

    receivers.write_file(site, f"targets:\n- {{name: chat, adress: {receiver.url}/canary}}\n")
    third.wait_metric(1, "notifications_config_invalid")
    (event,) = third.wait_until(lambda: events_of(site), "an Event tells of the wrong file")
    assert "targets[0].adress: the key 'adress' is not known here" in event["message"]
    assert "canary" not in event["message"]
    rows = json.loads(site.command("notify", "list", "-o", "json").stdout)
    assert [(row["name"], row["host"]) for row in rows] == [("chat", "127.0.0.1")], "the last good one stays"
    assert "canary" not in third.log
    assert not receiver.bodies("/elsewhere")


def wait_told(receiver: receivers.Receiver, begin: str) -> None:
    operator_process.wait_until(lambda: receiver.titles("/chat")[-1].startswith(begin), f"told: {begin}")


def events_of(site: operator_site.Site) -> list[dict[str, Any]]:
    return site.objects(
        "events", fieldSelector=f"involvedObject.kind=Secret,involvedObject.name={receivers.SECRET}"
    )


@pytest.mark.slow
def test_two_hundred_modules_that_fail_at_once_are_a_few_messages(
    modules: Modules, receiver: receivers.Receiver
) -> None:
    site = modules.site
    receiver.delay = 2.0
    for number in range(200):
        modules.site.script(modules.add(10, f"m{number}") / "hooks" / "broken.sh", "exit 1")
    receivers.write_targets(site, [receivers.target(receiver, "chat", "slack", after="10s")])
    operator = site.start(CONVERGE_ON_FAILURE="continue", MODULES_PARALLELISM="8")

    def told() -> int:
        return sum(int(title.split()[0]) if title[0].isdigit() else 1 for title in receiver.titles("/chat"))

    operator.wait_until(lambda: told() >= 200, "all are told", deadline=180)
    assert len(receiver.got) <= 15
    operator.stop()


def problems(modules: Modules, name: str) -> list[dict[str, Any]]:
    found = (modules.get(name) or {}).get("status", {})
    return list(found.get("notifications", {}).get("problems", ()))


def remembered(modules: Modules, name: str) -> list[str]:
    return [each["target"] for problem in problems(modules, name) for each in problem["told"]]
