"""What a process of Helm may take: a template of a chart may repeat something without end."""

import contextlib
import pathlib
import re
import signal
from collections.abc import Sequence
from typing import Final

from addon_operator.process.children import children

_MIB: Final = 1024 * 1024
_MOST: Final = 2048 * _MIB
_LEAST: Final = 128 * _MIB
_LIMITS: Final = (
    pathlib.Path("/sys/fs/cgroup/memory.max"),
    pathlib.Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""What the container may have: the second and the first version of control groups."""
CPU_SECONDS: Final = 180
"""How long a process of Helm may work; a release of a thousand objects takes some seconds."""
_COLLECTED: Final = 0.85
"""Share of its memory from which on Go looks harder for what it does not need any more."""
_OUT_OF_MEMORY: Final = re.compile(r"(?:out of|cannot allocate) memory")
_RENDERER_OUT_OF_MEMORY: Final = re.compile(r"^MemoryError", re.MULTILINE)
_ERROR: Final = re.compile(r"^Error: ", re.MULTILINE)
"""Begins what Helm says itself, and not the runtime of Go."""
_WHAT_TO_DO: Final = (
    "a template of the chart may repeat something without end: look for 'until', 'repeat', 'tpl' and "
    "'include'; a release of thousands of objects needs a higher HELM_MEMORY"
)


def default_memory(at_once: int = 1, limits: Sequence[pathlib.Path] = _LIMITS) -> int:
    """Return how many bytes a process of Helm may have by default, if ``at_once`` of them run side by side.

    They share three quarters of what the container may have: if they took all of it, the operator would be
    ended, too. Each has 128 MiB at least, which 200 objects need: half of that is what Go only sets aside. A
    process has 2 GiB at most, also without a limit of the container; no release needs that.
    """
    for path in limits:
        with contextlib.suppress(OSError, ValueError):
            return max(_LEAST, min(int(path.read_text()) * 3 // 4 // at_once, _MOST))
    return _MOST


def environment(memory: int) -> dict[str, str]:
    """Return what tells Helm how much memory it has, and to be brief if that is not enough."""
    # Of each of a thousand requests that Helm sends at once, a trace would be written.
    return {"GOMEMLIMIT": str(int(memory * _COLLECTED)), "GOTRACEBACK": "none"}


def exceeded(result: children.ChildResult, bounds: children.ChildBounds, verb: str) -> str:
    """Say which of its bounds a verb of Helm that failed has met, and what to do; empty if none."""
    if _lacked_memory(result, bounds.memory_bytes):
        limit = f"Helm needs more than {bounds.memory_bytes // _MIB} MiB of memory, the limit of HELM_MEMORY"
    elif _worked_too_long(result, bounds.cpu_seconds):
        limit = f"Helm was stopped after {bounds.cpu_seconds} s of processor time"
    else:
        return ""
    return f"{limit} (helm {verb}): {_WHAT_TO_DO}"


def _lacked_memory(result: children.ChildResult, memory: int) -> bool:
    said = result.stderr.decode(errors="replace")
    if _RENDERER_OUT_OF_MEMORY.search(said):
        return True
    # Go ends in many ways where memory is refused, and says so in some of them.
    is_large = result.max_rss_bytes > memory / 2 or _OUT_OF_MEMORY.search(said) is not None
    return is_large and result.exit_code > 0 and not _ERROR.search(said)


def _worked_too_long(result: children.ChildResult, seconds: int | None) -> bool:
    worked = result.user_cpu_seconds + result.system_cpu_seconds
    return seconds is not None and result.exit_code == -signal.SIGKILL and worked >= seconds - 1
