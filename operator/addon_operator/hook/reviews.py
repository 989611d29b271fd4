"""Answers to requests of the API server."""

from __future__ import annotations

import json

from addon_operator.hook import failures
from addon_operator.hook import values as hook_values

TYPE_CHECKING = False  # To import typing takes longer than the whole library.
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from addon_operator.kernel.json_types import JsonObject

VARIABLE = "ADMISSION_RESPONSE_PATH"


class Answers:
    """What a run answers; several answers are one, which denies if one of them does."""

    def __init__(self) -> None:
        self._responses: list[JsonObject] = []

    def deny(self, message: str) -> None:
        """Deny the request; the user sees the message."""
        self._responses.append({"allowed": False, "message": message})

    def allow(self, warnings: Sequence[str] = ()) -> None:
        """Allow the request; the user sees the warnings."""
        if isinstance(warnings, str):
            raise failures.HookError('warnings is a list of texts; write warnings=["…"]')
        self._responses.append({"allowed": True, **({"warnings": list(warnings)} if warnings else {})})

    def patch_object(self, operations: Sequence[Mapping[str, Any]]) -> None:
        """Allow the request, and have the API server change the object by a JSON patch (RFC 6902).

        Raises :class:`.HookError` for what is not JSON.
        """
        copied = hook_values.json_copy(list(operations), "the patch of the object")
        self._responses.append({"allowed": True, "patch": copied})

    def text(self) -> str:
        """Return the answer as the operator reads it; empty if there is none."""
        if not self._responses:
            return ""
        return json.dumps(self._responses[0] if len(self._responses) == 1 else self._responses)
