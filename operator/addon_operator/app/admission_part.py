"""Whether admission is part of the operator, and what it asks the rest; its own code is imported late."""

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import structlog

from addon_operator.admission import config_check
from addon_operator.aio import threads
from addon_operator.engine.sources import config_sync
from addon_operator.helm.charts import chart_slips
from addon_operator.kernel import errors, names
from addon_operator.kube.access import auth, credentials
from addon_operator.kube.client import client
from addon_operator.kube.objects import values_secret
from addon_operator.loading import module_files
from addon_operator.modules import chart_values, requirements
from addon_operator.settings import settings as settings_module
from addon_operator.telemetry import metrics
from addon_operator.values import checks, config_map_reader, inspectors, settings_checks, sources
from addon_operator.values import store as values_store

if TYPE_CHECKING:
    from addon_operator.app import admission

EDIT_SECONDS: Final = 3.5
"""For all of an edit: the API server waits for 5 s."""
_BEFORE_SECONDS: Final = 1.0
"""Of these, for what the edit would replace."""
_LEAST_SECONDS: Final = 0.5
"""For finding out what does not depend on the Secret."""
_SLIPS_SECONDS: Final = 0.5
"""For keys that are probably misspelt, after that."""
_MOST_SLIPS: Final = 10
_SECRET_SECONDS: Final = 1.0
"""For the values Secret, before that."""
_Told = tuple[tuple[str, bool], ...]
"""All that is wrong, and whether values of the Secret may be why."""
SECRET_SOURCE: Final = "the values Secret"  # noqa: S105 - a name, not a password


def is_enabled(settings: settings_module.Settings, access: auth.ClusterAccess) -> bool:
    """Say whether pods are admitted: if the API server can call this operator, unless the setting says.

    Raises :class:`.ConfigurationError` if they are not and nothing else runs.
    """
    enabled = settings.admission_server_enabled == "true"
    if settings.admission_server_enabled == "auto":
        in_cluster = isinstance(access.source, credentials.ServiceAccountSource)
        enabled = in_cluster or settings.webhook_url is not None
    if settings.admission_only and not enabled:
        raise errors.ConfigurationError(
            "ADMISSION_ONLY is set, and pods are not admitted here: set WEBHOOK_URL or "
            "ADMISSION_SERVER_ENABLED, or leave ADMISSION_ONLY out"
        )
    return enabled


