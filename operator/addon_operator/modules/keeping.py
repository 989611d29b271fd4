"""What of a release's objects may be deleted: the one place that decides it.

Upgrades, removals, purges, rollbacks and clean-ups after failed tries all ask here before they delete
anything. Definitions, namespaces and claims hold data or objects of others: they stay unless somebody asked
for exactly that. What stays gets a mark of ours, beside the policy that makes Helm leave it.
"""

import datetime as dt
import enum
import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import msgspec

from addon_operator.modules import crd_files, manifests

KEPT_FROM: Final = "addon-operator.io/kept-from"
"""The label of what stays; its value is the name of the release that had it."""
CLAIM: Final = "PersistentVolumeClaim"
DEFINITION: Final = crd_files.KIND
NAMESPACE: Final = "Namespace"
_GROUP_OF_DEFINITIONS: Final = crd_files.API_VERSION.partition("/")[0]
_DATA: Final = frozenset(
    {
        (_GROUP_OF_DEFINITIONS, DEFINITION),
        ("", NAMESPACE),
        ("", CLAIM),
        ("", "PersistentVolume"),
    }
)
_ASKED: Final = frozenset(
    {
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("apiregistration.k8s.io", "APIService"),
    }
)
LISTED: Final = "crd,pvc,pv,ns,secret"
"""All kinds that may stay, for ``kubectl get``."""
_RESOURCES: Final = {DEFINITION: "crd", NAMESPACE: "namespace", CLAIM: "pvc", "PersistentVolume": "pv"}
_OWNER: Final = "meta.helm.sh/release-name"
_OWNERS_NAMESPACE: Final = "meta.helm.sh/release-namespace"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"


class Why(enum.StrEnum):
    """Why an object stays."""

    DATA = "it holds data"
    NEEDED = "a claim that stays may need it"
    INHABITED = "there is more in it than the release"
    BROUGHT = "crds/ of a module has it"
    POLICY = f"its annotation {manifests.POLICY} says keep"


class Kept(msgspec.Struct, frozen=True):
    """An object that stays although its release has it no more."""

    kind: str
    namespace: str
    """Empty for what is in no namespace."""
    name: str
    why: Why
    objects: int | None = None
    """How many objects of that kind, or in that namespace, there are, if they can be counted."""
    uid: str = ""

    @property
    def is_marked(self) -> bool:
        """Whether it gets the mark: what a chart or a person keeps is theirs."""
        return self.why is not Why.POLICY

    @property
    def command(self) -> str:
        """What a person removes it with."""
        return deletion(self.kind, self.namespace, self.name)

    def __str__(self) -> str:
        """Name it for a person, with what is lost with it."""
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return counted(f"{self.kind} {place}", self.objects)


def counted(name: str, objects: int | None) -> str:
    """Return a name with the number of objects that go with it, if that is known."""
    return name if objects is None else f"{name} with {objects} object{'s' * (objects != 1)}"


def deletion(kind: str, namespace: str, name: str) -> str:
    """Return the command that deletes an object."""
    place = f" --namespace {namespace}" if namespace else ""
    return f"kubectl delete {_RESOURCES.get(kind, kind.lower())} {name}{place}"


def decide(
    resource: manifests.ManifestResource,
    body: Mapping[str, Any],
    live: Mapping[str, Any] | None,
    *,
    data_goes: bool = False,
) -> Why | None:
    """Decide whether an object stays that its release is about to lose; ``None``: it may be deleted.

    ``body`` is what the release's record has; ``live`` what the cluster has, ``None`` if it is not there.
    ``data_goes``: somebody asked for exactly that. Of two policies the careful one wins.
    """
    if live is None:
        return None
    if manifests.is_kept(body) or (manifests.is_kept(live) and not is_marked(live)):
        return Why.POLICY
    return Why.DATA if holds_data(resource) and not data_goes else None


def holds_data(resource: manifests.ManifestResource) -> bool:
    """Say whether data, or objects of others, go with the object."""
    return (resource.group, resource.kind) in _DATA


def is_secret(resource: manifests.ManifestResource) -> bool:
    """Say whether it is a Secret, which may have the password of what a claim holds."""
    return (resource.api_version, resource.kind) == ("v1", "Secret")


