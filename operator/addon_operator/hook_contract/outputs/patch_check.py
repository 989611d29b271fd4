"""Whether the API server will be able to apply a hook's JSON patch: its own error names no hook."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import jsonpatch
import jsonpointer
import orjson

from addon_operator.documents import json_pointers
from addon_operator.kernel import errors
from addon_operator.kernel.json_types import JsonObject

MAX_COPIED_BYTES: Final = 3 << 20
"""Of all copies of a patch together, as JSON: no request may be larger."""
_MAX_WORK: Final = 256 << 20
"""Operations by bytes of the object; what is beyond it is left to the API server."""


class PatchError(errors.AddonOperatorError):
    """A patch does not apply; the text has nothing of the object."""


def check(sent: bytes, operations: Sequence[Mapping[str, Any]]) -> None:
    """Raise :class:`PatchError` if a patch does not apply to the object of an ``AdmissionReview``."""
    if not operations or len(sent) * len(operations) > _MAX_WORK or any(map(_counts_backwards, operations)):
        return
    document = orjson.loads(sent)["request"].get("object")
    if not isinstance(document, dict):
        raise PatchError("it has a 'patch', and there is no object that it could change: a deletion has none")
    kind, copied = _kind_of(document), 0
    for index, operation in enumerate(operations):
        place = f"patch[{index}] ({operation['op']} {operation['path']})"
        try:
            copied += _copied_bytes(document, operation)
            if copied > MAX_COPIED_BYTES:
                raise PatchError(f"{place}: all copies of the patch are over {MAX_COPIED_BYTES >> 20} MiB")
            document = jsonpatch.apply_patch(document, [operation], in_place=True)
        except jsonpatch.JsonPatchTestFailed:
            raise PatchError(f"{place}: it does not apply: the object has another value there") from None
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, AttributeError):
            raise PatchError(
                f"{place}: it does not apply: the object has no such place; add what leads there first"
            ) from None
    if _kind_of(document) != kind:
        raise PatchError("its patch changes 'apiVersion' or 'kind', and the object has to keep them")


def _kind_of(document: object) -> tuple[object, object] | None:
    return (document.get("apiVersion"), document.get("kind")) if isinstance(document, dict) else None


def _copied_bytes(document: JsonObject, operation: Mapping[str, Any]) -> int:
    if operation["op"] != "copy":
        return 0
    return len(orjson.dumps(jsonpointer.resolve_pointer(document, operation["from"])))


def _counts_backwards(operation: Mapping[str, Any]) -> bool:
    """Say whether a pointer may mean a place counted from the end of a list, as API servers take it."""
    pointers = (operation[key] for key in ("path", "from") if key in operation)
    return any(
        part.startswith("-") and part != "-" for text in pointers for part in json_pointers.parse(text)
    )
