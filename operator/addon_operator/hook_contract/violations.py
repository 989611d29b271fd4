"""What is wrong with a document, as words: place, mistake and remedy for each violation of a schema."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from addon_operator.documents import json_pointers, json_schemas
from addon_operator.hook_contract import crontab, jq_programs
from addon_operator.kernel import clock, errors, names, version_ranges
from addon_operator.kernel.json_types import JsonObject, JsonValue

_Error: TypeAlias = Any
"""A ``ValidationError`` of jsonschema, which is imported when it is needed; its parts have no types."""
_TYPES: Final = {
    "string": "a text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}
_KINDS: Final[Mapping[type, str]] = {str: "a text", list: "a list", dict: "a mapping"}
_API_VERSION: Final = re.compile(rf"({names.SUBDOMAIN}/)?[a-z]([-a-z0-9]*[a-z0-9])?")
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_OBJECT_NAME: Final = re.compile(r"(?!\.{1,2}$)[^/%]+")
_ANY: Final = "*"
_ANY_OR_NONE: Final = ("", _ANY)
_SERVED_API: Final = re.compile(rf"v1|{names.SUBDOMAIN}/[a-z]([-a-z0-9]*[a-z0-9])?")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_SHOWN_CHARS: Final = 60


class _FormatError(errors.ConfigurationError):
    """A text has not the format that its place needs."""


class Checker:
    """Checks documents against one schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._validator = json_schemas.Validator(schema, _FORMATS)

    def find(self, document: JsonValue) -> list[str]:
        """Return all violations, each as ``place: mistake; remedy``, sorted by place."""
        return [text for error in self._errors(document) for text in _texts(error)]

    def problems(self, document: JsonValue) -> list[tuple[json_pointers.Path, str]]:
        """Return all violations, sorted by place: the path of what is wrong and ``mistake; remedy``."""
        return [problem for error in self._errors(document) for problem in _problems(error)]

    def _errors(self, document: JsonValue) -> list[_Error]:
        return sorted(self._validator.errors(document), key=lambda error: [str(part) for part in error.path])


def nearest(key: str, known: Collection[str], hidden: Collection[str] = ()) -> str:
    """Return a hint at the name most like ``key``, or the list; ``hidden`` names are not listed."""
    return names.did_you_mean(key, (*hidden, *known), f"known are {', '.join(sorted(known))}")


