"""Tasks: the units of work that queues run, and that metrics and ``queue list`` show."""

import abc
import asyncio
import contextlib
import enum
from collections.abc import Callable, Iterator
from typing import Final

from addon_operator.kernel import errors

GLOBAL_OWNER: Final = ""
"""Owner of tasks that belong to no module."""


class TaskKind(enum.StrEnum):
    """What a task does; the names are those of the original's task types."""

    GLOBAL_HOOK_RUN = "GlobalHookRun"
    MODULE_HOOK_RUN = "ModuleHookRun"
    RELOAD_MODULES = "ReloadModules"
    DISCOVER_MODULES = "DiscoverModules"
    MODULE_ENSURE_CRDS = "ModuleEnsureCRDs"
    MODULE_RUN = "ModuleRun"
    MODULE_DELETE = "ModuleDelete"
    MODULE_PURGE = "ModulePurge"

    @property
    def doing(self) -> str:
        """What it does, in words for users."""
        return _DOING[self]


_DOING: Final = {
    TaskKind.GLOBAL_HOOK_RUN: "run of a global hook",
    TaskKind.MODULE_HOOK_RUN: "run of a hook",
    TaskKind.RELOAD_MODULES: "reading of the modules",
    TaskKind.DISCOVER_MODULES: "discovery of modules",
    TaskKind.MODULE_ENSURE_CRDS: "applying of definitions",
    TaskKind.MODULE_RUN: "run of the module",
    TaskKind.MODULE_DELETE: "removal of the module",
    TaskKind.MODULE_PURGE: "removal of the release",
}


class Outcome(enum.Enum):
    """How a task left its queue."""

    DONE = "done"
    """It succeeded, or failed with ``allow_failure``."""
    DROPPED = "dropped"
    """A newer intent made it pointless before it ended."""


class SupersededError(errors.AddonOperatorError):
    """Raised inside a task at a step's border when a newer intent made the rest of it pointless."""


class PostponedError(Exception):
    """Raised inside a task that is not to run yet: it is tried again later and has not failed."""

    def __init__(self, delay: float) -> None:
        super().__init__(f"not before {delay:.3f} s from now")
        self.delay = delay
        """Seconds."""


class Task(abc.ABC):
    """One entry of a queue; its class says what it does.

    Compared by identity; :attr:`key` says which pending tasks are duplicates.
    """

    kind: TaskKind
    lane: int | None = None
    """The order of its module, for tasks that ``MODULES_PARALLELISM`` bounds."""
    after: frozenset[str] = frozenset()
    """Owners whose tasks of this kind, if they stand before it, have to leave the queue first."""
    also: frozenset[str] = frozenset()
    """Other owners of which nothing is to begin, nor to be at work, while it runs."""
    allow_failure: bool = False
    fixed_delay: float | None = None
    """Seconds between tries instead of the growing backoff."""
    longest_delay: float = 30.0
    """Seconds to which the backoff grows."""
    is_distinct: bool = False
    """It is not a duplicate of any other task, whatever its key is."""

    def __init__(
        self, *, owner: str = GLOBAL_OWNER, hook: str = "", binding: str = "", activation: str = ""
    ) -> None:
        self.owner: Final = owner
        """The module whose order must be kept, or ``GLOBAL_OWNER``."""
        self.hook: Final = hook
        self.binding: Final = binding
        self.activation: Final = activation
        """The event that made the task, as the ``activation`` label of metrics says it."""
        self.converge: int | None = None
        """Number of the converge that the task belongs to."""
        self.attempts = 0
        """Failed tries so far."""
        self.wanted_again = False
        """Whether it was asked for once more since its last try: what that try did may be out of date."""
        self.queued_at = 0.0
        self.not_before = 0.0
        """Monotonic seconds before which it is not tried again."""
        self.last_error = ""
        self.last_error_without_values = ""
        """:attr:`last_error` for places where no values may be shown."""
        self.postponed = False
        """It waits for ``not_before`` although it has not failed; only tasks of the same hook wait for it."""
        self.insists = False
        """Whether somebody asked for it, or its cause is gone: what was taken back is tried again."""
        self.waits_for = ""
        """What it waits for in the midst of its try, in which tasks of others in its queue go on."""
        self.is_stuck = False
        """Whether one of its hooks has been running for so long that nobody else is to wait for it."""
        self.tell_queue: Callable[[], object] = lambda: None
        """Has its queue look again at what may run."""
        self.waits_since: float | None = None
        """When it began to wait for health, in monotonic seconds; all its other steps are done then."""
        self.stopping: Final = asyncio.Event()
        """Set by :meth:`supersede`, for steps that wait for something."""
        self.done: Final[asyncio.Future[Outcome]] = asyncio.get_running_loop().create_future()
        """Set when the task leaves its queue."""
        self.tried: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        """Set when the task ended its first try, whether or not that succeeded, when it is stuck, or behind a
        stuck one of its owner, and when it left its queue.
        """
        self.aside: Final = asyncio.Event()
        """Set when what follows in its converge need not wait for it, or when it left its queue."""

    @abc.abstractmethod
    async def run(self) -> None:
        """Do the work; called once for each try.

        An error leaves the task at its place, and it is tried again with a backoff. A
        :class:`SupersededError` drops it, and a :class:`PostponedError` puts it off.
        """

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Pending tasks with the same key are one."""
        return (self.kind, self.owner, self.hook, self.binding)

    def of_converge(self, number: int) -> "Task":
        """Return the task itself, now part of that converge."""
        self.converge = number
        return self

    @property
    def is_working(self) -> bool:
        """Whether a task under way takes the place of another one."""
        return not (self.waits_for or self.is_stuck)

    @property
    def superseded(self) -> bool:
        """Whether a newer intent wants the task to stop."""
        return self.stopping.is_set()

    def supersede(self) -> None:
        """Tell a running task to stop at its next checkpoint."""
        self.stopping.set()

    def checkpoint(self) -> None:
        """Raise :class:`SupersededError` when a newer intent wants the task to stop; called between steps."""
        if self.superseded:
            raise SupersededError(f"{self.kind} {self.owner}{self.hook}: stopped for a newer intent")

    @contextlib.contextmanager
    def waiting(self, waits_for: str) -> Iterator[Callable[[], None]]:
        """Let tasks of others run meanwhile; gives :meth:`checkpoint`."""
        self.waits_for = waits_for
        self.step_aside()
        self.tell_queue()
        try:
            yield self.checkpoint
        finally:
            self.waits_for = ""

    def set_stuck(self) -> None:
        """Let others go on as if it had failed, but do not try it again."""
        self.is_stuck = True
        self.has_tried()
        self.tell_queue()

    def has_tried(self) -> None:
        """Tell those who wait for the first try that they need not."""
        if not self.tried.done():
            self.tried.set_result(None)

    def step_aside(self) -> None:
        """Let what follows in the converge go on without this task, which fails for a reason of its own."""
        self.aside.set()
        self.has_tried()

    def leave(self, outcome: Outcome) -> None:
        """Tell all who wait that the task is out of its queue."""
        self.step_aside()
        if not self.done.done():
            self.done.set_result(outcome)
