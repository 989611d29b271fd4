"""Checks edits of the values ConfigMap before they are stored, and refuses them with all that is wrong."""

import asyncio
import collections
import hashlib
import weakref
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from addon_operator.admission import reviews
from addon_operator.kernel import clock
from addon_operator.kube.client import client
from addon_operator.values import config_map_reader

_OFTEN: Final = 5
_OFTEN_OF_ALL: Final = 50
_WITHIN_SECONDS: Final = 600.0
_USERS: Final = 1000
_ASKED: Final = 1000
_SPEAKS_AGAINST: Final = "data: refused, by a rule that looks at values of the Secret, which you may not read"
_TOO_OFTEN: Final = (
    f"{_OFTEN} edits were compared within {_WITHIN_SECONDS / 60:.0f} minutes with values of a Secret "
    "that you may not read; wait some minutes, or ask somebody who may"
)
_TOO_OFTEN_OF_ALL: Final = (
    f"{_OFTEN_OF_ALL} edits of all users were compared with values of the Secret within "
    f"{_WITHIN_SECONDS / 60:.0f} minutes; wait some minutes"
)
_WARNING_MAX: Final = 256
"""The API server cuts longer ones."""

Data = Mapping[str, str]
Writer = Callable[[], Awaitable[str | None]]
"""The user by whom hooks write the ConfigMap, as the API server names it; ``None`` if that is not known."""


class Findings(msgspec.Struct, frozen=True):
    """What is wrong with a state of the ConfigMap."""

    violations: Sequence[str] = ()
    """All that is wrong, one sentence each, which begins with the place and a colon."""
    warnings: Sequence[str] = ()
    """What is allowed and hardly meant."""
    of_secret: Sequence[str] = ()
    """What is wrong besides, as it would not be without the values of the Secret."""
    warnings_of_secret: Sequence[str] = ()
    """Warnings that may say something of the Secret."""
    compared: Collection[str] = ()
    """Keys of which rules or programs saw values of the Secret, whatever they found."""


MayRead = Callable[[reviews.Review], Awaitable[bool]]
"""Says whether who asks may read the values Secret."""
Check = Callable[[Data, Data], Awaitable[Findings]]
"""Finds what is wrong with the first state of the ConfigMap, which would take the place of the second."""


