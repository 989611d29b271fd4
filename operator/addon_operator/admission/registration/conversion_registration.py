"""Has the API server send custom resources here to be converted, as long as there are hooks that do it.

Only the replica that leads writes that: it knows which modules are enabled. It stays when that replica ends,
for the next one. A definition that is not there yet is taken care of when it comes.
"""

import asyncio
import collections
import contextlib
import functools
from collections.abc import Collection, Mapping
from typing import Final

from addon_operator.admission.certificates import certificate_store
from addon_operator.admission.registration import conversion_specs, registration_watch, repairs
from addon_operator.admission.registration import registration_specs as specs
from addon_operator.aio import waiting, warn_once
from addon_operator.kernel import errors as kernel_errors
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.objects import stored_objects

SETTLE_SECONDS: Final = 1.0
"""How long API servers may take to notice a change.

No API server says which state of a definition it works with, and there may be several: there is nothing to
wait for. Nor does more depend on it than how soon objects are converted. One that has not noticed that hooks
convert does what it did before there were any. One that has not noticed that they do not any more still asks,
and all objects are stored in one version then: it asks about those that are wanted in another, and whoever
wants them gets an error, and nothing is lost.
"""
_CHECK_SECONDS: Final = 30.0
_ERROR_SECONDS: Final = 5.0
_ATTEMPTS: Final = 5
_ABSENT: Final = (
    "there is no CustomResourceDefinition {name}; its objects are converted as soon as there is: have the "
    "module bring it, in crds/ or in its chart, or correct crdName"
)
_MOVING: Final = (
    "CustomResourceDefinition {name}: objects in {versions} are moved to {wanted} before conversion ends"
)
_NOT_MOVED: Final = (
    "objects of CustomResourceDefinition {name} may be stored in {versions}, where only hooks can convert "
    "them, and cannot be moved to {wanted}: {error}; have a module's hook convert them, or give the "
    "conversion up as docs/explanation/admission.md says"
)


class NotMovedError(kernel_errors.AddonOperatorError):
    """Objects are stored in a version that only a hook can convert, and cannot be moved to another one."""


