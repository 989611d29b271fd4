"""What msgspec raises for JSON that is not what was asked for."""

from typing import Final

import msgspec

BROKEN: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""JSON with a mistake or of another shape; text that is not UTF-8; values nested too deep."""
