"""The webhooks of hooks: begun when their snapshots are there, and gone before their module goes.

Where the API server's requests come in, and how they are registered, is the business of the
:class:`WebhookRegistry` that this is given; what a hook answers is found out in :mod:`.hook_answers`.
"""

import asyncio
import contextlib
from collections.abc import Collection, Sequence
from typing import Final, Generic, Protocol, TypedDict, TypeVar

from addon_operator.engine import state
from addon_operator.engine.bindings import hook_answers
from addon_operator.hook_contract import hook_entries
from addon_operator.hook_contract.hook_entries import Answer, Binding, Request
from addon_operator.kernel import errors

DUE: Final = "that is done when its module runs"
"""Why something is not registered yet, if nothing is wrong."""
_LATE_SECONDS: Final = 1.0
"""Between two looks at objects that cannot be followed yet, such as those of a kind that does not exist."""


_Taken_contra = TypeVar("_Taken_contra", contravariant=True)


class AnsweringRow(TypedDict):
    """A webhook or a conversion, as people see it."""

    hook: str
    binding: str
    """Its key in the configuration."""
    name: str
    notRegistered: str
    """Why the API server does not ask the hook now, and what mends that; empty if it does."""
    unanswered: str
    """What went wrong with the last request that this replica got, and when, without what the hook wrote.

    Empty if it was answered. Each replica knows only its own requests.
    """


class WebhookRegistry(Protocol[_Taken_contra]):
    """Registers webhooks with the API server and passes requests to them; the site of admission does."""

    def replace(self, owner: str, entries: Sequence[_Taken_contra]) -> None:
        """Let these answer from now on what is registered of the owner; what is not among them allows."""
        ...

    async def open(self, owner: str, entries: Sequence[_Taken_contra]) -> None:
        """Register these, and none else of the owner.

        Returns when that is written. Raises an :class:`.AddonOperatorError`.
        """
        ...

    async def let_go(self, owner: str) -> None:
        """End what :meth:`keep_only` had to leave, because something depends on it; return when that is done.

        Raises an :class:`.AddonOperatorError` when it still depends on it.
        """
        ...

    def trouble(self, entry: _Taken_contra) -> str:
        """Return why something that was opened may not be asked now; empty if it is."""
        ...

    async def keep_only(self, owners: Collection[str]) -> None:
        """Remove what is registered of all others, whoever did that.

        Returns when that is written and nobody is asked any more. Raises an :class:`.AddonOperatorError`.
        """
        ...


class NoRegistry:
    """Stands for the site of admission where there is none."""

    def replace(self, owner: str, entries: Sequence[object]) -> None:
        """There is nothing to replace."""

    async def open(self, owner: str, entries: Sequence[object]) -> None:  # noqa: ARG002
        """Raise :class:`.ConfigurationError` if there is something to register."""
        if entries:
            raise errors.ConfigurationError(
                f"{entries[0]} cannot be registered: this operator serves no admission; set WEBHOOK_URL or "
                "ADMISSION_SERVER_ENABLED"
            )

    async def let_go(self, owner: str) -> None:
        """There is nothing to end."""

    def trouble(self, entry: object) -> str:  # noqa: ARG002
        """Nothing was opened."""
        return ""

    async def keep_only(self, owners: Collection[str]) -> None:
        """There is nothing to remove."""


