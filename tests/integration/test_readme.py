"""What the README tells a newcomer to type is typed here."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from tests.integration import operator_process

pytestmark = pytest.mark.integration

ROOT = pathlib.Path(__file__).parents[2]
ENVIRONMENT_LINE = "make .venv/bin/addon-operator && source .venv/bin/activate"
TYPING_SECONDS = 120


def first_module() -> str:
    """All that is to be typed for the first module, as one script."""
    section = (ROOT / "README.md").read_text().split("## Your first module")[1].split("\n## ")[0]
    return "\n".join(re.findall(r"^```bash\n(.*?)^```$", section, flags=re.DOTALL | re.MULTILINE))


def environment(directory: pathlib.Path, port: int) -> dict[str, str]:
    """A newcomer's, but with a control plane and a port of this test's own."""
    kept = ("HOME", "XDG_CACHE_HOME", "ADDON_OPERATOR_DEVCLUSTER_CACHE")
    return {name: os.environ[name] for name in kept if name in os.environ} | {
        "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
        "ADDON_OPERATOR_DEVCLUSTER_STATE": str(directory / "clusters"),
        "ADDON_OPERATOR_LISTEN_PORT": str(port),
        "ADDON_OPERATOR_TMP_DIR": str(directory / "tmp"),
    }


def typed(script: str, directory: pathlib.Path, port: int, seconds: float = TYPING_SECONDS) -> str:
    """What a shell prints that gets this script; its processes do not outlive it."""
    bash = shutil.which("bash") or "bash"
    ended = 'trap "kill \\$(jobs -p) 2>/dev/null || true; addon-operator devcluster down >/dev/null" EXIT\n'
    done = subprocess.run(
        [bash, "-euo", "pipefail", "-c", ended + script],
        cwd=directory,
        env=environment(directory, port),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_first_module_of_the_readme_works_as_typed(tmp_path: pathlib.Path) -> None:
    script = first_module()
    assert ENVIRONMENT_LINE in script
    port = operator_process.free_port()
    script = script.replace(ENVIRONMENT_LINE, "").replace("localhost:9650", f"localhost:{port}")
    printed = typed(script, tmp_path, port)
    host = os.uname().nodename
    assert f"Hello, world, from {host}!" in printed
    assert f"Hello, Kubernetes, from {host}!" in printed
    assert re.findall(r"^\d(?=\s)", printed, flags=re.MULTILINE) == ["1", "2"], "revisions in Helm's history"
    assert not (tmp_path / "my-addons").exists()
    assert list((tmp_path / "clusters").iterdir()) == []
