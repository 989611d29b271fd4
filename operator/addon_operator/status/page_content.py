"""What the page shows, gathered at one moment."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from addon_operator.aio import turns
from addon_operator.engine import introspection, state
from addon_operator.engine.drift import watched_resources
from addon_operator.modules.health import resource_health
from addon_operator.status import health, module_status, stored_modules, told_events

_MOST_SHARED: Final = 200


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What the page shows: nothing that holds values, and all of it can be written as JSON."""

    namespace: str = ""
    state: str
    """That of the converge, in one word."""
    unready: str | None = None
    """Why the operator is not ready, without values; ``None`` if it is."""
    leader: str | None = None
    """Who leads while this replica stands by, empty if nobody does; ``None`` if it does not stand by."""
    port: int = 0
    """Where the page is served, on each replica."""
    knows_modules: bool = True
    """Whether this process has modules at all."""
    refusals: Sequence[str] = ()
    """What is wrong with the values ConfigMap or Secret as it is now, without values."""
    modules: Sequence[introspection.ModuleRow] = ()
    errors: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The last ones of modules, without values."""
    objects: Mapping[str, module_status.Shown] = dataclasses.field(default_factory=dict)
    """What the Module objects show."""
    places: Mapping[str, introspection.QueuePlace] = dataclasses.field(default_factory=dict)
    """Where modules stand in the queue ``main``."""
    global_hooks: Sequence[str] = ()
    """What of the global hooks does not work, the worst first; without values."""
    queues: Sequence[introspection.QueueHead] = ()
    shared: Sequence[tuple[str, str]] = ()
    """Modules, and an object that all of them have, as a person calls both; the first ones."""
    shared_total: int = 0
    stored: "Stored | None" = None
    """What is said of the Module objects that the modules are shown from; ``None`` if this replica knows
    its modules itself."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The Module objects, which the leader writes."""

    written: str = ""
    """When one of them was written last; RFC 3339, UTC; empty if that is not known."""
    trouble: str = ""
    """Why they cannot be followed just now."""
    trouble_since: str = ""
    """RFC 3339, UTC."""
    left_out: int = 0
    """How many are not shown, as they are too many."""
    has_events: bool = True
    """Whether the Events about modules could be read."""


@dataclasses.dataclass(frozen=True, slots=True)
class OfLeader:
    """Where a replica that stands by finds what the leader knows of modules."""

    modules: stored_modules.FollowedModules
    events: told_events.ToldEvents
    requires: Mapping[str, Sequence[str]]
    """What modules require, by their files on this replica."""


@dataclasses.dataclass(frozen=True, slots=True)
class Objects:
    """The Module objects."""

    shown: Callable[[str], module_status.Shown | None]
    """Returns what the object of a module shows."""
    recall: Callable[[], Awaitable[None]]
    """Has the Events of before known, soon."""


class PageContent:
    """Gathers what the page shows; of an operator without an engine, only its state."""

    def __init__(self, status: health.OperatorStatus, namespace: str = "", port: int = 0) -> None:
        self._status = status
        self._port = port
        self._namespace = namespace
        self._views: introspection.Introspection | None = None
        self._resources: watched_resources.WatchedResources | None = None
        self._objects: Objects | None = None
        self._of_leader: OfLeader | None = None

    def stand_in(self, of_leader: OfLeader) -> None:
        """Show what the cluster says of modules, while this replica stands by and until :meth:`show`."""
        self._of_leader = of_leader

    def show(
        self,
        views: introspection.Introspection,
        resources: watched_resources.WatchedResources,
        objects: Objects | None = None,
    ) -> None:
        """Show modules and queues as well, and which objects several modules have."""
        self._views, self._resources, self._objects = views, resources, objects
        if self._of_leader is not None:
            self._of_leader.modules.close()
            self._of_leader = None

    async def events(self, module: str) -> Sequence[module_status.ToldEvent]:
        """Return the last Events about a module, newest first."""
        found = await self._shown([module])
        return found[module]["events"] if module in found else ()

    async def since(self, modules: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """Return since when modules are as their rows say, as far as it is known."""
        shown = await self._shown([row["name"] for row in modules])
        times = {row["name"]: shown[row["name"]]["since"] for row in modules if row["name"] in shown}
        conditions = {row["name"]: _deciding(row) for row in modules}
        return {name: at for name, found in times.items() if (at := found.get(conditions[name]))}

    async def _shown(self, modules: Sequence[str]) -> dict[str, module_status.Shown]:
        if (objects := self._objects) is None:
            return {}
        await objects.recall()
        shown = await turns.mapped(lambda name: (name, objects.shown(name)), modules)
        return {name: found for name, found in shown if found is not None}

    async def gather(self) -> Content:
        """Return what there is now, gathered in pieces: others have their turn meanwhile."""
        status = self._status
        content = Content(
            namespace=self._namespace,
            state=status.converge()[0],
            unready=status.unready_reason(),
            leader=status.leader,
            port=self._port,
            knows_modules=self._views is not None,
            refusals=status.refusals(),
        )
        if self._views is None or self._resources is None:
            return await self._as_the_leader_wrote(content)
        rows = await self._views.modules()
        shown = await self._shown([row["name"] for row in rows])
        pairs = sorted(self._resources.shared.items())
        shared = [(" and ".join(modules), each) for modules, objects in pairs for each in objects]
        return dataclasses.replace(
            content,
            modules=rows,
            errors={str(name): error for name, error in self._views.errors_without_values().items()},
            objects=shown,
            places=self._views.places(),
            global_hooks=self._views.looks.of_global_hooks(),
            queues=self._views.queue_heads(),
            shared=shared[:_MOST_SHARED],
            shared_total=len(shared),
        )

    async def _as_the_leader_wrote(self, content: Content) -> Content:
        """Add what the leader wrote of the modules, if this replica stands by, or did until now."""
        of_leader = self._of_leader
        if of_leader is None or (content.leader is None and not of_leader.modules.is_followed):
            return content
        found, _ = await asyncio.gather(of_leader.modules.look(), of_leader.events.recall())
        modules = {each.row["name"]: each for each in found.modules}
        return dataclasses.replace(
            content,
            knows_modules=found.is_known,
            modules=[
                {**each.row, "requires": list(of_leader.requires.get(name, ()))}
                for name, each in modules.items()
            ],
            errors={name: error for name, each in modules.items() if (error := each.row["lastError"])},
            objects={
                name: {**each.shown, "events": of_leader.events.of(name)} for name, each in modules.items()
            },
            stored=Stored(
                written=max((each.written for each in modules.values()), default=""),
                trouble=found.trouble,
                trouble_since=found.trouble_since,
                left_out=found.total - len(found.modules),
                has_events=of_leader.events.is_known,
            ),
        )


def _deciding(row: Mapping[str, Any]) -> str:
    """Return the condition that says how a module is: that of its health if the run went well."""
    if row["state"] == state.ModuleStatus.DISABLED:
        return "Enabled"
    is_healthy = row["health"] in ("", resource_health.HealthState.HEALTHY)
    return "Ready" if is_healthy or row["state"] != state.ModuleStatus.READY else "Healthy"
