"""The manifests that a preview is given: files and standard input, document by document."""

import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from addon_operator.documents import json_pointers, yaml_reading
from addon_operator.kernel import errors, json_types

STDIN: Final = "-"
STDIN_NAME: Final = "standard input"

_PART: Final = re.compile(r"\[(?P<index>[0-9]+)\]|(?P<key>[^.\[\]]+)")


class ManifestError(errors.ConfigurationError):
    """A file cannot be used; the sentence names file, document and field."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a file."""

    document: yaml_reading.Document
    path: json_pointers.Path
    """Where in the document the object begins: nowhere, or in the ``items`` of a list."""
    api_version: str
    kind: str
    content: json_types.KubernetesObject

    @property
    def name(self) -> str:
        """Name of the object, or what its names are generated from; empty when it has neither."""
        metadata = self.metadata
        return _text(metadata.get("name")) or _text(metadata.get("generateName"))

    @property
    def namespace(self) -> str | None:
        """Namespace of the object, if it says one."""
        return _text(self.metadata.get("namespace")) or None

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The object's metadata."""
        return _mapping(self.content.get("metadata"))

    @property
    def title(self) -> str:
        """Kind and name, for people."""
        return f"{self.kind} {self.name}".rstrip()

    def error(self, problem: str, path: json_pointers.Path = ()) -> ManifestError:
        """Return an error about a field; ``problem`` is a sentence, or ``<path of a field>: <sentence>``.

        ``path`` is where in the object the field's own path begins.
        """
        base = (*self.path, *path)
        field, colon, sentence = problem.partition(": ")
        named = (*base, *_parts(field)) if colon else base
        shown = json_pointers.format_path(named)
        text = sentence if colon else problem
        return ManifestError(f"{self.document.where(named)}: {shown + ': ' if shown else ''}{text}")


def read(names: Iterable[str], stdin: Callable[[], bytes]) -> list[Manifest]:
    """Return all objects of some files, in order; ``-`` is standard input, and empty documents do not count.

    Raises :class:`ManifestError`, or :class:`.YamlError`.
    """
    return [manifest for name in names for manifest in _read(name, stdin)]


def _read(name: str, stdin: Callable[[], bytes]) -> Iterator[Manifest]:
    source = STDIN_NAME if name == STDIN else name
    for document in yaml_reading.load_documents(_text_of(name, source, stdin), source):
        if document.value is not None:
            yield from _objects(document, document.value, (), "")


def _text_of(name: str, source: str, stdin: Callable[[], bytes]) -> str:
    try:
        content = stdin() if name == STDIN else pathlib.Path(name).read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        place = pathlib.Path(name).absolute()
        raise ManifestError(f"{place} cannot be read: {error.strerror}; name a file with manifests") from None
    except UnicodeDecodeError as error:
        raise ManifestError(f"{source} is not UTF-8 text: byte {error.start + 1} fits no character") from None


def _objects(
    document: yaml_reading.Document, value: object, path: json_pointers.Path, assumed_kind: str
) -> Iterator[Manifest]:
    if not isinstance(value, Mapping):
        raise ManifestError(f"{document.where(path)}: a manifest must be a mapping with apiVersion and kind")
    kind = value.get("kind") or assumed_kind
    if not isinstance(kind, str) or not kind:
        raise ManifestError(f"{document.where(path)}: {_field(path, 'kind')}: is required; say what this is")
    if kind.endswith("List") and isinstance(value.get("items"), list):
        for index, item in enumerate(value["items"]):
            yield from _objects(document, item, (*path, "items", index), kind.removesuffix("List"))
        return
    yield Manifest(document, path, _text(value.get("apiVersion")), kind, value)


def _field(path: json_pointers.Path, key: str) -> str:
    return json_pointers.format_path((*path, key))


def _parts(field: str) -> json_pointers.Path:
    parts = (match.groupdict() for match in _PART.finditer(field))
    return tuple(part["key"] if part["index"] is None else int(part["index"]) for part in parts)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
