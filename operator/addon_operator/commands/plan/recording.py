"""Makes the file of ``plan --record``: reads the cluster, and leaves out what nobody may see."""

import asyncio
import base64
import contextlib
import dataclasses
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from addon_operator.app import tools
from addon_operator.commands.plan import cluster_lookup, given_values, plan_sources
from addon_operator.commands.plan_state import (
    hidden_values,
    plan_state,
    recorded_manifests,
    recorded_values,
)
from addon_operator.engine.modules import module_releases
from addon_operator.helm.releases import kept_revisions, rendering
from addon_operator.kernel import errors, json_types, names
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client, connection
from addon_operator.kube.discovery import discovery, served_apis
from addon_operator.kube.objects import module_objects, suspension
from addon_operator.modules import manifests, model, release
from addon_operator.settings import settings as settings_module

_AT_ONCE: Final = 8
_AGGREGATED: Final = {"Accept": discovery.AGGREGATED}
_DOCUMENTS: Final = ("/version", "/api", "/apis")
_LABELS: Final = frozenset(
    {
        "owner", "name", "status", "version", "createdAt", "modifiedAt",
        release.MANAGED_LABEL, release.OPERATOR_LABEL, release.CONFIG_MAP_LABEL, release.REVISION_LABEL,
        release.REMOVAL_LABEL, release.HEALTHY_LABEL, release.TESTED_LABEL, release.CHART_LABEL,
    }
)  # fmt: skip
"""Of records; nothing in them is made of values."""
_DIGESTS: Final = frozenset(
    {release.INPUTS_LABEL, release.MANIFEST_LABEL, release.REJECTED_LABEL, release.GO_OPERATOR_LABEL}
)
_REASON: Final = "the Module object in the cluster says why"
_FAILED: Final = "'addon-operator plan' in the cluster says why"


async def make(
    settings: settings_module.Settings,
    texts: Mapping[str, str],
    environ: Mapping[str, str],
    pod: str | None = None,
) -> plan_state.PlanState:
    """Read what a plan needs of the cluster; ``texts``: those of settings that count for a plan.

    Raises as :func:`.planning.make` does.
    """
    async with contextlib.AsyncExitStack() as stack:
        sources = await plan_sources.live(settings, environ, stack, pod)
        if sources.wrong:
            wrong = "; ".join(f"key {key!r}: {text}" for key, text in sources.wrong.items())
            raise errors.ConfigurationError(f"values that are wrong cannot be recorded: {wrong}")
        return await _Recording(sources, texts).make(environ)


