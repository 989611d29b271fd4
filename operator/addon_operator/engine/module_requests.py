"""What people ask of single modules: run it, try it again, leave it alone, look after it again."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from addon_operator.engine import intents, module_states, state
from addon_operator.kernel import errors, names
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.objects import module_objects, suspension
from addon_operator.modules import requirements

ACTIVATION_COMMAND: Final = "Command"
LOOK_SECONDS: Final = 0.05
"""Between two looks at a run, or a suspension, that somebody waits for."""
SEEN_SECONDS: Final = 5.0
"""How long somebody waits until this operator has seen what it wrote itself."""
_AT_REST: Final = (state.ModuleStatus.READY, state.ModuleStatus.FAILED)


class CannotRunError(errors.AddonOperatorError):
    """The module is there, and what is asked of it cannot be done as it is now."""


class ModuleRequests:
    """Hands requests on: to the engine, or to the cluster if they have to outlive this process."""

    def __init__(
        self,
        states: module_states.ModuleStates,
        inbox: intents.Inbox,
        kube: client.KubeClient,
        namespace: str,
    ) -> None:
        """``namespace`` is that of the Module objects."""
        self._states = states
        self._inbox = inbox
        self._kube = kube
        self._namespace = namespace

    def run(self, name: names.ModuleName, *, past_windows: bool = False) -> Callable[[], Awaitable[None]]:
        """Have a module run now, although nothing changed; what is returned waits for the end of that run.

        With ``past_windows`` nothing of it waits for a window this once, its removal neither.
        Raises :class:`CannotRunError` for a module that is not enabled, and whose removal is not wanted.
        """
        module = self._states[name]
        held = module.held_back
        if held is not None and held.confirm:
            raise CannotRunError(f"module {name} is being removed, which {held.waits}")
        is_removal = past_windows and held is not None and held.is_removal
        if name not in self._states.enabled and not is_removal:
            raise CannotRunError(f"module {name} is disabled ({module.reason}): enable it, and it runs")
        if is_removal and (first := self._removed_before(name)):
            raise CannotRunError(
                f"the removal of module {name} comes after that of {', '.join(first)}, which waits, too: "
                "have that done first"
            )
        is_removed = module.status is state.ModuleStatus.DELETING
        # The one under way does not count.
        awaited = module.runs + (2 if module.status is state.ModuleStatus.RUNNING else 1)
        self._inbox.put_nowait(
            intents.RunWanted(name, ACTIVATION_COMMAND, at_once=True, past_windows=past_windows)
        )

        def is_awaited() -> bool:
            is_leaving = is_removed and module.status is state.ModuleStatus.DELETING
            return name in self._states.enabled or (is_leaving and not module.last_error)

        async def ended() -> None:
            while is_awaited():
                await asyncio.sleep(LOOK_SECONDS)
                if module.runs >= awaited and module.status in _AT_REST:
                    return

        return ended

    def _removed_before(self, name: names.ModuleName) -> list[names.ModuleName]:
        dependants = requirements.dependants(self._states.modules).get(name, ())
        return [each for each in dependants if self._states[each].held_back is not None]

    def converge(self) -> None:
        """Have all modules converge, as something was allowed that waited for that."""
        self._inbox.put_nowait(intents.ConvergeWanted(ACTIVATION_COMMAND))

    def retry(self, name: names.ModuleName) -> None:
        """Try a module again now whose run, or removal, failed.

        Raises :class:`CannotRunError` if nothing of it waits for another try.
        """
        now = self._states[name]
        if now.next_try is None and not now.is_final:
            raise CannotRunError(
                f"module {name} is {now.status}, and nothing of it waits for another try: 'module run' runs "
                "it again"
            )
        self._inbox.put_nowait(intents.RetryWanted(name))

    async def suspend(self, name: names.ModuleName, wanted: suspension.Suspension) -> None:
        """Have Helm and healing leave the module alone, also after a restart; see :meth:`resume`."""
        written = wanted.annotations
        await self._annotate(name, written)
        since = written[suspension.SINCE]
        await self._seen(
            name,
            lambda found: (
                wanted.is_over(time.time())
                or (found is not None and found.annotations[suspension.SINCE] == since)
            ),
        )

    async def resume(self, name: names.ModuleName) -> None:
        """End that, and wait until it is so.

        Raises :class:`CannotRunError` if there is no Module object to write it to, or this operator does not
        see what it wrote.
        """
        await self._annotate(name, dict.fromkeys(suspension.ALL))
        await self._seen(name, lambda found: found is None)

    async def _seen(
        self, name: names.ModuleName, is_so: Callable[[suspension.Suspension | None], bool]
    ) -> None:
        def is_awaited() -> bool:
            module = self._states.get(name)
            return module is not None and not is_so(module.suspended)

        try:
            async with asyncio.timeout(SEEN_SECONDS):
                while is_awaited():  # noqa: ASYNC110 - the state is told by others, without a wait for it
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            raise CannotRunError(
                f"that is written to the Module object {self._namespace}/{name}, but this operator has not "
                f"taken it in within {SEEN_SECONDS:g} s: see its log, and whether it may watch modules"
            ) from None

    async def _annotate(self, name: names.ModuleName, annotations: dict[str, str | None]) -> None:
        try:
            await module_objects.annotate(self._kube, self._namespace, name, annotations)
        except api_errors.KubernetesError as error:
            raise CannotRunError(
                f"that could not be written to the Module object {self._namespace}/{name}: {error}"
            ) from None
