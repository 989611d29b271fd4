"""The shape of what a PodPreset adds to a pod: ``Volume`` with all its sources.

Source: the core/v1 API of Kubernetes 1.37; "pointer" and "default" are those of its Go types.
"""

from typing import Any, Final

from addon_operator.podpreset import core_types, formats, label_selectors
from addon_operator.podpreset.core_types import (
    BOOLEAN,
    OPTIONAL,
    REQUIRED_TEXT,
    RESOURCE_FIELD_SELECTOR,
    TEXT,
    TEXTS,
    named,
    object_field_selector,
    reference,
)
from addon_operator.podpreset.schema import Field, Kind, ListOf, MapOf, Struct

_MODE: Final = Field(Kind.INTEGER, pointer=True, within=(0, 0o777))
_DEFAULT_MODE: Final = Field(Kind.INTEGER, pointer=True, default=0o644, within=(0, 0o777))
_USER: Final = Field(Kind.INTEGER, pointer=True)
_PARTITION: Final = Field(Kind.INTEGER, within=(0, 255))
_TEXT_MAP: Final = Field(MapOf(Kind.TEXT))
_SECRET_REFERENCE: Final = reference(Struct({"name": TEXT}))
_REQUIRED_SECRET_REFERENCE: Final = reference(Struct({"name": REQUIRED_TEXT}))

_KEY_TO_PATH: Final = Struct(
    {"key": REQUIRED_TEXT, "path": named(formats.FILE_PATH), "mode": _MODE, "user": _USER}
)
_DOWNWARD_API_FILE: Final = Struct(
    {
        "path": named(formats.FILE_PATH),
        "fieldRef": reference(object_field_selector(formats.VOLUME_FIELD_PATH)),
        "resourceFieldRef": reference(
            Struct(
                {**RESOURCE_FIELD_SELECTOR.fields, "containerName": REQUIRED_TEXT},
                rules=RESOURCE_FIELD_SELECTOR.rules,
            )
        ),
        "mode": _MODE,
        "user": _USER,
    },
    rules=(core_types.exactly_one("fieldRef", "resourceFieldRef"),),
)
_KEYS: Final = Field(ListOf(_KEY_TO_PATH))
_FILES: Final = Field(ListOf(_DOWNWARD_API_FILE))

_PROJECTIONS: Final = {
    "secret": Struct({"name": REQUIRED_TEXT, "items": _KEYS, "optional": OPTIONAL}),
    "downwardAPI": Struct({"items": _FILES}),
    "configMap": Struct({"name": REQUIRED_TEXT, "items": _KEYS, "optional": OPTIONAL}),
    "serviceAccountToken": Struct(
        {
            "audience": TEXT,
            "expirationSeconds": Field(Kind.INTEGER, pointer=True, default=3600, within=(600, 2**32)),
            "path": named(formats.FILE_PATH),
            "user": _USER,
        }
    ),
    "clusterTrustBundle": Struct(
        {
            "name": Field(Kind.TEXT, pointer=True),
            "signerName": Field(Kind.TEXT, pointer=True),
            "labelSelector": reference(label_selectors.LABEL_SELECTOR),
            "optional": OPTIONAL,
            "path": named(formats.FILE_PATH),
            "user": _USER,
        },
        rules=(core_types.exactly_one("name", "signerName"),),
    ),
    "podCertificate": Struct(
        {
            "signerName": REQUIRED_TEXT,
            "keyType": Field(
                Kind.TEXT,
                required=True,
                choices=("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"),
            ),
            "maxExpirationSeconds": Field(Kind.INTEGER, pointer=True, within=(3600, 7862400)),
            "credentialBundlePath": named(formats.FILE_PATH, required=False),
            "keyPath": named(formats.FILE_PATH, required=False),
            "certificateChainPath": named(formats.FILE_PATH, required=False),
            "userAnnotations": _TEXT_MAP,
            "user": _USER,
        },
        rules=(core_types.at_least_one("credentialBundlePath", "keyPath", "certificateChainPath"),),
    ),
}
_PROJECTION: Final = Struct(
    {name: reference(shape) for name, shape in _PROJECTIONS.items()},
    rules=(core_types.one_volume_type(tuple(_PROJECTIONS)),),
)

_OBJECT_REFERENCE_FIELDS: Final = {
    "apiGroup": Field(Kind.TEXT, pointer=True),
    "kind": REQUIRED_TEXT,
    "name": REQUIRED_TEXT,
}
_QUANTITIES: Final = Field(MapOf(Kind.QUANTITY))
_CLAIM_TEMPLATE: Final = Struct(
    {
        "metadata": Field(Struct({"labels": _TEXT_MAP, "annotations": _TEXT_MAP})),
        "spec": Field(
            Struct(
                {
                    "accessModes": Field(ListOf(Kind.TEXT), required=True),
                    "selector": reference(label_selectors.LABEL_SELECTOR),
                    "resources": Field(
                        Struct({"limits": _QUANTITIES, "requests": _QUANTITIES}), required=True
                    ),
                    "volumeName": TEXT,
                    "storageClassName": Field(Kind.TEXT, pointer=True),
                    "volumeMode": Field(
                        Kind.TEXT, pointer=True, default="Filesystem", choices=("Filesystem", "Block")
                    ),
                    "dataSource": reference(Struct(_OBJECT_REFERENCE_FIELDS)),
                    "dataSourceRef": reference(
                        Struct({**_OBJECT_REFERENCE_FIELDS, "namespace": Field(Kind.TEXT, pointer=True)})
                    ),
                    "volumeAttributesClassName": Field(Kind.TEXT, pointer=True),
                }
            ),
            required=True,
        ),
    }
)


