"""The locks of the image: a part of the lock of the development environment."""

import pathlib
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).parents[3]


def names(file: str) -> set[str]:
    lines = (ROOT / "deploy" / "docker" / file).read_text("utf-8").splitlines()
    return {line.split("==")[0] for line in lines if "==" in line}


def test_the_locks_are_in_step_with_that_of_the_development_environment() -> None:
    script = ROOT / "scripts" / "image_lock.py"
    found = subprocess.run(
        [sys.executable, str(script), "--check"], check=False, capture_output=True, text=True
    )
    assert (found.returncode, found.stdout) == (0, "")


def test_each_dependency_of_the_project_is_in_the_image() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = {text.split(">")[0].split("=")[0].lower() for text in project["project"]["dependencies"]}
    assert wanted <= names("requirements.lock")


def test_no_tool_of_the_development_environment_is_in_the_image() -> None:
    assert not {"pytest", "mypy", "ruff", "hypothesis", "hatchling", "pre-commit"} & names(
        "requirements.lock"
    )


def test_the_build_gets_what_builds_the_wheel_and_nothing_else() -> None:
    assert "hatchling" in names("build.lock")
    assert not names("build.lock") & {"kopf", "aiohttp", "pytest"}
