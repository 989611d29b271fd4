"""Objects that one release loses while another one gains them: what calls of Helm under way do to them."""

import asyncio

import pytest

from addon_operator.kernel import json_types
from addon_operator.kube.client import client
from tests.support import api_server, engine, helm, programs

MOVING = {
    "claim": api_server.an_object("PersistentVolumeClaim", "data"),
    "plain": api_server.an_object("ConfigMap", "plain"),
}


class Held:
    """Holds one call of Helm, after all that the operator has decided before it."""

    def __init__(self, op: engine.Operator, call: str) -> None:
        self._op = op
        self._call = call
        self.gate = asyncio.Event()
        op.programs.add(helm.PATH, self._run)

    async def _run(self, call: programs.Call) -> None:
        if " ".join(call.arguments[:2]) == self._call:
            await self.gate.wait()
        await self._op.helm.run(call)


def chart(name: str) -> helm.Render:
    """What a module has by its values, beside an object of its own."""

    def render(values: json_types.JsonObject) -> list[api_server.Object]:
        section = values[name]
        assert isinstance(section, dict)
        own = api_server.an_object("ConfigMap", f"{name}-own")
        return [own, *(body for word, body in MOVING.items() if word in str(section["has"]))]

    return render


@pytest.fixture
async def op(op: engine.Operator) -> engine.Operator:
    """Two modules: ``web`` runs after ``db`` and has what its values name; an apply changes nothing."""
    op.helm.writes_objects = True
    for name, order in (("db", 10), ("web", 20)):
        op.modules.add(name, order=order)
        op.helm.charts[name] = chart(name)
    applied = api_server.Answer({})
    op.server.refuse(
        applied, lambda asked: asked.headers.get("content-type") == client.PatchType.APPLY, times=20
    )
    await op.edit(db={"has": ""}, web={"has": "claim plain"})
    await op.start()
    return op


def deleted(op: engine.Operator) -> list[str]:
    """Objects that went, whether they came back or not."""
    changes = (change.before for change in op.server.history if change.after is None)
    found = [body["metadata"]["name"] for body in changes if body and body["kind"] != "Secret"]
    return [name for name in found if name in ("data", "plain")]


async def test_what_holds_data_outlives_a_module_that_gains_it_while_helm_takes_it_out_of_another(
    op: engine.Operator,
) -> None:
    losing = Held(op, "upgrade web")
    await op.edit(web={"has": ""})
    # Nobody was to gain it when that call began: Helm leaves it because of a mark, which a gain takes away.
    await op.edit(db={"has": "claim"})
    waits = "waits until Helm is done with release web: PersistentVolumeClaim addons/data moves"
    assert waits in op.row("db")["reason"]
    losing.gate.set()
    await op.advance(5)
    assert op.statuses == {"db": "Ready", "web": "Ready"}
    assert deleted(op) == ["plain"]
    metadata = op.server.get("PersistentVolumeClaim", "data")["metadata"]
    assert "helm.sh/resource-policy" not in metadata["annotations"]


async def test_what_a_call_under_way_gains_is_not_deleted_by_one_that_begins_meanwhile(
    op: engine.Operator,
) -> None:
    gaining = Held(op, "upgrade db")
    await op.edit(db={"has": "claim plain"})
    await op.edit(web={"has": ""})
    await op.advance(5)
    assert deleted(op) == []
    gaining.gate.set()
    await op.advance(5)
    assert op.statuses == {"db": "Ready", "web": "Ready"}
    assert deleted(op) == []


async def test_two_modules_that_swap_objects_at_once_do_not_wait_for_each_other(op: engine.Operator) -> None:
    await op.edit(db={"has": "plain"}, web={"has": "claim"})
    await op.advance(5)
    first = Held(op, "upgrade web")
    await op.edit(web={"has": "plain"})
    await op.edit(db={"has": "claim"})
    first.gate.set()
    await op.advance(5)
    assert op.statuses == {"db": "Ready", "web": "Ready"}
    assert deleted(op) == []


async def test_a_module_does_not_wait_for_a_removal_that_leaves_what_it_gains(op: engine.Operator) -> None:
    removal = Held(op, "uninstall web")
    await op.edit(webEnabled="false", db={"has": "claim plain"})
    await op.advance(5)
    assert op.statuses == {"db": "Ready", "web": "Deleting"}
    removal.gate.set()
    await op.advance(5)
    assert op.statuses == {"db": "Ready", "web": "Disabled"}
    assert deleted(op) == []
