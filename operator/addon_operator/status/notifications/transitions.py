"""What becomes of modules, and what of that each target was told: no requests, no waiting.

Something is told when it has lasted for the target's ``after``, and its end when that has lasted as long:
what comes back within :data:`CALM` times ``after`` is the same thing, of which all the time counts that it
lasted, and is told once. :meth:`Ledger.remembered` is kept in the Module's status, so that an operator that
begins later goes on where this one was.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, NotRequired, TypedDict

import msgspec

from addon_operator.aio import turns
from addon_operator.engine import state
from addon_operator.kernel import clock
from addon_operator.modules import news
from addon_operator.status.notifications import notify_config, problems

MOST_DUE: Final = 200
"""How much of one target is looked at together, and one more: the rest stays due."""
CALM: Final = 5
"""How many times ``after`` something that came back has to be over until that is told."""
_GONE: Final = "it is gone"
_DISABLED: Final = "it is disabled"


class ToldDocument(TypedDict):
    """That a target was told."""

    target: str
    kind: str
    since: str


class ProblemDocument(TypedDict):
    """Something that was told, or is about to be."""

    kind: str
    since: str
    over: NotRequired[str]
    told: list[ToldDocument]
    times: NotRequired[int]
    """How often it began, if it came back."""


class NotificationsDocument(TypedDict, total=False):
    """``status.notifications`` of a Module."""

    revision: int
    problems: list[ProblemDocument]


class Told(NamedTuple):
    """What a target was told of something: as what, and since when that is so."""

    kind: news.NewsKind
    since: float


class _Open(msgspec.Struct):
    """Something that began, and is over perhaps, but not everybody knows, or it may come back."""

    problem: problems.Problem
    since: float
    """When it began last."""
    first: float
    times: int = 1
    """How often it began since then."""
    lasted: float = 0.0
    """For how many seconds it lasted before it came back last."""
    settled: dict[str, float] = msgspec.field(default_factory=dict)
    """What of that was over for a target that was told so, by its name."""
    over: float | None = None
    ended: str = ""
    """Why it is over, if not because the module works again."""
    told: dict[str, Told] = msgspec.field(default_factory=dict)
    """By the target's name."""
    taken: set[str] = msgspec.field(default_factory=set)
    """Targets for which it is in a message on its way."""
    given_up: set[str] = msgspec.field(default_factory=set)
    """Targets that did not take it: they do not know of it. Not remembered, so that it is tried once more."""


class _Module(msgspec.Struct):
    namespace: str
    open: dict[news.NewsKind, _Open] = msgspec.field(default_factory=dict)
    right: set[news.NewsKind] = msgspec.field(default_factory=set)
    """What is known to be all right."""
    revision: int | None = None
    is_released: bool = False
    """Whether the revision is one that this process has seen, not what one before it remembered."""
    is_gone: bool = False


class Item(msgspec.Struct, frozen=True):
    """Something that a target is to be told of a module; times are seconds since the epoch."""

    module: str
    namespace: str
    kind: news.NewsKind
    """As the target knows it."""
    since: float
    problem: problems.Problem
    over: float | None = None
    ended: str = ""
    revision: int | None = None
    subject: news.NewsKind = news.FAILED
    """As the ledger knows it."""
    times: int = 1
    """How often it began since then."""


class Look(msgspec.Struct, frozen=True):
    """What is due, by the target's name, and when the next thing will be if nothing happens before."""

    due: Mapping[str, Sequence[Item]]
    next: float | None


