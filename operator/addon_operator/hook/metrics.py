"""Metrics that a hook exports."""

from __future__ import annotations

from addon_operator.hook import values

TYPE_CHECKING = False  # To import typing takes longer than the whole library.
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from addon_operator.kernel.json_types import JsonObject, JsonValue


class Metrics:
    """Collects operations on metrics; see "Metrics" of ``docs/reference/hooks.md``.

    The operator adds the labels ``hook`` and ``module``. Series with a ``group`` expire with the
    next run that names the group and not them. ``operations`` are the documents so far.
    """

    def __init__(self, operations: list[JsonObject] | None = None) -> None:
        self.operations: list[JsonObject] = [] if operations is None else operations

    def add(
        self, name: str, value: float = 1, labels: Mapping[str, str] | None = None, *, group: str = ""
    ) -> None:
        """Raise a counter by ``value``, which must not be negative."""
        self._note(name, "add", value, labels, group)

    def set(
        self, name: str, value: float, labels: Mapping[str, str] | None = None, *, group: str = ""
    ) -> None:
        """Set a gauge."""
        self._note(name, "set", value, labels, group)

    def observe(
        self,
        name: str,
        value: float,
        labels: Mapping[str, str] | None = None,
        *,
        buckets: Sequence[float] = (),
        group: str = "",
    ) -> None:
        """Count ``value`` in a histogram; ``buckets`` are its upper bounds in ascending order."""
        bounds: JsonValue = list(buckets)
        self._note(name, "observe", value, labels, group, **({"buckets": bounds} if bounds else {}))

    def expire(self, group: str) -> None:
        """Remove all series of a group."""
        self.operations.append({"group": group, "action": "expire"})

    def _note(
        self,
        name: str,
        action: str,
        value: float,
        labels: Mapping[str, str] | None,
        group: str,
        **more: JsonValue,
    ) -> None:
        operation: JsonObject = {"name": name, "action": action, "value": value, **more}
        if labels:
            operation["labels"] = {key: str(text) for key, text in labels.items()}
        if group:
            operation["group"] = group
        values.json_copy(operation, f"metric {name}")
        self.operations.append(operation)
