"""The types of volumes, by name."""

from typing import Final

SOURCE_NAMES: Final = frozenset(
    (
        *("awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "configMap", "csi"),
        *("downwardAPI", "emptyDir", "ephemeral", "fc", "flexVolume", "flocker", "gcePersistentDisk"),
        *("gitRepo", "glusterfs", "hostPath", "image", "iscsi", "nfs", "persistentVolumeClaim"),
        *("photonPersistentDisk", "portworxVolume", "projected", "quobyte", "rbd", "scaleIO", "secret"),
        *("storageos", "vsphereVolume"),
    )
)
"""Names of all volume types."""
NO_SOURCE: Final = "emptyDir"
"""What a volume without a source is."""
USUAL: Final = (
    *("configMap", "secret", "emptyDir", "projected", "downwardAPI"),
    *("persistentVolumeClaim", "csi", "ephemeral"),
)
"""What presets may have unless a setting says otherwise: what needs no trust of the node or other servers."""
