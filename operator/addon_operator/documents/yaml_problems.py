"""What the parser of YAML says, in the words of somebody who writes values, and without these values."""

import re
from typing import Final

import yaml

_ALIGN: Final = "give keys that belong together the same number of spaces"
_IN_WORDS: Final = {
    "found character that cannot start any token": "a value cannot begin with {at}; put it in quotes",
    "did not find expected node content": "a value is missing here; complete it, or put the text in quotes",
    "found undefined alias": (
        "a value that begins with '*' names an anchor, and there is none of that name; put it in quotes"
    ),
    "found unknown escape character": (
        r"a '\' in a text between double quotes begins nothing known; write '\\', or use single quotes"
    ),
    "found unexpected end of stream": "the quote that begins in line {began} does not end; close it",
}
_OPENING: Final = {"}": "{", "]": "["}
_KEY: Final = re.compile(r"[^\s#][^:]*+:(?:\s|$)")
_KEY_WITH_VALUE: Final = re.compile(r"[\s-]*+[^\s#:-][^:]*+:[ \t]+[^\s#]")


def explained(error: yaml.MarkedYAMLError, text: str) -> str:
    """Return what is wrong where the parser stopped, and what to do; its own words where nothing is known."""
    mark, problem = error.problem_mark, str(error.problem)
    if mark is None:
        return problem
    lines = text.split("\n")
    line = lines[mark.line] if mark.line < len(lines) else ""
    if line[: len(line) - len(line.lstrip())].count("\t"):
        return "a tab stands where the line begins; indent with spaces"
    began = 0 if error.context_mark is None else error.context_mark.line + 1
    return _of_keys(problem, lines, mark) or _of_scalars(problem, line, mark, began) or _as_it_is(error)


def _as_it_is(error: yaml.MarkedYAMLError) -> str:
    context = f" ({error.context})" if error.context else ""
    return f"{error.problem}{context}"


def _of_keys(problem: str, lines: list[str], mark: yaml.Mark) -> str:
    line = lines[mark.line] if mark.line < len(lines) else ""
    if problem.startswith("mapping values are not allowed"):
        return _misplaced_value(line, mark, _line_above(lines, mark.line))
    if problem == "did not find expected key":
        return f"the line is indented like none of the lines above it that it could belong to; {_ALIGN}"
    if problem == "did not find expected '-' indicator":
        return "the line is no item of the list above it; begin it with '- ', or indent it otherwise"
    if problem == "did not find expected <document start>":
        return f"the line is indented less than the first one; {_ALIGN}"
    if problem == "could not find expected ':'":
        return f"line {_line_above(lines, mark.line)[0]} has no ':' behind its key; write 'key: value'"
    return ""


def _misplaced_value(line: str, mark: yaml.Mark, above: tuple[int, str]) -> str:
    number, before = above
    if _KEY.match(line[: mark.column + 1].lstrip() + " ") and line[: mark.column].count(": ") == 0:
        if _KEY_WITH_VALUE.match(before):
            return (
                f"the line is indented more than line {number}, which has a value already; "
                f"give both the same number of spaces"
            )
        if before:
            return f"line {number} has no ':' behind its key; write 'key: value'"
    return "a second ': ' stands in the value; put the value in quotes"


def _of_scalars(problem: str, line: str, mark: yaml.Mark, began: int) -> str:
    if problem in ("did not find expected ',' or '}'", "did not find expected ',' or ']'"):
        bracket = problem[-2]
        return f"{_OPENING[bracket]!r} in line {began} is followed by neither ',' nor {bracket!r}; close it"
    return _IN_WORDS.get(problem, "").format(at=repr(line[mark.column : mark.column + 1]), began=began)


def _line_above(lines: list[str], number: int) -> tuple[int, str]:
    """Return the last line above one that has content, with its number from 1."""
    for index in range(min(number, len(lines)) - 1, -1, -1):
        if lines[index].strip() and not lines[index].lstrip().startswith("#"):
            return index + 1, lines[index]
    return 0, ""
