"""What is said of a proposed ConfigMap: by the files and schemas, and by the engine once it runs."""

import asyncio
import base64
import collections
import json
import pathlib
import textwrap
import threading
from collections.abc import Callable, Mapping

import pytest
from typing_extensions import override

from addon_operator.admission import config_check
from addon_operator.app import admission_part
from addon_operator.engine import state
from addon_operator.engine.hooks import hook_exchange, hook_outputs, hook_processes
from addon_operator.engine.sources import config_sync, configured_object
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.inspection import values_worker
from addon_operator.kernel import json_types, names
from addon_operator.kube.client import client
from addon_operator.kube.objects import values_secret
from addon_operator.loading import module_files
from addon_operator.process.children import children
from addon_operator.settings import settings_loading
from addon_operator.telemetry import hook_metrics, series
from addon_operator.values import store
from tests.support import api_server
from tests.unit.engine import fakes

SCHEMA = """
    type: object
    properties:
      port: {type: integer}
      password: {type: string, minLength: 8, x-sensitive: true}
      size:
        type: integer
        x-kubernetes-validations:
        - {rule: self >= oldSelf, message: must not shrink}
"""
Check = Callable[..., config_check.Findings]


class Sync(config_sync.ConfigSync):
    """Knows beforehand what is wrong with every edit."""

    def __init__(self, *violations: str, has_secret: bool = False, sees_secret: bool = False) -> None:
        self._known = violations
        self._sees_secret = sees_secret
        self._has_secret = has_secret

    @property
    @override
    def modules(self) -> tuple[names.ModuleName, ...]:
        return (names.ModuleName("web"), names.ModuleName("new"))

    @override
    def violations(
        self, data: Mapping[str, str], kind: str = configured_object.CONFIG_MAP, *, alone: bool = False
    ) -> tuple[tuple[str, bool], ...]:
        # Without the Secret, a default stands in its place.
        known = () if alone and not self._sees_secret else self._known
        return tuple((text, self._sees_secret) for text in known)

    @property
    @override
    def has_secret(self) -> bool:
        return self._has_secret


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> module_files.LoadedModules:
    directory = tmp_path_factory.mktemp("modules")
    for name, enabled in (("010-web", "true"), ("020-off", "false")):
        openapi = directory / name / "openapi"
        openapi.mkdir(parents=True)
        (openapi / "config-values.yaml").write_text(textwrap.dedent(SCHEMA))
        (directory / name / "values.yaml").write_text(f"{name[4:]}Enabled: {enabled}\n")
    shop = directory / "030-shop"
    shop.mkdir()
    (shop / "values.yaml").write_text("shopEnabled: true\n")
    (shop / "module.yaml").write_text("requires: {modules: [web]}\n")
    return module_files.load([directory], 1)


@pytest.fixture
def checks(modules: module_files.LoadedModules) -> admission_part.ConfigChecks:
    loaded = settings_loading.load({}, {"ADDON_OPERATOR_NAMESPACE": "addons"})
    return admission_part.ConfigChecks(modules, loaded)


async def test_all_that_is_wrong_is_reported_with_its_place(checks: admission_part.ConfigChecks) -> None:
    found = await checks.findings({"global": "[", "web": "port: yes\nhost: x", "webEnabled": "maybe"}, {})
    places = [violation.partition(": ")[0] for violation in found.violations]
    assert sorted(places) == ["key 'global', line 2, column 1", "key 'webEnabled'", "web.host", "web.port"]


async def test_sensitive_values_are_hidden(checks: admission_part.ConfigChecks) -> None:
    (violation,) = (await checks.findings({"web": "password: s3cret"}, {})).violations
    assert "not ***" in violation
    assert "s3cret" not in violation


async def test_a_module_that_is_off_may_be_configured_wrongly(checks: admission_part.ConfigChecks) -> None:
    assert (await checks.findings({"off": "port: yes"}, {})).violations == ()
    switched_on = await checks.findings({"off": "port: yes", "offEnabled": "true"}, {"off": "port: yes"})
    assert len(switched_on.violations) == 1


