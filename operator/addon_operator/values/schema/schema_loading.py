"""Reading schema files: a wrong one is an error here, with its position, not a surprise later."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import jsonschema

from addon_operator.documents import json_schemas, patterns, yaml_reading
from addon_operator.kernel import errors
from addon_operator.values.schema import (
    schema_defaults,
    schema_keywords,
    schema_leniency,
    schema_messages,
    schema_references,
    schema_rules,
    schema_walk,
)

_META: Final = json_schemas.Validator(schema_keywords.META, jsonschema.FormatChecker(formats=()))
_INHERITED_MAPS: Final = ("definitions", "properties", "patternProperties")
_INHERITED_TEXTS: Final = ("title", "description")


class SchemaError(errors.ConfigurationError):
    """A schema file is wrong; each of the ``problems`` names file, position and keyword."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
        """One sentence each."""


@dataclasses.dataclass(frozen=True, slots=True)
class LoadedSchema:
    """A schema that can be used."""

    definition: dict[str, Any]
    """Joined with what it extends and with what it refers to in other files."""
    warnings: tuple[str, ...] = ()
    """What checks nothing in it, one sentence each, by file, line and column."""


def load(
    text: str,
    source: str,
    parent: Mapping[str, Any] | None = None,
    evaluator: schema_rules.RuleEvaluator | None = None,
    read: schema_references.FileReader | None = None,
) -> LoadedSchema:
    """The schema of a file, joined with ``parent`` if it says ``x-extend``; an empty file allows everything.

    ``read`` gives files that it refers to. Raises :class:`SchemaError` or
    :class:`.YamlError`.
    """
    document = yaml_reading.load_document(text, source, last_wins=True)
    reader = schema_leniency.LenientReader()
    main = schema_references.Part(document, (), reader.read(document.value))
    notes = [main.remark(*note) for note in (*document.repeated, *reader.notes)]
    _raise_all(_meta_problems(main))
    linker = schema_references.Linker(_meta_problems, read)
    linker.link(main)
    _raise_all(linker.problems)
    if schema_keywords.EXTEND in main.schema and parent is None:
        problem = f"there is no {schema_keywords.CONFIG_SCHEMA_FILE} to extend; this has no effect"
        notes.append(main.remark((schema_keywords.EXTEND,), problem))
    extended = _extended(main.schema, _with_parts(linker.parts), parent)
    checked = [main, *linker.parts.values()]
    _raise_all(found for part in checked for found in _details(part, extended, evaluator))
    _raise_all(_recursion_problems(main, extended))
    return LoadedSchema(extended, tuple(_sentences([*notes, *linker.notes])))


def _sentences(remarks: Iterable[schema_references.Remark]) -> list[str]:
    return list(dict.fromkeys(map(str, sorted(remarks, key=lambda remark: remark.order))))


def _raise_all(problems: Iterable[schema_references.Remark]) -> None:
    if found := _sentences(problems):
        raise SchemaError(tuple(found))


def _meta_problems(part: schema_references.Part) -> list[schema_references.Remark]:
    told = (one for error in _META.errors(part.schema) for one in schema_messages.explain(error))
    return [part.remark(one.path, one.rule) for one in told]


_Problem = tuple[tuple[str | int, ...], str]


def _details(
    part: schema_references.Part, whole: Mapping[str, Any], evaluator: schema_rules.RuleEvaluator | None
) -> Iterator[schema_references.Remark]:
    definitions = whole.get("definitions", {})
    for path, inner in schema_walk.subschemas(part.schema):
        found = (
            *_pattern_problems(path, inner),
            *_reference_problems(path, inner, definitions),
            *_rule_problems(path, inner, evaluator),
        )
        yield from (part.remark(*problem) for problem in found)


def _pattern_problems(path: tuple[str | int, ...], schema: Mapping[str, Any]) -> Iterator[_Problem]:
    keys = [(("patternProperties", pattern), pattern) for pattern in schema.get("patternProperties", {})]
    own = [(("pattern",), schema["pattern"])] if "pattern" in schema else []
    for place, pattern in (*own, *keys):
        try:
            patterns.check(pattern)
        except patterns.PatternError as error:
            yield (*path, *place), str(error)


def _reference_problems(
    path: tuple[str | int, ...], schema: Mapping[str, Any], definitions: Mapping[str, Any]
) -> Iterator[_Problem]:
    name = schema.get("$ref", "").removeprefix(schema_walk.REFERENCE_PREFIX)
    if "$ref" in schema and name not in definitions:
        yield (*path, "$ref"), f"there is no definition {name!r}"


def _rule_problems(
    path: tuple[str | int, ...],
    schema: Mapping[str, Any],
    evaluator: schema_rules.RuleEvaluator | None,
) -> Iterator[_Problem]:
    for keyword in schema_rules.RULE_KEYWORDS if evaluator is not None else ():
        for index, rule in enumerate(schema_rules.rules_of({keyword: schema.get(keyword, ())})):
            try:
                evaluator.check(rule.expression)  # type: ignore[union-attr]  # the loop is empty without one
            except schema_rules.RuleError as error:
                yield (*path, keyword, index), f"the rule cannot be read: {error}"


def _recursion_problems(
    part: schema_references.Part, schema: Mapping[str, Any]
) -> Iterator[schema_references.Remark]:
    try:
        schema_defaults.fill([schema], {}, schema.get("definitions", {}))
    except RecursionError:
        yield part.remark((), "a definition holds itself without end, in allOf or through its default")


def _with_parts(parts: Mapping[str, schema_references.Part]) -> dict[str, Any]:
    """What was referred to, as definitions; the definitions within it are among them already."""
    return {
        name: {key: value for key, value in part.schema.items() if key != "definitions"}
        for name, part in parts.items()
    }


def _extended(
    child: Mapping[str, Any], parts: Mapping[str, Any], parent: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The child with what it refers to, over what comes along from the parent ("Extending" in the docs)."""
    own = {key: value for key, value in child.items() if key != schema_keywords.EXTEND}
    if parts:
        own["definitions"] = {**parts, **own.get("definitions", {})}
    if parent is None or schema_keywords.EXTEND not in child:
        return own
    result = {key: value for key, value in parent.items() if _comes_along(key)} | own
    for keyword in _INHERITED_MAPS:
        if keyword in parent or keyword in own:
            result[keyword] = {**parent.get(keyword, {}), **own.get(keyword, {})}
    required = [*parent.get("required", ()), *own.get("required", ())]
    if required:
        result["required"] = list(dict.fromkeys(required))
    return result


def _comes_along(keyword: str) -> bool:
    """Whether a keyword of the parent holds for its child as a whole."""
    return keyword in _INHERITED_TEXTS or keyword.startswith("x-")