def unknown_keys(document: JsonObject, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield for each key of a document that its schema does not have what is known of it.

    A key of other documents that is null says nothing: jq writes it into all of them.
    """
    known, elsewhere = schema["properties"], schema["x-elsewhere"]
    for key, value in document.items():
        if key not in known and not (value is None and key in elsewhere):
            yield f"the key {key!r} is not known here; {elsewhere.get(key) or nearest(key, known, elsewhere)}"


def given(document: JsonObject, schema: Mapping[str, Any]) -> JsonObject:
    """Return the known keys of a document, without optional ones that are null.

    jq and Go write null for what an object does not have, or a hook did not set.
    """
    known, required = schema["properties"], schema["required"]
    return {
        key: value
        for key, value in document.items()
        if key in known and (value is not None or key in required)
    }


def _texts(error: _Error) -> Iterator[str]:
    path = json_pointers.format_path(error.absolute_path)
    for text in _described(error):
        yield f"{path}: {text}" if path else text


def _problems(error: _Error) -> Iterator[tuple[json_pointers.Path, str]]:
    path, instance, schema = tuple(error.absolute_path), error.instance, error.schema
    if error.validator == "additionalProperties" and isinstance(schema, Mapping):
        unknown = [key for key in instance if key not in schema["properties"]]
        yield from (((*path, key), text) for key, text in zip(unknown, _described(error), strict=True))
    else:
        yield from ((path, text) for text in _described(error))


def _described(error: _Error) -> Iterable[str]:
    rule, value = str(error.validator), error.validator_value
    if rule in _DESCRIPTIONS:
        return _DESCRIPTIONS[rule](error)
    plural = "" if value == 1 else "s"
    sentence = _SENTENCES.get(rule)
    return [
        sentence.format(shown=_shown(error.instance), value=value, s=plural) if sentence else error.message
    ]


def _type(error: _Error) -> Iterator[str]:
    is_unquoted = error.validator_value == "string" and isinstance(error.instance, bool | int | float)
    schema = error.schema
    hint = "; put it in quotes" if is_unquoted else ""
    if hint and schema.get("format") == "period":
        hint = "; write a time with its unit, such as 30s, 10m or 1h30m"
    elif hint and isinstance(error.instance, float):
        hint += " (without them, a version such as 1.10 is the number 1.1)"
    found = _KINDS.get(type(error.instance)) if "x-secret" in schema else None
    yield f"{found or _shown(error.instance)} is not {_TYPES[error.validator_value]}{hint or _remedy(schema)}"


def _remedy(schema: Mapping[str, Any]) -> str:
    """Return what the schema says to do about a value of another kind, to be put behind the mistake."""
    return f"; {schema['x-remedy']}" if "x-remedy" in schema else ""


def _required(error: _Error) -> Iterator[str]:
    # jsonschema reports each missing key on its own and names it only in its message.
    for key in error.validator_value:
        if key not in error.instance and repr(key) in error.message:
            yield f"the key {key!r} is missing"


def _enum(error: _Error) -> Iterator[str]:
    allowed = [str(value) for value in error.validator_value]
    schema = error.schema
    if remedy := _remedy(schema):
        yield f"{_shown(error.instance)} is not known here{remedy}"
        return
    hint = nearest(error.instance, allowed) if isinstance(error.instance, str) else ""
    listed = "" if hint.startswith("known") else f"write one of {', '.join(allowed)}; "
    yield f"{_shown(error.instance)} is not known here; {listed}{hint}".removesuffix("; ")


_DESCRIPTIONS: Final[Mapping[str, Callable[[_Error], Iterator[str]]]] = {
    "type": _type,
    "additionalProperties": lambda error: unknown_keys(error.instance, error.schema),
    "required": _required,
    "enum": _enum,
    "format": lambda error: iter([str(error.cause)]),
}
_SENTENCES: Final = {
    "minItems": "it needs at least {value} item{s}",
    "minProperties": "it needs at least {value} key{s}",
    "maxItems": "the operators Exists and DoesNotExist take no values; remove them",
    "minLength": "it must not be empty",
    "minimum": "{shown} is less than the smallest allowed, {value}",
    "maximum": "{shown} is more than the largest allowed, {value}",
}


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def _check_period(text: str) -> None:
    if clock.parse_duration(text) <= 0:
        raise _FormatError(f"{text!r} is not longer than 0")


def _matches(fits: Callable[[str], object], what: str, longest: int | None = None) -> Callable[[str], None]:
    """Return a check; ``longest`` is how many characters there may be, if ``what`` does not say it."""

    def check(text: str) -> None:
        if longest is not None and len(text) > longest:
            raise _FormatError(f"{_shown(text)} has {len(text)} characters, and may have {longest}")
        if not fits(text):
            raise _FormatError(f"{text!r} is not {what}")

    return check


def _check_pointer(text: str) -> None:
    try:
        json_pointers.parse(text)
    except ValueError as error:
        raise _FormatError(f"{text!r} is not a JSON pointer: {error}") from None


def _check_jq(text: str) -> None:
    try:
        jq_programs.check(text or ".")
    except jq_programs.JqError as error:
        raise _FormatError(f"{_shown(text)} is not a jq expression: {error}") from None


_OBJECT_NAME_CHECK: Final = _matches(_OBJECT_NAME.fullmatch, "a name that an object of Kubernetes can have")
_API_VERSION_CHECK: Final = _matches(_API_VERSION.fullmatch, "an apiVersion; write one such as v1 or apps/v1")
_CHECKS: Final[Mapping[str, Callable[[str], object]]] = {
    "crontab": crontab.parse,
    "timezone": crontab.check_timezone,
    "period": _check_period,
    "jq": _check_jq,
    "label-key": _matches(names.is_label_key, "a label name of Kubernetes"),
    "label-value": _matches(names.is_label_value, "a label value of Kubernetes", names.LABEL_MAX),
    "object-name": _OBJECT_NAME_CHECK,
    "object-name-or-empty": lambda text: text and _OBJECT_NAME_CHECK(text),
    "json-pointer": _check_pointer,
    "metric-name": _matches(names.can_be_printed, "a name of a metric; use characters that can be printed"),
    "metric-label": _matches(
        lambda text: names.can_be_printed(text) and not names.of_prometheus(text).startswith("__"),
        "a name of a label; use characters that can be printed, and no '__' at the beginning",
    ),
    "api-version": _API_VERSION_CHECK,
    "crd-name": _matches(
        names.is_crd_name,
        "the name of a CustomResourceDefinition; write plural and group, such as crontabs.example.com",
        names.SUBDOMAIN_MAX,
    ),
    "dns-label": _matches(
        names.is_dns_label,
        "a name that can stand here; use lower-case letters, digits and '-'",
        names.LABEL_MAX,
    ),
    "webhook-name": _matches(
        names.is_webhook_name,
        "a name that a webhook can have; write a domain of at least three parts, such as hosts.shop.example",
        names.SUBDOMAIN_MAX,
    ),
    "rule-group": _matches(
        lambda text: text in _ANY_OR_NONE or names.is_subdomain(text),
        "an API group; write one such as apps, without a version, '' for the core group, or '*'",
        names.SUBDOMAIN_MAX,
    ),
    "rule-version": _matches(
        lambda text: text == _ANY or names.is_dns_label(text),
        "a version; write one such as v1, without a group, or '*'",
        names.LABEL_MAX,
    ),
    "rule-resource": _matches(
        # A kind is taken, with a warning: the API server takes it, too.
        lambda text: names.is_resource(text.replace(_ANY, "any").lower()),
        "a resource; write its plural in lower case, such as configmaps or pods/status, or '*'",
    ),
    "release-name": _matches(
        names.is_release_name,
        "a name that a Helm release can have; use at most 53 lower-case letters, digits, '-' and '.'",
    ),
    "module-name": _matches(
        names.is_module_name, "the name of a module; write it as its directory has it, without the number"
    ),
    "digest": _matches(_DIGEST.fullmatch, "a digest; write sha256: and 64 hexadecimal digits in lower case"),
    "version-range": version_ranges.check,
    "cluster-version": _matches(
        version_ranges.is_cluster_version, "the version of a cluster; write one such as v1.34.0"
    ),
    "kind": _matches(_KIND.fullmatch, "a kind; write it as manifests have it, such as ConfigMap"),
    "served-api": _matches(
        _SERVED_API.fullmatch, "an apiVersion; write group and version, such as apps/v1, without a kind"
    ),
    "api-version-or-empty": lambda text: text and _API_VERSION_CHECK(text),
}


def _accepting(check: Callable[[str], object]) -> Callable[[object], bool]:
    def accepts(value: object) -> bool:
        # A value of another type is the business of "type".
        if isinstance(value, str):
            check(value)
        return True

    return accepts


_FORMATS: Final = {name: _accepting(check) for name, check in _CHECKS.items()}
