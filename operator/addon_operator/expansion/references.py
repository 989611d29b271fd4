"""Find references ``$(NAME)`` in a text, put in what they stand for, and say which stand for nothing."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

import msgspec

from addon_operator.expansion import fields

# What the API server takes for a variable's name when it is strict; anything else between the brackets is
# most likely a shell's command substitution.
_VARIABLE_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


@dataclass(frozen=True, slots=True)
class UnresolvedReference:
    """A reference that stays in the text as ``$(NAME)``."""

    name: str
    """What stands between the brackets."""
    where: str
    """``env NAME``, ``command[i]``, ``args[i]`` or ``subPathExpr of volumeMounts[i]``."""
    pending: bool = field(default=False, compare=False)
    """Whether a required source that does not exist may yet define the name: the container waits for it."""
    in_script: bool = field(default=False, compare=False)
    """Whether it stands in the script of ``sh -c`` or the like, where it is the shell's."""

    is_fatal: bool = field(default=False, compare=False)
    """Whether the container cannot start for it: it stands in a ``subPathExpr``."""

    @property
    def is_variable(self) -> bool:
        """Whether it can be a variable: ``$()``, ``$(date +%s)`` and the ``$(mktemp)`` of a shell cannot.

        In a ``subPathExpr``, any name counts as one.
        """
        return self.is_fatal or (not self.in_script and _VARIABLE_NAME.fullmatch(self.name) is not None)


class MissingSource(msgspec.Struct, frozen=True):
    """A required ConfigMap, Secret or key that does not exist: the container waits until it does."""

    source: str
    """``ConfigMap name`` or ``Secret name``."""
    key: str | None
    """The key that the source lacks; ``None`` when the source itself does not exist."""
    where: str
    """``env NAME`` or ``envFrom[i]``."""


class SkippedKey(msgspec.Struct, frozen=True):
    """A key of an ``envFrom`` source that cannot be the name of an environment variable."""

    source: str
    """``ConfigMap name`` or ``Secret name``."""
    key: str
    """The key, as in the source."""
    name: str
    """The name that it would have had: prefix and key."""


class SubPath(msgspec.Struct, frozen=True):
    """Where in its volume a mount begins."""

    mount_path: str
    value: str
    """Its ``subPathExpr``, expanded; a name without a value stays as it is."""


class ContainerEnvironment(msgspec.Struct, frozen=True):
    """The environment that a container gets, and what it cannot get."""

    env: dict[str, str]
    """Final value of each variable; a value known only later reads like ``<status.podIP>``."""
    command: list[str]
    """``command``, expanded."""
    args: list[str]
    """``args``, expanded."""
    sub_paths: list[SubPath]
    """Those of mounts with a ``subPathExpr``."""
    unresolved: list[UnresolvedReference]
    """Distinct references without a value, in the order of the container; those of mounts come last."""
    missing: list[MissingSource]
    """Required sources and keys that do not exist."""
    skipped: list[SkippedKey]
    """Keys that cannot be variables."""


def unresolved_message(container: str, unresolved: Iterable[UnresolvedReference]) -> str | None:
    """Return the text of the Event for one container, or ``None`` when there is nothing to report.

    Names that cannot be variables do not count, nor do names that the container waits for.
    """
    texts = [
        f"$({each.name}) in {each.where}" for each in unresolved if each.is_variable and not each.pending
    ]
    return f"Container {container}: cannot expand {', '.join(texts)}" if texts else None


MappingFunc: TypeAlias = Callable[[str], str]
"""Gives the value of a variable's name, or the text that stands in place of the reference."""

# An escaped operator or a reference. Applied only up to the last closer of a text, where every opener finds
# one: without that bound a text of openers alone would be searched to its end once for each of them.
_TOKEN = re.compile(r"\$(?:\$|\(([^)]*)\))")
_BRACKETS: Final = len("$()")


class EventRecorder(Protocol):
    """Who wants to hear of references that no context resolves."""

    def unresolved(self, name: str) -> None:
        """Note the name between the brackets, exactly as written."""
        ...


def expand(text: str, mapping: MappingFunc, *, limit: int = fields.EXPANDED_MAX) -> str:
    """Return the text with every reference ``$(NAME)`` replaced by ``mapping(NAME)``.

    A name reaches up to the first ``)`` and may hold anything else. ``$$`` is a literal ``$``; a ``$`` before
    any other character, ``$(`` without a ``)`` behind it, and what a mapping returns are left as they are.
    Takes linear time, and calls the mapping once for each reference from left to right.

    Raises what the mapping raises, and :class:`ExpansionSizeError` as soon as the text would have more than
    ``limit`` characters; a text that is longer already may not grow.
    Source: "Syntax and expansion mechanics" of the Kubernetes expansion design.
    """
    room = max(limit - len(text), 0)

    def replaced(token: re.Match[str]) -> str:
        nonlocal room
        name = token[1]
        if name is None:
            return "$"
        value = mapping(name)
        room += len(name) + _BRACKETS - len(value)
        if room < 0:
            raise fields.ExpansionSizeError("the expanded text", limit)
        return value

    head, closer, tail = text.rpartition(")")
    return _TOKEN.sub(replaced, head + closer) + tail.replace("$$", "$")


def mapping_func_for(recorder: EventRecorder | None, *contexts: Mapping[str, str]) -> MappingFunc:
    """Return a mapping for :func:`expand` that looks a name up in the contexts, in order of priority.

    The first context that has the name wins, even with an empty value. A name that is in none of them comes
    back as ``$(NAME)``, and the recorder hears of it once. Contexts are read at each call, not copied.
    """
    noted: set[str] = set()

    def mapping(name: str) -> str:
        for context in contexts:
            if name in context:
                return context[name]
        if recorder is not None and name not in noted:
            noted.add(name)
            recorder.unresolved(name)
        return f"$({name})"

    return mapping
