"""Walks a path through the code: from file to file, each entered at one definition.

A step is reached from the one before it when that one, or what it uses of its own file, names it, and knows
its file, or that of a base class which declares it: it imports the file, or one that imports it. A class is
also reached from whoever gets an object of it, and whatever a docstring refers to from there.
"""

import ast
import dataclasses
import functools
import itertools
import pathlib
import re
from collections.abc import Iterator, Sequence

from typing_extensions import override

_REFERENCE = re.compile(r":\w+:`\.?([\w.]+)`")
_STEP = re.compile(r"`([\w/]+\.py)(?::([\w.]+))?`")

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclasses.dataclass(frozen=True)
class Step:
    """One file of a path, and where it is entered."""

    file: str
    entry: str

    @override
    def __str__(self) -> str:
        return f"{self.file}:{self.entry}"


def steps_of(cell: str) -> list[Step]:
    """Read the steps that a text names; a file without a folder lies beside the one before it."""
    steps: list[Step] = []
    for file, entry in _STEP.findall(cell):
        folder = "" if "/" in file or not steps else steps[-1].file.rpartition("/")[0] + "/"
        steps.append(Step(folder + file, entry))
    return steps


class Sources:
    """The files of one package."""

    def __init__(self, package: pathlib.Path) -> None:
        self._package = package
        self.read = functools.cache(self._read)

    def _read(self, file: str) -> "Source | None":
        path = self._package / file
        return Source(ast.parse(path.read_text("utf-8")), self._package) if path.is_file() else None

    def problems(self, steps: Sequence[Step]) -> Iterator[str]:
        """Say what is wrong with a path."""
        for step in steps:
            source = self.read(step.file)
            if source is None:
                yield f"there is no {step.file}"
            elif step.entry not in source.definitions:
                yield f"there is no {step}"
        if len({step.file for step in steps}) < len(steps):
            yield "a file is entered twice"
        for before, after in itertools.pairwise(steps):
            if not self._is_reached(before, after):
                yield f"{after} is not reached from {before}"

    def _is_reached(self, before: Step, after: Step) -> bool:
        here, there = self.read(before.file), self.read(after.file)
        if here is None or there is None:
            return False
        if after.entry in here.references(before.entry):
            return True
        owner, _, name = after.entry.rpartition(".")
        # Nobody writes __call__: who calls an object names its class.
        word = owner if name.startswith("__") else name
        if word not in here.words_from(before.entry) | (set() if owner else here.held_by(before.entry)):
            return False
        declared = {after.entry, *(f"{base}.{name}" for base in there.bases(owner))}
        known = (self.read(file) for file in self._known(before.file, here))
        return after.file in self._known(before.file, here) or any(
            source is not None and declared & source.definitions.keys() for source in known
        )

    def _known(self, file: str, here: "Source") -> set[str]:
        """Return the file itself, those that it imports, and those that these import."""
        imported = (self.read(other) for other in here.imports)
        return {file, *here.imports}.union(*(source.imports for source in imported if source is not None))


class Source:
    """One file: what it defines, what these use, and which files it imports."""

    def __init__(self, tree: ast.Module, package: pathlib.Path) -> None:
        self.definitions: dict[str, Definition] = {}
        for node in tree.body:
            if isinstance(node, Definition):
                self.definitions[node.name] = node
            if isinstance(node, ast.ClassDef):
                methods = (inner for inner in node.body if isinstance(inner, Definition))
                self.definitions |= {f"{node.name}.{inner.name}": inner for inner in methods}
        self.imports = {
            file
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(package.name)
            for file in _files(package, node)
        }

    def words_from(self, entry: str) -> set[str]:
        """Return all names that a definition uses, or that what it uses of this file uses."""
        words, waiting, seen = set[str](), [entry], set[str]()
        while waiting:
            current = waiting.pop()
            if current in seen or current not in self.definitions:
                continue
            seen.add(current)
            used = set(_words(self.definitions[current]))
            words |= used
            waiting += [name for name in self.definitions if name.rpartition(".")[2] in used]
        return words

    def held_by(self, entry: str) -> set[str]:
        """Return the names in the constructor of the class that a definition belongs to."""
        constructor = self.definitions.get(f"{entry.partition('.')[0]}.__init__")
        return set() if constructor is None else set(_words(constructor))

    def references(self, entry: str) -> set[str]:
        """Return what the docstring of a definition refers to, as ``:meth:`.Engine.react```."""
        node = self.definitions.get(entry)
        return set(_REFERENCE.findall(ast.get_docstring(node) or "")) if node is not None else set()

    def bases(self, name: str) -> set[str]:
        """Return the last words of what a class inherits from."""
        node = self.definitions.get(name)
        bases = node.bases if isinstance(node, ast.ClassDef) else ()
        return {ast.unparse(base).rpartition(".")[2] for base in bases}


def _words(definition: Definition) -> Iterator[str]:
    for node in ast.walk(definition):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _files(package: pathlib.Path, node: ast.ImportFrom) -> Iterator[str]:
    folder = str(node.module).replace(".", "/").removeprefix(package.name).removeprefix("/")
    if (package / f"{folder}.py").is_file():
        yield f"{folder}.py"
    for alias in node.names:
        file = f"{folder}/{alias.name}.py".removeprefix("/")
        if (package / file).is_file():
            yield file
