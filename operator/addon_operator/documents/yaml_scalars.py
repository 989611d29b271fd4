"""What a plain (unquoted, untagged) YAML scalar means.

Charts read their ``values.yaml`` through Helm, whose parser follows YAML 1.1 for words and YAML 1.2 for octal
numbers, knows no sexagesimal numbers, and hands dates on as strings. Values must mean the same with the
operator, so the rules here are those of Helm's parser (``sigs.k8s.io/yaml`` over ``go-yaml`` v2).
"""

import base64
import decimal
import math
import re
from typing import Final, TypeAlias

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
    """The value of a plain scalar: ``yes`` is true, ``0o17`` and ``017`` are 15, ``12:30`` is a string.

    An infinite number or "not a number" comes back as such a float, for the caller to refuse.
    """
    initial = text[:1]
    if initial in _WORD_INITIALS and text in _WORDS:
        return _WORDS[text]
    return _number(text) if initial in _NUMBER_INITIALS else text


def key(text: str) -> str | None:
    """A plain scalar as the key of a mapping: numbers and booleans become text, as Helm hands them on.

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
    """The shortest text as Go writes it: with an exponent below -4 and from 6 on."""
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
    """Whether the plain scalar is one of the words that surprise as a boolean: ``yes no on off y n``."""
    return text in _UNUSUAL_BOOLEANS


def integral(number: float) -> int | float:
    """The number as an integer where it is one, as Helm hands ``1.0`` and ``1e3`` on."""
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
    """The number, or ``None`` if it has so many digits that it is none that we keep exact."""
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
