"""Names of types, for annotations: to make them takes as long as half of the library, so no run does."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

if TYPE_CHECKING:
    from addon_operator.hook.running import Run

Config: TypeAlias = Mapping[str, Any] | str
"""A hook's configuration, also as a text of YAML or JSON."""
Main: TypeAlias = "Callable[[Run], None]"
Object: TypeAlias = Mapping[str, Any] | str
"""A Kubernetes object, also as a text of JSON or YAML."""
Path: TypeAlias = str | Sequence[str | int]
"""Keys with dots between them, a JSON pointer (RFC 6901), or the keys one by one."""
Tokens: TypeAlias = tuple[str, ...]
ContextType: TypeAlias = Literal[
    "", "Schedule", "Synchronization", "Event", "Group", "Validating", "Mutating", "Conversion"
]
WatchEvent: TypeAlias = Literal["", "Added", "Modified", "Deleted"]
Convert: TypeAlias = Callable[[dict[str, Any]], Mapping[str, Any] | None]
"""Converts one object: changes it, or returns another."""


class Target(TypedDict, total=False):
    """What may be said of the object of a patch or deletion beside its kind and name."""

    namespace: str
    """Needed for objects in namespaces, wrong for others."""
    api_version: str
    """The one that the API server prefers if there is none."""
    subresource: str
    """Such as ``status``."""
    ignore_missing_object: bool
    """Whether it is fine that there is no such object; for deletions it is unless this says otherwise."""


class PatchTarget(Target, total=False):
    """What may be said of the object of a patch."""

    ignore_hook_error: bool
    """Whether a patch of ``status`` is made even though the hook fails."""
