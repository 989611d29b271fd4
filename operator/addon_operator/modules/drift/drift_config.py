"""Key ``drift`` of ``module.yaml``: what happens when somebody changes resources, and what does not count."""

import enum
from collections.abc import Mapping
from typing import Any

import msgspec

from addon_operator.documents import json_pointers
from addon_operator.modules.drift import field_drift
from addon_operator.modules.health import health_config


class DriftMode(enum.StrEnum):
    """What happens when somebody changes resources of a release."""

    IGNORE = "ignore"
    WARN = "warn"
    CORRECT = "correct"


class IgnoredFields(msgspec.Struct, frozen=True):
    """Fields of resources; without paths the whole resources."""

    resources: health_config.ResourcePattern
    paths: tuple[json_pointers.Tokens, ...] = ()

    def covers(self, kind: str, name: str, path: field_drift.Path) -> bool:
        """Say whether it means a field of a resource, or something that the field lies in."""
        if not self.resources.matches(kind, name):
            return False
        return not self.paths or any(json_pointers.is_prefix(each, path) for each in self.paths)


class DriftConfig(msgspec.Struct, frozen=True):
    """All that the key says."""

    mode: DriftMode | None = None
    """``None``: as the setting ``DRIFT_MODE`` says."""
    ignore: tuple[IgnoredFields, ...] = ()

    def counts(self, kind: str, name: str, path: field_drift.Path) -> bool:
        """Say whether a difference at that path of a resource counts."""
        return not any(each.covers(kind, name, path) for each in self.ignore)


def read(found: Mapping[str, Any]) -> DriftConfig:
    """Read a key that the schema allows."""
    mode = found.get("mode")
    return DriftConfig(
        None if mode is None else DriftMode(mode), tuple(_ignored(each) for each in found.get("ignore", ()))
    )


def _ignored(found: Mapping[str, Any]) -> IgnoredFields:
    (pattern,) = health_config.patterns([found])
    return IgnoredFields(pattern, tuple(json_pointers.parse(each) for each in found.get("paths", ())))
