"""Tells targets what becomes of modules, apart from all work: nobody waits for it.

What is due for a target at about the same time is one message. A message that its receiver does not take is
tried again for an hour; meanwhile a few more may wait behind it, and what does not fit stays due.
"""

import asyncio
import collections
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypedDict

import prometheus_client
from msgspec import structs

from addon_operator.aio import turns, waiting, warn_once
from addon_operator.kernel import clock, errors, fencing
from addon_operator.status.notifications import notify_config, patterns, sender, texts, transitions

GATHER_SECONDS: Final = 10.0
"""From what is due first until the message with all that is due then; at most ``after`` of the target."""
_BRIEF_SECONDS: Final = 1.0
"""Likewise with something that comes and goes, which may be over soon."""
GIVE_UP_SECONDS: Final = 3600.0
"""From the first try of a message to the last."""
PAUSES: Final = waiting.Backoff(5.0, 300.0)
"""Between two tries."""
MOST_WAITING: Final = 20
"""Messages of one target on their way."""
_CALM_SECONDS: Final = 0.2
"""Between two looks at least."""
_FENCED_SECONDS: Final = 1.0

SENT: Final = "sent"
RETRIED: Final = "retried"
GIVEN_UP: Final = "given_up"

Remember = Callable[[str, transitions.NotificationsDocument], None]
"""Called with a module and what is to be kept of it, which may be nothing."""


class NotifyError(errors.AddonOperatorError):
    """A target cannot be told something now."""


class TargetRow(TypedDict):
    """A target, for people."""

    name: str
    format: str
    host: str
    on: list[str]
    modules: list[str]
    after: str
    waiting: int
    """Messages on their way."""
    lastSent: str | None
    problem: str
    """Why the receiver did not take a message last, and which patterns match no module."""


class SourceDocument(TypedDict):
    """Where targets are named, and what is wrong with that."""

    secret: str
    problem: str


class Outcomes:
    """Counts messages, and says in the log what becomes of them."""

    def __init__(
        self,
        log: warn_once.Log,
        total: prometheus_client.Counter,
        targets: prometheus_client.Gauge,
        unmatched: prometheus_client.Gauge,
        tell: Callable[[str], None],
    ) -> None:
        """``total`` has the labels ``target`` and ``result``; the others count targets, and patterns.

        ``tell`` is called with what is said of patterns that match no module, once each.
        """
        self._log = log
        self._total = total
        self._targets = targets
        self._unmatched = unmatched
        self._tell = tell
        self._warned: set[tuple[str, str]] = set()
        self._trouble: dict[str, warn_once.WarnOnce] = {}

    def begin(self, target: str) -> None:
        """Show the series of a target."""
        for result in (SENT, RETRIED, GIVEN_UP):
            self._total.labels(target=target, result=result)

    def end(self, target: str) -> None:
        """Forget a target."""
        self._trouble.pop(target, None)
        self._total.remove_by_labels({"target": target})

    def configured(self, targets: int) -> None:
        """Note how many targets there are."""
        self._targets.set(targets)

    def unmatched(self, found: Mapping[str, Sequence[str]]) -> None:
        """Note patterns that match no module, by the target's name; each is said once."""
        said = {(target, text) for target, each in found.items() for text in each}
        for target, text in sorted(said - self._warned):
            warning = f"target {target} may hear of fewer modules than it should: {text}"
            self._log.warning(warning)
            self._tell(warning)
        self._warned = said
        self._unmatched.set(len(said))

    def sent(self, target: str, title: str) -> None:
        """Note a message that was taken."""
        self._total.labels(target=target, result=SENT).inc()
        self._of(target).over(f"notifications reach target {target} again")
        self._log.info(f"told target {target}: {title}")

    def retried(self, target: str, problem: str) -> None:
        """Note a try that failed, after which there will be another."""
        self._total.labels(target=target, result=RETRIED).inc()
        self._of(target).warn(f"notifications do not reach target {target}, and are tried again: {problem}")

    def given_up(self, target: str, title: str, problem: str) -> None:
        """Note a message that is not tried any more."""
        self._total.labels(target=target, result=GIVEN_UP).inc()
        self._log.warning(f"target {target} was not told: {title}: {problem}")

    def _of(self, target: str) -> warn_once.WarnOnce:
        return self._trouble.setdefault(target, warn_once.WarnOnce(self._log))


class _Outbox:
    """What one target is to be told."""

    def __init__(self, target: notify_config.Target) -> None:
        self.target = target
        self.messages: collections.deque[texts.Message] = collections.deque()
        self.arrived = asyncio.Event()
        self.ready_at: float | None = None
        """When the next message is made."""
        self.gave_up = False
        """Whether the receiver has not taken something since it took something last."""
        self.last_sent: float | None = None
        self.problem = ""
        self.task: asyncio.Task[None] | None = None

    def add(self, message: texts.Message) -> None:
        self.messages.append(message)
        self.ready_at = None
        self.arrived.set()


