"""What a module's chart renders to: its inputs, the files that Helm reads, and the call itself."""

import asyncio
import contextlib
import dataclasses
import functools
import pathlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from typing import Any, Final

import msgspec
from msgspec import structs

from addon_operator.aio import absences
from addon_operator.documents import manifest_diff, varying_parts
from addon_operator.helm import capabilities, command, helm_errors, messages, release_types, verbs
from addon_operator.helm.charts import chart, chart_files
from addon_operator.helm.releases import record_format, render_inputs
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors, json_types, names
from addon_operator.modules import manifests, release
from addon_operator.modules.patching import manifest_changes, null_fields, repeated_items

_STRICT_SINCE: Final = 4
"""Major version of Helm from which on a variable must stand once in ``env``, and keys must have values."""
_POLLS: Final = 20
_POLL_SECONDS: Final = 0.25
_ANOTHER_SECOND: Final = 1.05
"""After so many seconds each time is another one, if it has its seconds."""


class _Refused(msgspec.Struct, frozen=True):
    """What a render has that a strict Helm does not take."""

    is_twice: bool
    """Whether variables stand twice."""
    nulls: null_fields.Nulls
    told: tuple[str, ...]
    """A sentence for each."""


async def _unknown(_api_version: str, _kind: str) -> None:
    """Know no definition."""


