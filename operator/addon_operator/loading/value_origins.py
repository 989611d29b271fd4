"""Where each value of a section comes from, with the line in its file."""

import functools
import pathlib
from typing import Final, TypedDict

from msgspec import structs

from addon_operator.documents import json_documents, json_pointers, yaml_reading
from addon_operator.helm.charts import plain_files
from addon_operator.kernel import clock, errors, json_types, names
from addon_operator.values import origins, section, store
from addon_operator.values.schema import schema_violations, schemas

MOST: Final = 10_000
"""So many values are told of one section."""
_MAX_FILE: Final = 4 << 20
UNKNOWN: Final = "unknown"


class OriginRow(TypedDict):
    """One value, and its source."""

    path: str
    """As in messages, such as ``web.nodes[0].name``."""
    value: json_types.JsonValue
    """Hidden if it is sensitive and that was not asked for."""
    origin: str
    """For a person."""


class ValueOrigins:
    """Reads the origins in one state of a section; for a thread: it reads files."""

    def __init__(self, values: store.ValuesStore, owner: names.ModuleName | None) -> None:
        """``values``: a snapshot with that section."""
        self._section: section.Section = values.section_of(owner)
        self._layers = values.layers(owner)
        self._defaults = self._section.default_layers()
        self._below = self._section.without_patches(self._section.config)
        self._writers = values.writers(owner)
        self._read = functools.cache(_read)

    def rows(self, *, show_sensitive: bool) -> list[OriginRow]:
        """Return a row for each value, in their order."""
        shown = self._section.present
        masked = shown if show_sensitive else self._section.masked(shown)
        rows: list[OriginRow] = []
        for path, value in origins.leaves(shown):
            if len(rows) == MOST or not path:
                # Without a place below it, the section is empty.
                break
            text = _masked_at(masked, path, value)
            whole = json_pointers.format_path((self._section.key, *path))
            rows.append(OriginRow(path=whole, value=text, origin=self.of(path, value)))
        return rows

    def of(self, path: json_pointers.Path, value: json_types.JsonValue) -> str:
        """Return the origin of the value at a place below the section."""
        before = json_pointers.find(self._below, path, json_pointers.ABSENT)
        if before is json_pointers.ABSENT or not json_documents.equal({"": value}, {"": before}):
            return self._of_hook(path)
        if source := origins.origin(path, self._layers):
            return self._with_line(source, path, value)
        return origins.origin(path, self._defaults) or UNKNOWN

    def _of_hook(self, path: json_pointers.Path) -> str:
        place = json_pointers.stable_prefix((self._section.key, *map(str, path)))
        written = self._writers.of(place)
        return "a hook" if written is None else f"{written.by}, {clock.rfc3339(written.at)}"

    def _with_line(self, source: str, path: json_pointers.Path, value: json_types.JsonValue) -> str:
        document = self._read(pathlib.Path(source))
        return _with_position(source, document, (self._section.key, *path), value)


class SourceLines:
    """Finds the lines of values in the files that set them; each file is read once."""

    def __init__(self) -> None:
        self._read = functools.cache(_read)

    def of(self, violation: schema_violations.Violation) -> schema_violations.Violation:
        """Return a violation whose origin has the line, if it is a file."""
        source = violation.origin
        document = self._read(pathlib.Path(source))
        return structs.replace(
            violation, origin=_with_position(source, document, violation.keys, nearest=True)
        )


def default_in_file(path: pathlib.Path, place: json_pointers.Path) -> str:
    """Return the origin of a default of a chart: its ``values.yaml``, with the line if it is there."""
    source = str(path)
    found = _with_position(source, _read(path), place)
    return origins.default_in(found if found != source else str(path.parent))


def _with_position(
    source: str,
    document: yaml_reading.Document | None,
    place: json_pointers.Path,
    value: object = json_pointers.ABSENT,
    *,
    nearest: bool = False,
) -> str:
    """Return a file with the line at which it sets a place, and to this value if one is given.

    Without the line if it does not, as the file may have changed since it was read; with ``nearest``, then
    with that of the nearest parent.
    """
    if document is None or (
        (now := json_pointers.find(document.value, place, json_pointers.ABSENT)) is json_pointers.ABSENT
        and not nearest
    ):
        return source
    if value is not json_pointers.ABSENT and not json_documents.equal({"": now}, {"": value}):
        return source
    position = document.position(place)
    return source if position is None else f"{source}, {position}"


def _read(path: pathlib.Path) -> yaml_reading.Document | None:
    try:
        text = plain_files.read_text(path, _MAX_FILE)
        return yaml_reading.load_document(text, str(path), last_wins=True)
    except (OSError, UnicodeDecodeError, errors.AddonOperatorError):
        return None


def _masked_at(
    masked: json_types.JsonValue, path: json_pointers.Path, value: json_types.JsonValue
) -> json_types.JsonValue:
    for key in path:
        if masked == schemas.HIDDEN:
            return schemas.HIDDEN
        if not isinstance(masked, dict) or key not in masked:
            return value
        masked = masked[str(key)]
    return masked
