"""The checker of histories that tests of informers rely on."""

import pytest

from addon_operator.kube.informers import object_changes
from tests.support import histories, rows

KEY = ("a", "x")


def change(type_: str, value: str, version: int, name: str = "x") -> object_changes.Change:
    return object_changes.Change(
        object_changes.ChangeType(type_),
        object_changes.ObjectKey("a", name),
        b'{"filterResult":"%b"}' % value.encode(),
        str(version),
    )


def writes(*values: str | None) -> list[histories.Write]:
    return [histories.Write(KEY, value) for value in values]


FINE = [
    change("Added", "1", 1),
    change("Modified", "2", 2),
    change("Deleted", "2", 3),
    change("Added", "4", 4),
]


def test_what_follows_from_the_writes_is_fine() -> None:
    histories.check_every_version(writes("1", "2", None, "4"), FINE)
    assert histories.check_sequence({}, FINE) == {KEY: "4"}


@rows.each(
    "changes",
    [
        FINE[:1] + FINE[2:],
        [*FINE[:2], change("Modified", "2", 2), *FINE[2:]],
        FINE[:3],
        [FINE[1], FINE[0], *FINE[2:]],
        [*FINE, change("Added", "5", 5, "nobody")],
    ],
    ids=["one is lost", "one is doubled", "the last is lost", "two are swapped", "one was never written"],
)
def test_every_lost_doubled_or_invented_version_is_found(changes: list[object_changes.Change]) -> None:
    with pytest.raises(histories.HistoryError):
        histories.check_every_version(writes("1", "2", None, "4"), changes)


@rows.each(
    "changes",
    [
        [FINE[0], FINE[0]],
        [FINE[1]],
        [FINE[0], change("Modified", "1", 2)],
        [FINE[0], change("Modified", "2", 3), change("Modified", "1", 2)],
    ],
    ids=["added twice", "changed before it was there", "changed into the same", "back in time"],
)
def test_changes_that_cannot_follow_each_other_are_found(changes: list[object_changes.Change]) -> None:
    with pytest.raises(histories.HistoryError):
        histories.check_sequence({}, changes)


def test_consecutive_versions_that_were_not_reported_are_one_gap() -> None:
    written = writes("1", "2", "3", None, "4", "5", "6")
    told = [change("Added", "1", 1), change("Modified", "4", 5), change("Modified", "6", 7)]
    assert histories.gaps(written, told) == {KEY: 2}
    assert histories.gaps(writes("1"), told) == {KEY: 0}
