"""The shape of a PodPreset, as its CustomResourceDefinition says it.

Fields, types, bounds and expressions for texts are those of ``crds/podpresets.yaml``, to which the API server
holds everybody. What it says in CEL about several fields is a function here, found by its message: to run a
validator and CEL takes 50 times as long, and thousands of presets may be read at a start.
A definition does not say which fields are pointers in the Go types, and what their defaults are: see below.
Source: the core/v1 API of Kubernetes 1.37.
"""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from addon_operator.documents import own_manifests
from addon_operator.kernel import quantities
from addon_operator.podpreset import schema, volume_types
from addon_operator.podpreset.schema import Kind, Rule, TypeShape

_IMMUTABLE: Final = "is immutable: to change a PodPreset, delete it and create it again"
_ONE_OF: Final = "must specify one of: "
_AT_LEAST_ONE_OF: Final = "must specify at least one of: "
_AT_MOST_ONE: Final = "may not have more than one field specified at a time"
_ONE_VOLUME_TYPE: Final = "may not specify more than 1 volume type"
_NOTHING_TO_INJECT: Final = "must specify at least one of env, envFrom, or volumes with volumeMounts"
_NO_SUCH_VOLUME: Final = "names a volume that this preset does not have"
_NO_MOUNT: Final = "is mounted by no volumeMount of this preset"
_EMPTY_SELECTOR: Final = "must not be empty: give matchLabels or matchExpressions"
_VALUES_REQUIRED: Final = "must be specified when operator is In or NotIn"
_VALUES_FORBIDDEN: Final = "may not be specified when operator is Exists or DoesNotExist"
_VALUE_AND_SOURCE: Final = "may not be specified when value is not empty"
_SUB_PATHS: Final = "subPathExpr and subPath are mutually exclusive"
_RECURSIVE: Final = "may only be specified when readOnly is true and mountPropagation is None or not given"
_CPU_DIVISORS: Final = "1m, 1"
_BYTE_DIVISORS: Final = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"


