"""The tutorial about PodPresets, typed as it stands there, says what it promises."""

import pathlib
import re

import pytest

from tests.integration import operator_process, typing_pages

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "tutorial" / "first-podpreset.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def test_the_tutorial_about_podpresets_works_as_typed(tmp_path: pathlib.Path) -> None:
    http, admission = operator_process.free_port(), operator_process.free_port()
    script = "\n".join(blocks("bash")).replace("localhost:9650", f"localhost:{http}")
    script = script.replace(
        "--webhook-url https://127.0.0.1:9651",
        f"--webhook-url https://127.0.0.1:{admission} --admission-server-listen-port {admission}",
    )
    printed = typing_pages.typed(script, tmp_path, http, seconds=400)
    for line in "".join(blocks("text")).replace("…\n", "").splitlines():
        assert line in printed, printed
    assert re.search(r"^allow-database .* 1 +0 ", printed, flags=re.MULTILINE), "one injected"
    assert list((tmp_path / "clusters").iterdir()) == []
