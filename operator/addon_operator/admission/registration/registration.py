"""Keeps webhook configurations registered as they should be, whoever else changes them.

Several replicas do so at the same time. Those that want the same never disturb each other; see
:mod:`.rollout` for those that do not. Nothing is removed at the end.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from addon_operator.admission.certificates import certificate_store
from addon_operator.admission.registration import registration_specs as specs
from addon_operator.admission.registration import rollout, upkeep
from addon_operator.aio import waiting, warn_once
from addon_operator.kernel import errors as kernel_errors
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client, retries
from addon_operator.kube.informers import shared_watches, watch_health

_LABELS: Final = {"app.kubernetes.io/managed-by": "addon-operator"}
_FORBIDDEN_SECONDS: Final = 60.0


class ConfigurationMissingError(kernel_errors.AddonOperatorError):
    """A configuration that others make is not there."""


class Registrar:
    """Keeps some configurations."""

    def __init__(
        self,
        kube: client.KubeClient,
        configurations: Sequence[specs.WebhookConfiguration],
        address: specs.ClientAddress,
        certificates: certificate_store.CertificateStore,
        log: warn_once.Log,
        watches: shared_watches.SharedWatches,
    ) -> None:
        self._keepers = [
            _Keeper(kube, one, address, certificates, log, watches.time) for one in configurations
        ]
        self._changed = certificates.calling_changed.follow()
        self._watched = configurations
        self._watches = watches
        self._trouble = warn_once.WarnOnce(log)
        self.health = watch_health.WatchHealth("the registration of webhooks")
        """Whether the configurations are looked after."""
        self._problem = ""

    async def want(self, configurations: Sequence[specs.WebhookConfiguration]) -> None:
        """Let the same objects hold other webhooks from now on; returns when that is written.

        Raises what :meth:`ensure` raises.
        """
        for keeper, configuration in zip(self._keepers, configurations, strict=True):
            keeper.want(configuration)
        await self.ensure()

    async def ensure(self) -> None:
        """Bring all configurations to what they should be, once; trouble with one holds up no other.

        Raises :class:`ConfigurationMissingError` for one that others should have made,
        :class:`.Forbidden` with the right that is missing, or another
        :class:`.AddonOperatorError`.
        """
        problems: list[kernel_errors.AddonOperatorError] = []
        for keeper in self._keepers:
            try:
                await keeper.ensure()
            except kernel_errors.AddonOperatorError as error:
                problems.append(error)
        self._problem = str(problems[0]) if problems else ""
        if problems:
            raise problems[0]

    def problem(self, kind: specs.ConfigurationKind) -> str:
        """Return why what is of a kind is not as it should be, as of the last look; empty if it is."""
        return self._problem or self._conflict(kind)

    def _conflict(self, *kinds: specs.ConfigurationKind) -> str:
        found = (keeper.conflict for keeper in self._keepers if not kinds or keeper.kind in kinds)
        return next(filter(None, found), "")

    async def keep(self) -> None:
        """Look at the configurations when somebody touches them and every half minute, until cancelled.

        Missing rights and other errors become one warning, and are tried again.
        """
        touches = [
            upkeep.Touches(self._watches, kind.resource, self._changed) for kind in specs.ConfigurationKind
        ]
        try:
            for kind, each in zip(specs.ConfigurationKind, touches, strict=True):
                each.follow(one.name for one in self._watched if one.kind is kind)
            while True:
                self._changed.clear()
                await waiting.wait_within(self._changed, await self._try())
        finally:
            for each in touches:
                each.follow(())

    async def _try(self) -> float:
        """Return the seconds until the next look."""
        try:
            await self.ensure()
        except kernel_errors.AddonOperatorError as error:
            forbidden = isinstance(error, api_errors.Forbidden)
            text = "the admission webhooks cannot be registered now"
            if forbidden:
                text = "the admission webhooks are not registered, or not repaired"
            self.health.falls(str(error))
            self._trouble.warn(f"{text}: {error}")
            return _FORBIDDEN_SECONDS if forbidden else upkeep.ERROR_SECONDS
        if conflict := self._conflict():
            self.health.falls(conflict)
            self._trouble.warn(conflict)
        else:
            self.health.stands()
            self._trouble.over("the admission webhooks are registered")
        return min((keeper.pause() for keeper in self._keepers), default=upkeep.CHECK_SECONDS)


class _Keeper:
    """Keeps one configuration."""

    def __init__(
        self,
        kube: client.KubeClient,
        configuration: specs.WebhookConfiguration,
        address: specs.ClientAddress,
        certificates: certificate_store.CertificateStore,
        log: warn_once.Log,
        time: waiting.Time,
    ) -> None:
        self._kube = kube
        self._owner: Mapping[str, Any] | None = None
        self._owner_was_read = False
        self._configuration = configuration
        self._address = address
        self._certificates = certificates
        self._log = log
        self._clock = time
        self._rollout = rollout.Rollout(specs.digest(configuration, address), time)
        self._repairs = upkeep.Repairs()
        self._written: certificate_store.Calling | None = None
        """How the API server calls, as was right last; ``None`` before the first time."""
        self._was_replaced = False
        self._settling = asyncio.Lock()

    def want(self, configuration: specs.WebhookConfiguration) -> None:
        """Keep this from now on in place of what was kept of the same name."""
        if configuration != self._configuration:
            self._configuration = configuration
            self._rollout.want(specs.digest(configuration, self._address))
            self._written = None

    @property
    def kind(self) -> specs.ConfigurationKind:
        """Of what kind the configuration is."""
        return self._configuration.kind

    @property
    def conflict(self) -> str:
        """Say that somebody undoes what is written; empty if nobody does."""
        if not self._repairs.has_conflict:
            return ""
        return upkeep.conflict(self._called, self.kind.value.lower(), self._configuration.name)

    def pause(self) -> float:
        """Return the seconds until the configuration has to be looked at again."""
        return self._repairs.pause(self._clock.monotonic())

    async def ensure(self) -> None:
        self._certificates.keys.registered.setdefault(self, "")
        async with self._settling:
            await retries.until_written(self._settle, self._clock.sleep, api_errors.NotFound)

    async def _settle(self) -> None:
        calling = await self._certificates.refresh()
        live = None
        with contextlib.suppress(api_errors.NotFound):
            live = await self._kube.get(self._configuration.path)
        wanted = specs.webhooks_of(self._configuration, self._address, calling.bundle, calling.key)
        if calling.bundle is None:
            specs.with_bundles_of(wanted, (live or {}).get("webhooks") or [])
        owner = await self._owner_reference()
        # Without webhooks it need not be there.
        is_right = not wanted if live is None else self._is_right(live, wanted, owner)
        if not is_right:
            if not self._may_write(live or {}, calling):
                self._repairs.has_conflict |= not self._rollout.waits
                return
            await self._store(live, wanted)
            self._report(calling)
        self._written = calling
        self._certificates.keys.registered[self] = calling.key
        self._rollout.settled()
        self._repairs.settled(self._clock.monotonic())

    def _is_right(
        self,
        live: Mapping[str, Any],
        wanted: Sequence[Mapping[str, Any]],
        owner: Mapping[str, Any] | None,
    ) -> bool:
        return (
            specs.is_within(list(wanted), live.get("webhooks") or [])
            and specs.is_owned(live, owner)
            and specs.is_annotated(live, self._configuration)
        )

    def _may_write(self, live: Mapping[str, Any], calling: certificate_store.Calling) -> bool:
        may_write = self._rollout.may_write(live)
        if self._rollout.is_replaced(live):
            if not self._was_replaced:
                self._log.info(f"{self._called} stays as a newer replica wants it, for some minutes")
            self._was_replaced = True
            return False
        if self._written is None:
            # A replica that has just started is the newest, but for one that was started again.
            return True
        is_due = calling != self._written or self._repairs.may_repair(self._clock.monotonic())
        return may_write and is_due

    async def _owner_reference(self, *, anew: bool = False) -> Mapping[str, Any] | None:
        """Return the operator's namespace as an owner, as far as it may be read.

        It is read once, or ``anew``, as a namespace may have been deleted and made again.
        """
        namespace = self._configuration.namespace
        if namespace and (anew or not self._owner_was_read):
            self._owner, self._owner_was_read = None, True
            with contextlib.suppress(api_errors.NotFound, api_errors.Forbidden):
                self._owner = specs.owner(await self._kube.get(paths.of("v1", "namespaces", name=namespace)))
        return self._owner

    def _metadata(self, live: Mapping[str, Any], owner: Mapping[str, Any] | None) -> dict[str, Any]:
        metadata = dict(live.get("metadata") or {"name": self._configuration.name})
        annotations = {**(metadata.get("annotations") or {}), **self._configuration.annotations}
        annotations.pop(rollout.REPLACED, None)
        metadata["annotations"] = annotations | self._rollout.annotations(live)
        if not self._configuration.made_by_others:
            metadata["labels"] = {**(metadata.get("labels") or {}), **_LABELS}
        if owner is not None:
            metadata["ownerReferences"] = specs.with_owner(metadata.get("ownerReferences") or [], owner)
        return metadata

    async def _store(self, live: Mapping[str, Any] | None, wanted: Sequence[Mapping[str, Any]]) -> None:
        configuration = self._configuration
        kind = configuration.kind.value
        if live is None and configuration.made_by_others:
            raise ConfigurationMissingError(
                f"{kind} {configuration.name} does not exist: make it, for example by 'helm upgrade', or "
                "leave WEBHOOK_CONFIGURATION out, so that the operator makes its own"
            )
        body = {
            "apiVersion": specs.API_VERSION,
            "kind": kind,
            "metadata": self._metadata(live or {}, await self._owner_reference(anew=True)),
            "webhooks": list(wanted),
        }
        if live is not None:
            # The resourceVersion that was read is in it: a change in between is a conflict.
            await self._kube.replace(configuration.path, body)
        else:
            await self._kube.create(configuration.collection, body)

    @property
    def _called(self) -> str:
        return f"{self.kind.value} {self._configuration.name}"

    def _report(self, calling: certificate_store.Calling) -> None:
        if self._written is None:
            what = "has been registered"
        elif calling != self._written:
            what = "has got the new authorities of certificates, or new paths"
        else:
            self._repairs.note(self._clock.monotonic())
            what = "was changed or removed by somebody and has been restored"
        self._log.info(f"{self._called} {what}")
