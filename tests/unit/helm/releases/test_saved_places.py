"""The places of hooks' values in the labels of a revision."""

import hypothesis
from hypothesis import strategies as st

from addon_operator.helm.releases import saved_places
from addon_operator.kernel import names
from addon_operator.modules import release
from addon_operator.values.patches import hook_values
from tests.support import rows


def revision(labels: dict[str, str | None], number: int = 3, made: int = 3) -> release.Revision:
    given = {key: value for key, value in labels.items() if value is not None}
    ours = release.Rendered(*map(release.Checksum, "abc")).labels(made)
    return release.Revision("web", number, release.DEPLOYED, given | ours)


@hypothesis.given(st.text(max_size=2000))
def test_a_text_is_read_as_it_was_saved(text: str) -> None:
    labels, annotations = saved_places.changes({}, text)
    assert (saved_places.read(revision(labels), annotations) or "") == text
    assert all(value is not None and names.is_label_value(value) for value in labels.values())
    assert all(map(names.is_label_key, labels))


def test_the_places_of_a_usual_module_fit_into_labels() -> None:
    many = hook_values.HookPaths(
        shared=("/global/discovery/clusterType", "/global/zone"),
        own=tuple(f"/web/internal/setting{number}" for number in range(40)),
        switches={f"module{number}Enabled": True for number in range(20)},
    )
    labels, annotations = saved_places.changes({}, many.text())
    assert (len(labels), annotations) == (6, {})


def test_labels_of_a_longer_text_are_taken_away() -> None:
    before, _ = saved_places.changes({}, "".join(map(chr, range(33, 200))))
    known = {key: value or "" for key, value in before.items()}
    first = min(known)
    assert saved_places.changes(known, "x")[0] == dict.fromkeys(known) | saved_places.changes({}, "x")[0]
    assert saved_places.changes({"other": "y", first: "z"}, "") == ({first: None}, {})


@rows.each("text", ["", "x", "x-x", "x!x", "xAAAAx"], ids=repr)
def test_what_is_not_ours_tells_nothing(text: str) -> None:
    labels, _ = saved_places.changes({}, "here")
    assert saved_places.read(revision({min(labels): text}), {}) is None


def test_copies_on_a_revision_made_by_hand_tell_nothing() -> None:
    labels, _ = saved_places.changes({}, "here")
    assert saved_places.read(revision(labels, number=4, made=3), {}) is None
