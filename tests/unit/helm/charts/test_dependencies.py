"""What keeps Helm from taking a chart, found without Helm."""

import io
import pathlib
import re
import tarfile

import pytest

from addon_operator.helm import helm_errors
from addon_operator.helm.charts import dependencies, subcharts
from addon_operator.kernel import names
from tests.support import rows

HEAD = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
LISTED = "dependencies:\n- {name: db, version: 1.0.0, alias: store, condition: db.enabled}\n"


def chart(path: pathlib.Path, text: str = HEAD) -> pathlib.Path:
    path.mkdir(parents=True)
    (path / "Chart.yaml").write_text(text)
    return path


def pack(path: pathlib.Path, name: str) -> None:
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:gz") as packed:
        member = tarfile.TarInfo(f"{name}/Chart.yaml")
        content = f"name: {name}\nversion: 1.0.0\n".encode()
        member.size = len(content)
        packed.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize("is_packed", [False, True], ids=["directory", "packed"])
def test_a_dependency_is_found_whatever_its_file_is_called(
    tmp_path: pathlib.Path, *, is_packed: bool
) -> None:
    web = chart(tmp_path / "chart", HEAD + LISTED)
    if is_packed:
        pack(web / "charts" / "db-1.0.0.tgz", "db")
    else:
        chart(web / "charts" / "other-name", "name: db\nversion: 1.0.0\n")
    assert dependencies.problem(web) == ""


@pytest.mark.parametrize("file", ["Chart.yaml", "requirements.yaml"])
def test_a_missing_dependency_is_named_with_what_to_run(tmp_path: pathlib.Path, file: str) -> None:
    web = chart(tmp_path / "chart", HEAD)
    with (web / file).open("a") as listing:
        listing.write(LISTED)
    pack(web / "charts" / "cache-1.0.0.tgz", "cache")
    assert dependencies.problem(web) == (
        f"{web}/{file}: of its dependencies, db is missing in {web}/charts; run 'helm dependency build {web}'"
    )


@rows.each(
    ("text", "expected"),
    [
        ("version: 1.0.0\n", "the key 'name' is wrong"),
        ("name: web\nversion: 1\n", "the key 'version' is wrong"),
        (HEAD + "type: library\n", "library chart"),
        (HEAD + "type: app\n", "the type 'app' is not known to Helm"),
        ("name: web\nversion: one\n", "the version 'one' is not one such as 1.2.3"),
        ("name: a/b\nversion: 1.0.0\n", "the name 'a/b' is none that a directory can have"),
        ("name: ..\nversion: 1.0.0\n", "the name '..' is none that a directory can have"),
        ("- a\n", "must be a mapping"),
        ("a: [\n", "line 2"),
    ],
    ids=["name", "version", "library", "type", "no version", "slash", "dots", "list", "no YAML"],
)
def test_a_chart_that_helm_would_not_take_is_a_problem(
    tmp_path: pathlib.Path, text: str, expected: str
) -> None:
    web = chart(tmp_path / "chart", text)
    assert expected in dependencies.problem(web)
    assert str(web) in dependencies.problem(web)


def test_an_archive_that_cannot_be_read_is_a_problem(tmp_path: pathlib.Path) -> None:
    web = chart(tmp_path / "chart", HEAD + LISTED)
    (web / "charts").mkdir()
    (web / "charts" / "db.tgz").write_bytes(b"no archive")
    assert "cannot be read" in dependencies.problem(web)


def test_what_a_chart_says_of_itself_is_bounded(tmp_path: pathlib.Path) -> None:
    (tmp_path / "Chart.yaml").write_text("name: web\nversion: 1.0.0\nlist: [" + "[]," * 400_000 + "]\n")
    assert dependencies.problem(tmp_path) == (
        f"{tmp_path}/Chart.yaml: it has more than 1 MiB; take the chart as upstream publishes it"
    )


@rows.each(
    ("name", "size", "charts", "problem"),
    [
        ("values.yaml", 1_100_000, 1, "charts/db0/values.yaml has more than 1 MiB"),
        ("values.schema.json", 5_300_000, 1, "charts/db0/values.schema.json has more than 5 MiB"),
        ("values.yaml", 1_000_000, 5, "values.yaml together have more than 4 MiB"),
    ],
    ids=["values", "schema", "all values"],
)
def test_what_is_parsed_of_charts_within_a_chart_is_bounded(
    tmp_path: pathlib.Path, name: str, size: int, charts: int, problem: str
) -> None:
    (tmp_path / "Chart.yaml").write_text("name: web\nversion: 1.0.0\n")
    for number in range(charts):
        below = tmp_path / "charts" / f"db{number}"
        below.mkdir(parents=True)
        (below / "Chart.yaml").write_text("name: db\nversion: 1.0.0\n")
        (below / name).write_text("# " + "x" * size)
    with pytest.raises(helm_errors.ChartError, match=re.escape(problem)):
        subcharts.read(names.ModuleName("web"), tmp_path, is_stock=True)