class ConfigChecks:
    """Checks edits of the ConfigMap for the admission webhook, by whoever knows best at the time.

    That is the running engine, which knows what hooks enabled. A replica that does not lead, or not yet, goes
    by the files and their schemas.
    """

    def __init__(
        self,
        modules: module_files.LoadedModules,
        settings: settings_module.Settings,
        inspector: inspectors.Inspector = inspectors.HERE,
        programs: settings_checks.SettingsChecks = settings_checks.NO_PROGRAMS,
    ) -> None:
        """``inspector`` and ``programs`` read and check, within the time that the API server waits."""
        self._programs = programs
        self._modules = modules
        self._inspector = inspector
        self._names = [files.module.name for files in modules.modules]
        self._source = f"ConfigMap {settings.namespace}/{settings.config_map}"
        self._may_have_secret = settings.values_secret_name is not None
        self._secret: values_secret.ValuesSecret | None = None
        self._running: config_sync.ConfigSync | None = None

    def serve(self, running: config_sync.ConfigSync) -> None:
        """Begin to serve: the engine is there now."""
        self._running = running

    def read(self, secret: values_secret.ValuesSecret) -> None:
        """Read the values Secret for each edit, as long as the engine is not there."""
        self._secret = secret

    async def findings(self, data: config_check.Data, before: config_check.Data) -> config_check.Findings:
        """Return all that is wrong with ``data``, and unknown keys that ``before`` did not have."""
        secret = await self._secret_data() if self._running is None else None
        return await threads.run(threads.EDITS, self._findings, data, before, secret)

    async def _secret_data(self) -> config_check.Data | None:
        """Return what the values Secret holds; ``None`` if that cannot be found out."""
        if not self._may_have_secret:
            return {}
        if self._secret is None:
            return None
        try:
            async with asyncio.timeout(_SECRET_SECONDS):
                secret = await self._secret.read()
        except (errors.AddonOperatorError, TimeoutError):
            return None
        return {} if secret is None else secret.data

    def _findings(
        self, data: config_check.Data, before: config_check.Data, secret: config_check.Data | None
    ) -> config_check.Findings:
        running = self._running
        began = time.monotonic()
        with settings_checks.within(EDIT_SECONDS) as question:
            violations = self._violations(running, data, before, secret)
            has_secret = bool(secret) if running is None else running.has_secret
            alone = violations
            if violations and has_secret:
                left = max(_LEAST_SECONDS, EDIT_SECONDS - (time.monotonic() - began))
                with self._inspector.within(left):
                    alone = self._violations(running, data, before, None, is_alone=True)
        plain = {text for text, sees_secret in violations if not sees_secret}
        plain &= {text for text, _ in alone}
        now, was = self._switches(data), self._switches(before)
        known_before, odd = set(was.warnings), question.warnings
        warnings = [text for text in now.warnings if text not in known_before]
        warnings += self._slips({key: text for key, text in data.items() if before.get(key) != text})
        return config_check.Findings(
            tuple(text for text, _ in violations if text in plain),
            [*warnings, *self._removed_with(now, was), *(() if has_secret else odd)],
            tuple(text for text, _ in violations if text not in plain),
            odd if has_secret else (),
            question.compared,
        )

    def _violations(
        self,
        running: config_sync.ConfigSync | None,
        data: config_check.Data,
        before: config_check.Data,
        secret: config_check.Data | None,
        *,
        is_alone: bool = False,
    ) -> _Told:
        """Return what is wrong; ``is_alone``: as if there were no Secret, in a time that is set already."""
        if running is None:
            return self._by_files(data, before, secret)
        if is_alone:
            return running.violations(data, alone=True)
        with self._inspector.within(EDIT_SECONDS):
            return running.violations(data)

    def _by_files(
        self, data: config_check.Data, before: config_check.Data, secret: config_check.Data | None
    ) -> _Told:
        store = self._modules.store(self._inspector, self._programs)
        # What rules about transitions compare with; what cannot be read of it counts as not set.
        with self._inspector.within(_BEFORE_SECONDS):
            store.set_config(self._read(before).values)
        with self._inspector.within(EDIT_SECONDS - _BEFORE_SECONDS):
            above = self._read(secret or {}, is_secret=True)
            return self._broken(store, self._read(data), above, is_known=secret is not None)

    def _broken(
        self,
        store: values_store.ValuesStore,
        reading: config_map_reader.ConfigMapReading,
        above: config_map_reader.ConfigMapReading,
        *,
        is_known: bool,
    ) -> _Told:
        """Return what is wrong with the ConfigMap below the Secret, which may be unknown."""
        unreadable = reading.unreadable | above.unreadable
        broken = (
            violation
            for violation in checks.Checks(store).config_violations(
                dataclasses.replace(reading.values, secret=above.values)
            )
            if violation.keys[0] not in unreadable
            # What is missing may stand in a Secret that cannot be read here.
            and (is_known or not violation.is_missing_key)
            and violation.origin != SECRET_SOURCE
        )
        read = ((text, False) for text in reading.violations)
        return (*read, *((str(violation), violation.sees_secret) for violation in broken))

    def _read(
        self, data: config_check.Data, *, is_secret: bool = False
    ) -> config_map_reader.ConfigMapReading:
        source = SECRET_SOURCE if is_secret else self._source
        parse = self._inspector.parse_section
        return config_map_reader.ConfigMapReader(self._names, source, parse, is_secret=is_secret).read(data)

    def _slips(self, edited: config_check.Data) -> Iterator[str]:
        """Warn of keys in these sections that a public chart does not have, but one like it."""
        found: list[str] = []
        with (
            contextlib.suppress(inspectors.LostError, errors.AddonOperatorError),
            self._inspector.within(_SLIPS_SECONDS),
        ):
            sections = self._read(edited).values.sections
            for module in (files.module for files in self._modules.modules):
                if module.stock is not None and (section := sections.get(module.key)):
                    given, below = {self._source: section}, chart_values.has_section(module)
                    question = chart_slips.in_values, module.name, module.chart_directory, given, below
                    found += self._inspector.call(*question, gives=list[str])
        return iter(found[:_MOST_SLIPS])

    def _removed_with(self, now: sources.ConfigValues, was: sources.ConfigValues) -> Iterator[str]:
        """Say which modules go because an edit disables what they require."""
        if was.enabled == now.enabled:
            return
        store = self._modules.store(self._inspector, self._programs)

        def enabled(values: sources.ConfigValues) -> set[names.ModuleName]:
            store.set_config(values)
            return {name for name in self._names if store.flag(name).enabled}

        there, left = enabled(was), enabled(now)
        gone = there - left
        known = requirements.in_run_order(files.module for files in self._modules.modules)
        on = [module for module in known if module.name in left]
        for module in on:
            if not gone.isdisjoint(requirements.required(module)):
                gone.add(module.name)
        yield from requirements.removed_with(on, gone, len(known))

    def _switches(self, data: config_check.Data) -> sources.ConfigValues:
        """Read switches and unknown keys, and no sections."""
        # Modules come and go while the engine runs.
        known = self._names if self._running is None else self._running.modules
        return (
            config_map_reader.ConfigMapReader(known, self._source, lambda _key, _text: {}).read(data).values
        )


@contextlib.asynccontextmanager
async def serving(
    settings: settings_module.Settings,
    access: auth.ClusterAccess,
    checker: ConfigChecks,
    meters: metrics.Metrics,
    log: structlog.typing.FilteringBoundLogger,
    environ: Mapping[str, str],
) -> AsyncIterator["admission.Admission | None"]:
    """Serve admission until the context ends, if the settings want it.

    Raises what :meth:`.Admission.start` raises.
    """
    if not is_enabled(settings, access):
        log.info("pods are not admitted with PodPresets: see ADMISSION_SERVER_ENABLED and WEBHOOK_URL")
        yield None
        return
    from addon_operator.app import admission

    async with client.KubeClient(access, done=meters.request_done) as kube:
        # Admission by itself has no right to read it.
        if not settings.admission_only and (name := settings.values_secret_name) is not None:
            checker.read(values_secret.ValuesSecret(kube, settings.namespace, name))
        part = admission.Admission(settings, kube, checker.findings, meters, log, environ.get("HOSTNAME", ""))
        await part.start()
        try:
            yield part
        finally:
            await part.stop()
