"""Memory that is given back."""

import subprocess
import sys

import pytest

# Between blocks that are freed lie small ones that stay, as in any process that has run for a while.
PROGRAM = """
import pathlib, sys
if "early" in sys.argv:
    from addon_operator.process import own_memory
    assert own_memory.give_back_early()
bytearray(4_000_000)
large, small = [], []
for _ in range(60):
    large.append(bytearray(700_000))
    small.append(bytes(2_000))
large.clear()
status = pathlib.Path("/proc/self/status").read_text()
print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")))
"""


def resident_kibibytes(*arguments: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], check=True, capture_output=True, text=True
    )
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="asks glibc")
def test_what_is_freed_goes_back_to_the_system() -> None:
    assert resident_kibibytes("early") < resident_kibibytes() - 20_000
