"""Checks of values of which some are stand-ins: what is wrong with those says nothing."""

from collections.abc import Collection, Iterable

from addon_operator.documents import json_pointers
from addon_operator.kernel import json_types, names
from addon_operator.values import inspectors
from addon_operator.values.schema import chart_schemas, schema_violations, schemas

Violations = list[schema_violations.Violation]


class LenientInspector(inspectors.LocalInspector):
    """Passes over what is wrong with hidden values, and with what holds them."""

    def __init__(self, hidden: Collection[str]) -> None:
        """``hidden``: places of values, as JSON pointers with their section's key."""
        places = [json_pointers.parse(place) for place in hidden]
        self._below = {place[:length] for place in places for length in range(len(place))}
        self._places = set(places)
        # The values of a chart from a repository have no section of their own.
        self._below |= {place[1:] for place in self._below}
        self._places |= {place[1:] for place in places}

    def config_violations(
        self,
        key: names.ValuesKey,
        files: json_types.JsonObject,
        config: json_types.JsonObject,
        before: json_types.JsonObject | None,
        section_schemas: schemas.SectionSchemas,
    ) -> Violations:
        """See :meth:`.LocalInspector.config_violations`."""
        return self._told(super().config_violations(key, files, config, before, section_schemas))

    def values_violations(
        self,
        key: names.ValuesKey,
        value: json_types.JsonObject,
        before: json_types.JsonObject | None,
        schema: schemas.Schema,
        *,
        for_helm: bool,
    ) -> Violations:
        """See :meth:`.LocalInspector.values_violations`."""
        return self._told(super().values_violations(key, value, before, schema, for_helm=for_helm))

    def chart_violations(
        self, values: json_types.JsonObject, chart: chart_schemas.ChartSchemas
    ) -> Violations:
        """See :meth:`.LocalInspector.chart_violations`."""
        return self._told(super().chart_violations(values, chart))

    def _told(self, violations: Iterable[schema_violations.Violation]) -> Violations:
        return [one for one in violations if not self._is_about_hidden(one)]

    def _is_about_hidden(self, violation: schema_violations.Violation) -> bool:
        keys = tuple(str(key) for key in violation.keys)
        if keys in self._below:
            return not violation.is_missing_key
        return any(keys[:length] in self._places for length in range(1, len(keys) + 1))
