"""Key ``health`` of ``module.yaml``: what counts for the health of a module, and what its runs do with it."""

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from addon_operator.kernel import clock, json_types
from addon_operator.modules.health import module_health

TIMEOUT_SECONDS: Final = 300.0
"""How long a run waits if ``timeout`` says nothing; Helm's own default."""
MOST_ENTRIES: Final = 50
"""How many rules, and how many patterns, a list may have: each resource is compared with all of them."""


class ResourcePattern(msgspec.Struct, frozen=True):
    """Resources by kind and name, as file names are matched: ``*`` stands for any characters."""

    kind: str = "*"
    name: str = "*"

    def matches(self, kind: str, name: str) -> bool:
        """Say whether it means that resource."""
        return fnmatch.fnmatchcase(kind, self.kind) and fnmatch.fnmatchcase(name, self.name)


class HealthRule(msgspec.Struct, frozen=True):
    """When resources of a kind are healthy, and when they have failed, in CEL over ``self``."""

    api_version: str
    kind: str
    healthy: str = ""
    failed: str = ""

    def is_for(self, api_version: str, kind: str) -> bool:
        """Say whether it is about a kind: ``*`` stands for any characters, as in ``example.com/*``."""
        names = ((api_version, self.api_version), (kind, self.kind))
        return all(fnmatch.fnmatchcase(name, pattern) for name, pattern in names)

    @property
    def document(self) -> json_types.JsonObject:
        """The rule as somebody writes it."""
        named = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "healthy": self.healthy,
            "failed": self.failed,
        }
        return {key: text for key, text in named.items() if text}


class HealthConfig(msgspec.Struct, frozen=True):
    """All that the key says; durations are seconds."""

    wait: bool = False
    """Whether a run ends only when the module is healthy."""
    timeout: float = TIMEOUT_SECONDS
    """How long a run waits for that."""
    deadline: float = module_health.DEADLINE_SECONDS
    """How long a resource may be in progress before that is a failure."""
    test: bool = False
    """Whether the chart's tests run after an install or upgrade that is healthy."""
    rules: tuple[HealthRule, ...] = ()
    ignore: tuple[ResourcePattern, ...] = ()

    def rule_of(self, api_version: str, kind: str) -> HealthRule | None:
        """Return the rule for resources of a kind, if there is one."""
        return next((rule for rule in self.rules if rule.is_for(api_version, kind)), None)

    def counts(self, kind: str, name: str) -> bool:
        """Say whether a resource counts for the module's health."""
        return not any(pattern.matches(kind, name) for pattern in self.ignore)


def read(found: Mapping[str, Any]) -> HealthConfig:
    """Read a key that the schema allows."""
    return HealthConfig(
        wait=found.get("wait", False),
        timeout=_seconds(found, "timeout", TIMEOUT_SECONDS),
        deadline=_seconds(found, "deadline", module_health.DEADLINE_SECONDS),
        test=found.get("test", False),
        rules=tuple(_rule(each) for each in found.get("rules", ())),
        ignore=patterns(found.get("ignore", ())),
    )


def patterns(found: Sequence[Mapping[str, Any]]) -> tuple[ResourcePattern, ...]:
    """Read a list of resources by kind and name."""
    return tuple(ResourcePattern(each.get("kind", "*"), each.get("name", "*")) for each in found)


def _rule(found: Mapping[str, Any]) -> HealthRule:
    return HealthRule(found["apiVersion"], found["kind"], found.get("healthy", ""), found.get("failed", ""))


def _seconds(found: Mapping[str, Any], key: str, default: float) -> float:
    return clock.parse_duration(found[key]) if key in found else default
