"""Asks the API server whether it would take what charts render to, by dry runs: nothing is changed."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from addon_operator.documents import manifest_diff
from addon_operator.helm import messages, release_types
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.modules import manifests, model

_AT_ONCE: Final = 8
_MOST: Final = 3
"""Refusals that are told of one release."""
_REFUSED: Final = frozenset({400, 422})
_OF_A_WEBHOOK: Final = ("admission webhook ", "failed calling webhook", "does not support dry run")
"""What another program says, which may only miss an object of the same release."""
_MEND: Final = "correct the template, or the value that it gets"
_HELM_4: Final = 4
_CHANGED: Final = manifest_diff.ChangeKind.CHANGED
_REMOVED: Final = manifest_diff.ChangeKind.REMOVED


class _Wanted(NamedTuple):
    """An object as it is to be."""

    body: Mapping[str, Any]
    before: Mapping[str, Any] | None
    """As the release has it; ``None`` if it does not, or Helm makes it anew each time."""
    file: str
    """Of the chart."""


class DryRun:
    """Tries what a plan would install or upgrade."""

    def __init__(
        self,
        cluster: client.KubeClient,
        kinds: discovery.Catalog,
        helm_major: int,
        note: Callable[[str], None],
    ) -> None:
        """``helm_major``: from 4 on, Helm refuses fields that a kind does not have."""
        self._cluster = cluster
        self._kinds = kinds
        self._query = {"fieldManager": "helm", "dryRun": "All"}
        self._query["fieldValidation"] = "Strict" if helm_major >= _HELM_4 else "Ignore"
        self._note = note
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def refused(
        self,
        module: model.Module,
        namespace: str,
        preview: release_types.ReleasePreview,
        is_left_out: Callable[[str], bool],
    ) -> str:
        """Say which new and changed objects the API server does not take; empty if it takes them all.

        ``namespace`` is that of the release. ``is_left_out`` tells kinds whose definition a converge may
        change first. What cannot be asked is noted.
        """
        wanted = await asyncio.to_thread(lambda: list(_wanted(module, preview)))
        asked = [each for each in wanted if not is_left_out(str(each.body.get("kind")))]
        told = await asyncio.gather(*(self._refusal(each, namespace) for each in asked))
        refusals = list(filter(None, told))[:_MOST]
        return f"{'; '.join(refusals)}; {_MEND}" if refusals else ""

    async def _refusal(self, wanted: _Wanted, namespace: str) -> str:
        async with self._turns:
            try:
                await self._try(wanted, namespace)
            except (
                api_errors.NotFound,
                api_errors.NotServed,
                api_errors.AlreadyExists,
                discovery.NoSuchKind,
            ):
                # Kinds and namespaces may come with something else; who takes objects over is told elsewhere.
                return ""
            except api_errors.ApiError as error:
                is_foreign = any(mark in error.message for mark in _OF_A_WEBHOOK)
                if error.status in _REFUSED and not is_foreign:
                    return f"{wanted.file}: {error}"
                self._note(f"whether the API server takes all objects is not known: {error}")
            except api_errors.KubernetesError as error:
                self._note(f"whether the API server takes all objects is not known: {error}")
            return ""

    async def _try(self, wanted: _Wanted, namespace: str) -> None:
        body = wanted.body
        kind = await self._kinds.find(str(body["kind"]), str(body["apiVersion"]))
        place = (body["metadata"].get("namespace") or namespace) if kind.namespaced else None
        if wanted.before is not None:
            path = kind.path(namespace=place, name=body["metadata"]["name"])
            try:
                await self._cluster.patch(path, _patch(wanted.before, body), query=self._query)
            except api_errors.NotFound:
                pass  # It is gone, and made anew.
            else:
                return
        await self._cluster.create(kind.path(namespace=place), body, query=self._query)


def _wanted(module: model.Module, preview: release_types.ReleasePreview) -> Iterator[_Wanted]:
    changes = {change.key: change.kind for change in preview.changes if change.kind is not _REMOVED}
    before = {document.key: document for document in manifest_diff.parse(preview.before)}
    for document in manifest_diff.parse(preview.manifest):
        if document.key not in changes:
            continue
        file = messages.in_module(document.source, module.chart_directory)
        had = before.get(document.key) if changes[document.key] is _CHANGED else None
        had_by_key = {_key(body): body for body in _objects(had.body)} if had is not None else {}
        for body in _objects(document.body):
            is_hook = manifests.is_hook(body)
            yield _Wanted(body, None if is_hook else had_by_key.get(_key(body)), file)


def _objects(body: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401  # YAML
    """Yield the objects of a document that can be asked for."""
    if not isinstance(body, dict):
        return
    items = manifests.items_of(body)
    for item in [body] if items is None else items:
        metadata = item.get("metadata") if isinstance(item, dict) else None
        if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
            continue
        if item.get("apiVersion") and item.get("kind"):
            yield item


def _key(body: Mapping[str, Any]) -> tuple[str, str, str]:
    metadata = body["metadata"]
    return str(body["kind"]), str(metadata.get("namespace")), str(metadata.get("name"))


def _patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return a merge patch to ``after``, which also takes away what only ``before`` had."""
    patch: dict[str, Any] = dict.fromkeys(before.keys() - after.keys())
    for key, value in after.items():
        had = before.get(key)
        patch[key] = _patch(had, value) if isinstance(had, dict) and isinstance(value, dict) else value
    return patch
