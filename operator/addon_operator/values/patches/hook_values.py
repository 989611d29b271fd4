"""What hooks gave, outside of the process whose hooks gave it: as a running operator, or a release, tells.

A running operator gives its patches. A release only has the values that it was made with, so the places that
hooks wrote to are saved with it (never what they wrote): the values there are what hooks gave. So are the
places that the values Secret set, which nobody may see.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
import orjson
from msgspec import structs

from addon_operator.documents import json_documents, json_pointers
from addon_operator.kernel import json_types, names
from addon_operator.values.patches import patch_log, patches

MAX_PLACES_BYTES: Final = 32 << 10
"""How long :meth:`HookPaths.text` may be; annotations of an object may have 256 KiB together."""
_DEPTHS: Final = (3, 2, 1)
EVERYWHERE: Final = ("",)
"""As places: all values of all sections."""

Patches = Sequence[patches.ValuesPatch]


class HookPaths(msgspec.Struct, frozen=True):
    """Where hooks wrote to, for one module's release; a place may not exist, if they removed something."""

    shared: tuple[str, ...] = ()
    """In ``global``, as JSON pointers with the section's key."""
    own: tuple[str, ...] = ()
    """In the module's section."""
    switches: Mapping[str, bool] = msgspec.field(default_factory=dict)
    """What global hooks say of modules, such as ``webEnabled``."""
    hidden: tuple[str, ...] = ()
    """What the values Secret set, in ``global`` and in the module's section: it stays hidden later."""
    is_known: bool = True
    """Whether it is known where hooks wrote to; what is hidden is always known."""

    def text(self) -> str:
        """Write the places on one line; empty if there are none.

        If they are too many to be kept, more is hidden than need be, and where hooks wrote to is not kept.
        """
        return next(text for text in map(_written, self._shorter()) if len(text) <= MAX_PLACES_BYTES)

    def _shorter(self) -> "Iterator[HookPaths]":
        yield self
        for depth in _DEPTHS:
            yield structs.replace(self, hidden=_above(self.hidden, depth))
        for depth in _DEPTHS:
            yield HookPaths(hidden=_above(self.hidden, depth), is_known=False)
        yield HookPaths(hidden=EVERYWHERE if self.hidden else (), is_known=False)


def _written(places: HookPaths) -> str:
    if not (places.shared or places.own or places.switches or places.hidden):
        return ""
    document: dict[str, Any] = {"global": places.shared, "section": places.own, "switches": places.switches}
    of_secret = {"hidden": places.hidden} if places.hidden else {}
    unknown = {} if places.is_known else {"known": False}
    return orjson.dumps(document | of_secret | unknown, option=orjson.OPT_SORT_KEYS).decode()


def read_places(text: str | None) -> HookPaths | None:
    """Read what :meth:`HookPaths.text` wrote; ``None`` for anything else."""
    try:
        document = orjson.loads(text or "")
        return HookPaths(
            tuple(map(_pointer, document["global"])),
            tuple(map(_pointer, document["section"])),
            {str(key): value for key, value in document["switches"].items() if isinstance(value, bool)},
            tuple(map(_anywhere, document.get("hidden", ()))),
            document.get("known", True) is True,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def known_places(text: str | None) -> HookPaths | None:
    """Read the same; ``None`` as well if it does not say where hooks wrote to."""
    saved = read_places(text)
    return saved if saved is not None and saved.is_known else None


def places_of(section: json_types.JsonObject, *above: str) -> tuple[str, ...]:
    """Return the places of all that a section sets, as JSON pointers; a list is one place."""
    places: list[str] = []
    for key, inner in section.items():
        here = (*above, key)
        is_section = isinstance(inner, dict) and inner
        places += (
            places_of(cast("json_types.JsonObject", inner), *here)
            if is_section
            else [json_pointers.render(here)]
        )
    return tuple(places)


def _above(places: Iterable[str], depth: int) -> tuple[str, ...]:
    """Return the places that are so many keys deep and hold all of these, each once."""
    return tuple(dict.fromkeys(json_pointers.render(json_pointers.parse(place)[:depth]) for place in places))


def _anywhere(document: Any) -> str:  # noqa: ANN401  # JSON of any shape
    return document if document in EVERYWHERE else _pointer(document)


def _pointer(document: Any) -> str:  # noqa: ANN401  # JSON of any shape
    if not isinstance(document, str) or not json_pointers.parse(document):
        raise ValueError("not a place in a section")
    return document


def places(steps: Iterable[patches.PatchStep]) -> tuple[str, ...]:
    """Return the places that operations write to, without those inside of others."""
    written = {
        json_pointers.stable_prefix(pointer)
        for step in steps
        if step.kind != "test"
        for pointer in (step.pointers if step.kind == "move" else (step.path,))
    }
    outermost: list[json_pointers.Tokens] = []
    for place in sorted(written):
        # What is inside of a place comes behind it, and before all that is not.
        if not outermost or not json_pointers.is_prefix(outermost[-1], place):
            outermost.append(place)
    return tuple(map(json_pointers.render, outermost))


def at_places(
    where: Iterable[str], sections: json_types.JsonObject, source: str, *, is_whole: bool = True
) -> list[patches.ValuesPatch]:
    """Return the patches that make of other values what ``sections`` have at some places.

    A place that is not there is removed, unless the sections are not whole.
    """
    values = (
        (place, json_pointers.find(sections, json_pointers.parse(place), json_pointers.ABSENT))
        for place in where
    )
    return [
        _single(
            {"op": "remove", "path": place} if value is json_pointers.ABSENT else _add(place, value), source
        )
        for place, value in values
        if is_whole or value is not json_pointers.ABSENT
    ]


def unexplained(
    key: names.ValuesKey, known: json_types.JsonObject, given: json_types.JsonObject, source: str
) -> list[patches.ValuesPatch]:
    """Return the patches that add to a section what it was given and no source has: hooks may have set it."""
    return [_single(_add(json_pointers.render(place), value), source)
            for place, value in _more((key,), known, given)]  # fmt: skip


def _more(
    place: json_pointers.Tokens, known: json_types.JsonObject, given: json_types.JsonObject
) -> Iterator[tuple[json_pointers.Tokens, json_types.JsonValue]]:
    for name, value in given.items():
        here, below = (*place, name), known.get(name)
        if isinstance(value, dict) and isinstance(below, dict):
            yield from _more(here, below, value)
        elif name not in known and value is not None and here != (names.GLOBAL_KEY, names.ENABLED_MODULES):
            # Nulls are how the operators hide what only the chart's own file has.
            yield here, value


def groups(log: patch_log.PatchLog) -> list[list[patches.Operation]]:
    """Return what a log keeps; operations that count only together are in one list."""
    return [[json_documents.copy(dict(step.operation)) for step in entry] for entry in log.entries()]


def _add(place: str, value: json_types.JsonValue) -> patches.Operation:
    return {"op": "add", "path": place, "value": value}


def _single(operation: patches.Operation, source: str) -> patches.ValuesPatch:
    return patches.ValuesPatch((operation,), source)
