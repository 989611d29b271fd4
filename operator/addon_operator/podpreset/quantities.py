"""Resource quantities (``100m``, ``1Gi``), as far as comparing and checking them needs.

Source: "Quantity" of the Kubernetes API reference.
"""

import decimal
import fractions
import re
from typing import Final

# No length that a person would write is refused; the bound keeps a million digits from being worked out.
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]{1,64}(?:\.[0-9]{0,64})?|\.[0-9]{1,64}))"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3}|)"
)
_BINARY: Final = {
    f"{letter}i": fractions.Fraction(1024**power) for power, letter in enumerate("KMGTPE", start=1)
}
_DECIMAL: Final = {
    suffix: fractions.Fraction(decimal.Decimal(f"1e{exponent}"))
    for suffix, exponent in zip(
        ("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), range(-9, 19, 3), strict=True
    )
}


def parse(text: str) -> fractions.Fraction | None:
    """The exact amount that a quantity stands for, ``None`` when the text is no quantity.

    >>> parse("1Gi") == parse("1024Mi")
    True
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    return fractions.Fraction(match["number"].rstrip(".")) * _scale(match["suffix"])


def _scale(suffix: str) -> fractions.Fraction:
    if suffix in _BINARY:
        return _BINARY[suffix]
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    return fractions.Fraction(decimal.Decimal(f"1{suffix}"))


def canonical(value: str | int) -> str:
    """One text for all ways to write an amount: ``1Gi``, ``1024Mi`` and ``1073741824`` are equal.

    A text that is no quantity stays as it is, so that it equals only itself.
    """
    text = str(value)
    amount = parse(text)
    return text if amount is None else str(amount)
