"""Where the objects of a release are otherwise than its manifest says."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from addon_operator.documents import json_pointers
from addon_operator.engine.drift import live_contents, restoring, watched_resources
from addon_operator.helm import release_types
from addon_operator.kernel import clock as clocks
from addon_operator.modules import keeping, manifests
from addon_operator.modules.drift import drift_config, field_drift, others_fields

_REPLICAS: Final = ("spec", "replicas")
"""The field that autoscalers write."""
_AUTOSCALERS: Final = frozenset({"HorizontalPodAutoscaler", "ScaledObject"})
_SCALED_BY_DEFAULT: Final = "Deployment"
_SETTLES: Final = 2.0
"""Seconds that clocks of hooks' pods and of the API server may differ."""


_EXEMPT: Final = ("addon-operator.io/drift", "ignore")


Found = dict[watched_resources.Watched, list[field_drift.Difference]]


def find(
    config: drift_config.DriftConfig,
    deployed: release_types.Deployed,
    namespace: str,
    resources: Iterable[watched_resources.Watched],
    contents: live_contents.Contents,
) -> tuple[dict[watched_resources.Watched, manifests.Object], Found]:
    """Return what the manifest has of the resources, and where they differ; for a thread."""
    expected = dict(restoring.find(deployed.manifest, resources, namespace))
    settled = clocks.rfc3339(deployed.settled + _SETTLES) if deployed.settled else ""
    found: Found = {}
    targets: frozenset[tuple[str, str]] | None = None
    for watched, body in expected.items():
        live = contents.get(watched)
        if live is None or _is_exempt(body) or _is_exempt(live):
            continue
        differences = [
            each
            for each in others_fields.changes(body, live, settled=settled)
            if config.counts(watched.resource.kind, watched.key.name, each.path)
        ]
        differences += _left(deployed, live)
        if any(each.path == _REPLICAS for each in differences):
            targets = frozenset(scaled(deployed.manifest)) if targets is None else targets
            if (watched.resource.kind, watched.key.name) in targets:
                differences = [each for each in differences if each.path != _REPLICAS]
        if differences:
            found[watched] = differences
    return expected, found


def _left(deployed: release_types.Deployed, live: manifests.Object) -> Iterator[field_drift.Difference]:
    """Yield what an earlier revision left in an object, as long as it is there."""
    for each in deployed.left:
        if (
            each.uid == live["metadata"].get("uid")
            and (value := json_pointers.find(live, each.path)) is not None
        ):
            command = keeping.deletion(each.kind, each.namespace, each.name)
            yield field_drift.Difference(each.path, each.path, None, value, left_until=command)


def _is_exempt(body: manifests.Object) -> bool:
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    key, value = _EXEMPT
    return isinstance(annotations, dict) and annotations.get(key) == value


def scaled(manifest: str) -> Iterator[tuple[str, str]]:
    """Yield kind and name of what autoscalers in a manifest scale: how many pods it has is for them."""
    for _, body in manifests.find_objects(manifest, lambda each: each.kind in _AUTOSCALERS):
        spec: Any = body.get("spec")
        target = spec.get("scaleTargetRef") if isinstance(spec, dict) else None
        if isinstance(target, dict):
            yield str(target.get("kind") or _SCALED_BY_DEFAULT), str(target.get("name") or "")
