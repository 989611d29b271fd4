"""The review of a PodPreset that is being created."""

import pytest

from addon_operator.admission import reviews
from addon_operator.admission.presets import preset_cache, preset_notices
from tests.support import api_server
from tests.unit.admission.objects import Object, preset, review

MOUNT = {"name": "v", "mountPath": "/v"}
HOST = {"name": "v", "hostPath": {"path": "/"}}
EMPTY = {"name": "v", "emptyDir": {}}


@pytest.fixture
def check() -> preset_notices.PresetNotices:
    cache = preset_cache.PresetCache(lambda _: None)
    kube = api_server.client_of(api_server.ApiServer(), api_server.Pauses())
    lists = preset_notices.FreshLists(kube, cache)
    return preset_notices.PresetNotices(cache, lists, allowed_volumes=("configMap", "emptyDir"))


def mounting(volume: Object) -> Object:
    return preset(volumes=[volume], volumeMounts=[MOUNT])


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_type_of_volume_that_is_not_allowed_is_refused_with_the_field(
    check: preset_notices.PresetNotices, dry_run: bool
) -> None:
    verdict = await check.decide(review(mounting(HOST), dry_run=dry_run))
    assert not verdict.allowed
    rule = "volumes of this type are not allowed in presets here, only configMap, emptyDir "
    rule += "(PODPRESET_VOLUME_TYPES)"
    assert verdict.causes == [reviews.Cause("spec.volumes[0].hostPath", rule)]
    assert verdict.message == f"spec.volumes[0].hostPath: {rule}"


@pytest.mark.parametrize(
    "given",
    [
        review(mounting(EMPTY)),
        review(preset()),
        review(mounting({**HOST, "emptyDir": {}})),
        review(None, operation="DELETE", old=mounting(HOST)),
        review(mounting(HOST), operation="UPDATE", old=mounting(HOST)),
    ],
    ids=["allowed", "no volume", "wrong for another reason", "delete", "labels of a stored one"],
)
async def test_everything_else_is_allowed(check: preset_notices.PresetNotices, given: reviews.Review) -> None:
    assert (await check.decide(given)).allowed