class ConfigCheck(reviews.ReviewHandler):
    """A handler of reviews of ConfigMaps."""

    def __init__(
        self, namespace: str, name: str, check: Check, writer: Writer, may_read: MayRead, clock: clock.Clock
    ) -> None:
        self._place = (namespace, name)
        self._check = check
        self._writer = writer
        self._may_read = may_read
        self._clock = clock
        self._answered_at: dict[str, collections.deque[float]] = {}
        """By user who may not read the Secret: when edits were answered that were compared with it."""
        self._compared_at: collections.deque[float] = collections.deque(maxlen=_OFTEN_OF_ALL)
        """The same of all users; who reaches the port can say to be anybody."""
        self._asked: dict[tuple[str, str, str], None] = {}
        """Keys, and their texts after and before an edit, of which that is known: who asks once more learns
        nothing."""
        self._turns = weakref.WeakValueDictionary[str, asyncio.Lock]()
        """Of users whose edits are being checked."""

    async def decide(self, review: reviews.Review) -> reviews.ReviewVerdict:
        """Refuse an edit of the values ConfigMap that is wrong; everything else is allowed."""
        if not self._is_edit(review) or await self._is_of_a_hook(review):
            return reviews.ALLOWED
        data, before = _data(review.object), _data(review.old_object)
        binary = _binary(review.object) - _binary(review.old_object)
        not_read = [*config_map_reader.not_read("the values ConfigMap", binary)]
        if review.operation == "UPDATE" and data == before:
            # Labels and finalizers may change, however wrong the values are.
            return reviews.ReviewVerdict(warnings=tuple(text[:_WARNING_MAX] for text in not_read))
        # One at a time, so that none of many at once is checked that is too many.
        async with self._turns.setdefault(review.user, asyncio.Lock()):
            return await self._decide(review, data, before, not_read)

    async def _decide(
        self, review: reviews.Review, data: Data, before: Data, not_read: Sequence[str]
    ) -> reviews.ReviewVerdict:
        if self._is_full(self._answered_at.get(review.user)):
            return reviews.ReviewVerdict(allowed=False, message=_TOO_OFTEN)
        findings = await self._check(data, before)
        # Of many at once none is answered that is too many, whatever the answer would be.
        if self._is_full(self._compared_at):
            return reviews.ReviewVerdict(allowed=False, message=_TOO_OFTEN_OF_ALL)
        violations, shown = [*findings.violations], [*not_read, *findings.warnings]
        if self._is_new(data, before, findings.compared) or findings.of_secret or findings.warnings_of_secret:
            self._compared_at.append(self._clock.monotonic())
            if await self._may_read(review):
                violations += findings.of_secret
                shown += findings.warnings_of_secret
            else:
                # That it fits tells as much as that it does not: a rule may refuse only the right guess.
                self._note(review.user)
                violations += [_SPEAKS_AGAINST] if findings.of_secret else []
        warnings = [text[:_WARNING_MAX] for text in shown]
        if not violations:
            return reviews.ReviewVerdict(warnings=warnings)
        message = f"the values ConfigMap would be invalid: {'; '.join(violations)}"
        causes = [reviews.cause(violation) for violation in violations]
        return reviews.ReviewVerdict(allowed=False, message=message, causes=causes, warnings=warnings)

    def _is_full(self, answered: collections.deque[float] | None) -> bool:
        """Say whether so many edits were answered that nothing is checked for now."""
        return (
            answered is not None
            and len(answered) == answered.maxlen
            and self._clock.monotonic() - answered[0] < _WITHIN_SECONDS
        )

    def _note(self, user: str) -> None:
        answered = self._answered_at.pop(user, None) or collections.deque(maxlen=_OFTEN)
        answered.append(self._clock.monotonic())
        self._answered_at[user] = answered
        while len(self._answered_at) > _USERS:
            del self._answered_at[next(iter(self._answered_at))]

    def _is_new(self, data: Data, before: Data, compared: Collection[str]) -> bool:
        """Say whether something is compared with the Secret that was not before.

        A rule about transitions sees what was there before the edit, which whoever reaches the port chooses.
        """

        def digest(state: Data, key: str) -> str:
            return hashlib.sha256(state.get(key, "").encode(errors="surrogatepass")).hexdigest()

        digests = [(key, digest(data, key), digest(before, key)) for key in compared]
        new = [each for each in digests if each not in self._asked]
        self._asked |= dict.fromkeys(new)
        while len(self._asked) > _ASKED:
            del self._asked[next(iter(self._asked))]
        return bool(new)

    def _is_edit(self, review: reviews.Review) -> bool:
        stored = review.object or {}
        name = review.name or (stored.get("metadata") or {}).get("name")
        return (
            review.operation in ("CREATE", "UPDATE")
            and not review.sub_resource
            and (review.namespace, name) == self._place
        )

    async def _is_of_a_hook(self, review: reviews.Review) -> bool:
        """Say whether a hook had the operator write this, which was checked then and passes now.

        The user is what the API server vouches for; the field manager distinguishes the operator's
        writes from what the same user does by hand.
        """
        if review.field_manager != client.FIELD_MANAGER or not review.user:
            return False
        return review.user == await self._writer()


def _binary(body: Mapping[str, Any] | None) -> set[str]:
    return set((body or {}).get("binaryData") or ())


def _data(body: Mapping[str, Any] | None) -> Data:
    return {key: str(text) for key, text in ((body or {}).get("data") or {}).items()}
