"""Has the API server send custom resources here to be converted, as long as there are hooks that do it.

Only the replica that leads writes that: it knows which modules are enabled. It stays when that replica ends,
for the next one. A definition that is not there yet is taken care of when it comes.
"""

import asyncio
import collections
import contextlib
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from addon_operator.admission.certificates import certificate_store
from addon_operator.admission.conversions import conversion_specs, converter
from addon_operator.admission.registration import registration_specs as specs
from addon_operator.admission.registration import upkeep
from addon_operator.aio import waiting, warn_once
from addon_operator.hook_contract import hook_entries
from addon_operator.kernel import errors as kernel_errors
from addon_operator.kube import api_errors
from addon_operator.kube.client import client, retries
from addon_operator.kube.informers import shared_watches

SETTLE_SECONDS: Final = 1.0
"""How long API servers may take to notice a change.

No API server says which state of a definition it works with, and there may be several: there is nothing to
wait for. Nor does more depend on it than how soon objects are converted. One that has not noticed that hooks
convert does what it did before there were any. One that has not noticed that they do not any more still asks,
and all objects are stored in one version then: it asks about those that are wanted in another, and whoever
wants them gets an error, and nothing is lost.
"""
_ABSENT: Final = (
    "there is no CustomResourceDefinition {name}; its objects are converted as soon as there is: have the "
    "module bring it, in crds/ or in its chart, or correct crdName"
)
_NEEDED: Final = (
    "objects of CustomResourceDefinition {name} may be stored in {versions}, where only hooks can convert "
    "them, so that their conversion stays: have all of them stored in {wanted}, or give it up, as "
    "docs/explanation/admission.md says"
)


class ConversionNeededError(kernel_errors.AddonOperatorError):
    """Objects may be stored in a version that only a hook can convert."""


class _Definition(msgspec.Struct):
    """A definition that hooks convert, or did."""

    trouble: warn_once.WarnOnce
    repairs: upkeep.Repairs = msgspec.field(default_factory=upkeep.Repairs)
    written: certificate_store.Calling | None = None
    """How the API server calls, as was written last."""
    problem: str = ""
    """Why objects are not converted as they should be."""
    left_by: frozenset[str] | None = None
    """Owners whose hooks convert until that can be set back; ``None`` if it is not to be set back."""


