"""Which webhooks of hooks are registered: what the replica that leads says.

It begins with what is registered already, by the replica that led before: that stays until it is known what
becomes of each module.
"""

import asyncio
import re
from collections.abc import Collection, Sequence
from typing import Final, Protocol, TypeAlias

from msgspec import structs

from addon_operator.admission.hooks import hook_reviews, hook_specs
from addon_operator.admission.registration import registration_specs
from addon_operator.hook_contract import hook_entries
from addon_operator.hook_contract.configuration import webhook_bindings
from addon_operator.kernel import errors
from addon_operator.kube import api_errors
from addon_operator.kube.client import client

Configurations: TypeAlias = Sequence[registration_specs.WebhookConfiguration]
Table: TypeAlias = dict[webhook_bindings.ReviewType, dict[str, hook_specs.Registered]]
"""What is registered, by what is asked and by name."""

SUFFIX: Final = "-hooks"
"""What the objects are called beyond those of PodPresets."""
_PLACE: Final = re.compile(r"webhooks\[(?P<number>[0-9]{1,6})\]")
"""Where something is wrong in an object that holds webhooks."""


class WebhookRefusedError(errors.AddonOperatorError):
    """The API server does not take a webhook as its hook declares it."""


class Registrar(Protocol):
    """Writes what is registered; :class:`.registration.Registrar`, or a test."""

    async def want(self, configurations: Configurations) -> None:
        """Let the objects hold these webhooks from now on; returns when that is written."""
        ...

    async def keep(self) -> None:
        """Look after the objects, until cancelled."""
        ...

    def problem(self, kind: registration_specs.ConfigurationKind) -> str:
        """Return why what is of a kind is not as it should be, as of the last look; empty if it is."""
        ...


