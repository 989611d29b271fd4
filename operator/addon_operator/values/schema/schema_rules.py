"""Rules in CEL that schemas carry: ``x-kubernetes-validations`` (alias ``x-deckhouse-validations``).

The language itself is behind a protocol; here is where in the values each rule applies, and what it is given.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, cast

import msgspec

from addon_operator.documents import json_pointers
from addon_operator.kernel import json_types
from addon_operator.values.schema import schema_walk
from addon_operator.values.schema.schema_walk import SchemaObject

_RESERVED: Final = re.compile(
    "true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace"
    "|return|var|void|while"
)
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED: Final = re.compile(r"__|[./-]")


def convert(
    schemas: Sequence[SchemaObject], value: json_types.JsonValue, definitions: SchemaObject
) -> json_types.JsonValue:
    """Convert a value to a copy for a rule.

    What the schema calls a ``number`` is floating point even if it was written without a fraction. A property
    whose name is not an identifier can be named by its escaped form as well: ``self.my__dash__key``.
    """
    facets = schema_walk.facets(schemas, definitions)
    if isinstance(value, int) and not isinstance(value, bool) and _is_number(facets):
        return float(value)
    converted = {
        key: convert(schema_walk.children(facets, key), inner, definitions)
        for key, inner in schema_walk.items_of(value)
    }
    if isinstance(value, list):
        return list(converted.values())
    if not isinstance(value, dict):
        return value
    for key in {key for facet in facets for key in facet.get("properties", ())} & value.keys():
        converted.setdefault(escape(key), converted[key])
    return cast("json_types.JsonObject", converted)


def _is_number(facets: Sequence[SchemaObject]) -> bool:
    types = (facet.get("type") for facet in facets)
    return any(
        kind == "number" or (isinstance(kind, list) and "number" in kind and "integer" not in kind)
        for kind in types
    )


def escape(name: str) -> str:
    """Escape a property's name for a rule: ``my-key`` is ``my__dash__key``, ``in`` is ``__in__``."""
    if _RESERVED.fullmatch(name):
        return f"__{name}__"
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], name)


_LENIENT: Final = "x-deckhouse-validations"
RULE_KEYWORDS: Final = ("x-kubernetes-validations", _LENIENT)


class RuleError(Exception):
    """A rule cannot be compiled or evaluated; the text is the reason."""


class MissingKeyError(RuleError):
    """A rule reads a key that the values do not have."""


class NoVerdictError(RuleError):
    """A rule gives neither true nor false; the text is what it gives."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind
        """What that is, such as ``a text``."""


class RuleEvaluator(Protocol):
    """Evaluates CEL: a seam, since who reads schemas without their rules does without its runtime."""

    def check(self, expression: str) -> None:
        """Raise :class:`RuleError` if the expression is not a rule."""
        ...

    def evaluate(self, expression: str, variables: Mapping[str, json_types.JsonValue]) -> bool:
        """Return the verdict on ``self`` and, for transition rules, ``oldSelf``.

        Raises :class:`RuleError` if the expression cannot be evaluated over these values, which is a
        :class:`MissingKeyError` if it reads a key that they do not have.
        """
        ...


class Rule(msgspec.Struct, frozen=True):
    """One rule of a schema."""

    expression: str
    message: str
    """What to say when it does not hold; the expression if the schema has no message."""
    is_lenient: bool = False
    """Whether it is skipped when it reads a key that is missing: the alias does so in the original."""

    @property
    def is_transition(self) -> bool:
        """Whether the rule compares with the values before; it is skipped where there are none."""
        return "oldSelf" in self.expression


class BrokenRule(msgspec.Struct, frozen=True):
    """A rule that does not hold for the value at a place."""

    path: json_pointers.Path
    message: str
    is_skipped: bool = False
    """Whether it could not be evaluated, and counts as held."""


class _Absent:
    """There is no value at that place."""


ABSENT: Final = _Absent()


def rules_of(schema: SchemaObject) -> list[Rule]:
    """Return the rules that stand at one place of a schema."""
    return [_rule(item, keyword) for keyword in RULE_KEYWORDS for item in schema.get(keyword, ())]


def _rule(item: Mapping[str, Any], keyword: str) -> Rule:
    expression = str(item.get("rule", item.get("expression"))).strip()
    message = str(item.get("message", f"the rule {expression!r} must hold")).strip()
    return Rule(expression, message, keyword == _LENIENT)


class RuleChecker(msgspec.Struct, frozen=True):
    """Walks values along their schema and evaluates every rule on the way."""

    evaluator: RuleEvaluator
    definitions: SchemaObject

    def broken(
        self, schema: SchemaObject, value: json_types.JsonValue, old: json_types.JsonValue | _Absent
    ) -> Iterator[BrokenRule]:
        """Yield rules that do not hold, and those that are skipped because they cannot be evaluated."""
        yield from self._broken([schema], (), value, old)

    def _broken(
        self,
        schemas: Sequence[SchemaObject],
        path: json_pointers.Path,
        value: json_types.JsonValue,
        old: json_types.JsonValue | _Absent,
    ) -> Iterator[BrokenRule]:
        facets = schema_walk.facets(schemas, self.definitions)
        for facet in facets if value is not None else ():
            for rule in rules_of(facet):
                if not (rule.is_transition and isinstance(old, _Absent)):
                    yield from self._judged(rule, facet, path, value, old)
        for key, inner in schema_walk.items_of(value):
            if inner_schemas := schema_walk.children(facets, key):
                # As in Kubernetes, items of a list have no identity and so nothing before.
                before = old.get(key, ABSENT) if isinstance(old, dict) and isinstance(key, str) else ABSENT
                yield from self._broken(inner_schemas, (*path, key), inner, before)

    def _judged(
        self,
        rule: Rule,
        facet: SchemaObject,
        path: json_pointers.Path,
        value: json_types.JsonValue,
        old: json_types.JsonValue | _Absent,
    ) -> Iterator[BrokenRule]:
        variables = {"self": convert([facet], value, self.definitions)}
        if rule.is_transition and not isinstance(old, _Absent):
            variables["oldSelf"] = convert([facet], old, self.definitions)
        try:
            holds = self.evaluator.evaluate(rule.expression, variables)
        except RuleError as error:
            # The reason may show values.
            if rule.is_lenient and isinstance(error, MissingKeyError):
                yield BrokenRule(path, _SKIPPED.format(rule.expression), is_skipped=True)
            else:
                why = _MISSING if isinstance(error, MissingKeyError) else ""
                yield BrokenRule(
                    path, f"{rule.message} (the rule cannot be evaluated over these values{why})"
                )
        else:
            if not holds:
                yield BrokenRule(path, rule.message)


_MISSING: Final = ": it reads a missing key; ask with has(…)"
_SKIPPED: Final = "the rule {!r} is skipped: it reads a missing key; ask with has(…), or read it with .?"
