"""Objects of the cluster by requests: a kubectl for each of them takes thirty times the processor time."""

import itertools
import json
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import yaml

from addon_operator.devcluster import api
from addon_operator.kernel import json_types

Object: TypeAlias = dict[str, Any]

_MERGE: Final = "application/merge-patch+json"
_JSON: Final = "application/json-patch+json"
_APPLY: Final = "application/apply-patch+yaml"
_CORE: Final = "/api/v1"
_APPS: Final = "/apis/apps/v1"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1"
_OF_NAMESPACES: Final[Mapping[str, tuple[str, str]]] = {
    "configmap": (_CORE, "configmaps"),
    "event": (_CORE, "events"),
    "persistentvolumeclaim": (_CORE, "persistentvolumeclaims"),
    "pvc": (_CORE, "persistentvolumeclaims"),
    "pod": (_CORE, "pods"),
    "resourcequota": (_CORE, "resourcequotas"),
    "secret": (_CORE, "secrets"),
    "service": (_CORE, "services"),
    "serviceaccount": (_CORE, "serviceaccounts"),
    "deployment": (_APPS, "deployments"),
    "statefulset": (_APPS, "statefulsets"),
    "cronjob": ("/apis/batch/v1", "cronjobs"),
    "job": ("/apis/batch/v1", "jobs"),
    "lease": ("/apis/coordination.k8s.io/v1", "leases"),
    "module": ("/apis/addon-operator.io/v1alpha1", "modules"),
    "poddisruptionbudget": ("/apis/policy/v1", "poddisruptionbudgets"),
    "ingress": ("/apis/networking.k8s.io/v1", "ingresses"),
    "podpreset": ("/apis/settings.k8s.io/v1alpha1", "podpresets"),
    "role": (_RBAC, "roles"),
    "rolebinding": (_RBAC, "rolebindings"),
}
_OF_THE_CLUSTER: Final[Mapping[str, tuple[str, str]]] = {
    "namespace": (_CORE, "namespaces"),
    "node": (_CORE, "nodes"),
    "persistentvolume": (_CORE, "persistentvolumes"),
    "clusterrole": (_RBAC, "clusterroles"),
    "clusterrolebinding": (_RBAC, "clusterrolebindings"),
    "crd": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "apiservice": ("/apis/apiregistration.k8s.io/v1", "apiservices"),
    "mutatingadmissionpolicy": (_WEBHOOKS, "mutatingadmissionpolicies"),
    "mutatingadmissionpolicybinding": (_WEBHOOKS, "mutatingadmissionpolicybindings"),
    "mutatingwebhookconfiguration": (_WEBHOOKS, "mutatingwebhookconfigurations"),
    "validatingadmissionpolicy": (_WEBHOOKS, "validatingadmissionpolicies"),
    "validatingadmissionpolicybinding": (_WEBHOOKS, "validatingadmissionpolicybindings"),
    "validatingwebhookconfiguration": (_WEBHOOKS, "validatingwebhookconfigurations"),
}
_GONE_DEADLINE: Final = 60.0


