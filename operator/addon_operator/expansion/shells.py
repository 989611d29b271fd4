"""Scripts that a container hands to a shell: in them ``$(…)`` is the shell's."""

import posixpath
import re
from collections.abc import Sequence
from typing import Final

_SHELLS: Final = frozenset({"sh", "ash", "bash", "dash", "ksh", "zsh"})
_BUSYBOX: Final = "busybox"
_ENV: Final = "env"
_ASSIGNMENT: Final = re.compile(r"[^-=][^=]*=.*", re.DOTALL)
_ENV_OPTIONS_WITH_A_WORD: Final = frozenset({"-u", "--unset", "-C", "--chdir"})
_LONG_OPTIONS_WITH_A_WORD: Final = frozenset({"--rcfile", "--init-file", "--emulate"})
_ENDS: Final = frozenset({"-", "--"})


def script_place(command: Sequence[str], args: Sequence[str]) -> str | None:
    """Say where the script of ``sh -c SCRIPT`` stands: ``command[i]`` or ``args[i]``, else ``None``.

    The shell may be called by any path and through ``busybox`` or ``env``, with options of its own.
    """
    words = [*command, *args]
    place = _script(words, _first_option(words))
    if place is None:
        return None
    return f"command[{place}]" if place < len(command) else f"args[{place - len(command)}]"


def _first_option(words: Sequence[str]) -> int | None:
    """Return the place behind the name of the shell; ``None`` if no shell is called."""
    at = 0
    while at < len(words):
        name = posixpath.basename(words[at])
        if name in _SHELLS:
            return at + 1
        if name == _ENV:
            at = _behind_env(words, at + 1)
        elif name == _BUSYBOX:
            at += 1
        else:
            return None
    return None


def _behind_env(words: Sequence[str], at: int) -> int:
    """Return the place of the program that ``env`` starts."""
    while at < len(words) and (words[at].startswith("-") or _ASSIGNMENT.fullmatch(words[at])):
        at += 2 if words[at] in _ENV_OPTIONS_WITH_A_WORD else 1
    return at


def _script(words: Sequence[str], at: int | None) -> int | None:
    """Return the place of the first word that is not an option, if one of the options is ``-c``."""
    if at is None:
        return None
    is_script = False
    while at < len(words) and words[at][:1] in ("-", "+"):
        word = words[at]
        at += 1
        if word in _ENDS:
            break
        if word.startswith("--"):
            at += word in _LONG_OPTIONS_WITH_A_WORD
        else:
            # Each o and O takes a word of its own: -euo pipefail -c.
            at += word.count("o") + word.count("O")
            is_script = is_script or (word[0] == "-" and "c" in word)
    return at if is_script and at < len(words) else None
