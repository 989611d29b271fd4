"""The tutorials work as they are written: their blocks are run one after another, like a person would."""

import os
import pathlib
import re
import shlex
import socket
import subprocess

import pytest

from tests.integration import typing_pages

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ROOT = pathlib.Path(__file__).parents[2]
TYPED_ELSEWHERE = {"first-podpreset.md", "guard-a-custom-resource.md"}
TUTORIALS = sorted(
    page for page in (ROOT / "docs" / "tutorial").glob("*.md") if page.name not in TYPED_ELSEWHERE
)
BLOCK = re.compile(
    r"(?P<other><!-- second shell -->\n)?```bash\n(?P<code>.*?)```\n(?:```text\n(?P<text>.*?)```\n)?",
    re.DOTALL,
)
START = """
operator=""
stop_operator() {
  if [[ -n "$operator" ]]; then kill -INT "$operator"; wait "$operator"; operator=""; fi
}
finish() { stop_operator; addon-operator devcluster down --name NAME; }
trap finish EXIT
set -eo pipefail
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def script(name: str, blocks: list[re.Match[str]], outputs: pathlib.Path) -> str:
    """One script of all blocks; what is for the second shell runs in the background."""
    parts = [START.replace("NAME", name)]
    for number, block in enumerate(blocks):
        code, output = block["code"].rstrip(), shlex.quote(str(outputs / str(number)))
        if block["other"]:
            *before, operator = code.splitlines()
            parts += ["stop_operator", *before, f"{operator} > {output} 2>&1 &", "operator=$!"]
        else:
            parts.append(f"{{\n{code}\n}} > {output} 2>&1")
    return "\n".join(parts) + "\n"


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_works_from_the_first_to_the_last_line(
    tutorial: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    blocks = list(BLOCK.finditer(tutorial.read_text()))
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    environ = os.environ | {
        "ADDON_OPERATOR_DEVCLUSTER_STATE": str(tmp_path / "clusters"),
        "ADDON_OPERATOR_LISTEN_PORT": str(free_port()),
        "ADDON_OPERATOR_TMP_DIR": str(tmp_path / "tmp"),
    }
    done = subprocess.run(
        ["bash", "-c", script(tutorial.stem, blocks, outputs)],
        cwd=typing_pages.checkout(tmp_path),
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    said = {int(path.name): path.read_text() for path in outputs.iterdir()}
    assert done.returncode == 0, f"{done.stderr}\n{said}"
    for number, block in enumerate(blocks):
        for line in (block["text"] or "").splitlines():
            assert typing_pages.is_printed(line, said[number]), f"{line}\n{said[number]}"
    assert not (tmp_path / "checkout" / "playground").exists()
    assert list((tmp_path / "clusters").glob("*/state.json")) == []
