"""Who may have the debug socket."""

import contextlib
import os
import pathlib
import socket
import stat

import pytest

from addon_operator.debug import debug_socket


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "run" / "debug.socket"


def stale(path: pathlib.Path) -> None:
    """What an operator that was killed leaves behind."""
    path.parent.mkdir()
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as gone:
        gone.bind(str(path))


def refused(path: pathlib.Path) -> str:
    with pytest.raises(debug_socket.DebugSocketError) as error, debug_socket.listening(path):
        pytest.fail("it must not listen")
    text = str(error.value)
    assert "\n" not in text
    assert "DEBUG_UNIX_SOCKET" in text
    return text


def test_the_socket_is_its_owners_alone_and_its_directory_is_made(path: pathlib.Path) -> None:
    with debug_socket.listening(path):
        found = path.lstat()
        assert stat.S_ISSOCK(found.st_mode)
        assert stat.S_IMODE(found.st_mode) == 0o600


def test_the_socket_goes_with_the_operator(path: pathlib.Path) -> None:
    with debug_socket.listening(path):
        pass
    assert not path.exists()


def test_a_stale_socket_is_replaced(path: pathlib.Path) -> None:
    stale(path)
    with debug_socket.listening(path), contextlib.closing(socket.socket(socket.AF_UNIX)) as client:
        client.connect(str(path))


def test_a_living_one_of_another_operator_is_left_alone(path: pathlib.Path) -> None:
    with debug_socket.listening(path):
        assert refused(path).startswith(f"another operator answers on the debug socket {path}: ")
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as client:
            client.connect(str(path))


def test_a_file_is_left_alone(path: pathlib.Path) -> None:
    path.parent.mkdir()
    path.write_text("precious")
    assert "exists and is not a socket" in refused(path)
    assert path.read_text() == "precious"


def test_a_path_that_is_too_long_is_reported_with_both_lengths(tmp_path: pathlib.Path) -> None:
    text = refused(tmp_path / ("x" * 120))
    assert "a socket's may have 107" in text


def test_a_directory_that_cannot_be_made_is_reported(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be made: file exists" in refused(tmp_path / "file" / "debug.socket")


def test_a_socket_that_somebody_put_in_its_place_stays(path: pathlib.Path) -> None:
    with debug_socket.listening(path):
        path.unlink()
        os.mkfifo(path)
    assert path.exists()


def test_a_relative_path_means_the_directory_of_the_start(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with debug_socket.listening(pathlib.Path("debug.socket")):
        monkeypatch.chdir("/")
        assert (tmp_path / "debug.socket").exists()
    assert not (tmp_path / "debug.socket").exists()
