"""Which operation of a hook's patch is to blame for a place in the values that is wrong."""

from typing import Final

from addon_operator.documents import json_pointers
from addon_operator.kernel import json_types
from addon_operator.values.patches import patches

_SHOWN_PATH: Final = 200
MOST_COMPARED: Final = 100_000
"""Operations that are looked at for all places together, in up to half a second."""


class Blame:
    """Finds the operation of a patch that made a place in the values what it is."""

    def __init__(self, patch: patches.ValuesPatch, made: json_types.JsonObject) -> None:
        """``made`` is the document after the patch, which applies to the one before."""
        steps = enumerate(patch.steps())
        self._changes = [(number, item) for number, item in steps if item.kind != "test"][::-1]
        self._made = made
        self._left = MOST_COMPARED
        self._appended: dict[json_pointers.Tokens, list[int]] = {}
        for number, item in reversed(self._changes):
            if item.path[-1:] == ("-",):
                self._appended.setdefault(item.path[:-1], []).append(number)

    def of(self, keys: json_pointers.Path) -> str:
        """Return the last operation that wrote a place, or removed something of it; empty if none did.

        If none did, it is the last one that wrote something inside. Of many places in a large patch, only the
        first ones are looked for.
        """
        self._left -= len(self._changes)
        if self._left < 0:
            return ""
        place, inside = tuple(map(str, keys)), ""
        for number, item in self._changes:
            gone = {"remove": item.path, "move": item.origin}.get(item.kind)
            if self._wrote(number, item, keys) or (gone is not None and json_pointers.overlap(gone, place)):
                return _told(number, item)
            if not inside and json_pointers.is_prefix(place, item.path):
                inside = _told(number, item)
        return inside

    def _wrote(self, number: int, item: patches.PatchStep, keys: json_pointers.Path) -> bool:
        if item.path[-1:] == ("-",):
            return self._appended_at(keys[: len(item.path)]) == number
        return json_pointers.is_prefix(item.path, tuple(map(str, keys)))

    def _appended_at(self, keys: json_pointers.Path) -> int | None:
        """Return the operation that put the item at the end of its list; the last ones of the list did."""
        around = tuple(map(str, keys[:-1]))
        numbers = self._appended.get(around)
        items = json_pointers.find(self._made, around) if numbers else None
        if not (numbers and isinstance(items, list) and isinstance(keys[-1], int)):
            return None
        place = keys[-1] - (len(items) - len(numbers))
        return numbers[place] if 0 <= place < len(numbers) else None


def _told(number: int, item: patches.PatchStep) -> str:
    return f"operation [{number}], {item.kind} {json_pointers.render(item.path)[:_SHOWN_PATH]}"