class Notifier:
    """Makes messages of what the ledger says is due, and sends them; to be used in one event loop."""

    def __init__(
        self,
        namespace: str,
        post: sender.Sender,
        remember: Remember,
        outcomes: Outcomes,
        fence: fencing.Fence,
        time: waiting.Time,
    ) -> None:
        """``namespace`` is the operator's; ``fence`` is asked before each try."""
        self._namespace = namespace
        self._post = post
        self._remember = remember
        self._outcomes = outcomes
        self._fence = fence
        self._time = time
        self.ledger: Final = transitions.Ledger()
        """Takes what becomes of modules; :meth:`wake` has it looked at."""
        self._config: notify_config.NotifyConfig | None = None
        self._outboxes: dict[str, _Outbox] = {}
        self._wake = asyncio.Event()
        self._patterns = patterns.Unmatched()
        self.source = SourceDocument(secret="", problem="")
        """For people: set by whoever configures."""

    def configure(self, config: notify_config.NotifyConfig) -> None:
        """Tell these targets from now on; what is on its way to one that stays is sent as it says now."""
        self._config = config
        wanted = {target.name: target for target in config.targets}
        for name in self._outboxes.keys() - wanted.keys():
            self._end(self._outboxes.pop(name))
        for name, target in wanted.items():
            outbox = self._outboxes.get(name)
            if outbox is None:
                outbox = self._outboxes[name] = _Outbox(target)
                self._outcomes.begin(name)
            elif outbox.target != target:
                # What the old address did not take may be right for the new one.
                self.ledger.try_again(name)
                outbox.target, outbox.problem = target, ""
                self._stop(outbox)
            if outbox.task is None:
                outbox.task = asyncio.create_task(self._deliver(outbox), name=f"notify {name}")
        self._outcomes.configured(len(wanted))
        self.wake()

    def _end(self, outbox: _Outbox) -> None:
        self._stop(outbox)
        for message in outbox.messages:
            self.ledger.give_back(outbox.target.name, message.items)
        self._outcomes.end(outbox.target.name)

    @staticmethod
    def _stop(outbox: _Outbox) -> None:
        if outbox.task is not None:
            outbox.task.cancel()
            outbox.task = None

    @property
    def has_targets(self) -> bool:
        """Whether anybody is notified."""
        return self._config is not None and bool(self._config.targets)

    def wake(self) -> None:
        """Look at the ledger soon."""
        self._wake.set()

    async def work(self) -> None:
        """Make messages, until cancelled."""
        while True:
            self._wake.clear()
            pause = await self.turn()
            await waiting.wait_within(self._wake, pause)
            await self._time.sleep(_CALM_SECONDS)

    async def turn(self) -> float | None:
        """Make the messages that are due; seconds until the next look, ``None`` if nothing is foreseen.

        Many modules and targets are gone through in pieces.
        """
        if (config := self._config) is None:
            return None
        now = self._time.time()
        look = await self.ledger.look(config.targets, now)
        if self._config is not config:
            # Other targets meanwhile: they have woken us.
            return 0.0
        moments = [] if look.next is None else [look.next]
        for target in config.targets:
            moment = self._gather(self._outboxes[target.name], look.due.get(target.name, ()), now)
            moments += [] if moment is None else [moment]
        moment = await self._patterns.turn(config, self.ledger.modules, now)
        moments += [] if moment is None else [moment]
        self._outcomes.unmatched(self._patterns.found)
        await self._write_down()
        return max(0.0, min(moments) - now) if moments else None

    def _gather(self, outbox: _Outbox, due: Sequence[transitions.Item], now: float) -> float | None:
        """Make a message if it is time; when to look again."""
        if not due:
            outbox.ready_at = None
            return None
        if outbox.ready_at is None:
            came_back = any(item.times > 1 for item in due)
            gather = _BRIEF_SECONDS if came_back else GATHER_SECONDS
            outbox.ready_at = now + min(gather, outbox.target.after)
        if now < outbox.ready_at:
            return outbox.ready_at
        if len(outbox.messages) >= MOST_WAITING:
            return None
        items = sorted(due, key=lambda item: (item.over is not None, item.kind.key, item.module))
        taken = tuple(items[: transitions.MOST_DUE])
        self.ledger.take(outbox.target.name, taken)
        outbox.add(texts.Message(taken, now))
        return now if items[transitions.MOST_DUE :] else None

    async def _write_down(self) -> None:
        await turns.mapped(self._keep, list(self.ledger.changed))

    def _keep(self, name: str) -> None:
        """Have kept what is to be remembered of a module."""
        self.ledger.changed.discard(name)
        made = self.ledger.remembered(name)
        if made is not None and self._config is not None:
            is_told = any(each["told"] for each in made.get("problems", ()))
            self._remember(name, made if self._config.targets or is_told else {})

    async def _deliver(self, outbox: _Outbox) -> None:
        """Send what is in an outbox, one message after the other, until cancelled."""
        while True:
            outbox.arrived.clear()
            while outbox.messages:
                message = outbox.messages[0]
                answer = await self._try_for_an_hour(outbox, message)
                outbox.messages.popleft()
                self._delivered(outbox, message, answer)
            await outbox.arrived.wait()

    async def _try_for_an_hour(self, outbox: _Outbox, message: texts.Message) -> sender.Answer:
        ends = self._time.monotonic() + GIVE_UP_SECONDS
        failures = 0
        while True:
            answer = await self._try(outbox.target, message)
            if not answer.problem or answer.is_final:
                return answer
            failures += 1
            pause = max(answer.retry_after, PAUSES.after(failures, self._time.jitter()))
            if self._time.monotonic() + pause > ends:
                return structs.replace(answer, is_final=True)
            outbox.problem = answer.problem
            self._outcomes.retried(outbox.target.name, answer.problem)
            await self._time.sleep(pause)

    async def _try(self, target: notify_config.Target, message: texts.Message) -> sender.Answer:
        while True:
            with contextlib.suppress(fencing.FencedError):
                self._fence.check()
                break
            await self._time.sleep(_FENCED_SECONDS)
        return await self._post.send(target, texts.body(target, message, self._place))

    @property
    def _place(self) -> texts.Place:
        return texts.Place(self._namespace, self._config.cluster if self._config is not None else "")

    def _delivered(self, outbox: _Outbox, message: texts.Message, answer: sender.Answer) -> None:
        target, title = outbox.target.name, texts.title(message)
        outbox.problem = answer.problem
        if answer.problem:
            self.ledger.give_up(target, message.items)
            outbox.gave_up = True
            self._outcomes.given_up(target, title, answer.problem)
        else:
            self.ledger.told(target, message.items)
            self._taken(outbox, title)
        self.wake()

    def _taken(self, outbox: _Outbox, title: str) -> None:
        """Note that the receiver took a message: it may take what was given up, too."""
        outbox.last_sent, outbox.problem = self._time.time(), ""
        if outbox.gave_up:
            outbox.gave_up = False
            self.ledger.try_again(outbox.target.name)
        self._outcomes.sent(outbox.target.name, title)

    async def test(self, name: str) -> Mapping[str, Any]:
        """Send a target a test now, once; what it was, for people.

        Raises :class:`NotifyError` if there is no such target, or it does not take the message.
        """
        config = self._config or notify_config.NOTHING
        target = next((each for each in config.targets if each.name == name), None)
        if target is None and self.source["problem"] and not config.targets:
            raise NotifyError(f"there is no target {name!r}: {self.source['problem']}")
        if target is None:
            raise NotifyError(notify_config.unknown(name, config.targets))
        message = texts.Message((), self._time.time())
        answer = await self._try(target, message)
        if answer.problem:
            raise NotifyError(f"target {name} did not take the test: {answer.problem}")
        if (outbox := self._outboxes.get(name)) is not None:
            self._taken(outbox, texts.title(message))
            self.wake()
        return {"name": name, "format": str(target.format), "host": target.host}

    def rows(self) -> list[TargetRow]:
        """Return all targets, in the order of the file."""
        targets = () if self._config is None else self._config.targets
        return [
            _row(self._outboxes[target.name], self._patterns.found.get(target.name, ())) for target in targets
        ]

    async def close(self) -> None:
        """Send nothing any more; what was on its way is due again for the next operator."""
        tasks = [outbox.task for outbox in self._outboxes.values() if outbox.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._post.close()
        if self._config is not None:
            await self._write_down()


def _row(outbox: _Outbox, unmatched: Sequence[str]) -> TargetRow:
    target = outbox.target
    return TargetRow(
        name=target.name,
        format=str(target.format),
        host=target.host,
        on=sorted(map(str, target.kinds)),
        modules=list(target.modules),
        after=clock.duration_text(target.after),
        waiting=len(outbox.messages),
        lastSent=None if outbox.last_sent is None else clock.rfc3339(outbox.last_sent),
        problem="; ".join(filter(None, (outbox.problem, *unmatched))),
    )
