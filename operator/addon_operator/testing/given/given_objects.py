"""The objects of a cluster in memory, and how requests of the API read and change them.

What the API server alone would add, such as uid and resourceVersion, is shown to those who ask, and is not
part of what a test sees afterwards.
"""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import jsonpatch
import jsonpointer
import msgspec

from addon_operator.documents import json_documents
from addon_operator.kube import paths
from addon_operator.kube.client import client
from addon_operator.kube.discovery import api_resources
from addon_operator.modules.patching import strategic_merge
from addon_operator.testing.given import kinds, object_selectors

NAMESPACE: Final = "default"
"""Where given objects are that say nothing else, and where releases are installed."""
_STATUS: Final = "status"
_SCALE: Final = "scale"
_OWN: Final = ("uid", "resourceVersion")
_DELETED_AT: Final = "2026-01-01T00:00:00Z"


OnChange: TypeAlias = Callable[[dict[str, Any] | None, dict[str, Any] | None], None]
"""Called with an object as it was, and as it is; ``None`` where there was, or is, none."""


class RefusedError(Exception):
    """The API server would refuse the request."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message

    def document(self) -> dict[str, Any]:
        """Return what the API server answers."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": self.reason,
            "message": self.message,
            "code": self.status,
        }


class _Key(NamedTuple):
    group: str
    plural: str
    namespace: str
    name: str


class _Stored(msgspec.Struct):
    body: dict[str, Any]
    uid: str
    version: int


