"""Files that somebody else wrote."""

import os
import pathlib

import pytest

from addon_operator.helm.charts import plain_files


def test_lines_end_as_on_any_system(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a: 1\r\nb: 2\rc: 3\n")
    assert plain_files.read_text(path) == "a: 1\nb: 2\nc: 3\n"


def test_a_file_may_have_just_so_many_bytes(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345678")
    assert plain_files.read_bytes(path, 8) == b"12345678"
    with pytest.raises(OSError, match="more than"):
        plain_files.read_bytes(path, 7)


def test_what_is_not_a_file_is_refused_at_once(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "device"):
        with pytest.raises(OSError, match="not a regular file") as caught:
            plain_files.read_bytes(tmp_path / name)
        assert caught.value.filename == str(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        plain_files.read_bytes(tmp_path)
