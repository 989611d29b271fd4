"""The files through which one run of a hook exchanges what it is told and what it gives back."""

import pathlib
import subprocess

import pytest

from addon_operator.engine.hooks import hook_directory
from tests.support import rows

VARIABLE = "BINDING_CONTEXT_PATH"
_MIB = 1 << 20


def test_contexts_for_an_answer_have_a_bound_that_says_what_to_do(tmp_path: pathlib.Path) -> None:
    with hook_directory.HookDirectory(tmp_path, "guard.sh") as files:
        with pytest.raises(hook_directory.HookFileError) as raised:
            files.write_bounded(VARIABLE, (b" " * _MIB for _ in range(1 << 20)))
        (written,) = tmp_path.glob("guard.sh-*/*")
        assert written.stat().st_size <= hook_directory.MAX_CONTEXT_BYTES
    assert str(raised.value) == (
        "its binding context has more than 64 MiB, and the API server waits for it; let snapshots select "
        "fewer objects, or keep less of each: a jqFilter, and keepFullObjectsInMemory: false"
    )


def test_contexts_up_to_the_bound_are_written(tmp_path: pathlib.Path) -> None:
    with hook_directory.HookDirectory(tmp_path, "guard.sh") as files:
        files.write_bounded(VARIABLE, (b" " * _MIB for _ in range(64)))
        path = pathlib.Path(files.environment()[VARIABLE])
        assert path.stat().st_size == hook_directory.MAX_CONTEXT_BYTES


def test_the_directory_of_directories_is_made_when_it_is_not_there(tmp_path: pathlib.Path) -> None:
    below = tmp_path / "a" / "b"
    with hook_directory.HookDirectory(below, "a hook/with signs") as files:
        files.write(VARIABLE)
        (made,) = below.iterdir()
        assert made.name.startswith("a-hook-with-signs-")
        assert list(files.environment().values()) == [str(made / "binding_context.json")]
    assert list(below.iterdir()) == []


LEFT = {
    "nothing": "true",
    "a file": "touch more",
    "a directory with a file": "mkdir more; touch more/x",
    "no file where one was": "rm binding_context.json",
    "a directory where a file was": "rm binding_context.json; mkdir binding_context.json",
    "a link to a file": "ln -s ../precious link",
    "a link to a directory": "ln -s .. link",
    "no directory": "rm -r $PWD",
}


@rows.each("commands", LEFT.values(), ids=LEFT)
def test_whatever_a_hook_leaves_there_is_removed(tmp_path: pathlib.Path, commands: str) -> None:
    (tmp_path / "precious").write_text("x")
    with hook_directory.HookDirectory(tmp_path, "guard.sh") as files:
        files.write(VARIABLE)
        directory = pathlib.Path(files.environment()[VARIABLE]).parent
        subprocess.run(["sh", "-ec", commands], cwd=directory, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_what_is_read_is_what_a_link_leads_to_even_if_the_link_is_short(tmp_path: pathlib.Path) -> None:
    (tmp_path / "elsewhere").write_text("written")
    with hook_directory.HookDirectory(tmp_path, "guard.sh") as files:
        files.write(VARIABLE)
        path = pathlib.Path(files.environment()[VARIABLE])
        path.unlink()
        path.symlink_to(tmp_path / "elsewhere")
        assert files.read_output(VARIABLE) == "written"


@rows.each("size", [1, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, 1 << 20])
def test_an_output_of_any_size_is_read_whole(tmp_path: pathlib.Path, size: int) -> None:
    with hook_directory.HookDirectory(tmp_path, "guard.sh") as files:
        files.write(VARIABLE)
        pathlib.Path(files.environment()[VARIABLE]).write_text("x" * size)
        assert files.read_output(VARIABLE) == "x" * size


def test_an_output_is_bounded_to_the_byte(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_directory, "MAX_OUTPUT_BYTES", 1 << 20)
    with hook_directory.HookDirectory(tmp_path, "guard.sh") as files:
        files.write(VARIABLE)
        path = pathlib.Path(files.environment()[VARIABLE])
        path.write_text("x" * (1 << 20))
        assert len(files.read_output(VARIABLE)) == 1 << 20
        path.write_text("x" * ((1 << 20) + 1))
        with pytest.raises(hook_directory.HookFileError, match="more than 1 MiB"):
            files.read_output(VARIABLE)
