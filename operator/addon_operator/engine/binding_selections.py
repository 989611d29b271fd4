"""From a kubernetes binding to what is asked of the API server, and what is kept of the answers."""

from addon_operator.hooks import bindings
from addon_operator.kube import informers, object_changes, object_selections, projections


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


class InformerBindings:
    """Implements :class:`addon_operator.engine.bound_kubernetes.Subscribe`."""

    def __init__(self, watches: informers.Informers, jq: projections.JqRunner) -> None:
        self._watches = watches
        self._jq = jq

    def __call__(
        self, binding: bindings.KubernetesBinding, listener: object_changes.Listener
    ) -> object_changes.Subscription:
        """Follow the objects of the binding."""
        projection = projection_of(binding, self._jq)
        return self._watches.subscribe(selection_of(binding), projection, listener)
