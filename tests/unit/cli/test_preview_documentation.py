"""The sessions of the how-to about previews run as they are printed."""

import pathlib
import re

import pytest
from click import testing

from addon_operator.cli import main

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "how-to" / "preview-a-pod.md"
STEP = re.compile(r"^\$ (?P<command>.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)
STEPS = [
    (step["command"], step["output"])
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for step in STEP.finditer(block)
]
FILES = {command.removeprefix("cat "): output for command, output in STEPS if command.startswith("cat ")}
SESSIONS = [(command, output) for command, output in STEPS if "--no-cluster" in command]


def test_the_page_has_sessions() -> None:
    assert set(FILES) == {"deployment.yaml", "presets.yaml"}
    assert len(SESSIONS) == 2


@pytest.mark.parametrize(("command", "output"), SESSIONS, ids=["yaml", "diff"])
def test_a_session_prints_what_the_page_says(
    command: str, output: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    _, *arguments = command.split()
    result = testing.CliRunner().invoke(main.cli, arguments)
    assert result.exit_code == 0
    assert result.output == output