class Ledger:
    """Everything of all modules that somebody is to be told, or was."""

    def __init__(self) -> None:
        self._modules: dict[str, _Module] = {}
        self._targets: Sequence[notify_config.Target] = ()
        self._wanted: dict[str, Sequence[notify_config.Target]] = {}
        self.changed: set[str] = set()
        """Modules of which there may be more to remember; whoever writes it down clears it."""

    @property
    def modules(self) -> frozenset[str]:
        """The names of all modules that are known."""
        return frozenset(self._modules)

    def saw(self, name: str, namespace: str, seen: problems.Observed, now: float, *, ended: str = "") -> None:
        """Take in how a module is now; ``ended`` says why something is over if it does not work again."""
        module = self._modules.setdefault(name, _Module(namespace))
        module.namespace, module.is_gone = namespace, ended == _GONE
        for kind, problem in seen.items():
            found = module.open.get(kind)
            if problem is None:
                module.right.add(kind)
                if found is not None and found.over is None:
                    found.over, found.ended = now, ended
                    found.given_up.clear()
            else:
                module.right.discard(kind)
                self._began(module, kind, problem, now)
        self.changed.add(name)

    @staticmethod
    def _began(module: _Module, kind: news.NewsKind, problem: problems.Problem, now: float) -> None:
        found = module.open.get(kind)
        if found is None:
            module.open[kind] = _Open(problem, now, now)
            return
        found.problem = problem
        if found.over is not None:
            found.times += 1
            found.lasted += found.over - found.since
            found.over, found.ended, found.since = None, "", now
            found.given_up.clear()

    def saw_state(self, module: state.ModuleState, operator_namespace: str, now: float) -> None:
        """Take in the state of a module."""
        namespace = module.module.config.namespace or operator_namespace
        ended = _DISABLED if module.status is state.ModuleStatus.DISABLED else ""
        self.saw(module.module.name, namespace, problems.observed(module), now, ended=ended)

    def gone(self, name: str, now: float) -> None:
        """Note that the module's directory is gone; who was told of something is told that, too."""
        if (module := self._modules.get(name)) is not None:
            self.saw(name, module.namespace, dict.fromkeys(module.open), now, ended=_GONE)

    def released(self, name: str, namespace: str, revision: int, now: float, *, is_upgrade: bool) -> None:
        """Take in the revision of a module's release; ``is_upgrade``: it was made just now, by an upgrade.

        A later one than an operator before this one knew of is an upgrade that nobody was told.
        """
        module = self._modules.setdefault(name, _Module(namespace))
        if (is_upgrade and module.revision != revision) or _is_news(module, revision):
            module.open[news.UPGRADED] = _Open(problems.Problem(), now, now)
        module.revision, module.is_released = revision, True
        self.changed.add(name)

    def restore(self, name: str, namespace: str, stored: Mapping[str, Any], now: float) -> None:
        """Take in what an operator before this one remembered; what is wrong with it is passed over."""
        module = self._modules.setdefault(name, _Module(namespace))
        for found in stored.get("problems") or ():
            try:
                kind, restored = notify_config.KINDS[found["kind"]], _restored(found)
            except (AttributeError, KeyError, TypeError, ValueError):
                continue
            current = module.open.get(kind)
            if current is not None:
                current.since, current.told = min(current.since, restored.since), restored.told
                current.first, current.times = current.since, max(current.times, restored.times)
            else:
                module.open[kind] = restored
                if kind in module.right and restored.over is None:
                    restored.over = now
        revision = stored.get("revision")
        if isinstance(revision, int) and module.revision is None:
            module.revision = revision
        self.changed.add(name)

    def remembered(self, name: str) -> NotificationsDocument | None:
        """Return what is to be remembered of a module; ``None`` if nothing is known of it."""
        module = self._modules.get(name)
        if module is None:
            return None
        made = NotificationsDocument()
        if module.revision is not None:
            made["revision"] = module.revision
        known = sorted(module.open.items(), key=lambda opened: opened[0].key)
        lasting = [_document(kind, each) for kind, each in known if each.over is None or each.told]
        if lasting:
            made["problems"] = lasting
        return made

    async def look(self, targets: Sequence[notify_config.Target], now: float) -> Look:
        """Return what is due now; others have their turn between modules, of which there may be many."""
        due: dict[str, list[Item]] = {target.name: [] for target in targets}
        concerned = [name for name, module in self._modules.items() if module.open or module.is_gone]
        later = await turns.mapped(lambda name: self._look_at(name, targets, now, due), concerned)
        due_now = {name: items for name, items in due.items() if items}
        return Look(due_now, min(filter(None, later), default=None))

    def _look_at(
        self, name: str, targets: Sequence[notify_config.Target], now: float, due: Mapping[str, list[Item]]
    ) -> float | None:
        """Add what is due of a module, and return when the next thing of it will be."""
        module = self._modules[name]
        wanting = self._wanting(name, targets) if module.open else ()
        later = self._settle(name, module, wanting, now)
        if module.is_gone and not module.open:
            del self._modules[name]
        for kind, each in module.open.items():
            for target in wanting:
                moment = _moment(kind, each, target)
                if moment is not None and moment > now:
                    later.append(moment)
                elif moment is not None and len(due[target.name]) <= MOST_DUE:
                    due[target.name].append(_item(name, module, kind, each, target))
        return min(later, default=None)

    def _wanting(self, name: str, targets: Sequence[notify_config.Target]) -> Sequence[notify_config.Target]:
        """Return the targets that want to be told of a module."""
        if targets is not self._targets:
            self._targets = targets
            self._wanted.clear()
        if name not in self._wanted:
            self._wanted[name] = [target for target in targets if target.wants(name)]
        return self._wanted[name]

    def _settle(
        self, name: str, module: _Module, wanting: Sequence[notify_config.Target], now: float
    ) -> list[float]:
        """Drop what nobody has to be told any more and will not come back; when to look again for that."""
        interested = {target.name for target in wanting}
        calm = CALM * max((target.after for target in wanting), default=0.0)
        later = list[float]()
        for kind, each in list(module.open.items()):
            if each.over is not None:
                each.told = {target: told for target, told in each.told.items() if target in interested}
                for target in wanting:
                    if news.RECOVERED not in target.kinds:
                        each.told.pop(target.name, None)
                is_known = not each.told and not each.taken
                is_done = is_known and (bool(each.ended) or each.over + calm <= now)
                if is_known and not is_done:
                    later.append(each.over + calm)
            else:
                to_tell = {target.name for target in wanting if news.UPGRADED in target.kinds}
                is_done = kind is news.UPGRADED and to_tell <= each.told.keys() and not each.taken
            if is_done:
                del module.open[kind]
                self.changed.add(name)
        return later

    def take(self, target: str, items: Iterable[Item]) -> None:
        """Note that these are on their way to the target: they are not due meanwhile."""
        for each in self._found(items):
            each[1].taken.add(target)

    def told(self, target: str, items: Iterable[Item]) -> None:
        """Note that the target was told these."""
        for item, found in self._found(items):
            found.taken.discard(target)
            if item.over is not None:
                found.told.pop(target, None)
                found.settled[target] = found.lasted + item.over - found.since
            else:
                found.told[target] = Told(item.kind, item.since)
            self.changed.add(item.module)

    def give_up(self, target: str, items: Iterable[Item]) -> None:
        """Note that the target did not take these: they are not due until :meth:`try_again`."""
        for item, found in self._found(items):
            found.taken.discard(target)
            if found.over == item.over:
                found.given_up.add(target)

    def try_again(self, target: str) -> None:
        """Have the target told what was given up."""
        for module in self._modules.values():
            for found in module.open.values():
                found.given_up.discard(target)

    def give_back(self, target: str, items: Iterable[Item]) -> None:
        """Note that these are not on their way to the target any more."""
        for _, found in self._found(items):
            found.taken.discard(target)

    def _found(self, items: Iterable[Item]) -> Iterator[tuple[Item, _Open]]:
        for item in items:
            module = self._modules.get(item.module)
            found = None if module is None else module.open.get(item.subject)
            if found is not None:
                yield item, found


