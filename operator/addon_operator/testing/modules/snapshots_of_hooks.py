"""What a hook sees of given objects: the snapshots of its bindings, and the events of a run."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import orjson

from addon_operator.engine import state
from addon_operator.engine.bindings import kubernetes_binding, triggers
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.configuration import bindings
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors, names
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.kube.informers import object_selections, projections
from addon_operator.testing.given import given_objects

_TYPE: Final = "type"
_OBJECT: Final = "object"


class Seen(triggers.FollowedObjects):
    """The objects of a hook's bindings, as they were when the run began."""

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[bindings.KubernetesBinding, binding_contexts.Entries] = {}

    def entries(self, hook: state.Hook, binding: bindings.KubernetesBinding) -> binding_contexts.Entries:  # noqa: ARG002
        """Return the objects of a binding."""
        return self._entries.get(binding, ())

    def are_listed(self, hook: state.Hook, names: Iterable[str]) -> bool:  # noqa: ARG002
        """Say yes: what was given is all there is."""
        return True

    def take(self, binding: bindings.KubernetesBinding, entries: binding_contexts.Entries) -> None:
        """Note what a binding sees."""
        self._entries[binding] = entries


class Started(msgspec.Struct):
    """A binding that starts, for the one run that tells its hook so."""

    binding: bindings.KubernetesBinding

    def synchronization_begins(self) -> None:
        """Do nothing: its snapshot was taken before."""

    def synchronization_ended(self) -> None:
        """Do nothing: no events wait."""

    def synchronization_failed(self, error: str) -> None:
        """Do nothing: the test sees that the hook failed."""


class HookView:
    """Selects given objects as the operator's watches do, and filters them as it does."""

    def __init__(self, kube: client.KubeClient, jq: projections.JqRunner) -> None:
        self._kube = kube
        self._kinds = discovery.Catalog(kube, clocks.SystemClock())
        self._jq = jq

    async def seen(self, hook: state.Hook) -> Seen:
        """Return what all bindings of a hook see; of a kind that nobody gave, that is nothing."""
        seen = Seen()
        for binding in hook.config.kubernetes:
            found = [body async for body in self._selected(binding)]
            seen.take(binding, await self._entries(binding, found))
        return seen

    async def event(
        self,
        binding: bindings.KubernetesBinding,
        happened: Mapping[str, Any],
        given: given_objects.GivenObjects,
    ) -> triggers.Event:
        """Let something happen to the given objects, and return the event.

        Raises a :class:`.ConfigurationError` for an event that the hook would not get.
        """
        change, body = _event(happened)
        if change not in binding.execute_on_event:
            listed = ", ".join(sorted(binding.execute_on_event)) or "none"
            raise errors.ConfigurationError(
                f"binding {binding.name} does not run for {change.value} events; "
                f"its executeHookOnEvent: {listed}"
            )
        if change is bindings.WatchEvent.DELETED:
            # It is selected before it is gone.
            given.put(body)
            shown = await self._selected_one(binding, body)
            given.remove(body)
        else:
            given.put(body)
            shown = await self._selected_one(binding, body)
        (entry,) = await self._entries(binding, [shown])
        return triggers.Event(binding, change, binding_contexts.PackedEntry(entry))

    async def _selected_one(
        self, binding: bindings.KubernetesBinding, body: Mapping[str, Any]
    ) -> dict[str, Any]:
        wanted = body["metadata"]
        async for each in self._selected(binding):
            metadata = each["metadata"]
            place = wanted.get("namespace") or given_objects.NAMESPACE
            if metadata["name"] == wanted["name"] and metadata.get("namespace", place) == place:
                return each
        selection = kubernetes_binding.selection_of(binding)
        raise errors.ConfigurationError(
            f"binding {binding.name} does not see {body['kind']} {wanted['name']}: it selects {selection}"
        )

    async def _selected(self, binding: bindings.KubernetesBinding) -> AsyncIterator[dict[str, Any]]:
        selection = kubernetes_binding.selection_of(binding)
        try:
            kind = await self._kinds.find(selection.kind, selection.api_version)
        except discovery.NoSuchKind:
            return
        listed = set()
        for namespace in await self._namespaces(selection) if kind.namespaced else [None]:
            for name in selection.names or (None,):
                path = object_selections.WatchPath(
                    kind, namespace, name, selection.label_selector, selection.field_selector
                )
                for body in (await self._kube.document(path.list_request(0, "")))["items"]:
                    metadata = body["metadata"]
                    key = (metadata.get("namespace", ""), metadata["name"])
                    if key not in listed:
                        listed.add(key)
                        yield body

    async def _namespaces(self, selection: object_selections.ObjectSelection) -> Sequence[str | None]:
        if selection.namespaces is None and selection.namespace_labels is None:
            return [None]
        found = list(selection.namespaces or ())
        if selection.namespace_labels is not None:
            kind = await self._kinds.find("Namespace", "v1")
            listed = await self._kube.list_all(kind.path(), label_selector=selection.namespace_labels)
            found += [body["metadata"]["name"] for body in listed.items]
        return list(dict.fromkeys(found))

    async def _entries(
        self, binding: bindings.KubernetesBinding, found: Sequence[Mapping[str, Any]]
    ) -> list[bytes]:
        projection = kubernetes_binding.projection_of(binding, self._jq)
        reduced = await projection.reduce([orjson.dumps(body) for body in found])
        entries = []
        for body, each in zip(found, reduced, strict=True):
            if isinstance(each, projections.ProjectionError):
                named = f"{body['kind']} {body['metadata']['name']}"
                raise errors.ConfigurationError(f"binding {binding.name}, {named}: {each}")
            entries.append(binding_contexts.PackedEntry(each.entry).unpack())
        return entries


def _event(happened: object) -> tuple[bindings.WatchEvent, Mapping[str, Any]]:
    if not isinstance(happened, Mapping) or not {_TYPE, _OBJECT} >= happened.keys() >= {_OBJECT}:
        raise errors.ConfigurationError(
            f"an event is {{'type': 'Added' or 'Modified' or 'Deleted', 'object': …}}, not {happened!r}"
        )
    named = str(happened.get(_TYPE, bindings.WatchEvent.MODIFIED.value))
    try:
        change = bindings.WatchEvent(named)
    except ValueError:
        hint = names.did_you_mean(named, [each.value for each in bindings.WatchEvent], "write one of them")
        raise errors.ConfigurationError(f"an event cannot be of type {named!r}; {hint}") from None
    return change, happened[_OBJECT]