class ConversionRegistrar:
    """Keeps ``spec.conversion`` of the definitions that hooks convert."""

    def __init__(
        self,
        kube: client.KubeClient,
        namespace: str,
        address: specs.ClientAddress,
        certificates: certificate_store.CertificateStore,
        log: warn_once.Log,
        time: waiting.Time,
    ) -> None:
        """``namespace`` is the operator's own."""
        self._kube = kube
        self._namespace = namespace
        self._address = address
        self._certificates = certificates
        self._log = log
        self._time = time
        self._owners: dict[str, Mapping[str, Collection[str]]] = {}
        self._noted: dict[str, frozenset[str]] | None = None
        self._poked = certificates.calling_changed.follow()
        self._locks: dict[str, asyncio.Lock] = collections.defaultdict(asyncio.Lock)
        self._moving: dict[str, asyncio.Lock] = collections.defaultdict(asyncio.Lock)
        self._repairs: dict[str, repairs.Repairs] = collections.defaultdict(repairs.Repairs)
        self._settled: dict[str, certificate_store.Calling] = {}
        self._problems: dict[str, str] = {}
        self._leaving: dict[str, frozenset[str]] = {}
        self._trouble: dict[str, warn_once.WarnOnce] = collections.defaultdict(
            functools.partial(warn_once.WarnOnce, log)
        )

    async def register(self, owner: str, crds: Mapping[str, Collection[str]]) -> None:
        """Have these definitions converted by hooks of the owner, and no others any more.

        Returns when the API server does so, but for definitions that are not there yet.
        Raises an :class:`.AddonOperatorError` when it cannot be done.
        """
        if crds:
            self._owners[owner] = dict(crds)
        else:
            self._owners.pop(owner, None)
        gone = {crd for crd, owners in (await self._notes()).items() if owner in owners and crd not in crds}
        changed = [await self._release(crd) for crd in sorted(gone.difference(crds))]
        changed += [await self._settle(crd) for crd in sorted(crds)]
        self._poked.set()
        if any(changed):
            await self._time.sleep(SETTLE_SECONDS)

    async def let_go(self, owner: str) -> None:
        """Move the objects that only hooks of the owner can convert, and set back what it was then.

        Raises :class:`NotMovedError`, or what the API server answered instead of setting it back: then the
        hooks of the owner are still asked.
        """
        for crd in [crd for crd, owners in self._leaving.items() if owner in owners]:
            await self._let_go(crd)

    @property
    def leaving(self) -> frozenset[str]:
        """Owners whose hooks have to convert until objects are moved."""
        return frozenset().union(*self._leaving.values())

    def trouble(self, crd: str) -> str:
        """Return why objects of a definition are not converted by its hooks; empty if they are."""
        return self._problems.get(crd, "")

    async def remove(self, owner: str) -> None:
        """Set back what is converted for nobody else; the hooks of the owner have to answer until this ends.

        Raises an :class:`.AddonOperatorError` when it cannot be done: then they are still asked.
        """
        await self.register(owner, {})

    async def keep_only(self, owners: Collection[str]) -> None:
        """Set back what is converted for nobody of these, as after a module went while no operator ran.

        What the API server refuses to set back is for :meth:`let_go`.
        Raises an :class:`.AddonOperatorError` when it cannot be found out what that is.
        """
        known = {owner for noted in (await self._notes()).values() for owner in noted}
        for owner in sorted((known | self._owners.keys()).difference(owners)):
            await self.remove(owner)

    async def keep(self) -> None:
        """Look at the definitions when somebody touches them and every half minute, until cancelled.

        Errors become one warning, and are tried again.
        """
        watches: dict[str, asyncio.Task[None]] = {}
        self._certificates.keys.registered.setdefault(self, "")
        try:
            while True:
                self._poked.clear()
                self._watch(watches)
                await waiting.wait_within(self._poked, await self._look())
        finally:
            for task in watches.values():
                task.cancel()
            await asyncio.gather(*watches.values(), return_exceptions=True)

    async def keep_moving(self) -> None:
        """Let go of definitions that nobody wants converted, as soon as that can be, until cancelled.

        Beside :meth:`keep`, as there may be many objects. Errors become one warning, and are tried again.
        """
        while True:
            for crd in [*self._leaving]:
                trouble = self._trouble[crd]
                try:
                    await self._let_go(crd)
                except kernel_errors.AddonOperatorError as error:
                    trouble.warn(str(error))
                else:
                    trouble.over(f"CustomResourceDefinition {crd} needs no conversion any more")
            await self._time.sleep(_CHECK_SECONDS)

    def _watch(self, watches: dict[str, asyncio.Task[None]]) -> None:
        wanted = self._wanted_crds()
        for crd in watches.keys() - wanted:
            watches.pop(crd).cancel()
        for crd in wanted - watches.keys():
            watching = registration_watch.keep(
                self._kube, conversion_specs.COLLECTION, crd, self._poked, self._time
            )
            watches[crd] = asyncio.create_task(watching, name=f"conversion of {crd}")

    async def _look(self) -> float:
        """Return the seconds until the next look."""
        pauses = [_CHECK_SECONDS]
        key, noted = await self._called()
        for crd in sorted(self._wanted_crds() | noted):
            trouble = self._trouble[crd]
            try:
                if self._hooks_of(crd):
                    await self._settle(crd, is_repair=True)
                else:
                    await self._follow(crd)
            except kernel_errors.AddonOperatorError as error:
                self._problems[crd] = str(error)
                trouble.warn(f"the conversion of {crd} cannot be kept now: {error}")
                pauses.append(_ERROR_SECONDS)
                key = ""
            else:
                trouble.over(f"the conversion of {crd} is kept")
                if self._problems.get(crd) == _fought(crd):
                    key = ""
                pauses.append(
                    max(0.0, self._repairs[crd].allowed_at() - self._time.monotonic()) or _CHECK_SECONDS
                )
        self._certificates.keys.registered[self] = key
        return min(pauses)

    async def _called(self) -> tuple[str, set[str]]:
        """Return the key of the paths, and what is converted for hooks of which nobody spoke yet."""
        try:
            return (await self._certificates.refresh()).key, {*await self._notes()} | {*self._leaving}
        except kernel_errors.AddonOperatorError:
            return "", set()

    def _wanted_crds(self) -> set[str]:
        return {crd for crds in self._owners.values() for crd in crds}

    def _hooks_of(self, crd: str) -> tuple[tuple[str, str], ...]:
        found = {(owner, hook) for owner, crds in self._owners.items() for hook in crds.get(crd, ())}
        return tuple(sorted(found))

    async def _release(self, crd: str) -> bool:
        """Set back what nobody wants converted any more; whether that changed something.

        What is refused, as by a policy of the cluster, is left to :meth:`let_go`: it is the error of the
        module that goes, and must not keep others from running.
        """
        try:
            return await self._settle(crd)
        except api_errors.KubernetesError:
            if crd not in self._leaving:
                raise
            return False

    async def _settle(self, crd: str, *, is_repair: bool = False) -> bool:
        """Bring a definition to what it should be; whether objects are converted otherwise from now on."""
        async with self._locks[crd]:
            for _ in range(1, _ATTEMPTS):
                # Whoever was faster may be right: it is looked at again.
                with contextlib.suppress(api_errors.Conflict, api_errors.NotFound):
                    return await self._try(crd, is_repair=is_repair)
            return await self._try(crd, is_repair=is_repair)

    async def _follow(self, crd: str) -> None:
        """Keep the address up to date of a definition for which hooks are asked of which nobody spoke."""
        async with self._locks[crd]:
            calling = await self._certificates.refresh()
            try:
                live = await self._kube.get(conversion_specs.path_of(crd))
            except api_errors.NotFound:
                return
            note = conversion_specs.note_of(live)
            is_asked = conversion_specs.conversion_of(live).get("strategy") == "Webhook"
            if note is None or note.operator != self._namespace or not is_asked or self._hooks_of(crd):
                return
            patch = conversion_specs.to_set(live, self._wanted(note.hooks, calling))
            if patch is not None:
                await self._kube.patch(conversion_specs.path_of(crd), patch)

    def _wanted(
        self, hooks: tuple[tuple[str, str], ...], calling: certificate_store.Calling
    ) -> conversion_specs.Wanted:
        return conversion_specs.Wanted(self._namespace, hooks, self._address, calling.bundle, calling.key)

    async def _try(self, crd: str, *, is_repair: bool) -> bool:
        hooks = self._hooks_of(crd)
        try:
            live = await self._kube.get(conversion_specs.path_of(crd))
        except api_errors.NotFound:
            self._forget(crd)
            self._problems[crd] = _ABSENT.format(name=crd)
            return False
        if not hooks:
            return await self._set_back(live)
        calling = await self._certificates.refresh()
        self._leaving.pop(crd, None)
        patch = conversion_specs.to_set(live, self._wanted(hooks, calling))
        is_edit = is_repair and self._settled.get(crd) == calling
        if patch is not None and is_edit and not self._may_repair(crd):
            self._problems[crd] = _fought(crd)
            return False
        if patch is not None:
            await self._kube.patch(conversion_specs.path_of(crd), patch)
            self._tell(crd, is_edit=is_edit)
        self._settled[crd] = calling
        if (
            self._problems.get(crd) != _fought(crd)
            or self._time.monotonic() >= self._repairs[crd].allowed_at()
        ):
            # That it is fought over is over when it has lasted as long as the others had time to change it.
            self._problems.pop(crd, None)
        (await self._notes())[crd] = frozenset(owner for owner, _ in hooks)
        return patch is not None

    async def _set_back(self, live: client.Object) -> bool:
        name = live["metadata"]["name"]
        patch = conversion_specs.to_set_back(live, self._namespace)
        if patch is not None and (versions := conversion_specs.unconverted(live)):
            if name not in self._leaving:
                wanted = conversion_specs.storage_version(live)
                self._log.info(_MOVING.format(name=name, versions=", ".join(versions), wanted=wanted))
            self._leave(live)
            return False
        if patch is not None:
            self._leave(live)
            await self._kube.patch(conversion_specs.path_of(name), patch)
            self._log.info(f"CustomResourceDefinition {name}: spec.conversion is what it was before")
        self._leaving.pop(name, None)
        self._forget(name)
        return patch is not None

    def _leave(self, live: client.Object) -> None:
        note = conversion_specs.note_of(live)
        self._leaving[live["metadata"]["name"]] = frozenset() if note is None else note.owners

    async def _let_go(self, crd: str) -> None:
        async with self._moving[crd]:
            if crd in self._leaving and not self._hooks_of(crd):
                await self._move(crd)
                if await self._settle(crd):
                    await self._time.sleep(SETTLE_SECONDS)

    async def _move(self, crd: str) -> None:
        """Have all objects stored in one version, while they are still converted."""
        try:
            live = await self._kube.get(conversion_specs.path_of(crd))
        except api_errors.NotFound:
            return
        wanted, versions = conversion_specs.storage_version(live), conversion_specs.unconverted(live)
        if not versions:
            return
        try:
            await stored_objects.move(self._kube, crd, live["spec"], wanted)
        except api_errors.KubernetesError as error:
            raise NotMovedError(
                _NOT_MOVED.format(name=crd, versions=", ".join(versions), wanted=wanted, error=error)
            ) from error

    def _forget(self, crd: str) -> None:
        self._settled.pop(crd, None)
        self._problems.pop(crd, None)
        if self._noted is not None:
            self._noted.pop(crd, None)

    async def _notes(self) -> dict[str, frozenset[str]]:
        """Return for whom definitions of the cluster are converted, read once: nobody else writes that."""
        if self._noted is None:
            self._noted = await self._read_notes()
        return self._noted

    async def _read_notes(self) -> dict[str, frozenset[str]]:
        try:
            listed = await self._kube.list_all(conversion_specs.COLLECTION, metadata_only=True)
        except api_errors.Forbidden:
            # Without this right none was ever written.
            return {}
        notes = ((live["metadata"]["name"], conversion_specs.note_of(live)) for live in listed.items)
        return {
            name: note.owners for name, note in notes if note is not None and note.operator == self._namespace
        }

    def _tell(self, crd: str, *, is_edit: bool) -> None:
        name = f"CustomResourceDefinition {crd}"
        if is_edit:
            self._log.info(f"{name}: spec.conversion was changed by somebody and has been restored")
        elif crd in self._settled:
            self._log.info(f"{name}: spec.conversion is up to date again")
        else:
            self._log.info(f"{name}: hooks convert its objects from now on")

    def _may_repair(self, crd: str) -> bool:
        now, done = self._time.monotonic(), self._repairs[crd]
        if now < done.allowed_at():
            return False
        done.note(now)
        return True


def _fought(crd: str) -> str:
    return repairs.fought(f"spec.conversion of CustomResourceDefinition {crd}", "crd", crd)
