"""Libraries that are hidden from those that import them because they are installed."""

import importlib
import pathlib
import sys

import pytest

from addon_operator.kernel import optional_imports


@pytest.fixture
def package(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package that is installed, and not imported."""
    name = "addon_operator_test_extra"
    (tmp_path / f"{name}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def test_a_hidden_package_is_as_if_not_installed(package: str) -> None:
    with optional_imports.without(package), pytest.raises(ImportError):
        importlib.import_module(package)


def test_it_can_be_imported_afterwards(package: str) -> None:
    with optional_imports.without(package):
        pass
    assert importlib.import_module(package).__name__ == package


def test_it_can_be_imported_after_an_error(package: str) -> None:
    with pytest.raises(LookupError), optional_imports.without(package):
        raise LookupError
    assert importlib.import_module(package).__name__ == package


def test_what_is_imported_already_stays(package: str) -> None:
    imported = importlib.import_module(package)
    with optional_imports.without(package):
        assert importlib.import_module(package) is imported
    assert sys.modules[package] is imported