class ChartRenderer:
    """Renders the charts of modules, as their releases ask for it."""

    def __init__(
        self,
        helm: command.Helm,
        capabilities: capabilities.CapabilityReader,
        timeout: float,
        clock: clocks.Clock,
        common: manifest_changes.ManifestChanges = manifest_changes.NOTHING,
        absence: float = absences.SECONDS,
    ) -> None:
        """``timeout``: seconds for each single step of Helm; ``common``: what all modules change.

        ``absence``: see :class:`.ChartFilesReader`.
        """
        self._common = common
        self._helm = helm
        self._capabilities = capabilities
        self._timeout = timeout
        self._reader = chart_files.ChartFilesReader(clock, absence)
        self._refused: dict[names.ModuleName, _Refused] = {}
        """What the last render of a module has, and Helm refuses."""
        self.schema_of: Callable[[str, str], Awaitable[Mapping[str, Any] | None]] = _unknown
        """Gives what the cluster's definition says of a custom kind, by API version and kind."""

    async def inputs(self, request: release_types.ReleaseRequest) -> render_inputs.RenderInputs:
        """Read what the manifest depends on; no process is started.

        Raises :class:`.ChartError`, and the errors of the API client.
        """
        chart_on_disk, (document, values, mentions) = await asyncio.to_thread(self._read, request)
        is_seen = mentions & chart_files.Mention.CAPABILITIES
        cluster = await self._capabilities.now() if is_seen else None
        version = self._helm.binary.version
        changes = request.changes.over(self._common)
        checksum = await asyncio.to_thread(
            render_inputs.checksum, chart_on_disk, values, version, cluster, changes
        )
        return render_inputs.RenderInputs(
            chart_on_disk, document, values, mentions, cluster, checksum, changes
        )

    def _read(
        self, request: release_types.ReleaseRequest
    ) -> tuple[chart_files.ChartFiles, tuple[json_types.JsonObject, bytes, chart_files.Mention]]:
        chart_on_disk = self._reader.read(request.module, request.directory)
        return chart_on_disk, _values_of(request, chart_on_disk)

    async def seen_now(
        self, inputs: render_inputs.RenderInputs, groups: frozenset[str]
    ) -> render_inputs.RenderInputs:
        """Return the same for the cluster as it is once it serves these API groups, or after some seconds.

        Raises the errors of the API client.
        """
        cluster = await self._capabilities.now()
        for _ in range(_POLLS):
            if groups <= {api.partition("/")[0] for api in cluster.api_versions}:
                break
            await asyncio.sleep(_POLL_SECONDS)
            cluster = await self._capabilities.now()
        version = self._helm.binary.version
        checksum = await asyncio.to_thread(
            render_inputs.checksum, inputs.chart, inputs.values, version, cluster, inputs.changes
        )
        return structs.replace(inputs, cluster=cluster, checksum=checksum)

    @contextlib.asynccontextmanager
    async def files(
        self, request: release_types.ReleaseRequest, inputs: render_inputs.RenderInputs
    ) -> AsyncIterator[verbs.Files]:
        """Write values and chart to a directory that only the operator can read; remove it afterwards."""
        self._helm.workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f"{request.module}-", dir=self._helm.workspace, ignore_cleanup_errors=True
        ) as private:
            yield await asyncio.to_thread(_write_files, request, inputs, pathlib.Path(private))

    async def render(
        self,
        request: release_types.ReleaseRequest,
        inputs: render_inputs.RenderInputs,
        files: verbs.Files,
        *,
        is_upgrade: bool = True,
    ) -> str:
        """Render the manifest, as an upgrade or as the first install; raises :class:`.HelmError`."""
        version = (inputs.cluster or await self._capabilities.recent()).kube_version
        render = functools.partial(
            verbs.template,
            self._helm,
            request.call,
            files,
            inputs.cluster or capabilities.Capabilities(version, frozenset()),
            command.time_limit(self._timeout),
            is_upgrade=is_upgrade,
        )
        has_lookup = bool(inputs.mentions & chart_files.Mention.LOOKUP)
        try:
            rendered = await render(with_lookup=has_lookup)
        except helm_errors.HelmError as error:
            if is_upgrade or not (has_lookup and messages.is_not_served(str(error))):
                raise
            # Helm 4 looks up kinds, too. Before the first install neither those of the chart are there, nor
            # anything that it could have made.
            rendered = await render(with_lookup=False)
        text = rendered.decode(errors="replace")
        if self._helm.binary.major >= _STRICT_SINCE:
            text, twice = await asyncio.to_thread(repeated_items.once, text)
            nulls = await self._nulls(text)
            text, empty = await asyncio.to_thread(null_fields.without, text, nulls) if nulls else (text, ())
            self._refused[request.module] = _Refused(bool(twice), nulls, (*twice, *empty))
        return text

    async def _nulls(self, manifest: str) -> dict[null_fields.Kind, frozenset[null_fields.Path]]:
        """Return the keys without a value that the definitions of their kinds do not allow."""
        nulls = {}
        for kind, paths in (await asyncio.to_thread(null_fields.found, manifest)).items():
            schema = await self.schema_of(*kind)
            if schema is not None and (refused := null_fields.refused(paths, schema)):
                nulls[kind] = refused
        return nulls

    async def tolerant(
        self, request: release_types.ReleaseRequest, inputs: render_inputs.RenderInputs, files: verbs.Files
    ) -> verbs.Files:
        """Return files from which Helm makes what was rendered last, and warn of what it would refuse."""
        refused = self._refused.get(request.module)
        if refused is None or not refused.told:
            return files
        for text in refused.told:
            self._helm.doubt(request.module, text)
        changes = dataclasses.replace(inputs.changes, once=refused.is_twice, nulls=refused.nulls)
        write = functools.partial(render_inputs.write_changes, changes, files.values.parent, "once.json")
        return structs.replace(files, changes=await asyncio.to_thread(write))

    async def leaving_out(
        self,
        files: verbs.Files,
        resources: Collection[manifests.ManifestResource],
        live: manifests.Fields,
        namespace: str,
    ) -> verbs.Files:
        """Return files from which Helm makes no such resources, and others with these fields.

        ``namespace`` is that of the release.
        """

        def write() -> pathlib.Path | None:
            own = files.changes
            changes = (
                manifest_changes.NOTHING if own is None else manifest_changes.read(own.read_text("utf-8"))
            )
            without = frozenset(each.identity(namespace) for each in resources)
            name = f"{'none' if own is None else own.stem}-without.json"
            made = dataclasses.replace(changes, without=without, live=live)
            (files.values.parent / name).unlink(missing_ok=True)
            return render_inputs.write_changes(made, files.values.parent, name)

        return structs.replace(files, changes=await asyncio.to_thread(write))

    async def again(
        self, request: release_types.ReleaseRequest, inputs: render_inputs.RenderInputs, files: verbs.Files
    ) -> str:
        """Render as :meth:`render` once more, at another time; raises :class:`.HelmError`.

        Where the two differ, another render makes no difference: see :mod:`.varying_parts`.
        """
        if inputs.mentions & chart_files.Mention.TIME:
            await asyncio.sleep(_ANOTHER_SECOND)
        return await self.render(request, inputs, files)

    async def of_record(
        self,
        module: names.ModuleName,
        content: record_format.Content,
        checksum: str,
        directory: pathlib.Path | None,
    ) -> tuple[str, str] | None:
        """Render twice what a revision was made from, without the cluster; ``None`` if that cannot be done.

        The chart is that in ``directory`` if it is the one of then, by its ``checksum``, and else that in the
        record, which has no charts within it.
        """
        self._helm.workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f"{module}-", dir=self._helm.workspace, ignore_cleanup_errors=True
        ) as private:
            try:
                place = await asyncio.to_thread(
                    self._chart_of, module, content, checksum, directory, pathlib.Path(private)
                )
                if place is None:
                    return None
                values = render_inputs.write_values(
                    render_inputs.encode_values(dict(content.values)), pathlib.Path(private)
                )
                render = functools.partial(
                    verbs.template,
                    self._helm,
                    command.Call(module, skips_schemas=True),
                    verbs.Files(place, values),
                    await self._capabilities.recent(),
                    command.time_limit(self._timeout),
                )
                one, other = await render(), await render()
            except (errors.AddonOperatorError, KeyError, TypeError, ValueError, OSError):
                return None
        return one.decode(errors="replace"), other.decode(errors="replace")

    def _chart_of(
        self,
        module: names.ModuleName,
        content: record_format.Content,
        checksum: str,
        directory: pathlib.Path | None,
        private: pathlib.Path,
    ) -> pathlib.Path | None:
        if directory is not None:
            with contextlib.suppress(helm_errors.ChartError):
                if self._reader.read(module, directory).checksum == checksum:
                    return chart.prepare(module, directory, private)
        place = private / "recorded"
        place.mkdir(mode=0o700)
        return place if record_format.write_chart(content.chart, place) else None


