"""What every command has in common."""

import pytest

import addon_operator
from addon_operator.cli import main


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"addon-operator {addon_operator.__version__}\n"


def test_an_unknown_command_is_told_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["fly"])
    assert ended.value.code == 2
    assert "No such command 'fly'" in capsys.readouterr().err
