"""CustomResourceDefinitions in the files of a module's ``crds/``: which files count, and what they define.

Source: ``ADDON_OPERATOR_CRD_FILTER_PREFIXES`` and "Module structure" of the addon-operator documentation.
"""

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Final, cast

from msgspec import structs

from addon_operator.documents import json_pointers, yaml_reading
from addon_operator.kernel import errors
from addon_operator.kernel.json_types import JsonObject, JsonValue
from addon_operator.modules import crd_fields, manifests

_DOCUMENT_START: Final = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
_SCHEMA: Final = re.compile(r"^( *)schema:[ \t\r]*$")
DIRECTORY: Final = "crds"
SUFFIX: Final = ".yaml"
FILTER_PREFIXES: Final = ("doc-", "_")
"""Files whose names begin so do not count, unless the setting says otherwise."""
HELM_SUFFIXES: Final = (".yaml", ".yml", ".json")
"""Of the files that Helm takes from the ``crds/`` of a chart."""
API_VERSION: Final = "apiextensions.k8s.io/v1"
KIND: Final = "CustomResourceDefinition"
PLURAL: Final = "customresourcedefinitions"

MOST_VERSIONS: Final = 50
"""Of one definition: the API server writes them all with each change, and each is looked up in discovery."""
_GROUP: Final = "apiextensions.k8s.io/"
_ADVICE: Final = "move it to templates/, or leave the file out by a name that begins with a filter prefix"


class CrdFileError(errors.ConfigurationError):
    """A file in ``crds/`` holds something else than CustomResourceDefinitions."""


@dataclasses.dataclass(frozen=True, slots=True)
class Crd:
    """One definition as a file has it."""

    name: str
    """``plural.group``"""
    source: str
    """File and number of the document."""
    labels: JsonObject
    annotations: JsonObject
    spec: JsonObject
    """Without fields that the API does not know."""
    doubts: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    """What is probably not meant and has no effect, one sentence each."""

    @property
    def apis(self) -> tuple[str, ...]:
        """Return what the cluster serves with it: ``group/version``."""
        group = self.spec.get("group")
        served = (version for version in versions_of(self.spec) if version.get("served") is not False)
        return tuple(f"{group}/{version.get('name')}" for version in served)

    @property
    def versions(self) -> tuple[str, ...]:
        """Names of the versions that the file defines."""
        return tuple(str(version.get("name", "")) for version in versions_of(self.spec))


def is_selected(
    file_name: str, filter_prefixes: Iterable[str], suffixes: tuple[str, ...] = (SUFFIX,)
) -> bool:
    """Say whether a file of ``crds/`` counts: its name ends in ``.yaml`` and begins with no filter prefix."""
    prefixes = tuple(prefix for prefix in filter_prefixes if prefix)
    return file_name.endswith(suffixes) and not file_name.startswith((".", *prefixes))


def outline(text: str) -> dict[str, str] | None:
    """Return the definitions of a file by their names, each with its text, found without reading it whole.

    ``None`` for a file that is something else than definitions, each once.
    """
    by_path: dict[str, str] = {}
    for document in _DOCUMENT_START.split(text):
        resources = manifests.resources(document)
        if not resources and not document.strip():
            continue
        if len(resources) != 1 or resources[0].kind != KIND or resources[0].name in by_path:
            return None
        by_path[resources[0].name] = document
    return by_path


def lines_of(text: str) -> dict[str, int]:
    """Return the lines, from 1, in which a file names its definitions; raises :class:`.YamlError`."""
    found: dict[str, int] = {}
    for document in yaml_reading.load_documents(text, "", last_wins=True):
        value = document.value if isinstance(document.value, dict) else {}
        metadata = value.get("metadata")
        position = document.position(("metadata", "name"))
        if isinstance(metadata, dict) and position is not None:
            found.setdefault(str(metadata.get("name")), position.line)
    return found


def without_schemas(text: str) -> str:
    """Return the text of definitions without the schemas of their versions, which are most of it.

    They are left out where they are laid out in the usual way, one field in a line.
    """
    lines: list[str] = []
    depth: int | None = None
    for line in text.split("\n"):
        inner = line.lstrip(" ")
        if depth is not None and (len(line) - len(inner) > depth or inner[:1] in ("", "\r", "#")):
            continue
        found = _SCHEMA.match(line)
        depth = len(found[1]) if found else None
        lines.append(line)
    return "\n".join(lines)


