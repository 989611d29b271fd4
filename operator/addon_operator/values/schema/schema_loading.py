"""Read schema files and follow their references.

A wrong file is an error here, with its position, not a surprise later. ``$ref`` leads to definitions of the
same file, and to any place of it or of a file beside it.
"""

import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from addon_operator.documents import json_pointers, json_schemas, patterns, yaml_reading
from addon_operator.kernel import errors
from addon_operator.values.schema import (
    schema_keywords,
    schema_leniency,
    schema_messages,
    schema_rules,
    schema_walk,
)

FileReader = Callable[[str, str], tuple[str, str]]
"""Gives the text and the name of a file, from the name of the file that refers to it and a relative path.

Raises a :class:`.ConfigurationError` for one that may not or cannot be read.
"""


class Remark(msgspec.Struct, frozen=True):
    """What there is to say of a place in a schema file."""

    document: yaml_reading.Document
    path: json_pointers.Path
    text: str

    @property
    def order(self) -> tuple[str, int, int, str]:
        """By file, line and column."""
        position = self.document.position(self.path) or yaml_reading.Position(0, 0)
        return self.document.source, position.line, position.column, self.text

    def __str__(self) -> str:
        key = f", {json_pointers.format_path(self.path)}" if self.path else ""
        return f"{self.document.where(self.path)}{key}: {self.text}"


class SchemaPart(msgspec.Struct, frozen=True):
    """A schema as it stands in a file: a whole file, or what a reference leads to."""

    document: yaml_reading.Document
    path: json_pointers.Path
    """Where in the document."""
    schema: Any
    """Not to be trusted before it is checked."""

    def remark(self, path: json_pointers.Path, text: str) -> Remark:
        """Return what there is to say of a place, by its path below the part."""
        return Remark(self.document, (*self.path, *path), text)


_OF_CONTAINERS: Final = frozenset({"type", "nullable"})
_OF_SCALARS: Final = _OF_CONTAINERS | {
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maximum",
    "maxLength",
    "minimum",
    "minLength",
    "multipleOf",
    "pattern",
}


class _NoPlaceError(Exception):
    """A reference leads nowhere; the text is the reason."""


class Linker:
    """Brings what a file refers to into its own definitions."""

    def __init__(self, check: Callable[[SchemaPart], list[Remark]], read: FileReader | None) -> None:
        """``check`` says what makes a part unusable; without ``read`` no other file may be referred to."""
        self._check = check
        self._read = read
        self._documents: dict[str, yaml_reading.Document] = {}
        self.parts: Final[dict[str, SchemaPart]] = {}
        """What was referred to, by the name among the definitions."""
        self.problems: Final[list[Remark]] = []
        self.notes: Final[list[Remark]] = []

    def link(self, part: SchemaPart, *, is_main: bool = True) -> None:
        """Rewrite the references of a checked part, in place, so that all of them lead to definitions."""
        for path, schema in list(schema_walk.subschemas(part.schema)):
            reference = schema.get("$ref")
            if reference is None or (is_main and _is_plain(reference)):
                continue
            try:
                name = self._name(part.document, reference)
            except (_NoPlaceError, errors.ConfigurationError) as error:
                self.problems.append(part.remark((*path, "$ref"), str(error)))
            else:
                schema["$ref"] = schema_walk.REFERENCE_PREFIX + name

    def _name(self, document: yaml_reading.Document, reference: str) -> str:
        file, _, fragment = reference.partition("#")
        target = self._document(document, urllib.parse.unquote(file)) if file else document
        name = f"{target.source}#{fragment}"
        if name not in self.parts:
            self._take(name, target, urllib.parse.unquote(fragment), reference)
        return name

    def _document(self, document: yaml_reading.Document, file: str) -> yaml_reading.Document:
        if self._read is None:
            raise _NoPlaceError(f"{file!r} is another file, and there is none here")
        text, source = self._read(document.source, file)
        if source not in self._documents:
            self._documents[source] = loaded = yaml_reading.load_document(text, source, last_wins=True)
            self.notes.extend(Remark(loaded, *note) for note in loaded.repeated)
        return self._documents[source]

    def _take(self, name: str, document: yaml_reading.Document, fragment: str, reference: str) -> None:
        path, found = _find(document.value, fragment, reference)
        reader = schema_leniency.LenientReader()
        part = SchemaPart(document, path, reader.read(found))
        self.parts[name] = part
        self.notes.extend(part.remark(*note) for note in reader.notes)
        problems = self._check(part)
        self.problems.extend(problems)
        if not problems:
            self.link(part, is_main=False)


