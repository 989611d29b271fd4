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


@pytest.fixture
def checkout(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A repository whose module has changed since its only commit."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("there is no git")
    values = tmp_path / "deploy" / "modules" / "values.yaml"
    values.parent.mkdir(parents=True)
    values.write_text("before")
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for arguments in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "first")):
        subprocess.run([git, *arguments], cwd=tmp_path, check=True, env=ENVIRON)
    values.write_text("after")
    monkeypatch.chdir(tmp_path / "deploy")
    return tmp_path


async def test_a_commit_has_the_directories_as_they_were(checkout: pathlib.Path) -> None:
    async with plan_base.settings_of("HEAD", loaded(), ENVIRON) as before:
        (directory,) = before.modules_dirs
        assert (directory / "values.yaml").read_text() == "before"
    assert not directory.exists(), "nothing is left behind"
    assert (checkout / "deploy" / "modules" / "values.yaml").read_text() == "after"


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
