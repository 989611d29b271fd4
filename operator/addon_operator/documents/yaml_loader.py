"""Read YAML as Helm does, at a cost in proportion to its size, whoever wrote it.

Scalars and keys mean what Helm makes of them (:func:`plain`); unless a reader says otherwise, the last of
equal keys counts. Unknown tags are ignored, and dates stay texts: values are those of JSON. The parser is
PyYAML's in C, with three bounds: how deep a document nests, what its aliases and merge keys write out, and
its directives. What is beyond a bound is an error before any value is made. The measuring itself visits each
node of the text once.

Charts read their ``values.yaml`` through Helm, whose parser (``sigs.k8s.io/yaml`` over ``go-yaml`` v2) has
YAML 1.1 for words, YAML 1.2 for octal numbers, and no sexagesimal numbers, and hands dates on as texts.
"""

import base64
import decimal
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

import yaml

from addon_operator.documents import json_pointers
from addon_operator.kernel import json_types

MAX_DEPTH: Final = 100
"""How deep mappings and lists may nest; the parser and every later JSON writer recurse."""
MAX_EXPANSION: Final = 250_000
"""How much (nodes plus characters) the aliases and merge keys of one text may add to it."""
MAX_DIRECTIVES: Final = 16
"""How many lines may begin with ``%``: the parser compares each such line with all the others."""
MAX_DIRECTIVE_CHARS: Final = 256
"""How long such a line may be: each tag is written out with what the directive says."""
TOO_DEEP: Final = f"mappings and lists nest deeper than {MAX_DEPTH} levels"

_CORE: Final = "tag:yaml.org,2002:"
STRING: Final = _CORE + "str"
PLAIN: Final = "plain"
"""The tag of scalars without quotes and tags; :func:`plain` says what they mean."""
_MERGE: Final = _CORE + "merge"
_BINARY: Final = _CORE + "binary"
_TAGGED: Final[Mapping[str, tuple[type, ...]]] = {
    _CORE + "int": (int,),
    _CORE + "float": (int, float),
    _CORE + "bool": (bool,),
    _CORE + "null": (type(None),),
}

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


class RuleError(yaml.MarkedYAMLError):
    """The text breaks a rule of ours; ``problem`` is the sentence, ``path`` the place as keys and indexes."""

    def __init__(self, problem: str, mark: yaml.Mark | None = None, path: json_pointers.Path = ()) -> None:
        super().__init__(problem=problem, problem_mark=mark)
        self.path = path


def load(text: str, scalar: Callable[[str], Scalar] = plain) -> Any:  # noqa: ANN401  # YAML of any shape; callers check
    """Return the value of the one document of a text; ``scalar`` says what plain scalars mean.

    Raises :class:`yaml.YAMLError`.
    """
    node = yaml.compose(text, Loader=Loader)
    return None if node is None else Builder(scalar).build(node)


def load_all(text: str, scalar: Callable[[str], Scalar] = plain) -> Iterator[Any]:
    """Yield the value of each document of a text, as :func:`load` reads one."""
    for node in yaml.compose_all(text, Loader=Loader):
        yield Builder(scalar).build(node)


class Repeated(NamedTuple):
    """A key that stands twice in one mapping."""

    path: json_pointers.Path
    key: yaml.Node
    line_before: int
    """Where it stands first, counted from 1."""
    is_same: bool
    """Whether both have one value."""


