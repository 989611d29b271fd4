"""From a kubernetes binding to what is asked of the API server, and what is kept of the answers."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from addon_operator.engine.bindings import kubernetes_binding
from addon_operator.hook_contract import jq_programs
from addon_operator.hook_contract.configuration import bindings
from addon_operator.kube.informers import informers, object_changes, object_selections, projections


def selection_of(binding: bindings.KubernetesBinding) -> object_selections.ObjectSelection:
    """The objects of a binding; equal for bindings that can share a watch."""
    chosen = binding.namespaces or bindings.NamespaceSelector()
    names = chosen.names or None
    return object_selections.ObjectSelection(
        kind=binding.kind,
        api_version=binding.api_version,
        names=binding.names,
        label_selector=binding.labels.to_query() if binding.labels else "",
        field_selector=",".join(requirement.to_query() for requirement in binding.fields),
        namespaces=names,
        namespace_labels=chosen.labels.to_query() if chosen.labels else None,
    ).canonical


def projection_of(binding: bindings.KubernetesBinding, jq: projections.JqRunner) -> projections.Projection:
    """What is kept of the objects of a binding; equal for bindings that can share it."""
    if binding.jq_filter is not None:
        return projections.JqFiltered(binding.jq_filter, binding.keep_full_objects, jq)
    return projections.FullObject(keep=binding.keep_full_objects)


class MeasuredJq:
    """Runs jq programs as another one does, and tells for how many documents and how long."""

    def __init__(self, jq: projections.JqRunner, told: Callable[[int, float], None]) -> None:
        self._jq = jq
        self._told = told

    async def run(
        self, program: str, documents: Sequence[bytes], timeout: float
    ) -> list[bytes | jq_programs.JqError]:
        """See :class:`.JqRunner`."""
        began = time.perf_counter()
        answers = await self._jq.run(program, documents, timeout)
        self._told(len(documents), time.perf_counter() - began)
        return answers


class Watches(Protocol):
    """Where objects are followed; see :class:`.Informers`."""

    def subscribe(
        self,
        selection: object_selections.ObjectSelection,
        projection: projections.Projection,
        listener: object_changes.Listener,
    ) -> informers.Subscription:
        """Begin to follow."""
        ...


class InformerBindings:
    """Implements :class:`.Subscribe`."""

    def __init__(self, watches: Watches, jq: projections.JqRunner) -> None:
        self._watches = watches
        self._jq = jq

    def __call__(
        self, binding: bindings.KubernetesBinding, listener: kubernetes_binding.BindingListener
    ) -> informers.Subscription:
        """Follow the objects of the binding; where several share a filter, the first is told of its work."""
        projection = projection_of(binding, MeasuredJq(self._jq, listener.filtered))
        return self._watches.subscribe(selection_of(binding), projection, listener)
