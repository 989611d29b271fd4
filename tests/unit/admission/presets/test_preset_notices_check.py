"""The review of a PodPreset that is being created."""

import pytest

from addon_operator.admission import reviews
from addon_operator.admission.presets import preset_check
from tests.support import review_handlers
from tests.unit.admission.objects import Object, preset, review

MOUNT = {"name": "v", "mountPath": "/v"}
HOST = {"name": "v", "hostPath": {"path": "/"}}
EMPTY = {"name": "v", "emptyDir": {}}


class Next:
    """The handler of what is not refused."""

    def __init__(self) -> None:
        self.asked: list[reviews.Review] = []

    async def __call__(self, review: reviews.Review) -> reviews.ReviewVerdict:
        self.asked.append(review)
        return reviews.ALLOWED


@pytest.fixture
def then() -> Next:
    return Next()


@pytest.fixture
def check(then: Next) -> preset_check.PresetCheck:
    return preset_check.PresetCheck(("configMap", "emptyDir"), review_handlers.Calling(then))


def mounting(volume: Object) -> Object:
    return preset(volumes=[volume], volumeMounts=[MOUNT])


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_type_of_volume_that_is_not_allowed_is_refused_with_the_field(
    check: preset_check.PresetCheck, then: Next, dry_run: bool
) -> None:
    verdict = await check.decide(review(mounting(HOST), dry_run=dry_run))
    assert not verdict.allowed
    rule = "volumes of this type are not allowed in presets here, only configMap, emptyDir "
    rule += "(PODPRESET_VOLUME_TYPES)"
    assert verdict.causes == [reviews.Cause("spec.volumes[0].hostPath", rule)]
    assert verdict.message == f"spec.volumes[0].hostPath: {rule}"
    assert then.asked == []


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
async def test_everything_else_goes_on(
    check: preset_check.PresetCheck, then: Next, given: reviews.Review
) -> None:
    assert (await check.decide(given)).allowed
    assert then.asked == [given]
