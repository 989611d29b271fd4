"""Names for JSON documents as they travel between files, the API server and hooks."""

from collections.abc import Mapping
from typing import Any, TypeAlias

JsonValue: TypeAlias = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None
JsonObject: TypeAlias = dict[str, JsonValue]
KubernetesObject: TypeAlias = Mapping[str, Any]
"""An object of the Kubernetes API as decoded JSON."""
