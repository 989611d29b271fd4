"""A cluster that answers from a state file: no request leaves the process."""

import collections
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from addon_operator.commands.plan_state import plan_state
from addon_operator.helm.releases import record_format
from addon_operator.kernel import clock, json_types
from addon_operator.kube import api_errors
from addon_operator.kube.access import auth, credentials
from addon_operator.kube.client import client, connection

_SERVER: Final = "https://state-file.invalid"
_RECORDS: Final = re.compile(r"/api/v1/(?:namespaces/[^/]+/)?(?:secrets|configmaps)")
"""Where releases may be: those that are not in the file are not there."""
_OWNER: Final = "owner"


class NotRecordedError(api_errors.KubernetesError):
    """The file does not tell; the sentence is the same for all, so that it is said once."""

    def __init__(self) -> None:
        super().__init__("the plan is made from a state file, which does not tell")


class _NoCredentials:
    """There is nothing to log in to."""

    async def load(self) -> credentials.Credentials:
        """Return the name of a server that nobody has."""
        return credentials.Credentials(_SERVER)


def access(kubeconfig: pathlib.Path) -> auth.ClusterAccess:
    """Return the way to no cluster; ``kubeconfig`` is that of child processes, and an empty file."""
    return auth.ClusterAccess("a state file", _SERVER, _NoCredentials(), (kubeconfig,))


def client_of(state: plan_state.PlanState, way: auth.ClusterAccess) -> client.KubeClient:
    """Return a client of the recorded cluster; every write, and what is not recorded, fails."""
    objects = {**state.objects, **dict(_records(state.releases))}
    return client.KubeClient(way, connect=lambda given, time: _Recorded(given, time, state, objects))


def _records(releases: Any) -> Iterator[tuple[str, json_types.JsonObject]]:  # noqa: ANN401
    for each in releases:
        path = each["path"]
        namespace, name = path.split("/")[4], path.rpartition("/")[2]
        metadata = {"name": name, "namespace": namespace, "labels": dict(each["labels"])}
        body: json_types.JsonObject = {"metadata": metadata, "data": {}}
        if each["manifest"] is not None:
            text = record_format.encode(
                each["manifest"],
                each["hooks"],
                is_server_side=each["server_side"],
                is_secret="/secrets/" in path,
            )
            body["data"] = {"release": text}
        yield path, body


class _Recorded(connection.Connection):
    """Answers requests from a file."""

    def __init__(
        self,
        way: auth.ClusterAccess,
        time: clock.Clock,
        state: plan_state.PlanState,
        objects: Mapping[str, json_types.JsonObject],
    ) -> None:
        super().__init__(way, time)
        self._answers = state.answers
        self._objects = objects
        self._absent = frozenset(state.absent)
        self._whole = frozenset(state.collections)
        self._below: dict[str, list[json_types.JsonObject]] = collections.defaultdict(list)
        for path, body in objects.items():
            collection = path.rpartition("/")[0]
            self._below[collection].append(body)
            parts = collection.split("/")
            if len(parts) > 3 and parts[-3] == "namespaces":  # of the whole cluster, too
                self._below["/".join([*parts[:-3], parts[-1]])].append(body)

    async def current(self) -> credentials.Credentials:
        return credentials.Credentials(_SERVER)

    async def send(
        self,
        request: connection.Request,
        using: credentials.Credentials,  # noqa: ARG002 - nobody is asked
    ) -> connection.Response:
        if request.method != "GET":
            raise NotRecordedError
        path = request.path
        if (known := self._answers.get(path) or self._objects.get(path)) is not None:
            return _response(200, known)
        if path in self._absent or path.rpartition("/")[0] in self._whole:
            name = path.rpartition("/")[2]
            details = {"name": name}
            return _response(
                404,
                {
                    "kind": "Status",
                    "reason": "NotFound",
                    "message": f"{path} is not there",
                    "details": details,
                },
            )
        if path in self._whole or self._below.get(path) or _RECORDS.fullmatch(path):
            found = [each for each in self._below.get(path, ()) if _is_selected(each, request.query)]
            return _response(200, {"kind": "List", "items": list(found), "metadata": {}})
        raise NotRecordedError


def _is_selected(body: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    """Evaluate the selectors that plans use: ``a=b`` and ``owner in (a,b)``."""
    labels = (body.get("metadata") or {}).get("labels") or {}
    selector = query.get("labelSelector", "")
    if selector.startswith(f"{_OWNER} in ("):
        return labels.get(_OWNER) in selector.partition("(")[2].rstrip(")").split(",")
    parts = [part.partition("=") for part in selector.split(",") if part]
    return all(labels.get(key) == value for key, _, value in parts)


def _response(status: int, body: Mapping[str, Any]) -> connection.Response:
    return connection.Response(status, {}, orjson.dumps(body))
