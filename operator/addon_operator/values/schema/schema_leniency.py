"""Reading schemas as leniently as the original does: what real modules write, in the form that is checked."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from addon_operator.values.schema import schema_keywords, schema_shapes, schema_walk

Path = tuple[str | int, ...]

_MAY_BE_NULL: Final = frozenset({"default", "example", "examples"})


class LenientReader:
    """Reads one file; ``notes`` are what is strange in it."""

    def __init__(self) -> None:
        self.notes: list[tuple[Path, str]] = []
        """Place and sentence of each thing that checks nothing."""

    def read(self, schema: object, path: Path = ()) -> Any:  # noqa: ANN401  # what is no schema stays as it is
        """The schema with its lists of types, empty parts and single names written out.

        A list of types becomes ``type`` and ``nullable``, an empty property or ``properties`` becomes ``{}``,
        a single name in ``x-required-for-helm`` a list of one, and a shape that says nothing is left out.
        """
        if schema is None:
            return {}
        if not isinstance(schema, Mapping):
            return schema
        return dict(self._keywords(schema, path))

    def _keywords(self, schema: Mapping[str, Any], path: Path) -> Iterator[tuple[str, Any]]:
        for keyword, value in schema.items():
            place = (*path, keyword)
            if problem := schema_keywords.unknown(keyword, value):
                self.notes.append((place, problem))
            elif value is None and _is_empty(keyword):
                self.notes.append((place, schema_shapes.EMPTY))
            else:
                shape = schema_shapes.read(keyword, value) or schema_shapes.Shape({keyword: value})
                self.notes.extend((place, note) for note in shape.notes)
                for name, written in shape.written.items():
                    yield name, self._inner(name, written, place)

    def _inner(self, keyword: str, value: Any, place: Path) -> Any:  # noqa: ANN401  # any JSON
        if keyword in schema_walk.MAPS_OF_SCHEMAS and (value is None or isinstance(value, Mapping)):
            return {name: self.read(inner, (*place, name)) for name, inner in (value or {}).items()}
        if keyword in (*schema_walk.LISTS_OF_SCHEMAS, "items") and isinstance(value, list):
            return [self.read(inner, (*place, index)) for index, inner in enumerate(value)]
        if keyword in schema_walk.SINGLE_SCHEMAS:
            return self.read(value, place)
        return value


def _is_empty(keyword: str) -> bool:
    """Whether a keyword without a value says nothing."""
    if keyword in schema_walk.MAPS_OF_SCHEMAS or keyword in _MAY_BE_NULL:
        return False
    return keyword in schema_keywords.KEYWORDS
