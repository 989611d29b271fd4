"""Comparing a preset's entry with the pod's, which has the API server's defaults."""

from typing import Any

from addon_operator.podpreset import merge
from tests.support import rows
from tests.unit.podpreset.builders import container, env, inject, messages, only, pod, preset

Source = dict[str, Any]
TEMPLATE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

SAME_VOLUME: dict[str, tuple[Source, Source]] = {
    "no source is an empty directory": ({}, {"emptyDir": {}}),
    "null source is an empty directory": ({"secret": None}, {"emptyDir": {}}),
    "mode of a secret": (
        {"secret": {"secretName": "s"}},
        {"secret": {"secretName": "s", "defaultMode": 420}},
    ),
    "mode of a configMap": ({"configMap": {"name": "c"}}, {"configMap": {"name": "c", "defaultMode": 420}}),
    "mode and version of downwardAPI": (
        {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {
            "downwardAPI": {
                "items": [{"path": "l", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels"}}],
                "defaultMode": 420,
            }
        },
    ),
    "projected": (
        {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}, {"configMap": {"name": "c"}}]}},
        {
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
                    {"configMap": {"name": "c"}},
                ],
                "defaultMode": 420,
            }
        },
    ),
    "hostPath type": ({"hostPath": {"path": "/p"}}, {"hostPath": {"path": "/p", "type": ""}}),
    "iscsi interface": (
        {"iscsi": {"targetPortal": "t", "iqn": "iqn", "lun": 0}},
        {"iscsi": {"targetPortal": "t", "iqn": "iqn", "lun": 0, "iscsiInterface": "default"}},
    ),
    "rbd": (
        {"rbd": {"monitors": ["m"], "image": "i"}},
        {
            "rbd": {
                "monitors": ["m"],
                "image": "i",
                "pool": "rbd",
                "user": "admin",
                "keyring": "/etc/ceph/keyring",
            }
        },
    ),
    "azureDisk": (
        {"azureDisk": {"diskName": "n", "diskURI": "u"}},
        {
            "azureDisk": {
                "diskName": "n",
                "diskURI": "u",
                "cachingMode": "ReadWrite",
                "fsType": "ext4",
                "readOnly": False,
                "kind": "Shared",
            }
        },
    ),
    "scaleIO": (
        {"scaleIO": {"gateway": "g", "system": "s", "secretRef": {}, "volumeName": "v"}},
        {
            "scaleIO": {
                "gateway": "g",
                "system": "s",
                "secretRef": {},
                "volumeName": "v",
                "storageMode": "ThinProvisioned",
                "fsType": "xfs",
            }
        },
    ),
    "ephemeral": (
        {"ephemeral": {"volumeClaimTemplate": {"spec": TEMPLATE}}},
        {
            "ephemeral": {
                "volumeClaimTemplate": {
                    "metadata": {"creationTimestamp": None},
                    "spec": {**TEMPLATE, "volumeMode": "Filesystem"},
                }
            }
        },
    ),
    "image by tag": (
        {"image": {"reference": "example.com:5000/i:1"}},
        {"image": {"reference": "example.com:5000/i:1", "pullPolicy": "IfNotPresent"}},
    ),
    "image without tag": (
        {"image": {"reference": "example.com:5000/i"}},
        {"image": {"reference": "example.com:5000/i", "pullPolicy": "Always"}},
    ),
    "latest image": (
        {"image": {"reference": "i:latest"}},
        {"image": {"reference": "i:latest", "pullPolicy": "Always"}},
    ),
    "image by digest": (
        {"image": {"reference": "i@sha256:00"}},
        {"image": {"reference": "i@sha256:00", "pullPolicy": "IfNotPresent"}},
    ),
    "false and empty": (
        {"persistentVolumeClaim": {"claimName": "c", "readOnly": False}},
        {"persistentVolumeClaim": {"claimName": "c"}},
    ),
    "empty list": (
        {"secret": {"secretName": "s", "items": []}},
        {"secret": {"secretName": "s", "defaultMode": 420}},
    ),
    "equal amounts": ({"emptyDir": {"sizeLimit": "1024Mi"}}, {"emptyDir": {"sizeLimit": "1Gi"}}),
}
OTHER_VOLUME: dict[str, tuple[Source, Source]] = {
    "another mode": (
        {"secret": {"secretName": "s"}},
        {"secret": {"secretName": "s", "defaultMode": 0o400}},
    ),
    "an explicit false of a pointer": (
        {"secret": {"secretName": "s", "optional": False}},
        {"secret": {"secretName": "s", "defaultMode": 420}},
    ),
    "a size": ({"emptyDir": {}}, {"emptyDir": {"sizeLimit": "1Gi"}}),
    "another source": ({"emptyDir": {}}, {"secret": {"secretName": "s"}}),
    "a field that we do not know": ({"emptyDir": {}}, {"emptyDir": {"colour": "red"}}),
    "a source that we do not know": ({}, {"quantumDisk": {}}),
}


