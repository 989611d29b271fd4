"""Releases that somebody else made: taken over, with a new revision only if they are not what is wanted."""

import pathlib

import pytest

from addon_operator.helm import release_types
from addon_operator.kernel import names
from addon_operator.modules import release
from tests.unit.helm import fakes

WEB = names.ModuleName("web")
MANIFEST = "kind: ConfigMap\nmetadata: {name: web}\n"
LABELLED = "kind: ConfigMap\nmetadata: {name: web, labels: {heritage: addon-operator}}\n"
GO_LABELS = {release.GO_OPERATOR_LABEL: "d41d8cd98f00b204e9800998ecf8427e"}


def asked(directory: pathlib.Path) -> release_types.ReleaseRequest:
    return release_types.ReleaseRequest(WEB, directory, {"global": {}, "web": {}})


@pytest.fixture
def world(world: fakes.World) -> fakes.World:
    world.helm.render = lambda _: MANIFEST
    return world


@pytest.mark.parametrize(
    ("labels", "applied"),
    [(GO_LABELS, LABELLED), (GO_LABELS, MANIFEST), ({}, MANIFEST)],
    ids=["by the Go operator", "by it without its label", "by hand"],
)
async def test_a_release_with_the_same_manifest_is_taken_over_without_a_revision(
    world: fakes.World, module_dir: pathlib.Path, labels: dict[str, str], applied: str
) -> None:
    world.api.put("web", 7, "deployed", labels, applied)
    outcome = await world.manager().ensure(asked(module_dir))
    assert (outcome.by, outcome.revision) == (release.SkippedBy.MANIFEST, 7)
    assert world.helm.verbs == ["template"]
    assert labels.items() <= world.api.labels("web", 7).items(), "nothing is taken away"
    again = await world.manager().ensure(asked(module_dir))
    assert again.by is release.SkippedBy.INPUTS
    assert world.helm.verbs == ["template"], "the next start needs no Helm"


async def test_a_release_with_another_manifest_gets_a_revision_that_is_validated(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    world.api.put("web", 7, "deployed", GO_LABELS, "kind: ConfigMap\nmetadata: {name: old}\n")
    outcome = await world.manager().ensure(asked(module_dir))
    assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.UPGRADED, 8)
    assert "--disable-openapi-validation" not in world.helm.calls[-1]


async def test_an_absent_resource_is_restored_in_a_release_that_is_taken_over(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    world.api.put("web", 7, "deployed", GO_LABELS, LABELLED)
    request = release_types.ReleaseRequest(WEB, module_dir, {}, absent=("ConfigMap web",))
    assert (await world.manager().ensure(request)).action is release_types.ReleaseAction.UPGRADED


@pytest.mark.parametrize(
    ("status", "action"), [("failed", "installed"), ("superseded", "upgraded"), ("unknown", "installed")]
)
async def test_a_release_that_is_not_deployed_is_not_taken_over_as_it_is(
    world: fakes.World, module_dir: pathlib.Path, status: str, action: str
) -> None:
    world.api.put("web", 7, status, GO_LABELS, LABELLED)
    outcome = await world.manager().ensure(asked(module_dir))
    assert (outcome.action, outcome.revision) == (action, 8)


async def test_a_record_that_cannot_be_decoded_is_replaced(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    world.api.put("web", 7, "deployed", GO_LABELS, LABELLED)
    world.api.objects["sh.helm.release.v1.web.v7"]["data"] = {"release": "!!"}
    assert (await world.manager().ensure(asked(module_dir))).action is release_types.ReleaseAction.UPGRADED


async def test_a_rollback_by_hand_to_the_same_manifest_makes_no_revision(
    world: fakes.World, module_dir: pathlib.Path
) -> None:
    await world.manager().ensure(asked(module_dir))
    world.api.put("web", 2, "deployed", world.api.labels("web", 1), MANIFEST)
    outcome = await world.manager().ensure(asked(module_dir))
    assert (outcome.by, outcome.revision) == (release.SkippedBy.MANIFEST, 2)
