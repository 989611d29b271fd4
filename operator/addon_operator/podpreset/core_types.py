"""The shapes of what a PodPreset adds to containers: ``EnvVar``, ``EnvFromSource`` and ``VolumeMount``.

Rules between the fields of one object come first; those of single fields stand in the shapes.
Source: the core/v1 API of Kubernetes 1.37; "pointer" and "default" are those of its Go types.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from addon_operator.kernel import quantities
from addon_operator.podpreset import formats, schema
from addon_operator.podpreset.schema import Field, Kind, ListOf, Rule, Struct, Type

AT_MOST_ONE: Final = "may not have more than one field specified at a time"
AT_MOST_ONE_VOLUME_TYPE: Final = "may not specify more than 1 volume type"
VALUE_AND_SOURCE: Final = "may not be specified when value is not empty"
SUB_PATHS: Final = "subPathExpr and subPath are mutually exclusive"
_NOTHING: Final[tuple[object, ...]] = (None, "", [])
_CPU_DIVISORS: Final = ("1m", "1")
_BYTE_DIVISORS: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def exactly_one(*names: str) -> Rule:
    """One of the fields must be there, and no other of them."""

    def rule(value: Mapping[str, Any], path: str) -> Iterator[str]:
        present = [name for name in names if value.get(name) not in _NOTHING]
        if not present:
            yield f"{path}: must specify one of: {', '.join(names)}"
        elif len(present) > 1:
            yield f"{path}: {AT_MOST_ONE} ({' and '.join(present)})"

    return rule


def at_least_one(*names: str) -> Rule:
    """One or more of the fields must be there."""

    def rule(value: Mapping[str, Any], path: str) -> Iterator[str]:
        if not any(value.get(name) for name in names):
            yield f"{path}: must specify at least one of: {', '.join(names)}"

    return rule


def one_volume_type(names: Sequence[str]) -> Rule:
    """A volume, or one source of a projected volume, is of one type."""

    def rule(value: Mapping[str, Any], path: str) -> Iterator[str]:
        present = [name for name in names if name in value]
        if len(present) > 1:
            yield f"{path}: {AT_MOST_ONE_VOLUME_TYPE} ({' and '.join(present)})"

    return rule


def value_or_source(value: Mapping[str, Any], path: str) -> Iterator[str]:
    """A variable has a value or a source of its value."""
    if "valueFrom" in value and schema.text_of(value.get("value")):
        yield f"{path}.valueFrom: {VALUE_AND_SOURCE}"


def divisor(value: Mapping[str, Any], path: str) -> Iterator[str]:
    """The divisors that the API server accepts for a resource."""
    given = value.get("divisor")
    allowed = _CPU_DIVISORS if value["resource"].endswith(".cpu") else _BYTE_DIVISORS
    if given is None or quantities.canonical(given) == "0":
        return
    if quantities.canonical(given) not in {quantities.canonical(one) for one in allowed}:
        listed = ", ".join(allowed)
        yield f"{path}.divisor: {given} is not supported with {value['resource']}; use one of {listed}"


def sub_paths(value: Mapping[str, Any], path: str) -> Iterator[str]:
    """A mount has at most one of the two ways to name a path inside of its volume."""
    if value.get("subPath") and value.get("subPathExpr"):
        yield f"{path}.subPathExpr: {SUB_PATHS}"


RECURSIVE_READ_ONLY: Final = (
    "may only be specified when readOnly is true and mountPropagation is None or not given"
)


def recursive_read_only(value: Mapping[str, Any], path: str) -> Iterator[str]:
    """A mount can be recursively read-only only if it is read-only and does not propagate."""
    if value.get("recursiveReadOnly") not in {"Enabled", "IfPossible"}:
        return
    if not value.get("readOnly") or value.get("mountPropagation", "None") != "None":
        yield f"{path}.recursiveReadOnly: {RECURSIVE_READ_ONLY}"


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
    rules=(divisor,),
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
    rules=(exactly_one("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"),),
)
ENV_VAR: Final = Struct(
    {
        "name": named(formats.ENV_NAME),
        "value": Field(Kind.SCALAR),
        "valueFrom": reference(ENV_VAR_SOURCE),
    },
    rules=(value_or_source,),
)

ENV_SOURCE_REFERENCE: Final = Struct({"name": named(formats.DNS_SUBDOMAIN), "optional": OPTIONAL})
ENV_FROM_SOURCE: Final = Struct(
    {
        "prefix": named(formats.ENV_PREFIX, required=False),
        "configMapRef": reference(ENV_SOURCE_REFERENCE),
        "secretRef": reference(ENV_SOURCE_REFERENCE),
    },
    rules=(exactly_one("configMapRef", "secretRef"),),
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
    rules=(sub_paths, recursive_read_only),
)
