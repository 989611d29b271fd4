"""Module objects, where they are and how somebody annotates one."""

from collections.abc import Mapping
from typing import Final

from addon_operator.kube import paths
from addon_operator.kube.client import client

API_VERSION: Final = "addon-operator.io/v1alpha1"
KIND: Final = "Module"
PLURAL: Final = "modules"


def path_of(namespace: str, name: str | None = None) -> str:
    """Return the path of a Module, or of all those of a namespace."""
    return paths.of(API_VERSION, PLURAL, namespace=namespace, name=name)


async def annotate(
    kube: client.KubeClient, namespace: str, name: str, annotations: Mapping[str, str | None]
) -> client.Object:
    """Set these annotations of a Module, and remove those that are ``None``.

    Raises what the client raises.
    """
    return await kube.patch(path_of(namespace, name), {"metadata": {"annotations": dict(annotations)}})


async def remove_annotations(
    kube: client.KubeClient, namespace: str, name: str, seen: Mapping[str, str]
) -> None:
    """Remove annotations that still say what was seen.

    Raises ``Invalid`` if one of them says something else by now, and what the client raises otherwise.
    """
    places = {f"/metadata/annotations/{key.replace('~', '~0').replace('/', '~1')}": seen[key] for key in seen}
    tests = [{"op": "test", "path": place, "value": value} for place, value in places.items()]
    removals = [{"op": "remove", "path": place} for place in places]
    await kube.patch(path_of(namespace, name), [*tests, *removals], client.PatchType.JSON)
