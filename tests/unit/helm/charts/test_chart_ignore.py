"""Which files of a chart Helm does not load."""

import pathlib

import pytest

from addon_operator.helm.charts import chart_ignore
from tests.support import rows


@rows.each(
    ("rule", "left_out", "kept"),
    [
        ("README.md", ["README.md", "docs/README.md"], ["README.md.yaml"]),
        ("*.tmp", ["a.tmp", "crds/a.tmp"], ["a.tmp.yaml"]),
        ("crds/a.yaml", ["crds/a.yaml"], ["a.yaml", "b/crds/a.yaml"]),
        ("/a.yaml", ["a.yaml"], ["crds/a.yaml"]),
        ("crds/*/", ["crds/old/a.yaml", "crds/old/more/a.yaml"], ["crds/a.yaml"]),
        ("old/", ["old/a.yaml", "crds/old/a.yaml"], ["old", "crds/old"]),
        ("old", ["old/a.yaml", "old"], ["older/a.yaml"]),
        ("!*.yaml", ["a.txt"], ["a.yaml"]),
        ("# a.yaml", [], ["a.yaml", "# a.yaml"]),
        ("   ", [], ["a.yaml"]),
    ],
    ids=[
        "a name",
        "a name with a star",
        "a path",
        "a path from the chart on",
        "directories at a path",
        "directories of a name",
        "files and directories of a name",
        "all but",
        "a comment",
        "nothing",
    ],
)
def test_rules_leave_out_what_helm_leaves_out(
    tmp_path: pathlib.Path, rule: str, left_out: list[str], kept: list[str]
) -> None:
    (tmp_path / ".helmignore").write_text(f"\n  {rule}\r\n")
    rules = chart_ignore.read(tmp_path)
    for expected, paths in ((True, left_out), (False, kept)):
        assert {path: rules.leaves_out(pathlib.PurePath(path)) for path in paths} == dict.fromkeys(
            paths, expected
        )


def test_a_chart_without_rules_keeps_everything(tmp_path: pathlib.Path) -> None:
    assert not chart_ignore.read(tmp_path).leaves_out(pathlib.PurePath("crds/a.yaml"))
    assert not chart_ignore.read(tmp_path / "missing").leaves_out(pathlib.PurePath("crds/a.yaml"))


def test_a_file_of_more_than_64_kib_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / chart_ignore.FILE).write_text("a\n" * chart_ignore.MAX_FILE)
    with pytest.raises(OSError, match=r"it has more than 0\.0625 MiB"):
        chart_ignore.read(tmp_path)
