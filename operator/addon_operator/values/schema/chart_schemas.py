"""The ``values.schema.json`` of a chart and of the charts within it, checked over what Helm makes of values.

Helm checks them, too: here they are checked before a value is taken over. What a schema refers to elsewhere
is never fetched and checks nothing.
"""

import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from addon_operator.documents import json_documents, json_pointers, patterns, yaml_loader
from addon_operator.kernel import json_types
from addon_operator.values import coalescing
from addon_operator.values.schema import schema_messages, schema_violations

if TYPE_CHECKING:
    import jsonschema

MAX_REFERENCES: Final = 2000
"""How many references of a schema are looked at for those that lead nowhere."""
_MOST_WARNINGS: Final = 20
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


@dataclasses.dataclass(frozen=True, slots=True)
class CheckedChart(coalescing.Chart):
    """A chart with its schema."""

    schema: json_types.JsonValue = None
    """``None`` if it has none."""
    source: str = ""
    """The schema's file."""

    @property
    def has_schemas(self) -> bool:
        """Whether it or a chart within it has one."""
        return self.schema is not None or any(each.has_schemas for each in self._within)

    @property
    def _within(self) -> "tuple[CheckedChart, ...]":
        return tuple(each for each in self.charts if isinstance(each, CheckedChart))


class ChartSchemas:
    """The schemas of one chart, ready to check values."""

    def __init__(self, chart: CheckedChart) -> None:
        self.chart: Final = chart
        self.source: Final = chart.source or next(_sources(chart), "")
        """A file, for what is said of all of them."""
        if chart.has_schemas:
            # In the thread that reads the chart: for the loop this takes too long.
            import jsonschema  # noqa: F401

    @property
    def definition(self) -> CheckedChart:
        """The chart, of which another process makes the same."""
        return self.chart

    @functools.cached_property
    def digest(self) -> str:
        """Equal for charts that are equal."""
        return hashlib.sha256(json_documents.encode(self.definition)).hexdigest()

    @functools.cached_property
    def warnings(self) -> tuple[str, ...]:
        """What checks nothing, one sentence each."""
        return tuple(itertools.islice(dict.fromkeys(_warnings(self.chart)), _MOST_WARNINGS))

    @functools.cached_property
    def leads_outside(self) -> bool:
        """Whether Helm would fetch what a schema refers to: files of this machine, or addresses."""
        return _leads_outside(self.chart)

    def violations(self, values: json_types.JsonObject) -> list[schema_violations.Violation]:
        """Return what the schemas do not allow in what the chart gets.

        Places begin below ``.Values``. Values are shown, sensitive ones too, but for mappings and lists.
        """
        chart = coalescing.remaining(self.chart, values)
        level = coalescing.coalesced(chart, values)
        violations = list(itertools.islice(_violations(chart, level, ()), schema_violations.MAX_VIOLATIONS))
        own = [
            one.keys
            for one in violations
            if one.value == "null" and not json_pointers.exists(values, one.keys)
        ]
        if not own:
            return violations
        # Helm 4 leaves out a null of the chart's own, and Helm 3 does not: both refuse it where the key is
        # required. That is how charts say that somebody has to set it.
        level = json_documents.copy(level)
        _leave_out(level, own)
        required = {(keys[:-1], f"{schema_messages.MISSING_KEY}{keys[-1]!r}") for keys in own}
        missing = [one for one in _violations(chart, level, ()) if (one.keys, one.rule) in required]
        return [one for one in violations if one.keys not in own] + missing


class SectionChart(msgspec.Struct, frozen=True):
    """The chart that a section's values are for."""

    arrange: Callable[[json_types.JsonObject], json_types.JsonObject]
    """Makes of ``global`` and the section what the chart gets."""
    read: Callable[[], ChartSchemas | None]
    """Gives the schemas; ``None`` as long as the chart is not there, or cannot be read."""
    below: tuple[str, ...] = ()
    """Where the section is in ``.Values``."""
    has_hooks: bool = False
    """Whether hooks may fill in what is missing."""


def _sources(chart: CheckedChart) -> Iterator[str]:
    for each in chart.charts:
        if isinstance(each, CheckedChart):
            yield from filter(None, (each.source,))
            yield from _sources(each)


