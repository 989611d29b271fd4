"""Numbers and booleans as the text that a person wrote for them."""

import decimal
import re
from typing import Final

_PLAIN_FROM: Final = 1e-6
_PLAIN_BELOW: Final = 1e21
_PADDED_EXPONENT: Final = re.compile(r"(e[+-])0+(?=[0-9])")


def text(value: str | float | bool | None) -> str:
    """The text of a scalar: ``6379`` → ``"6379"``, ``true`` → ``"true"``, ``1.5`` → ``"1.5"``, null → ``""``.

    A number is written as the API server writes it in JSON: no exponent between 1e-6 and 1e21, and a whole
    number without a decimal point.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _number(value)
    return str(value)


def _number(value: float) -> str:
    if value.is_integer() and abs(value) < _PLAIN_BELOW:
        return str(int(value))
    if _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return format(decimal.Decimal(repr(value)), "f")
    return _PADDED_EXPONENT.sub(r"\1", repr(value))
