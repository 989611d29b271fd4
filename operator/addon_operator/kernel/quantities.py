"""Resource quantities (``100m``, ``1Gi``): read, compared and divided exactly.

Source: the serialization format of ``resource.Quantity`` in the Kubernetes API.
"""

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Final

# No length that a person would write is refused; the bounds keep a million digits, or 1e999999999, from being
# worked out.
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]{1,64}(?:\.[0-9]{0,64})?|\.[0-9]{1,64}))"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3}|)"
)
_BINARY: Final = {f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", start=1)}
_DECIMAL: Final = {
    suffix: Fraction(10) ** exponent
    for suffix, exponent in zip(
        ("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), range(-9, 19, 3), strict=True
    )
}
_SCALES: Final = {**_BINARY, **_DECIMAL}
_MAX_INT64: Final = 2**63 - 1
_LEAST_MEMORY: Final = 128 * 1024 * 1024


def parse(text: str) -> Fraction | None:
    """Return the exact amount that a quantity stands for, ``None`` when the text is not a quantity.

    >>> parse("1Gi") == parse("1024Mi")
    True
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    scale = _SCALES.get(match["suffix"]) or Fraction(Decimal(f"1{match['suffix']}"))
    return Fraction(match["number"].rstrip(".")) * scale


def canonical(value: str | int) -> str:
    """Return one text for all ways to write an amount: ``1Gi``, ``1024Mi`` and ``1073741824`` are equal.

    A text that is not a quantity stays as it is, so that it equals only itself.
    """
    text = str(value)
    amount = parse(text)
    return text if amount is None else str(amount)


def memory(text: str) -> int:
    """Return the bytes that a quantity of memory for a process stands for: 128 MiB or more.

    No program of Go even starts with less than half of that. Raises ``ValueError``.
    """
    amount = parse(text)
    if amount is None or amount < _LEAST_MEMORY:
        raise ValueError
    return int(amount)


def mebibytes(amount: int) -> str:
    """Return bytes as a quantity: in ``Mi`` if that is a whole number."""
    count, rest = divmod(amount, 1024 * 1024)
    return str(amount) if rest else f"{count}Mi"


def ratio(quantity: Fraction, divisor: Fraction) -> str:
    """Say how often the divisor goes into the quantity, rounded up, as the kubelet writes it.

    Nothing below 0 or above the largest 64-bit integer comes out.
    """
    if quantity <= 0 or divisor <= 0:
        return "0"
    return str(min(math.ceil(quantity / divisor), _MAX_INT64))
