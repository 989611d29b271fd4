"""An upgrade that changes what never changes is found before an API server refuses it."""

from collections.abc import Mapping
from typing import Any

from addon_operator.testing import unchangeable
from tests.support import rows
from tests.unit.testing import fixed_fields


@rows.each(
    ("kind", "before", "after", "fields"), fixed_fields.CHANGES.values(), ids=list(fixed_fields.CHANGES)
)
def test_a_change_of_what_never_changes_is_named_by_its_field(
    kind: str, before: Mapping[str, Any], after: Mapping[str, Any], fields: list[str]
) -> None:
    objects = [fixed_fields.body(kind, each) for each in (before, after)]
    word = kind.partition(" ")[2]
    assert list(unchangeable.changes(objects[:1], objects[1:])) == [f"{word} web: {each}" for each in fields]


def test_objects_of_other_names_and_hooks_of_helm_are_made_anew() -> None:
    kind, before, after, _ = fixed_fields.CHANGES["template of a Job"]
    old, new = fixed_fields.body(kind, before), fixed_fields.body(kind, after)
    assert unchangeable.refused([old], [fixed_fields.body(kind, after, "web-2")]) == ""
    new["metadata"]["annotations"] = {"helm.sh/hook": "pre-upgrade"}
    assert unchangeable.refused([old], [new]) == ""


def test_a_job_that_waits_may_get_other_places_for_its_pods() -> None:
    kind, before, after, _ = fixed_fields.CHANGES["template of a Job"]
    waiting = {"spec": {**before["spec"], "suspend": True}}
    assert unchangeable.refused([fixed_fields.body(kind, waiting)], [fixed_fields.body(kind, after)]) == ""


def test_values_of_secrets_are_not_told() -> None:
    kind, before, after, _ = fixed_fields.CHANGES["an immutable Secret"]
    told = unchangeable.refused([fixed_fields.body(kind, before)], [fixed_fields.body(kind, after)])
    assert told == (
        "the API server refuses to upgrade what the release has, as these fields never change:\n"
        "  Secret web: data.a\nleave them as they are, or give the object another name"
    )