def may_be_kept(resource: manifests.ManifestResource) -> bool:
    """Say whether it is of a kind that may stay without a policy of the chart or a person."""
    return holds_data(resource) or is_secret(resource)


def goes_with_hooks(resource: manifests.ManifestResource, live: Mapping[str, Any], first: float) -> bool:
    """Say whether an object that a hook of Helm made goes with its release, whose first revision was then.

    What the API server asks for its answer, and nobody answers any more, stands in everybody's way.
    """
    is_asked = (resource.group, resource.kind) in _ASKED
    return is_asked and bool(first) and owner(live)[0] is None and made_at(live) >= math.floor(first)


def made_at(live: Mapping[str, Any]) -> float:
    """Return the second in which an object was made, since the epoch; 0 if that is not known."""
    text = str((live.get("metadata") or {}).get("creationTimestamp") or "")
    try:
        return dt.datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def claim_names(body: Mapping[str, Any]) -> Iterator[re.Pattern[str]]:
    """Yield what the claims of a StatefulSet are called that stay when it goes."""
    spec = body.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    if _deletes_claims(spec):
        return
    for template in spec.get("volumeClaimTemplates") or ():
        metadata = template.get("metadata") if isinstance(template, dict) else None
        if isinstance(metadata, dict) and metadata.get("name"):
            stem = f"{metadata['name']}-{body['metadata']['name']}"
            yield re.compile(rf"{re.escape(stem)}-[0-9]+")


def _deletes_claims(spec: Mapping[str, Any]) -> bool:
    policy = spec.get("persistentVolumeClaimRetentionPolicy")
    return isinstance(policy, dict) and policy.get("whenDeleted") == "Delete"


def deleted_by_chart(body: Mapping[str, Any]) -> str:
    """Say how an object of a chart has data deleted that nobody asked to delete; empty if it has none."""
    kind, spec = str(body.get("kind")), body.get("spec")
    group = str(body.get("apiVersion") or "").rpartition("/")[0]
    if manifests.is_hook(body) and (group, kind) in _DATA:
        return (
            "is one of Helm's hooks: Helm deletes it, with what is in it, as its helm.sh/hook-delete-policy "
            "says, and without one before it makes it again"
        )
    if kind == "StatefulSet" and isinstance(spec, dict) and _deletes_claims(spec):
        return "has its claims deleted with it: persistentVolumeClaimRetentionPolicy.whenDeleted is Delete"
    return ""


def is_marked(live: Mapping[str, Any]) -> bool:
    """Say whether an object bears our mark, so that the policy on it is ours, too."""
    return KEPT_FROM in ((live.get("metadata") or {}).get("labels") or {})


def owner(live: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return name and namespace of the release that an object says it is of."""
    annotations = (live.get("metadata") or {}).get("annotations") or {}
    return annotations.get(_OWNER), annotations.get(_OWNERS_NAMESPACE)


def is_own(live: Mapping[str, Any], release: str, namespace: str) -> bool:
    """Say whether Helm made an object for a release."""
    labels = (live.get("metadata") or {}).get("labels") or {}
    return labels.get(MANAGED_BY) == "Helm" and owner(live) == (release, namespace)


def mark(release: str) -> dict[str, Any]:
    """Return the merge patch that marks what stays of a release, and makes Helm leave it."""
    return {"metadata": {"labels": {KEPT_FROM: release}, **policy()["metadata"]}}


def policy() -> dict[str, Any]:
    """Return the merge patch that makes Helm leave an object."""
    return {"metadata": {"annotations": {manifests.POLICY: manifests.KEEP}}}


def unmark(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch that takes the mark away, and the policy unless the manifest has it, too."""
    policy = {} if manifests.is_kept(body) else {"annotations": {manifests.POLICY: None}}
    return {"metadata": {"labels": {KEPT_FROM: None}, **policy}}


def disown() -> dict[str, Any]:
    """Return the merge patch that takes the marks of a release from an object."""
    annotations = {_OWNER: None, _OWNERS_NAMESPACE: None}
    return {"metadata": {"labels": {MANAGED_BY: None}, "annotations": annotations}}


def told(kept: Collection[Kept]) -> str:
    """Return a sentence for people: what stays, why, and what removes it."""
    parts = (f"{each} stays: {each.why}; remove it with '{each.command}'" for each in kept)
    return "; ".join(parts)