class Webhooks(Generic[Binding, Request, Answer]):
    """Begins and ends the webhooks, or the conversions, of an owner, as :class:`.HookBindings` asks for."""

    def __init__(
        self,
        answers: hook_answers.HookAnswers[Binding, Request, Answer],
        registry: WebhookRegistry[hook_entries.Entry[Binding, Request, Answer]],
    ) -> None:
        self._answers = answers
        self._registry = registry
        self._hooks: dict[str, Sequence[state.Hook]] = {}
        self._opened: dict[str, list[hook_entries.Entry[Binding, Request, Answer]]] = {}
        self._refused: dict[str, str] = {}
        self._late: dict[str, asyncio.Task[None]] = {}

    def begin(self, owner: str, hooks: Sequence[state.Hook]) -> None:
        """Let these hooks answer, from now on, what is registered of the owner."""
        if entries := self._answers.entries(hooks):
            self._hooks[owner] = hooks
        self._registry.replace(owner, entries)

    async def open(self, owner: str, hooks: Sequence[state.Hook]) -> None:
        """Register those whose snapshots are there, and the others as soon as theirs are.

        Raises an :class:`.AddonOperatorError` when that cannot be written, or a name is taken.
        """
        self._forget_late(owner)
        if entries := self._answers.entries(hooks):
            self._hooks[owner] = hooks
        complete = [entry for hook in hooks for entry in self._answers.complete(hook)]
        await self._register(owner, complete)
        if len(complete) < len(entries):
            self._late[owner] = asyncio.create_task(
                self._open_late(owner, hooks, len(complete)), name=f"webhooks of {owner or 'global hooks'}"
            )

    def end(self, owner: str) -> None:
        """Let everything pass that the API server still asks of the owner."""
        self._forget_late(owner)
        for known in (self._hooks, self._opened, self._refused):
            known.pop(owner, None)
        self._registry.replace(owner, ())
        self._answers.forget(owner)

    async def keep_only(self, owners: Collection[str]) -> None:
        """Remove what is registered of all others, before they go.

        Raises an :class:`.AddonOperatorError` when that cannot be written.
        """
        for owner in self._late.keys() - owners:
            self._forget_late(owner)
        await self._registry.keep_only(owners)
        for owner in self._opened.keys() - owners:
            del self._opened[owner]

    async def let_go(self, owner: str) -> None:
        """End what is left of the owner; raises an :class:`.AddonOperatorError` when that cannot be done."""
        await self._registry.let_go(owner)

    @property
    def owners(self) -> Collection[str]:
        """Whose hooks are to answer something."""
        return self._hooks.keys()

    def rows(self, owner: str) -> list[AnsweringRow]:
        """Return what the owner's hooks are to answer, and whether the API server asks."""
        return [
            AnsweringRow(
                hook=entry.hook,
                binding=entry.binding.key,
                name=entry.binding.name,
                notRegistered=self._why_not(owner, hook, entry),
                unanswered=self._answers.unanswered(entry),
            )
            for hook in self._hooks.get(owner, ())
            for entry in self._answers.entries([hook])
        ]

    def _why_not(
        self, owner: str, hook: state.Hook, entry: hook_entries.Entry[Binding, Request, Answer]
    ) -> str:
        if entry in self._opened.get(owner, ()):
            return self._registry.trouble(entry)
        if owner in self._refused:
            return self._refused[owner]
        if entry not in self._answers.complete(hook):
            return "the objects of its snapshots are not listed yet"
        return DUE

    async def _register(
        self, owner: str, entries: list[hook_entries.Entry[Binding, Request, Answer]]
    ) -> None:
        try:
            await self._registry.open(owner, entries)
        except errors.AddonOperatorError as error:
            self._refused[owner] = errors.without_values(error)
            raise
        self._opened[owner] = entries
        self._refused.pop(owner, None)

    async def _open_late(self, owner: str, hooks: Sequence[state.Hook], opened: int) -> None:
        """Register what more becomes complete, until all is."""
        wanted = len(self._answers.entries(hooks))
        while opened < wanted:
            await asyncio.sleep(_LATE_SECONDS)
            complete = [entry for hook in hooks for entry in self._answers.complete(hook)]
            if len(complete) <= opened:
                continue
            # Why it cannot be registered is told with what is not.
            with contextlib.suppress(errors.AddonOperatorError):
                await self._register(owner, complete)
                opened = len(complete)

    def _forget_late(self, owner: str) -> None:
        if (late := self._late.pop(owner, None)) is not None:
            late.cancel()
