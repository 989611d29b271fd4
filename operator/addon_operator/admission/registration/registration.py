"""Keeps webhook configurations registered as they should be, whoever else changes them.

Several replicas do so at the same time. Those that want the same never disturb each other. Of those that want
different things, as old and new ones do during a rollout, the one that started last wins: the older will be
gone soon. What it replaces is noted in an annotation, so that an old replica that is restarted knows for some
minutes that it is not the newest, and a new one does not take it for that. Nothing is removed at the end.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from addon_operator.admission.certificates import certificate_store
from addon_operator.admission.registration import registration_specs as specs
from addon_operator.admission.registration import upkeep
from addon_operator.aio import waiting, warn_once
from addon_operator.kernel import errors as kernel_errors
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client, retries
from addon_operator.kube.informers import watch_health

DIGEST: Final = "admission.addon-operator.io/specification"
"""Annotation: digest of what the replica that wrote last wants."""
REPLACED: Final = "admission.addon-operator.io/replaced"
"""Annotation: digests of what was wanted before, each with ``@`` and the seconds since 1970 of its end."""

_LABELS: Final = {"app.kubernetes.io/managed-by": "addon-operator"}
_FORBIDDEN_SECONDS: Final = 60.0
_RESPECT_SECONDS: Final = 300.0
_ROLLOUT_SECONDS: Final = 600.0
"""How long a rollout may last, as with Deployments: what was replaced by then is that of an old replica."""


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
        time: waiting.Time,
    ) -> None:
        self._kube = kube
        self._keepers = [_Keeper(kube, one, address, certificates, log, time) for one in configurations]
        self._changed = certificates.calling_changed.follow()
        self._watched = configurations
        self._time = time
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
        return self._problem or self._fought(kind)

    def _fought(self, *kinds: specs.ConfigurationKind) -> str:
        found = (keeper.fought for keeper in self._keepers if not kinds or keeper.kind in kinds)
        return next(filter(None, found), "")

    async def keep(self) -> None:
        """Look at the configurations when somebody touches them and every half minute, until cancelled.

        Missing rights and other errors become one warning, and are tried again.
        """
        async with asyncio.TaskGroup() as tasks:
            for one in self._watched:
                tasks.create_task(
                    upkeep.watch(self._kube, one.collection, one.name, self._changed, self._time)
                )
            while True:
                self._changed.clear()
                await waiting.wait_within(self._changed, await self._try())

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
        if fought := self._fought():
            self.health.falls(fought)
            self._trouble.warn(fought)
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
        self._digest = specs.digest(configuration, address)
        self._repairs = upkeep.Repairs()
        self._was_settled = False
        self._is_another = False
        """Whether what is kept is not what this process began with: no old replica wants it."""
        self._was_left = False
        self._settled_calling: certificate_store.Calling | None = None
        self._respected: tuple[str, float] | None = None
        self._settling = asyncio.Lock()

    def want(self, configuration: specs.WebhookConfiguration) -> None:
        """Keep this from now on in place of what was kept of the same name."""
        if configuration != self._configuration:
            self._configuration = configuration
            self._digest = specs.digest(configuration, self._address)
            self._was_settled = False
            self._is_another = True
            self._respected = None

    @property
    def kind(self) -> specs.ConfigurationKind:
        """Of what kind the configuration is."""
        return self._configuration.kind

    @property
    def fought(self) -> str:
        """Say that somebody undoes what is written; empty if nobody does."""
        if not self._repairs.is_fought:
            return ""
        return upkeep.fought(self._called, self.kind.value.lower(), self._configuration.name)

    def pause(self) -> float:
        """Return the seconds until the configuration has to be looked at again."""
        return self._repairs.pause(self._clock.monotonic())

    async def ensure(self) -> None:
        self._certificates.keys.registered.setdefault(self, "")
        async with self._settling:
            await retries.until_written(self._settle, self._clock.sleep, api_errors.NotFound)

    async def _settle(self) -> None:
        calling = await self._certificates.refresh()
        live = await self._read()
        wanted = specs.webhooks_of(self._configuration, self._address, calling.bundle, calling.key)
        stored = (live or {}).get("webhooks") or []
        if calling.bundle is None:
            specs.with_bundles_of(wanted, stored)
        owner = await self._owner_reference()
        if live is None and not wanted:
            # Without webhooks it need not be there.
            self._settled(calling)
        elif live is not None and self._is_right(live, wanted, owner):
            self._settled(calling)
        elif self._is_ours_to_write(live or {}, calling):
            await self._store(live, wanted)
            self._tell(calling)
            self._settled(calling)
        elif self._respected is None:
            self._repairs.is_fought = True

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

    async def _read(self) -> Mapping[str, Any] | None:
        try:
            return await self._kube.get(self._configuration.path)
        except api_errors.NotFound:
            return None

    def _is_ours_to_write(self, live: Mapping[str, Any], calling: certificate_store.Calling) -> bool:
        now, replaced = self._clock.monotonic(), self._replaced(live)
        is_respected = self._respect(live, now)
        if self._digest in replaced and not self._is_another:
            if not self._was_left:
                self._log.info(f"{self._called} stays as a newer replica wants it, for some minutes")
            self._was_left = True
            return False
        if not self._was_settled:
            # A replica that has just started is the newest, but for one that was started again.
            return True
        if is_respected and _annotation(live, DIGEST) not in replaced:
            return False
        return self._is_rotation(calling) or self._repairs.may_repair(now)

    def _is_rotation(self, calling: certificate_store.Calling) -> bool:
        return self._was_settled and calling != self._settled_calling

    def _settled(self, calling: certificate_store.Calling) -> None:
        self._was_settled = True
        self._settled_calling = calling
        self._certificates.keys.registered[self] = calling.key
        self._respected = None
        self._repairs.settled(self._clock.monotonic())

    def _replaced(self, live: Mapping[str, Any]) -> dict[str, float]:
        """Return what replicas wanted that are old ones, and when that was replaced."""
        noted = (entry.partition("@") for entry in _annotation(live, REPLACED).split())
        since = {digest: float(end) for digest, _, end in noted if end.isdigit()}
        began = self._clock.time() - _ROLLOUT_SECONDS
        return {digest: end for digest, end in since.items() if end > began}

    def _respect(self, live: Mapping[str, Any], now: float) -> bool:
        """Return whether another replica wrote it and is left its turn, which begins when that is seen."""
        written = _annotation(live, DIGEST) or self._digest
        if written == self._digest:
            self._respected = None
            return False
        if self._respected is None or self._respected[0] != written:
            self._respected = (written, now)
        return now < self._respected[1] + _RESPECT_SECONDS

    def _metadata(self, live: Mapping[str, Any], owner: Mapping[str, Any] | None) -> dict[str, Any]:
        metadata = dict(live.get("metadata") or {"name": self._configuration.name})
        annotations = {**(metadata.get("annotations") or {}), **self._configuration.annotations}
        replaced = {_annotation(live, DIGEST): self._clock.time(), **self._replaced(live)}
        noted = [
            f"{digest}@{end:.0f}" for digest, end in replaced.items() if digest not in ("", self._digest)
        ]
        if noted and not self._is_another:
            annotations[REPLACED] = " ".join(noted)
        else:
            annotations.pop(REPLACED, None)
        metadata["annotations"] = annotations | {DIGEST: self._digest}
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

    def _tell(self, calling: certificate_store.Calling) -> None:
        name = self._called
        if not self._was_settled:
            self._log.info(f"{name} has been registered")
        elif self._is_rotation(calling):
            self._log.info(f"{name} has got the new authorities of certificates, or new paths")
        else:
            self._repairs.note(self._clock.monotonic())
            self._log.info(f"{name} was changed or removed by somebody and has been restored")


def _annotation(live: Mapping[str, Any], name: str) -> str:
    return str(((live.get("metadata") or {}).get("annotations") or {}).get(name) or "")
