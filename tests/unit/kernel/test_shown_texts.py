"""Texts of hooks and charts as people see them, wherever they do."""

import json
import pathlib
import re
from collections.abc import Callable

import pytest

import addon_operator
from addon_operator.cli import debug, printing
from addon_operator.cli.authoring import dev_screen
from addon_operator.commands.dev import dev_view
from addon_operator.hook_contract import conversions
from addon_operator.hook_contract.configuration import webhook_bindings
from addon_operator.hook_contract.outputs import review_answers
from addon_operator.kernel import shown_texts
from addon_operator.kube.objects import events
from addon_operator.status import module_conditions, status_page
from addon_operator.telemetry import log_lines
from tests.support import rows

HOSTILE = "no\x1b[31m red\x00 \u202ebackwards\u2066 \x9b2J \x7f"
"""Colours, an end, an order of letters, and what clears the screen."""


def deny(text: str) -> str:
    answer = json.dumps({"allowed": False, "message": text})
    return review_answers.parse(answer, webhook_bindings.ReviewType.VALIDATING).message


def warn(text: str) -> str:
    answer = json.dumps([{"allowed": True, "warnings": [text]}, {"allowed": True}])
    return review_answers.parse(answer, webhook_bindings.ReviewType.VALIDATING).warnings[0]


def fail_conversion(text: str) -> str:
    return conversions.parse_answer(json.dumps({"failedMessage": text})).failed_message


@rows.each("told", [shown_texts.shown, deny, warn, fail_conversion])
def test_what_a_terminal_would_obey_reaches_nobody(told: object) -> None:
    assert callable(told)
    assert told(HOSTILE) == "no�[31m red� �backwards� �2J �"


def test_letters_and_lines_stay_and_a_warning_is_one_line() -> None:
    text = "Größe 日本 👩‍💻\n\tsecond"
    assert deny(text) == fail_conversion(text) == text
    assert warn(text) == "Größe 日本 👩‍💻 second"


OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
PACKAGE = pathlib.Path(addon_operator.__file__).parent


def of_dev(text: str) -> None:
    with dev_screen.lines() as screen:
        screen.tell(dev_view.Line("hook", text))


def of_log(type_: str) -> Callable[[str], str]:
    def told(text: str) -> str:
        fields: object = {"msg": text, "hook": text}
        for processor in log_lines.renderers(type_):
            fields = processor(None, "", fields)  # type: ignore[arg-type]  # one after the other
        return re.sub(r"\x1b\[[0-9;]*m", "", str(fields))

    return told


PLACES: dict[str, Callable[[str], object]] = {
    "table": lambda text: printing.listing(("MODULE", "message"), [("web", text)]),
    "folded table": lambda text: printing.listing(("MODULE", "message"), [("web", text)], folds=True),
    "names": lambda text: printing.names("module", [text]),
    "one line": printing.one_line,
    "error": printing.show_error,
    "note": printing.note,
    "answer": lambda text: debug.text_of({"a": [{text: text}]}, str),
    "dev": of_dev,
    "page": lambda text: status_page.document(text, ""),
    "event": events.cut,
    "conditions": lambda text: module_conditions.one_line(text, 100),
    "log": of_log("text"),
    "colored log": of_log("color"),
}


@pytest.mark.parametrize("place", PLACES)
def test_what_a_terminal_would_obey_is_shown_nowhere(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = PLACES[place](HOSTILE)
    captured = capsys.readouterr()
    shown = f"{told}{captured.out}{captured.err}"
    assert "backwards" in shown
    assert not OBEYED.search(shown)


@pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "pipe"])
def test_a_manifest_is_exact_in_a_pipe_and_harmless_on_a_terminal(
    is_terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal, raising=False)
    printing.show_text(HOSTILE)
    assert bool(OBEYED.search(capsys.readouterr().out)) is not is_terminal


def test_html_and_marks_of_notes_are_made_in_one_place() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"html\.escape\(|style\(.(?:Note|Error):", path.read_text("utf-8"))
    }
    assert found == {"cli/printing.py", "kernel/shown_texts.py"}
