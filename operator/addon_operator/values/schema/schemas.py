"""Schemas of values: what they check, what they fill in, and what they hide.

Source: "Validation" of the addon-operator documentation; the dialect is the OpenAPI 3.0 schema object as
Kubernetes uses it.
"""

import contextlib
import functools
import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import structs

from addon_operator.documents import json_documents, json_pointers, json_schemas
from addon_operator.kernel import json_types
from addon_operator.values.schema import (
    cel_rules,
    chart_schemas,
    schema_keywords,
    schema_loading,
    schema_messages,
    schema_rules,
    schema_violations,
    schema_walk,
    sensitive_keys,
)

HIDDEN: Final = sensitive_keys.HIDDEN
"""What is shown of a value that the schema marks ``x-sensitive``."""
_SHOWN: Final = 80


class Schema:
    """A schema that was checked and prepared."""

    def __init__(
        self,
        definition: Mapping[str, Any],
        source: str,
        evaluator: schema_rules.RuleEvaluator,
        warnings: Sequence[str] = (),
    ) -> None:
        """``definition`` and ``warnings`` come from :mod:`.schema_loading`."""
        self.definition: Final = definition
        self.warnings: Final = tuple(warnings)
        self.source: Final = source
        self._definitions: Mapping[str, Any] = definition.get("definitions", {})
        self._rules = schema_rules.RuleChecker(evaluator, self._definitions)
        self.has_rules: Final = any(
            schema_rules.rules_of(inner) for _, inner in schema_walk.subschemas(definition)
        )
        """Whether there is a rule in CEL, which may look at the values before."""

    def violations(
        self,
        root: str,
        value: json_types.JsonObject,
        old: json_types.JsonObject | None = None,
        *,
        for_helm: bool = False,
    ) -> list[schema_violations.Violation]:
        """Return all that the schema does not allow in a section; ``root`` is the section's key.

        ``old`` are the values before, for transition rules, ``None`` or empty if there were none;
        ``for_helm`` demands ``x-required-for-helm`` too.
        """
        checks = self._helm_checks if for_helm else self._checks
        faults = (one for error in checks.errors(value) for one in schema_messages.explain(error))
        return self._violations(root, value, faults) or self._violations(
            root, value, self._faults_by_rules(value, old)
        )

    @functools.cached_property
    def _checks(self) -> json_schemas.Validator:
        return json_schemas.Validator(schema_keywords.prepare(self.definition), schema_keywords.FORMATS)

    @functools.cached_property
    def _helm_checks(self) -> json_schemas.Validator:
        return json_schemas.Validator(
            schema_keywords.prepare(self.definition, for_helm=True), schema_keywords.FORMATS
        )

    def skipped_rules(self, root: str, value: json_types.JsonObject) -> list[schema_violations.Violation]:
        """Return the rules that count as held, because they cannot be evaluated over a section."""
        faults = self._faults_by_rules(value, None, skipped=True)
        return self._violations(root, value, faults)

    def _faults_by_rules(
        self, value: json_types.JsonObject, old: json_types.JsonObject | None, *, skipped: bool = False
    ) -> Iterator[schema_messages.Fault]:
        if self.has_rules:
            for broken in self._rules.broken(self.definition, value, old or schema_rules.ABSENT):
                if broken.is_skipped is skipped:
                    yield schema_messages.Fault(broken.path, broken.message, not skipped)

    def _violations(
        self, root: str, value: json_types.JsonObject, faults: Iterator[schema_messages.Fault]
    ) -> list[schema_violations.Violation]:
        """Return the first of them."""
        first = list(itertools.islice(faults, schema_violations.MAX_VIOLATIONS))
        masked = self.masked(value) if first else {}
        return [self._violation(root, masked, one) for one in first]

    def _violation(
        self, root: str, masked: json_types.JsonObject, fault: schema_messages.Fault
    ) -> schema_violations.Violation:
        shown = _shown(masked, fault.path) if fault.shows_value else None
        keys = (root, *fault.path)
        return schema_violations.Violation(
            json_pointers.format_path(keys), fault.rule, shown, self.source, keys
        )

    @functools.cached_property
    def digest(self) -> str:
        """Equal for schemas that are equal."""
        return hashlib.sha256(json_documents.encode([self.definition, self.source])).hexdigest()

    def fill(self, value: json_types.JsonObject) -> None:
        """Fill missing keys with the schema's defaults, at any depth, in place."""
        schema_walk.fill([self.definition], value, self._definitions)

    def fill_at(self, path: Sequence[str], value: json_types.JsonValue) -> None:
        """Fill what would stand at ``path`` (tokens of a JSON Pointer below the section), in place."""
        schemas: list[Mapping[str, Any]] = [self.definition]
        for token in path:
            schemas = [
                child
                for facet in schema_walk.facets(schemas, self._definitions)
                for child in schema_walk.children([facet], _key_or_index(facet, token))
            ]
        schema_walk.fill(schemas, value, self._definitions)

    def masked(self, value: json_types.JsonObject) -> json_types.JsonObject:
        """Return a copy of a section that shows :data:`HIDDEN` for each sensitive value."""
        masked = _masked([self.definition], value, self._definitions)
        return masked if isinstance(masked, dict) else {}

    def masked_at(self, path: Sequence[str], value: json_types.JsonValue) -> json_types.JsonValue:
        """Copy what stands, or will stand, at ``path`` (tokens of a JSON Pointer below the section)."""
        schemas: list[Mapping[str, Any]] = [self.definition]
        for token in path:
            facets = schema_walk.facets(schemas, self._definitions, alternatives=True)
            if _is_sensitive(facets):
                return HIDDEN
            # The values are not at hand to tell a list from a mapping whose keys are numbers.
            keys = (token, schema_walk.ANY_ITEM) if json_pointers.is_index(token) else (token,)
            schemas = [child for key in keys for child in schema_walk.children(facets, key)]
        return _masked(schemas, value, self._definitions)


