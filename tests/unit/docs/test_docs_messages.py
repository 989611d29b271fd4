"""The messages in the pages about trouble are those of the code, word for word."""

import functools
import pathlib
import re

from tests.support import rows

ROOT = pathlib.Path(__file__).parents[3]
PAGE = ROOT / "docs" / "how-to" / "troubleshoot.md"
ROW = re.compile(r"^\| (?P<first>.*?) \| .* \|$", re.MULTILINE)
GAP = "…"
OF_KUBERNETES = {
    'cannot patch "…" … field is immutable',
    "…: spec.ports[…].name: Duplicate value",
    "… may not be specified when … is not empty",
    "may not specify more than 1 …",
    "provided port is already allocated",
    "provided IP is already allocated",
    "Reason: OOMKilled",
    "Liveness probe failed",
}


def messages() -> list[str]:
    """What stands in the first column of the tables and has words in it."""
    cells = (row["first"] for row in ROW.finditer(PAGE.read_text("utf-8")))
    found = {text for cell in cells for text in re.findall(r"`([^`]+)`", cell) if " " in text}
    return sorted(found - OF_KUBERNETES)


@functools.cache
def code() -> str:
    """The sources, with texts of several lines in one, and a gap for what is put into them."""
    modules = (ROOT / "operator" / "addon_operator").rglob("*.py")
    joined = re.sub(r'"\s*\n\s*f?"', "", "\n".join(module.read_text("utf-8") for module in modules))
    return re.sub(r"\{[^{}\n]*\}", GAP, joined).replace('\\"', '"')


def pieces(message: str) -> list[str]:
    """The parts of a message that the code has to have; short ones say nothing."""
    return [piece for piece in re.split(r"…|[;:](?: |$)", message) if len(piece.split()) > 1]


def test_there_are_messages() -> None:
    assert len(messages()) > 40


def test_messages_are_those_of_the_code() -> None:
    assert [message for message in messages() if not pieces(message)] == []
    assert [part for message in messages() for part in pieces(message) if part.strip() not in code()] == []


@rows.each(
    ("message", "is_known"),
    [("two directories hold a module named …", True), ("two directories contain one named …", False)],
)
def test_a_message_that_is_worded_otherwise_is_found(message: str, is_known: bool) -> None:
    assert all(part.strip() in code() for part in pieces(message)) is is_known
