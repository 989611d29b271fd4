"""Read YAML as Helm does, at a cost in proportion to its size, whoever wrote it.

Scalars and keys mean what Helm makes of them (:func:`plain`); of equal keys the last one counts. The
parser is PyYAML's in C, with four bounds: how deep a document nests, what its aliases and merge keys write
out, its directives, and the digits of its numbers. What is beyond a bound is an error before any value is
made. The measuring itself visits each node of the text once.

Charts read their ``values.yaml`` through Helm, whose parser (``sigs.k8s.io/yaml`` over ``go-yaml`` v2) has
YAML 1.1 for words, YAML 1.2 for octal numbers, and no sexagesimal numbers, and hands dates on as texts.
"""

import base64
import decimal
import math
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import yaml

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
"""The tag of scalars without quotes and tags; :func:`plain` says what they mean."""
MERGE: Final = CORE + "merge"

Path = tuple[str | int, ...]
_SHOWN_CHARS: Final = 60


Scalar: TypeAlias = "bool | int | float | str | None"

_TRUE: Final = "y Y yes Yes YES true True TRUE on On ON"
_FALSE: Final = "n N no No NO false False FALSE off Off OFF"
_NULL: Final = "~ null Null NULL"
_INFINITE: Final = ".inf .Inf .INF +.inf +.Inf +.INF -.inf -.Inf -.INF .nan .NaN .NAN"

_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(_TRUE.split(), True),
    **dict.fromkeys(_FALSE.split(), False),
    **dict.fromkeys(_NULL.split(), None),
    **{word: float(word.replace(".", "")) for word in _INFINITE.split()},
    "": None,
}
_WORD_INITIALS: Final = frozenset(word[:1] for word in _WORDS)
_NUMBER_INITIALS: Final = frozenset("0123456789+-.")
_UNUSUAL_BOOLEANS: Final = frozenset(
    word for word in f"{_TRUE} {_FALSE}".split() if word.lower() not in {"true", "false"}
)

_INTEGERS: Final = (
    (re.compile(r"[-+]?0[xX][0-9a-fA-F]+"), 16),
    (re.compile(r"[-+]?0[bB][01]+"), 2),
    (re.compile(r"[-+]?0[oO]?[0-7]+"), 8),
    (re.compile(r"[-+]?(?:0|[1-9][0-9]*)"), 10),
)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")

INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**64 - 1
"""The integers that JSON consumers here keep exact; larger ones are read as floating point numbers."""
_KEY_MAX: Final = 2**63 - 1
_EXPONENT_FROM: Final = 6


def plain(text: str) -> Scalar:
    """Return a plain scalar's value: ``yes`` is true, ``0o17`` and ``017`` are 15, ``12:30`` is a string.

    An infinite number or "not a number" comes back as such a float, for the caller to refuse.
    """
    initial = text[:1]
    if initial in _WORD_INITIALS and text in _WORDS:
        return _WORDS[text]
    return _number(text) if initial in _NUMBER_INITIALS else text


def key(text: str) -> str | None:
    """Return a plain scalar as the key of a mapping: numbers and booleans become text, as Helm hands them on.

    ``None`` for what Helm refuses: ``null`` and integers beyond 63 bits.
    """
    value = plain(text)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and not any(pattern.fullmatch(_digits(text)) for pattern, _ in _INTEGERS):
        value = float(value)  # 1e6 is a floating point number to Helm, and its text is another one
    if isinstance(value, float):
        return _float_key(value)
    if isinstance(value, int):
        return str(value) if value <= _KEY_MAX else None
    return value


def _float_key(value: float) -> str:
    """Return the shortest text as Go writes it: with an exponent below -4 and from 6 on."""
    if not math.isfinite(value):
        return {"inf": "+Inf", "-inf": "-Inf"}.get(str(value), "NaN")
    mantissa, _, exponent = f"{value:.17e}".partition("e")
    if value and not -4 <= int(exponent) < _EXPONENT_FROM:
        digits = f"{decimal.Decimal(repr(value)):e}"
        mantissa, _, exponent = digits.partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{mantissa}e{exponent[0]}{exponent[1:]:0>2}"
    return f"{decimal.Decimal(repr(value)).normalize():f}"


def is_unusual_boolean(text: str) -> bool:
    """Say whether the plain scalar is one of the words that surprise as a boolean: ``yes no on off y n``."""
    return text in _UNUSUAL_BOOLEANS


def integral(number: float) -> int | float:
    """Return the number as an integer where it is one, as Helm hands ``1.0`` and ``1e3`` on."""
    if number.is_integer() and INTEGER_MIN <= number <= INTEGER_MAX:
        return int(number)
    return number


def _number(text: str) -> Scalar:
    digits = _digits(text)
    for pattern, base in _INTEGERS:
        if pattern.fullmatch(digits):
            value = _integer(digits, base)
            if value is not None and INTEGER_MIN <= value <= INTEGER_MAX:
                return value
    return _float(text, digits)


