"""Types what a page of the documentation says into a shell."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
ENVIRONMENT_LINE = "make .venv/bin/addon-operator && source .venv/bin/activate"
TYPING_SECONDS = 120


def environment(directory: pathlib.Path, port: int) -> dict[str, str]:
    """A newcomer's, but with a control plane and a port of this test's own."""
    kept = ("HOME", "XDG_CACHE_HOME", "ADDON_OPERATOR_DEVCLUSTER_CACHE")
    return {name: os.environ[name] for name in kept if name in os.environ} | {
        "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
        "ADDON_OPERATOR_DEVCLUSTER_STATE": str(directory / "clusters"),
        "ADDON_OPERATOR_LISTEN_PORT": str(port),
        "ADDON_OPERATOR_TMP_DIR": str(directory / "tmp"),
    }


def checkout(directory: pathlib.Path) -> pathlib.Path:
    """A directory with all that a checkout holds, where pages are typed as readers do it."""
    made = directory / "checkout"
    made.mkdir()
    for entry in ROOT.iterdir():
        if not entry.name.startswith("."):
            (made / entry.name).symlink_to(entry)
    (made / ".venv").symlink_to(pathlib.Path(sys.prefix))
    return made


def typed(script: str, directory: pathlib.Path, port: int, seconds: float = TYPING_SECONDS) -> str:
    """What a shell in a checkout prints that gets this script; its processes do not outlive it."""
    bash = shutil.which("bash") or "bash"
    ended = 'trap "kill \\$(jobs -p) 2>/dev/null || true; addon-operator devcluster down >/dev/null" EXIT\n'
    done = subprocess.run(
        [bash, "-euo", "pipefail", "-c", ended + script],
        cwd=checkout(directory),
        env=environment(directory, port),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def is_printed(line: str, output: str) -> bool:
    """Whether a program printed the line: ``…`` stands for anything, and columns may have any width."""
    words = [".*".join(map(re.escape, word.split("…"))) for word in line.split()]
    return re.search(r"\s+".join(words), output) is not None
