"""Snapshots: what a test made, compared with a YAML file that lies beside the tests."""

import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from addon_operator.documents import yaml_reading, yaml_writing
from addon_operator.kernel import errors
from addon_operator.loading import named_files
from addon_operator.testing import differences
from addon_operator.testing.modules import manifests, places

DIRECTORY: Final = "snapshots"
UPDATE: Final = "--snapshot-update"
VARIES: Final = "(varies)"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_NAME_CHARS: Final = 100


class SnapshotError(errors.AddonOperatorError, AssertionError):
    """What a test made is not what the snapshot says, or there is none."""


class Record(msgspec.Struct):
    """What became of the snapshots of a test run."""

    written: dict[pathlib.Path, bool] = msgspec.field(default_factory=dict)
    """Those that were written, and whether that changed them."""
    used: set[pathlib.Path] = msgspec.field(default_factory=set)
    """Those that tests compared with, or wrote."""
    complete: dict[pathlib.Path, bool] = msgspec.field(default_factory=dict)
    """Files of tests, and whether each test of them has passed: only then it is known what they use."""

    def lines(self) -> Iterator[str]:
        """Yield what is to be said at the end: what was written, and what no test uses any more."""
        changed = [places.shown(path) for path, is_changed in self.written.items() if is_changed]
        if changed:
            yield f"wrote {_counted(len(changed))}: {', '.join(changed)}"
        if (same := len(self.written) - len(changed)) > 0:
            yield f"{_counted(same)} {'is' if same == 1 else 'are'} as before"
        for path in sorted(self._unused()):
            yield f"{places.shown(path)} is used by no test: remove it"

    def _unused(self) -> Iterator[pathlib.Path]:
        for directory in {file.parent for file in self.complete}:
            tests = {file.stem for file in directory.iterdir() if file.is_file()}
            for of_file in (directory / DIRECTORY).glob("*/"):
                if of_file.name not in tests:
                    yield of_file
        for file in (file for file, is_complete in self.complete.items() if is_complete):
            yield from {*directory_of(file).glob("*.yaml")} - self.used


def directory_of(file: pathlib.Path) -> pathlib.Path:
    """Return where the snapshots of a file of tests lie."""
    return file.parent / DIRECTORY / file.stem


def _counted(number: int) -> str:
    return "1 snapshot" if number == 1 else f"{number} snapshots"


class Snapshot:
    """Compares with the snapshots of one test; each further one of it has a number, or a name."""

    def __init__(
        self, directory: pathlib.Path, test: str, *, update: bool, record: Record | None = None
    ) -> None:
        """``directory`` is that of the test file's snapshots; ``update`` writes instead of comparing.

        What becomes of them goes into ``record``.
        """
        self._record = record or Record()
        self._directory = directory
        self._test = _UNSAFE.sub("-", test).strip("-")[:_NAME_CHARS]
        self._update = update
        self._count = 0

    def __repr__(self) -> str:
        return f"<snapshots in {self._directory}>"

    def __call__(self, made: Any, name: str = "") -> None:  # noqa: ANN401 - JSON
        """Compare objects, values or any other JSON with the snapshot.

        Fields of a chart's objects that are other ones in each render of the same, such as random passwords,
        are kept and compared as :data:`VARIES`.

        Raises :class:`SnapshotError` with the fields that differ, and for a snapshot that is missing.
        """
        __tracebackhide__ = True
        self._count += 1
        number = f"-{self._count}" if self._count > 1 and not name else ""
        suffix = f"-{_UNSAFE.sub('-', name)}" if name else number
        path = self._directory / f"{self._test}{suffix}.yaml"
        document = _document(made)
        self._record.used.add(path)
        if self._update:
            self._write(path, yaml_writing.dump(_without_varying(made, document)))
            return
        if not path.exists():
            raise SnapshotError(
                f"there is no snapshot {places.shown(path)}; run the test with {UPDATE} to write it, and "
                "read it before you commit it"
            )
        expected = yaml_reading.load(named_files.read_text(path), str(path))
        if differences.between(expected, document) and (
            found := differences.between(expected, _without_varying(made, document))
        ):
            raise SnapshotError(
                f"{places.shown(path)} differs (- snapshot, + now):\n{differences.shown(found)}\n"
                f"If that is meant, run the test with {UPDATE}."
            )

    def _write(self, path: pathlib.Path, text: str) -> None:
        is_changed = not path.is_file() or named_files.read_text(path) != text
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self._record.written[path] = is_changed


def _without_varying(made: Any, document: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the document with :data:`VARIES` in place of what a second render has otherwise."""
    if isinstance(made, manifests.Manifests) and made.again is not None:
        return _steady(document, _document(made.again()))
    return document


def _steady(one: Any, other: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return {key: _steady(value, other[key]) for key, value in one.items()}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return list(map(_steady, one, other))
    return VARIES if differences.between(one, other) else one


def _document(made: Any) -> Any:  # noqa: ANN401 - JSON
    """Return what is kept: the JSON of it."""

    def plain(value: object) -> object:
        if hasattr(value, "__iter__"):
            return list(value)
        raise errors.ConfigurationError(f"a snapshot keeps JSON alone, not a {type(value).__name__}")

    return json.loads(json.dumps(made, default=plain))
