"""Which packages of others are imported, and that ``pyproject.toml`` declares each of them."""

import pathlib
import re
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata

ROOT = pathlib.Path(__file__).parents[2]
OWN = {"addon_operator", "tests", *(file.stem for file in (ROOT / "scripts").glob("*.py"))}
LOADED_BY = {"pytest_plugin.py"}
"""Nobody but pytest itself imports it."""
# To parse all files takes a second.
IMPORT = re.compile(r"^ *(?:from (?=\S+ import )|import )(\w+)", re.MULTILINE)


def imported(*folders: str) -> set[str]:
    """What the files of these folders import, wherever in them, by the name of the outermost package."""
    files = [
        file for folder in folders for file in (ROOT / folder).rglob("*.py") if file.name not in LOADED_BY
    ]
    found = {name for file in files for name in IMPORT.findall(file.read_text("utf-8"))}
    return found - sys.stdlib_module_names - OWN


def declared(*extras: str) -> set[str]:
    """The names of the packages that ``pyproject.toml`` asks for, as package registries write them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for extra in extras for line in optional[extra])]
    return {normalized(re.split(r"[\[<>=!~; ]", line)[0]) for line in lines}


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def packages(modules: Iterable[str]) -> dict[str, set[str]]:
    """The packages that have each of the modules; more than one may fill it."""
    installed = metadata.packages_distributions()
    return {module: {normalized(name) for name in installed.get(module, ())} for module in modules}


def test_every_package_that_the_operator_imports_is_declared() -> None:
    known = declared("kubeconfig", "testing")
    found = packages(imported("operator"))
    assert [module for module, names in sorted(found.items()) if not names & known] == []


def test_every_package_that_tests_and_scripts_import_is_declared_for_development() -> None:
    known = declared("kubeconfig", "testing", "dev")
    found = packages(imported("tests", "scripts"))
    assert [module for module, names in sorted(found.items()) if not names & known] == []


def test_no_package_is_declared_that_nothing_imports() -> None:
    used = set().union(*packages(imported("operator")).values())
    assert declared() - used == set()
