"""One look at one module's release: observe, decide, act."""

import asyncio
import collections
import contextlib
import dataclasses
import pathlib
import tempfile
from collections.abc import AsyncIterator, Iterator
from typing import Final

from addon_operator.helm import (
    capabilities,
    chart,
    chart_files,
    command,
    errors,
    inputs,
    observed_releases,
    release_records,
    release_types,
    template,
    uninstall,
    upgrade,
)
from addon_operator.kernel import clock
from addon_operator.kube import errors as kube_errors
from addon_operator.modules import release

_RECOVERIES: Final = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Tools:
    """What all runs work with."""

    helm: command.Helm
    observed: observed_releases.ObservedReleases
    files: chart_files.ChartFilesReader
    capabilities: capabilities.CapabilityReader
    options: release_types.Options
    clock: clock.Clock
    on_warning: command.WarningHandler


@dataclasses.dataclass(frozen=True, slots=True)
class _Inputs:
    chart: chart_files.ChartFiles
    values: bytes
    cluster: capabilities.Capabilities | None
    """Only if the chart may see it."""
    checksum: release.Checksum

    def rendered_to(self, manifest: release.Checksum) -> release.Rendered:
        return release.Rendered(self.checksum, manifest, self.chart.checksum)


@dataclasses.dataclass(frozen=True, slots=True)
class _Files:
    """What Helm reads."""

    chart: pathlib.Path
    values: pathlib.Path


