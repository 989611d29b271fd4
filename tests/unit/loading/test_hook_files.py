"""Finding hooks on disk."""

import os
import pathlib

import pytest

from addon_operator.helm.charts import plain_files
from addon_operator.loading import hook_files
from tests.support import rows


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


def judged(root: pathlib.Path, name: str, text: str = "#!/bin/sh\n") -> hook_files.HookFiles:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="latin-1")
    path.chmod(0o644)
    return hook_files.discover(root)


HOOK_TEXT = "[ $1 = --config ] && exit\n"
REFUSED = {
    "run.sh": f"#!/bin/sh\n{HOOK_TEXT}",
    "deep/run.py": "#!/usr/bin/env python3\n",
    "set-common-values.sh": "#!/bin/sh\n",
    "contest.py": "#!/usr/bin/env python3\n",
    "test-connection.sh": "#!/bin/sh\n",
    "with-mark.sh": "\xef\xbb\xbf#!/bin/sh\n",
    "compiled": "\x7fELF\x02\x01",
    "no-first-line.sh": HOOK_TEXT,
    "no-first-line": "echo\n",
    "no-first-line.py": "from addon_operator import hook\nhook.run(CONFIG, main)\n",
}


@rows.each(("name", "text"), REFUSED.items(), ids=REFUSED)
def test_a_program_that_is_not_executable_is_refused_with_what_mends_it(
    tmp_path: pathlib.Path, name: str, text: str
) -> None:
    files = judged(tmp_path, name, text)
    assert (files.executables, files.suspects) == ((), ())
    assert files.problem.startswith(f"hook {tmp_path / name} ")
    assert f"is not executable; run 'chmod +x {tmp_path / name}'" in files.problem


def test_a_program_that_may_be_a_library_can_be_put_into_its_place(tmp_path: pathlib.Path) -> None:
    assert judged(tmp_path, "run.sh").problem.endswith("put a library into lib/, next to the hooks")
    assert "lib/" not in judged(tmp_path, "run.sh", REFUSED["run.sh"]).problem


@rows.each(
    "name",
    ["README", "README.de", "Makefile", "Dockerfile.dev", "requirements.txt", "pyproject.toml", "a.yml",
     "a.tpl", "LICENSE", "a.sh.bak", "a.sh~", "go.mod", "_helpers.sh", "__init__.py", "package/__init__.py",
     "common.sh", "10-common.sh", "k8s_utils.py", "shell_lib.sh", "lib-bash.sh", "lib.py", "functions",
     "libs/a.sh", "tests/run.sh", "test_a.py", "a_test.sh", "conftest.py", "node_modules/x/cli.js",
     "plugin.so"],
)  # fmt: skip
def test_a_name_can_say_that_a_file_is_data_or_a_library(tmp_path: pathlib.Path, name: str) -> None:
    assert judged(tmp_path, name) == hook_files.HookFiles()


@rows.each("name", ["names.py", "deep/names.sh", "names.js"])
def test_what_hooks_include_needs_no_first_line_and_no_mode(tmp_path: pathlib.Path, name: str) -> None:
    assert judged(tmp_path, name, "def greet(): pass\n") == hook_files.HookFiles()


def test_what_may_be_a_hook_all_the_same_is_a_warning(tmp_path: pathlib.Path) -> None:
    (named,) = judged(tmp_path, "set-common.sh", REFUSED["run.sh"]).warnings
    assert "its name is one of a library" in named
    assert named.endswith(f"run 'chmod +x {tmp_path / 'set-common.sh'}'")
    strange = judged(tmp_path, "what.ever", "text\n").warnings[1]
    assert "it is not a hook; put a library into lib/" in strange


@pytest.mark.parametrize("mode", [0o755, 0o644], ids=["executable", "not executable"])
def test_a_go_hook_is_reported_as_such(tmp_path: pathlib.Path, mode: int) -> None:
    make(tmp_path, "deep/a.go", mode=mode)
    files = hook_files.discover(tmp_path)
    assert (files.executables, files.go_hooks) == ((), ("deep/a.go",))
    assert "compiled into the Go operator: it never runs here" in files.warnings[0]


def test_go_sources_beside_their_program_are_its_own_and_hooks_of_the_go_operator_are_still_told(
    tmp_path: pathlib.Path,
) -> None:
    make(tmp_path, "main.go", "deep/old.go", mode=0o644)
    (tmp_path / "main.go").write_text('import "github.com/deckhouse/module-sdk/pkg/app"\n')
    (tmp_path / "deep/old.go").write_text('import "github.com/flant/addon-operator/sdk"\n')
    assert hook_files.discover(tmp_path).go_hooks == ("deep/old.go", "main.go"), "there is no program"
    make(tmp_path, "batch")
    (tmp_path / "batch").write_text("\x7fELF\x02\x01")
    files = hook_files.discover(tmp_path)
    assert [file.name for file in files.executables] == ["batch"]
    assert files.go_hooks == ("deep/old.go",)


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


def test_a_link_to_itself_and_one_to_nowhere_are_refused_unless_they_are_data(tmp_path: pathlib.Path) -> None:
    (tmp_path / "self").symlink_to(tmp_path / "self")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "README").symlink_to(tmp_path / "gone")
    files = hook_files.discover(tmp_path)
    assert files.executables == ()
    assert files.problem.count("cannot be read: ") == 2
    assert f"hook {tmp_path}/nowhere cannot be read: No such file" in files.problem
    assert files.warnings == (f"{tmp_path}/README is ignored: No such file or directory",)


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


@rows.each(
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


def test_links_that_double_with_each_level_are_refused(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_files, "MAX_LINKED", 1000)
    for level in range(24):
        (tmp_path / str(level)).mkdir()
        for name in "ab":
            (tmp_path / str(level) / name).symlink_to(tmp_path / str(level + 1))
    with pytest.raises(hook_files.HookFilesError, match="more than 1000 files lie behind links; put copies"):
        hook_files.discover(tmp_path)


def test_a_link_that_leads_to_all_programs_of_a_machine_starts_none_of_them(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_files, "MAX_HOOKS", 20)
    make(tmp_path / "bin", *(f"program-{number:02}" for number in range(21)))
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "bin").symlink_to(tmp_path / "bin")
    with pytest.raises(
        hook_files.HookFilesError, match=r"has 21 executable files, .*does a link lead too far"
    ):
        hook_files.discover(tmp_path / "hooks")


def test_directories_within_each_other_without_end_are_an_error_in_one_sentence(
    tmp_path: pathlib.Path,
) -> None:
    make(tmp_path, "/".join(["d"] * hook_files.MAX_DEPTH) + "/fine.sh")
    assert len(found(tmp_path)) == 1
    make(tmp_path, "/".join(["d"] * 500) + "/too-deep.sh")
    with pytest.raises(
        hook_files.HookFilesError, match="more than 100 directories within each other"
    ) as error:
        hook_files.discover(tmp_path)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("where", ["", "more/"], ids=["the file", "below a directory"])
def test_a_hook_whose_name_is_not_text_is_refused(tmp_path: pathlib.Path, where: str) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9" if where else b"hook\xff.sh")
    path = path / "hook.sh" if where else path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    found = hook_files.discover(tmp_path)
    assert found.executables == ()
    assert "not text in UTF-8; rename it" in found.problem


def test_of_many_refused_files_the_first_are_named(tmp_path: pathlib.Path) -> None:
    make(tmp_path, *(f"{number:03}.sh" for number in range(200)), mode=0o644)
    problem = hook_files.discover(tmp_path).problem
    assert problem.count("chmod +x") == 10
    assert problem.endswith("; and 190 more")
