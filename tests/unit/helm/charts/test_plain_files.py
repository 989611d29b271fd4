"""Files that somebody else wrote."""

import os
import pathlib
import re
from collections.abc import Callable

import pytest

import addon_operator
from addon_operator.commands.checks import lint_places
from addon_operator.helm import helm_errors
from addon_operator.helm.charts import chart_files, chart_ignore, plain_files, subcharts, template_lines
from addon_operator.kernel import clock, names

WEB = names.ModuleName("web")
PACKAGE = pathlib.Path(addon_operator.__file__).parent
READS = re.compile(r"(?<!plain_files)(?<!named_files)\.(?:read_text\(|read_bytes\(|open\(\"r)")
OF_MODULES = ("loading", "helm/charts", "commands/checks", "commands/plan", "testing", "debug", "engine")
OTHER_FILES = {
    "helm/charts/chart_archives.py": "of the cache, which the operator writes",
    "loading/hook_files.py": "judged before: only regular ones are opened",
    "loading/module_scan.py": "judged before: only regular ones are opened",
    "testing/live/running_operator.py": "the log of the test's own operator",
}
"""Where files are opened that are not, or not without a look, what somebody else wrote."""


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


def test_files_of_modules_are_only_read_after_a_look_at_what_they_are() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for room in OF_MODULES
        for path in (PACKAGE / room).rglob("*.py")
        if path.stem != "plain_files" and READS.search(path.read_text("utf-8"))
    }
    assert found == OTHER_FILES.keys()


def test_a_pipe_and_a_device_are_passed_over_by_who_looks_for_lines(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "values.yaml")
    (tmp_path / "module.yaml").symlink_to("/dev/zero")
    assert lint_places.without_ignored([], {"web": tmp_path}, {}).findings == ()
    for name in ("values.yaml", "module.yaml"):
        place = template_lines.Places().of(str(tmp_path / name), template_lines.Field("ConfigMap", "web"))
        assert place == str(tmp_path / name)
        with pytest.raises(OSError, match="not a regular file"):
            plain_files.read_head(tmp_path / name, 10)


def test_of_a_long_file_only_the_head_is_read(tmp_path: pathlib.Path) -> None:
    (tmp_path / "long").write_bytes(b"x" * 100_000)
    assert plain_files.read_head(tmp_path / "long", 7) == b"x" * 7