class Builder:
    """Makes JSON values of the nodes of one document."""

    def __init__(
        self,
        scalar: Callable[[str], Scalar] = plain,
        *,
        only_text_keys: bool = False,
        repeated: Callable[[Repeated], None] | None = None,
        positions: dict[json_pointers.Path, yaml.Mark] | None = None,
    ) -> None:
        """Take what readers want beside the defaults.

        ``only_text_keys``: a key that is a number or a boolean is an error. ``repeated`` is called for a key
        that stands twice. ``positions`` is filled with the places of keys and items.
        """
        self._plain = scalar
        self._only_text_keys = only_text_keys
        self._repeated = repeated
        self._positions = positions

    def build(self, node: yaml.Node, path: json_pointers.Path = ()) -> json_types.JsonValue:
        """Return the value of a node.

        Raises :class:`RuleError`.
        """
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        items: list[json_types.JsonValue] = []
        for index, item in enumerate(node.value):
            items.append(self._noted(item, item, (*path, index)))
        return items

    def _noted(self, node: yaml.Node, named: yaml.Node, path: json_pointers.Path) -> json_types.JsonValue:
        """Return the value of a node, and note where ``named``, its key or itself, stands."""
        if self._positions is not None:
            self._positions[path] = named.start_mark
        return self.build(node, path)

    def _mapping(self, node: yaml.MappingNode, path: json_pointers.Path) -> json_types.JsonObject:
        result: json_types.JsonObject = {}
        written: dict[str, yaml.Node] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                # Later wins: a merge key overrides what stands above it, and what follows overrides it.
                is_list = isinstance(value_node, yaml.SequenceNode)
                for source in reversed(value_node.value) if is_list else [value_node]:
                    if not isinstance(source, yaml.MappingNode):
                        self._fail(source, path, "a merge key '<<' takes a mapping or a list of mappings")
                    result.update(self._mapping(source, path))
                continue
            name = self._key(key_node, path)
            value = self._noted(value_node, key_node, (*path, name))
            if name in written and self._repeated is not None:
                before = result[name]
                is_same = type(before) is type(value) and before == value
                line = written[name].start_mark.line + 1
                self._repeated(Repeated((*path, name), key_node, line, is_same))
            written[name] = key_node
            result[name] = value
        return result

    def _key(self, node: yaml.Node, path: json_pointers.Path) -> str:
        if not isinstance(node, yaml.ScalarNode):
            self._fail(
                node, path, "a key must be a string, a number or a boolean, not a collection; quote it"
            )
        value = self._scalar(node, path)
        if isinstance(value, str):
            return value
        if self._only_text_keys:
            self._fail(node, path, f"the key {shown(node.value)} is not a text; quote it")
        name = None if value is None else key(node.value)
        if name is None:
            kind = "null" if value is None else "a number"
            written = f"{shown(node.value)} ({kind})"
            self._fail(node, path, f"a key must be a string, a number or a boolean, not {written}; quote it")
        return name

    def _scalar(self, node: yaml.ScalarNode, path: json_pointers.Path) -> Scalar:
        text: str = node.value
        value: Scalar = text
        # The text itself may be a secret: of a long one, only the beginning is in a message.
        if node.tag == PLAIN:
            value = self._plain(text)
        elif node.tag in _TAGGED:
            value = plain(text)
            name = node.tag.removeprefix(_CORE)
            if not isinstance(value, _TAGGED[node.tag]) or (isinstance(value, bool) and name != "bool"):
                self._fail(node, path, f"{shown(text)} is not a !!{name}")
        elif node.tag == _BINARY:
            try:
                value = base64_bytes(text).decode()
            except ValueError:
                self._fail(node, path, "!!binary takes the base64 form of a UTF-8 text")
        if isinstance(value, float) and not math.isfinite(value):
            self._fail(node, path, f"{shown(text)[1:-1]} has no JSON form; use a finite number or quote it")
        return value

    def _fail(self, node: yaml.Node, path: json_pointers.Path, problem: str) -> NoReturn:
        raise RuleError(problem, node.start_mark, path)


class Loader(yaml.CSafeLoader):
    """The parser with bounds; it makes nodes, of which :class:`Builder` makes values."""

    def __init__(self, text: str) -> None:
        for count, directive in enumerate(_DIRECTIVE.finditer(text), start=1):
            if count > MAX_DIRECTIVES or len(directive[0]) > MAX_DIRECTIVE_CHARS:
                raise RuleError(
                    f"it has more than {MAX_DIRECTIVES} lines that begin with '%', or one of more than "
                    f"{MAX_DIRECTIVE_CHARS} characters; write tags without directives"
                )
        super().__init__(text)
        self._depth = 0
        # Without an anchor and an alias there is nothing to measure.
        self._measure = _Measure(len(text)) if "&" in text and "*" in text else None
        anchors = _ANCHOR.findall(text)
        # The composer in C refuses an anchor that is set again, and is much faster.
        self._composer: Any = _Composer(self) if len(set(anchors)) < len(anchors) else super()

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
            return _CORE + ("map" if kind is yaml.MappingNode else "seq")
        if not implicit[0]:
            return STRING
        return _MERGE if value == "<<" else PLAIN

    def descend_resolver(self, current_node: yaml.Node | None, current_index: Any) -> None:  # noqa: ANN401, ARG002  # PyYAML's
        """Stop at absurd nesting: the parser in C recurses without a guard."""
        self._depth += 1
        if self._depth > MAX_DEPTH + 1:
            raise RuleError(TOO_DEEP, None if current_node is None else current_node.start_mark)

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


_ANCHOR: Final = re.compile(r"&[^\s,\[\]{}]+")


def shown(text: str) -> str:
    """Return a text for an error, cut if it is long."""
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…")


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
        raise RuleError(problem, node.start_mark, tuple(self._path))


_OPEN: Final = (-1, -1)
_TOO_LARGE: Final = "aliases expand to more than {} nodes; use fewer"