def _specified(value: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [name for name in names if value.get(name) not in (None, "", [])]


def _count_rule(names: Sequence[str], none: str, many: str) -> Rule:
    """Return the rule about how many of these fields are there; without a message any number may be."""

    def rule(value: Mapping[str, Any], path: str) -> Iterator[str]:
        present = _specified(value, names)
        if none and not present:
            yield f"{path}: {none}"
        if many and len(present) > 1:
            yield f"{path}: {many} ({' and '.join(present)})"

    return rule


def _something_to_inject(spec: Mapping[str, Any], path: str) -> Iterator[str]:
    if not _specified(spec, ("env", "envFrom", "volumes", "volumeMounts")):
        yield f"{path}: {_NOTHING_TO_INJECT}"


def _volumes_and_mounts(spec: Mapping[str, Any], path: str) -> Iterator[str]:
    volumes = [volume["name"] for volume in spec.get("volumes", ())]
    mounts = [mount["name"] for mount in spec.get("volumeMounts", ())]
    for index, name in enumerate(mounts):
        if name not in volumes:
            yield f'{path}.volumeMounts[{index}].name: "{name}" {_NO_SUCH_VOLUME}'
    for index, name in enumerate(volumes):
        if name not in mounts:
            yield f'{path}.volumes[{index}].name: "{name}" {_NO_MOUNT}'


def _not_empty(selector: Mapping[str, Any], path: str) -> Iterator[str]:
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield f"{path}: {_EMPTY_SELECTOR}"


def _expression_values(expression: Mapping[str, Any], path: str) -> Iterator[str]:
    given, wanted = bool(expression.get("values")), expression["operator"] in ("In", "NotIn")
    if given is not wanted:
        yield f"{path}.values: {_VALUES_REQUIRED if wanted else _VALUES_FORBIDDEN}"


def _value_or_source(variable: Mapping[str, Any], path: str) -> Iterator[str]:
    if "valueFrom" in variable and schema.text_of(variable.get("value")):
        yield f"{path}.valueFrom: {_VALUE_AND_SOURCE}"


def _divisor(value: Mapping[str, Any], path: str) -> Iterator[str]:
    divisor = value.get("divisor")
    allowed = _CPU_DIVISORS if value["resource"].endswith(".cpu") else _BYTE_DIVISORS
    if divisor is None or quantities.canonical(divisor) == "0":
        return
    if quantities.canonical(divisor) not in map(quantities.canonical, allowed.split(", ")):
        yield f"{path}.divisor: {divisor} is not supported with {value['resource']}; use one of {allowed}"


def _sub_paths(mount: Mapping[str, Any], path: str) -> Iterator[str]:
    if mount.get("subPath") and mount.get("subPathExpr"):
        yield f"{path}.subPathExpr: {_SUB_PATHS}"


def _recursive_read_only(mount: Mapping[str, Any], path: str) -> Iterator[str]:
    if mount.get("recursiveReadOnly") not in {"Enabled", "IfPossible"}:
        return
    if not mount.get("readOnly") or mount.get("mountPropagation", "None") != "None":
        yield f"{path}.recursiveReadOnly: {_RECURSIVE}"


_RULES: Final[Mapping[str, Rule | None]] = {
    _IMMUTABLE: None,
    _NOTHING_TO_INJECT: _something_to_inject,
    f"a volumeMount {_NO_SUCH_VOLUME}": _volumes_and_mounts,
    f"a volume {_NO_MOUNT}": None,
    _EMPTY_SELECTOR: _not_empty,
    _VALUES_REQUIRED: _expression_values,
    _VALUES_FORBIDDEN: None,
    _AT_MOST_ONE: None,
    f"use one of {_BYTE_DIVISORS}": None,
    f"use one of {_CPU_DIVISORS}": None,
    _SUB_PATHS: _sub_paths,
    _RECURSIVE: _recursive_read_only,
}
"""The rules between fields by their messages; nothing for those that another one checks as well."""

_POINTERS: Final = frozenset(
    {"optional", "sizeLimit", "storageClassName", "volumeAttributesClassName", "apiGroup", "namespace"}
    | {"csi.readOnly", "csi.fsType", "azureDisk.fsType", "initiatorName"}
    | {"clusterTrustBundle.name", "clusterTrustBundle.signerName"}
)
"""The fields of scalars that are pointers, if not of whole numbers."""
_PLAIN: Final = frozenset({"metadata", "partition", "iscsi.lun"})
"""The objects and whole numbers that are not."""
_DEFAULTS: Final[Mapping[str, str | int | bool]] = {
    "defaultMode": 0o644,
    "fieldRef.apiVersion": "v1",
    "divisor": "0",
    "fileKeyRef.optional": False,
    "expirationSeconds": 3600,
    "volumeMode": "Filesystem",
    "iscsiInterface": "default",
    "rbd.pool": "rbd",
    "rbd.user": "admin",
    "rbd.keyring": "/etc/ceph/keyring",
    "cachingMode": "ReadWrite",
    "azureDisk.fsType": "ext4",
    "azureDisk.kind": "Shared",
    "storageMode": "ThinProvisioned",
    "scaleIO.fsType": "xfs",
}


def _complete_image(source: dict[str, Any]) -> None:
    """Pull always what is called ``latest``, like the API server."""
    if "pullPolicy" in source or not isinstance(source.get("reference", ""), str):
        return
    name, _, digest = source.get("reference", "").partition("@")
    _, _, tag = name.rpartition("/")[2].partition(":")
    source["pullPolicy"] = "Always" if (tag or (digest and "-") or "latest") == "latest" else "IfNotPresent"


def _complete_volume(volume: dict[str, Any]) -> None:
    """Make an empty directory of a volume without a source."""
    if volume.keys() <= {"name"}:
        volume[volume_types.NO_SOURCE] = {}


_COMPLETIONS: Final = {"volumes": _complete_volume, "image": _complete_image}
_KINDS: Final = {
    "string": Kind.TEXT,
    "integer": Kind.INTEGER,
    "boolean": Kind.BOOLEAN,
    "array": Kind.LIST,
    "object": Kind.OBJECT,
}
_SENTENCE_END: Final = "){0}"
_MATCHES: Final = re.compile(r"""(!?)(?:self|key|string\(self\))\.matches\(r(['"])(.*?)\2\)""")
"""How the definition has an expression in CEL; ``key`` is each key of a mapping."""


def text_rule(message: str, wanted: Sequence[str], never: Sequence[str] = ()) -> Rule:
    """Return the rule that a text, or each key of a mapping, matches some expressions and others nowhere."""

    def fits(text: str) -> bool:
        return all(re.fullmatch(one, text) for one in wanted) and not any(
            re.search(one, text) for one in never
        )

    def rule(value: object, path: str) -> Iterator[str]:
        for text in map(str, value) if isinstance(value, Mapping) else (str(value),):
            if not fits(text):
                yield f'{path}: "{text}": {message}'

    return rule


def _shape(node: Mapping[str, Any], parent: str, name: str) -> TypeShape:
    """Return the shape that a part of the definition says, for the field of that name and of items in it."""
    inner = node.get("items") or node.get("additionalProperties")
    kind = _KINDS.get(node.get("type", ""), Kind.SCALAR)
    if node.get("x-kubernetes-int-or-string"):
        kind = Kind.QUANTITY
    names = {name, f"{parent}.{name}"}
    fields = {key: _shape(one, name, key) for key, one in node.get("properties", {}).items()}
    return TypeShape(
        kind,
        fields,
        required=node.get("required", ()) if kind is Kind.OBJECT else (),
        values=_shape(inner, parent, name) if inner else None,
        unique=next(iter(node.get("x-kubernetes-list-map-keys", ())), None),
        choices=tuple(node.get("enum", ())),
        within=(node["minimum"], node["maximum"]) if "minimum" in node else None,
        longest=node.get("maxLength"),
        rules=tuple(dict.fromkeys(_rules(node, tuple(fields)))),
        pointer=not names & _PLAIN if fields or kind is Kind.INTEGER else bool(names & _POINTERS),
        default=next((_DEFAULTS[one] for one in names if one in _DEFAULTS), None),
        complete=_COMPLETIONS.get(name),
    )


def _rules(node: Mapping[str, Any], fields: Sequence[str]) -> Iterator[Rule]:
    sentence, found, expression = node.get("pattern", "").removeprefix("^(").partition(_SENTENCE_END)
    if found:
        yield text_rule(sentence, [expression])
    for one in node.get("x-kubernetes-validations", ()):
        message = " ".join(one["message"].split())
        rule = _text_rule(message, one["rule"]) or _object_rule(message, fields)
        if rule is not None:
            yield rule
    # CEL sees no value without a type, and would take too long about a divisor in a list in a list.
    if "valueFrom" in fields:
        yield _value_or_source
    if "divisor" in fields:
        yield _divisor


def _text_rule(message: str, expression: str) -> Rule | None:
    patterns = _MATCHES.findall(expression)
    if not patterns:
        return None
    wanted, never = ([text for no, _, text in patterns if bool(no) is kind] for kind in (False, True))
    return text_rule(message, wanted, never)


def _object_rule(message: str, fields: Sequence[str]) -> Rule | None:
    if message == _ONE_VOLUME_TYPE:
        return _count_rule([name for name in fields if name != "name"], "", message)
    if message.startswith(_ONE_OF):
        return _count_rule(message.removeprefix(_ONE_OF).split(", "), message, _AT_MOST_ONE)
    if message.startswith(_AT_LEAST_ONE_OF):
        return _count_rule(message.removeprefix(_AT_LEAST_ONE_OF).split(", "), message, "")
    return _RULES[message]


@functools.cache
def spec() -> TypeShape:
    """Return the shape of a PodPreset's ``spec``."""
    (version,) = own_manifests.load(own_manifests.PODPRESETS)["spec"]["versions"]
    return _shape(version["schema"]["openAPIV3Schema"]["properties"]["spec"], "", "spec")


@functools.cache
def entry(name: str) -> TypeShape:
    """Return the shape of one entry of a list of the ``spec``: ``env``, ``envFrom`` and so on."""
    shape = spec().fields[name].values
    assert shape is not None  # noqa: S101 - these are lists
    return shape


def canonical(part: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of such a list, or of a pod's, in the form in which equal ones are equal."""
    found: dict[str, Any] = schema.canonical(entry(part), item)
    return found