def _is_news(module: _Module, revision: int) -> bool:
    """Say whether a revision is later than what an operator before this one knew of.

    One that was made to go back to another one is not an upgrade.
    """
    if module.is_released or module.revision is None or revision <= module.revision:
        return False
    failed = module.open.get(news.FAILED)
    return failed is None or not any(told.kind is news.ROLLED_BACK for told in failed.told.values())


def _moment(kind: news.NewsKind, each: _Open, target: notify_config.Target) -> float | None:
    """Return from when on a target is to be told; ``None`` if it is not."""
    told = each.told.get(target.name)
    if target.name in each.taken or target.name in each.given_up:
        return None
    if kind is news.UPGRADED:
        return each.since if told is None and kind in target.kinds else None
    if each.over is not None:
        came_back = each.times > 1 and not each.ended
        return each.over + target.after * (CALM if came_back else 1) if told is not None else None
    label = _label(kind, each, target)
    if label is None or (told is not None and not (label is news.ROLLED_BACK and told.kind is news.FAILED)):
        return None
    return each.since + target.after - (each.lasted - each.settled.get(target.name, 0.0))


def _label(kind: news.NewsKind, each: _Open, target: notify_config.Target) -> news.NewsKind | None:
    """Return as what a target is told of it, ``None`` if it does not want to know."""
    if each.problem.rolled_back and news.ROLLED_BACK in target.kinds:
        return news.ROLLED_BACK
    return kind if kind in target.kinds else None


def _item(name: str, module: _Module, kind: news.NewsKind, each: _Open, target: notify_config.Target) -> Item:
    told = each.told.get(target.name)
    if each.over is not None and told is not None:
        label, since = told
    else:
        is_news = target.name in each.settled
        label, since = _label(kind, each, target) or kind, each.since if is_news else each.first
    return Item(
        name,
        module.namespace,
        label,
        since,
        each.problem,
        each.over,
        each.ended,
        module.revision,
        kind,
        each.times if since == each.first else 1,
    )


def _document(kind: news.NewsKind, each: _Open) -> ProblemDocument:
    told = [
        ToldDocument(target=target, kind=str(told.kind), since=clock.rfc3339(told.since))
        for target, told in sorted(each.told.items())
    ]
    made = ProblemDocument(kind=str(kind), since=clock.rfc3339(each.since), told=told)
    if each.over is not None:
        made["over"] = clock.rfc3339(each.over)
    if each.times > 1:
        made["times"] = each.times
    return made


def _restored(found: Mapping[str, Any]) -> _Open:
    told = {
        str(each["target"]): Told(notify_config.KINDS[each["kind"]], clock.parse_rfc3339(each["since"]))
        for each in found.get("told") or ()
    }
    over = clock.parse_rfc3339(found["over"]) if "over" in found else None
    since = clock.parse_rfc3339(found["since"])
    return _Open(problems.Problem(), since, since, int(found.get("times", 1)), over=over, told=told)
