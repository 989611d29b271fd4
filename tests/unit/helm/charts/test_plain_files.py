"""Files that somebody else wrote."""

import pathlib
from collections.abc import Callable

import pytest

from addon_operator.helm import helm_errors
from addon_operator.helm.charts import chart_files, chart_ignore, plain_files, subcharts
from addon_operator.kernel import clock, names

WEB = names.ModuleName("web")


@pytest.fixture
def chart(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A chart whose links double with each level: 24 directories with two links each."""
    monkeypatch.setattr(plain_files, "MAX_LINKED", 1000)
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 1.0.0\n")
    for level in range(24):
        directory = tmp_path / "charts" / str(level)
        directory.mkdir(parents=True)
        for name in "ab":
            (directory / name).symlink_to(f"../{level + 1}")
    return tmp_path


@pytest.mark.parametrize(
    "read",
    [
        lambda chart: subcharts.read(WEB, chart),
        lambda chart: subcharts.has_schemas(WEB, chart),
        lambda chart: chart_files.ChartFilesReader(clock.SystemClock()).read(WEB, chart),
    ],
    ids=["charts within it", "schemas", "checksum"],
)
def test_links_that_double_with_each_level_are_refused(
    chart: pathlib.Path, read: Callable[[pathlib.Path], object]
) -> None:
    with pytest.raises(helm_errors.ChartError, match="more than 1000 files lie behind links; put copies"):
        read(chart)


def test_a_directory_without_links_may_have_any_number_of_files(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_files, "MAX_LINKED", 3)
    for number in range(5):
        (tmp_path / str(number)).touch()
    assert [len(files) for _, files in plain_files.walk(tmp_path)] == [5]


def test_a_link_that_leads_back_comes_to_an_end(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "back").symlink_to(".")
    assert all("a" in files for _, files in plain_files.walk(tmp_path))


def test_a_helmignore_of_many_rules_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / chart_ignore.FILE).write_text("*.bak\n" * 20_000)
    with pytest.raises(OSError, match="it has more than"):
        chart_ignore.read(tmp_path)
