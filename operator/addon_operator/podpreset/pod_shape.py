"""The shape of a pod, as far as presets and references in it are concerned.

For pods that were written by hand and have not been through an API server.
Source: the core/v1 API of Kubernetes 1.37, where the names of a pod's variables may be any printable ASCII.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from addon_operator.podpreset import core_types, formats, schema, volume_types
from addon_operator.podpreset.schema import Field, Kind, ListOf, MapOf, Struct

_TEXTS: Final = MapOf(Kind.TEXT)
_ENV_VAR: Final = Struct(
    {
        **core_types.ENV_VAR.fields,
        "name": core_types.named(formats.PRINTABLE_ENV_NAME),
        "value": core_types.TEXT,
    },
    rules=core_types.ENV_VAR.rules,
)
_ENV_FROM_SOURCE: Final = Struct(
    {
        **core_types.ENV_FROM_SOURCE.fields,
        "prefix": core_types.named(formats.PRINTABLE_ENV_NAME, required=False),
    },
    rules=core_types.ENV_FROM_SOURCE.rules,
)
_CONTAINER: Final = Struct(
    {
        "name": core_types.named(formats.DNS_LABEL),
        "command": core_types.TEXTS,
        "args": core_types.TEXTS,
        "env": Field(ListOf(_ENV_VAR)),
        "envFrom": Field(ListOf(_ENV_FROM_SOURCE)),
        "volumeMounts": Field(ListOf(core_types.VOLUME_MOUNT, unique="mountPath")),
    }
)
_METADATA: Final = Struct(
    {
        "name": core_types.TEXT,
        "generateName": core_types.TEXT,
        "namespace": core_types.TEXT,
        "labels": Field(_TEXTS),
        "annotations": Field(_TEXTS),
    }
)
_SPEC: Final = Struct(
    {
        "containers": Field(ListOf(_CONTAINER, unique="name"), required=True),
        "initContainers": Field(ListOf(_CONTAINER, unique="name")),
        "volumes": Field(ListOf(volume_types.VOLUME, unique="name")),
        "enableServiceLinks": core_types.BOOLEAN,
    }
)
_POD: Final = Struct({"metadata": Field(_METADATA), "spec": Field(_SPEC, required=True)})


def problems(pod: Mapping[str, Any]) -> Iterator[str]:
    """What keeps a pod from being looked at, one sentence each, each beginning with the path of the field."""
    yield from schema.problems(_POD, schema.prune(_POD, pod), "")
