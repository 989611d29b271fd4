"""The shapes of what a PodPreset adds to containers: ``EnvVar``, ``EnvFromSource`` and ``VolumeMount``.

Source: the core/v1 API of Kubernetes 1.37; "pointer" and "default" are those of its Go types.
"""

from typing import Final

from addon_operator.podpreset import formats, rules
from addon_operator.podpreset.schema import Field, Kind, ListOf, Struct, Type

TEXT: Final = Field(Kind.TEXT)
REQUIRED_TEXT: Final = Field(Kind.TEXT, required=True)
INTEGER: Final = Field(Kind.INTEGER)
BOOLEAN: Final = Field(Kind.BOOLEAN)
OPTIONAL: Final = Field(Kind.BOOLEAN, pointer=True)
TEXTS: Final = Field(ListOf(Kind.TEXT))


def reference(shape: Type) -> Field:
    """A field whose empty object says something: it is there."""
    return Field(shape, pointer=True)


def named(name_format: formats.Format, *, required: bool = True) -> Field:
    """A field with a name of a given format."""
    return Field(Kind.TEXT, required=required, format=name_format)


def object_field_selector(path_format: formats.Format) -> Struct:
    """``fieldRef``: a field of the pod."""
    return Struct(
        {
            "apiVersion": Field(Kind.TEXT, default="v1", choices=("v1", "")),
            "fieldPath": named(path_format),
        }
    )


RESOURCE_FIELD_SELECTOR: Final = Struct(
    {
        "containerName": TEXT,
        "resource": named(formats.RESOURCE),
        "divisor": Field(Kind.QUANTITY, default="0"),
    },
    rules=(rules.divisor,),
)
KEY_SELECTOR: Final = Struct(
    {"name": named(formats.DNS_SUBDOMAIN), "key": named(formats.CONFIG_KEY), "optional": OPTIONAL}
)
FILE_KEY_SELECTOR: Final = Struct(
    {
        "volumeName": named(formats.DNS_LABEL),
        "path": named(formats.NO_BACKSTEPS),
        "key": named(formats.PRINTABLE_ENV_NAME),
        "optional": Field(Kind.BOOLEAN, pointer=True, default=False),
    }
)
ENV_VAR_SOURCE: Final = Struct(
    {
        "fieldRef": reference(object_field_selector(formats.ENV_FIELD_PATH)),
        "resourceFieldRef": reference(RESOURCE_FIELD_SELECTOR),
        "configMapKeyRef": reference(KEY_SELECTOR),
        "secretKeyRef": reference(KEY_SELECTOR),
        "fileKeyRef": reference(FILE_KEY_SELECTOR),
    },
    rules=(
        rules.exactly_one("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"),
    ),
)
ENV_VAR: Final = Struct(
    {
        "name": named(formats.ENV_NAME),
        "value": Field(Kind.SCALAR),
        "valueFrom": reference(ENV_VAR_SOURCE),
    },
    rules=(rules.value_or_source,),
)

ENV_SOURCE_REFERENCE: Final = Struct({"name": named(formats.DNS_SUBDOMAIN), "optional": OPTIONAL})
ENV_FROM_SOURCE: Final = Struct(
    {
        "prefix": named(formats.ENV_PREFIX, required=False),
        "configMapRef": reference(ENV_SOURCE_REFERENCE),
        "secretRef": reference(ENV_SOURCE_REFERENCE),
    },
    rules=(rules.exactly_one("configMapRef", "secretRef"),),
)

VOLUME_MOUNT: Final = Struct(
    {
        "name": REQUIRED_TEXT,
        "readOnly": BOOLEAN,
        "recursiveReadOnly": Field(Kind.TEXT, pointer=True, choices=("Disabled", "IfPossible", "Enabled")),
        "mountPath": REQUIRED_TEXT,
        "subPath": named(formats.RELATIVE_PATH, required=False),
        "mountPropagation": Field(
            Kind.TEXT, pointer=True, choices=("None", "HostToContainer", "Bidirectional")
        ),
        "subPathExpr": named(formats.RELATIVE_PATH, required=False),
        "bindMountOptions": TEXTS,
    },
    rules=(rules.sub_paths, rules.recursive_read_only),
)
