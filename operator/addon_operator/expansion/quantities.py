"""Quantities of the Kubernetes API, exactly."""

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Final

# No length that a person would write is refused; the bounds keep 1e999999999 from being worked out.
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]{1,64}(?:\.[0-9]{0,64})?|\.[0-9]{1,64}))"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]{1,3}))?"
)
_BINARY: Final = "KMGTPE"
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_MAX_INT64: Final = 2**63 - 1


def parse(text: str) -> Fraction | None:
    """The number that a quantity stands for (``500m``, ``1.5Gi``, ``2e3``), or ``None`` when it is none.

    Source: the serialization format of ``resource.Quantity`` in the Kubernetes API.
    """
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        return None
    return Fraction(Decimal(match["number"])) * _factor(match["suffix"] or "", int(match["exponent"] or 0))


def ratio(quantity: Fraction, divisor: Fraction) -> str:
    """How often the divisor goes into the quantity, rounded up, as the kubelet writes it.

    Nothing below 0 or above the largest 64-bit integer comes out.
    """
    if quantity <= 0 or divisor <= 0:
        return "0"
    return str(min(math.ceil(quantity / divisor), _MAX_INT64))


def _factor(suffix: str, exponent: int) -> Fraction:
    if suffix.endswith("i"):
        return Fraction(1024) ** (_BINARY.index(suffix[0]) + 1)
    return Fraction(10) ** _DECIMAL.get(suffix, exponent)
