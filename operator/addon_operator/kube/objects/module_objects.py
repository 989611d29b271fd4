"""Module objects, where they are and how somebody annotates one."""

from collections.abc import Mapping
from typing import Final

from addon_operator.kernel import names
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.kube.objects import suspension

API_VERSION: Final = "addon-operator.io/v1alpha1"
KIND: Final = "Module"
PLURAL: Final = "modules"


def path_of(namespace: str, name: str | None = None) -> str:
    """Return the path of a Module, or of all those of a namespace."""
    return paths.of(API_VERSION, PLURAL, namespace=namespace, name=name)


async def suspended(kube: client.KubeClient, namespace: str, now: float) -> frozenset[names.ModuleName]:
    """Return the modules that annotations suspend now; none without Module objects.

    Raises what the client raises otherwise.
    """
    try:
        listed = await kube.list_all(path_of(namespace), metadata_only=True)
    except api_errors.NotServed:
        return frozenset()
    found = {
        each["metadata"]["name"]: suspension.read(each["metadata"].get("annotations") or {}, now)
        for each in listed.items
    }
    return frozenset(
        names.ModuleName(name)
        for name, each in found.items()
        if each is not None and (each.until is None or each.until > now)
    )


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
