"""What is written so that a live definition becomes that of a file."""

import copy
from typing import Any

from addon_operator.modules import crd_changes, crd_files
from tests.support import rows

LABELS = {"heritage": "addon-operator"}


def version(name: str, *, storage: bool = False, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema or {"type": "object"}},
    }


def crd(*versions: dict[str, Any], **spec: object) -> crd_files.Crd:
    document: Any = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "crontabs", "kind": "CronTab"},
        "versions": list(versions or (version("v1", storage=True),)),
        **spec,
    }
    return crd_files.Crd(
        "crontabs.example.com",
        "crds/x.yaml, document 1",
        {"team": "web"},
        {"note": "a"},
        document,
    )


def live(wanted: crd_files.Crd, *, stored: tuple[str, ...] = ("v1",), **spec: object) -> dict[str, Any]:
    """The definition as the server has it after it was applied."""
    applied: Any = copy.deepcopy(crd_changes.desired(wanted, LABELS, None))
    applied["metadata"]["resourceVersion"] = "7"
    applied["spec"]["names"] |= {"singular": "crontab", "listKind": "CronTabList"}
    return {
        **applied,
        "spec": {**applied["spec"], "conversion": {"strategy": "None"}, **spec},
        "status": {"storedVersions": list(stored)},
    }


def test_a_new_definition_gets_the_extra_labels_beside_its_own() -> None:
    wanted: Any = crd_changes.desired(crd(), LABELS, None)
    assert wanted["metadata"] == {
        "name": "crontabs.example.com",
        "labels": {"team": "web", "heritage": "addon-operator"},
        "annotations": {"note": "a"},
    }
    assert "status" not in wanted
    assert "conversion" not in wanted["spec"]


def test_what_the_server_fills_in_is_not_a_difference() -> None:
    assert not crd_changes.differs(crd_changes.desired(crd(), LABELS, live(crd())), live(crd()))


def test_labels_and_annotations_of_others_are_no_difference() -> None:
    there = live(crd())
    there["metadata"]["labels"]["by"] = "somebody"
    assert not crd_changes.differs(crd_changes.desired(crd(), LABELS, there), there)


def test_a_field_that_the_server_leaves_out_when_it_is_false_is_not_a_difference() -> None:
    given = crd(preserveUnknownFields=False)
    assert not crd_changes.differs(crd_changes.desired(given, LABELS, live(crd())), live(crd()))


@rows.each(
    "changed",
    [
        crd(version("v1", storage=True, schema={"type": "object", "description": "new"})),
        crd(version("v1"), version("v2", storage=True)),
        crd(names={"plural": "crontabs", "kind": "CronTab", "shortNames": ["ct"]}),
    ],
    ids=["schema", "version", "short name"],
)
def test_a_change_of_the_file_is_a_difference(changed: crd_files.Crd) -> None:
    there = live(crd())
    assert crd_changes.differs(crd_changes.desired(changed, LABELS, there), there)


def test_a_removed_property_is_a_difference() -> None:
    there = live(crd(version("v1", storage=True, schema={"type": "object", "properties": {"a": {}}})))
    assert crd_changes.differs(crd_changes.desired(crd(), LABELS, there), there)


def test_another_extra_label_is_a_difference() -> None:
    assert crd_changes.differs(crd_changes.desired(crd(), {"scope": "x"}, live(crd())), live(crd()))


WEBHOOK = {"strategy": "Webhook", "webhook": {"clientConfig": {"caBundle": "Cg=="}}}


def test_the_live_conversion_stays() -> None:
    given: Any = crd_changes.desired(
        crd(conversion={"strategy": "None"}), LABELS, live(crd(), conversion=WEBHOOK)
    )
    assert given["spec"]["conversion"] == WEBHOOK


def test_a_file_may_bring_a_conversion_where_there_is_none() -> None:
    given: Any = crd_changes.desired(crd(conversion=WEBHOOK), LABELS, live(crd()))
    assert given["spec"]["conversion"] == WEBHOOK


def test_versions_in_which_objects_may_be_stored_are_found() -> None:
    there = live(crd(), stored=("v1alpha1", "v1"))
    assert crd_changes.lost_versions(crd(), there) == ("v1alpha1",)
    assert crd_changes.lost_versions(crd(), live(crd())) == ()
    assert crd_changes.lost_versions(crd(), None) == ()


def test_kept_versions_are_neither_served_nor_stored() -> None:
    there = live(crd(version("v1alpha1", storage=True)), stored=("v1alpha1",))
    given: Any = crd_changes.keeping(crd_changes.desired(crd(), LABELS, there), there, ("v1alpha1",))
    states = [(v["name"], v["served"], v["storage"]) for v in given["spec"]["versions"]]
    assert states == [("v1", True, True), ("v1alpha1", False, False)]


def test_the_versions_of_a_file_are_named_by_their_purpose() -> None:
    given = crd(version("v1", storage=True), {**version("v2"), "served": False})
    assert crd_changes.storage_version(given) == "v1"
    assert crd_changes.served_versions(given) == ("v1",)


def conditions(**states: str) -> dict[str, Any]:
    found = [
        {"type": type_, "status": status, "message": f"{type_} it is"} for type_, status in states.items()
    ]
    return {"status": {"conditions": found}}


@rows.each(
    ("there", "phase", "message"),
    [
        ({}, crd_changes.CrdPhase.PENDING, ""),
        (conditions(NamesAccepted="True", Established="False"), crd_changes.CrdPhase.PENDING, ""),
        (conditions(NamesAccepted="True", Established="True"), crd_changes.CrdPhase.ESTABLISHED, ""),
        (
            conditions(NamesAccepted="False", Established="False"),
            crd_changes.CrdPhase.REFUSED,
            "NamesAccepted",
        ),
    ],
    ids=["new", "accepted", "established", "names taken"],
)
def test_conditions_tell_whether_a_definition_is_served(
    there: dict[str, Any], phase: crd_changes.CrdPhase, message: str
) -> None:
    found = crd_changes.progress(there)
    assert found.phase is phase
    assert found.message.startswith(message)
