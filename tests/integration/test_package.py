"""The wheel, built as the Dockerfile builds it, from nothing but what the Dockerfile copies."""

import os
import pathlib
import shutil
import site
import subprocess
import sys
import venv

import pytest

from addon_operator.app import hook_environment
from tests.unit.deploy import dockerfile

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PACKAGE_STAGE = [
    source for source in dockerfile.copied(dockerfile.read()) if not source.startswith("deploy/docker/")
]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """An interpreter with the wheel; its dependencies are those of this environment, its code is not."""
    root = tmp_path_factory.mktemp("package")
    context = root / "context"
    for source in PACKAGE_STAGE:
        copy(dockerfile.ROOT / source, context / source)
    pip(sys.executable, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(root), str(context))
    (wheel,) = root.glob("*.whl")
    venv.create(root / "venv", with_pip=False, symlinks=True)
    (packages,) = (root / "venv" / "lib").glob("python*/site-packages")
    pip(sys.executable, "install", "--no-deps", "--target", str(packages), str(wheel))
    # An added path, unlike a site directory, brings no editable installations along.
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return root / "venv" / "bin" / "python"


def copy(source: pathlib.Path, target: pathlib.Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


def pip(python: str, *arguments: str) -> None:
    argv = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(argv, check=True, capture_output=True, text=True)


def run(python: pathlib.Path, *arguments: str) -> str:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(python), *arguments], check=False, capture_output=True, text=True, env=env, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_installed_operator_is_not_that_of_the_checkout(python: pathlib.Path) -> None:
    where = run(python, "-c", "import addon_operator; print(addon_operator.__file__)")
    assert str(python.parents[1]) in where


def test_the_installed_operator_tells_its_version(python: pathlib.Path) -> None:
    assert "0.1.0" in run(python, "-m", "addon_operator", "version")


def test_the_installed_operator_knows_its_settings(python: pathlib.Path) -> None:
    assert "ADDON_OPERATOR_NAMESPACE" in run(
        python, "-m", "addon_operator", "settings", "--namespace", "addons"
    )


def test_the_installed_operator_has_its_definitions_and_pins(python: pathlib.Path) -> None:
    look = (
        "from addon_operator.documents import own_manifests as own; "
        "from addon_operator.devcluster import locations; "
        "print(locations.locate({}).pins.joinpath('helm4', 'go.sum').is_file()); "
        "print(own.path_of(own.MODULES).parent.name, own.path_of(own.PODPRESETS).is_file())"
    )
    assert run(python, "-c", look).split() == ["True", "crds", "True"]


def test_the_installed_operator_has_its_library_for_hooks_in_bash(python: pathlib.Path) -> None:
    look = (
        "from addon_operator.app import hook_environment; "
        "found = hook_environment.SHELL_LIBRARY; "
        "print(found.is_file(), *sorted(path.name for path in found.parent.rglob('*.sh')))"
    )
    ours = sorted(path.name for path in hook_environment.SHELL_LIBRARY.parent.rglob("*.sh"))
    assert len(ours) > 1
    assert run(python, "-c", look).split() == ["True", *ours]


def test_every_module_of_the_installed_operator_can_be_imported(python: pathlib.Path) -> None:
    look = (
        "import importlib, pkgutil, addon_operator; "
        "names = [m.name for m in pkgutil.walk_packages(addon_operator.__path__, 'addon_operator.')]; "
        "passed_over = ('__main__', '_main', 'pytest_plugin'); "
        "[importlib.import_module(n) for n in names if not n.endswith(passed_over)]; "
        "print(len(names))"
    )
    assert int(run(python, "-c", look)) > 200
