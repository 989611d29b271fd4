"""The JSON Schema of a file of cases, for its reader and for editors."""

from collections.abc import Mapping
from typing import Any, Final

from addon_operator.kernel import json_types
from addon_operator.testing import part_words
from addon_operator.testing.given import kinds
from addon_operator.testing.modules import asked

_Schema = Mapping[str, Any]
MOST_FILES: Final = 20
"""How many files with values a case may have."""
_LIST_REMEDY: Final = "write a list, each item with '- '"


def _object(description: str, /, *required: str, **properties: _Schema) -> _Schema:
    return {
        "description": description,
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": list(required),
        "x-elsewhere": {},
    }


def _text(description: str, format_: str = "") -> _Schema:
    form = {"format": format_} if format_ else {}
    return {"description": description, "type": "string", "minLength": 1, **form}


def _flag(description: str, *, default: bool) -> _Schema:
    return {"description": description, "type": "boolean", "default": default}


def _any(description: str) -> _Schema:
    return {"description": description, "type": "object"}


def _list(description: str, items: _Schema) -> _Schema:
    return {"description": description, "type": "array", "items": items, "x-remedy": _LIST_REMEDY}


_PART: Final[_Schema] = {
    "description": "A part of an object: kind and name say which, and what else stands here must be in it.",
    "type": "object",
    "required": ["kind"],
    "properties": {
        "kind": kinds.KIND,
        "name": _text("Short for metadata.name.", "object-name"),
        "apiVersion": _text("Such as v1 or apps/v1.", "api-version"),
        "metadata": _any("A part of its metadata."),
    },
}
_EVERY: Final[_Schema] = {
    "description": "A part that each object has, or each of that kind.",
    "type": "object",
    "minProperties": 1,
    "properties": {"kind": kinds.KIND, "metadata": _any("A part of its metadata.")},
}
_GONE: Final = _object(
    "Objects that must not be there.",
    "kind",
    kind=kinds.KIND,
    name=_text("Its name; without it no object of that kind may be there.", "object-name"),
)
_COUNT: Final = {
    "description": "How many objects of a kind there are, as kind: number.",
    "type": "object",
    "propertyNames": {"format": "kind"},
    "additionalProperties": {"type": "integer", "minimum": 0},
    "x-remedy": "write kind: number pairs below it",
}
_EVENT: Final = _object(
    "Something that happens to the objects before the hook runs.",
    "object",
    type={"description": "What happens.", "enum": ["Added", "Modified", "Deleted"], "default": "Modified"},
    object=kinds.OBJECT,
)
_HOOK: Final = _object(
    "The hook that runs; without this key, all hooks run that run before Helm.",
    "name",
    name=_text("Its path below hooks/."),
    binding=_text("The name of the binding that it runs for; not needed if it has one."),
    events=_list("Events of a kubernetes binding; without them it runs for all objects.", _EVENT),
    review=asked.REVIEW,
    convert=_list("Objects of one version, for a hook that converts custom resources.", kinds.OBJECT),
    to=_text("The version that they are wanted in.", "api-version"),
)
_BEHIND: Final[Mapping[str, _Schema]] = {
    "$matches": {"type": "string", "minLength": 1},
    "$count": {"type": "integer", "minimum": 0},
    "$type": {"enum": list(part_words.TYPES)},
    "$not": {"$ref": "#/$defs/field"},
}
_FIELD_OF_PART: Final[_Schema] = {"$ref": "#/$defs/field"}
_FIELD: Final[_Schema] = {
    "description": "What a field is, or words that say what it has to be.",
    "type": ["string", "number", "boolean", "null", "array", "object"],
    "items": _FIELD_OF_PART,
    "properties": {
        word: {"description": says, **_BEHIND.get(word, {})} for word, says in part_words.DESCRIPTIONS.items()
    },
    "patternProperties": {r"^[^$]": _FIELD_OF_PART},
    "additionalProperties": False,
}
"""Only for editors: our reader looks for words by itself, and says more."""
_OF_HOOK: Final = _object(
    "What the hook has to do.",
    values=_any("A part of the values afterwards: global, and the module's section by its key."),
    configValues=_any("A part of what the ConfigMap says afterwards."),
    objects=_list("Parts of objects that are there afterwards.", _PART),
    absent=_list("Objects that are not there afterwards.", _GONE),
    count=_COUNT,
    metrics=_list("Parts of metrics that it writes.", _any("A part of one.")),
    log=_text("A text that is in what it prints."),
    allowed={"description": "Whether it lets the reviewed request pass.", "type": "boolean"},
    message=_text("A text in why it denies the request, or does not convert."),
    warnings=_list("Texts, each in a warning that the user sees.", _text("A text.")),
    patched=_any("A part of the reviewed object afterwards."),
    converted=_list("Parts of the converted objects, in their order.", _any("A part of one.")),
)
_EXPECT: Final = _object(
    "What has to come out of it.",
    snapshot=_flag("Whether all objects are compared with a stored snapshot.", default=False),
    objects=_list("Parts of objects that the chart renders.", _PART),
    every=_list("Parts that all rendered objects have, or all of a kind.", _EVERY),
    absent=_list("Objects that the chart does not render.", _GONE),
    count=_COUNT,
    error=_text("A text that is in the error: the values are refused, or the chart or the hook fails."),
    enabled={"description": "Whether the operator would enable the module.", "type": "boolean"},
    hook=_OF_HOOK,
)
CASE: Final = _object(
    "One test.",
    "name",
    "expect",
    name=_text("What it shows, as a sentence."),
    values=_any("What somebody writes into the ConfigMap: sections and switches by their keys."),
    valuesFiles={
        **_list(
            "Paths of files with more of these, from this one; the later wins, and values over all.",
            _text("Its path."),
        ),
        "maxItems": MOST_FILES,
    },
    hookValues=_any("What hooks set in the module's section; no hook runs before the render then."),
    objects=_list("What lookup and hooks find in the cluster.", kinds.OBJECT),
    kubernetes=_text("The version of Kubernetes, such as v1.34.0.", "cluster-version"),
    upgradeFrom=_any(
        "The values of a release that is there already: it is an upgrade, and lookup finds its objects."
    ),
    hook=_HOOK,
    expect=_EXPECT,
)
SCHEMA: Final[_Schema] = {
    "type": "array",
    "description": "Tests of a module of addon-operator.",
    "items": CASE,
    "x-remedy": _LIST_REMEDY,
}


def for_editors() -> json_types.JsonObject:
    """Return the schema without what only our reader knows."""
    plain = _plain(SCHEMA)
    item = plain["items"]["properties"]
    expected = item["expect"]["properties"]
    for parts in (expected["objects"], expected["every"], expected["hook"]["properties"]["objects"]):
        parts["items"]["additionalProperties"] = _FIELD_OF_PART
    item["hook"] = {"oneOf": [{"type": "string", "minLength": 1}, item["hook"]]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": {"field": _FIELD}, **plain}


def _plain(node: Any) -> Any:  # noqa: ANN401 - a schema, or a part of one
    if isinstance(node, Mapping):
        return {
            key: _plain(value)
            for key, value in node.items()
            if not (str(key).startswith("x-") or (key == "format" and isinstance(value, str)))
        }
    return [_plain(each) for each in node] if isinstance(node, list) else node
