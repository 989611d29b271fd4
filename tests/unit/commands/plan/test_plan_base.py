"""The files before a change are those of a directory or of a commit."""

import os
import pathlib
import shutil
import subprocess

import pytest

from addon_operator.commands.plan import plan_base
from addon_operator.settings import settings as settings_module
from addon_operator.settings import settings_loading

ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}


def loaded() -> settings_module.Settings:
    return settings_loading.load({"namespace": "addons"}, {})


def commit(repository: pathlib.Path) -> None:
    """Commit all files of a directory to the repository that it is, or becomes."""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always")
    for arguments in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "some")):
        subprocess.run(["git", *arguments], cwd=repository, check=True, env=ENVIRON)


@pytest.fixture
def checkout(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A repository whose module has changed since its only commit."""
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    values = tmp_path / "deploy" / "modules" / "values.yaml"
    values.parent.mkdir(parents=True)
    values.write_text("before")
    commit(tmp_path)
    values.write_text("after")
    monkeypatch.chdir(tmp_path / "deploy")
    return tmp_path


async def test_a_commit_has_the_directories_as_they_were(checkout: pathlib.Path) -> None:
    async with plan_base.settings_of("HEAD", loaded(), ENVIRON) as before:
        (directory,) = before.modules_dirs
        assert (directory / "values.yaml").read_text() == "before"
    assert not directory.exists(), "nothing is left behind"
    assert (checkout / "deploy" / "modules" / "values.yaml").read_text() == "after"


async def test_a_commit_has_all_that_a_checkout_has_and_leaves_the_repository_alone(
    checkout: pathlib.Path,
) -> None:
    modules = checkout / "deploy" / "modules"
    (checkout / ".gitattributes").write_text("values.yaml export-ignore\nlf.txt text eol=crlf\n")
    (modules / "lf.txt").write_bytes(b"one\r\n")
    (modules / "link.yaml").symlink_to("values.yaml")
    inner = modules / "010-inner"
    inner.mkdir()
    (inner / "values.yaml").write_text("inner")
    commit(inner)
    (checkout / ".gitmodules").write_text(
        '[submodule "inner"]\npath = deploy/modules/010-inner\nurl = ./inner\n'
        '[submodule "outer"]\npath = ../outer\nurl = ./outer\n'
    )
    (modules / "values.yaml").write_text("before")
    commit(checkout)
    (modules / "values.yaml").write_text("after")
    (inner / "values.yaml").write_text("inner, edited")
    index = (checkout / ".git" / "index").read_bytes()
    async with plan_base.settings_of("HEAD", loaded(), ENVIRON) as before:
        (directory,) = before.modules_dirs
        found = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
        assert found == {"values.yaml": b"before", "link.yaml": b"before", "lf.txt": b"one\r\n"}
        assert (directory / "010-inner" / "values.yaml").read_text() == "inner"
    assert (checkout / ".git" / "index").read_bytes() == index
    assert not (checkout / ".git" / "worktrees").exists()


@pytest.mark.parametrize("name", ["no-such-branch", "--output=x"])
@pytest.mark.usefixtures("checkout")
async def test_what_is_neither_a_directory_nor_a_commit_is_one_sentence(name: str) -> None:
    with pytest.raises(plan_base.BaseError, match="is neither a directory nor a commit"):
        async with plan_base.settings_of(name, loaded(), ENVIRON):
            pass


async def test_a_base_without_modules_is_one_sentence(checkout: pathlib.Path) -> None:
    (checkout / "deploy" / "other").mkdir()
    with pytest.raises(plan_base.BaseError, match="the base has no modules"):
        async with plan_base.settings_of("other", loaded(), ENVIRON):
            pass


async def test_a_directory_called_like_a_commit_is_not_taken_for_it(checkout: pathlib.Path) -> None:
    shutil.copytree(checkout / "deploy" / "modules", checkout / "deploy" / "HEAD" / "modules")
    with pytest.raises(plan_base.BaseError, match=r"what git calls a commit; write \./HEAD"):
        async with plan_base.settings_of("HEAD", loaded(), ENVIRON):
            pass
    async with plan_base.settings_of("./HEAD", loaded(), ENVIRON) as before:
        assert before.modules_dirs == (checkout / "deploy" / "./HEAD" / "modules",)
