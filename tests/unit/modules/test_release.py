"""When Helm has something to do for a module."""

import pytest
from msgspec import structs

from addon_operator.modules import release
from tests.support import rows

LABELS = {
    release.MANAGED_LABEL: "true",
    release.INPUTS_LABEL: "inputs-1",
    release.MANIFEST_LABEL: "manifest-1",
    release.CHART_LABEL: "chart-1",
    release.REVISION_LABEL: "3",
}
MANIFEST = release.Checksum("manifest-1")
VALUES_CHANGED = "the values, Helm or the cluster changed"
CHART_CHANGED = "files of the chart changed, such as templates or values.yaml"
BY_HAND = "revision {} was not made by this operator"
NOT_KNOWN = "from what revision 3 was made is not known"


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


@rows.each(
    ("observed", "reason"),
    [
        pytest.param(state(revision("failed")), "revision 3 is failed", id="last revision failed"),
        pytest.param(state(revision("superseded")), "revision 3 is superseded", id="superseded"),
        pytest.param(state(revision(), "inputs-2"), VALUES_CHANGED, id="values changed"),
        pytest.param(state(revision(), "inputs-2", "chart-2"), CHART_CHANGED, id="chart changed"),
        pytest.param(
            state(revision(), absent=("ConfigMap web",)),
            "absent in the cluster: ConfigMap web",
            id="resource absent",
        ),
        pytest.param(state(revision(number=4)), BY_HAND.format(4), id="revision made by hand"),
        pytest.param(state(revision(managed=None, revision=None)), BY_HAND.format(3), id="foreign"),
        pytest.param(state(revision(revision=None)), NOT_KNOWN, id="no revision saved"),
        pytest.param(state(revision(inputs_checksum=None)), NOT_KNOWN, id="no checksum saved"),
        pytest.param(state(revision(documents_checksum="")), NOT_KNOWN, id="empty checksum saved"),
    ],
)
def test_a_render_has_a_reason_that_a_person_reads(observed: release.ReleaseState, reason: str) -> None:
    decision = release.decide(observed)
    assert decision == release.Render(reason)


@rows.each("status", ["pending-install", "pending-upgrade", "pending-rollback", "uninstalling"])
def test_a_stuck_release_counts_as_failed_whatever_its_checksums_say(status: str) -> None:
    decision = release.decide(state(revision(status)))
    assert decision == release.Recover(f"revision 3 is stuck in {status}: it counts as failed")


@rows.each("status", ["unknown", "wrecked", ""])
def test_a_status_that_helm_does_not_go_on_from_counts_as_failed(status: str) -> None:
    decision = release.decide(state(revision(status)))
    told = f"revision 3 has the status {status!r}, with which Helm does nothing: it counts as failed"
    assert decision == release.Recover(told)


@rows.each("last", [None, revision("uninstalled")], ids=["missing", "its history kept"])
def test_without_a_release_it_is_installed_before_anything_is_rendered(
    last: release.Revision | None,
) -> None:
    assert release.decide(state(last)) == release.Install("first revision")


def test_a_release_of_which_no_revision_worked_is_installed_again_and_one_that_worked_once_is_upgraded() -> (
    None
):
    failed = state(revision("failed"))
    again = release.decide(structs.replace(failed, was_deployed=False))
    assert again == release.Install("revision 3 is failed, and none was deployed before", is_again=True)
    assert release.decide(failed) == release.Render("revision 3 is failed")


@rows.each(
    ("observed", "manifest", "heals"),
    [
        (state(revision(), absent=("ConfigMap web",)), "manifest-1", True),
        (state(revision(), "inputs-2", absent=("ConfigMap web",)), "manifest-2", False),
        (state(revision("failed"), absent=("ConfigMap web",)), "manifest-1", False),
        (state(revision(revision=None), absent=("ConfigMap web",)), "manifest-1", False),
        (state(revision(), "inputs-2"), "manifest-2", False),
    ],
    ids=["absent", "absent, and changed", "absent, and failed", "absent, and not known", "changed"],
)
def test_a_revision_heals_if_it_only_brings_back_what_is_absent(
    observed: release.ReleaseState, manifest: str, heals: bool
) -> None:
    decision = release.decide(structs.replace(observed, manifest=release.Checksum(manifest)))
    assert isinstance(decision, release.Upgrade)
    assert decision.heals is heals


def test_no_revision_is_made_when_other_inputs_render_to_the_same_manifest() -> None:
    decision = release.decide(structs.replace(state(revision(), "inputs-2", "chart-2"), manifest=MANIFEST))
    assert decision == release.Skip(release.SkippedBy.MANIFEST, "the manifest is that of revision 3")


