"""Bounds of archives that say something else of themselves than what they hold."""

import gzip
import io
import tarfile
import tracemalloc

import pytest

from addon_operator.helm.charts import packed_files
from tests.support import rows
from tests.unit.helm.charts.packed_charts import member

_NAMES = [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK]


def block(kind: bytes, content: bytes, size: int | None = None) -> bytes:
    """A header of that kind, and what follows it."""
    info, _ = member("web/name", content, type=kind)
    info.size = len(content) if size is None else size
    return info.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % tarfile.BLOCKSIZE)


def read(*blocks: bytes) -> list[str]:
    archive = io.BytesIO(gzip.compress(b"".join(blocks) + bytes(2 * tarfile.BLOCKSIZE), compresslevel=1))
    return [found.name for found, _ in packed_files.members(archive, packed_files.Room())]


@rows.each("kind", _NAMES, ids=["attributes", "attributes of all", "name", "target"])
def test_a_name_is_not_read_whatever_its_size(kind: bytes) -> None:
    with pytest.raises(packed_files.PackedFilesError, match="with more than 1048576 bytes"):
        read(block(kind, b"", size=1 << 32))


def test_names_count_as_what_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_files, "MAX_UNPACKED", 1024 * 1024)
    name = block(tarfile.XGLTYPE, b"\0" * 300_000)
    assert read(name, block(tarfile.REGTYPE, b"x")) == ["web/name"]
    with pytest.raises(packed_files.PackedFilesError, match="unpacks to more than 1 MiB"):
        read(name, block(tarfile.REGTYPE, b"x"), name, block(tarfile.REGTYPE, b"x"), name, name)


@pytest.mark.slow
def test_names_of_names_end_somewhere() -> None:
    with pytest.raises(packed_files.PackedFilesError, match="is not a readable archive: maximum recursion"):
        read(*[block(tarfile.XGLTYPE, b"6 a=b\n")] * 2000)


def test_a_sparse_file_is_not_written_as_large_as_it_says() -> None:
    info, _ = member("web/hole", type=tarfile.GNUTYPE_SPARSE)
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[483:495] = b"%011o\0" % (1 << 32)
    header[148:156] = b"%06o\0 " % tarfile.calc_chksums(bytes(header))[0]  # type: ignore[attr-defined]
    archive = io.BytesIO(gzip.compress(bytes(header) + bytes(2 * tarfile.BLOCKSIZE)))
    ((found, content),) = packed_files.members(archive, packed_files.Room())
    assert (found.size, content) == (1 << 32, None)


def test_what_is_damaged_within_is_an_error() -> None:
    whole = bytearray(gzip.compress(block(tarfile.REGTYPE, bytes(range(256)) * 400), compresslevel=9))
    whole[len(whole) // 2 : len(whole) // 2 + 40] = b"\xff" * 40
    with pytest.raises(packed_files.PackedFilesError, match="is not a readable archive"):
        list(packed_files.members(io.BytesIO(bytes(whole)), packed_files.Room()))


@pytest.mark.slow
def test_attributes_of_all_files_are_not_kept_with_each_of_them() -> None:
    attributes = b"".join(b"14 k%06d=ab\n" % number for number in range(5_000))
    files = [block(tarfile.REGTYPE, b"")] * 200
    tracemalloc.start()
    try:
        assert len(read(block(tarfile.XGLTYPE, attributes), *files)) == 200
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000, "half a megabyte for each file"


def test_eight_gigabytes_are_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_files, "MAX_UNPACKED", 1024 * 1024)
    header = block(tarfile.REGTYPE, b"", size=(8 << 30) - 1)
    zeros = gzip.compress(bytes(1 << 20))
    archive = io.BytesIO(gzip.compress(header) + zeros * 8192)
    with pytest.raises(packed_files.PackedFilesError, match="unpacks to more than 1 MiB"):
        list(packed_files.members(archive, packed_files.Room()))
    assert archive.tell() < 1000 * len(zeros), "most is not even read"
