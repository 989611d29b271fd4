"""The CustomResourceDefinition of PodPresets, applied when the operator starts."""

import asyncio
import pathlib
from typing import Any, Final

import yaml

from addon_operator.admission import reporting
from addon_operator.kernel import errors as kernel_errors
from addon_operator.kube import client, errors, paths

_FILE: Final = "podpresets.yaml"
_API_VERSION: Final = "apiextensions.k8s.io/v1"
_PLURAL: Final = "customresourcedefinitions"
_PACKAGE: Final = pathlib.Path(__file__).resolve().parents[1]


def file(package: pathlib.Path = _PACKAGE) -> pathlib.Path:
    """Where the manifest is: in an installed package or in a checkout.

    Raises :class:`ConfigurationError` when it is in neither.
    """
    candidates = (package / "crds" / _FILE, package.parents[1] / "crds" / _FILE)
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        raise kernel_errors.ConfigurationError(
            f"the manifest of PodPresets is missing ({candidates[0]}): install the package anew"
        )
    return found


async def apply(kube: client.KubeClient, log: reporting.Log) -> None:
    """Bring the definition to what this version needs; without the right to do so, warn.

    Raises :class:`addon_operator.kube.errors.KubernetesError` for anything else that goes wrong.
    """
    body = await asyncio.to_thread(_read)
    path = paths.of(_API_VERSION, _PLURAL, name=body["metadata"]["name"])
    try:
        await kube.apply(path, body, force=True)
    except errors.Forbidden as error:
        log.warning(f"the CustomResourceDefinition of PodPresets is not kept up to date: {error}")


def _read() -> dict[str, Any]:
    with file().open(encoding="utf-8") as manifest:
        body: dict[str, Any] = yaml.load(manifest, Loader=yaml.CSafeLoader)
    return body
