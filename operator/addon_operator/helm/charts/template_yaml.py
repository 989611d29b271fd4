"""Where a template is no YAML, whatever its values are: Helm counts the lines of one rendered document."""

import re
from typing import Final

import yaml

from addon_operator.documents import yaml_loader, yaml_reading

LONGEST: Final = 200_000
"""Characters of a template that is looked at."""
_STRUCTURE: Final = frozenset({"if", "else", "end", "range", "with", "define", "block", "break", "continue"})
_WORD: Final = re.compile(r"[a-z]+|/\*")
_VALUE: Final = "\ue000"


def wrong_line(template: str) -> str:
    """Return ``line 3: what is wrong`` of a template; empty if its text alone does not show it."""
    text = "" if len(template) > LONGEST or _VALUE in template else _without_actions(template)
    try:
        for _ in yaml.parse(text, Loader=yaml_loader.Loader):
            pass
    except yaml.YAMLError as error:
        position, problem = yaml_reading.described(error, text)
        return "" if position is None else f"line {position.line}: {problem}"
    return ""


def _without_actions(template: str) -> str:
    """Return the same lines with a word for each value; empty if their indentation is not seen."""
    parts, at = [], 0
    while (begin := template.find("{{", at)) >= 0 and (end := template.find("}}", begin)) >= 0:
        action, before = template[begin : end + 2], template[at:begin]
        word = _WORD.search(action)
        is_structure = word is not None and (word[0] in _STRUCTURE or word[0] == "/*" or "nindent" in action)
        parts += [before, "".join(_filled(char, " " if is_structure else _VALUE) for char in action)]
        at = end + 2
    lines = "".join([*parts, template[at:]]).split("\n")
    for number, (line, was) in enumerate(zip(lines, template.split("\n"), strict=True)):
        is_text = bool(line.strip(f"{_VALUE} \t"))
        if is_text and was.lstrip().startswith("{{") and not line.lstrip().startswith(_VALUE):
            return ""
        lines[number] = line.replace(_VALUE, "x") if is_text else ""
    return "\n".join(lines)


def _filled(char: str, other: str) -> str:
    return char if char == "\n" else other
