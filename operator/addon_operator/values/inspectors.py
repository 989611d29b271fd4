"""Reading and checking values that somebody hands in: the work that takes long when they are made to.

What is asked stands here once. An inspector calls it in this process; that of :mod:`.values_worker` in
another one, which can be ended. Whatever else is done with values is linear in their size.
"""

import contextlib
from collections.abc import Callable
from typing import Any, Final

from addon_operator.documents import json_documents
from addon_operator.kernel import json_types, names
from addon_operator.values import config_map_reader, sources
from addon_operator.values.schema import chart_schemas, schema_violations, schema_walk, schemas

MAX_VALUES_BYTES: Final = 16 << 20
"""How large a section may be as JSON once aliases are written out and defaults are filled in."""
Violations = list[schema_violations.Violation]


class LostError(Exception):
    """A call took too long or too much; the text is what to say of its arguments."""


class Inspector:
    """Reads and checks what people hand in; in this process, for what is our own user's."""

    def __init__(self, counts: Callable[[schema_violations.Violation], bool] = lambda _: True) -> None:
        """Report of what is wrong only what ``counts`` says."""
        self._counts = counts

    def within(self, seconds: float) -> contextlib.AbstractContextManager[None]:  # noqa: ARG002 - no bound here
        """Bound all that the block asks for together to so many seconds; what takes longer is wrong."""
        return contextlib.nullcontext()

    def call(self, function: Callable[..., Any], *arguments: Any, gives: Any = Any) -> Any:  # noqa: ANN401, ARG002
        """Call a function of a module and return its result, which is of the type ``gives``.

        Raises :class:`LostError`, and :class:`.ConfigurationError` if the function does.
        """
        return function(*arguments)

    def parse_section(self, key: str, text: str) -> json_types.JsonObject:
        """Parse a section's text in the ConfigMap; raises a :class:`.ConfigurationError` if it is not one."""
        try:
            section: json_types.JsonObject = self.call(config_map_reader.parse_section, key, text)
        except LostError as error:
            raise sources.ValuesFileError(f"key {key!r}: {error}") from None
        return section

    def config_violations(
        self,
        key: names.ValuesKey,
        files: json_types.JsonObject,
        config: json_types.JsonObject,
        before: json_types.JsonObject | None,
        section_schemas: schemas.SectionSchemas,
    ) -> Violations:
        """Return what the section's schemas do not allow if the ConfigMap says ``config``.

        ``files``: what the ``values.yaml`` files say of the section. ``before``: what the ConfigMap says now,
        for rules about transitions; ``None`` if that was never in force, or stays.
        """
        checked = schemas.SectionSchemas(section_schemas.config, section_schemas.values)
        schema = checked.config
        if schema is None or not schema.has_rules:
            before = None
        source = next((each.source for each in (schema, checked.values) if each is not None), "")
        return self._violations(key, source, _config_violations, key, files, config, before, checked)

    def values_violations(
        self,
        key: names.ValuesKey,
        value: json_types.JsonObject,
        before: json_types.JsonObject | None,
        schema: schemas.Schema,
        *,
        for_helm: bool,
    ) -> Violations:
        """Return what the values schema does not allow.

        ``before``: the last values that it allowed, for rules about transitions; ``None`` if nothing changes.
        ``for_helm``: whether ``x-required-for-helm`` counts.
        """
        before = before if schema.has_rules else None
        return self._violations(key, schema.source, _values_violations, key, value, before, schema, for_helm)

    def chart_violations(
        self, values: json_types.JsonObject, chart: chart_schemas.ChartSchemas
    ) -> Violations:
        """Return what a chart's schemas do not allow in what it gets, see :class:`.ChartSchemas`."""
        return self._violations("", chart.source, _chart_violations, values, chart)

    def _violations(
        self,
        key: str,
        source: str,
        function: Callable[..., Violations],
        *arguments: Any,  # noqa: ANN401
    ) -> Violations:
        try:
            found = self.call(function, *arguments, gives=Violations)
        except LostError as error:
            keys = (key,) if key else ()
            found = [schema_violations.Violation(key, f"cannot be checked: {error}", None, source, keys)]
        return [one for one in found if self._counts(one)]


HERE: Final = Inspector()
"""For tests, and for whoever checks files of his own and can end the process."""


def configured(
    files: json_types.JsonObject, config: json_types.JsonObject, section_schemas: schemas.SectionSchemas
) -> json_types.JsonObject:
    """Return the files and a state of the ConfigMap, with the config schema's defaults: what it sees."""
    value = sources.merge(files, config)
    if section_schemas.config is not None:
        section_schemas.config.fill(value)
    return value


def _config_violations(
    key: names.ValuesKey,
    files: json_types.JsonObject,
    config: json_types.JsonObject,
    before: json_types.JsonObject | None,
    checked: schemas.SectionSchemas,
) -> Violations:
    source = next((each.source for each in (checked.values, checked.config) if each is not None), "values")

    def of_section(rule: str) -> Violations:
        return [schema_violations.Violation(key, rule, None, source, (key,))]

    try:
        value = configured(files, config, checked)
        if (schema := checked.config) is not None:
            old = None if before is None else configured(files, before, checked)
            if violations := schema.violations(key, value, old):
                return violations
        if checked.values is not None:
            checked.values.fill(value)
    except schema_walk.TooManyDefaultsError as error:
        return of_section(f"cannot be filled in: of the schema, {error}")
    if len(json_documents.encode(value)) <= MAX_VALUES_BYTES:
        return []
    most = f"{MAX_VALUES_BYTES >> 20} MiB"
    return of_section(f"must have at most {most} once aliases are written out and defaults filled in")


def _values_violations(
    key: names.ValuesKey,
    value: json_types.JsonObject,
    before: json_types.JsonObject | None,
    schema: schemas.Schema,
    for_helm: bool,
) -> Violations:
    return schema.violations(key, value, before, for_helm=for_helm)


def _chart_violations(values: json_types.JsonObject, chart: chart_schemas.ChartSchemas) -> Violations:
    return chart.violations(values)
