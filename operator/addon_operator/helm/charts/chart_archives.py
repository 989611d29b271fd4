"""Unpacks the archive of a chart, within bounds: it may come from anywhere."""

import errno
import hashlib
import os
import pathlib
import tarfile
from typing import IO, Final

from addon_operator.helm.charts import packed_files
from addon_operator.kernel import errors

MAX_ARCHIVE: Final = 32 * 1024 * 1024
"""How many bytes an archive may have."""
MAX_DEPTH: Final = 64
"""How many directories may lie within each other."""
_OF_NAMES: Final = frozenset({errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST})
"""Errors for which the paths in the archive are the reason, and no directory of ours."""
_SHOWN: Final = 200
_DIRECTORY: Final = 0o755
_FILE: Final = 0o644
_EXECUTABLE: Final = 0o111
_MIB: Final = 1024 * 1024


class ChartArchiveError(errors.AddonOperatorError):
    """An archive is not a chart, or breaks a bound; the text goes on after the name of the chart."""


def sha256(archive: pathlib.Path) -> str:
    """Return the digest of the archive: ``sha256:…``."""
    with archive.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def unpack(archive: pathlib.Path, target: pathlib.Path) -> None:
    """Put the files of a chart into ``target``, which is made; its own directory in the archive is left out.

    What is there after a return is on the disk, whatever happens to the machine.
    Raises :class:`ChartArchiveError`, and :class:`OSError`.
    """
    if archive.stat().st_size > MAX_ARCHIVE:
        raise ChartArchiveError(f"is larger than {MAX_ARCHIVE // _MIB} MiB")
    target.mkdir()
    try:
        with archive.open("rb") as packed:
            _put_all(packed, target)
    except packed_files.PackedFilesError as error:
        raise ChartArchiveError(str(error)) from error
    if not (target / "Chart.yaml").is_file():
        raise ChartArchiveError("has no Chart.yaml")
    for directory, _, _ in os.walk(target, topdown=False):
        sync(pathlib.Path(directory))


def _put_all(packed: IO[bytes], target: pathlib.Path) -> None:
    room = packed_files.Room()
    directories: set[tuple[str, ...]] = set()
    for member, content in packed_files.members(packed, room):
        inside = _inside(member, content)
        if content is None or not inside:
            continue
        for length in range(1, len(inside)):
            if inside[:length] not in directories:
                # A directory costs as much as a file, and may be nothing but a part of a path.
                room.take_file()
                directories.add(inside[:length])
        try:
            _write(target.joinpath(*inside), content, member.mode)
        except OSError as error:
            if error.errno not in _OF_NAMES:
                raise
            raise ChartArchiveError(f"has a path that no file can have: {_shown(member)}") from error


def _inside(member: tarfile.TarInfo, content: bytes | None) -> tuple[str, ...]:
    """Return the path from the chart's own directory on."""
    path = pathlib.PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or "\\" in member.name or "\0" in member.name:
        raise ChartArchiveError(f"has a file outside of its directory: {_shown(member)}")
    if content is None and not member.isdir():
        raise ChartArchiveError(f"has something that is neither file nor directory: {_shown(member)}")
    if len(path.parts) > MAX_DEPTH:
        raise ChartArchiveError(f"has more than {MAX_DEPTH} directories within each other: {_shown(member)}")
    return path.parts[1:]


def _shown(member: tarfile.TarInfo) -> str:
    return repr(member.name[:_SHOWN])


def _write(path: pathlib.Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(mode=_DIRECTORY, parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    path.chmod(_FILE | (mode & _EXECUTABLE))


def sync(directory: pathlib.Path) -> None:
    """Have what a directory lists on the disk, whatever happens to the machine."""
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