def _complete_image(source: dict[str, Any]) -> None:
    """Pull always what is called ``latest``, like the API server."""
    if "pullPolicy" in source or not isinstance(source.get("reference", ""), str):
        return
    name, _, digest = source.get("reference", "").partition("@")
    _, _, tag = name.rpartition("/")[2].partition(":")
    source["pullPolicy"] = "Always" if (tag or (digest and "-") or "latest") == "latest" else "IfNotPresent"


_HOST_PATH_TYPES: Final = (
    *("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"),
)

_SOURCES: Final = {
    "hostPath": Struct(
        {
            "path": named(formats.NO_BACKSTEPS),
            "type": Field(Kind.TEXT, pointer=True, default="", choices=_HOST_PATH_TYPES),
        }
    ),
    "emptyDir": Struct(
        {
            "medium": TEXT,
            "sizeLimit": Field(Kind.QUANTITY, pointer=True, format=formats.NOT_NEGATIVE),
            "mode": _MODE,
        }
    ),
    "gcePersistentDisk": Struct(
        {"pdName": REQUIRED_TEXT, "fsType": TEXT, "partition": _PARTITION, "readOnly": BOOLEAN}
    ),
    "awsElasticBlockStore": Struct(
        {"volumeID": REQUIRED_TEXT, "fsType": TEXT, "partition": _PARTITION, "readOnly": BOOLEAN}
    ),
    "gitRepo": Struct(
        {
            "repository": REQUIRED_TEXT,
            "revision": TEXT,
            "directory": named(formats.RELATIVE_PATH, required=False),
        }
    ),
    "secret": Struct(
        {
            "secretName": REQUIRED_TEXT,
            "items": _KEYS,
            "defaultMode": _DEFAULT_MODE,
            "optional": OPTIONAL,
            "defaultUser": _USER,
        }
    ),
    "nfs": Struct({"server": REQUIRED_TEXT, "path": named(formats.ABSOLUTE_PATH), "readOnly": BOOLEAN}),
    "iscsi": Struct(
        {
            "targetPortal": REQUIRED_TEXT,
            "iqn": REQUIRED_TEXT,
            "lun": Field(Kind.INTEGER, within=(0, 255)),
            "iscsiInterface": Field(Kind.TEXT, default="default"),
            "fsType": TEXT,
            "readOnly": BOOLEAN,
            "portals": TEXTS,
            "chapAuthDiscovery": BOOLEAN,
            "chapAuthSession": BOOLEAN,
            "secretRef": _SECRET_REFERENCE,
            "initiatorName": Field(Kind.TEXT, pointer=True),
        }
    ),
    "glusterfs": Struct({"endpoints": REQUIRED_TEXT, "path": REQUIRED_TEXT, "readOnly": BOOLEAN}),
    "persistentVolumeClaim": Struct({"claimName": REQUIRED_TEXT, "readOnly": BOOLEAN}),
    "rbd": Struct(
        {
            "monitors": Field(ListOf(Kind.TEXT), required=True),
            "image": REQUIRED_TEXT,
            "fsType": TEXT,
            "pool": Field(Kind.TEXT, default="rbd"),
            "user": Field(Kind.TEXT, default="admin"),
            "keyring": Field(Kind.TEXT, default="/etc/ceph/keyring"),
            "secretRef": _SECRET_REFERENCE,
            "readOnly": BOOLEAN,
        }
    ),
    "flexVolume": Struct(
        {
            "driver": REQUIRED_TEXT,
            "fsType": TEXT,
            "secretRef": _SECRET_REFERENCE,
            "readOnly": BOOLEAN,
            "options": _TEXT_MAP,
        }
    ),
    "cinder": Struct(
        {
            "volumeID": REQUIRED_TEXT,
            "fsType": TEXT,
            "readOnly": BOOLEAN,
            "secretRef": _REQUIRED_SECRET_REFERENCE,
        }
    ),
    "cephfs": Struct(
        {
            "monitors": Field(ListOf(Kind.TEXT), required=True),
            "path": TEXT,
            "user": TEXT,
            "secretFile": TEXT,
            "secretRef": _SECRET_REFERENCE,
            "readOnly": BOOLEAN,
        }
    ),
    "flocker": Struct(
        {"datasetName": TEXT, "datasetUUID": TEXT},
        rules=(core_types.exactly_one("datasetName", "datasetUUID"),),
    ),
    "downwardAPI": Struct({"items": _FILES, "defaultMode": _DEFAULT_MODE, "defaultUser": _USER}),
    "fc": Struct(
        {
            "targetWWNs": TEXTS,
            "lun": Field(Kind.INTEGER, pointer=True, within=(0, 255)),
            "fsType": TEXT,
            "readOnly": BOOLEAN,
            "wwids": TEXTS,
        },
        rules=(core_types.exactly_one("targetWWNs", "wwids"),),
    ),
    "azureFile": Struct({"secretName": REQUIRED_TEXT, "shareName": REQUIRED_TEXT, "readOnly": BOOLEAN}),
    "configMap": Struct(
        {
            "name": REQUIRED_TEXT,
            "items": _KEYS,
            "defaultMode": _DEFAULT_MODE,
            "optional": OPTIONAL,
            "defaultUser": _USER,
        }
    ),
    "vsphereVolume": Struct(
        {"volumePath": REQUIRED_TEXT, "fsType": TEXT, "storagePolicyName": TEXT, "storagePolicyID": TEXT}
    ),
    "quobyte": Struct(
        {
            "registry": REQUIRED_TEXT,
            "volume": REQUIRED_TEXT,
            "readOnly": BOOLEAN,
            "user": TEXT,
            "group": TEXT,
            "tenant": TEXT,
        }
    ),
    "azureDisk": Struct(
        {
            "diskName": REQUIRED_TEXT,
            "diskURI": REQUIRED_TEXT,
            "cachingMode": Field(
                Kind.TEXT, pointer=True, default="ReadWrite", choices=("None", "ReadOnly", "ReadWrite")
            ),
            "fsType": Field(Kind.TEXT, pointer=True, default="ext4"),
            "readOnly": Field(Kind.BOOLEAN, pointer=True, default=False),
            "kind": Field(
                Kind.TEXT, pointer=True, default="Shared", choices=("Shared", "Dedicated", "Managed")
            ),
        }
    ),
    "photonPersistentDisk": Struct({"pdID": REQUIRED_TEXT, "fsType": TEXT}),
    "projected": Struct(
        {"sources": Field(ListOf(_PROJECTION)), "defaultMode": _DEFAULT_MODE, "defaultUser": _USER}
    ),
    "portworxVolume": Struct({"volumeID": REQUIRED_TEXT, "fsType": TEXT, "readOnly": BOOLEAN}),
    "scaleIO": Struct(
        {
            "gateway": REQUIRED_TEXT,
            "system": REQUIRED_TEXT,
            "secretRef": Field(Struct({"name": TEXT}), required=True, pointer=True),
            "sslEnabled": BOOLEAN,
            "protectionDomain": TEXT,
            "storagePool": TEXT,
            "storageMode": Field(Kind.TEXT, default="ThinProvisioned"),
            "volumeName": REQUIRED_TEXT,
            "fsType": Field(Kind.TEXT, default="xfs"),
            "readOnly": BOOLEAN,
        }
    ),
    "storageos": Struct(
        {
            "volumeName": named(formats.DNS_LABEL),
            "volumeNamespace": TEXT,
            "fsType": TEXT,
            "readOnly": BOOLEAN,
            "secretRef": _REQUIRED_SECRET_REFERENCE,
        }
    ),
    "csi": Struct(
        {
            "driver": named(formats.DRIVER_NAME),
            "readOnly": OPTIONAL,
            "fsType": Field(Kind.TEXT, pointer=True),
            "volumeAttributes": _TEXT_MAP,
            "nodePublishSecretRef": _REQUIRED_SECRET_REFERENCE,
        }
    ),
    "ephemeral": Struct({"volumeClaimTemplate": Field(_CLAIM_TEMPLATE, required=True, pointer=True)}),
    "image": Struct(
        {
            "reference": REQUIRED_TEXT,
            "pullPolicy": Field(Kind.TEXT, choices=("", "Always", "IfNotPresent", "Never")),
        },
        complete=_complete_image,
    ),
}
SOURCE_NAMES: Final = frozenset(_SOURCES)
"""Names of all volume types."""
NO_SOURCE: Final = "emptyDir"
"""What a volume without a source is."""
USUAL: Final = (
    *("configMap", "secret", "emptyDir", "projected", "downwardAPI"),
    *("persistentVolumeClaim", "csi", "ephemeral"),
)
"""What presets may have unless a setting says otherwise: what needs no trust of the node or other servers."""


def _complete_volume(volume: dict[str, Any]) -> None:
    """A volume without a source is an empty directory."""
    if volume.keys() <= {"name"}:
        volume[NO_SOURCE] = {}


VOLUME: Final = Struct(
    {"name": named(formats.DNS_LABEL), **{name: reference(shape) for name, shape in _SOURCES.items()}},
    rules=(core_types.one_volume_type(tuple(_SOURCES)),),
    complete=_complete_volume,
)
