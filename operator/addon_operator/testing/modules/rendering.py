"""What a module's chart renders to, with Helm itself, over given objects."""

from typing import Any, Final

import msgspec

from addon_operator.engine.modules import module_releases
from addon_operator.helm import capabilities, command
from addon_operator.helm.releases import rendering
from addon_operator.helm.repositories import chart_access, chart_cache, chart_pull
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors
from addon_operator.kube.discovery import discovery
from addon_operator.loading import module_files
from addon_operator.modules import model
from addon_operator.settings import settings_loading
from addon_operator.testing.given import api
from addon_operator.testing.modules import manifests, module_values, runtime
from addon_operator.values import store

_STEP_SECONDS = 30.0
_OF_REPOSITORIES: Final = ("chart_credentials", "chart_ca_file")
"""Settings of the operator that count for pulls in tests, too."""


class Rendering(msgspec.Struct, frozen=True):
    """Renders charts of the modules of one directory."""

    runtime: runtime.Runtime
    loaded: module_files.LoadedModules

    async def render(
        self, module: model.Module, given: store.ValuesStore, cluster: api.GivenApi, *, is_upgrade: bool
    ) -> manifests.Manifests:
        """Render, as the operator does for an install or an upgrade.

        Raises :class:`.AddonOperatorError` for whatever the operator would fail with.
        """
        if not module.has_chart:
            raise errors.ModuleError(module.name, "it has no chart, so there is nothing to render")
        helm = await self.runtime.helm()
        helm.places.assign(each.module for each in self.loaded.modules)
        await self._pulled(module, helm)
        module_values.check_for_helm(given, module)
        renderer = rendering.ChartRenderer(helm, _capabilities(cluster), _STEP_SECONDS, clocks.SystemClock())
        request = module_releases.request_of(given, module)
        inputs = await renderer.inputs(request)
        if inputs.looks_up:
            await self.runtime.serve(cluster)
        async with renderer.files(request, inputs) as files:
            text = await renderer.render(request, inputs, files, is_upgrade=is_upgrade)
        return manifests.rendered(text)

    async def _pulled(self, module: model.Module, helm: command.Helm) -> None:
        if module.stock is None or module.stock.reference is None:
            return
        environ = self.runtime.environ
        settings: Any = settings_loading.some(_OF_REPOSITORIES, {}, environ).values
        access = chart_access.Access(*map(settings.get, _OF_REPOSITORIES))
        puller = chart_pull.ChartPuller(helm, access, environ, self.runtime.worker.read_index)
        await chart_cache.ChartCache(self.loaded.charts, puller, _ignore).ensure(module, None)


def _capabilities(cluster: api.GivenApi) -> capabilities.CapabilityReader:
    async def read() -> capabilities.Capabilities:
        async with api.client_of(cluster) as kube:
            served = await discovery.Catalog(kube, clocks.SystemClock()).look()
        return capabilities.Capabilities(served.version, served.api_versions)

    return capabilities.CapabilityReader(read, clocks.SystemClock())


def _ignore(_what: str) -> None:
    """Ignore it: the operator logs which charts come and go."""
