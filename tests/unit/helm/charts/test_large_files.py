"""What makes a chart too large."""

import pathlib

from addon_operator.helm.charts import large_files


def test_the_largest_files_of_a_chart_are_named_without_what_helm_does_not_get(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "Chart.yaml").write_text("name: web\n")
    for name, size in (("files/a.bin", 3 << 20), ("templates/b.yaml", 2048), ("crds/c.yaml", 5 << 20)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(bytes(size))
    assert large_files.described(tmp_path) == (
        "the largest of its files, 3.0 MiB in all: files/a.bin (3.0 MiB), templates/b.yaml (2.0 KiB), "
        "Chart.yaml (0.0 KiB)"
    )
    assert large_files.described(tmp_path / "gone") == ""