def parse(text: str, source: str, *, is_strict: bool = True) -> list[Crd]:
    """Return the definitions of a file; empty documents are passed over.

    Unless ``is_strict``, other objects are as well, and a List counts as its items: charts have both.
    Raises :class:`CrdFileError` for a document that is not a CustomResourceDefinition, and
    :class:`.YamlError` for a file that is not YAML; both say file and
    document.
    """
    documents: Iterable[yaml_reading.Document] = yaml_reading.load_documents(text, source, last_wins=True)
    if not is_strict:
        documents = filter(_is_definition, itertools.chain.from_iterable(map(_items, documents)))
    return [_crd(document) for document in documents if document.value is not None]


def others(text: str, source: str) -> list[JsonObject]:
    """Return the objects of a chart's file that are no definitions; raises :class:`.YamlError`."""
    if outline(text) is not None:
        return []
    documents = yaml_reading.load_documents(text, source, last_wins=True)
    items = itertools.chain.from_iterable(map(_items, documents))
    values = (each.value for each in items if not _is_definition(each))
    return [value for value in values if isinstance(value, dict) and value.get("kind")]


def _items(document: yaml_reading.Document) -> Iterator[yaml_reading.Document]:
    value = document.value
    items = value.get("items") if isinstance(value, dict) else None
    if isinstance(value, dict) and str(value.get("kind")).endswith("List") and isinstance(items, list):
        yield from (structs.replace(document, value=item) for item in items)
    else:
        yield document


def _is_definition(document: yaml_reading.Document) -> bool:
    value = document.value if isinstance(document.value, dict) else {}
    return value.get("kind") == KIND and str(value.get("apiVersion")).startswith(_GROUP)


def defined_twice(name: str, source: str, other: str) -> str:
    """Return a sentence about a definition that two documents of a module have; the later one counts."""
    return f"{source}: {name} is defined by {other}, too; this one counts, remove the other"


def versions_of(spec: JsonObject) -> list[JsonObject]:
    """Return the versions of a definition's ``spec``."""
    versions = spec.get("versions")
    listed = versions if isinstance(versions, list) else []
    return [version for version in listed if isinstance(version, dict)]


def _crd(document: yaml_reading.Document) -> Crd:
    value, source = document.value, document.source
    if not isinstance(value, dict):
        raise CrdFileError(f"{source}: not a {KIND} but {_type_name(value)}; {_ADVICE}")
    kind, api_version = value.get("kind"), value.get("apiVersion")
    if kind != KIND or not str(api_version).startswith(_GROUP):
        raise CrdFileError(f"{source}: not a {KIND} but {_described(kind, api_version)}; {_ADVICE}")
    if api_version != API_VERSION:
        raise CrdFileError(f"{source}: apiVersion {api_version} is no longer served; write {API_VERSION}")
    metadata = _mapping(value, "metadata", source)
    name = metadata.get("name")
    if not isinstance(name, str) or not name or "/" in name:
        raise CrdFileError(f"{source}: metadata.name is missing; write the plural name, a dot and the group")
    spec = _mapping(value, "spec", source)
    if not (versions := versions_of(spec)):
        raise CrdFileError(f"{source}: {name} has no spec.versions; define at least one version")
    if len(versions) > MOST_VERSIONS:
        raise CrdFileError(
            f"{source}: {name} has {len(versions)} versions, and may have {MOST_VERSIONS}; remove old ones"
        )
    spec, unknown = crd_fields.known(spec)
    doubts = (*_repeated(document), *(_dropped(document, path) for path in unknown))
    return Crd(name, source, _texts(metadata, "labels"), _texts(metadata, "annotations"), spec, doubts)


def _repeated(document: yaml_reading.Document) -> Iterator[str]:
    for path, said in document.repeated:
        yield f"{document.where(path)}, {json_pointers.format_path(path)}: {said}"


def _dropped(document: yaml_reading.Document, path: json_pointers.Path) -> str:
    return (
        f"{document.where(path)}, {json_pointers.format_path(path)}: {API_VERSION} has no such field, "
        "and it is left out; remove it"
    )


def _mapping(value: JsonObject, key: str, source: str) -> JsonObject:
    found = value.get(key)
    if not isinstance(found, dict):
        raise CrdFileError(f"{source}: the {KIND} has no mapping {key!r}; add it")
    return found


def _texts(metadata: JsonObject, key: str) -> JsonObject:
    found = metadata.get(key)
    return cast("JsonObject", dict(found)) if isinstance(found, dict) else {}


def _described(kind: JsonValue, api_version: JsonValue) -> str:
    if not kind:
        return "a document without kind"
    return f"{kind} of {api_version}" if api_version else str(kind)


def _type_name(value: JsonValue) -> str:
    return "a list" if isinstance(value, list) else f"the value {value!r}"
