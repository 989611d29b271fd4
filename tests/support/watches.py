"""Watches of objects: some that ask no API server, and those of one replica."""

from typing_extensions import override

from addon_operator.aio import waiting
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.kube.informers import (
    informers,
    object_changes,
    object_selections,
    projections,
    reflector,
    shared_watches,
)


class Subscription(informers.Subscription):
    """What a watch knows, put here by a test."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []

    @override
    def snapshot(self) -> list[bytes]:
        return self.entries

    @override
    def close(self) -> None:
        """Nothing is open."""


class Watches(informers.Informers):
    """Takes down what is watched; all see the same."""

    def __init__(self) -> None:
        self.subscription = Subscription()
        self.selections: list[object_selections.ObjectSelection] = []

    @override
    def subscribe(
        self,
        selection: object_selections.ObjectSelection,
        projection: projections.Projection,
        listener: object_changes.ObjectListener,
    ) -> informers.Subscription:
        self.selections.append(selection)
        return self.subscription


def shared(kube: client.KubeClient, time: waiting.Time) -> shared_watches.SharedWatches:
    """Watches of an API server, whose failures nobody counts."""
    catalog = discovery.Catalog(kube, time)
    return shared_watches.SharedWatches(kube, catalog, time, lambda *_: None, reflector.Tuning())
