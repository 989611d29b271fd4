"""Render a module's chart, and show how that differs from the cluster. Nothing is changed."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from addon_operator.debug import debug_client, debug_masking, debug_why
from addon_operator.documents import manifest_diff, text_diff, yaml_reading, yaml_writing
from addon_operator.engine.modules import module_releases
from addon_operator.helm import helm_errors, release_types
from addon_operator.helm.releases import releases
from addon_operator.helm.repositories import chart_cache
from addon_operator.kernel import errors, json_types
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.modules import manifests, model
from addon_operator.values import store

FIELD_MANAGER: Final = "helm"
_PAIR: Final = 2
_NOT_COMPARED: Final = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation")

Object = dict[str, Any]


class Renderer:
    """Renders modules with the values that are in force."""

    def __init__(
        self,
        manager: releases.ReleaseManager,
        values: store.ValuesStore,
        kube: client.KubeClient,
        kinds: discovery.Catalog,
        charts: chart_cache.ChartCache,
    ) -> None:
        self._manager = manager
        self._values = values
        self._kube = kube
        self._kinds = kinds
        self._charts = charts
        self.why: Final = debug_why.Why(manager, values, charts)
        """Says where what is rendered comes from."""

    @property
    def home(self) -> dict[str, str]:
        """Where the operator works: its namespace, and the URL of the API server."""
        return {"namespace": self._manager.places.own_namespace, "server": self._kube.access.server}

    async def render(self, module: model.Module, *, show_sensitive: bool) -> str:
        """Return the manifest of the module's chart; empty if it has none.

        Raises what :meth:`.ReleaseManager.render` raises.
        """
        manifest = await self._manifest(module)
        if show_sensitive:
            return manifest
        return await asyncio.to_thread(_masked, self._values.snapshot(module.name), module, manifest)

    async def diff(self, module: model.Module, *, show_sensitive: bool) -> str:
        """Return how the cluster's objects would change if the manifest were applied, as a unified diff.

        The API server is asked with a dry run of a server-side apply. Helm's hooks are left out.

        Raises what :meth:`render` raises, and errors of the API client.
        """
        manifest = await self._manifest(module)
        wanted = await asyncio.to_thread(_wanted, manifest)
        place = self._manager.places.of(module.name)
        texts = [
            await self._difference(
                # What Helm puts on each object does not count as a difference.
                manifests.owned(found, place.name, place.namespace),
                place.namespace,
                show_sensitive=show_sensitive,
            )
            for found in wanted
        ]
        text = "".join(texts) or debug_client.NO_DIFFERENCES
        if show_sensitive:
            return text
        # The cluster may still have what the values were before.
        instead = (
            "'module render' without --diff shows what the chart renders to, and --show-sensitive shows the "
            "difference with all values"
        )
        given = await self._given(module, instead) if texts else None
        return await asyncio.to_thread(_redacted, self._values.snapshot(module.name), module, text, given)

    async def pending(self, module: model.Module, *, is_removal: bool) -> str:
        """Return what a held back revision, or removal, would change of the last one, as a unified diff.

        Data of Secrets and sensitive values are hidden. Raises what :meth:`.ReleaseManager.preview` raises.
        """
        values = self._values.snapshot(module.name)
        given = await self._given(module, "'module render' shows what the chart renders to")
        if is_removal:
            manifest = await self._manager.manifest(module.name) or ""
            redact = await asyncio.to_thread(module_releases.redactor_of, values, module, given)
            changes = await asyncio.to_thread(
                lambda: manifest_diff.diff(manifest_diff.parse(manifest), (), redact)
            )
        else:
            await self._charts.ensure(module)
            request = await asyncio.to_thread(module_releases.request_of, values, module, given)
            changes = (await self._manager.preview(request)).changes
        return "".join(f"{line}\n" for change in changes for line in change.diff)

    async def revisions(self, module: model.Module) -> str:
        """Return how the last revision differs from the one before it, as a unified diff below their numbers.

        Data of Secrets and sensitive values are hidden. Raises :class:`.ReleaseRecordError`.
        """
        last = await self._manager.last_revisions(module.name) if module.has_chart else []
        if len(last) < _PAIR:
            return ""
        values, ((older, before), (newer, after)) = self._values.snapshot(module.name), last

        def differences() -> str:
            # What was hidden in either of them is hidden in both.
            hide_older, hide_newer = (module_releases.redactor_of(values, module, each) for each, _ in last)
            changes = manifest_diff.diff(
                manifest_diff.parse(before),
                manifest_diff.parse(after),
                lambda text: hide_older(hide_newer(text)),
            )
            return "".join(f"{line}\n" for change in changes for line in change.diff)

        return f"revision {older.revision} → {newer.revision}\n{await asyncio.to_thread(differences)}"

    async def _given(self, module: model.Module, instead: str) -> release_types.RevisionInputs | None:
        try:
            return await self._manager.revision_inputs(module.name)
        except helm_errors.ReleaseRecordError as error:
            raise errors.ModuleError(
                module.name,
                f"the difference is not shown: which former values to hide in it is not known, as {error}; "
                f"{instead}",
            ) from error

    async def _manifest(self, module: model.Module) -> str:
        if not module.has_chart:
            return ""
        await self._charts.ensure(module)
        values = self._values.snapshot(module.name)
        return await self._manager.render(await asyncio.to_thread(module_releases.request_of, values, module))

    async def _difference(self, wanted: Object, default: str, *, show_sensitive: bool) -> str:
        resource = await self._kinds.find(wanted["kind"], wanted.get("apiVersion"))
        namespace = wanted["metadata"].get("namespace") or default
        path = resource.path(namespace=namespace if resource.namespaced else None, name=_name(wanted))
        live = await self._live(path)
        query = {"fieldManager": FIELD_MANAGER, "force": "true", "dryRun": "All"}
        merged = await self._kube.patch(path, wanted, client.PatchType.APPLY, query=query)
        title = f"{wanted['kind']} {_name(wanted)}"
        return await asyncio.to_thread(_compared, live, merged, title, show_sensitive=show_sensitive)

    async def _live(self, path: str) -> Object:
        try:
            return await self._kube.get(path)
        except api_errors.NotFound:
            return {}


def _masked(values: store.ValuesStore, module: model.Module, manifest: str) -> str:
    return _redacted(values, module, debug_masking.masked_manifest(manifest))


def _redacted(
    values: store.ValuesStore,
    module: model.Module,
    text: str,
    before: release_types.RevisionInputs | None = None,
) -> str:
    return module_releases.redactor_of(values, module, before)(text)


def _wanted(manifest: str) -> list[Object]:
    documents = yaml_reading.load_documents(manifest, "the rendered manifest")
    return [each for document in documents for each in _objects(document.value)]


def _compared(live: Object, merged: Object, title: str, *, show_sensitive: bool) -> str:
    before, after = _comparable(live), _comparable(merged)
    if not show_sensitive:
        before, after = debug_masking.masked_pair(before, after)
    return _unified(before, after, title)


def _objects(value: json_types.JsonValue) -> Iterator[Object]:
    if not isinstance(value, dict):
        return
    items = value.get("items")
    if isinstance(items, list):
        for item in items:
            yield from _objects(item)
    elif not manifests.is_hook(value):
        yield value


def _name(found: Object) -> str:
    return str(found["metadata"].get("name") or "")


def _comparable(found: Object) -> Object:
    kept = {key: value for key, value in found.items() if key != "status"}
    if "metadata" in kept:
        metadata = kept["metadata"].items()
        kept["metadata"] = {key: value for key, value in metadata if key not in _NOT_COMPARED}
    return kept


def _unified(before: Object, after: Object, title: str) -> str:
    lines = text_diff.unified(_lines(before), _lines(after), f"in the cluster: {title}", f"rendered: {title}")
    return "".join(f"{line}\n" for line in lines)


def _lines(found: Object) -> list[str]:
    return yaml_writing.dump(_sorted(found)).splitlines() if found else []


def _sorted(value: Any) -> Any:  # noqa: ANN401  # JSON
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
