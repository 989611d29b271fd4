"""Libraries that are hidden from those that import them, and imports that are quick."""

import gc
import importlib
import pathlib
import sys
from collections.abc import Iterator

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


@pytest.fixture
def collecting() -> Iterator[None]:
    """Leave the garbage collector on; what is frozen stays so, like the tests themselves."""
    yield
    gc.enable()


@pytest.mark.usefixtures("collecting")
def test_no_garbage_is_looked_for_during_imports() -> None:
    with optional_imports.quick_imports():
        assert not gc.isenabled()
    assert gc.isenabled()


@pytest.mark.usefixtures("collecting")
def test_what_was_imported_is_never_looked_at_again() -> None:
    with optional_imports.quick_imports():
        imported: list[object] = []
    assert gc.is_tracked(imported)
    assert not any(seen is imported for seen in gc.get_objects())


@pytest.mark.usefixtures("collecting")
def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with optional_imports.quick_imports():
        pass
    assert not gc.isenabled()


@pytest.mark.usefixtures("collecting")
def test_a_failing_import_leaves_the_collector_on() -> None:
    with pytest.raises(ImportError), optional_imports.quick_imports():
        raise ImportError
    assert gc.isenabled()