def mistakes(schema: json_types.JsonValue) -> Iterator[str]:
    """Yield what is wrong with a schema by the rules of its dialect: Helm takes no chart with it."""
    if not isinstance(schema, dict | bool):
        yield "a schema is a mapping"
        return
    dialect = _dialect(schema)
    checker = dialect(dialect.META_SCHEMA)
    for error in itertools.islice(checker.iter_errors(schema), schema_violations.MAX_VIOLATIONS):
        for fault in schema_messages.explain(error):
            yield f"{json_pointers.format_path(fault.path)}: {fault.rule}".removeprefix(": ")


def chart_source(chart: coalescing.Chart) -> str:
    """Return the file of a chart's schema, or else its name."""
    return (chart.source if isinstance(chart, CheckedChart) else "") or f"chart {chart.name}"


def _violations(
    chart: coalescing.Chart, values: json_types.JsonObject, place: json_pointers.Path
) -> Iterator[schema_violations.Violation]:
    if isinstance(chart, CheckedChart) and chart.schema is not None:
        for fault, value in _faults(chart.schema, values):
            keys = (*place, *fault.path)
            shown = None
            if fault.shows_value and not isinstance(value, dict | list):
                shown = json_documents.encode(value).decode()
            yield schema_violations.Violation(
                json_pointers.format_path(keys), fault.rule, shown, chart.source, keys
            )
    for each in chart.charts:
        below = values.get(each.name)
        keys = (*place, each.name)
        if isinstance(below, dict):
            yield from _violations(each, below, keys)
        else:
            rule = f"must be a mapping: it is for the chart {each.name}"
            yield schema_violations.Violation(
                json_pointers.format_path(keys), rule, None, chart_source(chart), keys
            )


def _leave_out(values: json_types.JsonObject, places: list[json_pointers.Path]) -> None:
    """Remove keys, in place; what is in a list stays."""
    for *above, key in places:
        level = json_pointers.find(values, above)
        if isinstance(level, dict):
            level.pop(str(key), None)


_Found = tuple[schema_messages.Fault, json_types.JsonValue]


def _faults(schema: json_types.JsonValue, values: json_types.JsonObject) -> list[_Found]:
    """Return what is wrong, with the value there; nothing for an unusable schema: Helm says why."""
    if schema is False:
        return [
            (schema_messages.Fault((), "cannot be set: the schema allows nothing", shows_value=False), None)
        ]
    if not isinstance(schema, dict):
        return []
    import referencing

    try:
        checker = _extended(_dialect(schema))(schema, registry=referencing.Registry())
        return [
            (fault, json_pointers.find(values, fault.path) if fault.shows_value else None)
            for error in itertools.islice(checker.iter_errors(values), schema_violations.MAX_VIOLATIONS)
            for fault in _explained(error)
        ]
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - what a library makes of nonsense that it never checked
        return []


def _explained(error: "jsonschema.ValidationError") -> Iterator[schema_messages.Fault]:
    if error.schema is False:
        yield schema_messages.Fault(
            tuple(error.absolute_path), "has something that the schema does not allow", shows_value=False
        )
    else:
        yield from schema_messages.explain(error)


def _dialect(schema: json_types.JsonValue) -> Any:  # noqa: ANN401  # classes without a common type
    import jsonschema

    default = jsonschema.Draft202012Validator  # As Helm takes a schema that names none.
    named = schema.get("$schema") if isinstance(schema, dict) else None
    known = {"$schema": named} if isinstance(named, str) else {}
    try:
        return jsonschema.validators.validator_for(known, default=default)
    except ValueError:  # It is not an address at all.
        return default


@functools.cache
def _extended(dialect: Any) -> Any:  # noqa: ANN401  # classes without a common type
    """Return the same dialect with patterns that cannot take long, and references that may lead nowhere."""
    import jsonschema

    references = {
        keyword: _lenient(check) for keyword, check in dialect.VALIDATORS.items() if keyword in _REFERENCES
    }
    own = {"pattern": _pattern, "patternProperties": _pattern_properties, **references}
    return jsonschema.validators.extend(dialect, own)  # type: ignore[no-untyped-call]  # has no stub


_Errors: TypeAlias = "Iterator[jsonschema.ValidationError]"


def _lenient(check: "Callable[..., _Errors | None]") -> Callable[..., _Errors]:
    def checked(validator: Any, reference: Any, instance: Any, schema: Any) -> _Errors:  # noqa: ANN401
        import referencing.exceptions

        try:
            yield from check(validator, reference, instance, schema) or ()
        except referencing.exceptions.Unresolvable:
            return

    return checked


