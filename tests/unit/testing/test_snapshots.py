"""Snapshots compare, are written only when that is asked for, and fail when they are missing."""

import pathlib
import shutil

import pytest
from click import testing

from addon_operator.cli import main
from addon_operator.testing import snapshots
from addon_operator.testing.modules import manifests

pytestmark = pytest.mark.usefixtures("nothing_to_collect")
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


def test_what_was_written_is_said_and_what_is_as_before_is_counted(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    record = snapshots.Record()
    for made in ("one", "two"):
        record = snapshots.Record()
        again = snapshots.Snapshot(tmp_path / "snapshots/web", "test_it", update=True, record=record)
        again(made)
        again("same", "last")
    lines = ["wrote 1 snapshot: snapshots/web/test_it.yaml", "1 snapshot is as before"]
    assert list(record.lines()) == lines
    assert list(snapshots.Record().lines()) == []


TEST = """\
import pytest

def test_one(snapshot):
    snapshot("one")

def test_two(snapshot):
    {second}
    snapshot("two")
"""


def run(place: pathlib.Path, second: str, *arguments: str) -> str:
    (place / "tests/test_web.py").write_text(TEST.format(second=second))
    return testing.CliRunner().invoke(main.cli, ["module", "test", str(place), *arguments]).stdout


def test_a_snapshot_that_no_test_uses_is_named_as_soon_as_that_is_known(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "010-web/tests/snapshots/test_gone").mkdir(parents=True)
    (tmp_path / "010-web/module.yaml").write_text("description: x\n")
    told = run(tmp_path / "010-web", "pass", "--snapshot-update")
    written = [f"010-web/tests/snapshots/test_web/test_{number}.yaml" for number in ("one", "two")]
    assert f"wrote 2 snapshots: {', '.join(written)}" in told
    assert "010-web/tests/snapshots/test_gone is used by no test: remove it" in told
    (tmp_path / "010-web/tests/snapshots/test_gone").rmdir()
    (tmp_path / "010-web/tests/snapshots/test_web/test_three.yaml").write_text("three\n")
    # This process would not import a changed file of the same place.
    for place in ("020-all", "030-skipped"):
        shutil.copytree("010-web", place)
    told = run(tmp_path / "020-all", "pass")
    assert "020-all/tests/snapshots/test_web/test_three.yaml is used by no test: remove it" in told
    assert told.count("is used by no test") == 1
    told = run(tmp_path / "030-skipped", "pytest.skip()")
    assert "1 skipped" in told
    assert "used by no test" not in told, "it may have used it"


@pytest.mark.parametrize("is_complete", [True, False])
def test_snapshots_of_tests_that_did_not_all_pass_may_be_in_use(
    is_complete: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "tests/web.yaml"
    snapshots.directory_of(file).mkdir(parents=True)
    (snapshots.directory_of(file) / "a.yaml").touch()
    file.touch()
    told = list(snapshots.Record(complete={file: is_complete}).lines())
    assert told == (["tests/snapshots/web/a.yaml is used by no test: remove it"] if is_complete else [])
