"""Read YAML as Helm does, at a cost in proportion to its size, whoever wrote it.

Scalars and keys mean what Helm makes of them (:mod:`.yaml_scalars`); of equal keys the last one counts. The
parser is PyYAML's in C, with four bounds: how deep a document nests, what its aliases and merge keys write
out, its directives, and the digits of its numbers. What is beyond a bound is an error before any value is
made. The measuring itself visits each node of the text once.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import yaml

from addon_operator.documents import yaml_scalars

MAX_DEPTH: Final = 100
"""How deep mappings and lists may nest; the parser and every later JSON writer recurse."""
MAX_EXPANSION: Final = 250_000
"""How much (nodes plus characters) the aliases and merge keys of one text may add to it."""
MAX_DIRECTIVES: Final = 16
"""How many lines may begin with ``%``: the parser compares each such line with all the others."""
MAX_DIRECTIVE_CHARS: Final = 256
"""How long such a line may be: each tag is written out with what the directive says."""
MAX_DIGITS: Final = 1000
"""How many characters a number may have; Python's own arithmetic on more takes quadratic time."""
TOO_DEEP: Final = f"mappings and lists nest deeper than {MAX_DEPTH} levels"

CORE: Final = "tag:yaml.org,2002:"
STRING: Final = CORE + "str"
PLAIN: Final = "plain"
"""The tag of scalars without quotes and tags; :mod:`.yaml_scalars` says what they mean."""
MERGE: Final = CORE + "merge"

Path = tuple[str | int, ...]
_SHOWN_CHARS: Final = 60


class BoundError(yaml.MarkedYAMLError):
    """The text is beyond a bound; ``problem`` is the sentence, ``path`` the place as keys and indexes."""

    def __init__(self, problem: str, mark: yaml.Mark | None = None, path: Path = ()) -> None:
        super().__init__(problem=problem, problem_mark=mark)
        self.path = path


def load(text: str) -> Any:  # noqa: ANN401  # YAML of any shape; callers check
    """The value of the one document of a text.

    Raises :class:`yaml.YAMLError`.
    """
    return yaml.load(text, Loader=Loader)  # noqa: S506 - derived from the safe loader