def _integer(digits: str, base: int) -> int | None:
    """Return the number, or ``None`` if it has too many digits to be kept exact."""
    significant = digits.translate(_NO_PREFIX) if base == 8 else digits
    if len(significant) > _MOST_DIGITS:
        # Python refuses thousands of decimal digits. What counts stands behind the zeros.
        found = _SIGNIFICANT.fullmatch(significant)
        significant = digits if found is None else found["sign"] + found["prefix"] + (found["rest"] or "0")
    return None if len(significant) > _MOST_DIGITS else int(significant, base)


def _digits(text: str) -> str:
    return text.replace("_", "") if text[1:2] != "_" or text[0] not in "+-." else text


_NO_PREFIX: Final = str.maketrans("", "", "oO")
_MOST_DIGITS: Final = 100
"""More than 64 bits have in any base, with sign and prefix."""
_SIGNIFICANT: Final = re.compile(r"(?P<sign>[-+]?)(?P<prefix>(?:0[xXbB])?)0*(?P<rest>.*)", re.DOTALL)


def _float(text: str, digits: str) -> Scalar:
    if not _FLOAT.fullmatch(digits):
        return text
    value = float(digits)
    return text if value in (float("inf"), float("-inf")) else integral(value)


def base64_bytes(text: str) -> bytes:
    """Return the bytes of a value of a Secret, of a kubeconfig or of ``!!binary``, in one line or several.

    Raises :class:`ValueError` for a text that is not base64.
    """
    return base64.b64decode("".join(text.split()), validate=True)


class BoundError(yaml.MarkedYAMLError):
    """The text is beyond a bound; ``problem`` is the sentence, ``path`` the place as keys and indexes."""

    def __init__(self, problem: str, mark: yaml.Mark | None = None, path: Path = ()) -> None:
        super().__init__(problem=problem, problem_mark=mark)
        self.path = path


def load(text: str) -> Any:  # noqa: ANN401  # YAML of any shape; callers check
    """Return the value of the one document of a text.

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
        self._composer: Any = _Composer(self) if _has_anchor_again(text) else super()

    def check_node(self) -> bool:
        """Say whether there is another document."""
        return bool(self._composer.check_node())

    def get_single_node(self) -> yaml.Node | None:
        """Return the node of the only document."""
        node: yaml.Node | None = self._composer.get_single_node()
        return node if self._measure is None else self._measure.checked(node)

    def get_node(self) -> yaml.Node | None:
        """Return the node of the next document."""
        node: yaml.Node | None = self._composer.get_node()
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
        """Go up again."""
        self._depth -= 1


class _Composer(yaml.composer.Composer):
    """Makes nodes of what the parser in C reads; an anchor may be set again, as YAML says and Helm does."""

    def __init__(self, loader: Loader) -> None:
        super().__init__()
        self.check_event, self.peek_event = loader.check_event, loader.peek_event
        self.get_event, self.resolve = loader.get_event, loader.resolve
        self.descend_resolver, self.ascend_resolver = loader.descend_resolver, loader.ascend_resolver

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401  # PyYAML's
        """Forget the anchor that this node sets again."""
        event: Any = self.peek_event()
        if not isinstance(event, yaml.AliasEvent):
            self.anchors.pop(event.anchor, None)
        return super().compose_node(parent, index)


def _has_anchor_again(text: str) -> bool:
    """Say whether a text may set an anchor twice; the composer in C refuses that, and is much faster."""
    anchors = _ANCHOR.findall(text)
    return len(set(anchors)) < len(anchors)


_ANCHOR: Final = re.compile(r"&[^\s,\[\]{}]+")


def shown(text: str) -> str:
    """Return a text for an error, cut if it is long."""
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…")


def _check_directives(text: str) -> None:
    for count, directive in enumerate(_DIRECTIVE.finditer(text), start=1):
        if count > MAX_DIRECTIVES or len(directive[0]) > MAX_DIRECTIVE_CHARS:
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
        """Return the node, if it and the documents before it are within the bounds."""
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
        """Count nodes and characters, and levels."""
        measured = self._known.get(id(node))
        if measured is None:
            if isinstance(node, yaml.ScalarNode):
                measured = (1 + len(node.value), 0)
                self._own += measured[0]
            else:
                measured = self._of_collection(node)
            self._known[id(node)] = measured
        elif measured == _OPEN:
            self._fail(node, "an anchor contains an alias to itself")
        return measured

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
        parts: list[tuple[str | int, yaml.Node]] = []
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            parts += [(name, key), (name, value)]
        return parts

    def _fail(self, node: yaml.Node, problem: str) -> None:
        raise BoundError(problem, node.start_mark, tuple(self._path))


_OPEN: Final = (-1, -1)
_TOO_LARGE: Final = "aliases expand to more than {} nodes; use fewer"


_COLLECTIONS: Final = frozenset(CORE + name for name in ("map", "seq", "omap", "pairs", "set"))
_NUMBERS: Final = frozenset({CORE + "int", CORE + "float"})


def _plain_errors(construct: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return what PyYAML makes of a scalar, with its errors as errors of YAML."""

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
    text = key(node.value) if node.tag == PLAIN else node.value
    if not isinstance(text, str):
        raise yaml.constructor.ConstructorError(None, None, "a key is not a text", node.start_mark)
    return text


Loader.add_constructor(PLAIN, lambda _, node: plain(node.value))
Loader.add_constructor(MERGE, lambda _, node: str(node.value))
