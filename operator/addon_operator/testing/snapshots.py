"""Snapshots: what a test made, compared with a YAML file that lies beside the tests."""

import json
import pathlib
import re
from typing import Any, Final

from addon_operator.documents import yaml_reading, yaml_writing
from addon_operator.kernel import errors
from addon_operator.testing import differences
from addon_operator.testing.modules import places

DIRECTORY: Final = "snapshots"
UPDATE: Final = "--snapshot-update"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_NAME_CHARS: Final = 100


class SnapshotError(errors.AddonOperatorError, AssertionError):
    """What a test made is not what the snapshot says, or there is none."""


class Snapshot:
    """Compares with the snapshots of one test; each further one of it has a number, or a name."""

    def __init__(self, directory: pathlib.Path, test: str, *, update: bool) -> None:
        """``directory`` is that of the test file's snapshots; ``update`` writes instead of comparing."""
        self._directory = directory
        self._test = _UNSAFE.sub("-", test).strip("-")[:_NAME_CHARS]
        self._update = update
        self._count = 0

    def __repr__(self) -> str:
        return f"<snapshots in {self._directory}>"

    def __call__(self, made: Any, name: str = "") -> None:  # noqa: ANN401 - JSON
        """Compare objects, values or any other JSON with the snapshot.

        Raises :class:`SnapshotError` with the fields that differ, and for a snapshot that is missing.
        """
        __tracebackhide__ = True
        self._count += 1
        number = f"-{self._count}" if self._count > 1 and not name else ""
        suffix = f"-{_UNSAFE.sub('-', name)}" if name else number
        path = self._directory / f"{self._test}{suffix}.yaml"
        document = _document(made)
        if self._update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(yaml_writing.dump(document), encoding="utf-8")
            return
        if not path.exists():
            raise SnapshotError(
                f"there is no snapshot {places.shown(path)}; run the test with {UPDATE} to write it, and "
                "read it before you commit it"
            )
        expected = yaml_reading.load(path.read_text(encoding="utf-8"), str(path))
        if found := differences.between(expected, document):
            raise SnapshotError(
                f"{places.shown(path)} differs (- snapshot, + now):\n{differences.shown(found)}\n"
                f"If that is meant, run the test with {UPDATE}."
            )


def _document(made: Any) -> Any:  # noqa: ANN401 - JSON
    """Return what is kept: the JSON of it."""

    def plain(value: object) -> object:
        if hasattr(value, "__iter__"):
            return list(value)
        raise errors.ConfigurationError(f"a snapshot keeps JSON alone, not a {type(value).__name__}")

    return json.loads(json.dumps(made, default=plain))
