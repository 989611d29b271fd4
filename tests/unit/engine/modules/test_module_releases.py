"""The engine's view of releases: how a call of Helm is ended, which are left alone, and what is hidden."""

import asyncio
import pathlib

from addon_operator.engine.modules import module_releases
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import model
from addon_operator.values import sources, store
from addon_operator.values.schema import cel_rules, schemas
from tests.support import engine, helm, programs

WEB = ModuleName("web")


async def test_a_call_of_helm_for_a_module_that_is_disabled_is_ended_and_gives_way(
    op: engine.Operator,
) -> None:
    op.modules.add("web")
    op.helm.gate = asyncio.Event()
    await op.start()
    assert op.helm.running == {"web"}
    await op.edit(webEnabled="false")
    assert op.helm.running == set()
    assert op.statuses == {"web": "Disabled"}
    assert op.heard.failures == []


async def test_an_operator_that_ends_has_no_helm_left(op: engine.Operator) -> None:
    ended: list[str] = []

    async def run(call: programs.Call) -> None:
        if call.arguments[0] == "version":
            await op.helm.run(call)
            return
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            for _ in range(10):  # it takes a moment to end
                await asyncio.sleep(0)
            ended.append(call.arguments[1])
            raise

    op.modules.add("web")
    op.programs.add(helm.PATH, run)
    await op.start()
    await op.stop()
    assert ended == ["web"]


async def test_an_ignored_release_is_never_removed_and_its_module_goes_without_helm(
    op: engine.Operator,
) -> None:
    hook = op.hook("web/a.sh", {"beforeDeleteHelm": 1, "afterDeleteHelm": 1})
    op.modules.add("old")
    await op.start()
    await op.stop()
    op.settings["helm_ignore_release"] = "web,old"
    op.modules.remove("old")
    await op.start()
    await op.edit(webEnabled="false")
    await op.advance(30)
    assert [verb for verb in op.helm.changes if verb.startswith("uninstall")] == []
    assert (hook.told[-1:], op.statuses) == (["afterDeleteHelm"], {"web": "Disabled"})
    assert {*op.helm.statuses("web"), *op.helm.statuses("old")} == {1}


def test_sensitive_values_stay_out_of_messages() -> None:
    schema = "type: object\nproperties: {password: {type: string, x-sensitive: true}}\n"
    own = sources.parse_module_values(WEB, "web: {password: hunter2, size: small}", "values.yaml")
    read = schemas.load_schemas(None, (schema, "values.yaml"), cel_rules.CelEvaluator())
    values = store.ValuesStore([store.ModuleValues(WEB, own=own, schemas=read)])
    request = module_releases.request_of(values, model.Module(WEB, 1, pathlib.Path("web"), has_chart=True))
    assert request.redact("hunter2 is small") == "*** is small"
    assert request.values["web"] == {"password": "hunter2", "size": "small"}
