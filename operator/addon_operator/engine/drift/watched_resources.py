"""Which resources the modules' releases have, and the watches that show whether they are there."""

import abc
import asyncio
import contextlib
import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import structs

from addon_operator.engine import events
from addon_operator.engine.drift import kind_watch
from addon_operator.helm import places
from addon_operator.kernel import names
from addon_operator.kube import api_errors
from addon_operator.kube.discovery import api_resources, discovery, presence, served_apis
from addon_operator.kube.informers import informers
from addon_operator.kube.objects import own_deletions
from addon_operator.modules import crd_files, manifests

Row: TypeAlias = dict[str, str]
"""A resource as ``module resource-monitor`` shows it; ``reason`` says why it is not watched."""


_ENDED: Final = "it counts as ended, and the next revision makes it again"


class ResourceState(enum.StrEnum):
    """What is known of a resource."""

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"
    """The watch has not reported yet."""
    NOT_WATCHED = "not watched"


class Watched(msgspec.Struct, frozen=True):
    """A resource of a release whose kind is known."""

    resource: api_resources.Resource
    key: kind_watch.ObjectKey

    @property
    def deletion_key(self) -> own_deletions.DeletedObject:
        """How hooks' deletions call it."""
        group = self.resource.api_version.rpartition("/")[0]
        return own_deletions.DeletedObject(
            group, self.resource.kind, self.key.namespace or None, self.key.name
        )

    def __str__(self) -> str:
        """Name it for a person: ``ConfigMap x/y``."""
        return f"{self.resource.kind} {'/'.join(filter(None, self.key))}"


class _ModuleResources(msgspec.Struct, frozen=True):
    watched: tuple[Watched, ...] = ()
    unwatched: Mapping[manifests.ManifestResource, str] = msgspec.field(default_factory=dict)
    """With the reason."""


class ResourceListener(abc.ABC):
    """Whoever looks after the resources: :class:`.Drift` and :class:`.ModuleHealths`."""

    @abc.abstractmethod
    def followed(self, module: names.ModuleName) -> None:
        """Take note that other resources of the module are followed than before, or none any more."""

    @abc.abstractmethod
    def missing(self, modules: Iterable[names.ModuleName]) -> None:
        """Take note that resources of these modules are not there."""

    @abc.abstractmethod
    def touched(self, resource: Watched) -> None:
        """Take note that a resource is there (again), or that its content changed."""


