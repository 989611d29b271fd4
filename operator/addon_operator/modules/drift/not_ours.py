"""What is not ours of a release's objects: the one list that drift, corrections, upgrades and rollbacks ask.

Such a field is no drift, and whatever writes the object keeps what others made of it. A new case is one row.
"""

import dataclasses
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

import msgspec

from addon_operator.kernel import quantities
from addon_operator.kernel.json_types import KubernetesObject
from addon_operator.modules import manifests
from addon_operator.modules.drift import field_owners

_OURS: Final = re.compile(r"helm\d*|addon-operator(?::.*)?|before-first-apply")
REPLICAS: Final = ("spec", "replicas")
"""The field that autoscalers write."""
PULL_SECRETS: Final = ("imagePullSecrets",)
_STORAGE: Final = ("spec", "resources", "requests", "storage")
_LONGEST: Final = 40
"""Characters of a quantity."""
_WEBHOOKS: Final = frozenset({"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"})
_SECRETS_OF_ACCOUNT: Final = ("secrets", "imagePullSecrets")
_RESTARTED: Final = "kubectl.kubernetes.io/restartedAt"
INJECTED: Final = frozenset({"caBundle", _RESTARTED})
"""Fields that others write wherever they are."""
_AUTOSCALERS: Final = frozenset({"HorizontalPodAutoscaler", "ScaledObject"})
_SCALED_BY_DEFAULT: Final = "Deployment"
_WORKLOADS: Final = frozenset(
    {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod", "ReplicationController"}
)
_PEOPLE: Final = re.compile(r"kubectl.*|sh|bash")
"""Programs in containers that people use, too: their names say nothing."""

MENTION: Final = re.compile(
    r"replicas|PersistentVolumeClaim|ServiceAccount|caBundle|failurePolicy|aggregationRule|restartedAt"
)
"""A word that is in each document with an object for which :func:`may_be_in` holds."""
Path = tuple[str, ...]
Target = tuple[str, str, str]
"""Namespace, kind and name of what an autoscaler scales."""


class Surroundings(msgspec.Struct, frozen=True):
    """What has to be known beside an object."""

    namespace: str = ""
    """That of the release."""
    scaled: frozenset[Target] = frozenset()
    """What autoscalers scale."""
    programs: frozenset[str] = frozenset()
    """Names under which programs of the release write objects."""


NOTHING: Final = Surroundings()


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """A field of an object that is otherwise than the chart says."""

    of: KubernetesObject
    """The object, as the chart has it."""
    path: Path
    wanted: Any = dataclasses.field(repr=False)
    """What the chart says; ``None`` if it no longer says anything."""
    live: Any = dataclasses.field(repr=False)
    """What there is; ``None`` if it is missing."""
    owners: Collection[field_owners.Owner]
    had: Any = dataclasses.field(default=None, repr=False)
    """What the chart of the deployed revision says, if that is not the same."""

    @property
    def kind(self) -> str:
        """The object's kind."""
        return str(self.of.get("kind"))

    @property
    def is_others(self) -> bool:
        """Whether somebody else wrote it, or did so, too."""
        return any(not is_ours(owner.manager) for owner in self.owners)


class Row(msgspec.Struct, frozen=True):
    """One case."""

    title: str
    is_meant: Callable[[Field, Surroundings], bool]
    kept: Callable[[Field], Any] = lambda field: field.live
    """What the field is to be, as JSON; by default what it is."""
    is_in: Callable[[KubernetesObject], bool] = lambda _: False
    """Whether an object of a chart may have such a field, so that it is looked at before it is written."""


ROWS: Final = (
    Row(
        "replicas of what an autoscaler scales",
        lambda field, around: field.path == REPLICAS and _target(field.of, around) in around.scaled,
        is_in=lambda body: _at(body, REPLICAS) is not None,
    ),
    Row(
        "the size of a claim that grew",
        lambda field, _: (
            field.kind == "PersistentVolumeClaim"
            and field.path == _STORAGE
            and _is_more(field.live, field.wanted)
        ),
        is_in=lambda body: body.get("kind") == "PersistentVolumeClaim",
    ),
    Row(
        "Secrets that were added to a ServiceAccount",
        lambda field, _: field.kind == "ServiceAccount" and field.path[0] in _SECRETS_OF_ACCOUNT,
        lambda field: field.live if field.path[0] == "secrets" else _both(field),
        is_in=lambda body: body.get("kind") == "ServiceAccount" and any(map(body.get, _SECRETS_OF_ACCOUNT)),
    ),
    Row(
        "caBundle that others wrote",
        lambda field, _: field.path[-1] == "caBundle" and field.is_others,
        is_in=lambda body: any(_find(body, "caBundle")),
    ),
    Row(
        "failurePolicy of a webhook that others wrote",
        lambda field, _: field.kind in _WEBHOOKS and field.path[-1] == "failurePolicy" and field.is_others,
        is_in=lambda body: body.get("kind") in _WEBHOOKS and any(_find(body, "failurePolicy")),
    ),
    Row(
        "rules of an aggregated ClusterRole",
        lambda field, _: field.path[0] == "rules" and _is_aggregated(field.of),
        is_in=lambda body: _is_aggregated(body) and "rules" in body,
    ),
    Row(
        "the time of kubectl rollout restart",
        lambda field, _: field.path[-1] == _RESTARTED and field.is_others,
        is_in=lambda body: any(_find(body, _RESTARTED)),
    ),
    Row(
        "what a program of the release wrote",
        lambda field, around: any(owner.manager in around.programs for owner in field.owners),
    ),
    Row(
        "what others own by server-side apply",
        lambda field, _: (
            field.had is None
            and any(owner.operation == "Apply" and not is_ours(owner.manager) for owner in field.owners)
        ),
    ),
)
"""The list. What means the same, such as ``1Gi`` and ``1024Mi``, is no difference to begin with."""


def kept(field: Field, around: Surroundings) -> Any:  # noqa: ANN401 - JSON
    """Return what a field is to be, as far as it is others'; else what the chart says."""
    if field.live is None:
        return field.wanted
    row = next((each for each in ROWS if each.is_meant(field, around)), None)
    return field.wanted if row is None else row.kept(field)


def may_be_in(body: KubernetesObject) -> bool:
    """Say whether a row may concern an object of a chart, whoever has written it."""
    return any(row.is_in(body) for row in ROWS)


def is_ours(manager: str) -> bool:
    """Say whether a manager is Helm or the operator, so that what it wrote is what the manifest led to."""
    return _OURS.fullmatch(manager) is not None


def surroundings(manifest: str, namespace: str) -> Surroundings:
    """Return what a manifest itself says; ``namespace`` is that of the release."""
    wanted = _AUTOSCALERS | _WORKLOADS
    found = [body for _, body in manifests.find_objects(manifest, lambda each: each.kind in wanted)]
    programs = frozenset(name for body in found for name in _programs(body))
    return Surroundings(namespace, frozenset(scaled(found, namespace)), programs)


def scaled(bodies: Collection[KubernetesObject], namespace: str) -> Iterator[Target]:
    """Yield what the autoscalers among these objects scale."""
    for body in bodies:
        target = _at(body, ("spec", "scaleTargetRef")) if body.get("kind") in _AUTOSCALERS else None
        if isinstance(target, dict):
            place = str(_at(body, ("metadata", "namespace")) or namespace)
            yield place, str(target.get("kind") or _SCALED_BY_DEFAULT), str(target.get("name") or "")


def _target(body: KubernetesObject, around: Surroundings) -> Target:
    metadata = body.get("metadata") or {}
    return (
        str(metadata.get("namespace") or around.namespace),
        str(body.get("kind")),
        str(metadata.get("name")),
    )


def _programs(body: KubernetesObject) -> Iterator[str]:
    """Yield the names of containers, commands and images: programs write under one of them."""
    for containers in (*_find(body, "containers"), *_find(body, "initContainers")):
        for each in containers if isinstance(containers, list) else ():
            if isinstance(each, dict):
                command = each.get("command")
                first = command[0] if isinstance(command, list) and command else ""
                image = str(each.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0]
                names = {str(each.get("name") or ""), str(first).rpartition("/")[2], image}
                yield from (name for name in names if name and not _PEOPLE.fullmatch(name))


def _is_aggregated(body: KubernetesObject) -> bool:
    return body.get("kind") == "ClusterRole" and bool(body.get("aggregationRule"))


def _is_more(live: Any, wanted: Any) -> bool:  # noqa: ANN401 - JSON
    """Say whether a live size is not less than the chart's: only more is possible."""
    amounts = [quantities.parse(str(each)) for each in (live, wanted) if len(str(each)) <= _LONGEST]
    return len(amounts) > 1 and None not in amounts and amounts[0] >= amounts[1]  # type: ignore[operator]


def _both(field: Field) -> Any:  # noqa: ANN401 - JSON
    """Return the items that others added together with the chart's."""
    wanted, live, had = (
        each if isinstance(each, list) else [] for each in (field.wanted, field.live, field.had)
    )
    staying = [each for each in live if each in wanted or each not in had]
    return [*staying, *(each for each in wanted if each not in live)] or field.wanted


def _at(body: Any, path: Path) -> Any:  # noqa: ANN401 - JSON
    for step in path:
        body = body.get(step) if isinstance(body, Mapping) else None
    return body


def _find(value: Any, key: str) -> Iterator[Any]:  # noqa: ANN401 - JSON
    """Yield all values of a key, however deep."""
    if isinstance(value, Mapping):
        for name, below in value.items():
            if name == key:
                yield below
            yield from _find(below, key)
    elif isinstance(value, list):
        for below in value:
            yield from _find(below, key)
