"""What is written down about a cluster."""

import json
import pathlib

import pytest

from addon_operator.devcluster import state
from addon_operator.process import daemons
from tests.support import rows

COMPONENT = state.StartedProgram(daemons.ProcessIdentity(7, 4711, "boot"), ("/bin/etcd", "--name=x"))


def test_a_state_is_read_as_it_was_written(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "state.json"
    written = state.ClusterState("v1.36.3", "ready", 1, {"etcd": COMPONENT}, ("/home/me/kubeconfig",))
    state.save(path, written)
    assert state.load(path) == written
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_missing_state_is_none(tmp_path: pathlib.Path) -> None:
    assert state.load(tmp_path / "state.json") is None


@rows.each(
    "change",
    [
        pytest.param({"format": 3}, id="from a later version"),
        pytest.param({"port": None}, id="without a port"),
        pytest.param({"components": {"etcd": {"process": {"pid": 1}}}}, id="without a start time"),
        pytest.param({"components": []}, id="odd"),
    ],
)
def test_a_state_that_is_not_understood_is_none(tmp_path: pathlib.Path, change: dict[str, object]) -> None:
    path = tmp_path / "state.json"
    state.save(path, state.ClusterState("v1.36.3", "ready", 1))
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert state.load(path) is None


@rows.each("text", ["", "{", "[]", "null", '{"format": 1}'])
def test_a_damaged_state_is_none(tmp_path: pathlib.Path, text: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    assert state.load(path) is None