def _is_plain(reference: str) -> bool:
    """Say whether a reference names one of the definitions of its own file."""
    prefix = schema_walk.REFERENCE_PREFIX
    return reference.startswith(prefix) and "/" not in reference.removeprefix(prefix)


def _find(value: Any, fragment: str, reference: str) -> tuple[json_pointers.Path, Any]:  # noqa: ANN401  # any YAML
    path: list[str | int] = []
    for token in _tokens(fragment, reference):
        key = int(token) if isinstance(value, list) and json_pointers.is_index(token) else token
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            raise _NoPlaceError(f"there is nothing at {reference!r}") from None
        path.append(key)
    return tuple(path), value


def _tokens(fragment: str, reference: str) -> json_pointers.Tokens:
    try:
        return json_pointers.parse(fragment)
    except ValueError:
        form = "#/definitions/NAME or FILE#/definitions/NAME"
        raise _NoPlaceError(f"{reference!r} does not have the form {form}") from None


_META: Final = json_schemas.Validator(schema_keywords.META, {})
_INHERITED_MAPS: Final = ("definitions", "properties", "patternProperties")
_INHERITED: Final = ("title", "description", "x-")
"""How keywords of the parent begin that hold for its child as a whole."""


class SchemaError(errors.ConfigurationError):
    """A schema file is wrong; each of the ``problems`` names file, position and keyword."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
        """One sentence each."""

    @property
    def mistakes(self) -> tuple[str, ...]:
        """The problems."""
        return self.problems


class LoadedSchema(msgspec.Struct, frozen=True):
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
    read: FileReader | None = None,
) -> LoadedSchema:
    """Load a file's schema, joined with ``parent`` if it says ``x-extend``; an empty file allows all.

    ``read`` gives files that it refers to. Raises :class:`SchemaError` or
    :class:`.YamlError`.
    """
    document = yaml_reading.load_document(text, source, last_wins=True)
    reader = schema_leniency.LenientReader()
    main = SchemaPart(document, (), reader.read(document.value))
    notes = [main.remark(*note) for note in (*document.repeated, *reader.notes)]
    _raise_all(_meta_problems(main))
    linker = Linker(_meta_problems, read)
    linker.link(main)
    _raise_all(linker.problems)
    if schema_keywords.EXTEND in main.schema and parent is None:
        problem = f"there is no {schema_keywords.CONFIG_SCHEMA_FILE} to extend; this has no effect"
        notes.append(main.remark((schema_keywords.EXTEND,), problem))
    extended = _extended(main.schema, _with_parts(linker.parts), parent)
    checked = [main, *linker.parts.values()]
    budget = patterns.PatternBudget()
    _raise_all(found for part in checked for found in _details(part, extended, evaluator, budget))
    _raise_all(_recursion_problems(main, extended))
    defaults = (found for part in checked for found in _default_notes(part))
    return LoadedSchema(extended, tuple(_sentences([*notes, *linker.notes, *defaults])))


def _sentences(remarks: Iterable[Remark]) -> list[str]:
    return list(dict.fromkeys(map(str, sorted(remarks, key=lambda remark: remark.order))))


def _raise_all(problems: Iterable[Remark]) -> None:
    if found := _sentences(problems):
        raise SchemaError(tuple(found))


def _meta_problems(part: SchemaPart) -> list[Remark]:
    faults = (one for error in _META.errors(part.schema) for one in schema_messages.explain(error))
    return [part.remark(one.path, one.rule) for one in faults]


_Problem = tuple[json_pointers.Path, str]


def _details(
    part: SchemaPart,
    whole: Mapping[str, Any],
    evaluator: schema_rules.RuleEvaluator | None,
    budget: patterns.PatternBudget,
) -> Iterator[Remark]:
    definitions = whole.get("definitions", {})
    for path, inner in schema_walk.subschemas(part.schema):
        details = (
            *_pattern_problems(path, inner, budget),
            *_reference_problems(path, inner, definitions),
            *_rule_problems(path, inner, evaluator),
        )
        yield from (part.remark(*problem) for problem in details)


def _pattern_problems(
    path: json_pointers.Path, schema: Mapping[str, Any], budget: patterns.PatternBudget
) -> Iterator[_Problem]:
    keys = [(("patternProperties", pattern), pattern) for pattern in schema.get("patternProperties", {})]
    own = [(("pattern",), schema["pattern"])] if "pattern" in schema else []
    for place, pattern in (*own, *keys):
        try:
            budget.check(pattern)
        except patterns.PatternError as error:
            yield (*path, *place), str(error)


def _reference_problems(
    path: json_pointers.Path, schema: Mapping[str, Any], definitions: Mapping[str, Any]
) -> Iterator[_Problem]:
    name = schema.get("$ref", "").removeprefix(schema_walk.REFERENCE_PREFIX)
    if "$ref" in schema and name not in definitions:
        yield (*path, "$ref"), f"there is no definition {name!r}"


def _rule_problems(
    path: json_pointers.Path,
    schema: Mapping[str, Any],
    evaluator: schema_rules.RuleEvaluator | None,
) -> Iterator[_Problem]:
    for keyword in schema_rules.RULE_KEYWORDS if evaluator is not None else ():
        for index, rule in enumerate(schema_rules.rules_of({keyword: schema.get(keyword, ())})):
            try:
                evaluator.check(rule.expression)  # type: ignore[union-attr]  # the loop is empty without one
            except schema_rules.RuleError as error:
                yield (*path, keyword, index), f"the rule cannot be read: {error}"


def _default_notes(part: SchemaPart) -> Iterator[Remark]:
    """Yield what a schema says against its own defaults: nobody can leave these keys out.

    Of a list or mapping only the type counts: what is below it may be filled with defaults of its own.
    """
    for path, inner in schema_walk.subschemas(part.schema):
        default = inner.get("default")
        if default is None:
            continue
        counts = _OF_CONTAINERS if isinstance(default, dict | list) else _OF_SCALARS
        own = schema_keywords.prepare({key: value for key, value in inner.items() if key in counts})
        faults = (
            one
            for error in json_schemas.Validator(own, schema_keywords.FORMATS).errors(default)
            for one in schema_messages.explain(error)
        )
        for fault in faults:
            said = f"the schema refuses this default: it {fault.rule}, so nobody can leave the key out"
            yield part.remark((*path, "default"), said)


def _recursion_problems(part: SchemaPart, schema: Mapping[str, Any]) -> Iterator[Remark]:
    try:
        schema_walk.fill([schema], {}, schema.get("definitions", {}))
    except RecursionError:
        yield part.remark((), "a definition contains itself endlessly, in allOf or through its default")
    except schema_walk.TooManyDefaultsError as error:
        yield part.remark((), str(error))


def _with_parts(parts: Mapping[str, SchemaPart]) -> dict[str, Any]:
    """Return what was referred to, as definitions; the definitions within it are among them already."""
    return {
        name: {key: value for key, value in part.schema.items() if key != "definitions"}
        for name, part in parts.items()
    }


def _extended(
    child: Mapping[str, Any], parts: Mapping[str, Any], parent: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the child and what it refers to, over the parent's part ("Extending" in the docs)."""
    own = {key: value for key, value in child.items() if key != schema_keywords.EXTEND}
    if parts:
        own["definitions"] = {**parts, **own.get("definitions", {})}
    if parent is None or schema_keywords.EXTEND not in child:
        return own
    result = {key: value for key, value in parent.items() if key.startswith(_INHERITED)} | own
    for keyword in _INHERITED_MAPS:
        if keyword in parent or keyword in own:
            result[keyword] = {**parent.get(keyword, {}), **own.get(keyword, {})}
    required = [*parent.get("required", ()), *own.get("required", ())]
    if required:
        result["required"] = list(dict.fromkeys(required))
    return result