@rows.each(
    ("observed", "manifest", "upgrade"),
    [
        pytest.param(
            state(revision(), "inputs-2"),
            "manifest-2",
            release.Upgrade(VALUES_CHANGED, validate=False),
            id="values changed",
        ),
        pytest.param(
            state(revision(), "inputs-2", "chart-2"),
            "manifest-2",
            release.Upgrade(CHART_CHANGED, validate=True),
            id="chart changed",
        ),
        pytest.param(
            state(revision()),
            "manifest-2",
            release.Upgrade("the rendered manifest changed", validate=False),
            id="the same inputs render to something else",
        ),
        pytest.param(
            state(revision("failed")),
            "manifest-1",
            release.Upgrade("revision 3 is failed", validate=True),
            id="last revision failed",
        ),
        pytest.param(
            state(revision(), "inputs-2", absent=("Service web",)),
            "manifest-2",
            release.Upgrade("absent in the cluster: Service web", validate=False),
            id="absent, and values changed",
        ),
        pytest.param(
            state(revision(number=4)),
            "manifest-1",
            release.Upgrade(BY_HAND.format(4), validate=True),
            id="made by hand",
        ),
    ],
)
def test_an_upgrade_validates_only_what_was_not_validated_before(
    observed: release.ReleaseState, manifest: str, upgrade: release.Upgrade
) -> None:
    assert release.decide(structs.replace(observed, manifest=release.Checksum(manifest))) == upgrade


def test_a_release_without_checksums_stays_as_it_is_if_its_manifest_is_the_rendered_one() -> None:
    applied = structs.replace(state(revision(managed=None, revision=None)), applied=True)
    assert release.decide(applied) == release.Skip(
        release.SkippedBy.INPUTS, "chart and values are those of revision 3"
    )
    assert release.decide(structs.replace(applied, manifest=MANIFEST)) == release.Skip(
        release.SkippedBy.MANIFEST, "the manifest is that of revision 3"
    )


def test_a_long_list_of_absent_resources_is_cut() -> None:
    absent = tuple(f"ConfigMap c{number}" for number in range(12))
    decision = release.decide(state(revision(), absent=absent))
    assert isinstance(decision, release.Render)
    assert decision.reason == "absent in the cluster: ConfigMap c0, ConfigMap c1, ConfigMap c2 and 9 more"


@rows.each(
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


GO_OPERATOR = {release.GO_OPERATOR_LABEL: "d41d8cd98f00b204e9800998ecf8427e"}


@rows.each(
    ("labels", "by_go_operator"),
    [(GO_OPERATOR, True), (GO_OPERATOR | LABELS, False), (LABELS, False), ({}, False)],
    ids=["the Go operator", "this one after it", "this one", "somebody else"],
)
def test_a_revision_is_the_go_operators_until_this_one_upgrades_it(
    labels: dict[str, str], by_go_operator: bool
) -> None:
    assert release.Revision("web", 1, "deployed", labels).by_go_operator is by_go_operator


@rows.each(
    ("status", "exists", "busy"),
    [
        ("deployed", True, False),
        ("failed", True, False),
        ("uninstalling", True, True),
        ("pending-install", True, True),
        ("uninstalled", False, False),
    ],
)
def test_the_status_says_whether_there_is_a_release_and_whether_helm_is_at_work(
    status: str, exists: bool, busy: bool
) -> None:
    found = release.Revision("web", 1, status)
    assert (found.exists, found.is_busy) == (exists, busy)


@rows.each(
    ("status", "removal", "half_removed"),
    [("uninstalled", "begun", True), ("uninstalled", None, False), ("deployed", "begun", False)],
)
def test_a_removal_is_half_done_while_the_record_of_an_uninstalled_release_says_so(
    status: str, removal: str | None, half_removed: bool
) -> None:
    assert revision(status, removal=removal).half_removed is half_removed


def test_a_release_says_for_which_namespace_it_was_made_in_another_one() -> None:
    assert revision(operator="addons").operator == "addons"
    assert revision().operator == ""


def test_labels_save_from_what_a_revision_was_made() -> None:
    made = rendered("inputs-1")
    assert made.labels(3) == LABELS
    assert release.Revision("web", 3, "deployed", made.labels(3)).saved == made


def test_a_revision_of_an_operator_that_saved_no_checksum_of_the_chart_has_an_empty_one() -> None:
    assert revision(chart_checksum=None).saved == rendered("inputs-1", chart="")


def test_nothing_is_known_without_a_release() -> None:
    assert state(None).known is None


def test_labels_and_metrics_have_the_names_that_others_look_for() -> None:
    assert list(LABELS) == [
        "addon-operator.io/managed",
        "addon-operator.io/inputs-checksum",
        "addon-operator.io/documents-checksum",
        "addon-operator.io/chart-checksum",
        "addon-operator.io/revision",
    ]
    assert release.GO_OPERATOR_LABEL == "moduleChecksum"
    assert release.FAILED == "failed"
    assert [str(each) for each in release.SkippedBy] == ["inputs", "manifest"]