class Loader(yaml.CSafeLoader):
    """The safe loader with bounds. An explicit tag that does not fit its text is a YAML error, too."""

    def __init__(self, text: str) -> None:
        _check_directives(text)
        super().__init__(text)
        self._depth = 0
        # Without an anchor and an alias there is nothing to measure.
        self._measure = _Measure(len(text)) if "&" in text and "*" in text else None

    def get_single_node(self) -> yaml.Node | None:
        """The node of the only document."""
        node: yaml.Node | None = super().get_single_node()
        return node if self._measure is None else self._measure.checked(node)

    def get_node(self) -> yaml.Node | None:
        """The node of the next document."""
        node: yaml.Node | None = super().get_node()
        return node if self._measure is None else self._measure.checked(node)

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:  # noqa: ANN401  # PyYAML's
        """Leave plain scalars to the rules of Helm."""
        if kind is not yaml.ScalarNode:
            return CORE + ("map" if kind is yaml.MappingNode else "seq")
        if not implicit[0]:
            return STRING
        return MERGE if value == "<<" else PLAIN

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Make keys texts; of equal ones the last counts."""
        self.flatten_mapping(node)
        return {_key_of(key): self.construct_object(value, deep=deep) for key, value in node.value}

    def descend_resolver(self, current_node: yaml.Node | None, current_index: Any) -> None:  # noqa: ANN401, ARG002  # PyYAML's
        """Stop at absurd nesting: the parser in C recurses without a guard."""
        self._depth += 1
        if self._depth > MAX_DEPTH + 1:
            raise BoundError(TOO_DEEP, None if current_node is None else current_node.start_mark)

    def ascend_resolver(self) -> None:
        """Up again."""
        self._depth -= 1


def shown(text: str) -> str:
    """A text for an error, cut if it is long."""
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…")


def _check_directives(text: str) -> None:
    for count, found in enumerate(_DIRECTIVE.finditer(text), start=1):
        if count > MAX_DIRECTIVES or len(found[0]) > MAX_DIRECTIVE_CHARS:
            raise BoundError(
                f"it has more than {MAX_DIRECTIVES} lines that begin with '%', or one of more than "
                f"{MAX_DIRECTIVE_CHARS} characters; write tags without directives"
            )


_DIRECTIVE: Final = re.compile("^%.*", re.MULTILINE)


class _Measure:
    """How deep and how large each node is once its aliases are written out, found without writing them."""

    def __init__(self, text_length: int) -> None:
        # No text has more nodes and characters of its own than that; what has is written out no further.
        self._most = 4 * text_length + MAX_EXPANSION
        self._added = 0
        self._known: dict[int, tuple[int, int]] = {}
        self._own = 0
        self._path: list[str | int] = []

    def checked(self, root: yaml.Node | None) -> yaml.Node | None:
        """The node, if it and the documents before it are within the bounds."""
        if root is None:
            return None
        self._known, self._own = {}, 0
        size, _ = self._of(root)
        self._added += size - self._own
        if self._added > MAX_EXPANSION:
            self._fail(root, _TOO_LARGE.format(MAX_EXPANSION))
        self._known = {}
        return root

    def _of(self, node: yaml.Node) -> tuple[int, int]:
        """Nodes and characters, and levels."""
        known = self._known.get(id(node))
        if known is None:
            if isinstance(node, yaml.ScalarNode):
                known = (1 + len(node.value), 0)
                self._own += known[0]
            else:
                known = self._of_collection(node)
            self._known[id(node)] = known
        elif known == _OPEN:
            self._fail(node, "an anchor contains an alias to itself")
        return known

    def _of_collection(self, node: yaml.Node) -> tuple[int, int]:
        self._own += 1
        self._known[id(node)] = _OPEN
        size, levels = 1, 0
        for part, inner in self._parts(node):
            self._path.append(part)
            inner_size, inner_levels = self._of(inner)
            size += inner_size
            levels = max(levels, inner_levels)
            if size > self._most:
                self._fail(inner, _TOO_LARGE.format(MAX_EXPANSION))
            if levels >= MAX_DEPTH + 1:
                self._fail(inner, TOO_DEEP)
            self._path.pop()
        return size, levels + 1

    @staticmethod
    def _parts(node: yaml.Node) -> "list[tuple[str | int, yaml.Node]]":
        if not isinstance(node, yaml.MappingNode):
            return list(enumerate(node.value))
        found: list[tuple[str | int, yaml.Node]] = []
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            found += [(name, key), (name, value)]
        return found

    def _fail(self, node: yaml.Node, problem: str) -> None:
        raise BoundError(problem, node.start_mark, tuple(self._path))


_OPEN: Final = (-1, -1)
_TOO_LARGE: Final = "aliases expand to more than {} nodes; use fewer"


_COLLECTIONS: Final = frozenset(CORE + name for name in ("map", "seq", "omap", "pairs", "set"))
_NUMBERS: Final = frozenset({CORE + "int", CORE + "float"})


def _plain_errors(construct: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """What PyYAML makes of a scalar, with its errors as errors of YAML."""

    def constructed(loader: Any, node: Any) -> Any:  # noqa: ANN401  # PyYAML's
        if not isinstance(node, yaml.ScalarNode):
            return construct(loader, node)
        # The text itself may be a secret: it is in no message.
        text, name = node.value, node.tag.rpartition(":")[2]
        # Base 60 takes quadratic time; a number has it only if it is called one: "!!int 1:30".
        if node.tag in _NUMBERS and (len(text) > MAX_DIGITS or ":" in text):
            problem = f"this is not a !!{name} of at most {MAX_DIGITS} characters; quote it"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        try:
            return construct(loader, node)
        except (ArithmeticError, AttributeError, LookupError, ValueError) as error:
            problem = f"this is not a !!{name}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error

    return constructed


Loader.yaml_constructors = {
    tag: construct if tag is None or tag in _COLLECTIONS else _plain_errors(construct)
    for tag, construct in yaml.CSafeLoader.yaml_constructors.items()
}


def _key_of(node: yaml.Node) -> str:
    key = yaml_scalars.key(node.value) if node.tag == PLAIN else node.value
    if not isinstance(key, str):
        raise yaml.constructor.ConstructorError(None, None, "a key is not a text", node.start_mark)
    return key


Loader.add_constructor(PLAIN, lambda _, node: yaml_scalars.plain(node.value))
Loader.add_constructor(MERGE, lambda _, node: str(node.value))
