"""Schemas of Kubernetes' own kinds, as a local control plane serves them, for checks without a cluster."""

import contextlib
import os
import pathlib
import re
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import orjson

from addon_operator.devcluster import api

_FILE: Final = "api-schemas-{}.json"
_VERSION: Final = re.compile(r"v([0-9]+)\.([0-9]+)\.([0-9]+)")
_OWN_GROUP: Final = re.compile(
    r"/openapi/v3/(?:api|apis/[a-z0-9]+(?:\.(?:[a-z0-9.-]+\.)?k8s\.io)?)/v[a-z0-9]+"
)
"""Where the groups of Kubernetes itself are; others may be those of definitions."""
_KINDS: Final = "x-kubernetes-group-version-kind"


class ApiSchemas(msgspec.Struct, frozen=True):
    """What one version of Kubernetes says of its kinds, as OpenAPI v3."""

    version: str
    """Such as ``v1.36.3``."""
    definitions: Mapping[str, Any]
    """By the name of the type."""
    kinds: Mapping[str, str]
    """The name of the type, by ``apiVersion/kind``."""


def load(cache: pathlib.Path) -> ApiSchemas | None:
    """Return the schemas of the newest version in the cache; ``None`` if there are none."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        found = {tuple(map(int, match.groups())): path for path in cache.glob(_FILE.format("*"))
                 if (match := _VERSION.search(path.name))}  # fmt: skip
        if not found:
            return None
        path = found[max(found)]
        document = orjson.loads(path.read_bytes())
        return ApiSchemas(document["version"], document["definitions"], document["kinds"])
    return None


def save(cache: pathlib.Path, version: str, client: api.ApiClient) -> None:
    """Keep the schemas of an API server that runs, unless that is done; what fails is left for the next."""
    path = cache / _FILE.format(version)
    if path.exists() or not _VERSION.fullmatch(version):
        return
    definitions: dict[str, Any] = {}
    for url in _urls(client):
        answer = client.request("GET", url)
        if not answer.is_success:
            return
        document: dict[str, Any] = answer.document()
        definitions |= document.get("components", {}).get("schemas", {})
    if definitions:
        found = {"version": version, "definitions": definitions, "kinds": dict(_kinds(definitions))}
        with contextlib.suppress(OSError):
            _write(path, orjson.dumps(found))


def _urls(client: api.ApiClient) -> Iterator[str]:
    index: dict[str, Any] = client.request("GET", "/openapi/v3").document()
    for found in index.get("paths", {}).values():
        url = str(found.get("serverRelativeURL", ""))
        if _OWN_GROUP.fullmatch(url.partition("?")[0]):
            yield url


def _kinds(definitions: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, schema in definitions.items():
        for kind in schema.get(_KINDS, ()):
            # Options of requests are listed for each group.
            if "metadata" in schema.get("properties", {}):
                yield "/".join(filter(None, (kind["group"], kind["version"], kind["kind"]))), name


def _write(path: pathlib.Path, content: bytes) -> None:
    """Write it so that others find all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        pathlib.Path(name).replace(path)
    except OSError:
        pathlib.Path(name).unlink(missing_ok=True)
        raise
