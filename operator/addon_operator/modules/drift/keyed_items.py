"""Items of lists, told apart by the keys that their kind has for them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

_MOST_BITS: Final = 256


class ItemIndex:
    """Finds items of a list by their keys, each in one step."""

    def __init__(self, items: Sequence[Any], keys: Sequence[str]) -> None:
        self._keys = keys
        self._whole: dict[tuple[Any, ...], int] = {}
        self._items = items
        for number, item in enumerate(items):
            if isinstance(item, dict):
                self._whole.setdefault(self._key(item), number)
        self._some: dict[tuple[str, ...], dict[tuple[Any, ...], int]] = {}

    def find(self, item: Any) -> int | None:  # noqa: ANN401 - JSON
        """Return the place of the item that has the same keys; those that it does not say may be any."""
        if not isinstance(item, dict):
            return None
        if (found := self._whole.get(self._key(item))) is not None:
            return found
        # The API server filled in a default, such as the protocol of a port.
        said = tuple(key for key in self._keys if key in item)
        if not said or len(said) == len(self._keys):
            return None
        if said not in self._some:
            self._some[said] = {}
            for number, each in enumerate(self._items):
                if isinstance(each, dict):
                    self._some[said].setdefault(_values(each, said), number)
        return self._some[said].get(_values(item, said))

    def _key(self, item: Mapping[str, Any]) -> tuple[Any, ...]:
        return _values(item, self._keys)


def key_of(item: Any, keys: Sequence[str]) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return the keys that the item has, as ``managedFields`` name it."""
    return {key: item[key] for key in keys if key in item} if isinstance(item, dict) else {}


def _values(item: Mapping[str, Any], keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(text_of(item.get(key)) for key in keys)


def text_of(value: object) -> str:
    """Return the text of a scalar; of a number that is longer than any of the API, its digits to base 16.

    Python writes none of many thousand digits in base 10.
    """
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return hex(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
