"""``$(VAR)`` expansion, pure: references, and the environment of a container.

Usable as a library without a cluster; ``docs/reference/expansion.md`` has the rules and examples.
"""

from addon_operator.expansion.environment import container_environment, unresolved_references
from addon_operator.expansion.fields import EXPANDED_MAX, ExpansionSizeError, MalformedObjectError
from addon_operator.expansion.references import (
    ContainerEnvironment,
    EventRecorder,
    MappingFunc,
    MissingSource,
    SkippedKey,
    SubPath,
    UnresolvedReference,
    expand,
    mapping_func_for,
    unresolved_message,
)
from addon_operator.expansion.services import service_environment

__all__ = [
    "expand",
    "mapping_func_for",
    "EventRecorder",
    "MappingFunc",
    "container_environment",
    "ContainerEnvironment",
    "UnresolvedReference",
    "MissingSource",
    "SkippedKey",
    "SubPath",
    "unresolved_message",
    "service_environment",
    "unresolved_references",
    "MalformedObjectError",
    "ExpansionSizeError",
    "EXPANDED_MAX",
]
