"""A cluster whose objects are put and removed by hand, and everything that healing asks of it."""

import asyncio
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from typing_extensions import override

from addon_operator.engine import events
from addon_operator.engine.drift import (
    content_drift,
    drift,
    health_causes,
    live_contents,
    module_healths,
    restoring,
    watched_resources,
)
from addon_operator.helm import places, release_types
from addon_operator.helm.releases import releases
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName
from addon_operator.kube.client import client
from addon_operator.kube.discovery import api_resources, discovery, presence
from addon_operator.kube.informers import informers, object_changes, object_selections, projections
from addon_operator.modules import manifests
from addon_operator.modules.drift import drift_config
from addon_operator.modules.health import health_config, resource_health
from tests.support import clocks, unused
from tests.unit.engine import fakes

ALL = frozenset({"get", "list", "watch"})
CONFIG_MAP = api_resources.Resource("v1", "ConfigMap", "configmaps", True, ALL)
DEPLOYMENT = api_resources.Resource("apps/v1", "Deployment", "deployments", True, ALL)
ROLE = api_resources.Resource("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", False, ALL)
REVIEW = api_resources.Resource(
    "authorization.k8s.io/v1", "SubjectAccessReview", "reviews", False, frozenset({"create"})
)
JOB = api_resources.Resource("batch/v1", "Job", "jobs", True, ALL)
KINDS = (CONFIG_MAP, DEPLOYMENT, ROLE, REVIEW, JOB)
WEB, DB = ModuleName("web"), ModuleName("db")


def wanted(
    *names: str, resource: api_resources.Resource = CONFIG_MAP, namespace: str | None = None
) -> list[manifests.ManifestResource]:
    return [
        manifests.ManifestResource(resource.api_version, resource.kind, namespace, name) for name in names
    ]


@dataclasses.dataclass
class Subscription(informers.Subscription):
    """One open watch, driven by hand."""

    selection: object_selections.ObjectSelection
    listener: object_changes.ObjectListener
    cluster: "Cluster"
    is_open: bool = True
    synced: bool = False
    is_kind_known = True
    reason = None

    @property
    @override
    def count(self) -> int:
        return len(self.keys())

    @override
    def keys(self) -> list[object_changes.ObjectKey]:
        scope = self.selection.namespaces
        found = self.cluster.objects.get(self.selection.kind, set())
        return sorted(key for key in found if scope is None or key.namespace in scope)

    @override
    def entry(self, key: object_changes.ObjectKey) -> bytes | None:
        found = self.cluster.objects.get(self.selection.kind, set())
        return self.cluster.entries.get(key, b"{}") if key in found else None

    @override
    def snapshot(self) -> list[bytes]:
        return [entry for key in self.keys() if (entry := self.entry(key)) is not None]

    @override
    def lazy_snapshot(self) -> Sequence[bytes]:
        return self.snapshot()

    @property
    @override
    def size(self) -> int:
        return sum(map(len, self.snapshot()))

    def sync(self) -> None:
        self.synced = True
        self.listener.synced()

    @override
    def close(self) -> None:
        self.is_open = False


class Cluster(informers.Informers):
    """Objects by their kinds, and everybody who watches them or asks for them."""

    def __init__(self) -> None:
        self.places = places.ReleaseLocations("addons")
        self.objects: dict[str, set[object_changes.ObjectKey]] = {}
        self.entries: dict[object_changes.ObjectKey, bytes] = {}
        """What is kept of some of them."""
        self.kinds: list[api_resources.Resource] = list(KINDS)
        self.subscriptions: list[Subscription] = []
        self.may_list = True
        self.told: list[tuple[tuple[str, ...], str, str]] = []
        self.shares: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        self.behind: set[str] = set()
        """Names that the API server has although no watch has told of them yet."""
        self.is_late = False
        """Whether watches are behind with everything that is written here."""
        self.may_get = True
        self.error: errors.AddonOperatorError | None = None
        self.probed: list[str] = []
        self.record: release_types.Deployed | None = None
        """What the deployed revision of every release consists of; without it nothing can be restored."""
        self.record_error: errors.AddonOperatorError | None = None
        self.write_error: Exception | None = None
        self.written: list[tuple[str, Mapping[str, Any]]] = []
        self.records_read = 0
        self.looks = 0
        self.at_once = self.most_at_once = 0
        """Writes that are under way."""
        self.gate = asyncio.Event()
        """Each write waits for it."""
        self.gate.set()

    @override
    def subscribe(
        self,
        selection: object_selections.ObjectSelection,
        projection: projections.Projection,
        listener: object_changes.ObjectListener,
    ) -> informers.Subscription:
        self.subscriptions.append(Subscription(selection, listener, self))
        return self.subscriptions[-1]

    def tell(self, event: events.Event) -> None:
        match event:
            case events.KindNotWatched():
                self.told.append((tuple(event.modules), event.kind, event.reason))
            case events.ResourcesShared():
                self.shares.append((tuple(event.modules), tuple(event.resources)))

    async def write(self, way: str, body: Mapping[str, Any]) -> client.Object:
        """Take in what a client writes."""
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        await asyncio.sleep(0)
        await self.gate.wait()
        self.at_once -= 1
        if self.write_error is not None:
            raise self.write_error
        self.written.append((way, body))
        namespace = body["metadata"].get("namespace", "addons")
        resource = next(each for each in self.kinds if each.kind == body["kind"])
        if self.is_late:
            self.behind.add(body["metadata"]["name"])
        else:
            self.put(body["metadata"]["name"], resource=resource, namespace=namespace)
        return dict(body)

    @property
    def open(self) -> list[Subscription]:
        return [each for each in self.subscriptions if each.is_open]

    def sync(self) -> None:
        for each in self.open:
            if not each.synced:
                each.sync()

    def put(
        self, *names: str, resource: api_resources.Resource = CONFIG_MAP, namespace: str = "addons"
    ) -> None:
        self._change(object_changes.ChangeType.ADDED, resource, namespace, names)

    def remove(
        self, *names: str, resource: api_resources.Resource = CONFIG_MAP, namespace: str = "addons"
    ) -> None:
        self._change(object_changes.ChangeType.DELETED, resource, namespace, names)

    def _change(
        self,
        type_: object_changes.ChangeType,
        resource: api_resources.Resource,
        namespace: str,
        names: Iterable[str],
    ) -> None:
        keys = [object_changes.ObjectKey(namespace if resource.namespaced else "", name) for name in names]
        objects = self.objects.setdefault(resource.kind, set())
        is_added = type_ is object_changes.ChangeType.ADDED
        (objects.update if is_added else objects.difference_update)(keys)
        changes = [object_changes.Change(type_, key, self.entries.get(key, b"{}"), "1") for key in keys]
        for each in self.open:
            scope = each.selection.namespaces
            if each.synced and each.selection.kind == resource.kind and (not scope or namespace in scope):
                each.listener.changed(changes)


