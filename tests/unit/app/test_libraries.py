"""How the parts of an operator are imported."""

import gc
from collections.abc import Iterator

import pytest

from addon_operator.app import libraries


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Leave the garbage collector on; what is frozen stays so, like the tests themselves."""
    yield
    gc.enable()


def test_no_garbage_is_looked_for_during_imports() -> None:
    with libraries.quick_imports():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_imported_is_never_looked_at_again() -> None:
    with libraries.quick_imports():
        imported: list[object] = []
    assert gc.is_tracked(imported)
    assert not any(seen is imported for seen in gc.get_objects())


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with libraries.quick_imports():
        pass
    assert not gc.isenabled()


def test_a_failing_import_leaves_the_collector_on() -> None:
    with pytest.raises(ImportError), libraries.quick_imports():
        raise ImportError
    assert gc.isenabled()
