"""Why a hook runs: binding contexts and snapshots.

Shapes: "Binding contexts" of ``docs/reference/hooks.md``.
"""

from __future__ import annotations

from addon_operator.hook import failures

TYPE_CHECKING = False  # To import typing takes longer than the whole library.
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from addon_operator.hook.aliases import ContextType, WatchEvent
    from addon_operator.kernel.json_types import JsonObject

_ASKED = "kubernetesValidating, kubernetesMutating or a conversion"
_KEEP_OLD = "keepOldObject: true, and a Modified,"


class Entry:
    """An object in a snapshot or a context."""

    __slots__ = ("raw",)

    def __init__(self, raw: JsonObject) -> None:
        self.raw = raw
        """As the operator wrote it."""

    @property
    def object(self) -> dict[str, Any]:
        """The Kubernetes object.

        Raises :class:`.MissingError` where the binding does not keep it.
        """
        found: dict[str, Any] = self._member("object", "keepFullObjectsInMemory: true")
        return found

    @property
    def filter_result(self) -> Any:  # noqa: ANN401 - the author knows what the filter gives
        """The result of the binding's ``jqFilter``.

        Raises :class:`.MissingError` if the binding has none.
        """
        return self._member("filterResult", "a jqFilter")

    def _member(self, key: str, remedy: str) -> Any:  # noqa: ANN401 - as above
        if key not in self.raw:
            takes = remedy if key == "review" else f"a kubernetes binding with {remedy}"
            raise failures.MissingError(f"there is no {key!r} here; it takes {takes}")
        return self.raw[key]


class Snapshots(dict[str, list[Entry]]):
    """Lists of objects by the name of their kubernetes binding."""

    def __missing__(self, name: str) -> list[Entry]:
        """Say which snapshots there are."""
        known = ", ".join(map(repr, self)) or "none"
        raise failures.MissingError(
            f"there is no snapshot {name!r} in this run, only {known}; name it in includeSnapshotsFrom"
        )


class Context(Entry):
    """One reason of a run."""

    __slots__ = ("snapshots",)

    def __init__(self, raw: JsonObject) -> None:
        super().__init__(raw)
        listed: Any = raw.get("snapshots", {})
        self.snapshots = Snapshots({name: _entries(entries) for name, entries in listed.items()})
        """The snapshots that this context brings."""

    @property
    def binding(self) -> str:
        """Name of the binding: ``onStartup``, ``beforeHelm`` …, or the ``name`` in the configuration."""
        return self._text("binding")

    @property
    def type(self) -> ContextType:
        """What kind of context it is; empty for a lifecycle step such as ``beforeHelm``."""
        found: Any = self._text("type")
        type_: ContextType = found
        return type_

    @property
    def watch_event(self) -> WatchEvent:
        """What happened to the object; empty for all but events."""
        found: Any = self._text("watchEvent")
        event: WatchEvent = found
        return event

    @property
    def old_object(self) -> dict[str, Any]:
        """The Kubernetes object before a ``Modified``.

        Raises :class:`.MissingError` in other contexts, and where the binding does not keep it.
        """
        found: dict[str, Any] = self._member("oldObject", _KEEP_OLD)
        return found

    @property
    def old_filter_result(self) -> Any:  # noqa: ANN401 - as for filter_result
        """The result of the binding's ``jqFilter`` before a ``Modified``; raises as :attr:`old_object`."""
        return self._member("oldFilterResult", f"{_KEEP_OLD} and a jqFilter")

    @property
    def group(self) -> str:
        """Name of the group; empty if the binding has none."""
        return self._text("groupName")

    @property
    def from_version(self) -> str:
        """The version of the objects of a conversion, as the configuration writes it; empty in others."""
        return self._text("fromVersion")

    @property
    def to_version(self) -> str:
        """The version that a conversion is to bring them to, as the configuration writes it."""
        return self._text("toVersion")

    @property
    def review(self) -> dict[str, Any]:
        """The request of the API server: ``operation``, ``object``, ``oldObject`` and so on.

        Of a conversion it has ``objects`` and ``desiredAPIVersion``.
        Raises :class:`.MissingError` in runs for which the API server did not ask.
        """
        request: dict[str, Any] = self._member("review", _ASKED)["request"]
        return request

    @property
    def objects(self) -> list[Entry]:
        """All objects of the binding, at its Synchronization; empty in other contexts."""
        return _entries(self.raw.get("objects", []))

    def _text(self, key: str) -> str:
        return str(self.raw.get(key, ""))


def merged_snapshots(contexts: Iterable[Context]) -> Snapshots:
    """Merge the snapshots of a run: those of one name are the same in all of its contexts."""
    return Snapshots({name: listed for context in contexts for name, listed in context.snapshots.items()})


def _entries(listed: Any) -> list[Entry]:  # noqa: ANN401 - a list as the operator wrote it
    return [Entry(item) for item in listed]
