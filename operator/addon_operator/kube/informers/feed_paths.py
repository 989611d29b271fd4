"""Where the objects of a feed are, and the requests that list and watch them."""

import dataclasses
import random
from collections.abc import Callable
from typing import Final

from addon_operator.kube.client import connection, paths
from addon_operator.kube.discovery import api_resources

_METADATA: Final = "application/json;as={kind};g=meta.k8s.io;v=v1,application/json"
_WATCH_SECONDS: Final = (240, 290)
"""The API server ends each watch after a time within these bounds, so that not all come back at once."""


@dataclasses.dataclass(frozen=True, slots=True)
class FeedPath:
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
        """A page of the list; a ``limit`` of 0 asks for all of it, ``token`` goes on from the last page.

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

    def watch_request(
        self, version: str, pick: Callable[[int, int], int] = random.randint
    ) -> connection.Request:
        """A watch from there on; an empty ``version`` begins with all objects that are there."""
        query = self._selectors() | {"watch": "1", "allowWatchBookmarks": "true"}
        query["timeoutSeconds"] = str(pick(*_WATCH_SECONDS))
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
        """For logs."""
        return str(self.target)
