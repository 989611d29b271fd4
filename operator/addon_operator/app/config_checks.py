"""What is wrong with a proposed values ConfigMap, told by whoever knows best at the time.

That is the running engine, which knows what hooks enabled. A replica that does not lead, or not yet, goes by
the files and their schemas.
"""

import asyncio
from typing import Protocol

from addon_operator.admission import config_check
from addon_operator.app import settings as settings_module
from addon_operator.engine import config_state, module_files
from addon_operator.values import sources


class Running(Protocol):
    """The engine's state of the ConfigMap; see :class:`~addon_operator.engine.config_state.ConfigState`."""

    def violations(self, data: config_check.Data) -> tuple[str, ...]:
        """All that is wrong with it."""
        ...


class ConfigChecks:
    """Implements :class:`addon_operator.admission.config_check.Checker`."""

    def __init__(self, modules: module_files.LoadedModules, settings: settings_module.Settings) -> None:
        self._modules = modules
        self._names = [files.module.name for files in modules.modules]
        self._source = f"ConfigMap {settings.namespace}/{settings.config_map}"
        self._running: Running | None = None

    def serve(self, running: Running) -> None:
        """The engine is there now."""
        self._running = running

    async def findings(self, data: config_check.Data, before: config_check.Data) -> config_check.Findings:
        """All that is wrong with ``data``, and unknown keys that ``before`` did not have."""
        if sum(map(len, data.values())) > config_state.LARGE_BYTES:
            return await asyncio.to_thread(self._findings, data, before)
        return self._findings(data, before)

    def _findings(self, data: config_check.Data, before: config_check.Data) -> config_check.Findings:
        running = self._running
        violations = running.violations(data) if running is not None else self._by_files(data, before)
        known = set(self._read(before).values.warnings)
        warnings = [text for text in self._read(data).values.warnings if text not in known]
        return config_check.Findings(violations, warnings)

    def _by_files(self, data: config_check.Data, before: config_check.Data) -> tuple[str, ...]:
        store = self._modules.store()
        # What rules about transitions compare with; what cannot be read of it counts as not set.
        store.set_config(self._read(before).values)
        reading = self._read(data)
        broken = store.config_violations(reading.values)
        readable = (found for found in broken if found.keys[0] not in reading.unreadable)
        return (*reading.violations, *map(str, readable))

    def _read(self, data: config_check.Data) -> sources.ConfigMapReading:
        return sources.ConfigMapReader(self._names, self._source).read(data)
