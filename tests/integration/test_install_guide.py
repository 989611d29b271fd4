"""The rehearsal of the install guide, typed as it stands there."""

import pathlib
import re

import pytest

from tests.integration import operator_process, typing_pages

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ROOT = pathlib.Path(__file__).parents[2]


def rehearsal() -> str:
    """All that is to be typed, as one script, run from the checkout."""
    page = (ROOT / "docs" / "how-to" / "install.md").read_text("utf-8")
    section = page.split("\n## Rehearse it on your machine\n")[1]
    blocks = re.findall(r"^```bash\n(.*?)^```$", section, flags=re.DOTALL | re.MULTILINE)
    return "\n".join([f"cd {ROOT}", *blocks])


def test_the_install_guide_can_be_rehearsed_as_typed(tmp_path: pathlib.Path) -> None:
    script = rehearsal()
    ports = {str(number): str(operator_process.free_port()) for number in (1, 2)}
    for number, port in ports.items():
        for before in ("localhost:", "--listen-port "):
            script = script.replace(f"{before}966{number}", f"{before}{port}")
    script = script.replace('"966$1"', f'"$([ "$1" = 1 ] && echo {ports["1"]} || echo {ports["2"]})"')
    assert re.search(r"\b966", script) is None, "ports of this machine"
    printed = typing_pages.typed(script, tmp_path, operator_process.free_port(), seconds=400)
    assert re.findall(r"^addon_operator_leader (\S+)", printed, flags=re.MULTILINE) == ["1.0", "0.0", "1.0"]
    assert re.search(r"^web +Ready +True", printed, flags=re.MULTILINE)
    assert re.search(r"Warning +InvalidValues +configmap/addon-operator", printed)
    assert list((tmp_path / "clusters").iterdir()) == []
