"""Reads a file of cases; what is wrong in it is told with file and line."""

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from addon_operator.documents import json_pointers, patterns, yaml_reading
from addon_operator.hook_contract import violations
from addon_operator.kernel import errors, json_types
from addon_operator.loading import named_files
from addon_operator.testing import part_words
from addon_operator.testing.cases import case_schema
from addon_operator.values import sources

_CHECKER: Final = violations.Checker(case_schema.SCHEMA)
_MOST: Final = 20
_OBJECTS: Final = ("objects", "absent", "count")
_RENDERED: Final = ("snapshot", "every", *_OBJECTS)
_SAY_SOMETHING: Final = frozenset({"enabled", "hook"})
"""What is expected here if it is false or empty, too: that the module is disabled, that a hook succeeds."""
_OF_MODULES: Final = ("hookValues", "upgradeFrom")
_Problem: TypeAlias = tuple[tuple[str | int, ...], str]


class CaseFileError(errors.ConfigurationError):
    """A file of cases is wrong; the text has all that is."""


class HookCase(msgspec.Struct, frozen=True):
    """The hook that a case is about."""

    name: str
    binding: str | None = None
    events: Sequence[Mapping[str, Any]] = ()
    review: Mapping[str, Any] | None = None
    convert: Sequence[Mapping[str, Any]] | None = None
    to: str | None = None


class Case(msgspec.Struct, frozen=True):
    """One test."""

    name: str
    place: str
    """File and line."""
    values: Mapping[str, Any]
    hook_values: Mapping[str, Any] | None
    objects: Sequence[Mapping[str, Any]]
    kubernetes: str | None
    upgrade_from: Mapping[str, Any] | None
    hook: HookCase | None
    expect: Mapping[str, Any]

    @property
    def renders(self) -> bool:
        """Whether the chart has to be rendered to tell."""
        if any(self.expect.get(key) for key in _RENDERED):
            return True
        return "error" in self.expect and self.hook is None


def read(path: pathlib.Path, *, of_module: bool = True) -> list[Case]:
    """Return the cases of a file, of a module or of global hooks.

    Raises :class:`CaseFileError`, and :class:`.YamlError`.
    """
    document = yaml_reading.load_document(named_files.read_text(path), str(path))
    found = [] if document.value is None else document.value
    if isinstance(found, list):
        found = [_with_whole_hook(each) for each in found]
    files: dict[pathlib.Path, json_types.JsonObject] = {}
    problems = _CHECKER.problems(found) or [
        *_contradictions(found),
        *_misused_words(found),
        *_read_files(found, path.parent, files),
    ]
    if not problems and not of_module:
        problems = list(_without_module(found))
    if problems or not isinstance(found, list):
        said = [f"{document.where(place)}: {_shown(place)}{text}" for place, text in problems[:_MOST]]
        raise CaseFileError("\n".join(said))
    return [
        _case(document, number, _with_files(each, path.parent, files))
        for number, each in enumerate(found)
        if isinstance(each, dict)
    ]


def _shown(place: tuple[str | int, ...]) -> str:
    # The line says which case it is.
    text = json_pointers.format_path(place[1:])
    return f"{text}: " if text else ""


def _with_whole_hook(case: json_types.JsonValue) -> json_types.JsonValue:
    if isinstance(case, dict) and isinstance(case.get("hook"), str):
        return {**case, "hook": {"name": case["hook"]}}
    return case


def _contradictions(cases: Any) -> Iterator[_Problem]:  # noqa: ANN401 - checked by the schema
    names: set[str] = set()
    for number, case in enumerate(cases):
        expect = case["expect"]
        if case["name"] in names:
            yield (number, "name"), "another case has this name; each needs one of its own"
        names.add(case["name"])
        if not any(value or key in _SAY_SOMETHING for key, value in expect.items()):
            yield (number, "expect"), "nothing is expected; write snapshot, objects, error, enabled or hook"
        if "hook" in expect and "hook" not in case:
            yield (number, "expect", "hook"), "no hook runs; name it with the key hook beside expect"
        if "hook" in case and "hookValues" in case:
            yield (number, "hookValues"), "a hook runs, and sets the values; remove one of both"
        if "error" in expect and any(key in expect for key in (*_RENDERED, "hook", "enabled")):
            yield (number, "expect", "error"), "what fails gives nothing else to expect; make two cases"


def _misused_words(cases: Any) -> Iterator[_Problem]:  # noqa: ANN401 - checked by the schema
    budget = patterns.PatternBudget()
    for number, case in enumerate(cases):
        yield from part_words.mistakes(case["expect"], budget, (number, "expect"))


def _without_module(cases: Any) -> Iterator[_Problem]:  # noqa: ANN401 - checked by the schema
    for number, case in enumerate(cases):
        if "hook" not in case:
            yield (number,), "cases of global hooks run one: name it with the key hook"
        for key in _OF_MODULES:
            if key in case:
                yield (number, key), "there is no module; write this case in the tests of one"
        for key in ("enabled", *_RENDERED):
            if key in case["expect"]:
                hint = "; write it below expect.hook" if key in _OBJECTS else ""
                yield (number, "expect", key), f"there is no module, and nothing is rendered{hint}"


def _read_files(
    cases: Any,  # noqa: ANN401 - checked by the schema
    directory: pathlib.Path,
    files: dict[pathlib.Path, json_types.JsonObject],
) -> Iterator[_Problem]:
    """Read the files with values that cases name into ``files``, each once."""
    for number, case in enumerate(cases):
        for index, name in enumerate(case.get("valuesFiles", ())):
            path = directory / name
            if path in files:
                continue
            try:
                text = named_files.read_text(path)
                document = yaml_reading.load(text, str(path)) or {}
            except errors.ConfigurationError as error:
                yield (number, "valuesFiles", index), str(error)
                continue
            if isinstance(document, dict):
                files[path] = document
            else:
                yield (number, "valuesFiles", index), f"{path} holds no sections; write key: value pairs"


def _with_files(
    case: Mapping[str, Any], directory: pathlib.Path, files: Mapping[pathlib.Path, json_types.JsonObject]
) -> Mapping[str, Any]:
    layers = [files[directory / name] for name in case.get("valuesFiles", ())]
    return {**case, "values": sources.merge(*layers, case.get("values", {}))} if layers else case


def _case(document: yaml_reading.Document, number: int, case: Mapping[str, Any]) -> Case:
    hook = case.get("hook")
    return Case(
        name=case["name"],
        place=document.where((number, "name")),
        values=case.get("values", {}),
        hook_values=case.get("hookValues"),
        objects=case.get("objects", ()),
        kubernetes=case.get("kubernetes"),
        upgrade_from=case.get("upgradeFrom"),
        hook=None if hook is None else HookCase(**hook),
        expect=case["expect"],
    )
