"""What autoscalers of a release scale: how many pods there are of that is theirs to say."""

from collections.abc import Iterator
from typing import Any, Final

from addon_operator.modules import manifests

REPLICAS: Final = ("spec", "replicas")
"""The field that they write."""
_KINDS: Final = frozenset({"HorizontalPodAutoscaler", "ScaledObject"})
_DEFAULT_KIND: Final = "Deployment"


def targets(manifest: str) -> frozenset[tuple[str, str]]:
    """Return kind and name of what the autoscalers in a manifest scale."""
    return frozenset(_targets(manifest))


def _targets(manifest: str) -> Iterator[tuple[str, str]]:
    for _, body in manifests.find_objects(manifest, lambda each: each.kind in _KINDS):
        spec: Any = body.get("spec")
        target = spec.get("scaleTargetRef") if isinstance(spec, dict) else None
        if isinstance(target, dict):
            yield str(target.get("kind") or _DEFAULT_KIND), str(target.get("name") or "")