class Objects:
    """What a cluster has, seen from one namespace.

    Kinds are named as on the command line of kubectl: ``configmap``, or ``widgets.example.com`` for a kind of
    a definition whose version is ``v1``.
    """

    def __init__(self, client: api.ApiClient, namespace: str) -> None:
        self.namespace = namespace
        self._api = client

    def request(
        self, method: str, path: str, body: Object | None = None, content_type: str = "application/json"
    ) -> api.ApiAnswer:
        """Send a request to the API server, past everything; what it answers."""
        return self._api.request(method, path, body, content_type)

    def get(self, kind: str, name: str, namespace: str = "") -> Object:
        """An object that is there."""
        return self._demanded("GET", self._path(kind, name, namespace))

    def find(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """An object, or ``None`` when there is none of that name."""
        path = self._path(kind, name, namespace)
        answer = self._answered("GET", path)
        if answer.status == 404:
            return None
        assert answer.is_success, f"GET {path}: {answer}"
        return _document(answer)

    def listed(self, kind: str, namespace: str = "", **selectors: str) -> list[Object]:
        """The objects of a kind that match ``labelSelector`` and ``fieldSelector``."""
        query = urllib.parse.urlencode(selectors)
        items: list[Object] = self._demanded("GET", f"{self._path(kind, namespace=namespace)}?{query}")[
            "items"
        ]
        return items

    def create(self, kind: str, name: str, body: Object | None = None, namespace: str = "") -> Object:
        """Create an object; ``body`` is what it has besides its name."""
        given = body or {}
        manifest = {**given, "metadata": {**given.get("metadata", {}), "name": name}}
        return self._demanded("POST", self._path(kind, namespace=namespace), manifest)

    def apply(self, *manifests: Object | str, manager: str = "kubectl") -> None:
        """Create objects, or give them these fields; a text is one or more documents of YAML."""
        read = (
            [each] if isinstance(each, dict) else yaml.load_all(each, yaml.CSafeLoader) for each in manifests
        )
        for manifest in itertools.chain.from_iterable(read):
            metadata = manifest["metadata"]
            path = self._path(_kind(manifest), metadata["name"], metadata.get("namespace", ""))
            query = urllib.parse.urlencode({"fieldManager": manager, "force": "true"})
            self._demanded("PATCH", f"{path}?{query}", manifest, _APPLY)

    def patch(
        self,
        kind: str,
        name: str,
        body: Object | list[Object],
        *,
        manager: str = "kubectl-patch",
        subresource: str = "",
        namespace: str = "",
    ) -> Object:
        """Merge a mapping into an object, or make the changes of a list as a JSON patch."""
        path = self._path(kind, name, namespace) + (f"/{subresource}" if subresource else "")
        query = urllib.parse.urlencode({"fieldManager": manager})
        return self._demanded("PATCH", f"{path}?{query}", body, _JSON if isinstance(body, list) else _MERGE)

    def label(self, kind: str, name: str, labels: Mapping[str, str | None], namespace: str = "") -> None:
        """Set labels; ``None`` removes one."""
        self.patch(kind, name, {"metadata": {"labels": dict(labels)}}, namespace=namespace)

    def annotate(self, kind: str, name: str, annotations: Mapping[str, str | None]) -> None:
        """Set annotations; ``None`` removes one."""
        self.patch(kind, name, {"metadata": {"annotations": dict(annotations)}})

    def delete(self, kind: str, *names: str, namespace: str = "", waits: bool = True) -> None:
        """Delete objects, and wait for those that something holds; if one is missing, that is fine."""
        going = {}
        for name in names:
            path = self._path(kind, name, namespace)
            answer = self._answered("DELETE", path)
            assert answer.is_success or answer.status == 404, f"DELETE {path}: {answer}"
            if answer.is_success and "metadata" in (found := _document(answer)) and found["kind"] != "Status":
                going[name] = found["metadata"]["uid"]
        give_up = time.monotonic() + _GONE_DEADLINE
        for name, uid in going.items() if waits else ():
            while (self.find(kind, name, namespace) or {}).get("metadata", {}).get("uid") == uid:
                assert time.monotonic() < give_up, f"{kind} {name} does not go"
                time.sleep(0.05)

    def account(self, name: str, *rules: str) -> None:
        """Make a ServiceAccount that may do this in the namespace: ``get,list secrets,pods/exec``."""
        self.create("serviceaccount", name)
        if rules:
            self.create("role", name, {"rules": [_rule(*rule.split()) for rule in rules]})
            self.bind(name, "Role", name)

    def bind(self, account: str, kind: str, role: str) -> None:
        """Give a ServiceAccount a role in the namespace."""
        subject = {"kind": "ServiceAccount", "name": account, "namespace": self.namespace}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
        self.create("rolebinding", f"{account}-{role}", {"roleRef": reference, "subjects": [subject]})

    def token(self, account: str) -> str:
        """A token of a ServiceAccount."""
        path = self._path("serviceaccount", account)
        token: str = self._demanded("POST", f"{path}/token", {"spec": {}})["status"]["token"]
        return token

    def may(
        self,
        user: str,
        verb: str,
        resource: str,
        *,
        name: str = "",
        namespace: str = "",
        everywhere: bool = False,
        groups: Sequence[str] = (),
    ) -> bool:
        """Whether a user has a right in this namespace or another; a kind is ``pods``, or
        ``widgets.example.com``.
        """
        plural, _, group = resource.partition(".")
        attributes = {"verb": verb, "resource": plural, "group": group, "name": name}
        attributes["namespace"] = "" if everywhere else namespace or self.namespace
        review = {"user": user, "groups": list(groups), "resourceAttributes": attributes}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return bool(self._demanded("POST", path, {"spec": review})["status"]["allowed"])

    def _demanded(self, method: str, path: str, body: Any = None, type_: str = "application/json") -> Object:  # noqa: ANN401 - JSON
        answer = self._answered(method, path, body, type_)
        assert answer.is_success, f"{method} {path}: {answer}"
        return _document(answer)

    def _answered(
        self, method: str, path: str, body: json_types.JsonValue = None, type_: str = "application/json"
    ) -> api.ApiAnswer:
        """Return an answer that is none of "try again", as for a kind whose definition has just changed."""
        give_up = time.monotonic() + _GONE_DEADLINE
        while True:
            answer = self._api.request(method, path, body, type_)
            if answer.status != 429 or time.monotonic() > give_up:
                return answer
            time.sleep(0.2)

    def _path(self, kind: str, name: str = "", namespace: str = "") -> str:
        if kind in _OF_THE_CLUSTER:
            root, plural = _OF_THE_CLUSTER[kind]
        else:
            custom, _, group = kind.partition(".")
            assert group or kind in _OF_NAMESPACES, f"{kind} needs a row above"
            root, plural = _OF_NAMESPACES.get(kind) or (f"/apis/{group}/v1", custom)
            root += f"/namespaces/{namespace or self.namespace}"
        return f"{root}/{plural}/{name}".rstrip("/")


def _document(answer: api.ApiAnswer) -> Object:
    found: Object = json.loads(answer.text)
    return found


def _kind(manifest: Object) -> str:
    name: str = manifest["kind"].lower()
    if name == "customresourcedefinition":
        return "crd"
    group, _, version = manifest["apiVersion"].rpartition("/")
    known = name in _OF_NAMESPACES or name in _OF_THE_CLUSTER
    assert known or version == "v1", f"{name} of {manifest['apiVersion']} needs a row above"
    return name if known else f"{name}s.{group}"


def _rule(verbs: str, resources: str) -> Object:
    named = [each.partition(".") for each in resources.split(",")]
    groups, plurals = {group for _, _, group in named}, {plural for plural, _, _ in named}
    return {"apiGroups": sorted(groups), "resources": sorted(plurals), "verbs": verbs.split(",")}
