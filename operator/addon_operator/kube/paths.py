"""Paths of the Kubernetes API: making them, and reading back what they point at.

Source: "Kubernetes API Concepts", resource URIs; verbs as in "Authorization", "Determine the request verb".
"""

import urllib.parse
from collections.abc import Mapping
from typing import Final

import msgspec

_VERBS: Final[Mapping[str, str]] = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES: Final = ("status", "finalize")


def of(
    api_version: str,
    plural: str,
    *,
    namespace: str | None = None,
    name: str | None = None,
    subresource: str | None = None,
) -> str:
    """Return the path of a collection, object or subresource, such as ``/api/v1/namespaces/x/pods/y/log``."""
    root = "/apis/" if "/" in api_version else "/api/"
    parts = [api_version]
    if namespace is not None:
        parts += ["namespaces", _quoted(namespace)]
    parts.append(plural)
    if name is not None:
        parts.append(_quoted(name))
    if subresource is not None:
        parts.append(subresource)
    return root + "/".join(parts)


def _quoted(text: str) -> str:
    # A name of "." or ".." would be resolved away by clients and proxies; no valid name is one.
    if text in ("", ".", ".."):
        raise ValueError(f"{text!r} is not a name of a Kubernetes object")
    return urllib.parse.quote(text, safe=":")


class Target(msgspec.Struct, frozen=True):
    """What a request points at, in the words of RBAC."""

    verb: str
    path: str
    group: str = ""
    """API group; empty for the core group."""
    version: str = ""
    resource: str = ""
    """Plural name, such as ``configmaps``; empty for paths that are no resource, such as ``/version``."""
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None

    @property
    def rbac_resource(self) -> str:
        """Resource as a rule of a Role names it: ``deployments/scale``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    @property
    def template(self) -> str:
        """The path with names left out, for metrics: ``/api/v1/namespaces/{namespace}/configmaps/{name}``."""
        if not self.resource:
            return self.path
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        namespaced = "/namespaces/{namespace}" if self.namespace is not None else ""
        named = "/{name}" if self.name is not None else ""
        sub = f"/{self.subresource}" if self.subresource else ""
        return f"{root}{namespaced}/{self.resource}{named}{sub}"

    def __str__(self) -> str:
        """Name it for sentences: ``configmaps "values" in namespace "addons"``."""
        if not self.resource:
            return self.path
        full = f"{self.rbac_resource}.{self.group}" if self.group else self.rbac_resource
        named = f' "{self.name}"' if self.name is not None else ""
        placed = f' in namespace "{self.namespace}"' if self.namespace is not None else ""
        return f"{full}{named}{placed}"


def target(method: str, path: str, *, watch: bool = False) -> Target:
    """Return what a request with this method and path points at."""
    segments = [urllib.parse.unquote(segment) for segment in path.strip("/").split("/")]
    group, version, rest = _split_root(segments)
    if not rest:
        return Target(verb=method.lower(), path=path)
    namespace, rest = _split_namespace(rest)
    name = rest[1] if len(rest) > 1 else None
    return Target(
        verb=_verb(method, named=name is not None, watch=watch),
        path=path,
        group=group,
        version=version,
        resource=rest[0],
        namespace=namespace,
        name=name,
        subresource="/".join(rest[2:]) or None,
    )


def _split_root(segments: list[str]) -> tuple[str, str, list[str]]:
    match segments:
        case ["api", version, *rest]:
            return "", version, rest
        case ["apis", group, version, *rest]:
            return group, version, rest
        case _:
            return "", "", []


def _split_namespace(rest: list[str]) -> tuple[str | None, list[str]]:
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in _NAMESPACE_SUBRESOURCES:
        return rest[1], rest[2:]
    return None, rest


def _verb(method: str, *, named: bool, watch: bool) -> str:
    if method in ("GET", "HEAD"):
        if watch:
            return "watch"
        return "get" if named else "list"
    if method == "DELETE" and not named:
        return "deletecollection"
    return _VERBS.get(method, method.lower())
