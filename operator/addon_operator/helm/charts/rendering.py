"""What a module's chart renders to: its inputs, the files that Helm reads, and the call itself."""

import asyncio
import contextlib
import dataclasses
import pathlib
import tempfile
from collections.abc import AsyncIterator

from addon_operator.documents import manifest_diff
from addon_operator.helm import capabilities, command, helm_errors, template
from addon_operator.helm.charts import chart, chart_files, inputs
from addon_operator.helm.releases import live_objects, observed_releases, release_records, release_types
from addon_operator.kernel import clock, json_types
from addon_operator.modules import release


@dataclasses.dataclass(frozen=True, slots=True)
class Tools:
    """What all work on releases is done with."""

    helm: command.Helm
    observed: observed_releases.ObservedReleases
    files: chart_files.ChartFilesReader
    capabilities: capabilities.CapabilityReader
    options: release_types.Options
    live: live_objects.LiveObjects
    clock: clock.Clock
    on_warning: command.WarningHandler


@dataclasses.dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that the manifest is made from."""

    chart: chart_files.ChartFiles
    values: bytes
    cluster: capabilities.Capabilities | None
    """Only if the chart may see it."""
    checksum: release.Checksum

    def rendered_to(self, manifest: release.Checksum) -> release.Rendered:
        """What is saved with a revision of that manifest."""
        return release.Rendered(self.checksum, manifest, self.chart.checksum)


@dataclasses.dataclass(frozen=True, slots=True)
class Files:
    """What Helm reads."""

    chart: pathlib.Path
    values: pathlib.Path


class Rendering:
    """Renders the chart of one request."""

    def __init__(self, tools: Tools, request: release_types.ReleaseRequest) -> None:
        self._tools = tools
        self._request = request
        self.call = command.Call(request.module, request.redact, request.directory, request.values)
        """For whom Helm runs."""

    async def inputs(self) -> Inputs:
        """Read what the manifest depends on; no process is started.

        Raises :class:`helm_errors.ChartError`, and the errors of the API client.
        """
        found = await asyncio.to_thread(self._tools.files.read, self._request.module, self._request.directory)
        values = inputs.encode_values(self._request.values)
        is_seen = inputs.sees_capabilities(found, values)
        cluster = await self._tools.capabilities.now() if is_seen else None
        version = self._tools.helm.binary.version
        return Inputs(found, values, cluster, inputs.checksum(found, values, version, cluster))

    def state(
        self, given: Inputs, record: release_records.Record | None, *, applied: bool = False
    ) -> release.ReleaseState:
        """What the decisions about the release depend on."""
        return release.ReleaseState(
            revision=record.revision if record else None,
            inputs=given.checksum,
            chart=given.chart.checksum,
            rendered=self._tools.observed.rendered(record),
            absent=self._request.absent,
            applied=applied,
        )

    @contextlib.asynccontextmanager
    async def files(self, given: Inputs) -> AsyncIterator[Files]:
        """The values and the chart in a directory that only the operator can read, gone afterwards."""
        self._tools.helm.workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f"{self._request.module}-", dir=self._tools.helm.workspace, ignore_cleanup_errors=True
        ) as private:
            yield await asyncio.to_thread(self._write_files, given, pathlib.Path(private))

    async def render(self, given: Inputs, files: Files, *, is_upgrade: bool = True) -> str:
        """The manifest, as an upgrade or as the first install; raises :class:`helm_errors.HelmError`."""
        request = template.TemplateRequest(
            chart=files.chart,
            values=files.values,
            capabilities=given.cluster or await self._tools.capabilities.recent(),
            with_api_versions=given.cluster is not None,
            with_lookup=inputs.looks_up(given.chart, given.values),
            timeout=command.time_limit(self._tools.options.timeout),
            is_upgrade=is_upgrade,
        )
        rendered = await template.template(self._tools.helm, self.call, request)
        return rendered.decode(errors="replace")

    async def checksum(self, given: Inputs, files: Files, manifest: str) -> release.Checksum:
        """The checksum of what the chart rendered to.

        It is rendered once more if names of Helm's hooks may be random; raises
        :class:`helm_errors.HelmError`.
        """
        again = None
        if inputs.is_random(given.chart, given.values) and manifest_diff.may_have_hooks(manifest):
            again = await self.render(given, files)
        return await asyncio.to_thread(template.checksum, manifest, again)

    @staticmethod
    def varies(given: Inputs) -> bool:
        """Whether the chart may render to something else after a call of Helm than before it."""
        return inputs.varies(given.chart, given.values)

    async def is_applied(self, record: release_records.Record | None, manifest: str) -> bool:
        """Whether a revision that carries no checksums of ours asks for the same as the manifest."""
        if record is None or record.revision.status != release.DEPLOYED:
            return False
        if self._tools.observed.rendered(record) or record.revision.saved:
            return False
        try:
            applied = await self._tools.observed.manifest(record, with_hooks=True)
        except helm_errors.ReleaseRecordError:
            return False
        return await asyncio.to_thread(self._same, applied, manifest)

    def _same(self, applied: str, rendered: str) -> bool:
        return manifest_diff.same(
            manifest_diff.parse(applied),
            manifest_diff.parse(rendered),
            extra_labels=self._tools.options.go_operator_labels,
            namespace=self._tools.helm.namespace,
        )

    def _write_files(self, given: Inputs, private: pathlib.Path) -> Files:
        module, directory = self._request.module, self._request.directory
        below = self._own_values()
        encoded = inputs.encode_values(inputs.hiding(below, self._request.values)) if below else given.values
        try:
            values = inputs.write_values(encoded, private)
        except OSError as error:
            raise helm_errors.HelmError(
                module, f"cannot write the values for Helm to {private}: {error.strerror}; see to TMP_DIR"
            ) from error
        return Files(chart.prepare(module, directory, private), values)

    def _own_values(self) -> json_types.JsonObject:
        try:
            return chart.own_values(self._request.directory)
        except OSError as error:
            raise helm_errors.ChartError(
                self._request.module, f"cannot read {error.filename}: {error.strerror}"
            ) from error
