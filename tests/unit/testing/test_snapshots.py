"""Snapshots compare, are written only when that is asked for, and fail when they are missing."""

import pathlib

import pytest

from addon_operator.testing import snapshots
from addon_operator.testing.modules import manifests

OBJECT = {"kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"text": "a\nb\n", "on": "yes"}}


def snapshot(directory: pathlib.Path, *, update: bool = False) -> snapshots.Snapshot:
    return snapshots.Snapshot(directory, "test_it[1 of 2]", update=update)


def test_a_missing_snapshot_fails_and_is_not_written(tmp_path: pathlib.Path) -> None:
    with pytest.raises(snapshots.SnapshotError, match="--snapshot-update to write it"):
        snapshot(tmp_path)(OBJECT)

    assert list(tmp_path.iterdir()) == []


def test_what_was_written_is_the_same_again(tmp_path: pathlib.Path) -> None:
    snapshot(tmp_path, update=True)(manifests.Manifests([OBJECT]))

    snapshot(tmp_path)(manifests.Manifests([OBJECT]))
    assert [path.name for path in tmp_path.iterdir()] == ["test_it-1-of-2.yaml"]


def test_a_difference_is_told_by_field(tmp_path: pathlib.Path) -> None:
    snapshot(tmp_path, update=True)([OBJECT])

    with pytest.raises(
        snapshots.SnapshotError, match=r"ConfigMap web: data\.on\n    - \"yes\"\n    \+ \"no\""
    ):
        snapshot(tmp_path)([{**OBJECT, "data": {**OBJECT["data"], "on": "no"}}])  # type: ignore[dict-item]


def test_a_test_has_as_many_snapshots_as_it_wants(tmp_path: pathlib.Path) -> None:
    writing = snapshot(tmp_path, update=True)
    writing("one")
    writing("two")
    writing("three", "last")

    again = snapshot(tmp_path)
    again("one")
    again("two")
    with pytest.raises(snapshots.SnapshotError):
        again("four", "last")
