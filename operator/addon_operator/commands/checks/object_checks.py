"""Checks of rendered objects by the schemas of Kubernetes' own kinds."""

import enum
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

import jsonschema
from msgspec import structs

from addon_operator.commands.checks import list_keys
from addon_operator.devcluster import api_schemas
from addon_operator.documents import json_pointers, json_schemas, manifest_diff
from addon_operator.helm.charts import template_lines
from addon_operator.kernel import names, quantities
from addon_operator.modules import manifests
from addon_operator.values.schema import schema_messages

_REFERENCE: Final = "#/components/schemas/"
_DEFINITION: Final = "#/$defs/"
_KEPT: Final = ("type", "properties", "items", "required", "allOf", "oneOf", "anyOf", "enum", "$ref")
_OPEN: Final = ("additionalProperties", "x-kubernetes-preserve-unknown-fields")
_MOST: Final = 5
"""Mistakes that are told of one object."""
_SHOWN: Final = 40
_QUANTITY: Final = "quantity"
_QUANTITIES: Final = ".api.resource.Quantity"
"""How the name of their definition ends."""
_ANY_NAMES: Final = "rbac.authorization.k8s.io/"
"""Of kinds whose names may have any characters but slashes."""


_FORMATS: Final[json_schemas.Formats] = {
    _QUANTITY: lambda value: not isinstance(value, str) or quantities.parse(value) is not None
}


class Mistake(enum.Enum):
    """What is wrong with an object."""

    WRONG = enum.auto()
    UNKNOWN_FIELD = enum.auto()
    """Kubernetes drops this, with a warning that Helm 3 passes on; Helm 4 refuses it."""
    MISSING = enum.auto()
    """Something has to be there; values may be missing from which it is made."""
    REPEATED = enum.auto()
    """An item of a list is there twice: Helm 3 passes this on, and Helm 4, which applies it, refuses it."""


_Mistaken: TypeAlias = tuple[Mistake, tuple[str | int, ...], str]
"""What is wrong, the path of the field, and a sentence that begins with it."""


class Problem(NamedTuple):
    """One thing that is wrong with an object."""

    mistake: Mistake
    text: str
    """A sentence without its subject, which is the file."""
    field: template_lines.Field | None = None
    """What is wrong; ``None`` if it is nothing that a line of a template makes."""


def bodies(document: manifest_diff.ManifestDocument) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a document: itself, or the items of a list."""
    if document.body is not None:
        items = manifests.items_of(document.body)
        for body in [document.body] if items is None else items:
            yield body if isinstance(body, dict) else {}


def identity(body: Mapping[str, Any], namespace: str) -> tuple[str, ...] | None:
    """Return what no two objects of a release may share; ``None`` for one without a name."""
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name") or not body.get("kind"):
        return None
    group = str(body.get("apiVersion", "")).rpartition("/")[0]
    return group, str(body["kind"]), str(metadata.get("namespace") or namespace), str(metadata["name"])


class ObjectChecks:
    """Checks objects; without schemas, only that they are objects at all."""

    def __init__(self, schemas: api_schemas.ApiSchemas | None) -> None:
        self._schemas = schemas
        self._validators: dict[str, json_schemas.Validator] = {}

    def problems(self, document: manifest_diff.ManifestDocument) -> Iterator[Problem]:
        """Yield what Helm or the API server would refuse in a document of a manifest."""
        if document.body is None:
            yield Problem(
                Mistake.WRONG, "renders a document that is not an object; write a mapping with kind"
            )
            return
        for body in bodies(document):
            yield from self._of_object(body)

    def _of_object(self, body: Mapping[str, Any]) -> Iterator[Problem]:
        for key in ("apiVersion", "kind", "metadata"):
            if not body.get(key):
                yield Problem(Mistake.WRONG, f"renders an object without {key}, which Helm refuses; add it")
                return
        metadata = body["metadata"] if isinstance(body["metadata"], dict) else {}
        name = metadata.get("name") or metadata.get("generateName")
        itself = template_lines.Field(str(body["kind"]), str(name or ""))
        if not name:
            said = f"renders an object {body['kind']} without a name; give it metadata.name"
            yield Problem(Mistake.MISSING, said, itself)
        if self._schemas is not None:
            version = self._schemas.version
            subject = f"renders {body['kind']} {name}"
            found = itertools.chain(self._by_name(body, metadata), self._by_schema(body))
            for mistake, path, said in itertools.islice(found, _MOST):
                refuses = f"which Kubernetes {version} refuses"
                if mistake is Mistake.UNKNOWN_FIELD:
                    refuses = f"of which Kubernetes {version} drops what it does not know, and Helm 4 refuses"
                field = structs.replace(itself, path=path)
                yield Problem(mistake, f"{subject}, {refuses}: {said}", field)

    def _by_name(self, body: Mapping[str, Any], metadata: Mapping[str, Any]) -> Iterator[_Mistaken]:
        """Yield what is wrong with names, which schemas describe as texts."""
        name = metadata.get("name")
        is_strict = self._type_name(body) is not None and not str(body["apiVersion"]).startswith(_ANY_NAMES)
        if isinstance(name, str) and name and is_strict and not names.is_subdomain(name):
            said = f"{name!r} is not a name; use lower-case letters, digits, '-' and '.'"
            yield Mistake.WRONG, ("metadata", "name"), f"metadata.name {said}"
        labels = metadata.get("labels")
        for key, value in labels.items() if isinstance(labels, dict) else ():
            if not names.is_label_key(key) or (isinstance(value, str) and not names.is_label_value(value)):
                path = ("metadata", "labels", key)
                yield Mistake.WRONG, path, f"{key}: {value!r} in metadata.labels is not a label"

    def _type_name(self, body: Mapping[str, Any]) -> str | None:
        kinds = {} if self._schemas is None else self._schemas.kinds
        return kinds.get(f"{body['apiVersion']}/{body['kind']}")

    def _by_schema(self, body: Mapping[str, Any]) -> Iterator[_Mistaken]:
        type_name = self._type_name(body)
        if type_name is None:
            yield from self._by_kind(body)
            return
        for error in self._validator(type_name).errors(_without_nulls(body)):
            yield from _explained(error)
        definitions = {} if self._schemas is None else self._schemas.definitions
        for path, said in list_keys.repeated(definitions, definitions[type_name], body):
            yield Mistake.REPEATED, path, said

    def _by_kind(self, body: Mapping[str, Any]) -> Iterator[_Mistaken]:
        """Yield what is wrong with a kind that a version of Kubernetes' own APIs does not have."""
        group = f"{body['apiVersion']}/"
        kinds = [] if self._schemas is None else [
            each.removeprefix(group) for each in self._schemas.kinds if each.startswith(group)
        ]  # fmt: skip
        near = names.nearest(str(body["kind"]), [each for each in kinds if "/" not in each])
        if near is not None:
            yield Mistake.WRONG, ("kind",), f"{body['apiVersion']} has no such kind; did you mean {near!r}?"

    def _validator(self, type_name: str) -> json_schemas.Validator:
        if type_name not in self._validators:
            closure = self._closure(type_name)
            schema = {"$ref": f"{_DEFINITION}{type_name}", "$defs": closure}
            self._validators[type_name] = json_schemas.Validator(schema, _FORMATS)
        return self._validators[type_name]

    def _closure(self, type_name: str) -> dict[str, Any]:
        """Return the definitions that a type needs, as JSON Schema."""
        definitions = {} if self._schemas is None else self._schemas.definitions
        types: dict[str, Any] = {}
        wanted = [type_name]
        while wanted:
            name = wanted.pop()
            if name not in types:
                types[name] = _json_schema(definitions.get(name, True), wanted)
                if name.endswith(_QUANTITIES):
                    types[name] = {**types[name], "format": _QUANTITY}
        return types