async def test_rules_about_transitions_compare_with_what_is_stored(
    checks: admission_part.ConfigChecks,
) -> None:
    assert (await checks.findings({"web": "size: 2"}, {"web": "size: 1"})).violations == ()
    (violation,) = (await checks.findings({"web": "size: 1"}, {"web": "size: 2"})).violations
    assert violation.startswith("web.size: must not shrink")


async def test_what_was_stored_may_be_unreadable(checks: admission_part.ConfigChecks) -> None:
    assert (await checks.findings({"web": "port: 1"}, {"web": "["})).violations == ()


async def test_an_unknown_key_is_a_warning_when_it_is_new(checks: admission_part.ConfigChecks) -> None:
    (warning,) = (await checks.findings({"wep": "port: 1"}, {})).warnings
    assert "did you mean 'web'?" in warning
    assert (await checks.findings({"wep": "port: 2"}, {"wep": "port: 1"})).warnings == []


async def test_an_edit_that_disables_a_module_says_which_others_go_with_it(
    checks: admission_part.ConfigChecks,
) -> None:
    (warning,) = (await checks.findings({"webEnabled": "false"}, {})).warnings
    assert warning == "module shop requires web, and is removed with it"
    both_off = {"webEnabled": "false", "shopEnabled": "false"}
    assert (await checks.findings(both_off, {"webEnabled": "false"})).warnings == []
    assert (await checks.findings({"webEnabled": "false", "web": "port: 1"}, both_off)).warnings == []
    assert (await checks.findings({"webEnabled": "true"}, {"webEnabled": "false"})).warnings == []


async def test_what_would_be_right_without_the_secret_is_told_apart(
    checks: admission_part.ConfigChecks,
) -> None:
    for sees_secret in (False, True):
        checks.serve(Sync("web: the pins must be equal", has_secret=True, sees_secret=sees_secret))
        found = await checks.findings({"web": "port: 1"}, {})
        assert (found.violations, found.of_secret) == ((), ("web: the pins must be equal",))


async def test_the_running_engine_knows_better(checks: admission_part.ConfigChecks) -> None:
    checks.serve(Sync("web.port: a hook wants another one"))
    assert (await checks.findings({"web": "port: 1"}, {})).violations == (
        "web.port: a hook wants another one",
    )


async def test_keys_of_modules_that_came_while_the_engine_runs_are_known(
    checks: admission_part.ConfigChecks,
) -> None:
    edit = {"newEnabled": "true", "offEnabled": "true"}
    assert len((await checks.findings(edit, {})).warnings) == 1
    checks.serve(Sync())
    (warning,) = (await checks.findings(edit, {})).warnings
    assert "key 'offEnabled' is unknown" in warning


def holding(**data: str) -> api_server.Answer:
    """A Secret, as the API server answers."""
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return api_server.Answer({"metadata": {"resourceVersion": "1"}, "data": encoded})


@pytest.mark.parametrize(
    ("answer", "places"),
    [
        pytest.param(api_server.status(404, "NotFound"), ["must"], id="there is none"),
        pytest.param(holding(must="token: abc"), [], id="it has what is missing"),
        pytest.param(holding(must="["), [], id="it is unreadable"),
        pytest.param(api_server.status(403, "Forbidden"), [], id="nobody may read it"),
    ],
)
async def test_before_the_engine_is_there_an_edit_is_checked_with_the_values_secret(
    tmp_path: pathlib.Path,
    server: api_server.ApiServer,
    kube: client.KubeClient,
    answer: api_server.Answer,
    places: list[str],
) -> None:
    (tmp_path / "must" / "openapi").mkdir(parents=True)
    (tmp_path / "must" / "openapi" / "config-values.yaml").write_text(
        "type: object\nrequired: [token]\nproperties: {token: {type: string}}"
    )
    (tmp_path / "must" / "values.yaml").write_text("mustEnabled: true")
    loaded = settings_loading.load({}, {"ADDON_OPERATOR_NAMESPACE": "addons"})
    checks = admission_part.ConfigChecks(module_files.load([tmp_path], 1), loaded)
    server.on("GET", "/api/v1/namespaces/addons/secrets/values", answer)
    checks.read(values_secret.ValuesSecret(kube, "addons", "values"))
    found = (await checks.findings({"must": "{}"}, {})).violations
    assert [violation.partition(":")[0] for violation in found] == places


