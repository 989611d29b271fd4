"""The shape of a pod, as far as presets and references in it are concerned.

For pods that were written by hand and have not been through an API server.
Source: the core/v1 API of Kubernetes 1.37, where the names of a pod's variables may be any printable ASCII.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final

from addon_operator.podpreset import crd, schema
from addon_operator.podpreset.schema import Kind, TypeShape

_TEXT: Final = TypeShape(Kind.TEXT)
_TEXTS: Final = TypeShape(Kind.LIST, values=_TEXT)
_TEXT_MAP: Final = TypeShape(Kind.OBJECT, values=_TEXT)
_VARIABLE: Final = TypeShape(
    Kind.TEXT, rules=(crd.text_rule("must be printable ASCII without '='", ["[ -<>-~]+"]),)
)
_METADATA: Final = TypeShape(
    Kind.OBJECT,
    dict.fromkeys(("name", "generateName", "namespace"), _TEXT)
    | dict.fromkeys(("labels", "annotations"), _TEXT_MAP),
)


def _with_fields(shape: TypeShape, **fields: TypeShape) -> TypeShape:
    return dataclasses.replace(shape, fields={**shape.fields, **fields})


def _list(shape: TypeShape, unique: str | None = None) -> TypeShape:
    return TypeShape(Kind.LIST, values=shape, unique=unique)


@functools.cache
def _pod() -> TypeShape:
    container = TypeShape(
        Kind.OBJECT,
        {
            "name": crd.entry("volumes").fields["name"],
            "command": _TEXTS,
            "args": _TEXTS,
            "env": _list(_with_fields(crd.entry("env"), name=_VARIABLE, value=_TEXT)),
            "envFrom": _list(_with_fields(crd.entry("envFrom"), prefix=_VARIABLE)),
            "volumeMounts": _list(crd.entry("volumeMounts"), "mountPath"),
        },
        required=["name"],
    )
    containers = _list(container, "name")
    spec = TypeShape(
        Kind.OBJECT,
        {
            "containers": containers,
            "initContainers": containers,
            "volumes": _list(crd.entry("volumes"), "name"),
            "enableServiceLinks": TypeShape(Kind.BOOLEAN),
        },
        required=["containers"],
    )
    return TypeShape(Kind.OBJECT, {"metadata": _METADATA, "spec": spec}, required=["spec"])


def problems(pod: Mapping[str, Any]) -> Iterator[str]:
    """Say what keeps a pod from being looked at, one sentence each, each beginning with the path."""
    yield from schema.problems(_pod(), schema.prune(_pod(), pod), "")
