"""What is a chart, and the private chart of a module without Chart.yaml."""

import io
import os
import pathlib
import shutil
import tarfile
from collections.abc import Mapping

import pytest

from addon_operator.helm import helm_errors
from addon_operator.helm.charts import chart, chart_files, chart_links, packed_files, subcharts
from addon_operator.kernel import clock, names
from tests.support import rows

WEB = names.ModuleName("web")


@rows.each(
    ("entries", "expected"),
    [
        (["Chart.yaml"], True),
        (["templates/x.yaml"], True),
        (["hooks/x.sh", "values.yaml", "openapi/values.yaml"], False),
        (["Chart.yaml/x"], False),
        ([], False),
    ],
    ids=["Chart.yaml", "templates", "hooks only", "a directory of that name", "empty"],
)
def test_a_chart_is_a_chart_yaml_or_templates(
    tmp_path: pathlib.Path, entries: list[str], expected: bool
) -> None:
    for entry in entries:
        (tmp_path / entry).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / entry).touch()
    assert chart.is_chart(tmp_path) is expected


def test_helm_gets_a_copy_of_a_complete_chart_that_nobody_else_writes_to(
    module_dir: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    write(module_dir / "files" / "deep" / "a.txt", "a")
    write(module_dir / "hooks" / "hook.sh")
    (module_dir / "templates" / "nowhere.yaml").symlink_to("/gone")
    (module_dir / "around").symlink_to(module_dir)
    before = files_of(module_dir / "templates")
    made = chart.prepare(WEB, module_dir, tmp_path / "private")
    (module_dir / "files" / "deep" / "a.txt").write_text("b")
    shutil.rmtree(module_dir / "templates")
    assert (made / "files" / "deep" / "a.txt").read_text() == "a"
    assert files_of(made / "templates") == before
    assert (made / "hooks").is_symlink()


def test_helm_gets_nothing_of_the_virtual_environment_of_hooks(
    module_dir: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (module_dir / "hooks" / "venv" / "bin").mkdir(parents=True)
    (module_dir / "hooks" / "venv" / "bin" / "python3").symlink_to("/gone/python3")
    (module_dir / "hooks" / "hook.py").touch()
    before = chart_files.ChartFilesReader(clock.SystemClock()).read(WEB, module_dir)
    made = chart.prepare(WEB, module_dir, tmp_path / "private")
    assert {entry.name for entry in made.iterdir()} == {entry.name for entry in module_dir.iterdir()}
    assert {entry.name for entry in (made / "hooks").iterdir()} == {"hook.py"}
    assert chart_links.nowhere(module_dir) == ""
    (module_dir / "hooks" / "venv" / "more").write_text("x" * 10_000)
    assert "venv" not in chart_files.largest(module_dir)
    (module_dir / "templates" / "files.yaml").write_text('{{ .Files.Get "a" }}')
    with_files = chart_files.ChartFilesReader(clock.SystemClock()).read(WEB, module_dir)
    (module_dir / "hooks" / "venv" / "more").write_text("y")
    assert chart_files.ChartFilesReader(clock.SystemClock()).read(WEB, module_dir) == with_files != before


def test_a_module_without_chart_yaml_gets_a_private_chart(
    module_dir: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (module_dir / "Chart.yaml").unlink()
    for left_out in ("crds", "docs", "hooks", "images", "lib", "openapi", "tests"):
        (module_dir / left_out).mkdir()
    (module_dir / "templates" / "lib").mkdir()
    (module_dir / "values.yaml").write_text("web: {}\n")
    made = chart.prepare(WEB, module_dir, tmp_path / "private")
    assert {entry.name for entry in made.iterdir()} == {"Chart.yaml", "templates"}
    assert (made / "templates" / "lib").is_dir()
    assert (made / "Chart.yaml").read_text() == "apiVersion: v2\nname: web\nversion: 0.2.0\n"
    assert not (module_dir / "Chart.yaml").exists()


def test_the_own_values_of_a_complete_chart_are_those_that_helm_would_merge_in(
    module_dir: pathlib.Path,
) -> None:
    assert chart.own_values(WEB, module_dir) == {}
    (module_dir / "values.yaml").write_text("webEnabled: yes\nweb: {a: 017}\n")
    assert chart.own_values(WEB, module_dir) == {"webEnabled": True, "web": {"a": 15}}
    (module_dir / "values.yaml").write_text("# nothing\n")
    assert chart.own_values(WEB, module_dir) == {}


def test_a_module_without_chart_yaml_has_no_values_for_helm_to_merge_in(module_dir: pathlib.Path) -> None:
    (module_dir / "values.yaml").write_text("web: {a: 1}\n")
    (module_dir / "Chart.yaml").unlink()
    assert chart.own_values(WEB, module_dir) == {}


def test_links_are_copied_as_what_they_point_at(module_dir: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (module_dir / "Chart.yaml").unlink()
    (tmp_path / "elsewhere.yaml").write_text("kind: X\n")
    (module_dir / "templates" / "linked.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    made = chart.prepare(WEB, module_dir, tmp_path / "private")
    copied = made / "templates" / "linked.yaml"
    assert copied.read_text() == "kind: X\n"
    assert not copied.is_symlink()


def test_files_that_cannot_be_copied_are_an_error_of_the_module(tmp_path: pathlib.Path) -> None:
    with pytest.raises(helm_errors.ChartError, match="module web: cannot copy the chart"):
        chart.prepare(WEB, tmp_path / "gone", tmp_path / "private")


def test_a_pipe_among_the_files_that_are_copied_is_named(
    module_dir: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (module_dir / "Chart.yaml").unlink()
    pipe = module_dir / "templates" / "pipe.yaml"
    os.mkfifo(pipe)
    with pytest.raises(helm_errors.ChartError) as refused:
        chart.prepare(WEB, module_dir, tmp_path / "private")
    assert str(refused.value) == f"module web: {pipe} cannot be read: it is not a regular file; remove it"


def write(path: pathlib.Path, text: str = "x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def files_of(directory: pathlib.Path) -> set[str]:
    found = (
        pathlib.Path(path, name) for path, _, names in os.walk(directory, followlinks=True) for name in names
    )
    return {path.relative_to(directory).as_posix() for path in found}


def test_helm_gets_a_view_of_a_chart_without_definitions(
    module_dir: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    for name in ("crds/a.yaml", "files/crds/kept.yaml", "values.yaml"):
        write(module_dir / name)
    for name in (
        "Chart.yaml",
        "crds/b.yaml",
        "templates/b.yaml",
        "charts/deep/Chart.yaml",
        "charts/deep/crds/c.yaml",
    ):
        write(module_dir / "charts" / "inner" / name)
    with tarfile.open(module_dir / "charts" / "packed-1.0.0.tgz", "w:gz") as packed:
        for name in (
            "Chart.yaml",
            "crds/d.yaml",
            "templates/crds/e.yaml",
            "charts/deep/crds/f.yaml",
            "../../evil",
        ):
            packed.addfile(tarfile.TarInfo(f"packed/{name}"), io.BytesIO())
    view = chart.prepare(WEB, module_dir, tmp_path / "private")
    assert view != module_dir
    assert files_of(view) == {
        "Chart.yaml",
        "templates/config.yaml",
        "files/crds/kept.yaml",
        "values.yaml",
        "charts/inner/Chart.yaml",
        "charts/inner/templates/b.yaml",
        "charts/inner/charts/deep/Chart.yaml",
        "charts/packed-1.0.0-unpacked/Chart.yaml",
        "charts/packed-1.0.0-unpacked/templates/crds/e.yaml",
    }
    assert view.name == WEB


def test_a_packed_chart_that_is_not_an_archive_or_a_bomb_is_an_error_of_the_module(
    module_dir: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (module_dir / "charts").mkdir()
    archive = module_dir / "charts" / "packed-1.0.0.tgz"
    archive.write_bytes(b"nothing")
    with pytest.raises(helm_errors.ChartError, match="cannot copy the chart"):
        chart.prepare(WEB, module_dir, tmp_path / "private")
    monkeypatch.setattr(packed_files, "MAX_UNPACKED", 1024 * 1024)
    with tarfile.open(archive, "w:gz") as packed:
        member = tarfile.TarInfo("packed/large")
        member.size = 2 * 1024 * 1024
        packed.addfile(member, io.BytesIO(bytes(member.size)))
    with pytest.raises(helm_errors.ChartError, match="unpacks to more than 1 MiB"):
        chart.prepare(WEB, module_dir, tmp_path / "more")


def packed(name: str, files: Mapping[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as written:
        for path, content in files.items():
            member = tarfile.TarInfo(f"{name}/{path}")
            member.size = len(content)
            written.addfile(member, io.BytesIO(content))
    return archive.getvalue()


def nested(depth: int) -> bytes:
    """Charts that are packed within each other, each with a definition."""
    files = {"Chart.yaml": f"name: c{depth}".encode(), "crds/a.yaml": b"x"}
    if depth > 1:
        files |= {"charts/below-1.0.0.tgz": nested(depth - 1), "files/charts/no.tgz": b"not a chart"}
    return packed(f"c{depth}", files)


def test_definitions_of_a_chart_that_is_packed_within_a_packed_one_are_seen_and_kept_from_helm(
    module_dir: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (module_dir / "charts").mkdir()
    (module_dir / "charts" / "above-1.0.0.tgz").write_bytes(nested(3))
    found = subcharts.definitions(subcharts.read(WEB, module_dir), {})
    above = "charts/above-1.0.0.tgz"
    assert [place.removeprefix(f"{module_dir}/") for place, _ in found] == [
        f"{above}/crds/a.yaml",
        f"{above}/charts/below-1.0.0.tgz/crds/a.yaml",
        f"{above}/charts/below-1.0.0.tgz/charts/below-1.0.0.tgz/crds/a.yaml",
    ]
    view = chart.prepare(WEB, module_dir, tmp_path / "private")
    inside = "charts/above-1.0.0-unpacked"
    assert {name for name in files_of(view) if name.startswith("charts/")} == {
        f"{inside}/Chart.yaml",
        f"{inside}/files/charts/no.tgz",
        f"{inside}/charts/below-1.0.0-unpacked/Chart.yaml",
        f"{inside}/charts/below-1.0.0-unpacked/files/charts/no.tgz",
        f"{inside}/charts/below-1.0.0-unpacked/charts/below-1.0.0-unpacked/Chart.yaml",
    }


@pytest.mark.parametrize(
    ("where", "bound", "value", "told"),
    [
        (subcharts, "MAX_DEPTH", 2, "more than 2 packed charts within each other"),
        (packed_files, "MAX_FILES", 8, "all.tgz has more than 8 files"),
        (packed_files, "MAX_UNPACKED", 1024 * 1024, "all.tgz unpacks to more than 1 MiB"),
    ],
    ids=["depth", "number", "size"],
)
def test_packed_charts_within_each_other_are_bounded_together(
    module_dir: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    where: object,
    bound: str,
    value: int,
    told: str,
) -> None:
    (module_dir / "charts").mkdir()
    large = packed("large", {f"{number}": bytes(400 * 1024) for number in range(2)})
    files = {"charts/a.tgz": nested(3), "charts/b.tgz": large, "charts/c.tgz": large}
    (module_dir / "charts" / "all.tgz").write_bytes(packed("all", files))
    subcharts.read(WEB, module_dir)
    monkeypatch.setattr(where, bound, value)
    with pytest.raises(helm_errors.ChartError, match=told):
        subcharts.read(WEB, module_dir)