async def test_sections_are_named_whose_rules_see_values_of_the_secret_though_they_take_these(
    tmp_path: pathlib.Path, server: api_server.ApiServer, kube: client.KubeClient
) -> None:
    differ = {"rule": "!has(self.mine) || self.mine != self.pin", "message": "must differ"}
    plain = {"type": "object", "properties": {key: {"type": "string"} for key in ("pin", "mine")}}
    ruled = {**plain, "x-kubernetes-validations": [differ]}
    for name, schema in {"ruled": ruled, "plain": plain, "other": ruled}.items():
        (tmp_path / name / "openapi").mkdir(parents=True)
        (tmp_path / name / "openapi" / "config-values.yaml").write_text(json.dumps(schema))
        (tmp_path / name / "values.yaml").write_text(f"{name}Enabled: true")
    loaded = settings_loading.load({}, {"ADDON_OPERATOR_NAMESPACE": "addons"})
    checks = admission_part.ConfigChecks(module_files.load([tmp_path], 1), loaded)
    secret = holding(ruled="pin: '0042'", plain="pin: '0042'")
    server.on("GET", "/api/v1/namespaces/addons/secrets/values", secret)
    checks.read(values_secret.ValuesSecret(kube, "addons", "values"))
    found = await checks.findings({"ruled": "mine: '0041'", "plain": "mine: '0042'", "other": "{}"}, {})
    assert (found.violations, found.of_secret, set(found.compared)) == ((), (), {"ruled"})
    # Were one hidden, it would be the right one.


async def test_large_values_are_checked_as_well(checks: admission_part.ConfigChecks) -> None:
    comment = "#" + "x" * 65536
    (violation,) = (await checks.findings({"web": f"port: yes\n{comment}"}, {})).violations
    assert violation.startswith("web.port:")


async def test_what_takes_too_long_to_read_can_be_mended_and_not_be_made(
    modules: module_files.LoadedModules, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission_part, "_BEFORE_SECONDS", 0.05)
    monkeypatch.setattr(admission_part, "EDIT_SECONDS", 30.0)
    loaded = settings_loading.load({}, {"ADDON_OPERATOR_NAMESPACE": "addons"})
    slow = {"web": "port: [" + "{a: 1}, " * 60_000 + "]"}
    with values_worker.ValuesWorker() as worker:
        checks = admission_part.ConfigChecks(modules, loaded, worker)
        assert (await checks.findings({"web": "port: 8080"}, slow)).violations == ()
        monkeypatch.setattr(admission_part, "EDIT_SECONDS", 0.15)
        (violation,) = (await checks.findings(slow, {})).violations
    assert violation.startswith("key 'web': it took more than 0.1 s, the time limit")


async def test_slow_outputs_of_many_hooks_hold_up_no_check_of_an_edit(
    checks: admission_part.ConfigChecks,
) -> None:
    is_read = threading.Event()

    def slow(_text: str) -> list[json_types.JsonValue]:
        is_read.wait()
        return []

    values, registry = store.ValuesStore(()), hook_metrics.HookMetrics(series.Registry())
    outputs = hook_outputs.HookOutputs(fakes.Objects(), Sync(), values, registry, slow)
    hook = state.Hook("slow.sh", pathlib.Path("slow.sh"), hook_config.HookConfig())
    written = collections.defaultdict(str, {hook_exchange.KUBERNETES_PATCH: "#" * 100_000})
    ran = hook_processes.HookRunResult(
        children.ChildResult(0, 0.0, 0.0, 0.0, 0, False, None, False, ""), written
    )
    reading = [asyncio.create_task(outputs.check(hook, ran)) for _ in range(40)]
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(30):
            assert (await checks.findings({"web": "port: 8080"}, {})).violations == ()
    finally:
        is_read.set()
        await asyncio.gather(*reading)
