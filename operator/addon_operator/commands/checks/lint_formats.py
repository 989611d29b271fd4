"""Findings for programs: SARIF 2.1.0, and the annotations of workflows on GitHub."""

import itertools
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import addon_operator
from addon_operator.commands.checks import lint_places, lint_rules, values_check
from addon_operator.kernel import json_types

_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_IN_DATA: Final = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
_IN_PROPERTY: Final = (*_IN_DATA, (":", "%3A"), (",", "%2C"))
_IN_MESSAGE: Final = (("{", "{{"), ("}", "}}"), ("](", "] ("))
"""In SARIF, ``{0}`` is a placeholder, and ``[text](target)`` a link."""
_REPOSITORY: Final = "GITHUB_WORKSPACE"
_MOST_DIRECTORIES: Final = 100
"""In how many directories a file is looked for that stands for the one above them."""

Located = Sequence[tuple[values_check.Finding, lint_places.Place | None]]
"""Findings with their places."""


def rows(located: Located) -> list[json_types.JsonObject]:
    """Return a mapping for each finding."""
    return [
        {
            "level": str(finding.level),
            "rule": str(finding.rule),
            "subject": finding.subject,
            "file": None if place is None else str(place.path),
            "line": None if place is None else place.line or None,
            "problem": finding.problem,
        }
        for finding, place in located
    ]


def github(located: Located) -> Iterator[str]:
    """Yield a command of a workflow for each finding, which GitHub shows beside the line."""
    for finding, place in located:
        properties = {"title": f"{finding.rule} ({finding.subject})"}
        if place is not None:
            properties = {"file": _relative(place.path), "line": str(place.line or 1)} | properties
        written = ",".join(f"{key}={_escaped(text, _IN_PROPERTY)}" for key, text in properties.items())
        yield f"::{finding.level} {written}::{_escaped(finding.problem, _IN_DATA)}"


def _escaped(text: str, pairs: Sequence[tuple[str, str]]) -> str:
    for plain, escaped in pairs:
        text = text.replace(plain, escaped)
    return text


def sarif(located: Located) -> json_types.JsonObject:
    """Return a log of SARIF 2.1.0."""
    rules = list(lint_rules.Rule)
    return {
        "$schema": _SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "addon-operator module lint",
                        "semanticVersion": addon_operator.__version__,
                        "rules": [_rule(rule) for rule in rules],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, place, rules) for finding, place in located],
            }
        ],
    }


def _rule(rule: lint_rules.Rule) -> json_types.JsonObject:
    about = lint_rules.ABOUT[rule]
    remedy = f"Where a file breaks it on purpose, write a comment there: '# lint: ignore {rule} REASON'."
    # GitHub asks for all three, and shows the last one beside the finding.
    return {
        "id": str(rule),
        "shortDescription": {"text": about},
        "fullDescription": {"text": about},
        "help": {"text": f"{about} {remedy}"},
    }


def _result(
    finding: values_check.Finding, place: lint_places.Place | None, rules: Sequence[lint_rules.Rule]
) -> json_types.JsonObject:
    result: json_types.JsonObject = {
        "ruleId": str(finding.rule),
        "ruleIndex": rules.index(finding.rule),
        "level": str(finding.level),
        "message": {"text": _escaped(f"{finding.subject}: {finding.problem}", _IN_MESSAGE)},
    }
    # GitHub refuses the whole log for one finding that is in no file.
    place = place or lint_places.Place(pathlib.Path(os.environ.get(_REPOSITORY) or os.curdir))
    physical: json_types.JsonObject = {"artifactLocation": {"uri": _uri(_any_file(place.path))}}
    if place.line:
        physical["region"] = {"startLine": place.line}
    result["locations"] = [{"physicalLocation": physical}]
    return result


def _any_file(path: pathlib.Path) -> pathlib.Path:
    """Return a file that stands for a directory: the first one that is found in it."""
    for directory, below, files in itertools.islice(os.walk(path), _MOST_DIRECTORIES):
        below[:] = sorted(each for each in below if not each.startswith("."))
        if shown := sorted(each for each in files if not each.startswith(".")):
            return pathlib.Path(directory, shown[0])
    return path


def _relative(path: pathlib.Path) -> str:
    """Return a path as it is in the repository: that of a workflow, or else the working directory."""
    real = os.path.realpath(path)
    for root in filter(None, (os.environ.get(_REPOSITORY), os.curdir)):
        here = os.path.realpath(root)
        if pathlib.Path(real).is_relative_to(here):
            return os.path.relpath(real, here)
    return real


def _uri(path: pathlib.Path) -> str:
    relative = pathlib.PurePath(_relative(path))
    return relative.as_uri() if relative.is_absolute() else _quoted(relative)


def _quoted(path: pathlib.PurePath) -> str:
    """Return a relative reference: what as_uri() does, which takes absolute paths only."""
    return (pathlib.PurePosixPath("/") / path).as_uri().removeprefix("file:///")


def located(
    findings: Sequence[values_check.Finding], modules: Mapping[str, pathlib.Path]
) -> list[tuple[values_check.Finding, lint_places.Place | None]]:
    """Return the findings with their places; a directory stands for the first of its usual files."""
    return [(each, _file(lint_places.place_of(each, modules))) for each in findings]


def _file(place: lint_places.Place | None) -> lint_places.Place | None:
    if place is None or not place.path.is_dir():
        return place
    for name in ("module.yaml", "values.yaml", "Chart.yaml"):
        if (place.path / name).is_file():
            return lint_places.Place(place.path / name)
    return place