class WatchedResources(kind_watch.KindWatchListener):
    """The resources of all releases and the watches of their kinds, which come and go with them."""

    def __init__(
        self,
        watches: informers.Informers,
        kinds: discovery.Catalog,
        probe: presence.ObjectProbe,
        tell: events.Listener,
        where: places.ReleaseLocations,
    ) -> None:
        """``where`` says in which namespace resources are whose manifest names none."""
        self._watches = watches
        self._kinds = kinds
        self.probe = probe
        """Asks the API server for single objects."""
        self._tell = tell
        self._places = where
        self._listeners: list[ResourceListener] = []
        self._followed: dict[names.ModuleName, _ModuleResources] = {}
        self._at_rest: dict[names.ModuleName, tuple[Watched, ...]] = {}
        """What modules have whose objects nobody looks after: those in maintenance."""
        self._owners: dict[own_deletions.DeletedObject, set[names.ModuleName]] = {}
        """Which modules have an object, in whatever version."""
        self._open: dict[kind_watch.KindScope, kind_watch.KindWatch] = {}
        self._may_follow: dict[api_resources.Resource, bool] = {}
        self._reported: set[tuple[str, str]] = set()
        self._shared: dict[tuple[names.ModuleName, ...], tuple[str, ...]] = {}
        self._busy = asyncio.Lock()

    def subscribe(self, listener: ResourceListener) -> None:
        """Tell the listener from now on what is missing and what returns."""
        self._listeners.append(listener)

    async def follow(
        self,
        module: names.ModuleName,
        resources: Iterable[manifests.ManifestResource],
        *,
        rests: bool = False,
    ) -> bool:
        """Follow exactly these resources of the module; say whether the kinds of all of them are known.

        ``rests``: they are the module's, and nobody looks after them. Raises what the client raises when the
        API server cannot be asked for kinds.
        """
        async with self._busy:
            resolved, complete = await self._resolve(module, resources)
            if rests:
                self._replace(module, None, at_rest=resolved.watched)
            else:
                await self._find_rights(resolved.watched)
                self._replace(module, resolved)
        return complete

    def unfollow(self, module: names.ModuleName) -> None:
        """Forget the module's resources: it has none any more."""
        self._replace(module, None)

    def missing_of(self, module: names.ModuleName) -> Iterator[Watched]:
        """Return what belongs to the module, is known not to be there, and should be."""
        followed = self._followed.get(module, _ModuleResources())
        return (each for each in followed.watched if self.is_missing(each) and self.owner(each) == module)

    def watched_of(self, module: names.ModuleName) -> tuple[Watched, ...] | None:
        """Return the module's resources that are followed; ``None`` if none of it is."""
        followed = self._followed.get(module)
        return None if followed is None else followed.watched

    def is_missing(self, watched: Watched) -> bool:
        """Say whether a resource is known not to be there, and should be: work that has ended need not."""
        watch = self._open.get(self.scope_of(watched))
        return watch is not None and watch.is_missing(watched.key) and not watch.has_ended(watched.key)

    def has_ended(self, watched: Watched) -> bool:
        """Say whether a resource is gone that counts as done: a Job or Pod."""
        watch = self._open.get(self.scope_of(watched))
        return watch is not None and watch.has_ended(watched.key)

    def title(self, module: names.ModuleName, watched: Watched) -> str:
        """Name a resource for a person who knows where the module's release is."""
        is_at_home = watched.key.namespace == self.namespace_of(module)
        return f"{watched.resource.kind} {watched.key.name}" if is_at_home else str(watched)

    def modules_of(self, watched: Watched) -> frozenset[names.ModuleName]:
        """Return the modules that have a resource."""
        watch = self._open.get(self.scope_of(watched))
        wanting = frozenset[names.ModuleName]() if watch is None else watch.wanting(watched.key)
        return wanting | (self._owners.get(watched.deletion_key, set()) & self._at_rest.keys())

    def owner(self, watched: Watched) -> names.ModuleName | None:
        """Return the module that an object belongs to: of those that have it the last in run order."""
        return max(self.modules_of(watched), key=self._places.turn, default=None)

    async def settle(self, module: names.ModuleName, patience: float) -> tuple[Watched, ...]:
        """Wait so many seconds for the first lists; gives the module's resources that are still unknown."""
        pending = [watch for watch in self._watches_of(module) if not watch.has_answered.is_set()]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                for watch in pending:
                    await watch.has_answered.wait()
        followed = self._followed.get(module, _ModuleResources())
        return tuple(each for each in followed.watched if not self._open[self.scope_of(each)].is_synced)

    def is_settled(self, module: names.ModuleName) -> bool:
        """Say whether it is known of all resources of the module that are followed whether they are there."""
        return all(watch.is_synced for watch in self._watches_of(module))

    def _watches_of(self, module: names.ModuleName) -> set[kind_watch.KindWatch]:
        followed = self._followed.get(module, _ModuleResources())
        return {self._open[self.scope_of(each)] for each in followed.watched}

    def has_definition(self, name: str) -> bool:
        """Say whether a release has the CustomResourceDefinition of that name."""
        group = crd_files.API_VERSION.partition("/")[0]
        return own_deletions.DeletedObject(group, crd_files.KIND, None, name) in self._owners

    def view(self, module: names.ModuleName) -> list[Row] | None:
        """Return the module's resources, as ``module resource-monitor`` shows them.

        ``None`` if they are not followed.
        """
        followed = self._followed.get(module)
        if followed is None:
            return None
        rows = [self._row(watched) for watched in followed.watched]
        rows += [
            _row(res.api_version, res.kind, res.namespace or "", res.name, ResourceState.NOT_WATCHED, reason)
            for res, reason in followed.unwatched.items()
        ]
        return sorted(rows, key=lambda row: (row["kind"], row["namespace"], row["name"]))

    def trouble(self) -> str | None:
        """Say why it would not be noticed if some resource disappeared, or return ``None``."""
        return next((text for watch in self._open.values() if (text := watch.health.trouble)), None)

    def _row(self, watched: Watched) -> Row:
        watch = self._open[self.scope_of(watched)]
        state = ResourceState.ABSENT if watch.is_missing(watched.key) else ResourceState.PRESENT
        if not watch.is_synced:
            state = ResourceState.NOT_WATCHED if watch.reason else ResourceState.UNKNOWN
        resource = watched.resource
        reason = watch.reason or (_ENDED if watch.has_ended(watched.key) else "")
        return _row(resource.api_version, resource.kind, *watched.key, state, reason)

    async def _resolve(
        self, module: names.ModuleName, resources: Iterable[manifests.ManifestResource]
    ) -> tuple[_ModuleResources, bool]:
        watched: list[Watched] = []
        unwatched: dict[manifests.ManifestResource, str] = {}
        complete = True
        for resource in resources:
            try:
                kind = await self._kinds.find(resource.kind, resource.api_version)
            except discovery.NoSuchKind as error:
                unwatched[resource] = str(error)
                complete = False
                continue
            if not {"list", "watch"} <= kind.verbs:
                unwatched[resource] = f"objects of the kind {kind.kind} cannot be listed and watched"
                continue
            default = self._places.of(module).namespace
            namespace = (resource.namespace or default) if kind.namespaced else ""
            watched.append(Watched(kind, kind_watch.ObjectKey(namespace, resource.name)))
        for resource, reason in unwatched.items():
            self._tell_not_watched((module,), resource.kind, reason)
        return _ModuleResources(tuple(dict.fromkeys(watched)), unwatched), complete

    def _tell_not_watched(self, modules: Sequence[names.ModuleName], kind: str, reason: str) -> None:
        fresh = [module for module in modules if (module, kind) not in self._reported]
        self._reported.update((module, kind) for module in fresh)
        if fresh:
            self._tell(events.KindNotWatched(fresh, kind, reason))

    async def _find_rights(self, watched: Iterable[Watched]) -> None:
        for resource in {each.resource for each in watched if each.resource.namespaced}:
            if resource not in self._may_follow:
                self._may_follow[resource] = await self.probe.may_follow_everywhere(resource)

    def _replace(
        self, module: names.ModuleName, now: _ModuleResources | None, *, at_rest: tuple[Watched, ...] = ()
    ) -> None:
        before = self._followed.pop(module, _ModuleResources())
        had = {*before.watched, *self._at_rest.pop(module, ())}
        for each in had:
            self._owners[each.deletion_key].discard(module)
        if now is not None:
            self._followed[module] = now
        if at_rest:
            self._at_rest[module] = at_rest
        has = {*(now or _ModuleResources()).watched, *at_rest}
        for each in has:
            self._owners.setdefault(each.deletion_key, set()).add(module)
        for each in had:
            if not self._owners.get(each.deletion_key, module):
                del self._owners[each.deletion_key]
        for scope, keys in self._by_scope((now or _ModuleResources()).watched).items():
            self._watch(scope).want(module, keys)
        staying = set((now or _ModuleResources()).watched)
        gone = [watched for watched in before.watched if watched not in staying]
        for scope, keys in self._by_scope(gone).items():
            self._open[scope].drop(module, keys)
        self._close_idle()
        self._tell_shared(module, has)
        for listener in self._listeners:
            listener.followed(module)
        self._tell_others(module, has ^ had)

    def _tell_others(self, module: names.ModuleName, passed: Iterable[Watched]) -> None:
        """Have others look at objects that may belong to them now, or did until now."""
        for each in passed:
            if others := self.modules_of(each) - {module}:
                for listener in self._listeners:
                    if self.is_missing(each):
                        listener.missing(others)
                    else:
                        listener.touched(each)

    def of_others(
        self, module: names.ModuleName, resources: Iterable[manifests.ManifestResource]
    ) -> tuple[manifests.ManifestResource, ...]:
        """Return the resources that another module has, too, and namespaces that it or the operator needs."""
        others = self._followed.keys() | self._at_rest.keys()
        homes = {self._places.of(name).namespace for name in others - {module}}
        homes.add(self._places.own_namespace)
        return tuple(
            each
            for each in resources
            if self._having(module, each) - {module}
            or (each.name in homes and each.kind == "Namespace" and each.api_version == "v1")
        )

    def owners(
        self, module: names.ModuleName, resources: Iterable[manifests.ManifestResource]
    ) -> dict[manifests.ManifestResource, names.ModuleName]:
        """Return to which modules those of the resources belong that one has: to the last in run order."""
        found = {each: self._having(module, each) for each in resources}
        return {each: max(owners, key=self._places.turn) for each, owners in found.items() if owners}

    def _having(
        self, module: names.ModuleName, resource: manifests.ManifestResource
    ) -> set[names.ModuleName]:
        """Return the modules that have what ``module`` calls so."""
        return set().union(*(self._owners.get(key, ()) for key in self._keys(module, resource)))

    async def of_gone_kinds(
        self, resources: Iterable[manifests.ManifestResource]
    ) -> tuple[manifests.ManifestResource, ...]:
        """Return the resources whose kinds are gone for good, and not only as long as a server is away.

        Raises what the client raises when the API server cannot be asked, and a :class:`.KubernetesError` as
        long as one of them may be back in a moment.
        """
        kinds = {each: discovery.Kind(each.api_version, each.kind) for each in resources}
        readable = await self._kinds.readable(kinds.values())
        unknown = [each for each, kind in kinds.items() if kind not in readable]
        if not unknown:
            return ()
        now = await served_apis.look(self._kinds, self.probe, {each.api_version for each in unknown})
        clear = [each for each in unknown if each.api_version not in now.unclear]
        gone = await self._kinds.gone(kinds[each] for each in clear)
        for each in clear:
            if kinds[each] not in gone:
                raise api_errors.KubernetesError(
                    f"the kind {each.kind} ({each.api_version}) is not served just now; if it is not back "
                    f"soon, {each.kind} {each.name} is left out"
                )
        return tuple(each for each in clear if kinds[each] in gone)

    def by_others(self, module: names.ModuleName) -> Iterator[manifests.Identity]:
        """Yield which of the module's objects others are known to have written."""
        for each in self._followed.get(module, _ModuleResources()).watched:
            if self._open[self.scope_of(each)].is_by_others(each.key):
                group = each.resource.api_version.rpartition("/")[0]
                yield group, each.resource.kind, each.key.namespace, each.key.name

    def give_up(
        self, module: names.ModuleName, resources: Iterable[manifests.ManifestResource]
    ) -> tuple[manifests.ManifestResource, ...]:
        """Return the resources that another module has, too; from now on this one does not.

        So, of two modules that give up the same at once, the second one is the last to have it.
        """
        shared = self.of_others(module, resources)
        given_up = {key for each in shared for key in self._keys(module, each)}
        now, resting = self._followed.get(module), self._at_rest.get(module, ())
        if given_up and (now is not None or resting):
            if now is not None:
                watched = tuple(each for each in now.watched if each.deletion_key not in given_up)
                now = structs.replace(now, watched=watched)
            at_rest = tuple(each for each in resting if each.deletion_key not in given_up)
            self._replace(module, now, at_rest=at_rest)
        return shared

    def _keys(
        self, module: names.ModuleName, resource: manifests.ManifestResource
    ) -> set[own_deletions.DeletedObject]:
        """Return what watches may call it: whether its kind has namespaces is not asked here."""
        group = resource.api_version.rpartition("/")[0]
        namespaces = (resource.namespace or self._places.of(module).namespace, None)
        return {own_deletions.DeletedObject(group, resource.kind, each, resource.name) for each in namespaces}

    def namespace_of(self, module: names.ModuleName) -> str:
        """Return the namespace of the module's release."""
        return self._places.of(module).namespace

    @property
    def shared(self) -> dict[tuple[names.ModuleName, ...], tuple[str, ...]]:
        """Resources, as a person calls them, by the two modules that both have them, in run order."""
        return dict(self._shared)

    def _tell_shared(self, module: names.ModuleName, watched: Iterable[Watched]) -> None:
        shared: dict[tuple[names.ModuleName, ...], list[str]] = {}
        for each in watched:
            for other in self.modules_of(each) - {module}:
                shared.setdefault(tuple(sorted((module, other), key=self._places.turn)), []).append(str(each))
        for pair in [pair for pair in self._shared if module in pair and pair not in shared]:
            del self._shared[pair]
        for pair, names_of in shared.items():
            resources = tuple(sorted(names_of))
            if self._shared.get(pair) != resources:
                self._shared[pair] = resources
                self._tell(events.ResourcesShared(pair, resources))

    def _by_scope(self, watched: Iterable[Watched]) -> dict[kind_watch.KindScope, list[kind_watch.ObjectKey]]:
        keys: dict[kind_watch.KindScope, list[kind_watch.ObjectKey]] = {}
        for each in watched:
            keys.setdefault(self.scope_of(each), []).append(each.key)
        return keys

    def scope_of(self, watched: Watched) -> kind_watch.KindScope:
        """Return what the watch covers that follows the resource."""
        everywhere = not watched.resource.namespaced or self._may_follow.get(watched.resource, True)
        return kind_watch.KindScope(watched.resource, None if everywhere else watched.key.namespace)

    def objects(self, scope: kind_watch.KindScope) -> int:
        """Say how many objects of releases there are, as far as they are followed."""
        return self._open[scope].objects if scope in self._open else 0

    def _watch(self, scope: kind_watch.KindScope) -> kind_watch.KindWatch:
        if (watch := self._open.get(scope)) is None:
            watch = kind_watch.KindWatch(scope, self)
            self._open[scope] = watch
            watch.open(self._watches)
        return watch

    def _close_idle(self) -> None:
        for scope, watch in list(self._open.items()):
            if watch.is_idle:
                watch.close()
                del self._open[scope]

    def missing(self, modules: Iterable[names.ModuleName]) -> None:
        """Pass on that objects of these modules are missing."""
        for listener in self._listeners:
            listener.missing(modules)

    def touched(self, scope: kind_watch.KindScope, key: kind_watch.ObjectKey) -> None:
        """Pass on that an object is there (again), or that its content changed."""
        watched = Watched(scope.resource, key)
        for listener in self._listeners:
            listener.touched(watched)

    def in_trouble(self, watch: kind_watch.KindWatch) -> None:
        """Report once what is not watched, unless it was before."""
        # What was followed once comes back by itself; the informers count and report their retries.
        if not watch.is_synced and watch.reason is not None:
            self._tell_not_watched(sorted(watch.modules), watch.scope.resource.kind, watch.reason)


def _row(api_version: str, kind: str, namespace: str, name: str, state: ResourceState, reason: str) -> Row:
    row: Row = {
        "resource": f"{kind} {'/'.join(filter(None, (namespace, name)))}",
        "apiVersion": api_version,
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "state": state.value,
    }
    return row | ({"reason": reason} if reason else {})