def _found(pattern: str, text: str) -> bool | None:
    """Say whether the pattern is found; ``None`` for what is not a pattern: it checks nothing."""
    try:
        return patterns.found(pattern, text)
    except patterns.PatternError:
        return None


def _pattern(_validator: object, pattern: str, value: object, _schema: object) -> _Errors:
    import jsonschema

    if isinstance(value, str) and _found(pattern, value) is False:
        yield jsonschema.ValidationError("does not match")


def _pattern_properties(validator: Any, demands: Any, instance: Any, _: object) -> _Errors:  # noqa: ANN401
    if not isinstance(instance, dict):
        return
    for pattern, inner in demands.items():
        for key in (key for key in instance if _found(pattern, key)):
            yield from validator.descend(instance[key], inner, path=key, schema_path=pattern)


def _warnings(chart: CheckedChart) -> Iterator[str]:
    if chart.schema is None and chart.source:
        yield (
            f"{chart.source}: it cannot be read here, because it is not JSON or nests deeper than "
            f"{yaml_loader.MAX_DEPTH} levels; nothing is checked by it"
        )
    if isinstance(chart.schema, dict):
        yield from _of_references(chart.schema, chart.source)
    for each in chart.charts:
        if isinstance(each, CheckedChart):
            yield from _warnings(each)


def _of_references(schema: dict[str, Any], source: str) -> Iterator[str]:
    resolver = _resolver(schema)
    if resolver is None:
        yield (
            f"{source}: nothing is checked by it, because it breaks the rules of schemas, and Helm refuses "
            "it; 'addon-operator module lint' says where"
        )
        return
    for reference in dict.fromkeys(itertools.islice(_references(schema), MAX_REFERENCES)):
        if not _leads_somewhere(resolver, reference):
            yield (
                f"{source}: nothing is checked by {reference!r}, which is not in the file; "
                "it is never fetched"
            )


def _is_unknown(dialect: str) -> bool:
    """Say whether Helm would fetch the rules of a dialect; draft 3 is one that it lacks, too."""
    import jsonschema

    try:
        validator = jsonschema.validators.validator_for(
            {"$schema": dialect}, default=jsonschema.Draft3Validator
        )
    except ValueError:  # It is not an address at all.
        return True
    return validator is jsonschema.Draft3Validator


def _leads_outside(chart: coalescing.Chart) -> bool:
    if isinstance(chart, CheckedChart):
        if chart.schema is None and chart.source:
            return True
        if any(not reference.startswith("#") for reference in _references(chart.schema)):
            return True
        if any(map(_is_unknown, _texts_below(chart.schema, ("$schema",)))):
            return True
    return any(map(_leads_outside, chart.charts))


def _resolver(schema: dict[str, Any]) -> Any | None:  # noqa: ANN401  # a private class
    """Return what finds references of a schema; ``None`` for nonsense, in which nothing can be found."""
    try:
        return _crawled(schema)
    except Exception:  # noqa: BLE001 - what a library makes of nonsense that it never checked
        return None


def _crawled(schema: dict[str, Any]) -> Any:  # noqa: ANN401  # a private class
    import referencing.jsonschema

    dialect = referencing.jsonschema.specification_with(
        _dialect(schema).META_SCHEMA.get("$schema", ""), default=referencing.jsonschema.DRAFT202012
    )
    resource = dialect.create_resource(schema)
    # Without this, each reference that leads nowhere would look through all of the schema.
    uri = resource.id() or ""
    return referencing.Registry().with_resource(uri, resource).crawl().resolver(base_uri=uri)


def _leads_somewhere(resolver: Any, reference: str) -> bool:  # noqa: ANN401  # a private class
    try:
        resolver.lookup(reference)
    except Exception:  # noqa: BLE001 - as above
        return False
    return True


def _references(schema: json_types.JsonValue) -> Iterator[str]:
    return _texts_below(schema, _REFERENCES)


def _texts_below(schema: Any, keywords: Sequence[str]) -> Iterator[str]:  # noqa: ANN401  # any JSON
    pending = [schema]
    while pending:
        inner = pending.pop()
        if isinstance(inner, dict):
            for keyword in keywords:
                if isinstance(text := inner.get(keyword), str):
                    yield text
            pending += inner.values()
        elif isinstance(inner, list):
            pending += inner
