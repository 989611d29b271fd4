"""Where the objects of a release are otherwise than its manifest says."""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import structs

from addon_operator.documents import json_pointers
from addon_operator.engine.drift import live_contents, restoring, watched_resources
from addon_operator.helm import release_types
from addon_operator.kernel import clock as clocks
from addon_operator.modules import keeping, manifests
from addon_operator.modules.drift import drift_config, field_drift, not_ours, others_fields

_SETTLES: Final = 2.0
"""Seconds that clocks of hooks' pods and of the API server may differ."""


_EXEMPT: Final = ("addon-operator.io/drift", "ignore")


Found = dict[watched_resources.Watched, list[field_drift.Difference]]
Outcome = tuple[dict[watched_resources.Watched, manifests.Object], Found, not_ours.Surroundings]


def find(
    config: drift_config.DriftConfig,
    deployed: release_types.Deployed,
    namespace: str,
    resources: Iterable[watched_resources.Watched],
    contents: live_contents.Contents,
    scaled: frozenset[not_ours.Target] = frozenset(),
) -> Outcome:
    """Return what the manifest has of the resources, where they differ, and what decided; for a thread.

    ``scaled``: what autoscalers scale that the release does not have.
    """
    expected = dict(restoring.find(deployed.manifest, resources, namespace))
    settled = clocks.rfc3339(deployed.settled + _SETTLES) if deployed.settled else ""
    found: Found = {}
    around: not_ours.Surroundings | None = None
    for watched, body in expected.items():
        live = contents.get(watched)
        if live is None or _is_exempt(body) or _is_exempt(live):
            continue
        differences = others_fields.changes(body, live, settled=settled)
        if differences:
            # The whole manifest is read for this.
            around = _surroundings(deployed, namespace, scaled) if around is None else around
            differences = others_fields.changes(body, live, around, settled=settled)
        kind, name = watched.resource.kind, watched.key.name
        differences = [each for each in differences if config.counts(kind, name, each.path)]
        differences += _left(deployed, live)
        if differences:
            found[watched] = differences
    return expected, found, around or not_ours.NOTHING


def _surroundings(
    deployed: release_types.Deployed, namespace: str, scaled: frozenset[not_ours.Target]
) -> not_ours.Surroundings:
    """Return what decides beside an object whether its fields are ours."""
    around = not_ours.surroundings(deployed.manifest, namespace)
    return structs.replace(around, scaled=around.scaled | scaled)


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
