"""Asking something of a module through its Module object: no right is needed but to read and patch that.

The operator answers in the object's status.
"""

import asyncio
import datetime as dt
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

import msgspec

from addon_operator.commands.outside import place as places
from addon_operator.kernel import errors, names
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client, own_user
from addon_operator.kube.objects import module_objects, suspension

RUN_SECONDS: Final = 300.0
"""How long somebody waits for the end of a run."""
_ANSWER_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.3

Object = Mapping[str, Any]


class RequestError(errors.AddonOperatorError):
    """What is asked for cannot be done, or the operator does not answer."""


class ModuleRequests(msgspec.Struct, frozen=True):
    """Requests to the operator of a place."""

    place: places.Place

    def suspend(self, name: str, reason: str, seconds: float | None, *, replaces: bool = False) -> Object:
        """Have a module left alone, with ``seconds`` for that long; the module as its row in the list.

        Raises :class:`RequestError`, also if it is suspended and this does not replace that, and what the
        client raises.
        """
        return asyncio.run(self._suspend(name, reason, seconds, replaces=replaces))

    def resume(self, name: str) -> Object:
        """Have a module looked after again; with ``unseen`` if no operator said that it was suspended.

        See :meth:`suspend`.
        """
        return asyncio.run(self._resume(name))

    def run(self, name: str, *, waits: bool, now: bool = False) -> Object:
        """Have a module run, ``now`` past windows, and wait for its end if wanted; see :meth:`suspend`."""
        return asyncio.run(self._run(name, waits=waits, now=now))

    async def _suspend(self, name: str, reason: str, seconds: float | None, *, replaces: bool) -> Object:
        async with client.KubeClient(self.place.access) as kube:
            module, now = _Module(kube, self.place, name), time.time()
            by = await own_user.OwnUser(kube).name() or ""
            until = None if seconds is None else now + seconds
            wanted = suspension.Suspension(reason, now, by, until)
            before = _suspended(await module.get())
            if before is not None and not before.is_over(now) and not replaces:
                raise RequestError(suspension.already(name, before))
            await module.annotate(wanted.annotations)
            since = wanted.annotations[suspension.SINCE]
            await module.until(
                lambda status: (
                    wanted.is_over(time.time()) or (status.get("suspended") or {}).get("since") == since
                ),
                f"the annotations that suspend module {name} are written to",
            )
            return {"name": name, "suspended": str(wanted)}

    async def _resume(self, name: str) -> Object:
        async with client.KubeClient(self.place.access) as kube:
            module = _Module(kube, self.place, name)
            found = await module.get()
            is_seen = "suspended" in _status(found)
            if suspension.SUSPENDED not in _annotations(found) and not is_seen:
                raise RequestError(f"module {name} is not suspended")
            await module.annotate(dict.fromkeys(suspension.ALL))
            removed = f"the annotations that suspend module {name} are removed from"
            if not is_seen:
                # Nothing of the status changes then, so nothing can be seen.
                return {"name": name, "unseen": f"{removed} {module}"}
            await module.until(lambda status: "suspended" not in status, removed)
            return {"name": name}

    async def _run(self, name: str, *, waits: bool, now: bool) -> Object:
        async with client.KubeClient(self.place.access) as kube:
            module = _Module(kube, self.place, name)
            found = await module.get()
            if _status(found).get("state") == "Disabled":
                raise RequestError(f"module {name} is disabled: enable it, and it runs")
            value = dt.datetime.now(dt.UTC).isoformat()
            annotation = suspension.NOW if now else suspension.RUN
            await module.annotate({annotation: value})
            if waits:
                found = await module.handled("lastHandledNow" if now else "lastHandledRun", value)
            status = _status(found)
            return {
                "name": name,
                "state": status.get("state"),
                "lastError": status.get("lastError", ""),
                "suspended": str(read) if (read := _suspended(found)) else "",
                "findings": status.get("findings") or [],
            }


def listed(place: places.Place, seconds: float) -> list[str]:
    """Return the names of all modules of a place; none if that takes longer.

    Raises what the client raises.
    """
    return _names(place, module_objects.path_of(place.namespace), seconds)


def namespaces(place: places.Place, seconds: float) -> list[str]:
    """Return the names of all namespaces of a place's cluster; see :func:`listed`."""
    return _names(place, paths.of("v1", "namespaces"), seconds)


def _names(place: places.Place, path: str, seconds: float) -> list[str]:
    async def look() -> list[str]:
        async with client.KubeClient(place.access) as kube:
            async with asyncio.timeout(seconds):
                found = await kube.list_all(path, metadata_only=True)
            return sorted(str(each["metadata"]["name"]) for each in found.items)

    try:
        return asyncio.run(look())
    except TimeoutError:
        return []


class _Module(msgspec.Struct, frozen=True):
    kube: client.KubeClient
    place: places.Place
    name: str

    async def get(self) -> Object:
        namespace = self.place.namespace
        try:
            return await self.kube.get(module_objects.path_of(namespace, self.name))
        except (api_errors.NotFound, api_errors.NotServed):
            pass
        try:
            listed = await self.kube.list_all(module_objects.path_of(namespace))
        except api_errors.NotServed:
            raise RequestError(
                f"there are no Module objects in the cluster of {self.place.access.description}: no operator "
                "is there, or it may not show them"
            ) from None
        if known := [names.ModuleName(each["metadata"]["name"]) for each in listed.items]:
            raise RequestError(names.unknown(self.name, known))
        raise RequestError(
            f"there are no modules in {self.place}: name the operator's namespace with --namespace, or "
            "another cluster with --context or --kubeconfig"
        )

    async def annotate(self, annotations: Mapping[str, str | None]) -> None:
        await module_objects.annotate(self.kube, self.place.namespace, self.name, annotations)

    def __str__(self) -> str:
        return f"the Module object {self.place.namespace}/{self.name}"

    async def until(self, is_so: Callable[[Object], bool], done: str) -> None:
        """Wait until the status says so; ``done`` is what was done to the object."""
        async for found in self._looks(_ANSWER_SECONDS):
            if is_so(_status(found)):
                return
        raise RequestError(
            f"{done} {self}, but no operator has taken that in within {_ANSWER_SECONDS:g} s: does one run "
            "there, and may it watch modules? It takes that in when it does"
        )

    async def handled(self, field: str, value: str) -> Object:
        """Wait until a field of the status says that the run was done which somebody asked for."""
        async for found in self._looks(RUN_SECONDS):
            if _status(found).get(field) == value:
                return found
        raise RequestError(
            f"{self} asks for a run, but no operator has said within {RUN_SECONDS:g} s that it ended; "
            "'module describe' shows how it goes, if one runs there"
        )

    async def _looks(self, seconds: float) -> AsyncIterator[Object]:
        ends = time.monotonic() + seconds
        yield await self.get()
        while time.monotonic() < ends:
            await asyncio.sleep(_LOOK_SECONDS)
            yield await self.get()


def _annotations(found: Object) -> Mapping[str, str]:
    return found["metadata"].get("annotations") or {}


def _status(found: Object) -> Object:
    return found.get("status") or {}


def _suspended(found: Object) -> suspension.Suspension | None:
    return suspension.read(_annotations(found), time.time())
