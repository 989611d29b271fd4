"""Which modules are enabled, and why, and what they require."""

import pytest

from addon_operator.engine import events
from tests.support import api_server, engine, programs

CRON = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crons.example.com}
spec:
  group: example.com
  names: {kind: Cron, plural: crons, singular: cron}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""


def verdict(op: engine.Operator, name: str) -> tuple[bool, str]:
    row = op.row(name)
    return row["enabled"], row["reason"]


def failures(op: engine.Operator) -> list[str]:
    """Why discoveries failed."""
    return [error for _, error, delay in op.heard.failures if delay is not None]


def requiring(*modules: str, kubernetes: str = "", apis: tuple[str, ...] = ()) -> str:
    names, versions = ", ".join(modules), ", ".join(apis)
    wanted = f"modules: [{names}], apis: [{versions}]"
    return (
        f"requires: {{{wanted}, kubernetes: '{kubernetes}'}}\n" if kubernetes else f"requires: {{{wanted}}}\n"
    )


# Switches and scripts.


async def test_switches_decide_and_say_where_they_stand(op: engine.Operator) -> None:
    for name in ("web", "db", "api"):
        op.modules.add(name, enabled=None)
    op.modules.write({"values.yaml": "webEnabled: true\ndbEnabled: true\n"})
    await op.edit(dbEnabled="false")
    await op.start()
    assert verdict(op, "web") == (True, f"enabled by webEnabled in {op.modules.path}/values.yaml")
    assert verdict(op, "db") == (False, "disabled by dbEnabled in ConfigMap addons/addon-operator")
    assert verdict(op, "api")[0] is False
    assert "by default" in verdict(op, "api")[1]


async def test_verdicts_come_in_run_order_whatever_the_order_on_disk(op: engine.Operator) -> None:
    for name, order in (("web", 20), ("db", 10), ("api", 10)):
        op.modules.add(name, order=order)
    await op.start()
    assert [event.verdict.module for event in op.heard.of(events.ModuleDecided)] == ["api", "db", "web"]


async def test_a_script_has_the_last_word_and_gives_the_reason(op: engine.Operator) -> None:
    op.enabled_script("web", lambda _: False, reason="no nodes")
    await op.start()
    assert verdict(op, "web") == (False, "no nodes")


async def test_a_script_sees_values_and_the_modules_that_are_enabled_before_it(op: engine.Operator) -> None:
    op.modules.add("db", order=10)
    op.modules.add("off", order=15, enabled=False)
    op.modules.add("web", {"values.yaml": "webEnabled: true\nweb: {size: small}\n"}, order=20)
    seen = op.enabled_script("web", lambda _: True)
    await op.edit(web={"color": "red"})
    await op.start()
    assert seen == [{"global": {"enabledModules": ["db"]}, "web": {"size": "small", "color": "red"}}]


@pytest.mark.parametrize("why", ["the switch is off", "the script is not executable"])
async def test_a_script_that_has_no_say_is_not_asked(op: engine.Operator, why: str) -> None:
    asked = op.enabled_script("web", lambda _: False)
    is_off = why == "the switch is off"
    if is_off:
        await op.edit(webEnabled="false")
    else:
        (op.modules.path / "010-web" / "enabled").chmod(0o644)
    await op.start()
    assert asked == []
    assert verdict(op, "web")[0] is not is_off


async def test_a_script_that_fails_is_told_at_its_module(op: engine.Operator) -> None:
    def fail(_: object) -> bool:
        raise programs.ProgramError("no room")

    op.enabled_script("web", fail)
    await op.start()
    assert op.module("web").last_error == "its enabled script failed with exit code 1: no room"
    assert failures(op)[0].startswith("module web: its enabled script failed")
    assert len(op.heard.of(events.DiscoveryFailed)) == 1


@pytest.mark.parametrize(
    ("switch", "is_there", "enabled"),
    [("true", False, True), ("false", True, False), (None, False, False), (None, True, True)],
    ids=["on", "off", "nobody says", "nobody says, and it is there"],
)
async def test_a_module_is_not_removed_because_its_switch_cannot_be_read(
    op: engine.Operator, switch: str | None, is_there: bool, enabled: bool
) -> None:
    op.modules.add("web")
    if is_there:
        await op.start()
        await op.stop()
    op.modules.add("web", {"values.yaml": "webEnabled: [\n"})
    await op.edit(webEnabled=switch)
    await op.start()
    assert verdict(op, "web")[0] is enabled
    assert ("values.yaml" in verdict(op, "web")[1]) is not enabled, "a disabled one is said to be wrong, too"


# What modules require.


async def test_a_module_whose_requirements_are_not_met_is_disabled_and_its_script_is_not_asked(
    op: engine.Operator,
) -> None:
    op.modules.add("db", {"module.yaml": requiring(kubernetes=">= 1.40")})
    asked = op.enabled_script("db", lambda _: True)
    await op.start()
    assert asked == []
    assert verdict(op, "db") == (False, "requires Kubernetes >= 1.40, and the cluster has v1.36.0")


