"""Checking documents by JSON Schema (2020-12): the verdict takes microseconds, the reasons milliseconds.

``jsonschema-rs`` finds out what is right, in a fiftieth of the time (benchmark ``values``). Everything else
goes to ``jsonschema``: what is wrong, because it says which branch of a choice was meant, and the few schemas
and numbers that the two judge differently.
"""

import functools
import graphlib
from collections.abc import Callable, Collection, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from addon_operator.documents import patterns
from addon_operator.kernel import errors

if TYPE_CHECKING:
    # Both are imported late: together they take a tenth of a second and 18 MiB, and little needs them.
    import jsonschema
    import jsonschema_rs

_LISTS_FOR_THE_SAME_VALUE: Final = ("allOf", "anyOf", "oneOf")
_PARTS_FOR_THE_SAME_VALUE: Final = ("not", "if", "then", "else")
_DEFINITION: Final = "#/$defs/{}"
_MOST: Final = 2**53
"""Larger floats may have other digits than their shortest text, by which ``jsonschema-rs`` compares them."""

_Errors: TypeAlias = "Iterator[jsonschema.ValidationError]"
Formats: TypeAlias = Mapping[str, Callable[[Any], object]]
"""By the name of a format what says whether a value has it, or raises a :class:`.ConfigurationError`."""


class Validator:
    """Checks documents against one schema, which is prepared with the first of them."""

    def __init__(self, schema: Mapping[str, Any], formats: Formats) -> None:
        """Take a ``schema`` that refers only to itself; formats not among ``formats`` check nothing."""
        self._schema = schema
        self._formats = formats

    def errors(self, document: object) -> _Errors:
        """Yield all that is wrong with a document."""
        if not self.surely_allows(document):
            yield from self.reasons(document)

    def reasons(self, document: object) -> _Errors:
        """Yield all that ``jsonschema`` finds wrong with a document."""
        yield from self._thorough.iter_errors(cast("Any", document))

    def surely_allows(self, document: object) -> bool:
        """Say whether ``jsonschema-rs`` finds nothing wrong, and can tell."""
        if self._quick is None:
            return False
        try:
            return _small_numbers().is_valid(document) and self._quick.is_valid(document)
        except ValueError:
            # Half of a surrogate pair, or a key that is not a text.
            return False

    @functools.cached_property
    def _quick(self) -> "jsonschema_rs.Draft202012Validator | None":
        import jsonschema_rs

        if _holds_itself(self._schema):
            return None
        keywords = {
            "format": _keyword(self._has_format),
            "multipleOf": _keyword(_is_multiple),
            "pattern": _keyword(_matches),
            "patternProperties": _OnlyThorough,
        }
        try:
            return jsonschema_rs.Draft202012Validator(dict(self._schema), keywords=keywords, offline=True)
        except (ValueError, jsonschema_rs.ReferencingError):
            return None

    def _has_format(self, name: str, value: object) -> bool:
        try:
            return name not in self._formats or bool(self._formats[name](value))
        except errors.ConfigurationError:
            return False

    @functools.cached_property
    def _thorough(self) -> "jsonschema.protocols.Validator":
        import jsonschema

        formats = jsonschema.FormatChecker(formats=())
        for name, check in self._formats.items():
            formats.checks(name, raises=errors.ConfigurationError)(cast("Any", check))
        made: jsonschema.protocols.Validator = _thorough_class()(self._schema, format_checker=formats)
        return made


def unknown_keys(instance: Collection[str], schema: Mapping[str, Any]) -> list[str]:
    """Return the keys that neither ``properties`` nor ``patternProperties`` of a schema name."""
    properties, named = schema.get("properties", {}), schema.get("patternProperties", {})
    return [
        key
        for key in instance
        if key not in properties and not any(patterns.found(pattern, key) for pattern in named)
    ]


