"""Where ``$ref`` leads: to definitions of the same file, and to any place of it or of a file beside it."""

import dataclasses
import urllib.parse
from collections.abc import Callable
from typing import Any, Final

from addon_operator.documents import json_pointers, yaml_reading
from addon_operator.kernel import errors
from addon_operator.values.schema import schema_leniency, schema_walk

Path = tuple[str | int, ...]

FileReader = Callable[[str, str], tuple[str, str]]
"""Gives the text and the name of a file, from the name of the file that refers to it and a relative path.

Raises a :class:`.ConfigurationError` for one that may not or cannot be read.
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Remark:
    """What there is to say of a place in a schema file."""

    document: yaml_reading.Document
    path: Path
    text: str

    @property
    def order(self) -> tuple[str, int, int, str]:
        """By file, line and column."""
        position = self.document.position(self.path) or yaml_reading.Position(0, 0)
        return self.document.source, position.line, position.column, self.text

    def __str__(self) -> str:
        key = f", {yaml_reading.format_path(self.path)}" if self.path else ""
        return f"{self.document.where(self.path)}{key}: {self.text}"


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A schema as it stands in a file: a whole file, or what a reference leads to."""

    document: yaml_reading.Document
    path: Path
    """Where in the document."""
    schema: Any
    """Not to be trusted before it is checked."""

    def remark(self, path: Path, text: str) -> Remark:
        """What there is to say of a place, by its path below the part."""
        return Remark(self.document, (*self.path, *path), text)


class _NoPlaceError(Exception):
    """A reference leads nowhere; the text is the reason."""


class Linker:
    """Brings what a file refers to into its own definitions."""

    def __init__(self, check: Callable[[Part], list[Remark]], read: FileReader | None) -> None:
        """``check`` tells what makes a part unusable; without ``read`` no other file may be referred to."""
        self._check = check
        self._read = read
        self._documents: dict[str, yaml_reading.Document] = {}
        self.parts: Final[dict[str, Part]] = {}
        """What was referred to, by the name among the definitions."""
        self.problems: Final[list[Remark]] = []
        self.notes: Final[list[Remark]] = []

    def link(self, part: Part, *, is_main: bool = True) -> None:
        """Rewrite the references of a checked part, in place, so that all of them lead to definitions."""
        for path, schema in list(schema_walk.subschemas(part.schema)):
            reference = schema.get("$ref")
            if reference is None or (is_main and _is_plain(reference)):
                continue
            try:
                name = self._name(part.document, reference)
            except (_NoPlaceError, errors.ConfigurationError) as error:
                self.problems.append(part.remark((*path, "$ref"), str(error)))
            else:
                schema["$ref"] = schema_walk.REFERENCE_PREFIX + name

    def _name(self, document: yaml_reading.Document, reference: str) -> str:
        file, _, fragment = reference.partition("#")
        target = self._document(document, urllib.parse.unquote(file)) if file else document
        name = f"{target.source}#{fragment}"
        if name not in self.parts:
            self._take(name, target, urllib.parse.unquote(fragment), reference)
        return name

    def _document(self, document: yaml_reading.Document, file: str) -> yaml_reading.Document:
        if self._read is None:
            raise _NoPlaceError(f"{file!r} is another file, and there is none here")
        text, source = self._read(document.source, file)
        if source not in self._documents:
            self._documents[source] = loaded = yaml_reading.load_document(text, source, last_wins=True)
            self.notes.extend(Remark(loaded, *note) for note in loaded.repeated)
        return self._documents[source]

    def _take(self, name: str, document: yaml_reading.Document, fragment: str, reference: str) -> None:
        path, found = _find(document.value, fragment, reference)
        reader = schema_leniency.LenientReader()
        part = Part(document, path, reader.read(found))
        self.parts[name] = part
        self.notes.extend(part.remark(*note) for note in reader.notes)
        problems = self._check(part)
        self.problems.extend(problems)
        if not problems:
            self.link(part, is_main=False)


def _is_plain(reference: str) -> bool:
    """Whether a reference names one of the definitions of its own file."""
    prefix = schema_walk.REFERENCE_PREFIX
    return reference.startswith(prefix) and "/" not in reference.removeprefix(prefix)


def _find(value: Any, fragment: str, reference: str) -> tuple[Path, Any]:  # noqa: ANN401  # any YAML
    path: list[str | int] = []
    for token in _tokens(fragment, reference):
        key = int(token) if isinstance(value, list) and json_pointers.is_index(token) else token
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            raise _NoPlaceError(f"there is nothing at {reference!r}") from None
        path.append(key)
    return tuple(path), value


def _tokens(fragment: str, reference: str) -> json_pointers.Tokens:
    try:
        return json_pointers.parse(fragment)
    except ValueError:
        form = "#/definitions/NAME or FILE#/definitions/NAME"
        raise _NoPlaceError(f"{reference!r} does not have the form {form}") from None
