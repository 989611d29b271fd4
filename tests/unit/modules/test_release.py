"""When Helm has something to do for a module."""

import dataclasses

import pytest

from addon_operator.modules import release

LABELS = {
    release.MANAGED_LABEL: "true",
    release.INPUTS_LABEL: "inputs-1",
    release.MANIFEST_LABEL: "manifest-1",
    release.CHART_LABEL: "chart-1",
    release.REVISION_LABEL: "3",
}
MANIFEST = release.Checksum("manifest-1")


def revision(status: str = "deployed", number: int = 3, **labels: str | None) -> release.Revision:
    """The last revision, with our labels; a keyword of the labels' short name changes or removes one."""
    changed = {f"addon-operator.io/{key.replace('_', '-')}": value for key, value in labels.items()}
    merged = {key: value for key, value in (LABELS | changed).items() if value is not None}
    return release.Revision("web", number, status, merged)


def state(
    last: release.Revision | None,
    inputs: str = "inputs-1",
    chart: str = "chart-1",
    rendered: release.Rendered | None = None,
    absent: tuple[str, ...] = (),
) -> release.ReleaseState:
    return release.ReleaseState(last, release.Checksum(inputs), release.Checksum(chart), rendered, absent)


def rendered(inputs: str, manifest: str = "manifest-1", chart: str = "chart-1") -> release.Rendered:
    return release.Rendered(release.Checksum(inputs), release.Checksum(manifest), release.Checksum(chart))


def test_nothing_is_rendered_when_the_inputs_are_those_saved_with_the_release() -> None:
    decision = release.decide(state(revision()))
    assert decision == release.Skip(release.SkippedBy.INPUTS, "chart and values are those of revision 3")


def test_nothing_is_rendered_when_the_inputs_are_those_of_the_last_render_of_this_process() -> None:
    decision = release.decide(state(revision(), "inputs-2", rendered=rendered("inputs-2")))
    assert isinstance(decision, release.Skip)


def test_what_this_process_rendered_counts_more_than_the_labels() -> None:
    decision = release.decide(state(revision(), "inputs-1", rendered=rendered("inputs-2")))
    assert isinstance(decision, release.Render)


@pytest.mark.parametrize(
    ("observed", "reason"),
    [
        pytest.param(state(revision("failed")), "revision 3 is failed", id="last revision failed"),
        pytest.param(state(revision("superseded")), "superseded", id="last revision superseded"),
        pytest.param(state(revision(), "inputs-2"), "values, Helm or the cluster", id="values changed"),
        pytest.param(state(revision(), "inputs-2", "chart-2"), "chart's files", id="chart changed"),
        pytest.param(state(revision(), absent=("ConfigMap web",)), "ConfigMap web", id="resource absent"),
        pytest.param(state(revision(number=4)), "not made by this", id="revision made by hand"),
        pytest.param(state(revision(managed=None, revision=None)), "not made by this", id="foreign"),
        pytest.param(state(revision(inputs_checksum=None)), "is not known", id="no checksum saved"),
        pytest.param(state(revision(documents_checksum="")), "is not known", id="empty checksum saved"),
    ],
)
def test_a_render_has_a_reason_that_a_person_reads(observed: release.ReleaseState, reason: str) -> None:
    decision = release.decide(observed)
    assert isinstance(decision, release.Render)
    assert reason in decision.reason


@pytest.mark.parametrize(
    ("status", "action"),
    [
        ("pending-install", release.RecoveryAction.DROP_REVISION),
        ("pending-upgrade", release.RecoveryAction.DROP_REVISION),
        ("pending-rollback", release.RecoveryAction.DROP_REVISION),
        ("uninstalling", release.RecoveryAction.FINISH_UNINSTALL),
    ],
)
def test_a_stuck_release_is_recovered_whatever_its_checksums_say(
    status: str, action: release.RecoveryAction
) -> None:
    decision = release.decide(state(revision(status)))
    assert isinstance(decision, release.Recover)
    assert decision.action is action
    assert f"revision 3 is stuck in {status}" in decision.reason


@pytest.mark.parametrize("last", [None, revision("uninstalled")], ids=["missing", "its history kept"])
def test_without_a_release_it_is_installed_before_anything_is_rendered(
    last: release.Revision | None,
) -> None:
    assert release.decide(state(last)) == release.Install("first revision")


def test_no_revision_is_made_when_other_inputs_render_to_the_same_manifest() -> None:
    decision = release.decide(
        dataclasses.replace(state(revision(), "inputs-2", "chart-2"), manifest=MANIFEST)
    )
    assert decision == release.Skip(release.SkippedBy.MANIFEST, "the manifest is that of revision 3")


@pytest.mark.parametrize(
    ("observed", "manifest", "validate"),
    [
        pytest.param(state(revision(), "inputs-2"), "manifest-2", False, id="values changed"),
        pytest.param(state(revision(), "inputs-2", "chart-2"), "manifest-2", True, id="chart changed"),
        pytest.param(state(revision("failed")), "manifest-1", True, id="last revision failed"),
        pytest.param(state(revision(), absent=("Service web",)), "manifest-1", False, id="absent"),
        pytest.param(state(revision(number=4)), "manifest-1", True, id="made by hand"),
    ],
)
def test_an_upgrade_validates_only_what_was_not_validated_before(
    observed: release.ReleaseState, manifest: str, validate: bool
) -> None:
    decision = release.decide(dataclasses.replace(observed, manifest=release.Checksum(manifest)))
    assert isinstance(decision, release.Upgrade)
    assert decision.validate is validate
    assert decision.reason


def test_a_long_list_of_absent_resources_is_cut() -> None:
    absent = tuple(f"ConfigMap c{number}" for number in range(12))
    decision = release.decide(state(revision(), absent=absent))
    assert isinstance(decision, release.Render)
    assert decision.reason == "absent in the cluster: ConfigMap c0, ConfigMap c1, ConfigMap c2 and 9 more"


@pytest.mark.parametrize(
    ("labels", "ours"),
    [
        ({release.MANAGED_LABEL: "true"}, True),
        ({release.GO_OPERATOR_LABEL: "d41d8cd98f00b204e9800998ecf8427e"}, True),
        ({release.MANAGED_LABEL: "false"}, False),
        ({"team": "a"}, False),
    ],
    ids=["this operator", "the Go operator", "label says no", "somebody else"],
)
def test_a_release_is_ours_by_its_labels(labels: dict[str, str], ours: bool) -> None:
    assert release.Revision("web", 1, "deployed", labels).ours is ours
