"""Hooks that answer in a replica that does not lead: found by what is registered. The hooks are real."""

import asyncio
import contextlib
import json
import pathlib
import time
from collections.abc import AsyncIterator
from typing import Final

import pytest

from addon_operator.admission.conversions import conversion_specs
from addon_operator.admission.hooks import hook_specs
from addon_operator.app import admission_webhooks, standby_hooks, tools
from addon_operator.engine import events
from addon_operator.engine.bindings import process_slots, standby_loaded
from addon_operator.helm import binary
from addon_operator.hook_contract import conversions, hook_entries
from addon_operator.hook_contract.configuration import conversion_bindings
from addon_operator.hook_contract.configuration.webhook_bindings import ReviewType
from addon_operator.hook_contract.outputs import review_answers
from addon_operator.kube.client import client
from addon_operator.loading import module_files
from addon_operator.settings import settings_loading
from addon_operator.telemetry import metrics
from tests.support import api_server, clocks, engine, programs
from tests.unit.engine import fakes

GUARD: Final = (ReviewType.VALIDATING, "guard.shop.example")
CRD: Final = "crons.example.com"
NAMESPACE: Final = "/api/v1/namespaces/ops"
REGISTERED: Final = (
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/addon-operator-ops-hooks"
)
OTHERS: Final = REGISTERED.replace("validating", "mutating")
CONFIG: Final = {
    "configVersion": "v1",
    "kubernetesValidating": [
        {
            "name": GUARD[1],
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}],
        }
    ],
    "kubernetesCustomResourceConversion": [
        {"crdName": CRD, "conversions": [{"fromVersion": "v1", "toVersion": "v2"}]}
    ],
}
HOOK: Final = """\
#!/bin/bash
if [ "$1" = --config ]; then
  echo >> "$0.asked"
  echo '@CONFIG@'
  exit
fi
@BODY@
"""
DENIES: Final = """
echo '{"allowed": false, "message": "'$(grep -o '"color":"[a-z]*"' "$VALUES_PATH" | tr -d '"')'"}' \
  > "$VALIDATING_RESPONSE_PATH"
"""
REVIEW: Final = b'{"request": {"uid": "1", "object": {}}}'


class Bench:
    """A module with a hook on disk, and a cluster that says what is registered."""

    def __init__(
        self, root: pathlib.Path, server: api_server.ApiServer, made: tools.Tools, body: str = DENIES
    ) -> None:
        self.server, self.heard = server, fakes.Heard()
        self.answered: set[standby_loaded.Place] = set()
        self.path = root / "modules" / "010-shop" / "hooks" / "guard.sh"
        self.write(body)
        surroundings = standby_hooks.Surroundings(
            process_slots.ProcessSlots(2), self.heard.append, self.answered.__contains__
        )
        self.hooks = standby_hooks.StandbyHooks(
            made,
            module_files.load([root / "modules"], 100),
            made.kube,
            admission_webhooks.hooks_template(made.settings),
            metrics.Metrics(),
            surroundings,
        )
        server.on("GET", OTHERS, api_server.status(404, "NotFound"))
        server.on("GET", f"{NAMESPACE}/configmaps/addon-operator", {"data": {"shop": "color: green"}})
        self.register({GUARD[1]: ("shop", "guard.sh")})

    def write(self, body: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(HOOK.replace("@CONFIG@", json.dumps(CONFIG)).replace("@BODY@", body))
        self.path.chmod(0o755)

    def register(self, places: dict[str, tuple[str, str]]) -> None:
        said = {name: {"module": module, "hook": hook} for name, (module, hook) in places.items()}
        annotations = {hook_specs.ANNOTATION: json.dumps(said)}
        self.server.on("GET", REGISTERED, {"metadata": {"annotations": annotations}})

    def convert_by(self, operator: str, *hooks: tuple[str, str]) -> None:
        note = {"operator": operator, "hooks": hooks, "before": {"strategy": "None"}}
        annotations = {conversion_specs.NOTE: json.dumps(note)}
        body = {"metadata": {"name": CRD, "annotations": annotations}}
        self.server.on("GET", conversion_specs.path_of(CRD), body)

    async def ask(self) -> review_answers.AdmissionAnswer:
        entry = await self.hooks.find(GUARD)
        assert entry is not None
        return await entry.answer(hook_entries.ReviewRequest(REVIEW, time.monotonic()))

    @property
    def details(self) -> list[str]:
        return [told.details for told in self.heard.of(events.ReviewAnswered)]


@pytest.fixture
async def made(
    tmp_path: pathlib.Path, server: api_server.ApiServer, kube: client.KubeClient
) -> AsyncIterator[tools.Tools]:
    (tmp_path / "modules" / "010-shop").mkdir(parents=True)
    environ = {
        "ADDON_OPERATOR_NAMESPACE": "ops",
        "TMP_DIR": str(tmp_path / "tmp"),
        "MODULES_DIR": str(tmp_path / "modules"),
        "PATH": "/usr/bin:/bin",
    }
    server.on("GET", NAMESPACE, {"metadata": {"name": "ops"}})
    server.on("GET", f"{NAMESPACE}/secrets/addon-operator", api_server.status(404, "NotFound"))
    helm = binary.HelmBinary(tmp_path / "helm", "v3.19.0", 3, 19)
    async with contextlib.AsyncExitStack() as stack:
        found = settings_loading.load({}, environ)
        yield await engine.ToolsHere.open(stack, found, environ, helm, kube, programs.programs())


@pytest.fixture
async def bench(
    tmp_path: pathlib.Path, server: api_server.ApiServer, made: tools.Tools
) -> AsyncIterator[Bench]:
    found = Bench(tmp_path, server, made)
    yield found
    await found.hooks.close()


async def test_a_hook_that_is_registered_answers_with_the_values_of_the_cluster(bench: Bench) -> None:
    assert await bench.ask() == review_answers.AdmissionAnswer(allowed=False, message="color:green")


async def test_what_is_not_registered_any_more_is_allowed_also_if_this_replica_never_knew_of_it(
    bench: Bench,
) -> None:
    await bench.ask()
    bench.register({})
    clock = clocks.Clock()
    await clock.advance(standby_hooks._FRESH_SECONDS)
    assert await bench.ask() == review_answers.ALLOWED
    unknown = await bench.hooks.find((ReviewType.VALIDATING, "other.shop.example"))
    assert unknown is not None
    request = hook_entries.ReviewRequest(REVIEW, time.monotonic())
    assert await unknown.answer(request) == review_answers.ALLOWED


async def test_what_was_registered_just_now_is_answered(bench: Bench) -> None:
    bench.register({})
    assert await bench.ask() == review_answers.ALLOWED
    bench.register({GUARD[1]: ("shop", "guard.sh")})
    assert not (await bench.ask()).allowed


async def test_as_long_as_nobody_says_what_is_registered_nothing_is_allowed(bench: Bench) -> None:
    bench.server.on("GET", REGISTERED, api_server.status(500, "InternalError"))
    assert await bench.hooks.find(GUARD) is None


async def test_while_the_api_server_does_not_answer_what_is_known_stays(bench: Bench) -> None:
    await bench.ask()
    bench.server.on("GET", REGISTERED, api_server.status(403, "Forbidden"))
    await clocks.Clock().advance(standby_hooks._FRESH_SECONDS)
    assert not (await bench.ask()).allowed


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (("blog", "guard.sh"), r"guard\.shop\.example cannot be answered: there is no module blog here"),
        (("shop", "gone.sh"), r"there is no hook gone\.sh below .*/010-shop/hooks"),
    ],
    ids=["module", "hook"],
)
async def test_who_is_not_on_disk_here_decides_nothing(
    bench: Bench, place: tuple[str, str], said: str
) -> None:
    bench.register({GUARD[1]: place})
    with pytest.raises(hook_entries.NotAnsweredError, match=said):
        await bench.ask()


