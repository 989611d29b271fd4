"""Walks the paths of ``docs/architecture.md`` as a reader does: with "go to definition" of an editor.

A step is a definition. It is reached from the one before it if a name in the body of that leads there, or to
the class that it belongs to, or to the method that it overrides; or if the docstring of that refers to it, as
an inbox says who reads it. From a class a reader sees its methods.
"""

import ast
import contextlib
import dataclasses
import functools
import itertools
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import jedi
from typing_extensions import override

HEADING = "### Six paths through the code"
_PATH = re.compile(r"^\*\*(.+?)\*\*$")
_FILE = re.compile(r"^\d+\. `([\w/]+\.py)`: (.+)$")
_NAME = re.compile(r"`([A-Za-z_][\w.]*)`")
_REFERENCE = re.compile(r":\w+:`~?\.?([\w.]+)`")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclasses.dataclass(frozen=True)
class Step:
    """One definition on a path."""

    file: str
    name: str
    """With its class: ``Engine.react``."""

    @override
    def __str__(self) -> str:
        return f"{self.file}: {self.name}"


def paths(page: str) -> dict[str, list[Step]]:
    """Read the numbered lists under the heading: a file, and its definitions in the order they are met."""
    steps: dict[str, list[Step]] = {}
    title = ""
    section = page.split(f"\n{HEADING}\n", 1)[1].split("\n## ", 1)[0]
    # A step may go on in the next line.
    for line in re.sub(r"\n {2,}", " ", section).splitlines():
        if match := _PATH.match(line):
            title = match.group(1)
        elif match := _FILE.match(line):
            definitions = [Step(match.group(1), name) for name in _NAME.findall(match.group(2))]
            steps.setdefault(title, []).extend(definitions)
    return steps


class Sources:
    """The files of one package, as an editor sees them."""

    def __init__(self, package: pathlib.Path) -> None:
        self._package = package.resolve()
        self._project = jedi.Project(self._package.parent)
        self._tree = functools.cache(self._parsed)
        self._script = functools.cache(self._opened)

    def problems(self, steps: Sequence[Step]) -> list[str]:
        """Say what is wrong with the steps of a path, wherever they lead."""
        if absent := [f"there is no {step}" for step in steps if self._definition(step) is None]:
            return absent
        entered = [file for file, _ in itertools.groupby(step.file for step in steps)]
        twice = {file for file in entered if entered.count(file) > 1}
        return [f"{file} is entered twice" for file in sorted(twice)]

    def gaps(self, steps: Sequence[Step]) -> list[str]:
        """Say which steps do not lead to the next; an editor reads many files for it, which takes long."""
        return [
            f"{before} does not lead to {after}"
            for before, after in itertools.pairwise(steps)
            if not self._leads(before, after)
        ]

    def _parsed(self, file: str) -> ast.Module | None:
        path = self._package / file
        return ast.parse(path.read_text("utf-8")) if path.is_file() else None

    def _opened(self, file: str) -> jedi.Script:
        return jedi.Script(path=self._package / file, project=self._project)

    def _definition(self, step: Step) -> _Function | ast.ClassDef | None:
        node: ast.AST | None = self._tree(step.file)
        for part in step.name.split("."):
            inner = ast.iter_child_nodes(node) if node is not None else ()
            named = (each for each in inner if isinstance(each, _Function | ast.ClassDef))
            node = next((each for each in named if each.name == part), None)
        return node if isinstance(node, _Function | ast.ClassDef) else None

    def _leads(self, before: Step, after: Step) -> bool:
        body = self._definition(before)
        if body is None:
            return False
        if before.file == after.file and after.name.rpartition(".")[0] == before.name:
            return True
        if after.name in _REFERENCE.findall(ast.get_docstring(body) or ""):
            return True
        wanted = {_plain(part) for part in after.name.split(".")}
        places = (
            place
            for name, line, column in _names(body)
            # A name of something else is not looked up: that takes its time.
            if _plain(name) in wanted or "." not in after.name
            for place in self._definitions(before.file, line, column)
        )
        return any(self._is_at(place, after) or self._is_overridden(place, after) for place in places)

    def _definitions(self, file: str, line: int, column: int) -> Iterator[Any]:
        script = self._script(file)
        look_up = functools.partial(script.goto, follow_imports=True)
        for look in (look_up, script.infer):
            # jedi does not know every type of the standard library's.
            with contextlib.suppress(AttributeError):
                yield from look(line, column)

    def _is_at(self, place: Any, step: Step) -> bool:  # noqa: ANN401 - jedi has no types
        """Say whether an editor stands at the step: at the function or its class, or within the class."""
        if place.module_path is None or place.module_path.resolve() != self._package / step.file:
            return False
        node, owner = self._definition(step), step.name.rpartition(".")[0]
        if isinstance(node, ast.ClassDef):
            return bool(node.lineno <= place.line <= (node.end_lineno or 0))
        starts = [node, self._definition(Step(step.file, owner)) if owner else None]
        return any(each is not None and each.lineno == place.line for each in starts)

    def _is_overridden(self, place: Any, step: Step) -> bool:  # noqa: ANN401 - jedi has no types
        """Say whether an editor stands at a method that the step overrides: it lists the implementations."""
        owner, _, method = step.name.rpartition(".")
        if not owner or place.type != "function" or place.name != method:
            return False
        parent = place.parent()
        return parent is not None and parent.name in set(self._bases(Step(step.file, owner)))

    def _bases(self, step: Step) -> Iterator[str]:
        """Yield the names of all classes that a class inherits from."""
        node = self._definition(step)
        for base in node.bases if isinstance(node, ast.ClassDef) else ():
            target = base.value if isinstance(base, ast.Subscript) else base
            line, column = target.end_lineno or 0, (target.end_col_offset or 1) - 1
            for place in self._script(step.file).goto(line, column, follow_imports=True):
                yield place.name
                if place.module_path is not None and place.module_path.is_relative_to(self._package):
                    file = place.module_path.relative_to(self._package).as_posix()
                    yield from self._bases(Step(file, place.name))


def _plain(name: str) -> str:
    """Return a name without what tells attributes and classes apart: ``_inbox`` holds an ``Inbox``."""
    return name.replace("_", "").lower()


def _names(body: ast.AST) -> Iterator[tuple[str, int, int]]:
    for node in ast.walk(body):
        if isinstance(node, ast.Attribute) and node.end_lineno and node.end_col_offset:
            yield node.attr, node.end_lineno, node.end_col_offset - len(node.attr)
        elif isinstance(node, ast.Name):
            yield node.id, node.lineno, node.col_offset