def _json_schema(schema: Any, wanted: list[str]) -> Any:  # noqa: ANN401  # a schema or a boolean
    """Return an OpenAPI schema as JSON Schema in which unknown fields are wrong; adds what it refers to."""
    if not isinstance(schema, dict):
        return schema
    written: dict[str, Any] = {key: schema[key] for key in _KEPT if key in schema}
    if "$ref" in written:
        wanted.append(written["$ref"].removeprefix(_REFERENCE))
        written["$ref"] = f"{_DEFINITION}{wanted[-1]}"
    for key in ("items", "additionalProperties"):
        if key in schema:
            written[key] = _json_schema(schema[key], wanted)
    for key in ("allOf", "oneOf", "anyOf"):
        if key in written:
            written[key] = [_json_schema(each, wanted) for each in written[key]]
    if "properties" in written:
        written["properties"] = {
            key: _json_schema(each, wanted) for key, each in written["properties"].items()
        }
        if not any(key in schema for key in _OPEN):
            written["additionalProperties"] = False
    return written


def _without_nulls(value: Any) -> Any:  # noqa: ANN401  # JSON
    """Return it without keys that are ``null``, which the API server takes as not set."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _explained(error: jsonschema.ValidationError) -> Iterator[_Mistaken]:
    path = tuple(error.absolute_path)
    if error.validator == "enum" and error.instance == "":
        return  # The API server takes an empty text as not set, too.
    if error.validator == "additionalProperties":
        schema, instance = (cast("Mapping[str, Any]", each) for each in (error.schema, error.instance))
        properties = schema.get("properties", {})
        for key in json_schemas.unknown_keys(instance, schema):
            hint = names.did_you_mean(key, properties, "remove it")
            place = (*path, key)
            yield (
                Mistake.UNKNOWN_FIELD,
                place,
                f"{json_pointers.format_path(place)} is no field of it; {hint}",
            )
        return
    if error.validator == "format" and error.validator_value == _QUANTITY:
        said = f"must be a quantity such as 100m or 1Gi, and not {str(error.instance)[:_SHOWN]!r}"
        yield Mistake.WRONG, path, f"{json_pointers.format_path(path)} {said}"
        return
    for fault in schema_messages.explain(error):
        mistake = Mistake.MISSING if error.validator == "required" else Mistake.WRONG
        yield mistake, fault.path, f"{json_pointers.format_path(fault.path)} {fault.rule}"
