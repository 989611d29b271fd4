"""Private directories of processes, and what is done with those of dead ones."""

import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from addon_operator.process import workspaces
from tests.support import rows

PROGRAM = """
import pathlib, sys
from addon_operator.process import workspaces
made = workspaces.Workspace(pathlib.Path(sys.argv[1]), "run-")
(made.path / "values").write_text("password")
print(made.path, flush=True)
sys.stdin.read()
"""


class Other:
    """Another process with a workspace."""

    def __init__(self, parent: pathlib.Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.path = pathlib.Path(self._process.stdout.readline().strip())

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()


@pytest.fixture
def other(tmp_path: pathlib.Path) -> Iterator[Other]:
    made = Other(tmp_path)
    yield made
    made.kill()


def test_the_workspace_of_a_killed_process_is_removed_and_that_of_a_live_one_is_not(
    tmp_path: pathlib.Path, other: Other
) -> None:
    own = workspaces.Workspace(tmp_path, "run-")
    assert workspaces.remove_dead(tmp_path, "run-") == []
    other.kill()
    assert workspaces.remove_dead(tmp_path, "run-") == [other.path]
    assert list(tmp_path.iterdir()) == [own.path]
    own.close()
    assert list(tmp_path.iterdir()) == []


def test_a_workspace_is_private(tmp_path: pathlib.Path) -> None:
    own = workspaces.Workspace(tmp_path, "run-")
    assert own.path.stat().st_mode & 0o777 == 0o700
    own.close()


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="nothing is in memory here")
def test_what_is_in_memory_is_known_before_it_is_there() -> None:
    assert workspaces.is_in_memory(pathlib.Path("/dev/shm/not/yet"))
    assert not workspaces.is_in_memory(pathlib.Path("/proc/self"))


def test_a_workspace_that_was_kept_stays(tmp_path: pathlib.Path) -> None:
    own = workspaces.Workspace(tmp_path, "run-")
    (own.path / "values").touch()
    own.close(keep=True)
    assert workspaces.remove_dead(tmp_path, "run-") == []
    assert [path.name for path in own.path.iterdir()] == ["values"]


def test_what_only_looks_like_a_workspace_stays(tmp_path: pathlib.Path) -> None:
    (tmp_path / "run-file").touch()
    (tmp_path / "run-without-lock").mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".lock").touch()
    (tmp_path / "run-link").symlink_to(elsewhere)
    assert workspaces.remove_dead(tmp_path, "run-") == []
    assert elsewhere.is_dir()


@rows.each(
    ("mode", "is_safe"),
    [(0o700, True), (0o755, True), (0o1777, True), (0o777, False), (0o707, False)],
    ids=["private", "readable", "sticky", "for everybody", "for others"],
)
def test_a_directory_where_everybody_may_replace_files_is_refused(
    tmp_path: pathlib.Path, mode: int, is_safe: bool
) -> None:
    tmp_path.chmod(mode)
    if is_safe:
        workspaces.check_parent(tmp_path)
        return
    with pytest.raises(workspaces.UnsafeDirectoryError, match="without a sticky bit"):
        workspaces.check_parent(tmp_path)


def test_a_directory_of_another_user_is_refused(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    own = os.geteuid()
    if own == 0:
        os.chown(tmp_path, 4711, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with pytest.raises(workspaces.UnsafeDirectoryError, match="belongs to another user"):
        workspaces.check_parent(tmp_path)


@pytest.mark.slow
def test_a_tree_is_removed_however_deep_it_is_and_whatever_rights_its_directories_have(
    tmp_path: pathlib.Path,
) -> None:
    root, outside, before = tmp_path / "root", tmp_path / "outside", pathlib.Path.cwd()
    outside.mkdir()
    (outside / "kept").touch()
    # Paths in the first one are longer than the kernel takes, and it is deeper than Python calls.
    for place, depth in (("a", 2200), ("b", 3)):
        directory = root / place
        directory.mkdir(parents=True)
        os.chdir(directory)
        for number in range(depth):
            pathlib.Path("d").mkdir()
            pathlib.Path(f"file{number}").touch()
            os.chdir("d")
        pathlib.Path("link").symlink_to(outside)
    os.chdir(before)
    (root / "a" / "d").chmod(0)
    open_files = len([*pathlib.Path("/proc/self/fd").iterdir()])
    workspaces.remove_tree(root)
    assert not root.exists()
    assert (outside / "kept").exists()
    assert len([*pathlib.Path("/proc/self/fd").iterdir()]) == open_files


def test_a_link_in_the_place_of_a_tree_is_removed_and_not_what_it_leads_to(tmp_path: pathlib.Path) -> None:
    (tmp_path / "kept").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "kept")
    workspaces.remove_tree(link)
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]
    workspaces.remove_tree(tmp_path / "nothing")