class _Recording:
    def __init__(self, sources: plan_sources.PlanSources, texts: Mapping[str, str]) -> None:
        self._sources = sources
        self._texts = texts
        self._parts = sources.parts
        self._settings = sources.parts.settings
        self._manager = sources.parts.releases
        self._modules = {files.module.name: files.module for files in sources.loaded.modules}
        self._notes: list[str] = []
        # Nobody keeps this key.
        self._stand_ins = hidden_values.StandIns(secrets.token_bytes(32))
        self._key = secrets.token_bytes(32)
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._renders = asyncio.Semaphore(self._settings.modules_parallelism)
        self._objects: dict[str, json_types.JsonObject] = {}
        self._absent: list[str] = []
        self._failed: dict[str, str] = {}
        self._collections: list[str] = []

    async def make(self, environ: Mapping[str, str]) -> plan_state.PlanState:
        answers = await self._answers()
        self._manager.places.assign(self._modules.values())
        revisions = await self._manager.observe_all()
        origin = await self._sources.take()
        await self._namespace()
        await self._collection(module_objects.path_of(self._settings.namespace), keeps_annotations=True)
        await self._collection(served_apis.API_SERVICE.path())
        self._objects[self._parts.memory.path] = self._parts.memory.outline()
        recorder = recorded_values.ValuesRecorder(self._sources.values, self._stand_ins)
        await self._values(recorder)
        state = plan_state.PlanState(
            recorded_at=time.time(),
            namespace=self._settings.namespace,
            hash_key=self._key.hex(),
            settings=self._texts,
            answers=answers,
            objects=self._objects,
            absent=self._absent,
            collections=self._collections,
            releases=(),
            hook_values=await asyncio.to_thread(self._hook_values, origin, recorder),
            ignored=sorted(self._sources.ignored),
            hidden=list(recorder.hidden),
        )
        return await self._with_releases(state, revisions, environ)

    async def _answers(self) -> dict[str, Any]:
        requests = [connection.Request("GET", path, headers=_AGGREGATED) for path in _DOCUMENTS]
        documents = await asyncio.gather(*map(self._parts.kube.document, requests))
        return dict(zip(_DOCUMENTS, documents, strict=True))

    async def _namespace(self) -> None:
        path = paths.of("v1", "namespaces", name=self._settings.namespace)
        self._objects[path] = {"metadata": {"name": self._settings.namespace}}

    async def _collection(self, path: str, *, keeps_annotations: bool = False) -> None:
        """Note which objects of a collection there are; a collection that cannot be read is left out."""
        try:
            listed = await self._parts.kube.list_all(path, metadata_only=True)
        except api_errors.NotServed:
            pass
        except api_errors.KubernetesError as error:
            self._notes.append(f"{path} cannot be read: {error}")
            return
        else:
            for item in listed.items:
                self._objects[f"{path}/{item['metadata']['name']}"] = _stub(
                    item, keeps_annotations=keeps_annotations
                )
        self._collections.append(path)

    async def _values(self, recorder: recorded_values.ValuesRecorder) -> None:
        settings = self._settings
        path = paths.of("v1", "configmaps", namespace=settings.namespace, name=settings.config_map)
        try:
            data = (await self._parts.kube.get(path)).get("data") or {}
            self._objects[path] = {"data": dict(await asyncio.to_thread(recorder.texts, data))}
        except api_errors.NotFound:
            self._absent.append(path)
        secret = tools.secret_of(settings, self._parts.kube)
        if secret is None:
            return
        path = paths.of("v1", "secrets", namespace=secret.namespace, name=secret.name)
        try:
            snapshot = await secret.read()
        except api_errors.Forbidden as error:
            self._notes.append(f"values of {secret} are left out: {error}")
            snapshot = None
        if snapshot is None:
            self._absent.append(path)
            return
        texts = await asyncio.to_thread(recorder.texts, snapshot.data, is_secret=True)
        self._objects[path] = {
            "data": {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()},
            "metadata": {},
        }

    def _hook_values(
        self, origin: given_values.HookValuesOrigin, recorder: recorded_values.ValuesRecorder
    ) -> plan_state.HookValues:
        return plan_state.HookValues(
            source=str(origin.source),
            operator=origin.operator,
            releases={str(name): number for name, number in origin.releases.items()},
            shared=recorder.groups(None),
            switches=dict(self._sources.values.hook_switches),
            modules={name: groups for name in self._modules if (groups := recorder.groups(name))},
        )

    async def _with_releases(
        self,
        state: plan_state.PlanState,
        revisions: Mapping[str, release.Revision],
        environ: Mapping[str, str],
    ) -> plan_state.PlanState:
        """Add the releases: to write them, modules are rendered as whoever reads the file will."""
        kept = {name: await self._manager.kept(names.ModuleName(name)) for name in revisions}
        for name, of_release in kept.items():
            await self._presence(name, of_release)
        outlined = [self._outlined(each) for of_release in kept.values() for each in of_release]
        async with contextlib.AsyncExitStack() as stack:
            provisional = dataclasses.replace(state, releases=outlined)
            blind = await plan_sources.of_state(provisional, self._settings, environ, stack)
            blind.parts.releases.places.assign(self._modules.values())
            await blind.parts.releases.observe_all()
            await blind.take()
            self._sources.values.enabled = blind.values.enabled = self._enabled(revisions)
            recorded = await asyncio.gather(*(self._release(*each, blind) for each in kept.items()))
        notes = dict.fromkeys([*self._notes, *self._sources.notes])
        return dataclasses.replace(
            state,
            releases=[each for of_release in recorded for each in of_release],
            objects=self._objects,
            absent=self._absent,
            notes=[note for note in notes if note not in blind.notes],
            unplannable=self._failed,
        )

    def _enabled(self, revisions: Mapping[str, release.Revision]) -> list[names.ModuleName]:
        """Return the modules that charts have been told of, as far as releases show it."""
        return [name for name in self._modules if name in revisions and revisions[name].exists]

    def _outlined(self, kept: kept_revisions.KeptRevision) -> plan_state.KeptRelease:
        content = kept.content
        return plan_state.KeptRelease(
            path=kept.path,
            labels=dict(self._labels(kept)),
            manifest=None if content is None else recorded_manifests.outline(content.manifest),
            hooks=[] if content is None else [recorded_manifests.outline(each) for each in content.hooks],
            server_side=content is not None and content.is_server_side,
        )

    def _labels(self, kept: kept_revisions.KeptRevision) -> Iterator[tuple[str, str]]:
        """Yield what plans go by. Digests over real values are replaced: whoever tries values finds them."""
        for label, text in kept.labels.items():
            if label in _LABELS:
                yield label, text
            elif label in _DIGESTS and not kept.is_foreign:
                yield label, self._stand_ins.digest(text)[: len(text)]

    async def _release(
        self, name: str, kept: Sequence[kept_revisions.KeptRevision], blind: plan_sources.PlanSources
    ) -> Sequence[plan_state.KeptRelease]:
        module = self._modules.get(names.ModuleName(name))
        if module is None or module.problem or not module.has_chart:
            return [self._outlined(each) for each in kept]
        rendered = await self._rendered(module, blind)
        if rendered is not None and rendered.manifests:
            await self._rename(name, rendered.manifests)
        return [await asyncio.to_thread(self._recorded, each, rendered) for each in kept]

    async def _presence(self, name: str, kept: Sequence[kept_revisions.KeptRevision]) -> None:
        """Note which resources of the deployed revision are there."""
        deployed = [each for each in kept if each.revision.status == release.DEPLOYED and each.content]
        for each in deployed[-1:]:
            namespace = self._manager.places.of(name).namespace
            manifest = each.content.manifest if each.content else ""
            lookup = cluster_lookup.ClusterLookup(self._parts.kube, self._parts.kinds, self._notes.append)
            gone = await lookup.missing(manifest, namespace)
            for resource in await asyncio.to_thread(manifests.resources, manifest):
                await self._note(resource, namespace, is_there=resource not in gone)

    async def _note(self, resource: manifests.ManifestResource, namespace: str, *, is_there: bool) -> None:
        if (path := await self._path(resource, namespace)) is None:
            return
        if is_there:
            self._objects.setdefault(path, {"metadata": {"name": resource.name}})
        else:
            self._absent.append(path)

    async def _path(self, resource: manifests.ManifestResource, namespace: str) -> str | None:
        try:
            kind = await self._parts.kinds.find(resource.kind, resource.api_version)
        except api_errors.KubernetesError:
            return None
        place = (resource.namespace or namespace) if kind.namespaced else None
        return kind.path(namespace=place, name=resource.name)

    async def _rename(self, name: str, rendered: Sequence[str]) -> None:
        """Have what is noted of objects whose names have values in them be noted by their stand-ins."""
        namespace = self._manager.places.of(name).namespace
        for real, stood_in in await asyncio.to_thread(recorded_manifests.renamed, *rendered):
            path, other = await self._path(real, namespace), await self._path(stood_in, namespace)
            if other is not None and self._objects.pop(path or "", None) is not None:
                self._objects[other] = {"metadata": {"name": stood_in.name}}
            elif other is not None and path in self._absent:
                self._absent[self._absent.index(path)] = other

    async def _rendered(self, module: model.Module, blind: plan_sources.PlanSources) -> "_Rendered | None":
        inputs: tuple[release.Checksum, ...] = ()
        rendered: tuple[str, ...] = ()
        async with self._renders:
            try:
                await self._parts.charts.ensure(module, None)
                real = module_releases.request_of(self._sources.values, module)
                stood_in = blind.adjusted(module_releases.request_of(blind.values, module), module.key)
                managers = ((self._manager, real), (blind.parts.releases, stood_in))
                inputs = tuple([(await manager.inputs(request)).checksum for manager, request in managers])
                rendered = tuple([await manager.render(request) for manager, request in managers])
            except errors.AddonOperatorError:
                # What Helm and charts say may quote any value.
                self._failed[module.name] = _FAILED
        return _Rendered(inputs, rendered) if inputs else None

    def _recorded(
        self, kept: kept_revisions.KeptRevision, rendered: "_Rendered | None"
    ) -> plan_state.KeptRelease:
        outlined, content = self._outlined(kept), kept.content
        if rendered is None or content is None or kept.is_foreign:
            return outlined
        labels = dict(outlined["labels"])
        _translate(labels, kept, release.INPUTS_LABEL, rendered.inputs)
        _translate(labels, kept, release.REJECTED_LABEL, rendered.inputs)
        if not rendered.manifests:
            outlined["labels"] = labels
            return outlined
        checksums = tuple(map(rendering.manifest_checksum, rendered.manifests))
        _translate(labels, kept, release.MANIFEST_LABEL, checksums)
        recorder = recorded_manifests.Recorder(rendered.manifests, hidden_values.StandIns(self._key))
        return plan_state.KeptRelease(
            path=kept.path,
            labels=labels,
            manifest=recorder.rewritten(content.manifest),
            hooks=[recorder.rewritten(each) for each in content.hooks],
            server_side=content.is_server_side,
        )


class _Rendered(msgspec.Struct, frozen=True):
    """What a module is made from and renders to now, with its values and with stand-ins."""

    inputs: Sequence[release.Checksum]
    manifests: Sequence[str]
    """Empty if one of them does not render."""


def _translate(
    labels: dict[str, str],
    kept: kept_revisions.KeptRevision,
    label: str,
    checksums: Sequence[release.Checksum],
) -> None:
    """Let the label of a revision that is as now say so of the one with stand-ins."""
    real, with_stand_ins = checksums
    if kept.labels.get(label) == real:
        labels[label] = with_stand_ins


def _stub(item: client.Object, *, keeps_annotations: bool) -> json_types.JsonObject:
    metadata = item["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
    if keeps_annotations:
        # What was read is written anew: people may have put anything there.
        found = suspension.read(metadata.get("annotations") or {}, time.time())
        told = {} if found is None else structs.replace(found, reason=_REASON, by="").annotations
        kept["annotations"] = {key: text for key, text in told.items() if text is not None}
    return {"metadata": kept}
