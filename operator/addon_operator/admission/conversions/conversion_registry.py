"""Registers the conversions of hooks, in the replica that leads."""

import collections
from collections.abc import Collection, Sequence

from addon_operator.admission.conversions import converter
from addon_operator.admission.registration import conversion_registration
from addon_operator.hook_contract import hook_entries
from addon_operator.kernel import errors


class ConversionRegistry:
    """Has definitions point here as long as hooks convert their objects."""

    def __init__(
        self,
        registrar: conversion_registration.ConversionRegistrar,
        served: converter.DeclaredConversions,
        *,
        needs_certificate: bool = False,
    ) -> None:
        """``needs_certificate``: clients without one are not answered, as with ``WEBHOOK_CLIENT_CA``."""
        self._registrar = registrar
        self._served = served
        self._needs_certificate = needs_certificate

    async def keep(self) -> None:
        """Look after the definitions, until cancelled."""
        await self._registrar.keep()

    def replace(self, owner: str, entries: Sequence[hook_entries.ConversionEntry]) -> None:
        """Let these convert from now on for the owner, and none else of it."""
        self._served.replace(owner, entries)

    async def open(self, owner: str, entries: Sequence[hook_entries.ConversionEntry]) -> None:
        """Have the API server ask for these, and none else of the owner; returns when it does.

        Raises :class:`.DeclaredTwiceError` for a conversion that another hook declares, and another
        :class:`.AddonOperatorError` when it cannot be written now.
        """
        if entries and self._needs_certificate:
            raise errors.ConfigurationError(
                f"{entries[0]} cannot be registered: API servers present no certificate when they have "
                "objects converted, and WEBHOOK_CLIENT_CA asks for one; leave one of the two out"
            )
        # Those of an owner that was switched off and on again did not begin anew.
        self._served.replace(owner, entries)
        self._served.check(owner)
        hooks: dict[str, set[str]] = collections.defaultdict(set)
        for entry in entries:
            hooks[entry.binding.crd_name].add(entry.hook)
        await self._registrar.register(owner, hooks)
        await self._registrar.end(owner)

    def trouble(self, entry: hook_entries.ConversionEntry) -> str:
        """Return why what was opened may not be asked now; empty if it is."""
        return self._registrar.trouble(entry.binding.crd_name)

    async def keep_only(self, owners: Collection[str]) -> None:
        """Set back what is converted for all others; their hooks answer until that is done.

        Where objects may be stored in versions that only hooks convert, these go on until they are not.
        Raises an :class:`.AddonOperatorError` when it cannot be written now.
        """
        await self._registrar.keep_only(owners)
        await self._served.keep_only({*owners, *self._registrar.leaving})

    async def let_go(self, owner: str) -> None:
        """Convert nothing for the owner any more.

        Raises :class:`.ConversionNeededError` while objects may be stored in a version that only its hooks
        convert.
        """
        await self._registrar.end(owner)
        await self._served.idle(owner)
