"""What annotations of a Module object say of its suspension."""

from addon_operator.kernel import clock
from addon_operator.kube.objects import suspension
from tests.support import rows

SEEN = 1_000.0


def test_what_is_written_is_read_again() -> None:
    wanted = suspension.Suspension("new disks", 100.0, "alice", 400.0)
    annotations = {key: value for key, value in wanted.annotations.items() if value is not None}
    assert list(annotations) == list(suspension.ALL)
    assert suspension.read(annotations, SEEN) == wanted
    assert str(wanted) == (
        "suspended: new disks (by alice, since 1970-01-01T00:01:40Z, until 1970-01-01T00:06:40Z)"
    )


def test_a_reason_is_enough() -> None:
    found = suspension.read({suspension.SUSPENDED: " by\nhand "}, SEEN)
    assert found == suspension.Suspension("by hand", SEEN)
    assert found.annotations == {
        suspension.SUSPENDED: "by hand",
        suspension.BY: None,
        suspension.SINCE: clock.rfc3339(SEEN),
        suspension.UNTIL: None,
    }
    assert "no reason given" in str(suspension.read({suspension.SUSPENDED: ""}, SEEN))


@rows.each("annotations", [{}, {suspension.SUSPENDED: "False"}, {suspension.BY: "alice"}])
def test_without_it_nothing_is_suspended(annotations: dict[str, str]) -> None:
    assert suspension.read(annotations, SEEN) is None


@rows.each("text", ["soon", "12:00", "2026-01-01T00:00:00"])
def test_an_end_that_cannot_be_read_is_said_and_none(text: str) -> None:
    found = suspension.read({suspension.SUSPENDED: "x", suspension.UNTIL: text, suspension.SINCE: text}, SEEN)
    assert found is not None
    assert (found.since, found.until) == (SEEN, None)
    assert "suspended-until is not a time such as 1970-01-01T00:16:40Z" in str(found)


def test_long_texts_are_cut() -> None:
    found = suspension.read({suspension.SUSPENDED: "x" * 999, suspension.BY: "y" * 999}, SEEN)
    assert found is not None
    assert (len(found.reason), len(found.by)) == (300, 300)


def test_annotations_of_ours_that_ask_for_nothing_are_said_with_what_was_meant() -> None:
    known = dict.fromkeys([suspension.RUN, suspension.NOW, *suspension.ALL, "example.com/suspend"], "x")
    assert suspension.unknown(known) == ""
    assert suspension.unknown({**known, "addon-operator.io/suspend": "x"}) == (
        "addon-operator.io/suspend has no effect: did you mean addon-operator.io/suspended?"
    )
    many = {f"addon-operator.io/{letter * 50}": "" for letter in "vwxyz"}
    assert suspension.unknown(many).count("has no effect: remove it") == 3
    assert suspension.unknown(many).endswith(" and 2 more")