async def test_a_changed_file_answers_at_once(bench: Bench) -> None:
    await bench.ask()
    bench.write("""echo '{"allowed": true, "warnings": ["it is new"]}' > "$VALIDATING_RESPONSE_PATH" """)
    assert (await bench.ask()).warnings == ("it is new",)


async def test_values_that_nobody_would_keep_are_not_taken(bench: Bench) -> None:
    patch = json.dumps({"op": "add", "path": "/shop/a", "value": 1})
    bench.write(
        f"""echo '{patch}' > "$VALUES_JSON_PATCH_PATH"
        echo '{{"convertedObjects": []}}' > "$CONVERSION_RESPONSE_PATH" """
    )
    bench.convert_by("ops", ("shop", "guard.sh"))
    (entry,) = await bench.hooks.find_conversions(CRD)
    rule = conversion_bindings.ConversionRule("v1", "v2")
    request = hook_entries.StepRequest(rule, "example.com/v2", "1", [], time.monotonic())
    with pytest.raises(conversions.ConversionError, match="replica that does not lead"):
        await entry.answer(request)
    assert "it patched values, and this replica does not lead, so that they would be lost" in bench.details[0]


@pytest.mark.parametrize(("operator", "found"), [("ops", ["guard.sh"]), ("others", [])])
async def test_who_converts_is_what_the_definition_says_if_this_operator_said_it(
    bench: Bench, operator: str, found: list[str]
) -> None:
    bench.convert_by(operator, ("shop", "guard.sh"))
    assert [entry.hook for entry in await bench.hooks.find_conversions(CRD)] == found


async def test_objects_of_a_hook_that_is_not_here_cannot_be_converted(bench: Bench) -> None:
    bench.convert_by("ops", ("blog", "guard.sh"))
    with pytest.raises(
        conversions.ConversionError, match=r"crons\.example\.com cannot be converted: there is no module blog"
    ):
        await bench.hooks.find_conversions(CRD)
    bench.server.on("GET", conversion_specs.path_of(CRD), api_server.status(404, "NotFound"))
    await clocks.Clock().advance(standby_hooks._FRESH_SECONDS)
    assert await bench.hooks.find_conversions(CRD) == []


async def test_hooks_go_when_the_engine_of_this_process_answers(bench: Bench) -> None:
    keeping, clock = asyncio.create_task(bench.hooks.keep()), clocks.Clock()
    asked = bench.path.with_name("guard.sh.asked")
    for _ in range(2):
        await bench.ask()
        await clock.advance(standby_hooks._TIDY_SECONDS)
    assert len(asked.read_text().splitlines()) == 1
    bench.answered.add(("shop", "guard.sh"))
    await clock.advance(standby_hooks._TIDY_SECONDS)
    await bench.ask()
    assert len(asked.read_text().splitlines()) == 2, "it was let go of, and is read again"
    keeping.cancel()
