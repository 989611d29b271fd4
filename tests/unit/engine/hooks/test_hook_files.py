"""Finding hooks on disk."""

import os
import pathlib

import pytest

from addon_operator.engine.hooks import hook_files


def make(root: pathlib.Path, *names: str, mode: int = 0o755) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(mode)


def found(root: pathlib.Path) -> list[str]:
    return [file.name for file in hook_files.discover(root).executables]


def test_executables_are_found_at_any_depth_in_path_order(tmp_path: pathlib.Path) -> None:
    make(tmp_path, "b.sh", "a/z.py", "a/b/c", "010-first.sh")
    assert found(tmp_path) == ["010-first.sh", "a/b/c", "a/z.py", "b.sh"]


def test_a_hook_is_known_by_its_path_below_the_root(tmp_path: pathlib.Path) -> None:
    make(tmp_path, "deep/hook.sh")
    (file,) = hook_files.discover(tmp_path).executables
    assert (file.path, file.name) == (tmp_path / "deep" / "hook.sh", "deep/hook.sh")


NO_HOOKS = [
    "lib/functions.sh",
    "a/lib/functions.sh",
    ".hidden.sh",
    ".git/hooks/pre-commit",
    "venv/bin/python3",
    "__pycache__/x.pyc",
    "values.yaml",
    "data.json",
    "README.md",
    "notes.txt",
]


@pytest.mark.parametrize("mode", [0o755, 0o644], ids=["executable", "not executable"])
def test_what_is_not_a_hook_is_skipped_without_a_word(tmp_path: pathlib.Path, mode: int) -> None:
    make(tmp_path, *NO_HOOKS, mode=mode)
    assert hook_files.discover(tmp_path) == hook_files.HookFiles()


def test_a_script_that_is_not_executable_is_a_warning_with_the_remedy(tmp_path: pathlib.Path) -> None:
    make(tmp_path, "hook.sh", mode=0o644)
    (tmp_path / "hook.sh").write_text("#!/bin/sh\n[ $1 = --config ]\n")
    files = hook_files.discover(tmp_path)
    assert files.executables == ()
    (warning,) = files.warnings
    assert warning.endswith(f"is not executable; run 'chmod +x {tmp_path / 'hook.sh'}'")


def test_a_library_is_not_to_be_made_executable_but_put_into_its_place(tmp_path: pathlib.Path) -> None:
    (tmp_path / "common.sh").write_text("greet() { echo hello; }\n")
    (tmp_path / "more.sh").write_text("#!/bin/bash\ngreet() { echo hello; }\n")
    common, more = hook_files.discover(tmp_path).warnings
    assert "it is not a hook; put a library into lib/" in common
    assert "chmod" not in common
    assert "put a library into lib/" in more
    assert more.endswith("only if it answers --config as a hook")


@pytest.mark.parametrize("mode", [0o755, 0o644], ids=["executable", "not executable"])
def test_a_go_hook_is_reported_as_such(tmp_path: pathlib.Path, mode: int) -> None:
    make(tmp_path, "deep/a.go", mode=mode)
    files = hook_files.discover(tmp_path)
    assert (files.executables, files.go_hooks) == ((), ("deep/a.go",))
    assert "compiled into the Go operator: it never runs here" in files.warnings[0]


def test_links_to_files_and_directories_are_followed(tmp_path: pathlib.Path) -> None:
    make(tmp_path, "shared/real.sh")
    root = tmp_path / "hooks"
    root.mkdir()
    (root / "link.sh").symlink_to(tmp_path / "shared" / "real.sh")
    (root / "one").symlink_to(tmp_path / "shared")
    (root / "two").symlink_to(tmp_path / "shared")
    assert found(root) == ["link.sh", "one/real.sh", "two/real.sh"]


def test_circles_of_links_come_to_an_end(tmp_path: pathlib.Path) -> None:
    make(tmp_path, "a/hook.sh")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "here").symlink_to(tmp_path / "a")
    assert found(tmp_path) == ["a/hook.sh"]


def test_a_link_to_itself_and_one_to_nowhere_are_warnings(tmp_path: pathlib.Path) -> None:
    (tmp_path / "self").symlink_to(tmp_path / "self")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    files = hook_files.discover(tmp_path)
    assert files.executables == ()
    assert [warning.partition(" is ignored")[0] for warning in files.warnings] == [
        f"{tmp_path}/nowhere",
        f"{tmp_path}/self",
    ]


def test_a_pipe_is_a_warning(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o777)
    assert "not a regular file" in hook_files.discover(tmp_path).warnings[0]


def test_a_module_without_hooks_has_none(tmp_path: pathlib.Path) -> None:
    assert hook_files.discover(tmp_path / "hooks") == hook_files.HookFiles()


def test_a_file_in_place_of_the_directory_is_an_error_that_names_it(tmp_path: pathlib.Path) -> None:
    (tmp_path / "hooks").write_text("")
    with pytest.raises(hook_files.HookFilesError, match=f"{tmp_path}/hooks: Not a directory"):
        hook_files.discover(tmp_path / "hooks")


def test_global_hooks_are_in_the_directory_hooks_if_there_is_one(tmp_path: pathlib.Path) -> None:
    assert hook_files.global_hooks_root(tmp_path) == tmp_path
    (tmp_path / "hooks").mkdir()
    assert hook_files.global_hooks_root(tmp_path) == tmp_path / "hooks"


def test_a_hook_is_started_as_it_is(tmp_path: pathlib.Path) -> None:
    make(tmp_path, "hooks/hook.sh", "hooks/hook.py", "hooks/venv/bin/python")
    for name in ("hooks/hook.sh", "hooks/hook.py"):
        assert hook_files.command(tmp_path / name) == [tmp_path / name]


@pytest.mark.parametrize(
    ("path", "expected"),
    [("hooks/a.sh", "/x/y/hooks/a.sh"), ("../../hooks/a.sh", "/hooks/a.sh"), ("/hooks/a.sh", "/hooks/a.sh")],
    ids=["below", "beside", "absolute"],
)
def test_a_path_is_meant_from_the_directory_of_the_start(path: str, expected: str) -> None:
    assert hook_files.absolute(pathlib.Path(path), pathlib.Path("/x/y")) == pathlib.Path(expected)


def test_a_hook_in_python_is_started_by_the_virtual_environment_of_its_module(tmp_path: pathlib.Path) -> None:
    make(tmp_path, "hooks/hook.sh", "hooks/deep/hook.py", "hooks/venv/bin/python3", "other/hook.py")
    python, hook = tmp_path / "hooks" / "venv" / "bin" / "python3", tmp_path / "hooks" / "deep" / "hook.py"
    assert hook_files.command(hook) == [python, hook]
    assert hook_files.command(tmp_path / "hooks" / "hook.sh") == [tmp_path / "hooks" / "hook.sh"]
    assert hook_files.command(tmp_path / "other" / "hook.py") == [tmp_path / "other" / "hook.py"]