def volumes(source: Source) -> list[Source]:
    return [{"name": "v", **source}]


@rows.each(("given", "defaulted"), SAME_VOLUME.values(), ids=SAME_VOLUME)
def test_a_volume_equals_itself_with_defaults(given: Source, defaulted: Source) -> None:
    one = preset(volumes=volumes(given), volumeMounts=[{"name": "v", "mountPath": "/v"}])
    assert isinstance(inject(pod(volumes=volumes(defaulted)), one), merge.Injection)


@rows.each(("given", "other"), OTHER_VOLUME.values(), ids=OTHER_VOLUME)
def test_a_volume_that_means_something_else_is_not_equal(given: Source, other: Source) -> None:
    one = preset(volumes=volumes(given), volumeMounts=[{"name": "v", "mountPath": "/v"}])
    assert messages(pod(volumes=volumes(other)), one) == only("Duplicate volume v.")


def source(**fields: object) -> Source:
    return {"name": "A", "valueFrom": fields}


SAME_VARIABLE: dict[str, tuple[Source, Source]] = {
    "number and its text": (env("A", 6379), env("A", "6379")),
    "empty value": (env("A", ""), {"name": "A"}),
    "version of fieldRef": (
        source(fieldRef={"fieldPath": "metadata.name"}),
        source(fieldRef={"apiVersion": "v1", "fieldPath": "metadata.name"}),
    ),
    "divisor": (
        source(resourceFieldRef={"resource": "limits.cpu"}),
        source(resourceFieldRef={"resource": "limits.cpu", "divisor": "0"}),
    ),
    "divisor in other words": (
        source(resourceFieldRef={"resource": "limits.cpu", "divisor": 1}),
        source(resourceFieldRef={"resource": "limits.cpu", "divisor": "1"}),
    ),
    "optional file": (
        source(fileKeyRef={"volumeName": "v", "path": "p", "key": "K"}),
        source(fileKeyRef={"volumeName": "v", "path": "p", "key": "K", "optional": False}),
    ),
}


@rows.each(("given", "defaulted"), SAME_VARIABLE.values(), ids=SAME_VARIABLE)
def test_a_variable_equals_itself_with_defaults(given: Source, defaulted: Source) -> None:
    result = inject(pod(container(env=[defaulted])), preset(env=[given]))
    assert isinstance(result, merge.Injection)
    assert [one["path"] for one in result.patch] == ["/metadata/annotations"]


def test_an_optional_reference_is_another_one() -> None:
    given = source(secretKeyRef={"name": "s", "key": "k", "optional": True})
    other = source(secretKeyRef={"name": "s", "key": "k"})
    assert messages(pod(container(env=[other])), preset(env=[given])) == only("Duplicate env A.")


@rows.each(
    "extra", [{"readOnly": False}, {"subPath": ""}, {"subPathExpr": None}], ids=["false", "empty", "null"]
)
def test_a_mount_equals_itself_with_zero_values(extra: Source) -> None:
    mount = {"name": "v", "mountPath": "/v"}
    one = preset(volumes=volumes({}), volumeMounts=[{**mount, **extra}])
    result = inject(pod(container(volumeMounts=[mount]), volumes=volumes({"emptyDir": {}})), one)
    assert isinstance(result, merge.Injection)
    assert [operation["path"] for operation in result.patch] == ["/metadata/annotations"]


def test_an_empty_prefix_is_not_a_prefix() -> None:
    given = pod(container(envFrom=[{"configMapRef": {"name": "c"}}]))
    result = inject(given, preset(envFrom=[{"prefix": "", "configMapRef": {"name": "c"}}]))
    assert isinstance(result, merge.Injection)
    assert [operation["path"] for operation in result.patch] == ["/metadata/annotations"]
