"""The CustomResourceDefinitions of the operator itself, applied when it starts."""

import asyncio
import pathlib
from typing import Any, Final

import yaml

from addon_operator.kernel import errors as kernel_errors
from addon_operator.kube.client import client, paths

PODPRESETS: Final = "podpresets.yaml"
MODULES: Final = "modules.yaml"

_API_VERSION: Final = "apiextensions.k8s.io/v1"
_PLURAL: Final = "customresourcedefinitions"
_PACKAGE: Final = pathlib.Path(__file__).resolve().parents[2]


def file(name: str, package: pathlib.Path = _PACKAGE) -> pathlib.Path:
    """Where the manifest is: in an installed package or in a checkout.

    Raises :class:`ConfigurationError` when it is in neither.
    """
    candidates = (package / "crds" / name, package.parents[1] / "crds" / name)
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        raise kernel_errors.ConfigurationError(
            f"the manifest {name} is missing ({candidates[0]}): install the package anew"
        )
    return found


async def apply(kube: client.KubeClient, name: str) -> None:
    """Bring the definition to what this version needs.

    Raises :class:`.KubernetesError`: ``Forbidden`` without the right to do so.
    """
    body = await asyncio.to_thread(_read, file(name))
    path = paths.of(_API_VERSION, _PLURAL, name=body["metadata"]["name"])
    await kube.apply(path, body, force=True)


def _read(path: pathlib.Path) -> dict[str, Any]:
    with path.open(encoding="utf-8") as manifest:
        body: dict[str, Any] = yaml.load(manifest, Loader=yaml.CSafeLoader)
    return body