def _shown(masked: Any, path: json_pointers.Path) -> str:  # noqa: ANN401  # any JSON
    for key in path:
        if masked == HIDDEN:
            return HIDDEN
        masked = masked[key]
    if masked == HIDDEN:
        return HIDDEN
    text = json_documents.encode(masked).decode()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


_NOTHING: Final = sensitive_keys.SensitiveKeys()


class SectionSchemas(msgspec.Struct, frozen=True):
    """The schemas of one section; without one, nothing is checked or filled."""

    config: Schema | None = None
    """``openapi/config-values.yaml``: what ``values.yaml`` files and the ConfigMap may say."""
    values: Schema | None = None
    """``openapi/values.yaml``: what they and the patches of hooks may make."""

    chart: chart_schemas.SectionChart | None = None
    """The chart as upstream publishes it, which may have a schema of its own."""
    hidden: sensitive_keys.SensitiveKeys = _NOTHING
    """What is hidden beside what the schemas call sensitive."""

    def of_all_values(self, *, hooks: bool) -> Schema | None:
        """Return the schema that all values of the section keep to; ``hooks``: whether some set values.

        Without ``openapi/values.yaml``, hooks may set whatever they want.
        """
        return self.values or (None if hooks else self.config)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What checks nothing in the files."""
        chart = None if self.chart is None else self.chart.read()
        checks = (self.config, self.values, chart)
        return tuple(warning for check in checks if check is not None for warning in check.warnings)

    def masked(self, value: json_types.JsonObject) -> json_types.JsonObject:
        """Return a copy of the section that hides what any of the schemas calls sensitive."""
        for schema in (self.config, self.values):
            if schema is not None:
                value = schema.masked(value)
        return cast("json_types.JsonObject", json_documents.copy_value(self.hidden.masked(value)))

    def masked_at(self, path: Sequence[str], value: json_types.JsonValue) -> json_types.JsonValue:
        """Return a copy of what is written at ``path``, without what any of the schemas calls sensitive."""
        for schema in (self.config, self.values):
            if schema is not None:
                value = schema.masked_at(path, value)
        return self.hidden.masked_at(path, value)

    def without_hidden(
        self, violations: Sequence[schema_violations.Violation]
    ) -> list[schema_violations.Violation]:
        """Return what is wrong with the section, without values that are hidden."""
        return (
            [structs.replace(one, value=self._shown(one)) for one in violations]
            if self.hidden
            else list(violations)
        )

    def _shown(self, violation: schema_violations.Violation) -> str | None:
        if violation.value is None or violation.value == HIDDEN:
            return violation.value
        if violation.value.startswith(("{", "[")):
            # It may hold what is hidden, and is cut.
            return HIDDEN
        value: json_types.JsonValue = violation.value.strip('"')
        with contextlib.suppress(ValueError):
            value = json_documents.decode(violation.value)
        shown = self.masked_at([str(key) for key in violation.keys[1:]], value)
        return HIDDEN if shown == HIDDEN else violation.value


def load_schemas(
    config: tuple[str, str] | None = None,
    values: tuple[str, str] | None = None,
    evaluator: schema_rules.RuleEvaluator | None = None,
    read: schema_loading.FileReader | None = None,
) -> SectionSchemas:
    """Load the schemas of a section from its files' texts and names, ``None`` for a missing file.

    Sections that share an ``evaluator`` share what it prepared; ``read`` gives files that others refer to.

    Raises :class:`.SchemaError` or
    :class:`.YamlError`, which name file and position.
    """
    evaluator = evaluator or cel_rules.CelEvaluator()
    config_schema = None if config is None else load_schema(*config, evaluator=evaluator, read=read)
    if values is None:
        return SectionSchemas(config_schema)
    parent = None if config_schema is None else config_schema.definition
    return SectionSchemas(config_schema, load_schema(*values, parent=parent, evaluator=evaluator, read=read))


def load_schema(
    text: str,
    source: str,
    parent: Mapping[str, Any] | None = None,
    evaluator: schema_rules.RuleEvaluator | None = None,
    read: schema_loading.FileReader | None = None,
) -> Schema:
    """Return one schema; ``parent`` is the definition that ``x-extend`` means, ``read`` gives other files.

    Raises :class:`.SchemaError` or
    :class:`.YamlError`, which name file and position.
    """
    evaluator = evaluator or cel_rules.CelEvaluator()
    loaded = schema_loading.load(text, source, parent, evaluator, read)
    return Schema(loaded.definition, source, evaluator, loaded.warnings)


def _key_or_index(facet: Mapping[str, Any], token: str) -> str | int:
    if "items" not in facet or not json_pointers.is_index(token):
        return token
    return int(token) if token.isdecimal() else 0


def _masked(
    schemas: Sequence[Mapping[str, Any]], value: json_types.JsonValue, definitions: Mapping[str, Any]
) -> json_types.JsonValue:
    facets = schema_walk.facets(schemas, definitions, alternatives=True)
    if _is_sensitive(facets):
        return HIDDEN
    masked = {
        key: _masked(schema_walk.children(facets, key), inner, definitions)
        for key, inner in schema_walk.items_of(value)
    }
    if isinstance(value, list):
        return list(masked.values())
    return cast("json_types.JsonObject", masked) if isinstance(value, dict) else value


def _is_sensitive(facets: Sequence[Mapping[str, Any]]) -> bool:
    return any(facet.get(schema_keywords.SENSITIVE) for facet in facets)
