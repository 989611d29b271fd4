"""Changes of Kubernetes objects that a hook asks for."""

from __future__ import annotations

from addon_operator.hook import values

TYPE_CHECKING = False  # To import typing takes longer than the whole library.
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Unpack

    from addon_operator.hook.aliases import Object, PatchTarget, Target
    from addon_operator.kernel.json_types import JsonObject

_FIELDS = {
    "namespace": "namespace",
    "api_version": "apiVersion",
    "subresource": "subresource",
    "ignore_missing_object": "ignoreMissingObject",
    "ignore_hook_error": "ignoreHookError",
}


class Kubernetes:
    """Collects changes of objects; see "Kubernetes patches" of ``docs/reference/hooks.md``.

    The operator carries them out in their order when the hook has ended well. ``operations`` are the
    documents so far.
    """

    def __init__(self, operations: list[JsonObject] | None = None) -> None:
        self.operations: list[JsonObject] = [] if operations is None else operations

    def create(self, body: Object) -> None:
        """Create an object; the hook fails if it exists."""
        self._note("Create", object=body)

    def create_or_update(self, body: Object, *, subresource: str = "") -> None:
        """Create an object, or replace it as a whole if it exists."""
        self._note("CreateOrUpdate", object=body, **_subresource(subresource))

    def create_if_not_exists(self, body: Object) -> None:
        """Create an object unless it exists."""
        self._note("CreateIfNotExists", object=body)

    def apply(
        self, body: Object, *, force: bool = False, field_manager: str = "", subresource: str = ""
    ) -> None:
        """Apply on the server's side; ``force`` takes fields over from other managers."""
        manager = {"fieldManager": field_manager} if field_manager else {}
        forced = {"force": True} if force else {}
        self._note("Apply", object=body, **manager, **forced, **_subresource(subresource))

    def merge_patch(
        self, kind: str, name: str, patch: Mapping[str, Any] | str, **target: Unpack[PatchTarget]
    ) -> None:
        """Apply a JSON merge patch (RFC 7386): ``None`` removes a key."""
        self._note("MergePatch", kind=kind, name=name, mergePatch=patch, **_fields(target))

    def json_patch(
        self, kind: str, name: str, patch: Sequence[Mapping[str, Any]] | str, **target: Unpack[PatchTarget]
    ) -> None:
        """Apply a JSON patch (RFC 6902)."""
        operations = patch if isinstance(patch, str) else list(patch)
        self._note("JSONPatch", kind=kind, name=name, jsonPatch=operations, **_fields(target))

    def jq_patch(self, kind: str, name: str, expression: str, **target: Unpack[PatchTarget]) -> None:
        """Replace the object by what a jq expression makes of it."""
        self._note("JQPatch", kind=kind, name=name, jqFilter=expression, **_fields(target))

    def delete(self, kind: str, name: str, **target: Unpack[Target]) -> None:
        """Delete an object and what belongs to it, and wait until it is gone."""
        self._note("Delete", kind=kind, name=name, **_fields(target))

    def delete_in_background(self, kind: str, name: str, **target: Unpack[Target]) -> None:
        """Delete an object; what belongs to it follows in its own time."""
        self._note("DeleteInBackground", kind=kind, name=name, **_fields(target))

    def delete_non_cascading(self, kind: str, name: str, **target: Unpack[Target]) -> None:
        """Delete an object; what belongs to it stays."""
        self._note("DeleteNonCascading", kind=kind, name=name, **_fields(target))

    def _note(self, operation: str, **fields: Any) -> None:  # noqa: ANN401 - fields of many types
        document = values.json_copy({"operation": operation, **fields}, operation)
        if isinstance(document, dict):
            self.operations.append(document)


def _subresource(name: str) -> dict[str, str]:
    return {"subresource": name} if name else {}


def _fields(target: Mapping[str, Any]) -> dict[str, Any]:
    return {_FIELDS[name]: value for name, value in target.items()}