class GivenObjects:
    """Objects by kind, namespace and name."""

    def __init__(
        self, objects: Iterable[kinds.Object] = (), definitions: Iterable[kinds.Object] = ()
    ) -> None:
        """``definitions``: of kinds that are served, too.

        Raises :class:`.GivenObjectError` for what is not an object, or is given twice.
        """
        checked = [kinds.check(body) for body in objects]
        self.resources = kinds.of(checked, definitions)
        self.version = 1000
        """Of the latest change."""
        self.on_change: OnChange = lambda _before, _after: None
        self._stored: dict[_Key, _Stored] = {}
        for body in checked:
            resource = self._resource_of(body)
            key = self._key(resource, body["metadata"].get("namespace"), str(body["metadata"]["name"]))
            if key in self._stored:
                raise kinds.GivenObjectError(f"{body['kind']} {key.name} is given twice")
            self._store(key, body)

    def all(self) -> list[dict[str, Any]]:
        """Return copies of all objects, in the order in which they were given or made."""
        return [copy.deepcopy(each.body) for each in self._stored.values()]

    def put(self, body: kinds.Object) -> dict[str, Any]:
        """Make an object, or put another state in its place; return it as the API server shows it."""
        key = self._key_of(kinds.check(body))
        self._store(key, body)
        return self._shown(key, str(body["apiVersion"]))

    def remove(self, body: kinds.Object) -> dict[str, Any]:
        """Remove an object, if it is there; return its last state as the API server shows it."""
        key = self._key_of(kinds.check(body))
        if key not in self._stored:
            self._store(key, body)
        return self._drop(key, str(body["apiVersion"]))

    def get(self, target: paths.Target) -> dict[str, Any]:
        """Return an object; raises :class:`RefusedError`."""
        resource, key = self._place(target)
        if target.subresource == _SCALE:
            return self._scale(key)
        return self._shown(key, resource.api_version)

    def listed(self, target: paths.Target, labels: str = "", fields: str = "") -> dict[str, Any]:
        """Return a collection, selected as asked; raises :class:`RefusedError`."""
        resource = self._served(target)
        items = [
            self._shown(key, resource.api_version)
            for key in self._stored
            if (key.group, key.plural) == (target.group, target.resource)
            and target.namespace in (None, key.namespace)
        ]
        try:
            selected = [
                body
                for body in items
                if object_selectors.has_labels(labels, body["metadata"].get("labels") or {})
                and object_selectors.has_fields(fields, resource.plural, body)
            ]
        except object_selectors.SelectorError as error:
            raise RefusedError(400, "BadRequest", str(error)) from error
        return {
            "kind": f"{resource.kind}List",
            "apiVersion": resource.api_version,
            "metadata": {"resourceVersion": str(self.version)},
            "items": selected,
        }

    def create(self, target: paths.Target, body: dict[str, Any]) -> dict[str, Any]:
        """Make an object; raises :class:`RefusedError` if its name is taken."""
        resource = self._served(target)
        metadata = dict(body.get("metadata") or {})
        if not metadata.get("name"):
            metadata["name"] = f"{metadata.pop('generateName')}{self.version + 1:05}"
        key = self._key(resource, target.namespace, str(metadata["name"]))
        if key in self._stored:
            raise RefusedError(409, "AlreadyExists", f'{target.resource} "{key.name}" already exists')
        self._store(key, {**body, "metadata": metadata})
        return self._shown(key, resource.api_version)

    def replace(self, target: paths.Target, body: dict[str, Any]) -> dict[str, Any]:
        """Replace an object; raises :class:`RefusedError`, also for a resourceVersion that is old."""
        resource, key = self._place(target)
        wanted = (body.get("metadata") or {}).get("resourceVersion")
        if wanted and wanted != str(self._stored[key].version):
            message = f'operation cannot be fulfilled on {target.resource} "{key.name}": it has been modified'
            raise RefusedError(409, "Conflict", message)
        self._store(key, self._written(target, key, body))
        return self._shown(key, resource.api_version)

    def patch(self, target: paths.Target, patch: Any, type_: str) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Patch an object, or make it by an apply; raises :class:`RefusedError`."""
        resource = self._served(target)
        key = self._key(resource, target.namespace, str(target.name))
        if type_ == client.PatchType.APPLY and key not in self._stored:
            self._store(key, patch)
            return self._shown(key, resource.api_version)
        before = self._shown(self._place(target)[1], resource.api_version)
        is_built_in = "." not in target.group or target.group.endswith(".k8s.io")
        changed = _patched(before, patch, type_, is_built_in=is_built_in)
        return self.replace(target, changed)

    def delete(self, target: paths.Target) -> dict[str, Any]:
        """Delete an object, or mark it if finalizers hold it; raises :class:`RefusedError`."""
        resource, key = self._place(target)
        body = self._stored[key].body
        if body["metadata"].get("finalizers"):
            self._store(key, merged(body, {"metadata": {"deletionTimestamp": _DELETED_AT}}))
            return self._shown(key, resource.api_version)
        return self._drop(key, resource.api_version)

    def _scale(self, key: _Key) -> dict[str, Any]:
        stored = self._stored[key]
        metadata = {"name": key.name, "namespace": key.namespace, "resourceVersion": str(stored.version)}
        spec = {"replicas": (stored.body.get("spec") or {}).get("replicas", 1)}
        return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec}

    def _written(self, target: paths.Target, key: _Key, body: dict[str, Any]) -> dict[str, Any]:
        """Return what a write makes of an object: one of a subresource changes nothing else."""
        if target.subresource is None:
            return body
        before = self._stored[key].body
        if target.subresource == _STATUS:
            return {**before, _STATUS: body.get(_STATUS)}
        if target.subresource == _SCALE:
            replicas = (body.get("spec") or {}).get("replicas")
            return {**before, "spec": {**(before.get("spec") or {}), "replicas": replicas}}
        raise RefusedError(404, "NotFound", "the server could not find the requested resource")

    def _store(self, key: _Key, body: kinds.Object) -> None:
        kept = copy.deepcopy(dict(body))
        metadata = {name: value for name, value in kept["metadata"].items() if name not in _OWN}
        kept["metadata"] = metadata
        if key.namespace:
            metadata.setdefault("namespace", key.namespace)
        before = self._stored.get(key)
        shown_before = None if before is None else self._shown(key, kept["apiVersion"])
        self.version += 1
        uid = before.uid if before is not None else str(body["metadata"].get("uid") or _uid(self.version))
        self._stored[key] = _Stored(kept, uid, self.version)
        if kept["kind"] == kinds.DEFINITION:
            served = {(each.api_version, each.kind): each for each in (*self.resources, *kinds.defined(kept))}
            self.resources = tuple(served.values())
        self.on_change(shown_before, self._shown(key, kept["apiVersion"]))

    def _drop(self, key: _Key, api_version: str) -> dict[str, Any]:
        """Remove an object; return its last state."""
        last = self._shown(key, api_version)
        self.version += 1
        del self._stored[key]
        self.on_change(last, None)
        return last

    def _shown(self, key: _Key, api_version: str) -> dict[str, Any]:
        stored = self._stored[key]
        body = copy.deepcopy(stored.body)
        body["apiVersion"] = api_version
        body["metadata"] |= {"uid": stored.uid, "resourceVersion": str(stored.version)}
        return body

    def _place(self, target: paths.Target) -> tuple[api_resources.Resource, _Key]:
        resource = self._served(target)
        key = self._key(resource, target.namespace, str(target.name))
        if key not in self._stored:
            group = f".{target.group}" if target.group else ""
            raise RefusedError(404, "NotFound", f'{target.resource}{group} "{target.name}" not found')
        return resource, key

    def _served(self, target: paths.Target) -> api_resources.Resource:
        api_version = f"{target.group}/{target.version}" if target.group else target.version
        for each in self.resources:
            if (each.api_version, each.plural) == (api_version, target.resource):
                return each
        raise RefusedError(404, "NotFound", "the server could not find the requested resource")

    def _key_of(self, body: kinds.Object) -> _Key:
        if all(
            (each.api_version, each.kind) != (body["apiVersion"], body["kind"]) for each in self.resources
        ):
            self.resources = (*self.resources, *kinds.of([body])[-1:])
        metadata = body["metadata"]
        return self._key(self._resource_of(body), metadata.get("namespace"), str(metadata["name"]))

    def _resource_of(self, body: kinds.Object) -> api_resources.Resource:
        wanted = (body["apiVersion"], body["kind"])
        return next(each for each in self.resources if (each.api_version, each.kind) == wanted)

    @staticmethod
    def _key(resource: api_resources.Resource, namespace: str | None, name: str) -> _Key:
        place = (namespace or NAMESPACE) if resource.namespaced else ""
        return _Key(resource.api_version.rpartition("/")[0], resource.plural, place, name)


def _uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def _patched(before: dict[str, Any], patch: Any, type_: str, *, is_built_in: bool) -> dict[str, Any]:  # noqa: ANN401 - JSON
    try:
        match type_:
            case client.PatchType.JSON:
                made = jsonpatch.apply_patch(before, patch)
            case client.PatchType.MERGE:
                made = merged(before, patch)
            case _:
                made = strategic_merge.merged(before, patch, is_built_in=is_built_in)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, ValueError) as error:
        raise RefusedError(422, "Invalid", f"the patch cannot be applied: {error}") from error
    if not isinstance(made, dict):
        raise RefusedError(422, "Invalid", "the patch makes something of the object that is not an object")
    return made


def merged(value: Any, patch: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a document with a merge patch (RFC 7386) merged into it."""
    if not isinstance(patch, Mapping):
        return patch
    made = dict(value) if isinstance(value, Mapping) else {}
    for key, each in patch.items():
        if each is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key), each)
    return made


def encoded(objects: Sequence[kinds.Object]) -> list[bytes]:
    """Return objects as JSON, as an API server writes them."""
    return [json_documents.encode(each) for each in objects]
