"""Reading and checking values that somebody hands in: the work that takes long when they are made to.

It needs nothing but what it is given, so that it can be done in another process, which can be ended: see
:mod:`.values_worker`. Whatever else is done with values is linear in their size.
"""

import abc
import contextlib
from collections.abc import Callable, Iterable
from typing import Final

from addon_operator.documents import json_documents
from addon_operator.kernel import json_types, names
from addon_operator.values import config_map_reader, sources
from addon_operator.values.schema import chart_schemas, schema_violations, schema_walk, schemas

MAX_VALUES_BYTES: Final = 16 << 20
"""How large a section may be as JSON once aliases are written out and defaults are filled in."""


def configured(
    files: json_types.JsonObject, config: json_types.JsonObject, section_schemas: schemas.SectionSchemas
) -> json_types.JsonObject:
    """Return the files and a state of the ConfigMap, with the config schema's defaults: what it sees."""
    value = sources.merge(files, config)
    if section_schemas.config is not None:
        section_schemas.config.fill(value)
    return value


class Inspector(abc.ABC):
    """Reads and checks what people hand in: in this process, or in a worker process with bounds."""

    @abc.abstractmethod
    def within(self, seconds: float) -> contextlib.AbstractContextManager[None]:
        """Bound all that the block asks for together to so many seconds; what takes longer is wrong."""

    @abc.abstractmethod
    def parse_section(self, key: str, text: str) -> json_types.JsonObject:
        """Parse a section's text in the ConfigMap.

        Raises a :class:`.ConfigurationError` if it is not one.
        """

    @abc.abstractmethod
    def config_violations(
        self,
        key: names.ValuesKey,
        files: json_types.JsonObject,
        config: json_types.JsonObject,
        before: json_types.JsonObject | None,
        section_schemas: schemas.SectionSchemas,
    ) -> list[schema_violations.Violation]:
        """Return what the section's schemas do not allow if the ConfigMap says ``config``.

        ``files``: what the ``values.yaml`` files say of the section. ``before``: what the ConfigMap says now,
        for rules about transitions; ``None`` if that was never in force, or stays.
        """

    @abc.abstractmethod
    def values_violations(
        self,
        key: names.ValuesKey,
        value: json_types.JsonObject,
        before: json_types.JsonObject | None,
        schema: schemas.Schema,
        *,
        for_helm: bool,
    ) -> list[schema_violations.Violation]:
        """Return what the values schema does not allow.

        ``before``: the last values that it allowed, for rules about transitions; ``None`` if nothing changes.
        ``for_helm``: whether ``x-required-for-helm`` counts.
        """

    @abc.abstractmethod
    def chart_violations(
        self, values: json_types.JsonObject, chart: chart_schemas.ChartSchemas
    ) -> list[schema_violations.Violation]:
        """Return what a chart's schemas do not allow in what it gets, see :class:`.ChartSchemas`."""


class LocalInspector(Inspector):
    """Reads and checks in this process, without a bound on time and memory: for what is our own user's."""

    def __init__(self, counts: Callable[[schema_violations.Violation], bool] = lambda _: True) -> None:
        """Tell of what is wrong only what ``counts`` says."""
        self._counts = counts

    def within(self, seconds: float) -> contextlib.AbstractContextManager[None]:  # noqa: ARG002 - no bound here
        """Bound nothing: what is read here ends by itself."""
        return contextlib.nullcontext()

    def parse_section(self, key: str, text: str) -> json_types.JsonObject:
        """See :class:`Inspector`."""
        return config_map_reader.parse_section(key, text)

    def config_violations(
        self,
        key: names.ValuesKey,
        files: json_types.JsonObject,
        config: json_types.JsonObject,
        before: json_types.JsonObject | None,
        section_schemas: schemas.SectionSchemas,
    ) -> list[schema_violations.Violation]:
        """See :class:`Inspector`."""
        try:
            value = configured(files, config, section_schemas)
        except schema_walk.TooManyDefaultsError as error:
            return self._told([_too_many(key, error, section_schemas)])
        violations: list[schema_violations.Violation] = []
        if (schema := section_schemas.config) is not None:
            old = None
            if schema.has_rules and before is not None:
                old = configured(files, before, section_schemas)
            violations = schema.violations(key, value, old)
        return self._told(violations or _too_large(key, value, section_schemas))

    def values_violations(
        self,
        key: names.ValuesKey,
        value: json_types.JsonObject,
        before: json_types.JsonObject | None,
        schema: schemas.Schema,
        *,
        for_helm: bool,
    ) -> list[schema_violations.Violation]:
        """See :class:`Inspector`."""
        return self._told(schema.violations(key, value, before, for_helm=for_helm))

    def chart_violations(
        self, values: json_types.JsonObject, chart: chart_schemas.ChartSchemas
    ) -> list[schema_violations.Violation]:
        """See :class:`Inspector`."""
        return self._told(chart.violations(values))

    def _told(self, violations: Iterable[schema_violations.Violation]) -> list[schema_violations.Violation]:
        return [one for one in violations if self._counts(one)]


HERE: Final = LocalInspector()
"""For tests, and for whoever checks files of his own and can end the process."""


def _too_large(
    key: names.ValuesKey, value: json_types.JsonObject, section_schemas: schemas.SectionSchemas
) -> list[schema_violations.Violation]:
    if section_schemas.values is not None:
        try:
            section_schemas.values.fill(value)
        except schema_walk.TooManyDefaultsError as error:
            return [_too_many(key, error, section_schemas)]
    if len(json_documents.encode(value)) <= MAX_VALUES_BYTES:
        return []
    rule = (
        f"must have at most {MAX_VALUES_BYTES >> 20} MiB once aliases are written out and defaults filled in"
    )
    return [_of_section(key, rule, section_schemas)]


def _too_many(
    key: names.ValuesKey, error: schema_walk.TooManyDefaultsError, section_schemas: schemas.SectionSchemas
) -> schema_violations.Violation:
    return _of_section(key, f"cannot be filled in: of the schema, {error}", section_schemas)


def _of_section(
    key: names.ValuesKey, rule: str, section_schemas: schemas.SectionSchemas
) -> schema_violations.Violation:
    schema = section_schemas.values or section_schemas.config
    source = "values" if schema is None else schema.source
    return schema_violations.Violation(key, rule, None, source, (key,))
