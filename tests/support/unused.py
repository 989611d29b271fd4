"""What a constructor asks for and a test does not use."""

from typing import TypeVar

T = TypeVar("T")


def unused(kind: type[T]) -> T:
    """An object of that class without any attribute: whatever uses it fails."""
    return kind.__new__(kind)
