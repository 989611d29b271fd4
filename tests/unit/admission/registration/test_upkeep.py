"""A touched configuration is noticed at once."""

import asyncio

from addon_operator.admission.registration import registration_specs as specs
from addon_operator.admission.registration import upkeep
from tests.support import api_server, watches
from tests.unit.kube import informing

KIND = specs.ConfigurationKind.VALIDATING


def put(server: api_server.ApiServer, name: str, generation: int = 1) -> None:
    metadata = {"generation": generation}
    server.put(api_server.an_object(KIND.value, name, None, specs.API_VERSION, metadata=metadata))


async def test_a_change_and_a_removal_are_reported_and_what_is_there_at_the_beginning() -> None:
    server, pauses, changed = api_server.ApiServer(), informing.Yielding(), asyncio.Event()
    server.serve(KIND.value, specs.API_VERSION, namespaced=False, plural=KIND.resource.plural)
    put(server, "addon-operator")
    async with api_server.client_of(server, pauses) as kube, asyncio.timeout(30):
        followed = watches.shared(kube, pauses)
        touches = upkeep.Touches(followed, KIND.resource, changed)
        touches.follow(["addon-operator"])
        await changed.wait()
        put(server, "another")
        changed.clear()
        put(server, "addon-operator", 2)
        await changed.wait()
        changed.clear()
        server.delete(KIND.value, "addon-operator", None)
        await changed.wait()
        touches.follow([])
        assert followed.watches == []
        await followed.ended()
    assert {asked.query["fieldSelector"] for asked in server.asked} == {"metadata.name=addon-operator"}