class ReleaseRun:
    """Brings one release to what is asked for; used once."""

    def __init__(self, tools: Tools, request: release_types.ReleaseRequest) -> None:
        self._tools = tools
        self._request = request
        self._call = command.Call(request.module, request.redact, request.directory)
        self._record: release_records.Record | None = None
        self._recovered: list[str] = []
        self._seconds: dict[release_types.Operation, float] = collections.defaultdict(float)

    async def run(self) -> release_types.ReleaseOutcome:
        """Do it; see :meth:`addon_operator.helm.releases.ReleaseManager.ensure`."""
        with self._measured(release_types.Operation.CHECK):
            given = await self._read_inputs()
            decision = await self._decide_before_render(given)
        if isinstance(decision, release.Skip):
            return self._skipped(decision)
        async with self._private_files(given) as files:
            return await self._render_and_act(given, files)

    async def render(self) -> bytes:
        """The manifest alone; see :meth:`addon_operator.helm.releases.ReleaseManager.render`."""
        given = await self._read_inputs()
        async with self._private_files(given) as files:
            request = await self._template_request(given, files)
            return await template.template(self._tools.helm, self._call, request)

    async def _read_inputs(self) -> _Inputs:
        found = await asyncio.to_thread(self._tools.files.read, self._request.module, self._request.directory)
        values = inputs.encode_values(self._request.values)
        is_seen = inputs.sees_capabilities(found, values)
        cluster = await self._tools.capabilities.now() if is_seen else None
        version = self._tools.helm.binary.version
        return _Inputs(found, values, cluster, inputs.checksum(found, values, version, cluster))

    async def _decide_before_render(self, given: _Inputs) -> release.Skip | release.Render:
        name = self._request.module
        self._record = await self._tools.observed.get(name, fresh=self._request.fresh)
        for _ in range(_RECOVERIES):
            decision = release.decide_before_render(self._state(given))
            if not isinstance(decision, release.Recover):
                return decision
            await self._recover(decision)
        raise errors.HelmError(
            name,
            f"the release does not leave its state ({self._recovered[-1]}); is somebody else at work on it?",
        )

    def _state(self, given: _Inputs) -> release.ReleaseState:
        return release.ReleaseState(
            revision=self._record.revision if self._record else None,
            inputs=given.checksum,
            chart=given.chart.checksum,
            rendered=self._tools.observed.rendered(self._record),
            absent=self._request.absent,
        )

    async def _recover(self, decision: release.Recover) -> None:
        self._recovered.append(decision.reason)
        observed = self._tools.observed
        if decision.action is release.RecoveryAction.FINISH_UNINSTALL:
            await uninstall.uninstall(self._tools.helm, self._call, self._tools.options.timeout)
            self._record = await observed.refresh(self._request.module)
        elif self._record is not None:
            self._record = await observed.drop(self._record)

    async def _render_and_act(self, given: _Inputs, files: _Files) -> release_types.ReleaseOutcome:
        with self._measured(release_types.Operation.TEMPLATE):
            manifest = await template.template(
                self._tools.helm, self._call, await self._template_request(given, files)
            )
        rendered = given.rendered_to(template.checksum(manifest))
        decision = release.decide_after_render(self._state(given), rendered.manifest)
        if isinstance(decision, release.Skip):
            await self._save(rendered)
            return self._skipped(decision)
        with self._measured(release_types.Operation.UPGRADE):
            await self._upgrade(decision, rendered, files)
        is_first = isinstance(decision, release.Install)
        action = release_types.Action.INSTALLED if is_first else release_types.Action.UPGRADED
        return self._outcome(action, decision.reason)

    async def _template_request(self, given: _Inputs, files: _Files) -> template.TemplateRequest:
        return template.TemplateRequest(
            chart=files.chart,
            values=files.values,
            capabilities=given.cluster or await self._tools.capabilities.recent(),
            with_api_versions=given.cluster is not None,
            with_lookup=inputs.looks_up(given.chart, given.values),
            timeout=command.time_limit(self._tools.options.timeout),
        )

    async def _upgrade(
        self, decision: release.Install | release.Upgrade, rendered: release.Rendered, files: _Files
    ) -> None:
        expected = self._record.revision.number + 1 if self._record else 1
        request = upgrade.UpgradeRequest(
            chart=files.chart,
            values=files.values,
            labels=rendered.labels(expected),
            validate=isinstance(decision, release.Install) or decision.validate,
            history_max=self._tools.options.history_max,
            timeout=self._tools.options.timeout,
        )
        await upgrade.upgrade(self._tools.helm, self._call, request)
        self._record = await self._tools.observed.refresh(self._request.module)
        await self._save(rendered)

    async def _save(self, rendered: release.Rendered) -> None:
        """Save what was rendered with the revision it belongs to, here and in the cluster."""
        if self._record is None:
            raise errors.HelmError(
                self._request.module,
                "the release vanished while it was worked on; is somebody else removing it?",
            )
        self._tools.observed.remember(self._record.revision, rendered)
        try:
            await self._tools.observed.add_labels(self._record, rendered)
        except kube_errors.KubernetesError as error:
            self._tools.on_warning(
                self._request.module,
                f"checksums could not be saved with the release, so the next start will render it: {error}",
            )

    def _last_record(self) -> release_records.Record:
        if self._record is None:
            raise errors.HelmError(
                self._request.module, "the release vanished meanwhile; is somebody else removing it?"
            )
        return self._record

    def _skipped(self, decision: release.Skip) -> release_types.ReleaseOutcome:
        return self._outcome(release_types.Action.SKIPPED, decision.reason, decision.by)

    def _outcome(
        self, action: release_types.Action, reason: str, by: release.SkippedBy | None = None
    ) -> release_types.ReleaseOutcome:
        record = self._last_record()
        rendered = self._tools.observed.rendered(record) or record.revision.saved
        return release_types.ReleaseOutcome(
            action=action,
            reason=reason,
            revision=record.revision.number,
            manifest_checksum=rendered.manifest if rendered else release.Checksum(""),
            by=by,
            recovered=tuple(self._recovered),
            seconds=dict(self._seconds),
        )

    @contextlib.asynccontextmanager
    async def _private_files(self, given: _Inputs) -> AsyncIterator[_Files]:
        """The values and the chart in a directory that only the operator can read, gone afterwards."""
        self._tools.helm.workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f"{self._request.module}-", dir=self._tools.helm.workspace, ignore_cleanup_errors=True
        ) as private:
            yield await asyncio.to_thread(self._write_files, given, pathlib.Path(private))

    def _write_files(self, given: _Inputs, private: pathlib.Path) -> _Files:
        module, directory = self._request.module, self._request.directory
        try:
            values = inputs.write_values(given.values, private)
        except OSError as error:
            raise errors.HelmError(
                module, f"cannot write the values for Helm to {private}: {error.strerror}; see to TMP_DIR"
            ) from error
        return _Files(chart.prepare(module, directory, private), values)

    @contextlib.contextmanager
    def _measured(self, operation: release_types.Operation) -> Iterator[None]:
        started = self._tools.clock.monotonic()
        try:
            yield
        finally:
            self._seconds[operation] += self._tools.clock.monotonic() - started