class HookRegistry:
    """Registers the webhooks of hooks, and removes them."""

    def __init__(
        self,
        kube: client.KubeClient,
        registrar: Registrar,
        template: registration_specs.WebhookConfiguration,
        served: hook_reviews.HookReviews,
        own: Collection[str] = (),
    ) -> None:
        """``kube`` reads what is registered; ``template`` is what all objects have in common.

        ``own`` are the names of the operator's objects about which no hook is asked.
        """
        self._own = own
        self._kube = kube
        self._registrar = registrar
        self._template = template
        self._served = served
        self._table: Table | None = None
        self._begun: set[str] = set()
        self._is_written = True
        self._writing = asyncio.Lock()
        self._is_wanted = asyncio.Event()

    async def adopt(self) -> None:
        """Look after what is registered already; raises an :class:`.AddonOperatorError`."""
        async with self._writing:
            table = await self._read()
            if any(table.values()):
                await self._write(table)

    async def keep(self) -> None:
        """Look after what is registered, as soon as that is known, until cancelled."""
        await self._is_wanted.wait()
        await self._registrar.keep()

    def replace(self, owner: str, entries: Sequence[hook_entries.WebhookEntry]) -> None:
        """Let these answer from now on what is registered of the owner; what is not among them allows."""
        self._served.replace(owner, entries)

    async def open(self, owner: str, entries: Sequence[hook_entries.WebhookEntry]) -> None:
        """Register these, and none else of the owner; returns when that is written.

        Raises :class:`.WebhookNameError` for a name that another owner has, and a
        :class:`.KubernetesError` when it cannot be written now, or the API server does not take it: then
        what was registered before stays, as what others register must not depend on it.
        """
        async with self._writing:
            table, was_written = await self._read(), self._is_written
            wanted = _copy(table, without={owner})
            self._begun.add(owner)
            for entry in entries:
                self._add(wanted, entry)
            self._served.replace(owner, entries)
            try:
                await self._write(wanted)
            except errors.AddonOperatorError as error:
                await self._write_back(table, error, was_written=was_written)
                raise _named(error, wanted, entries) from error

    async def keep_only(self, owners: Collection[str]) -> None:
        """Remove what is registered of all others; returns when that is written and nobody is asked any more.

        Raises a :class:`.KubernetesError` when it cannot be written now.
        """
        async with self._writing:
            table = await self._read()
            gone = {
                (asked, name)
                for asked, registered in table.items()
                for name, each in registered.items()
                if each.owner not in owners
            }
            self._begun &= set(owners)
            await self._write(_copy(table, without={table[asked][name].owner for asked, name in gone}))
        self._served.allow(gone)
        await self._served.idle(gone)

    async def let_go(self, owner: str) -> None:
        """Webhooks have gone with :meth:`keep_only`."""

    def trouble(self, entry: hook_entries.WebhookEntry) -> str:
        """Return why what was opened may not be asked now; empty if it is."""
        registered = (self._table or {}).get(entry.binding.type, {}).get(entry.binding.name)
        if registered is None or registered.owner != entry.owner:
            return "it is not registered any more"
        return self._registrar.problem(hook_specs.KINDS[entry.binding.type])

    def _add(self, wanted: Table, entry: hook_entries.WebhookEntry) -> None:
        registered, name = wanted[entry.binding.type], entry.binding.name
        other = registered.get(name)
        # What was registered before this process, of a module that has not begun, may have moved.
        if other is not None and other.owner in self._begun:
            place = f"module {other.owner}" if other.owner else "the global hooks"
            raise hook_entries.WebhookNameError(
                f"{entry} cannot be registered: hook {other.hook} of {place} has the name {name}, too; "
                "give one of them another name"
            )
        spec = hook_specs.spec(entry.binding, self._template.namespace, self._own)
        registered[name] = hook_specs.Registered(entry.owner, entry.hook, spec)

    async def _read(self) -> Table:
        """Return what is registered; at first, what the cluster says."""
        if self._table is None:
            self._table = {
                asked: dict(hook_specs.inherited(await self._live(kind), asked))
                for asked, kind in hook_specs.KINDS.items()
            }
            self._is_written = not any(self._table.values())
        return self._table

    async def _live(self, kind: registration_specs.ConfigurationKind) -> dict[str, object]:
        try:
            return await self._kube.get(structs.replace(self._template, kind=kind).path)
        except (api_errors.NotFound, api_errors.Forbidden):
            # Who must not read it has registered nothing.
            return {}

    async def _write(self, wanted: Table) -> None:
        """Make it what is registered, also if that cannot be written now: it will be."""
        if wanted == self._table and self._is_written:
            return
        self._table, self._is_written = wanted, False
        self._is_wanted.set()
        await self._registrar.want([self._configuration(wanted, asked) for asked in hook_specs.KINDS])
        self._is_written = True

    async def _write_back(self, table: Table, error: errors.AddonOperatorError, *, was_written: bool) -> None:
        """Make it what is registered again, after the error of something else.

        Of the two objects, one may have been written.
        """
        try:
            await self._write(table)
        except errors.AddonOperatorError:
            # Without the right to write, nothing was.
            self._is_written = was_written and isinstance(error, api_errors.Forbidden)

    def _configuration(
        self, table: Table, asked: webhook_bindings.ReviewType
    ) -> registration_specs.WebhookConfiguration:
        registered = dict(sorted(table[asked].items()))
        return structs.replace(
            self._template,
            kind=hook_specs.KINDS[asked],
            webhooks=tuple(each.spec for each in registered.values()),
            annotations={hook_specs.ANNOTATION: hook_specs.annotation(registered)},
        )


def templates(
    template: registration_specs.WebhookConfiguration,
) -> list[registration_specs.WebhookConfiguration]:
    """Return the objects without webhooks."""
    return [structs.replace(template, kind=kind) for kind in hook_specs.KINDS.values()]


def _copy(table: Table, without: Collection[str]) -> Table:
    return {
        asked: {name: each for name, each in registered.items() if each.owner not in without}
        for asked, registered in table.items()
    }


def _named(
    error: errors.AddonOperatorError, written: Table, entries: Sequence[hook_entries.WebhookEntry]
) -> errors.AddonOperatorError:
    """Return the error with the hook and its field in place of a number, if it is about one of the entries.

    ``written`` is what was to be registered.
    """
    if not isinstance(error, api_errors.ApiError) or (place := _PLACE.search(error.message)) is None:
        return error
    kinds = hook_specs.KINDS.items()
    asked = next((asked for asked, kind in kinds if kind.resource.plural == error.target.resource), None)
    number = int(place["number"])
    names = sorted(written[asked]) if asked is not None else []
    wrong = asked, names[number] if number < len(names) else ""
    entry = next((entry for entry in entries if (entry.binding.type, entry.binding.name) == wrong), None)
    if entry is None:
        return error
    said = error.message[place.start() :].replace(f"webhooks[{number}].", "")
    return WebhookRefusedError(f"the API server does not take {entry}: {said}; correct its configuration")
