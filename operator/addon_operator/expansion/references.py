"""References ``$(NAME)`` in a text and what they stand for."""

import re
from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias

from addon_operator.expansion import errors

MappingFunc: TypeAlias = Callable[[str], str]
"""Gives the value of a variable's name, or the text that shall stand in place of the reference."""

# An escaped operator or a reference. Applied only up to the last closer of a text, where every opener finds
# one: without that bound a text of openers alone would be searched to its end once for each of them.
_TOKEN = re.compile(r"\$(?:\$|\(([^)]*)\))")
# The same for whoever wants names only: what stands behind the dollar, as a whole.
_AFTER_DOLLAR = re.compile(r"\$(\$|\([^)]*\))")
_BRACKETS: Final = len("$()")


class EventRecorder(Protocol):
    """Who wants to hear of references that no context resolves."""

    def unresolved(self, name: str) -> None:
        """Called with the name between the brackets, exactly as written."""
        ...


def expand(text: str, mapping: MappingFunc, *, limit: int = errors.EXPANDED_MAX) -> str:
    """The text with every reference ``$(NAME)`` replaced by ``mapping(NAME)``.

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
            raise errors.ExpansionSizeError("the expanded text", limit)
        return value

    end = text.rfind(")") + 1
    return _TOKEN.sub(replaced, text[:end]) + text[end:].replace("$$", "$")


def names(text: str) -> list[str]:
    """The names that a text refers to, each once, in the order of their first references."""
    end = text.rfind(")") + 1
    found = dict.fromkeys(_AFTER_DOLLAR.findall(text, 0, end))
    return [each[1:-1] for each in found if each != "$"]


def mapping_func_for(recorder: EventRecorder | None, *contexts: Mapping[str, str]) -> MappingFunc:
    """A mapping for :func:`expand` that looks a name up in the contexts, in order of priority.

    The first context that has the name wins, even with an empty value. A name that is in none of them comes
    back as ``$(NAME)``, and the recorder hears of it once. Contexts are read at each call, not copied.
    """
    told: set[str] = set()

    def mapping(name: str) -> str:
        for context in contexts:
            if name in context:
                return context[name]
        if recorder is not None and name not in told:
            told.add(name)
            recorder.unresolved(name)
        return f"$({name})"

    return mapping
