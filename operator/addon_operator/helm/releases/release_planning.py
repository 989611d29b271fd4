"""What is to be done for one module's release, observed and decided: a run does it, ``plan`` shows it."""

import asyncio
import collections
import contextlib
import dataclasses
import pathlib
from collections.abc import AsyncIterator, Iterator
from typing import Final

from addon_operator.documents import manifest_diff
from addon_operator.helm import command, helm_errors
from addon_operator.helm.charts import rendering
from addon_operator.helm.releases import live_objects, release_records, release_types
from addon_operator.kernel import clock as clocks
from addon_operator.modules import release

_NO_FILES: Final = rendering.Files(pathlib.Path(), pathlib.Path())


@dataclasses.dataclass(frozen=True, slots=True)
class Tools:
    """What all work on releases is done with."""

    helm: command.Helm
    records: release_records.ReleaseRecords
    renderer: rendering.ChartRenderer
    options: release_types.Options
    live: live_objects.LiveObjects
    clock: clocks.Clock


@dataclasses.dataclass(frozen=True, slots=True)
class ReleasePlan:
    """What is to be done for a release, with all that it was decided on."""

    decision: release.Recover | release.Skip | release.Install | release.Upgrade
    record: release_records.Record | None
    """The last revision; ``None`` if there is no release."""
    given: rendering.Inputs
    files: rendering.Files = _NO_FILES
    """What Helm installs or upgrades to; they are there as long as the plan is worked on."""
    manifest: str = ""
    """What the chart renders to, if it was rendered."""
    rendered: release.Rendered | None = None
    """What is saved with the revision then."""


class ReleasePlanner:
    """Decides what is to be done for one release; used once."""

    def __init__(self, tools: Tools, request: release_types.ReleaseRequest) -> None:
        self._tools = tools
        self._request = request
        self.seconds: dict[release_types.Operation, float] = collections.defaultdict(float)
        """What took place so far, and how long it took."""

    async def observe(self) -> tuple[rendering.Inputs, release_records.Record | None]:
        """What the release is made from, and its last revision; no process is started.

        Raises :class:`.ChartError` for a chart that cannot be read, and the errors of the API client.
        """
        with self.measured(release_types.Operation.CHECK):
            given = await self._tools.renderer.inputs(self._request)
            return given, await self._tools.records.get(self._request.module, fresh=self._request.fresh)

    @contextlib.asynccontextmanager
    async def plan(
        self, given: rendering.Inputs, record: release_records.Record | None
    ) -> AsyncIterator[ReleasePlan]:
        """Decide what is to be done for a release whose last revision is ``record``; nothing is changed.

        For a stuck release the plan is how it recovers; after that it is planned again.
        Raises :class:`.HelmError` when the chart does not render.
        """
        decision = release.decide(self._state(given, record))
        if isinstance(decision, release.Recover | release.Skip):
            yield ReleasePlan(decision, record, given)
            return
        async with self._tools.renderer.files(self._request, given) as files:
            if isinstance(decision, release.Install):
                yield ReleasePlan(decision, record, given, files)
                return
            await self._request.before_change()
            with self.measured(release_types.Operation.TEMPLATE):
                plan = await self._rendered(given, record, files)
            yield plan

    @contextlib.contextmanager
    def measured(self, operation: release_types.Operation) -> Iterator[None]:
        """Count what takes place in the context as time of the operation."""
        started = self._tools.clock.monotonic()
        try:
            yield
        finally:
            self.seconds[operation] += self._tools.clock.monotonic() - started

    async def _rendered(
        self, given: rendering.Inputs, record: release_records.Record | None, files: rendering.Files
    ) -> ReleasePlan:
        manifest = await self._tools.renderer.render(self._request, given, files)
        checksum = await self._tools.renderer.checksum(self._request, given, files, manifest)
        state = dataclasses.replace(
            self._state(given, record), manifest=checksum, applied=await self._is_applied(record, manifest)
        )
        decision = release.decide(state)
        if isinstance(decision, release.Render):
            raise TypeError("what is rendered is to be rendered")
        return ReleasePlan(decision, record, given, files, manifest, given.rendered_to(checksum))

    def _state(self, given: rendering.Inputs, record: release_records.Record | None) -> release.ReleaseState:
        return release.ReleaseState(
            revision=record.revision if record else None,
            inputs=given.checksum,
            chart=given.chart.checksum,
            rendered=self._tools.records.rendered(record),
            absent=self._request.absent,
        )

    async def _is_applied(self, record: release_records.Record | None, manifest: str) -> bool:
        """Whether a revision that carries no checksums of ours asks for the same as the manifest."""
        if record is None or record.revision.status != release.DEPLOYED:
            return False
        if self._tools.records.rendered(record) or record.revision.saved:
            return False
        try:
            applied = await self._tools.records.manifest(record, with_hooks=True)
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
