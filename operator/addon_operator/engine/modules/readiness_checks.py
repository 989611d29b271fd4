"""Asks programs of modules whether their module is ready, which counts for its health.

They are asked in turns, a few at once, from when the ``onStartup`` hooks of their module have run. What they
write to the files of a run is dropped: they are asked, and do nothing. One thing of it is read: programs of
the SDK for modules of Deckhouse end with exit code 0 when their probe fails, too, and say that in a patch of
the condition ``IsReady`` of a Module of Deckhouse.
"""

import asyncio
from typing import Final

import msgspec
from msgspec import structs

from addon_operator.documents import document_stream
from addon_operator.engine import events, module_states, state
from addon_operator.engine.drift import module_healths
from addon_operator.engine.hooks import hook_exchange, hook_failures, hook_processes
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors, names
from addon_operator.kernel.json_types import JsonObject, JsonValue
from addon_operator.modules.health import resource_health
from addon_operator.values import store

EVERY: Final = 15.0
"""Seconds between two questions to a program whose module is ready."""
SOONER: Final = 5.0
"""The same while it is not, or that is not known."""
SECONDS: Final = 30.0
"""How long a program may take to answer."""
_LOOK: Final = 1.0
_AT_ONCE: Final = 2
_MESSAGE_CHARS: Final = 500
_BINDING: Final = "readiness"
_IS_READY: Final = "IsReady"
_WRITTEN_CHARS: Final = 1 << 20
"""A patch of one status is far shorter."""
_OFF: Final = (state.ModuleStatus.DISABLED, state.ModuleStatus.DELETING)
_SETTINGS: Final = hook_config.HookSettings(execution_timeout=SECONDS)


class _Asked(msgspec.Struct):
    """A module whose program is asked."""

    hook: state.Hook
    due: float
    task: asyncio.Task[None] | None = None


class ReadinessChecks:
    """Knows which modules have to be asked, and asks."""

    def __init__(
        self,
        states: module_states.ModuleStates,
        healths: module_healths.ModuleHealths,
        runner: hook_processes.HookProcesses,
        values: store.ValuesStore,
        tell: events.Listener,
        clock: clocks.Clock,
    ) -> None:
        self._states = states
        self._healths = healths
        self._runner = runner
        self._values = values
        self._tell = tell
        self._clock = clock
        self._asked: dict[names.ModuleName, _Asked] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._probes: dict[names.ModuleName, str] = {}

    def loaded(self, module: names.ModuleName, readiness: state.Hook | None) -> None:
        """Note what the module's hooks hold; until the first answer, the module does not count as ready."""
        before = self._asked.get(module)
        if before is not None and before.hook == readiness:
            return
        self._forget(module)
        if readiness is not None:
            self._asked[module] = _Asked(readiness, self._clock.monotonic())
            self._healths.ask_readiness(module, readiness.name)

    async def work(self) -> None:
        """Ask, until cancelled."""
        try:
            while True:
                self.look()
                await asyncio.sleep(_LOOK)
        finally:
            for asked in self._asked.values():
                _end(asked)

    def look(self) -> None:
        """Begin to ask each program for which it is time."""
        now = self._clock.monotonic()
        for module, asked in list(self._asked.items()):
            current = self._states.get(module)
            if current is None or current.readiness is None:
                self._forget(module)
            elif current.started and current.status not in _OFF and asked.task is None and asked.due <= now:
                asked.task = asyncio.create_task(self._ask(module, asked), name=f"readiness of {module}")

    def _forget(self, module: names.ModuleName) -> None:
        if (asked := self._asked.pop(module, None)) is not None:
            _end(asked)
            self._healths.ask_readiness(module, None)

    async def _ask(self, module: names.ModuleName, asked: _Asked) -> None:
        is_ready = False
        try:
            async with self._turns:
                began = self._clock.time()
                health = await self._health(module, asked.hook)
            is_ready = health == resource_health.HEALTHY
            self._healths.note_readiness(module, health, began)
        except Exception as error:  # noqa: BLE001 - a defect at one must not end the questions to others
            self._tell(events.PartFailed("readiness", error, SOONER))
        finally:
            asked.task = None
            is_known = is_ready and self._healths.knows_readiness(module)
            asked.due = self._clock.monotonic() + (EVERY if is_known else SOONER)

    async def _health(self, module: names.ModuleName, hook: state.Hook) -> resource_health.ResourceHealth:
        hook = structs.replace(hook, config=hook_config.HookConfig(settings=_SETTINGS))
        values = hook_exchange.values_now(self._values, module, self._states.enabled)
        fields = {"hook": hook.name, "binding": _BINDING, "module": module}
        given = hook_exchange.Given([binding_contexts.schedule(_BINDING)], values)
        try:
            ran = await self._runner.run(hook, given, fields)
        except hook_processes.HookRunError as error:
            ended = (
                hook_failures.ending(error.result, SECONDS) if hook_failures.has_failed(error.result) else ""
            )
            text = f"{ended or 'returned invalid output'}; the operator's log shows what it wrote"
            return resource_health.ResourceHealth(resource_health.HealthState.PROGRESSING, text)
        except errors.AddonOperatorError as error:
            text = " ".join(errors.without_values(error).split())[:_MESSAGE_CHARS]
            return resource_health.ResourceHealth(resource_health.HealthState.PROGRESSING, text)
        said = await asyncio.to_thread(_failed_probe, ran.written.get(hook_exchange.KUBERNETES_PATCH, ""))
        if said is None:
            self._probes.pop(module, None)
            return resource_health.HEALTHY
        if self._probes.get(module) != said:
            self._probes[module] = said
            self._tell(events.Noted(f"{hook.name} of module {module} is not ready: {said}", module))
        text = (
            f"its probe failed, as {_IS_READY} of its Module of Deckhouse says; the operator's log says more"
        )
        return resource_health.ResourceHealth(resource_health.HealthState.PROGRESSING, text)


def _failed_probe(written: str) -> str | None:
    """Return what a program of the SDK says of its probe that failed; ``None`` if it says no such thing."""
    if _IS_READY not in written or len(written) > _WRITTEN_CHARS:
        return None
    try:
        operations = document_stream.load_json_stream(written)
    except document_stream.StreamError:
        return None
    for condition in (found for operation in operations for found in _conditions(operation)):
        if condition.get("type") == _IS_READY and condition.get("status") == "False":
            message = str(condition.get("message") or condition.get("reason") or "it says no reason")
            return " ".join(message.split())[:_MESSAGE_CHARS]
    return None


def _conditions(operation: JsonValue) -> list[JsonObject]:
    found: JsonValue = operation
    if isinstance(operation, dict) and operation.get("kind") == "Module":
        for key in ("mergePatch", "status", "conditions"):
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, list):
            return [each for each in found if isinstance(each, dict)]
    return []


def _end(asked: _Asked) -> None:
    if asked.task is not None:
        asked.task.cancel()