@functools.cache
def _small_numbers() -> "jsonschema_rs.Draft202012Validator":
    import jsonschema_rs

    inner = {"$ref": "#"}
    return jsonschema_rs.Draft202012Validator(
        {"minimum": -_MOST, "maximum": _MOST, "items": inner, "additionalProperties": inner}
    )


def _matches(pattern: str, value: object) -> bool:
    return not isinstance(value, str) or patterns.found(pattern, value)


def _is_multiple(factor: float, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    # Floating point says that 0.3 is not a multiple of 0.1; what people write are decimals.
    return factor > 0 and not Fraction(str(value)) % Fraction(str(factor))


def _keyword(holds: Callable[[Any, object], bool]) -> type:
    """Return a keyword of ``jsonschema-rs``, from what it demands and the value."""

    class Keyword:
        def __init__(self, _parent: object, demand: object, _path: object) -> None:
            self._demand = demand

        def validate(self, value: object) -> None:
            if not holds(self._demand, value):
                raise ValueError

    return Keyword


class _OnlyThorough:
    """Refuses a keyword of ``jsonschema-rs``: which keys it is for is not asked of RE2."""

    def __init__(self, *_: object) -> None:
        raise NotImplementedError

    def validate(self, value: object) -> None:
        """Fail: this is never called."""


def _holds_itself(schema: Mapping[str, Any]) -> bool:
    """Say whether a definition demands itself of one value; ``jsonschema-rs`` then allows everything."""
    definitions = schema.get("$defs", {})
    graph = {_DEFINITION.format(name): set(_demanded(inner)) for name, inner in definitions.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError:
        return True
    return False


def _demanded(schema: Any) -> Iterator[str]:  # noqa: ANN401  # a schema or a boolean
    """Yield the definitions that a schema refers to for the very value that it checks."""
    if isinstance(schema, bool):
        return
    if "$ref" in schema:
        yield schema["$ref"]
    for keyword in _LISTS_FOR_THE_SAME_VALUE:
        for inner in schema.get(keyword, ()):
            yield from _demanded(inner)
    for keyword in _PARTS_FOR_THE_SAME_VALUE:
        yield from _demanded(schema.get(keyword, True))


def _thorough(holds: Callable[[Any, object], bool]) -> Callable[..., _Errors]:
    """Yield the same keyword of ``jsonschema``."""

    def check(_validator: object, demand: object, value: object, _schema: object) -> _Errors:
        import jsonschema

        if not holds(demand, value):
            yield jsonschema.ValidationError("does not hold")

    return check


def _pattern_properties(
    validator: Any,  # noqa: ANN401  # the protocol lacks descend
    demands: Mapping[str, Any],
    instance: Any,  # noqa: ANN401  # any JSON
    _: Mapping[str, Any],
) -> _Errors:
    if validator.is_type(instance, "object"):
        for pattern, inner in demands.items():
            for key in (key for key in instance if patterns.found(pattern, key)):
                yield from validator.descend(instance[key], inner, path=key, schema_path=pattern)


def _additional_properties(
    validator: Any,  # noqa: ANN401  # the protocol lacks descend
    demand: Any,  # noqa: ANN401  # a schema or a boolean
    instance: Any,  # noqa: ANN401  # any JSON
    schema: Mapping[str, Any],
) -> _Errors:
    import jsonschema

    if not validator.is_type(instance, "object"):
        return
    unknown = unknown_keys(instance, schema)
    if validator.is_type(demand, "object"):
        for key in unknown:
            yield from validator.descend(instance[key], demand, path=key)
    elif not demand and unknown:
        yield jsonschema.ValidationError("unknown keys")


@functools.cache
def _thorough_class() -> Any:  # noqa: ANN401  # a class that is made at run time
    import jsonschema

    return jsonschema.validators.extend(  # type: ignore[no-untyped-call]  # has no stub
        jsonschema.Draft202012Validator,
        {
            "multipleOf": _thorough(_is_multiple),
            "pattern": _thorough(_matches),
            "patternProperties": _pattern_properties,
            "additionalProperties": _additional_properties,
        },
    )
