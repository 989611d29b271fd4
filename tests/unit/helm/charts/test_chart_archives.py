"""Unpacking the archive of a chart, which may come from anywhere."""

import functools
import hashlib
import io
import pathlib
import tarfile
from collections.abc import Callable

import pytest

from addon_operator.helm.charts import chart_archives, packed_files
from tests.support import rows
from tests.unit.helm.charts.packed_charts import CHART, member, pack


def test_files_lie_there_without_the_directory_of_the_archive(tmp_path: pathlib.Path) -> None:
    script = member("web/files/run.sh", b"#!/bin/sh\n", mode=0o4777)
    archive = pack(tmp_path / "web.tgz", CHART, member("web/files", type=tarfile.DIRTYPE), script)
    chart_archives.unpack(archive, tmp_path / "chart")
    assert (tmp_path / "chart" / "Chart.yaml").read_text() == "name: web\n"
    assert (tmp_path / "chart" / "files" / "run.sh").stat().st_mode & 0o7777 == 0o755
    assert chart_archives.sha256(archive) == f"sha256:{hashlib.sha256(archive.read_bytes()).hexdigest()}"


@rows.each(
    ("extra", "problem"),
    [
        pytest.param(member("web/../../evil", b"x"), "outside of its directory", id="parent"),
        pytest.param(member("/etc/evil", b"x"), "outside of its directory", id="absolute"),
        pytest.param(
            member("web/link", type=tarfile.SYMTYPE, linkname="/etc"), "neither file nor directory", id="link"
        ),
        pytest.param(
            member("web/hard", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
            "neither file nor directory",
            id="hard link",
        ),
        pytest.param(member("web/pipe", type=tarfile.FIFOTYPE), "neither file nor directory", id="pipe"),
        pytest.param(member("web/disk", type=tarfile.BLKTYPE), "neither file nor directory", id="device"),
        pytest.param(member("web/" + "a/" * 64 + "b", b"x"), "more than 64 directories", id="depth"),
        pytest.param(member("web/" + "a" * 300, b"x"), "a path that no file can have", id="long name"),
        pytest.param(member("web/Chart.yaml/b", b"x"), "a path that no file can have", id="below a file"),
    ],
)
def test_nothing_lands_outside(
    tmp_path: pathlib.Path, extra: tuple[tarfile.TarInfo, bytes], problem: str
) -> None:
    archive = pack(tmp_path / "web.tgz", CHART, extra)
    (tmp_path / "a").mkdir()
    with pytest.raises(chart_archives.ChartArchiveError, match=problem):
        chart_archives.unpack(archive, tmp_path / "a" / "chart")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "web.tgz"]


@pytest.mark.parametrize(
    ("where", "name", "limit", "problem"),
    [
        (chart_archives, "MAX_ARCHIVE", 10, "is larger than"),
        (packed_files, "MAX_UNPACKED", 100, "unpacks to more than"),
        (packed_files, "MAX_FILES", 0, "has more than 0 files"),
    ],
    ids=["archive", "unpacked", "files"],
)
def test_bounds_are_kept(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    where: object,
    name: str,
    limit: int,
    problem: str,
) -> None:
    monkeypatch.setattr(where, name, limit)
    with pytest.raises(chart_archives.ChartArchiveError, match=problem):
        chart_archives.unpack(pack(tmp_path / "web.tgz", CHART), tmp_path / "chart")


def no_archive(path: pathlib.Path) -> pathlib.Path:
    path.write_text("<html>sign in</html>")
    return path


def cut(path: pathlib.Path) -> pathlib.Path:
    whole = pack(path, CHART, member("web/big", bytes(range(256)) * 400)).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    return path


def without_chart(path: pathlib.Path) -> pathlib.Path:
    return pack(path, member("web/values.yaml", b"a: 1"))


SPARSE = (
    {"GNU.sparse.map": "a,b"},
    {"GNU.sparse.map": "1,2", "GNU.sparse.size": "x"},
    {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"},
)


def sparse(headers: dict[str, str], path: pathlib.Path) -> pathlib.Path:
    """An archive whose header of a sparse file is nonsense."""
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        found = tarfile.TarInfo("web/Chart.yaml")
        found.pax_headers, found.size = headers, 600
        archive.addfile(found, io.BytesIO(b"x" * 600))
    return path


@rows.each(
    ("make", "problem"),
    [
        *((functools.partial(sparse, header), "not a readable archive") for header in SPARSE),
        (no_archive, "not a readable archive"),
        (cut, "not a readable"),
        (without_chart, "has no Chart.yaml"),
    ],
)
def test_what_is_not_a_chart_is_refused(
    tmp_path: pathlib.Path, make: Callable[[pathlib.Path], pathlib.Path], problem: str
) -> None:
    with pytest.raises(chart_archives.ChartArchiveError, match=problem):
        chart_archives.unpack(make(tmp_path / "web.tgz"), tmp_path / "chart")


def test_directories_count_like_files(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_files, "MAX_FILES", 100)
    deep = [member(f"web/{number}/" + "a/" * 20 + "b", b"x") for number in range(6)]
    with pytest.raises(chart_archives.ChartArchiveError, match="has more than 100 files"):
        chart_archives.unpack(pack(tmp_path / "web.tgz", CHART, *deep), tmp_path / "chart")
    assert len(list((tmp_path / "chart").rglob("*"))) <= 100
