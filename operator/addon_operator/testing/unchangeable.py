"""Fields of objects that the API server never lets change: an upgrade that changes one fails.

It knows kinds of Kubernetes. It does not see what rules of definitions, webhooks and the cluster itself
refuse, such as a volume that its class does not let grow.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from addon_operator.kernel import quantities
from addon_operator.modules import manifests
from addon_operator.testing import differences

_SHOWN: Final = 20
_Body = Mapping[str, Any]


class _Kind(msgspec.Struct, frozen=True):
    """What never changes of a kind."""

    fields: tuple[str, ...] = ()
    """Paths of what is fixed with all that is below."""
    all_of_spec_but: frozenset[str] = frozenset()
    """If there are some, all other fields of ``spec`` are fixed."""
    defaults: Mapping[str, object] = msgspec.field(default_factory=dict)
    """By path, what a missing field means."""


_SELECTED: Final = _Kind(("spec.selector",))
_BINDING: Final = _Kind(("roleRef",))
_KINDS: Final[Mapping[str, _Kind]] = {
    "apps/Deployment": _SELECTED,
    "apps/DaemonSet": _SELECTED,
    "apps/ReplicaSet": _SELECTED,
    "apps/StatefulSet": _Kind(
        all_of_spec_but=frozenset(
            {
                "replicas",
                "ordinals",
                "template",
                "updateStrategy",
                "revisionHistoryLimit",
                "persistentVolumeClaimRetentionPolicy",
                "minReadySeconds",
            }
        ),
        defaults={"spec.podManagementPolicy": "OrderedReady"},
    ),
    "batch/Job": _Kind(
        ("spec.selector", "spec.template", "spec.completionMode"),
        defaults={"spec.completionMode": "NonIndexed"},
    ),
    "/PersistentVolumeClaim": _Kind(
        all_of_spec_but=frozenset({"resources", "volumeAttributesClassName"}),
        defaults={"spec.volumeMode": "Filesystem"},
    ),
    "/Secret": _Kind(("type",), defaults={"type": "Opaque"}),
    "storage.k8s.io/StorageClass": _Kind(
        ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
        defaults={"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    ),
    "rbac.authorization.k8s.io/RoleBinding": _BINDING,
    "rbac.authorization.k8s.io/ClusterRoleBinding": _BINDING,
    "scheduling.k8s.io/PriorityClass": _Kind(
        ("value", "preemptionPolicy"), defaults={"value": 0, "preemptionPolicy": "PreemptLowerPriority"}
    ),
    "networking.k8s.io/IngressClass": _Kind(("spec.controller",)),
    "node.k8s.io/RuntimeClass": _Kind(("handler",)),
}
"""By group and kind."""


def refused(before: Iterable[_Body], after: Iterable[_Body]) -> str:
    """Say which fields an upgrade changes that never change; empty if there are none.

    Objects are those that a chart renders. Helm's hooks are made anew each time, so they may be anything.
    """
    found = list(changes(before, after))
    if not found:
        return ""
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    listed = "".join(f"\n  {each}" for each in [*found[:_SHOWN], *more])
    return (
        f"the API server refuses to upgrade what the release has, as these fields never change:{listed}\n"
        "leave them as they are, or give the object another name"
    )


def changes(before: Iterable[_Body], after: Iterable[_Body]) -> Iterator[str]:
    """Yield what is changed and never changes, such as ``Deployment web: spec.selector.matchLabels.app``."""
    known = {_key(each): each for each in before if not manifests.is_hook(each)}
    for body in after:
        old = known.get(_key(body))
        if old is not None and not manifests.is_hook(body):
            yield from (
                f"{body.get('kind')} {_metadata(body).get('name')}: {path}" for path in _of(old, body)
            )


def _of(old: _Body, new: _Body) -> Iterator[str]:
    group_kind = _key(new)[0]
    if (kind := _KINDS.get(group_kind)) is not None:
        yield from _fixed(kind, old, new)
    match group_kind:
        case "/ConfigMap" | "/Secret" if old.get("immutable") is True:
            yield from _differ("", _data(old), _data(new))
        case "/Service":
            yield from _of_service(_mapping(old.get("spec")), _mapping(new.get("spec")))
        case "/PersistentVolumeClaim" if _is_smaller(_storage(new), _storage(old)):
            yield "spec.resources.requests.storage"


def _fixed(kind: _Kind, old: _Body, new: _Body) -> Iterator[str]:
    specs = _mapping(old.get("spec")), _mapping(new.get("spec"))
    rest = dict.fromkeys(
        key for spec in specs for key in spec if kind.all_of_spec_but and key not in kind.all_of_spec_but
    )
    for path in (*kind.fields, *(f"spec.{key}" for key in rest)):
        was = _field(old, path, kind.defaults)
        # What the cluster filled in is not known, such as the default class of volumes.
        is_filled_in = path.endswith((".storageClassName", ".volumeName")) and was is None
        # Where pods of a Job go may change until it begins.
        waits = path == "spec.template" and _field(old, "spec.suspend", {}) is True
        if not is_filled_in and not waits:
            yield from _differ(path, was, _field(new, path, kind.defaults))


def _of_service(old: _Body, new: _Body) -> Iterator[str]:
    if "ExternalName" in (old.get("type"), new.get("type")):
        return
    if new.get("clusterIP") and new["clusterIP"] != old.get("clusterIP"):
        yield "spec.clusterIP"
    are_balanced = old.get("type") == new.get("type") == "LoadBalancer"
    if are_balanced and old.get("loadBalancerClass") != new.get("loadBalancerClass"):
        yield "spec.loadBalancerClass"


def _data(body: _Body) -> _Body:
    texts = {
        key: base64.b64encode(str(text).encode()).decode()
        for key, text in _mapping(body.get("stringData")).items()
    }
    data = {**_mapping(body.get("data")), **texts}
    return {"data": data, "binaryData": _mapping(body.get("binaryData")), "immutable": body.get("immutable")}


def _storage(body: _Body) -> str:
    return str(_field(body, "spec.resources.requests.storage", {}))


def _is_smaller(one: str, other: str) -> bool:
    parsed = quantities.parse(one), quantities.parse(other)
    return parsed[0] is not None and parsed[1] is not None and parsed[0] < parsed[1]


def _differ(path: str, old: object, new: object) -> Iterator[str]:
    for each in differences.between({path: old} if path else old, {path: new} if path else new):
        yield each.path


def _field(body: _Body, path: str, defaults: Mapping[str, object]) -> object:
    found: object = body
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return defaults.get(path) if found is None else found


def _key(body: _Body) -> tuple[str, object, object]:
    group = str(body.get("apiVersion", "")).rpartition("/")[0]
    metadata = _metadata(body)
    return f"{group}/{body.get('kind')}", metadata.get("namespace"), metadata.get("name")


def _metadata(body: _Body) -> _Body:
    return _mapping(body.get("metadata"))


def _mapping(value: object) -> _Body:
    return value if isinstance(value, Mapping) else {}