class BlindRenderer(ChartRenderer):
    """Renders where there is no cluster: charts look nothing up."""

    rework: Callable[[str], str] = str
    """Makes of a manifest what is compared; it may take its time."""

    async def render(
        self,
        request: release_types.ReleaseRequest,
        inputs: render_inputs.RenderInputs,
        files: verbs.Files,
        *,
        is_upgrade: bool = True,
    ) -> str:
        """Render as :meth:`.ChartRenderer.render`, and rework the manifest."""
        blind = structs.replace(inputs, mentions=inputs.mentions & ~chart_files.Mention.LOOKUP)
        manifest = await super().render(request, blind, files, is_upgrade=is_upgrade)
        return await asyncio.to_thread(self.rework, manifest)


def manifest_checksum(manifest: str, again: str | None = None) -> release.Checksum:
    """Return the checksum of a manifest's documents; their order, layout and comments make no difference.

    Helm 3 and 4 do not write the same layout, and a change of Helm alone must not make a revision.
    ``again`` is another render of the same: what is another one in each makes no difference.
    """
    documents = manifest_diff.parse(manifest)
    if again is not None:
        documents = varying_parts.steady(documents, manifest_diff.parse(again))
    return chart_files.checksum(manifest_diff.fingerprint(documents))


def _values_of(
    request: release_types.ReleaseRequest, chart_on_disk: chart_files.ChartFiles
) -> tuple[json_types.JsonObject, bytes, chart_files.Mention]:
    document, values = request.values, render_inputs.encode_values(request.values)
    mentions = render_inputs.mentions(chart_on_disk, values)
    if mentions & chart_files.Mention.ENABLED_MODULES and request.enabled_modules is not None:
        document = render_inputs.with_enabled_modules(document, request.enabled_modules)
        values = render_inputs.encode_values(document)
    return document, values, mentions


def given_values(request: release_types.ReleaseRequest, inputs: render_inputs.RenderInputs) -> bytes:
    """Return the values as Helm is given them; raises what reading the chart raises."""
    below = chart.own_values(request.module, request.directory) if request.has_own_values else {}
    hidden = render_inputs.hiding(below, inputs.document) if below else inputs.document
    return render_inputs.encode_values(hidden) if below else inputs.values


def _write_files(
    request: release_types.ReleaseRequest, inputs: render_inputs.RenderInputs, private: pathlib.Path
) -> verbs.Files:
    try:
        values = render_inputs.write_values(given_values(request, inputs), private)
        changes = render_inputs.write_changes(inputs.changes, private)
    except OSError as error:
        raise helm_errors.HelmError(
            request.module,
            f"cannot write the values for Helm to {private}: {error.strerror}; check ADDON_OPERATOR_TMP_DIR",
        ) from error
    return verbs.Files(chart.prepare(request.module, request.directory, private), values, changes)