async def test_a_switch_that_is_off_is_the_reason_whatever_the_requirements_are(op: engine.Operator) -> None:
    op.modules.add("db", {"module.yaml": requiring(kubernetes=">= 1.40")}, enabled=False)
    await op.start()
    assert "disabled by dbEnabled" in verdict(op, "db")[1]


async def test_what_is_required_is_decided_first_and_a_script_sees_only_what_is_enabled_so_far(
    op: engine.Operator,
) -> None:
    seen = {}
    for name, text in (("db", requiring("web")), ("web", requiring())):
        op.modules.add(name, {"module.yaml": text})
        seen[name] = op.enabled_script(name, lambda _: True)
    await op.start()
    enabled = {name: [each["global"]["enabledModules"] for each in values] for name, values in seen.items()}
    assert enabled == {"web": [[]], "db": [["web"]]}


async def test_what_requires_a_module_that_its_script_disables_is_disabled_too(op: engine.Operator) -> None:
    op.modules.add("db", {"module.yaml": requiring("web")})
    op.enabled_script("web", lambda _: False, reason="the script says no")
    await op.start()
    assert verdict(op, "db") == (False, "requires web, which is disabled: the script says no")


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("requires: {}\n", False),
        (requiring(kubernetes=">= 1.30"), False),
        (requiring(apis=("apps/v1",)), True),
    ],
    ids=["nothing", "a version", "an API"],
)
async def test_nothing_is_asked_that_no_module_requires(op: engine.Operator, text: str, asked: bool) -> None:
    op.modules.add("web", {"module.yaml": text}, chart=False)
    await op.start()
    assert any("/apiservices" in request for request in op.server.requests) is asked
    assert op.statuses == {"web": "Ready"}


@pytest.mark.parametrize("is_registered", [True, False], ids=["its server is away", "it is gone"])
async def test_an_api_that_is_not_served_removes_no_module_that_has_a_release_and_enables_no_other(
    op: engine.Operator, is_registered: bool
) -> None:
    op.modules.add("web")
    await op.start()
    await op.stop()
    if is_registered:
        op.server.put(api_server.an_object("APIService", "v1.example.com", None, "apiregistration.k8s.io/v1"))
    for name in ("web", "db"):
        op.modules.add(name, {"module.yaml": requiring(apis=("example.com/v1",))})
    await op.start()
    lacking = "whose server does not answer" if is_registered else "which the cluster does not serve"
    assert verdict(op, "db") == (False, f"requires the API example.com/v1, {lacking}")
    assert verdict(op, "web")[0] is True
    assert op.helm.statuses("web") == {1: "deployed"}


async def test_an_api_that_another_module_defines_is_said_to_come(op: engine.Operator) -> None:
    op.modules.add("web", {"module.yaml": requiring(apis=("example.com/v1",))}, order=10)
    op.modules.add("certs", {"crds/a.yaml": CRON}, order=20)
    op.modules.add("off", {"crds/a.yaml": CRON}, order=20, enabled=False)
    op.server.refuse(500, lambda asked: asked.is_write and "crons.example.com" in asked.path, times=100)
    await op.start()
    assert "certs" in verdict(op, "web")[1]
    assert "off" not in verdict(op, "web")[1]


async def test_a_required_api_that_comes_enables_its_module_and_one_of_others_does_nothing(
    op: engine.Operator,
) -> None:
    op.modules.add("web", {"module.yaml": requiring(apis=("example.com/v1",))})
    op.hook("all.sh", {"beforeAll": 1})
    await op.start()
    op.story  # noqa: B018 - forgets the start
    for name in ("other.com", "example.com"):
        op.server.serve("Cron", f"{name}/v1")
        op.server.put(api_server.an_object("APIService", f"v1.{name}", None, "apiregistration.k8s.io/v1"))
        await op.advance(10)
        assert op.story == ([] if name == "other.com" else ["all.sh: beforeAll", "helm upgrade web"])


async def test_where_apis_cannot_be_watched_somebody_looks_from_time_to_time(op: engine.Operator) -> None:
    op.modules.add("web", {"module.yaml": requiring(apis=("example.com/v1",))})
    op.server.refuse(403, lambda asked: asked.is_watch and "apiservices" in asked.path, times=10_000)
    op.server.refuse(403, lambda asked: asked.is_list and "apiservices" in asked.path, times=10_000)
    await op.start()
    (text,) = [text for text in op.heard.warnings if "30 s" in text]
    assert text.startswith("APIs that modules require are looked for every 30 s only: ")
    op.server.serve("Cron", "example.com/v1")
    await op.advance(35)
    assert op.statuses == {"web": "Ready"}
