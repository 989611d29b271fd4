"""Locks between processes."""

import os
import pathlib
import shutil
import threading
from concurrent import futures

import pytest

from addon_operator.devcluster import locks


class Contender:
    """Wants a lock in a thread of its own; each thread opens the file anew, as another process would."""

    def __init__(self, path: pathlib.Path) -> None:
        self.waited_for: list[int | None] = []
        self.waits = threading.Event()
        self.done = threading.Event()
        self._path = path
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join(60)

    def _on_wait(self, pid: int | None) -> None:
        self.waited_for.append(pid)
        self.waits.set()

    def _run(self) -> None:
        lock = locks.directory if self._path.is_dir() else locks.exclusive
        with lock(self._path, self._on_wait):
            self.done.set()


def never(_: int | None) -> None:
    pytest.fail("nobody holds the lock")


def test_a_free_lock_is_not_waited_for(tmp_path: pathlib.Path) -> None:
    for _ in range(2):
        with locks.exclusive(tmp_path / "lock", never):
            pass


def test_a_waiting_process_says_for_whom_and_continues_afterwards(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "lock"
    with locks.exclusive(path, never):
        contender = Contender(path)
        contender.start()
        assert contender.waits.wait(60)
        assert not contender.done.is_set()
    contender.join()
    assert contender.done.is_set()
    assert contender.waited_for == [os.getpid()]


def test_a_lock_is_free_again_after_an_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="x"), locks.exclusive(tmp_path / "lock", never):
        raise ValueError("x")
    with locks.exclusive(tmp_path / "lock", never):
        pass


def test_a_shared_lock_does_not_keep_out_others_that_share_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "lock"
    with locks.shared(path), locks.shared(path), locks.alone(path) as is_alone:
        assert not is_alone
    with locks.alone(tmp_path / "lock") as is_alone:
        assert is_alone


def test_a_directory_is_made_and_held(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "cluster"
    with locks.directory(path, never):
        assert path.stat().st_mode & 0o777 == 0o700
        contender = Contender(path)
        contender.start()
        assert contender.waits.wait(60)
        assert not contender.done.is_set()
    contender.join()
    assert contender.done.is_set()


def test_who_waited_for_a_directory_that_was_removed_gets_a_new_one(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "cluster"
    with locks.directory(path, never):
        (path / "old").touch()
        contender = Contender(path)
        contender.start()
        assert contender.waits.wait(60)
        shutil.rmtree(path)
    contender.join()
    assert contender.done.is_set()
    assert list(path.iterdir()) == []


def test_many_who_remove_a_directory_do_not_trip_each_other(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "cluster"

    def remove(_: int) -> None:
        for _ in range(100):
            with locks.directory(path, lambda _: None):
                path.rmdir()

    with futures.ThreadPoolExecutor(4) as threads:
        list(threads.map(remove, range(4)))
    assert not path.exists()
