"""Which Helm the commands of authors run: the operator's, or that of the local control plane."""

import contextlib
import logging
import pathlib
from collections.abc import Mapping
from typing import Final

from addon_operator.devcluster import errors as devcluster_errors
from addon_operator.devcluster import locations
from addon_operator.devcluster.binaries import binaries, components
from addon_operator.helm import binary
from addon_operator.process.children import children
from addon_operator.settings import settings_loading

_log = logging.getLogger(__name__)
_HELM_SETTING: Final = "helm_bin_path"


async def find_helm(
    environ: Mapping[str, str], programs: children.Children, named: object = None
) -> binary.HelmBinary:
    """Find the operator's, which is ``named`` or in the settings, or the one of the local control plane.

    Warns of one that the operator refuses. Raises :class:`.HelmBinaryError` if there is neither.
    """
    found = await _find(environ, programs, named)
    if found.danger:
        _log.warning("%s; the operator does not start with it", found.danger)
    return found


async def _find(environ: Mapping[str, str], programs: children.Children, named: object) -> binary.HelmBinary:
    configured = named or settings_loading.some((_HELM_SETTING,), {}, environ).values[_HELM_SETTING]
    try:
        return await binary.find(str(configured) if configured else None, environ, programs)
    except binary.HelmBinaryError as error:
        own = None if configured else _of_devcluster(environ)
        if own is None and not configured:
            said = f"{error}, or let 'addon-operator devcluster build' make one for this machine"
            raise binary.HelmBinaryError(said) from error
        if own is None:
            raise
        return await binary.find(str(own), environ, programs)


def _of_devcluster(environ: Mapping[str, str]) -> pathlib.Path | None:
    """Return the helm of the local control plane; ``None`` if there is none yet."""
    with contextlib.suppress(devcluster_errors.DevClusterError):
        where, component = locations.locate(environ), components.CONTROL_PLANE
        pin = components.read_pins(where.pins / component.name, component.module)
        path = binaries.directory_of(where, component, pin) / components.HELM
        return path if path.exists() else None
    return None
