"""The release manager as the settings want it."""

import contextlib
import pathlib
from collections.abc import Mapping

import structlog

from addon_operator.helm import binary, capabilities, command, setup
from addon_operator.helm.releases import live_objects, release_types, releases
from addon_operator.kernel import clock, names
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.process.children import children
from addon_operator.settings import settings as settings_module


def release_manager(
    settings: settings_module.Settings,
    helm: binary.HelmBinary,
    kube: client.KubeClient,
    workspace: pathlib.Path,
    environ: Mapping[str, str],
    run_child: children.RunChild,
    log: structlog.typing.FilteringBoundLogger,
) -> contextlib.AbstractAsyncContextManager[releases.ReleaseManager]:
    """The releases of the operator's namespace, for as long as the context lasts."""

    async def read_capabilities() -> capabilities.Capabilities:
        found = await discovery.read(kube)
        return capabilities.Capabilities(found.version, found.api_versions)

    def warn(module: names.ModuleName, text: str) -> None:
        log.warning(text, module=module, source="helm")

    access = kube.access
    around = setup.Surroundings(
        environ={**environ, "HELM_DRIVER": settings.helm_driver},
        tmp_dir=workspace,
        run_child=run_child,
        records=kube,
        capabilities=read_capabilities,
        live=live_objects.LiveObjects(
            kube,
            discovery.Catalog(kube, clock.SystemClock()),
            settings.namespace,
            settings.crd_extra_labels,
        ),
        clock=clock.SystemClock(),
        on_warning=warn,
    )
    return setup.release_manager(
        helm,
        command.Target(settings.namespace, access.kubeconfig, access.context, access.server_override),
        release_types.Options(
            settings.helm_history_max,
            settings.helm_timeout,
            settings.crd_extra_labels,
            release_types.TakeOwnership(settings.take_ownership),
        ),
        around,
    )
