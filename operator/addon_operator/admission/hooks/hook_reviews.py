"""Requests about which a hook decides: who answers them, and what becomes of those that nobody does.

API servers learn only by and by that a webhook is not registered any more. So what was answered once and is
not any more is allowed, as an API server that knows of it would.
"""

import asyncio
import collections
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Final, TypeAlias

from addon_operator.admission import reviews
from addon_operator.admission.hooks import hook_specs
from addon_operator.hook_contract import hook_entries
from addon_operator.hook_contract.configuration import webhook_bindings
from addon_operator.hook_contract.outputs import review_answers

Key: TypeAlias = tuple[webhook_bindings.ReviewType, str]
"""What is asked, and the webhook's name."""
Lookup: TypeAlias = Callable[[Key], Awaitable[hook_entries.WebhookEntry | None]]
"""Finds the hook that answers at a webhook; ``None`` if there is none."""

ROUTES: Final[Mapping[webhook_bindings.ReviewType, str]] = {
    asked: f"{path}{{name}}" for asked, path in hook_specs.PATHS.items()
}
_BY_PATH: Final = {path: asked for asked, path in hook_specs.PATHS.items()}
_SHOWN: Final = 300


async def _nothing(_key: Key) -> hook_entries.WebhookEntry | None:
    return None


class HookReviews(reviews.ReviewHandler):
    """Hands requests on to the hooks that answer them."""

    def __init__(self) -> None:
        self.fallback: Lookup = _nothing
        """Is asked for webhooks that are registered, and were not begun here."""
        self._entries: dict[Key, hook_entries.WebhookEntry] = {}
        self._gone: set[Key] = set()
        self._asked: collections.Counter[Key] = collections.Counter()
        self._answered = asyncio.Event()

    def replace(self, owner: str, entries: Iterable[hook_entries.WebhookEntry]) -> None:
        """Let these answer for an owner from now on; what others of it were asked is allowed."""
        wanted = {(entry.binding.type, entry.binding.name): entry for entry in entries}
        for key in [key for key, entry in self._entries.items() if entry.owner == owner]:
            if key not in wanted:
                del self._entries[key]
                self._gone.add(key)
        for key, entry in wanted.items():
            if key not in self._entries or self._entries[key].owner == owner:
                self._entries[key] = entry
        self._gone -= self._entries.keys()

    def allow(self, keys: Collection[Key]) -> None:
        """Allow whatever is still asked there: nothing is registered any more."""
        for key in keys:
            self._entries.pop(key, None)
        self._gone.update(keys)

    @property
    def places(self) -> set[tuple[str, str]]:
        """Owner and name of each hook that answers."""
        return {(entry.owner, entry.hook) for entry in self._entries.values()}

    async def idle(self, keys: Collection[Key]) -> None:
        """Wait until nothing is being answered there: bindings bound how long that takes."""
        while any(self._asked[key] for key in keys):
            self._answered.clear()
            await self._answered.wait()

    async def decide(self, review: reviews.Review) -> reviews.ReviewVerdict:
        """Have the hook answer whose webhook the path names.

        Raises :class:`.reviews.UnansweredError` if there is none.
        """
        arrived, key = time.monotonic(), _key(review.path)
        if key in self._gone:
            return reviews.ALLOWED
        entry = None if key is None else await self._found(key)
        if key is None or entry is None:
            raise reviews.UnansweredError(f"no hook answers at {review.path[:_SHOWN]!r} here")
        request = hook_entries.ReviewRequest(
            review.sent, arrived, review.seconds, review.dry_run, review.namespace, review.user
        )
        self._asked[key] += 1
        try:
            return _verdict(await entry.answer(request), entry)
        except hook_entries.NotAnsweredError as error:
            raise reviews.UnansweredError(str(error)) from error
        finally:
            self._asked[key] -= 1
            self._answered.set()

    async def _found(self, key: Key) -> hook_entries.WebhookEntry | None:
        try:
            return self._entries.get(key) or await self.fallback(key)
        except hook_entries.NotAnsweredError as error:
            raise reviews.UnansweredError(str(error)) from error


def _key(path: str) -> Key | None:
    beginning, slash, name = path.rpartition("/")
    asked = _BY_PATH.get(beginning + slash)
    return None if asked is None else (asked, name)


def _verdict(
    answer: review_answers.AdmissionAnswer, entry: hook_entries.WebhookEntry
) -> reviews.ReviewVerdict:
    message = answer.message or f"hook {entry.hook} gives no reason"
    return reviews.ReviewVerdict(answer.allowed, answer.patch, message, warnings=answer.warnings)
