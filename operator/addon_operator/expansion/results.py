"""What is found out about a container's environment."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

# What the API server takes for a variable's name when it is strict; anything else between the brackets is
# most likely a shell's command substitution.
_VARIABLE_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


@dataclass(frozen=True, slots=True)
class UnresolvedReference:
    """A reference that stays in the text as ``$(NAME)``."""

    name: str
    """What stands between the brackets."""
    where: str
    """``env NAME``, ``command[i]`` or ``args[i]``."""
    pending: bool = field(default=False, compare=False)
    """Whether a required source that does not exist may yet define the name: the container waits for it."""
    in_script: bool = field(default=False, compare=False)
    """Whether it stands in the script of ``sh -c`` or the like, where it is the shell's."""

    @property
    def is_variable(self) -> bool:
        """Whether it can be a variable: ``$()``, ``$(date +%s)`` and the ``$(mktemp)`` of a shell cannot."""
        return not self.in_script and _VARIABLE_NAME.fullmatch(self.name) is not None


@dataclass(frozen=True, slots=True)
class MissingSource:
    """A required ConfigMap, Secret or key that does not exist: the container waits until it does."""

    source: str
    """``ConfigMap name`` or ``Secret name``."""
    key: str | None
    """The key that the source lacks; ``None`` when the source itself does not exist."""
    where: str
    """``env NAME`` or ``envFrom[i]``."""


@dataclass(frozen=True, slots=True)
class SkippedKey:
    """A key of an ``envFrom`` source that cannot be the name of an environment variable."""

    source: str
    """``ConfigMap name`` or ``Secret name``."""
    key: str
    """The key, as in the source."""
    name: str
    """The name that it would have had: prefix and key."""


@dataclass(frozen=True, slots=True)
class ContainerEnvironment:
    """The environment that a container gets, and what it cannot get."""

    env: dict[str, str]
    """Final value of each variable; a value known only later reads like ``<status.podIP>``."""
    command: list[str]
    """``command``, expanded."""
    args: list[str]
    """``args``, expanded."""
    unresolved: list[UnresolvedReference]
    """Distinct references without a value: of ``env``, ``command`` and ``args``, in this order."""
    missing: list[MissingSource]
    """Required sources and keys that do not exist."""
    skipped: list[SkippedKey]
    """Keys that cannot be variables."""


def unresolved_message(container: str, unresolved: Iterable[UnresolvedReference]) -> str | None:
    """The text of the Event for one container, or ``None`` when nothing is to be told.

    Names that cannot be variables do not count, nor do names that the container waits for.
    """
    told = [f"$({each.name}) in {each.where}" for each in unresolved if each.is_variable and not each.pending]
    return f"Container {container}: cannot expand {', '.join(told)}" if told else None
