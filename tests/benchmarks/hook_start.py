"""What the start of a hook in Python costs with the library, beside one without it."""

import os
import pathlib
import sys
from typing import Final

from tests.benchmarks import measures

_SOURCE: Final = pathlib.Path(__file__).parents[2] / "operator"
_FIND: Final = f"import sys; sys.path.insert(0, {str(_SOURCE)!r}); "
_PROGRAMS: Final = {
    "nothing": "pass",
    "import json, os": "import json, os",
    "import json, os, typing": "import json, os, typing",
    "the library": f"{_FIND}from addon_operator import hook",
}
_ROUNDS: Final = 40
_MOST: Final = 2.0
"""How much longer than a hook that reads its files by hand it may take."""


def run() -> list[measures.Row]:
    """All measurements; takes about ten seconds."""
    samples = {name: list[float]() for name in _PROGRAMS}
    for _ in range(_ROUNDS):
        for name, program in _PROGRAMS.items():
            samples[name].append(_processor_seconds(program))
    # What else the machine does only adds to it.
    least = {name: 1000 * min(found) for name, found in samples.items()}
    by_hand, library, bare = least["import json, os"], least["the library"], least["nothing"]
    quantity = "processor time to start (ms)"
    return [
        measures.Row("start", "the library", quantity, library, "import json, os", by_hand,
                     f"< {_MOST} baselines", library < _MOST * by_hand),
        measures.Row("start", "the library", quantity, library, "python -c pass", bare),
        measures.Row("start", "import json, os", quantity, by_hand, "python -c pass", bare),
        measures.Row("start", "import json, os, typing", quantity, least["import json, os, typing"],
                     "python -c pass", bare),
    ]  # fmt: skip


def _processor_seconds(program: str) -> float:
    # Without site: what is installed beside the library is not its doing.
    command = [sys.executable, "-I", "-S", "-c", program]
    child = os.posix_spawn(sys.executable, command, os.environ)
    _, status, used = os.wait4(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return used.ru_utime + used.ru_stime