class ConversionRegistry:
    """Keeps ``spec.conversion`` of the definitions that hooks convert."""

    def __init__(
        self,
        kube: client.KubeClient,
        namespace: str,
        address: specs.ClientAddress,
        certificates: certificate_store.CertificateStore,
        log: warn_once.Log,
        served: converter.DeclaredConversions,
        watches: shared_watches.SharedWatches,
        *,
        needs_certificate: bool = False,
    ) -> None:
        """``namespace`` is the operator's own; ``served`` is what is converted here.

        ``needs_certificate``: clients without one are not answered, as with ``WEBHOOK_CLIENT_CA``.
        """
        self._kube = kube
        self._watches = watches
        self._served = served
        self._needs_certificate = needs_certificate
        self._namespace = namespace
        self._address = address
        self._certificates = certificates
        self._log = log
        self._time = watches.time
        self._owners: dict[str, Mapping[str, Collection[str]]] = {}
        self._noted: dict[str, frozenset[str]] | None = None
        self._changed = certificates.calling_changed.follow()
        self._writing = asyncio.Lock()
        self._definitions: dict[str, _Definition] = {}

    def replace(self, owner: str, entries: Sequence[hook_entries.ConversionEntry]) -> None:
        """Let these convert from now on for the owner, and none else of it."""
        self._served.replace(owner, entries)

    async def open(self, owner: str, entries: Sequence[hook_entries.ConversionEntry]) -> None:
        """Have the API server ask for these, and none else of the owner; returns when it does.

        Raises :class:`.DeclaredTwiceError` for a conversion that another hook declares, and another
        :class:`.AddonOperatorError` when it cannot be written now.
        """
        if entries and self._needs_certificate:
            raise kernel_errors.ConfigurationError(
                f"{entries[0]} cannot be registered: API servers present no certificate when they have "
                "objects converted, and WEBHOOK_CLIENT_CA asks for one; leave one of the two out"
            )
        # Those of an owner that was switched off and on again did not begin anew.
        self._served.replace(owner, entries)
        self._served.check(owner)
        hooks: dict[str, set[str]] = collections.defaultdict(set)
        for entry in entries:
            hooks[entry.binding.crd_name].add(entry.hook)
        await self.register(owner, hooks)
        await self._set_back_of(owner)

    async def register(self, owner: str, crds: Mapping[str, Collection[str]]) -> None:
        """Have these definitions converted by hooks of the owner, and no others any more.

        Returns when the API server does so, but for definitions that are not there yet.
        Raises an :class:`.AddonOperatorError` when it cannot be done.
        """
        if crds:
            self._owners[owner] = dict(crds)
        else:
            self._owners.pop(owner, None)
        noted = await self._notes()
        gone = {crd for crd, owners in noted.items() if owner in owners and crd not in crds}
        changed = [await self._release(crd) for crd in sorted(gone)]
        changed += [await self._settle(crd) for crd in sorted(crds)]
        self._changed.set()
        if any(changed):
            await self._time.sleep(SETTLE_SECONDS)

    async def let_go(self, owner: str) -> None:
        """Set back what :meth:`keep_only` could not, and wait until the owner's hooks convert nothing.

        Raises :class:`ConversionNeededError`, or what the API server answered instead of setting it back:
        then the hooks of the owner are still asked.
        """
        await self._set_back_of(owner)
        await self._served.idle(owner)

    async def _set_back_of(self, owner: str) -> None:
        left = [crd for crd, known in self._definitions.items() if owner in (known.left_by or ())]
        for crd in left:
            if self._hooks_of(crd):
                continue
            if await self._settle(crd):
                await self._time.sleep(SETTLE_SECONDS)
            elif (known := self._definitions.get(crd)) and known.left_by is not None:
                raise ConversionNeededError(known.problem)

    @property
    def leaving(self) -> frozenset[str]:
        """Owners whose hooks have to convert although they are not wanted any more."""
        return frozenset().union(*(known.left_by or () for known in self._definitions.values()))

    def trouble(self, entry: hook_entries.ConversionEntry) -> str:
        """Return why what was opened may not be asked now; empty if it is."""
        known = self._definitions.get(entry.binding.crd_name)
        return known.problem if known else ""

    async def keep_only(self, owners: Collection[str]) -> None:
        """Set back what is converted for nobody of these, as after a module went while no operator ran.

        Hooks of the others answer until this ends, and longer if they are :attr:`leaving`.
        Raises an :class:`.AddonOperatorError` when it cannot be found out what that is.
        """
        known = {owner for noted in (await self._notes()).values() for owner in noted}
        for owner in sorted((known | self._owners.keys()).difference(owners)):
            await self.register(owner, {})
        await self._served.keep_only({*owners, *self.leaving})

    async def keep(self) -> None:
        """Look at the definitions when somebody touches them and every half minute, until cancelled.

        Errors become one warning, and are tried again.
        """
        touches = upkeep.Touches(self._watches, conversion_specs.RESOURCE, self._changed)
        self._certificates.keys.registered.setdefault(self, "")
        try:
            while True:
                self._changed.clear()
                wanted = {crd for crds in self._owners.values() for crd in crds}
                touches.follow(wanted)
                await waiting.wait_within(self._changed, await self._look(wanted))
        finally:
            touches.follow(())

    async def _look(self, wanted: Collection[str]) -> float:
        """Return the seconds until the next look."""
        pauses = [upkeep.CHECK_SECONDS]
        key, noted = "", dict[str, frozenset[str]]()
        with contextlib.suppress(kernel_errors.AddonOperatorError):
            key, noted = (await self._certificates.refresh()).key, await self._notes()
        for crd in sorted({*wanted, *noted}):
            known = self._known(crd)
            try:
                if self._hooks_of(crd):
                    await self._settle(crd, is_repair=True)
                else:
                    await self._follow(crd)
            except kernel_errors.AddonOperatorError as error:
                known.problem = str(error)
                known.trouble.warn(f"the conversion of {crd} cannot be kept now: {error}")
                pauses.append(upkeep.ERROR_SECONDS)
                key = ""
                continue
            if known.left_by is not None and not self._hooks_of(crd):
                await self._release(crd)
            if crd in self._definitions and known.left_by is not None:
                known.trouble.warn(known.problem)
                continue
            known.trouble.over(f"the conversion of {crd} is kept")
            key = "" if known.repairs.has_conflict else key
            pauses.append(known.repairs.pause(self._time.monotonic()))
        self._certificates.keys.registered[self] = key
        return min(pauses)

    def _known(self, crd: str) -> _Definition:
        return self._definitions.setdefault(crd, _Definition(warn_once.WarnOnce(self._log)))

    def _hooks_of(self, crd: str) -> tuple[tuple[str, str], ...]:
        found = {(owner, hook) for owner, crds in self._owners.items() for hook in crds.get(crd, ())}
        return tuple(sorted(found))

    async def _release(self, crd: str) -> bool:
        """Set back what nobody wants converted any more; return whether that changed something.

        What is refused, as by a policy of the cluster, is for :meth:`let_go`: it is the error of the module
        that goes, and must not keep others from running.
        """
        try:
            return await self._settle(crd)
        except api_errors.KubernetesError as error:
            known = self._known(crd)
            if known.left_by is None:
                raise
            known.problem = str(error)
            return False

    async def _settle(self, crd: str, *, is_repair: bool = False) -> bool:
        """Bring a definition to what it should be; return whether objects are converted otherwise now."""
        async with self._writing:
            return await retries.until_written(
                lambda: self._try(crd, is_repair=is_repair), self._time.sleep, api_errors.NotFound
            )

    async def _try(self, crd: str, *, is_repair: bool) -> bool:
        hooks = self._hooks_of(crd)
        try:
            live = await self._kube.get(conversion_specs.path_of(crd))
        except api_errors.NotFound:
            self._forget(crd)
            self._known(crd).problem = _ABSENT.format(name=crd)
            return False
        if not hooks:
            return await self._set_back(crd, live)
        calling, known = await self._certificates.refresh(), self._known(crd)
        known.left_by = None
        patch = conversion_specs.to_set(live, self._wanted(hooks, calling))
        is_edit = is_repair and known.written == calling
        now, called = self._time.monotonic(), f"spec.conversion of CustomResourceDefinition {crd}"
        if patch is not None and is_edit:
            if not known.repairs.may_repair(now):
                known.repairs.has_conflict = True
                known.problem = upkeep.conflict(called, "crd", crd)
                return False
            known.repairs.note(now)
        if patch is not None:
            await self._kube.patch(conversion_specs.path_of(crd), patch)
            what = "hooks convert its objects from now on"
            if known.written is not None:
                what = "spec.conversion is up to date again"
            if is_edit:
                what = "spec.conversion was changed by somebody and has been restored"
            self._log.info(f"CustomResourceDefinition {crd}: {what}")
        known.written = calling
        known.repairs.settled(now)
        if not known.repairs.has_conflict:
            known.problem = ""
        (await self._notes())[crd] = frozenset(owner for owner, _ in hooks)
        return patch is not None

    def _wanted(
        self, hooks: tuple[tuple[str, str], ...], calling: certificate_store.Calling
    ) -> conversion_specs.Wanted:
        return conversion_specs.Wanted(self._namespace, hooks, self._address, calling.bundle, calling.key)

    async def _set_back(self, crd: str, live: client.Object) -> bool:
        patch = conversion_specs.to_set_back(live, self._namespace)
        if patch is None:
            self._forget(crd)
            return False
        known, note = self._known(crd), conversion_specs.note_of(live)
        known.left_by = frozenset() if note is None else note.owners
        if versions := conversion_specs.unconverted(live):
            wanted = conversion_specs.storage_version(live)
            known.problem = _NEEDED.format(name=crd, versions=", ".join(versions), wanted=wanted)
            return False
        await self._kube.patch(conversion_specs.path_of(crd), patch)
        self._log.info(f"CustomResourceDefinition {crd}: spec.conversion is what it was before")
        self._forget(crd)
        return True

    async def _follow(self, crd: str) -> None:
        """Keep the address up to date of a definition whose hooks are not registered here."""
        async with self._writing:
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

    def _forget(self, crd: str) -> None:
        self._definitions.pop(crd, None)
        if self._noted is not None:
            self._noted.pop(crd, None)

    async def _notes(self) -> dict[str, frozenset[str]]:
        """Return for whom definitions of the cluster are converted, read once: nobody else writes that."""
        if self._noted is None:
            try:
                listed = await self._kube.list_all(conversion_specs.COLLECTION, metadata_only=True)
            except api_errors.Forbidden:
                # Without this right none was ever written.
                self._noted = {}
                return self._noted
            notes = {live["metadata"]["name"]: conversion_specs.note_of(live) for live in listed.items}
            self._noted = {
                name: note.owners for name, note in notes.items() if note and note.operator == self._namespace
            }
        return self._noted
