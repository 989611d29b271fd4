"""The kinds that a cluster in memory serves: of Kubernetes, of definitions, and of the given objects."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from addon_operator.hook_contract import violations
from addon_operator.kernel import errors
from addon_operator.kube.discovery import api_resources

Object: TypeAlias = Mapping[str, Any]

DEFINITION: Final = "CustomResourceDefinition"
_VERBS: Final = ("create", "delete", "get", "list", "patch", "update", "watch")
_OF_KUBERNETES: Final = """
v1                              Namespace=namespaces/ns! Node=nodes/no! PersistentVolume=persistentvolumes/pv!
v1                              Pod=pods/po Service=services/svc ConfigMap=configmaps/cm Secret=secrets
v1                              ServiceAccount=serviceaccounts/sa Endpoints=endpoints/ep Event=events/ev
v1                              PersistentVolumeClaim=persistentvolumeclaims/pvc LimitRange=limitranges/limits
v1                              ResourceQuota=resourcequotas/quota PodTemplate=podtemplates
v1                              ReplicationController=replicationcontrollers/rc
apps/v1                         Deployment=deployments/deploy StatefulSet=statefulsets/sts
apps/v1                         ReplicaSet=replicasets/rs
apps/v1                         DaemonSet=daemonsets/ds ControllerRevision=controllerrevisions
batch/v1                        Job=jobs CronJob=cronjobs/cj
autoscaling/v2                  HorizontalPodAutoscaler=horizontalpodautoscalers/hpa
autoscaling/v1                  HorizontalPodAutoscaler=horizontalpodautoscalers/hpa
policy/v1                       PodDisruptionBudget=poddisruptionbudgets/pdb
networking.k8s.io/v1            Ingress=ingresses/ing NetworkPolicy=networkpolicies/netpol
networking.k8s.io/v1            IngressClass=ingressclasses!
rbac.authorization.k8s.io/v1    Role=roles RoleBinding=rolebindings ClusterRole=clusterroles!
rbac.authorization.k8s.io/v1    ClusterRoleBinding=clusterrolebindings!
storage.k8s.io/v1               StorageClass=storageclasses/sc! CSIDriver=csidrivers! CSINode=csinodes!
storage.k8s.io/v1               VolumeAttachment=volumeattachments! CSIStorageCapacity=csistoragecapacities
scheduling.k8s.io/v1            PriorityClass=priorityclasses/pc!
coordination.k8s.io/v1          Lease=leases
discovery.k8s.io/v1             EndpointSlice=endpointslices
events.k8s.io/v1                Event=events/ev
node.k8s.io/v1                  RuntimeClass=runtimeclasses!
certificates.k8s.io/v1          CertificateSigningRequest=certificatesigningrequests/csr!
apiextensions.k8s.io/v1         CustomResourceDefinition=customresourcedefinitions/crd!
apiregistration.k8s.io/v1       APIService=apiservices!
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration=validatingwebhookconfigurations!
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration=mutatingwebhookconfigurations!
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy=validatingadmissionpolicies!
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding=validatingadmissionpolicybindings!
flowcontrol.apiserver.k8s.io/v1 FlowSchema=flowschemas!
flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration=prioritylevelconfigurations!
"""
"""``Kind=plural/short``, with ``!`` for kinds without namespaces."""


def _text(description: str, format_: str) -> Object:
    return {"description": description, "type": "string", "minLength": 1, "format": format_}


KIND: Final = _text("Such as ConfigMap.", "kind")
NAME: Final = _text("Its name.", "object-name")
_PAIRS: Final = {"propertyNames": {"format": "label-key"}, "x-remedy": "write name: value pairs below it"}


def _pairs(description: str, values: Object) -> Object:
    """Return the schema of labels or annotations; charts leave nothing behind the key if there are none."""
    pairs = {"type": "object", "additionalProperties": {"type": "string", **values}, **_PAIRS}
    return {"description": description, "if": {"type": "null"}, "else": pairs}


OBJECT: Final[Object] = {
    "description": "An object of Kubernetes: apiVersion, kind, metadata.name and whatever else it has.",
    "type": "object",
    "required": ["apiVersion", "kind", "metadata"],
    "properties": {
        "apiVersion": _text("Such as v1 or apps/v1.", "api-version"),
        "kind": KIND,
        "metadata": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": NAME,
                "namespace": _text("Its namespace; default without one.", "dns-label"),
                "labels": _pairs("Its labels.", {"format": "label-value"}),
                "annotations": _pairs("Its annotations.", {}),
            },
        },
    },
}
"""The schema of an object that a test gives."""
_CHECKER: Final = violations.Checker(OBJECT)
_SHOWN: Final = 3


class GivenObjectError(errors.ConfigurationError):
    """What a test gives as an object is not one."""


def check(body: object) -> Object:
    """Return a given object.

    Raises :class:`GivenObjectError` for what lacks an apiVersion, kind or name, or could have none such.
    """
    if not isinstance(body, Mapping):
        raise GivenObjectError(
            f"a given object is a mapping with apiVersion, kind and metadata, not {body!r}"
        )
    if problems := _CHECKER.find(dict(body)):
        raise GivenObjectError(f"a given object ({_named(body)}) is wrong: {'; '.join(problems[:_SHOWN])}")
    return body


def _named(body: Mapping[str, Any]) -> str:
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    known = {"apiVersion": body.get("apiVersion"), "kind": body.get("kind"), "name": name}
    return ", ".join(f"{field}: {value}" for field, value in known.items() if value) or f"{body!r:.60}"


def of(objects: Iterable[Object], definitions: Iterable[Object] = ()) -> tuple[api_resources.Resource, ...]:
    """Return the kinds of Kubernetes, of definitions, and of the objects that have another one."""
    objects = tuple(objects)
    found = {(each.api_version, each.kind): each for each in _of_kubernetes()}
    for definition in (*definitions, *(each for each in objects if each["kind"] == DEFINITION)):
        for each in defined(definition):
            found[each.api_version, each.kind] = each
    for body in objects:
        found.setdefault((body["apiVersion"], body["kind"]), _guessed(body))
    return tuple(found.values())


def defined(definition: Object) -> Iterator[api_resources.Resource]:
    """Yield what a CustomResourceDefinition defines, in all versions that it serves."""
    spec = definition.get("spec") or {}
    called = spec.get("names") or {}
    for version in spec.get("versions") or ():
        if version.get("served", True):
            yield _resource(
                f"{spec.get('group')}/{version.get('name')}",
                str(called.get("kind")),
                str(called.get("plural")),
                tuple(called.get("shortNames") or ()),
                namespaced=spec.get("scope") != "Cluster",
            )


def _of_kubernetes() -> Iterator[api_resources.Resource]:
    for line in _OF_KUBERNETES.strip().splitlines():
        api_version, *kinds = line.split()
        for each in kinds:
            kind, _, rest = each.removesuffix("!").partition("=")
            plural, _, short = rest.partition("/")
            names = (short,) if short else ()
            yield _resource(api_version, kind, plural, names, namespaced=not each.endswith("!"))


def _guessed(body: Object) -> api_resources.Resource:
    """Return a kind that nothing defines: with a namespace, if its object has one."""
    kind = str(body["kind"])
    lower = kind.lower()
    plural = (
        f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}es" if lower.endswith("s") else f"{lower}s"
    )
    is_namespaced = "namespace" in body["metadata"]
    return _resource(str(body["apiVersion"]), kind, plural, (), namespaced=is_namespaced)


def _resource(
    api_version: str, kind: str, plural: str, short_names: tuple[str, ...], *, namespaced: bool
) -> api_resources.Resource:
    return api_resources.Resource(
        api_version, kind, plural, namespaced, frozenset(_VERBS), kind.lower(), short_names, has_status=True
    )


def aggregated(
    resources: Iterable[api_resources.Resource], *, core: bool, served: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the discovery document of the core group, or of all others.

    ``served``: versions of groups that are there, whatever kinds they have.
    """
    groups: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for api_version in served:
        group, _, version = api_version.rpartition("/")
        if bool(group) != core:
            groups.setdefault(group, {}).setdefault(version, [])
    for each in resources:
        group, _, version = each.api_version.rpartition("/")
        if bool(group) != core:
            groups.setdefault(group, {}).setdefault(version, []).append(_entry(each))
    items = [
        {
            "metadata": {"name": group},
            "versions": [{"version": name, "resources": found} for name, found in versions.items()],
        }
        for group, versions in groups.items()
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}


def _entry(resource: api_resources.Resource) -> dict[str, Any]:
    return {
        "resource": resource.plural,
        "responseKind": {"kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "shortNames": list(resource.short_names),
        "verbs": sorted(resource.verbs),
    }


def resource_list(resources: Iterable[api_resources.Resource], api_version: str) -> dict[str, Any] | None:
    """Return the older discovery document of one version, which Helm asks for; ``None`` if it has nothing."""
    listed = [
        {
            "name": each.plural,
            "singularName": each.singular,
            "namespaced": each.namespaced,
            "kind": each.kind,
            "verbs": sorted(each.verbs),
            "shortNames": list(each.short_names),
        }
        for each in resources
        if each.api_version == api_version
    ]
    if not listed:
        return None
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": listed}
