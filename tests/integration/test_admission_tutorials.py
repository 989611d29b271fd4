"""The tutorials in which the API server asks the operator, typed as they stand there, do what they say."""

import pathlib
import re

import pytest

from tests.integration import operator_process, typing_pages

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TUTORIALS = pathlib.Path(__file__).parents[2] / "docs" / "tutorial"


def blocks(page: str, language: str) -> list[str]:
    text = (TUTORIALS / page).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def typed(page: str, directory: pathlib.Path) -> str:
    """What the page's commands print, on ports of this test's own."""
    http, admission = operator_process.free_port(), operator_process.free_port()
    script = "\n".join(blocks(page, "bash")).replace("localhost:9650", f"localhost:{http}")
    script = script.replace(
        "--webhook-url https://127.0.0.1:9651",
        f"--webhook-url https://127.0.0.1:{admission} --admission-server-listen-port {admission}",
    )
    printed = typing_pages.typed(script, directory, http, seconds=400)
    for line in "".join(blocks(page, "text")).splitlines():
        assert line == "…" or typing_pages.is_printed(line, printed), f"{line!r} is not in {printed}"
    assert list((directory / "clusters").iterdir()) == []
    return printed


def test_the_tutorial_about_podpresets_works_as_typed(tmp_path: pathlib.Path) -> None:
    printed = typed("first-podpreset.md", tmp_path)
    assert re.search(r"^allow-database .* 1 +0 ", printed, flags=re.MULTILINE), "one injected"


def test_the_tutorial_about_guards_works_as_typed(tmp_path: pathlib.Path) -> None:
    typed("guard-a-custom-resource.md", tmp_path)
