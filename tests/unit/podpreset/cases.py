"""PodPreset specs that are accepted and refused; the API server and the parser have to agree about each."""

from typing import Any, NamedTuple

import pytest

Spec = dict[str, Any]

SELECTOR: Spec = {"matchLabels": {"role": "frontend"}}
ENV: list[Spec] = [{"name": "DB_PORT", "value": "6379"}]


class Refused(NamedTuple):
    """A spec that is refused."""

    spec: Spec
    path: str
    """Path of the field that is wrong, as both name it."""
    says: str
    """Words that both have in their sentence."""


def selecting(selector: object) -> Spec:
    return {"selector": selector, "env": ENV}


def expression(**fields: object) -> Spec:
    return selecting({"matchExpressions": [{"key": "role", **fields}]})


def with_env(**fields: object) -> Spec:
    return {"selector": SELECTOR, "env": [{"name": "A", **fields}]}


def with_source(**fields: object) -> Spec:
    return with_env(valueFrom=fields)


def with_env_from(**fields: object) -> Spec:
    return {"selector": SELECTOR, "envFrom": [fields]}


def with_volume(**fields: object) -> Spec:
    return {
        "selector": SELECTOR,
        "volumes": [{"name": "v", **fields}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }


def with_mount(**fields: object) -> Spec:
    return {
        "selector": SELECTOR,
        "volumes": [{"name": "v", "emptyDir": {}}],
        "volumeMounts": [{"name": "v", "mountPath": "/v", **fields}],
    }


def with_key(**fields: object) -> Spec:
    return with_volume(secret={"secretName": "s", "items": [{"key": "k", "path": "p", **fields}]})


def with_projection(**fields: object) -> Spec:
    return with_volume(projected={"sources": [fields]})


LABELS_OF_63 = "a" * 63
DESIGN_EXAMPLE: Spec = {
    "selector": SELECTOR,
    "env": [
        {"name": "DB_PORT", "value": 6379},
        {"name": "duplicate_key", "value": "FROM_ENV"},
        {"name": "expansion", "value": "$(REPLACE_ME)"},
    ],
    "envFrom": [{"configMapRef": {"name": "etcd-env-config"}}],
    "volumeMounts": [
        {"mountPath": "/cache", "name": "cache-volume"},
        {"mountPath": "/etc/app/config.json", "readOnly": True, "name": "secret-volume"},
    ],
    "volumes": [
        {"name": "cache-volume", "emptyDir": {}},
        {"name": "secret-volume", "secret": {"secretName": "config-details"}},
    ],
}

ACCEPTED_SPECS: dict[str, Spec] = {
    "the example of the design": DESIGN_EXAMPLE,
    "only env": {"selector": SELECTOR, "env": ENV},
    "only envFrom": with_env_from(secretRef={"name": "s"}),
    "only volumes with mounts": with_volume(emptyDir={}),
    "empty lists and nulls beside": {
        "selector": {**SELECTOR, "matchExpressions": None},
        "env": ENV,
        "envFrom": None,
        "volumes": [],
        "volumeMounts": [],
    },
    "label key with a prefix": selecting({"matchLabels": {"app.kubernetes.io/name": "x"}}),
    "label key and value of 63": selecting({"matchLabels": {LABELS_OF_63: LABELS_OF_63}}),
    "empty label value": selecting({"matchLabels": {"role": ""}}),
    "In": expression(operator="In", values=["a", ""]),
    "NotIn": expression(operator="NotIn", values=["a"]),
    "Exists": expression(operator="Exists"),
    "DoesNotExist with empty values": expression(operator="DoesNotExist", values=[]),
    "env name with dots and dashes": {"selector": SELECTOR, "env": [{"name": "-my.env-NAME_1"}]},
    "env name with a leading dot": {"selector": SELECTOR, "env": [{"name": ".a"}]},
    "the same variable twice": {"selector": SELECTOR, "env": [*ENV, {"name": "DB_PORT", "value": "1"}]},
    "value true": with_env(value=True),
    "value 1.5": with_env(value=1.5),
    "value of null": with_env(value=None),
    "fieldRef": with_source(fieldRef={"fieldPath": "metadata.name"}),
    "fieldRef to a label": with_source(fieldRef={"fieldPath": "metadata.labels['app.kubernetes.io/name']"}),
    "fieldRef with empty value": with_env(value="", valueFrom={"fieldRef": {"fieldPath": "status.podIP"}}),
    "fieldRef with null beside": with_source(fieldRef={"fieldPath": "spec.nodeName"}, secretKeyRef=None),
    "value with null valueFrom": with_env(value="x", valueFrom=None),
    "null value with valueFrom": with_env(value=None, valueFrom={"fieldRef": {"fieldPath": "status.podIP"}}),
    "resourceFieldRef": with_source(resourceFieldRef={"resource": "limits.cpu", "divisor": "1m"}),
    "resourceFieldRef of memory": with_source(
        resourceFieldRef={"resource": "requests.memory", "divisor": "1Mi", "containerName": "c"}
    ),
    "divisor that is a number": with_source(resourceFieldRef={"resource": "limits.memory", "divisor": 1}),
    "configMapKeyRef": with_source(configMapKeyRef={"name": "c", "key": "a.b-c_D", "optional": True}),
    "secretKeyRef": with_source(secretKeyRef={"name": "s.x", "key": ".k"}),
    "fileKeyRef": {
        **with_source(fileKeyRef={"volumeName": "v", "path": "a/b", "key": "K"}),
        "volumes": [{"name": "v", "emptyDir": {}}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    },
    "envFrom with prefix": with_env_from(prefix="MY_", configMapRef={"name": "c", "optional": True}),
    "volume without a source": with_volume(),
    "volume with a null source": with_volume(emptyDir=None),
    "hostPath": with_volume(hostPath={"path": "/dev/..data", "type": "CharDevice"}),
    "secret with items": with_key(path="a/..b/c", mode=0o400),
    "configMap": with_volume(configMap={"name": "c", "defaultMode": 0o777, "optional": False}),
    "claim": with_volume(persistentVolumeClaim={"claimName": "c", "readOnly": True}),
    "nfs": with_volume(nfs={"server": "s", "path": "/p"}),
    "csi": with_volume(csi={"driver": "d.example.com", "volumeAttributes": {"a": "b"}}),
    "image": with_volume(image={"reference": "registry.example.com/i:1"}),
    "emptyDir with a size": with_volume(emptyDir={"medium": "Memory", "sizeLimit": "1Gi"}),
    "emptyDir with a plain number": with_volume(emptyDir={"sizeLimit": 1024}),
    "downwardAPI": with_volume(
        downwardAPI={"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}
    ),
    "projected": with_volume(
        projected={
            "sources": [
                {"secret": {"name": "s", "items": [{"key": "k", "path": "p"}]}},
                {"configMap": {"name": "c"}},
                {"serviceAccountToken": {"path": "t", "expirationSeconds": 600}},
                {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            ]
        }
    ),
    "trust bundle": with_projection(clusterTrustBundle={"signerName": "example.com/x", "path": "ca"}),
    "ephemeral": with_volume(
        ephemeral={
            "volumeClaimTemplate": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                    "selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                },
            }
        }
    ),
    "iscsi": with_volume(iscsi={"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:x", "lun": 0}),
    "rbd": with_volume(rbd={"monitors": ["m"], "image": "i"}),
    "fc": with_volume(fc={"targetWWNs": ["w"], "lun": 2}),
    "azureDisk": with_volume(azureDisk={"diskName": "n", "diskURI": "https://example.com/d.vhd"}),
    "scaleIO": with_volume(scaleIO={"gateway": "g", "system": "s", "secretRef": {}, "volumeName": "v"}),
    "flexVolume": with_volume(flexVolume={"driver": "example.com/d", "options": {"a": "b"}}),
    "mount with subPath": with_mount(subPath="a/b"),
    "mount with subPathExpr": with_mount(subPathExpr="$(POD)/x"),
    "mount with all options": with_mount(
        readOnly=True, recursiveReadOnly="IfPossible", mountPropagation="None", subPath=""
    ),
    "one volume mounted at two paths": {
        "selector": SELECTOR,
        "volumes": [{"name": "v"}],
        "volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a/"}],
    },
}

REFUSED_SPECS: dict[str, Refused] = {
    "no selector": Refused({"env": ENV}, "spec.selector", "equired"),
    "empty selector": Refused(selecting({}), "spec.selector", "must not be empty"),
    "selector with empty parts": Refused(
        selecting({"matchLabels": {}, "matchExpressions": []}), "spec.selector", "must not be empty"
    ),
    "selector with null parts": Refused(
        selecting({"matchLabels": None, "matchExpressions": None}), "spec.selector", "must not be empty"
    ),
    "label key with a space": Refused(
        selecting({"matchLabels": {"my role": "x"}}), "spec.selector.matchLabels", "a label key is"
    ),
    "label key of 64": Refused(
        selecting({"matchLabels": {"a" * 64: "x"}}), "spec.selector.matchLabels", "a label key is"
    ),
    "label key with a prefix of 254": Refused(
        selecting({"matchLabels": {"a" * 254 + "/x": "x"}}), "spec.selector.matchLabels", "a label key is"
    ),
    "label key with an upper-case prefix": Refused(
        selecting({"matchLabels": {"Example.com/x": "x"}}), "spec.selector.matchLabels", "a label key is"
    ),
    "label value with a space": Refused(
        selecting({"matchLabels": {"role": "a b"}}), "spec.selector.matchLabels", "a label value is"
    ),
    "label value that is a number": Refused(
        selecting({"matchLabels": {"role": 5}}), "spec.selector.matchLabels", "must be"
    ),
    "label value of null": Refused(
        selecting({"matchLabels": {"role": None}}), "spec.selector", "must not be empty"
    ),
    "expression without key": Refused(
        selecting({"matchExpressions": [{"operator": "Exists"}]}),
        "spec.selector.matchExpressions[0].key",
        "equired",
    ),
    "expression with a bad key": Refused(
        selecting({"matchExpressions": [{"key": "-a", "operator": "Exists"}]}),
        "spec.selector.matchExpressions[0].key",
        "a label key is",
    ),
    "expression without operator": Refused(
        expression(values=["a"]), "spec.selector.matchExpressions[0].operator", "equired"
    ),
    "unknown operator": Refused(
        expression(operator="Gt", values=["1"]), "spec.selector.matchExpressions[0].operator", "upported"
    ),
    "In without values": Refused(
        expression(operator="In"),
        "spec.selector.matchExpressions[0].values",
        "must be specified when operator is In or NotIn",
    ),
    "NotIn with empty values": Refused(
        expression(operator="NotIn", values=[]),
        "spec.selector.matchExpressions[0].values",
        "must be specified when operator is In or NotIn",
    ),
    "Exists with values": Refused(
        expression(operator="Exists", values=["a"]),
        "spec.selector.matchExpressions[0].values",
        "may not be specified when operator is Exists or DoesNotExist",
    ),
    "DoesNotExist with values": Refused(
        expression(operator="DoesNotExist", values=["a"]),
        "spec.selector.matchExpressions[0].values",
        "may not be specified when operator is Exists or DoesNotExist",
    ),
    "expression with a bad value": Refused(
        expression(operator="In", values=["ok", "not ok"]),
        "spec.selector.matchExpressions[0].values[1]",
        "a label value is",
    ),
    "nothing to inject": Refused({"selector": SELECTOR}, "spec", "must specify at least one of env"),
    "empty lists only": Refused(
        {"selector": SELECTOR, "env": [], "envFrom": [], "volumes": [], "volumeMounts": []},
        "spec",
        "must specify at least one of env",
    ),
    "env that is not a list": Refused({"selector": SELECTOR, "env": "A=b"}, "spec.env", "must be"),
    "env without name": Refused(
        {"selector": SELECTOR, "env": [{"value": "x"}]}, "spec.env[0].name", "equired"
    ),
    **{
        f"env called {name!r}": Refused(
            {"selector": SELECTOR, "env": [{"name": name}]}, "spec.env[0].name", "must consist of letters"
        )
        for name in ("1A", "A B", "A=B", ".", "..", "..A", "ä")
    },
    "value that is a mapping": Refused(with_env(value={"a": 1}), "spec.env[0].value", "number or a boolean"),
    "value that is an empty mapping": Refused(with_env(value={}), "spec.env[0].value", "number or a boolean"),
    "value that is a list": Refused(with_env(value=["a"]), "spec.env[0].value", "must"),
    **{
        f"value {value!r} with valueFrom": Refused(
            with_env(value=value, valueFrom={"fieldRef": {"fieldPath": "status.podIP"}}),
            "spec.env[0].valueFrom",
            "may not be specified when value is not empty",
        )
        for value in ("x", 0, 0.5, 7, True, False)
    },
    "empty valueFrom": Refused(with_source(), "spec.env[0].valueFrom", "must specify one of: fieldRef"),
    "two sources": Refused(
        with_source(fieldRef={"fieldPath": "metadata.name"}, secretKeyRef={"name": "s", "key": "k"}),
        "spec.env[0].valueFrom",
        "may not have more than one field specified at a time",
    ),
    "fieldRef without path": Refused(
        with_source(fieldRef={}), "spec.env[0].valueFrom.fieldRef.fieldPath", "equired"
    ),
    "fieldRef to all labels": Refused(
        with_source(fieldRef={"fieldPath": "metadata.labels"}),
        "spec.env[0].valueFrom.fieldRef.fieldPath",
        "env can refer to metadata.name",
    ),
    "fieldRef of another version": Refused(
        with_source(fieldRef={"apiVersion": "v2", "fieldPath": "metadata.name"}),
        "spec.env[0].valueFrom.fieldRef.apiVersion",
        "upported",
    ),
    "unknown resource": Refused(
        with_source(resourceFieldRef={"resource": "cpu"}),
        "spec.env[0].valueFrom.resourceFieldRef.resource",
        "must be limits or requests of cpu",
    ),
    "divisor that is not a quantity": Refused(
        with_source(resourceFieldRef={"resource": "limits.cpu", "divisor": "one"}),
        "spec.env[0].valueFrom.resourceFieldRef.divisor",
        "",
    ),
    "divisor of memory for cpu": Refused(
        with_source(resourceFieldRef={"resource": "limits.cpu", "divisor": "1Mi"}),
        "spec.env[0].valueFrom.resourceFieldRef.divisor",
        "use one of 1m, 1",
    ),
    "divisor of cpu for memory": Refused(
        with_source(resourceFieldRef={"resource": "limits.memory", "divisor": "1m"}),
        "spec.env[0].valueFrom.resourceFieldRef.divisor",
        "use one of 1, 1k",
    ),
    "configMapKeyRef without name": Refused(
        with_source(configMapKeyRef={"key": "k"}), "spec.env[0].valueFrom.configMapKeyRef.name", "equired"
    ),
    "secretKeyRef without key": Refused(
        with_source(secretKeyRef={"name": "s"}), "spec.env[0].valueFrom.secretKeyRef.key", "equired"
    ),
    "secretKeyRef with a bad key": Refused(
        with_source(secretKeyRef={"name": "s", "key": "a/b"}),
        "spec.env[0].valueFrom.secretKeyRef.key",
        "must consist of letters",
    ),
    "envFrom without source": Refused(
        with_env_from(prefix="A"), "spec.envFrom[0]", "must specify one of: configMapRef, secretRef"
    ),
    "envFrom with two sources": Refused(
        with_env_from(configMapRef={"name": "c"}, secretRef={"name": "s"}),
        "spec.envFrom[0]",
        "may not have more than one field specified at a time",
    ),
    "envFrom without name": Refused(
        with_env_from(configMapRef={}), "spec.envFrom[0].configMapRef.name", "equired"
    ),
    "envFrom with a bad name": Refused(
        with_env_from(secretRef={"name": "S_1"}), "spec.envFrom[0].secretRef.name", "must be lower-case"
    ),
    "envFrom with a bad prefix": Refused(
        with_env_from(prefix="1_", secretRef={"name": "s"}),
        "spec.envFrom[0].prefix",
        "must consist of letters",
    ),
    "volume without name": Refused(
        {"selector": SELECTOR, "volumes": [{}], "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        "spec.volumes[0].name",
        "equired",
    ),
    "volume with a bad name": Refused(
        {
            "selector": SELECTOR,
            "volumes": [{"name": "V.1"}],
            "volumeMounts": [{"name": "V.1", "mountPath": "/v"}],
        },
        "spec.volumes[0].name",
        "must be at most 63 lower-case letters",
    ),
    "two volumes of a name": Refused(
        {
            "selector": SELECTOR,
            "volumes": [{"name": "v"}, {"name": "v", "secret": {"secretName": "s"}}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        },
        "spec.volumes[1]",
        "Duplicate value",
    ),
    "volume of two types": Refused(
        with_volume(emptyDir={}, secret={"secretName": "s"}),
        "spec.volumes[0]",
        "may not specify more than 1 volume type",
    ),
    "hostPath with '..'": Refused(
        with_volume(hostPath={"path": "/a/../b"}), "spec.volumes[0].hostPath.path", "must not contain '..'"
    ),
    "hostPath of an unknown type": Refused(
        with_volume(hostPath={"path": "/a", "type": "Folder"}), "spec.volumes[0].hostPath.type", "upported"
    ),
    "secret without name": Refused(with_volume(secret={}), "spec.volumes[0].secret.secretName", "equired"),
    "configMap without name": Refused(with_volume(configMap={}), "spec.volumes[0].configMap.name", "equired"),
    "mode out of range": Refused(with_key(mode=0o1000), "spec.volumes[0].secret.items[0].mode", "511"),
    "item with an absolute path": Refused(
        with_key(path="/p"), "spec.volumes[0].secret.items[0].path", "must be a relative path"
    ),
    "item that leaves the volume": Refused(
        with_key(path="a/../../p"), "spec.volumes[0].secret.items[0].path", "must be a relative path"
    ),
    "item that begins with '..'": Refused(
        with_key(path="..p"), "spec.volumes[0].secret.items[0].path", "must be a relative path"
    ),
    "nfs with a relative path": Refused(
        with_volume(nfs={"server": "s", "path": "p"}), "spec.volumes[0].nfs.path", "must be an absolute path"
    ),
    "claim without name": Refused(
        with_volume(persistentVolumeClaim={}), "spec.volumes[0].persistentVolumeClaim.claimName", "equired"
    ),
    "negative size": Refused(
        with_volume(emptyDir={"sizeLimit": "-1Gi"}),
        "spec.volumes[0].emptyDir.sizeLimit",
        "must not be negative",
    ),
    "downwardAPI file of two sources": Refused(
        with_volume(
            downwardAPI={
                "items": [
                    {
                        "path": "p",
                        "fieldRef": {"fieldPath": "metadata.name"},
                        "resourceFieldRef": {"resource": "limits.cpu", "containerName": "c"},
                    }
                ]
            }
        ),
        "spec.volumes[0].downwardAPI.items[0]",
        "may not have more than one field specified at a time",
    ),
    "downwardAPI resource without container": Refused(
        with_volume(downwardAPI={"items": [{"path": "p", "resourceFieldRef": {"resource": "limits.cpu"}}]}),
        "spec.volumes[0].downwardAPI.items[0].resourceFieldRef.containerName",
        "equired",
    ),
    "projection of two types": Refused(
        with_projection(secret={"name": "s"}, configMap={"name": "c"}),
        "spec.volumes[0].projected.sources[0]",
        "may not specify more than 1 volume type",
    ),
    "token that expires too soon": Refused(
        with_projection(serviceAccountToken={"path": "t", "expirationSeconds": 599}),
        "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds",
        "600",
    ),
    "trust bundle of neither kind": Refused(
        with_projection(clusterTrustBundle={"path": "ca"}),
        "spec.volumes[0].projected.sources[0].clusterTrustBundle",
        "must specify one of: name, signerName",
    ),
    "ephemeral without template": Refused(
        with_volume(ephemeral={}), "spec.volumes[0].ephemeral.volumeClaimTemplate", "equired"
    ),
    "csi with a bad driver": Refused(
        with_volume(csi={"driver": "-d"}), "spec.volumes[0].csi.driver", "must be at most 63 letters"
    ),
    "volume without mount": Refused(
        {**with_volume(), "volumes": [{"name": "v"}, {"name": "alone"}]},
        "spec.volumes",
        "is mounted by no volumeMount of this preset",
    ),
    "volumes without any mount": Refused(
        {"selector": SELECTOR, "env": ENV, "volumes": [{"name": "alone"}]},
        "spec.volumes",
        "is mounted by no volumeMount of this preset",
    ),
    "mount without volume": Refused(
        with_mount(name="other"), "spec.volumeMounts", "names a volume that this preset does not have"
    ),
    "mounts without any volume": Refused(
        {"selector": SELECTOR, "env": ENV, "volumeMounts": [{"name": "other", "mountPath": "/v"}]},
        "spec.volumeMounts",
        "names a volume that this preset does not have",
    ),
    "mount without name": Refused(
        {"selector": SELECTOR, "volumes": [{"name": "v"}], "volumeMounts": [{"mountPath": "/v"}]},
        "spec.volumeMounts[0].name",
        "equired",
    ),
    "mount without path": Refused(
        {"selector": SELECTOR, "volumes": [{"name": "v"}], "volumeMounts": [{"name": "v"}]},
        "spec.volumeMounts[0].mountPath",
        "equired",
    ),
    "two mounts at a path": Refused(
        {
            "selector": SELECTOR,
            "volumes": [{"name": "v"}, {"name": "w"}],
            "volumeMounts": [{"name": "v", "mountPath": "/p"}, {"name": "w", "mountPath": "/p"}],
        },
        "spec.volumeMounts[1]",
        "Duplicate value",
    ),
    "absolute subPath": Refused(
        with_mount(subPath="/a"), "spec.volumeMounts[0].subPath", "must be a relative path"
    ),
    "subPath with '..'": Refused(
        with_mount(subPath="a/.."), "spec.volumeMounts[0].subPath", "must not contain '..'"
    ),
    "subPath and subPathExpr": Refused(
        with_mount(subPath="a", subPathExpr="b"),
        "spec.volumeMounts[0].subPathExpr",
        "subPathExpr and subPath are mutually exclusive",
    ),
    "unknown propagation": Refused(
        with_mount(mountPropagation="Both"), "spec.volumeMounts[0].mountPropagation", "upported"
    ),
    "recursively read-only but writable": Refused(
        with_mount(recursiveReadOnly="Enabled"),
        "spec.volumeMounts[0].recursiveReadOnly",
        "may only be specified when readOnly is true",
    ),
}

ACCEPTED = [pytest.param(spec, id=name) for name, spec in ACCEPTED_SPECS.items()]
REFUSED = [pytest.param(case, id=name) for name, case in REFUSED_SPECS.items()]
