"""What docstrings refer to is there: an editor leads a reader to it."""

import builtins
import importlib
import pathlib
import re
from collections.abc import Iterator

from tests.support import rows

PACKAGE = pathlib.Path(__file__).parents[3] / "operator" / "addon_operator"
_DEFINED = re.compile(
    r"^( *)(?:(class|(?:async )?def) (\w+)|(?:\w+\.)?(\w+)(?:: [^=\n]+[^,=\n]| = .*|: [^=\n]+ = .*)$)",
    re.MULTILINE,
)
_REFERENCE = re.compile(r":(class|mod|meth|func|data|attr):`~?([\w.]+)`")


def defined(package: pathlib.Path) -> set[str]:
    """Return the dotted names of all modules, classes, functions and attributes."""
    names: set[str] = set()
    for path in package.rglob("*.py"):
        module = ".".join(path.with_suffix("").relative_to(package.parent).parts)
        names |= {module, module.removesuffix(".__init__")}
        names.update(f"{module}.{name}" for name in _within(path.read_text("utf-8")))
    return names


def _within(text: str) -> Iterator[str]:
    """Yield the names of a file by its lines: to parse all files takes five times as long."""
    classes: list[tuple[int, str]] = []
    for indent, kind, scope, value in _DEFINED.findall(text):
        while classes and classes[-1][0] >= len(indent):
            classes.pop()
        yield ".".join([*(name for _, name in classes), scope or value])
        if kind == "class":
            classes.append((len(indent), scope))


def dead(package: pathlib.Path) -> list[str]:
    """Return the references in docstrings that lead nowhere, with file and line."""
    names = defined(package)
    ends = {".".join(name.split(".")[-count:]) for name in names for count in (1, 2, 3)}
    return [
        f"{path.relative_to(package)}:{number}: {reference}"
        for path in sorted(package.rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for _, reference in _REFERENCE.findall(line)
        if reference.lstrip(".") not in ends and not _is_elsewhere(reference)
    ]


def _is_elsewhere(reference: str) -> bool:
    """Say whether it is of Python or of a library: those are named in full."""
    module, _, name = reference.rpartition(".")
    if not module and hasattr(builtins, name):
        return True
    for whole in (reference, module):
        try:
            found = importlib.import_module(whole)
        except (ImportError, ValueError, TypeError):
            continue
        return whole == reference or hasattr(found, name)
    return False


def test_each_reference_in_a_docstring_leads_somewhere() -> None:
    assert dead(PACKAGE) == []


@rows.each(
    ("text", "dead_ones"),
    [
        ('"""See :class:`.House`."""\nclass House: ...\n', []),
        ('"""See :class:`.Houses`."""\nclass House: ...\n', [".Houses"]),
        ('"""See :meth:`.House.enter`."""\nclass House:\n    def enter(self): ...\n', []),
        (
            '"""See :meth:`.House.leave`."""\nclass House:\n    def enter(self): ...\n',
            [".House.leave"],
        ),
        ('"""See :mod:`.rooms`, :class:`OSError` and :func:`asyncio.sleep`."""\n', []),
        (
            '"""See :mod:`.doors` and :func:`asyncio.slept`."""\n',
            [".doors", "asyncio.slept"],
        ),
    ],
)
def test_a_reference_that_leads_nowhere_is_found(
    text: str, dead_ones: list[str], tmp_path: pathlib.Path
) -> None:
    package = tmp_path / "house"
    package.mkdir()
    (package / "rooms.py").write_text(text)
    assert dead(package) == [f"rooms.py:1: {each}" for each in dead_ones]
