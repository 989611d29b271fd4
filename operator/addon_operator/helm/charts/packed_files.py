"""Reads the files of a packed chart within bounds: an archive may come from anywhere.

What an archive says of its sizes is not relied on: what it really unpacks to is counted while it is read,
headers included. As with Helm, an archive is a tar that is compressed with gzip.
"""

import functools
import gzip
import io
import tarfile
from collections.abc import Iterator
from typing import IO, Final

import msgspec

MAX_UNPACKED: Final = 64 * 1024 * 1024
"""How many bytes a packed chart may unpack to, those that are packed within it included."""
MAX_FILES: Final = 20_000
"""How many files a packed chart may have, counted in the same way."""
_AT_ONCE: Final = 1024 * 1024
"""How many bytes are read at once. :mod:`tarfile` reads a header of names or attributes at once."""


class PackedFilesError(ValueError):
    """An archive cannot be read, or breaks a bound; the text goes on after the name of the archive."""


class Room(msgspec.Struct):
    """What is left for an archive, and for the archives within it."""

    bytes_left: int = msgspec.field(default_factory=lambda: MAX_UNPACKED)
    files_left: int = msgspec.field(default_factory=lambda: MAX_FILES)

    def take_bytes(self, count: int) -> None:
        """Count bytes; raises :class:`PackedFilesError` when there is no room for them."""
        self.bytes_left -= count
        if self.bytes_left < 0:
            raise PackedFilesError(f"unpacks to more than {MAX_UNPACKED // 1024 // 1024} MiB")

    def take_file(self) -> None:
        """Count a file; raises as :meth:`take_bytes` does."""
        self.files_left -= 1
        if self.files_left < 0:
            raise PackedFilesError(f"has more than {MAX_FILES} files")


def members(archive: IO[bytes], room: Room) -> Iterator[tuple[tarfile.TarInfo, bytes | None]]:
    """Yield all that is in an archive, files with their content.

    Raises :class:`PackedFilesError`.
    """
    try:
        with (
            _Counted(archive, room) as unpacked,
            tarfile.TarFile(fileobj=unpacked) as packed,
        ):
            while (member := packed.next()) is not None:
                # Else each member keeps what was said of all members, and all of them are kept to the end.
                packed.pax_headers = {}
                packed.members = []  # type: ignore[attr-defined]  # the usual way, but without a stub
                room.take_file()
                # A sparse file has more bytes than the archive, as many as it says.
                file = None if member.issparse() or not member.isreg() else packed.extractfile(member)
                yield member, None if file is None else _content(file)
    except (PackedFilesError, MemoryError):
        raise
    except OSError as error:
        if not isinstance(error, gzip.BadGzipFile):
            raise
        raise PackedFilesError(f"is not a readable archive: {error}") from error
    except Exception as error:
        # What the library makes of numbers that are none differs from header to header.
        raise PackedFilesError(f"is not a readable archive: {error}") from error


def _content(file: IO[bytes]) -> bytes:
    return b"".join(iter(functools.partial(file.read, _AT_ONCE), b""))


class _Counted(gzip.GzipFile):
    """Gives what is unpacked, from the beginning to the end, as long as there is room."""

    def __init__(self, archive: IO[bytes], room: Room) -> None:
        super().__init__(fileobj=archive)
        self._room = room
        self._place = 0

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= _AT_ONCE:
            raise PackedFilesError(f"has a name or attribute of a file with more than {_AT_ONCE} bytes")
        data = super().read(size)
        self._place += len(data)
        self._room.take_bytes(len(data))
        return data

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, _whence: int = io.SEEK_SET) -> int:
        """Go on to a place by reading, so that what is skipped counts."""
        while (ahead := offset - self._place) > 0 and self.read(min(ahead, _AT_ONCE)):
            pass
        return self._place
