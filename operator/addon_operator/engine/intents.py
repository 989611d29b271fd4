"""What others want of the engine: they put intents into its inbox, and it takes one after another."""

import asyncio

import msgspec

from addon_operator.engine import state
from addon_operator.kernel import names
from addon_operator.values import sources


class ConfigEdited(msgspec.Struct, frozen=True):
    """Somebody's edit of the values ConfigMap or Secret changed values or flags, or of a Module's annotations
    who is in maintenance; the store has them.
    """

    change: sources.ConfigChange
    kind: str = "ConfigMap"


class ValuesChanged(msgspec.Struct, frozen=True):
    """A hook changed values or flags on an event or a tick."""

    hook: state.Hook


class RunWanted(msgspec.Struct, frozen=True):
    """A module is to be run."""

    module: names.ModuleName
    activation: str
    at_once: bool = False
    """The next try of a run that failed is not waited for, either."""
    past_windows: bool = False
    """What waits for a window does not wait for it this once; of a disabled module, that is its removal."""


class RetryWanted(msgspec.Struct, frozen=True):
    """The next try of what failed of a module is not waited for; what succeeded is not repeated."""

    module: names.ModuleName


class HealthChanged(msgspec.Struct, frozen=True):
    """Another health of a module is known: who waits for that looks at it."""

    module: names.ModuleName


class ConvergeWanted(msgspec.Struct, frozen=True):
    """All modules are to converge."""

    activation: str


class ApisChanged(msgspec.Struct, frozen=True):
    """An API that modules require came or went: modules are discovered again."""


class ChartPulled(msgspec.Struct, frozen=True):
    """The pull of a chart has ended that a module's run did not wait for: it is tried again now."""

    module: names.ModuleName


Intent = (
    ConfigEdited
    | ValuesChanged
    | RunWanted
    | RetryWanted
    | HealthChanged
    | ConvergeWanted
    | ApisChanged
    | ChartPulled
)


class Inbox(asyncio.Queue[Intent]):
    """Where sources, hooks and drift put intents; :meth:`.Engine.react` takes them, one after another.

    They do not call the engine: it decides between two intents, when nothing of the last one is half done.
    """
