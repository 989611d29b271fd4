"""The CustomResourceDefinition of PodPresets, and what the parser makes of it."""

from collections.abc import Iterator
from typing import Any

from addon_operator.documents import own_manifests
from addon_operator.podpreset import crd, schema, volume_types
from addon_operator.podpreset.schema import Kind, TypeShape

CRD = own_manifests.load(own_manifests.PODPRESETS)
VERSION = CRD["spec"]["versions"][0]
OBJECT = VERSION["schema"]["openAPIV3Schema"]["properties"]


def walk(
    shape: TypeShape, given: dict[str, Any], path: str
) -> Iterator[tuple[str, TypeShape, dict[str, Any]]]:
    """Give all parts of a shape, each with its part of the definition."""
    yield path, shape, given
    for name, one in shape.fields.items():
        yield from walk(one, given["properties"][name], f"{path}.{name}")
    if shape.values is not None:
        inner = given.get("items") or given["additionalProperties"]
        yield from walk(shape.values, inner, f"{path}[]")


PARTS = {path: (shape, given) for path, shape, given in walk(crd.spec(), OBJECT["spec"], "spec")}


def test_it_is_the_resource_that_kubernetes_had() -> None:
    assert CRD["metadata"]["name"] == "podpresets.settings.k8s.io"
    assert CRD["spec"]["group"] == "settings.k8s.io"
    assert CRD["spec"]["scope"] == "Namespaced"
    assert CRD["spec"]["names"]["kind"] == "PodPreset"
    assert CRD["spec"]["names"]["shortNames"] == ["pp"]
    assert VERSION["name"] == "v1alpha1"
    assert VERSION["subresources"] == {"status": {}}


def test_the_protected_group_is_approved_openly() -> None:
    assert CRD["metadata"]["annotations"] == {
        "api-approved.kubernetes.io": "unapproved, kept for compatibility with Kubernetes 1.19"
    }


def test_every_type_of_volume_is_a_field_of_volumes() -> None:
    assert crd.entry("volumes").fields.keys() - {"name"} == volume_types.SOURCE_NAMES


def test_texts_and_lists_that_are_needed_are_not_empty() -> None:
    needed = {
        f"{path}.{name}": given["properties"][name]
        for path, (shape, given) in PARTS.items()
        for name in shape.required
        if shape.fields[name].kind in (Kind.TEXT, Kind.LIST)
    }
    assert needed
    assert [
        path for path, one in needed.items() if 1 not in (one.get("minLength"), one.get("minItems"))
    ] == []


def test_fields_have_the_defaults_of_the_api_server() -> None:
    assert {
        path.removeprefix("spec."): shape.default for path, (shape, _) in PARTS.items() if shape.default
    } == {
        "env[].valueFrom.fieldRef.apiVersion": "v1",
        "env[].valueFrom.resourceFieldRef.divisor": "0",
        "volumes[].secret.defaultMode": 0o644,
        "volumes[].configMap.defaultMode": 0o644,
        "volumes[].downwardAPI.defaultMode": 0o644,
        "volumes[].downwardAPI.items[].fieldRef.apiVersion": "v1",
        "volumes[].downwardAPI.items[].resourceFieldRef.divisor": "0",
        "volumes[].projected.defaultMode": 0o644,
        "volumes[].projected.sources[].downwardAPI.items[].fieldRef.apiVersion": "v1",
        "volumes[].projected.sources[].downwardAPI.items[].resourceFieldRef.divisor": "0",
        "volumes[].projected.sources[].serviceAccountToken.expirationSeconds": 3600,
        "volumes[].ephemeral.volumeClaimTemplate.spec.volumeMode": "Filesystem",
        "volumes[].iscsi.iscsiInterface": "default",
        "volumes[].rbd.pool": "rbd",
        "volumes[].rbd.user": "admin",
        "volumes[].rbd.keyring": "/etc/ceph/keyring",
        "volumes[].azureDisk.cachingMode": "ReadWrite",
        "volumes[].azureDisk.fsType": "ext4",
        "volumes[].azureDisk.kind": "Shared",
        "volumes[].scaleIO.storageMode": "ThinProvisioned",
        "volumes[].scaleIO.fsType": "xfs",
    }


def test_fields_that_are_pointers_in_the_go_types_keep_their_zero_values() -> None:
    scalars = {
        path.removeprefix("spec.")
        for path, (shape, _) in PARTS.items()
        if shape.pointer and shape.kind in (Kind.TEXT, Kind.BOOLEAN, Kind.QUANTITY)
    }
    template = "volumes[].ephemeral.volumeClaimTemplate.spec"
    bundle = "volumes[].projected.sources[].clusterTrustBundle"
    optional = {path for path in scalars if path.endswith(".optional")}
    assert len(optional) == 10
    assert scalars - optional == {
        "volumes[].emptyDir.sizeLimit",
        "volumes[].iscsi.initiatorName",
        "volumes[].azureDisk.fsType",
        "volumes[].csi.readOnly",
        "volumes[].csi.fsType",
        f"{bundle}.name",
        f"{bundle}.signerName",
        f"{template}.storageClassName",
        f"{template}.volumeAttributesClassName",
        f"{template}.dataSource.apiGroup",
        f"{template}.dataSourceRef.apiGroup",
        f"{template}.dataSourceRef.namespace",
    }


def test_objects_and_whole_numbers_that_are_no_pointers_are_few() -> None:
    plain = {
        path.removeprefix("spec.volumes[].")
        for path, (shape, _) in PARTS.items()
        if not shape.pointer and (shape.fields or shape.kind is Kind.INTEGER) and not path.endswith("[]")
    }
    assert plain == {
        "gcePersistentDisk.partition",
        "awsElasticBlockStore.partition",
        "iscsi.lun",
        "ephemeral.volumeClaimTemplate.metadata",
    }


def test_an_expression_for_texts_says_what_is_wrong() -> None:
    (rule,) = crd.entry("env").fields["name"].rules
    assert not list(rule("A.b", "spec.env[0].name"))
    (problem,) = rule("A\n", "spec.env[0].name")
    assert problem.startswith('spec.env[0].name: "A\n": must consist of letters, digits')


def test_a_value_beside_a_source_is_refused_by_name() -> None:
    first, second = OBJECT["spec"]["properties"]["env"]["items"]["anyOf"]
    assert first["properties"]["valueFrom"]["required"] == ["(may not be specified when value is not empty)"]
    assert second == {"properties": {"value": {"enum": [""]}}}


def test_the_spec_cannot_be_changed() -> None:
    assert {"rule": "self == oldSelf", "message": IMMUTABLE} in OBJECT["spec"]["x-kubernetes-validations"]


IMMUTABLE = "is immutable: to change a PodPreset, delete it and create it again"


def test_no_field_of_an_older_schema_is_pruned_by_the_parser() -> None:
    entry = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": False}}}
    assert schema.prune(crd.entry("env"), entry) == entry


def test_no_rule_goes_through_one_list_for_each_item_of_another() -> None:
    rules = {rule["rule"]: rule for rule in OBJECT["spec"]["x-kubernetes-validations"]}
    assert [rule for rule in rules if ".all(" in rule] == []
    # A message does so, as it names what is wrong, but only of few.
    slow = [
        one["messageExpression"] for one in rules.values() if ".exists(" in one.get("messageExpression", "")
    ]
    assert len(slow) == 2
    assert all(text.startswith("size(self.volumes) * size(self.volumeMounts) > 1000 ? ") for text in slow)
