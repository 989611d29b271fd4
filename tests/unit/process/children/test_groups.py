"""Who descends from this process, by a listing as the kernel writes it."""

import os
import pathlib

import pytest

from addon_operator.process.children import groups

OWN = os.getpid()
LAUNCHER, HOOK, CURL, ORPHAN, SHELL, FREE = (4_194_401 + number for number in range(6))
"""Beyond any real number."""
FAMILY = {
    LAUNCHER: (OWN, LAUNCHER),
    HOOK: (LAUNCHER, HOOK),
    CURL: (HOOK, HOOK),
    ORPHAN: (1, HOOK),
    SHELL: (0, SHELL),
    FREE: (1, FREE),
}
"""Process → parent and session."""


@pytest.fixture
def proc(tmp_path: pathlib.Path) -> pathlib.Path:
    for pid, (parent, session) in FAMILY.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a b) c) S {parent} {pid} {session} 0 -1 0")
    return tmp_path


@pytest.mark.parametrize(
    ("pid", "is_one"),
    [
        pytest.param(LAUNCHER, True, id="child"),
        pytest.param(HOOK, True, id="grandchild"),
        pytest.param(CURL, True, id="what a hook started"),
        pytest.param(ORPHAN, True, id="what a hook left behind in its session"),
        pytest.param(4_194_999, True, id="ended meanwhile"),
        pytest.param(SHELL, False, id="started by kubectl exec"),
        pytest.param(OWN, False, id="this process"),
        pytest.param(0, False, id="not to be seen from here"),
        pytest.param(FREE, False, id="has left session and parent: not recognised"),
    ],
)
def test_descendants_are_known_by_parents_and_sessions(pid: int, is_one: bool, proc: pathlib.Path) -> None:
    known = groups.Lineage(proc)
    known.started(HOOK)
    assert known.includes(pid) is is_one
