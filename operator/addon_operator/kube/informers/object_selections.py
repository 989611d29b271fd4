"""Which objects a subscriber wants to follow, and the paths of the API that are watched for that."""

import random
from typing import Final, Self

import msgspec
from msgspec import structs

from addon_operator.kube import paths
from addon_operator.kube.client import connection
from addon_operator.kube.discovery import api_resources

_METADATA: Final = "application/json;as={kind};g=meta.k8s.io;v=v1,application/json"
_WATCH_SECONDS: Final = (240, 290)
"""The API server ends each watch after a time within these bounds, so that not all come back at once."""


class ObjectSelection(msgspec.Struct, frozen=True):
    """Objects of one kind, chosen by the API server as far as it can.

    Selections whose :attr:`canonical` forms are equal are the same.
    """

    kind: str
    """Kind, plural, singular or short name, as ``kubectl`` takes it."""
    api_version: str | None = None
    """``v1`` or ``group/version``; ``None`` takes the API server's preferred one."""
    names: tuple[str, ...] = ()
    """Names of the objects, one watch each; with none every name will do."""
    label_selector: str = ""
    """In the API server's syntax."""
    field_selector: str = ""
    """In the API server's syntax."""
    namespaces: tuple[str, ...] | None = None
    """Names of namespaces, one watch each; ``None`` is the whole cluster."""
    namespace_labels: str | None = None
    """Label selector of namespaces: those that match are followed as they come and go, besides ``namespaces``
    (with ``None`` there, they alone)."""
    metadata_only: bool = False
    """Whether to transfer the metadata of the objects alone."""

    @property
    def canonical(self) -> Self:
        """The same selection with each name once and in order."""
        namespaces = None if self.namespaces is None else _unique(self.namespaces)
        return structs.replace(self, names=_unique(self.names), namespaces=namespaces)

    def __str__(self) -> str:
        """Name it for logs: ``Pod of v1 with labels app=x in namespace a``."""
        parts = [self.kind, f"of {self.api_version}" if self.api_version else ""]
        parts += [f"named {', '.join(self.names)}"] if self.names else []
        parts += [f"with labels {self.label_selector}"] if self.label_selector else []
        parts += [f"with fields {self.field_selector}"] if self.field_selector else []
        if self.namespaces:
            parts.append(f"in namespace {', '.join(self.namespaces)}")
        if self.namespace_labels is not None:
            parts.append(f"in namespaces with labels {self.namespace_labels}")
        return " ".join(part for part in parts if part)


class WatchPath(msgspec.Struct, frozen=True):
    """The objects that one watch follows: what makes two watches the same."""

    resource: api_resources.Resource
    namespace: str | None = None
    name: str | None = None
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for the same watch, whatever else discovery says of the kind meanwhile."""
        kind = (self.resource.api_version, self.resource.plural)
        selectors = (self.label_selector, self.field_selector)
        return (*kind, self.namespace, self.name, *selectors, self.metadata_only)

    @property
    def path(self) -> str:
        """Of the collection."""
        return self.resource.path(namespace=self.namespace)

    @property
    def target(self) -> paths.Target:
        """For errors."""
        return paths.target("GET", self.path)

    def list_request(self, limit: int, token: str) -> connection.Request:
        """Return the request for a page of the list: a ``limit`` of 0 asks for all, ``token`` for the next.

        Without a resourceVersion the answer is the newest state, and paged by every server.
        """
        query = self._selectors()
        if limit:
            query["limit"] = str(limit)
        if token:
            query["continue"] = token
        # Compressing costs the API server more than the bytes do.
        headers = {"Accept-Encoding": "identity", **self._accept("PartialObjectMetadataList")}
        return connection.Request("GET", self.path, query, headers)

    def watch_request(self, version: str) -> connection.Request:
        """Return the request for a watch from there on; an empty ``version`` begins with what is there."""
        query = self._selectors() | {"watch": "1", "allowWatchBookmarks": "true"}
        query["timeoutSeconds"] = str(random.randint(*_WATCH_SECONDS))  # noqa: S311 - nothing secret
        if version:
            query["resourceVersion"] = version
        else:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        headers = {"Accept-Encoding": "identity", **self._accept("PartialObjectMetadata")}
        return connection.Request("GET", self.path, query, headers, timeout=None)

    def _selectors(self) -> dict[str, str]:
        fields = [f"metadata.name={self.name}"] if self.name is not None else []
        fields += [self.field_selector] if self.field_selector else []
        query = {"labelSelector": self.label_selector, "fieldSelector": ",".join(fields)}
        return {key: text for key, text in query.items() if text}

    def _accept(self, kind: str) -> dict[str, str]:
        return {"Accept": _METADATA.format(kind=kind)} if self.metadata_only else {}

    def __str__(self) -> str:
        """Name it for logs."""
        return str(self.target)


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))