class Catalog(discovery.Catalog):
    """Knows the kinds that the cluster serves."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.away: set[str] = set()
        """Versions of kinds that may be back in a moment."""

    @override
    async def readable(self, kinds: Iterable[discovery.Kind]) -> dict[discovery.Kind, str]:
        served = {(each.api_version, each.kind) for each in self._cluster.kinds}
        return {each: each.api_version for each in kinds if each in served}

    @override
    async def gone(self, kinds: Iterable[discovery.Kind]) -> frozenset[discovery.Kind]:
        return frozenset(each for each in kinds if each.api_version not in self.away)

    @override
    async def find(self, kind: str, api_version: str | None = None) -> api_resources.Resource:
        served = (
            each for each in self._cluster.kinds if (each.kind, each.api_version) == (kind, api_version)
        )
        if (resource := next(served, None)) is None:
            raise discovery.NoSuchKind(kind, api_version)
        return resource

    @override
    async def look(self) -> discovery.Discovered:
        self._cluster.looks += 1
        versions = sorted({each.api_version for each in self._cluster.kinds})
        return discovery.Discovered("v1.31.2", tuple(map(api_resources.GroupVersion, versions)), ())


class Probe(presence.ObjectProbe):
    """Asks the cluster for single objects."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @override
    async def may_follow_everywhere(self, resource: api_resources.Resource) -> bool:
        return self._cluster.may_list

    @override
    async def exists(self, resource: api_resources.Resource, namespace: str, name: str) -> bool | None:
        cluster = self._cluster
        cluster.probed.append(name)
        if cluster.error is not None:
            raise cluster.error
        key = object_changes.ObjectKey(namespace, name)
        is_there = name in cluster.behind or key in cluster.objects.get(resource.kind, set())
        return is_there if cluster.may_get else None


class Records(releases.ReleaseManager):
    """Reads what the deployed revisions consist of."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.places = cluster.places

    @override
    async def deployed(self, module: ModuleName) -> release_types.Deployed | None:
        if self._cluster.record_error is not None:
            raise self._cluster.record_error
        self._cluster.records_read += 1
        return self._cluster.record


class Client(client.KubeClient):
    """Writes objects as Helm does."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @override
    async def create(
        self, path: str, body: Mapping[str, Any], *, query: Mapping[str, str] | None = None
    ) -> client.Object:
        assert query == {"fieldManager": "helm"}
        return await self._cluster.write(f"create {path}", body)

    @override
    async def apply(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        field_manager: str = client.FIELD_MANAGER,
        force: bool = False,
    ) -> client.Object:
        assert (field_manager, force) == ("helm", True)
        return await self._cluster.write(f"apply {path}", body)


def resources_of(cluster: Cluster) -> watched_resources.WatchedResources:
    return watched_resources.WatchedResources(
        cluster,
        Catalog(cluster),
        Probe(cluster),
        cluster.tell,
        places.ReleaseLocations("addons"),
    )


def content_of(
    resources: watched_resources.WatchedResources, absences: drift.Drift
) -> content_drift.ContentDrift:
    """What nobody changes."""
    cluster = Cluster()
    contents = live_contents.LiveContents(Client(cluster), resources)
    config = drift_config.DriftConfig(drift_config.DriftMode.IGNORE)
    return content_drift.ContentDrift(
        resources,
        absences,
        Records(cluster),
        contents,
        lambda _: config,
        lambda _: None,
        cluster.tell,
        clocks.Clock(),
    )


def _no_rules(*_: object) -> list[resource_health.ResourceHealth]:
    raise AssertionError


def healths_of(resources: watched_resources.WatchedResources) -> module_healths.ModuleHealths:
    """How modules are that nobody looks at."""
    causes = unused.unused(health_causes.HealthCauses)
    config = health_config.HealthConfig()
    nowhere = Cluster()
    return module_healths.ModuleHealths(
        nowhere, resources, causes, _no_rules, lambda _: config, nowhere.tell, fakes.Inbox(), clocks.Clock()
    )


def restorer_of(cluster: Cluster, is_brought: Callable[[str], bool] = lambda _: False) -> restoring.Restorer:
    return restoring.Restorer(
        Records(cluster),
        Client(cluster),
        is_brought=is_brought,
    )
