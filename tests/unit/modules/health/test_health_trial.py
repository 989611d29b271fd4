"""The trial of health counts what is the same as in a table of Argo CD, and shows one half of it alone."""

import pathlib

from click import testing

from tests.trials import health

TABLE = """
tests:
- {healthStatus: {status: Healthy}, inputPath: testdata/open.yaml}
- {healthStatus: {status: Degraded}, inputPath: testdata/shut.yaml}
- {healthStatus: {status: Unknown}, inputPath: testdata/shut.yaml}
"""
OPEN = "apiVersion: x.io/v1\nkind: Shop\nmetadata: {creationTimestamp: '2020-01-01'}\nstatus: {phase: %s}\n"


def test_verdicts_are_counted_by_halves_and_what_differs_of_the_unseen_half_is_not_shown(
    tmp_path: pathlib.Path,
) -> None:
    for kind in ("Bakery", "Shop"):
        directory = tmp_path / "resource_customizations" / "x.io" / kind
        (directory / "testdata").mkdir(parents=True)
        (directory / "health_test.yaml").write_text(TABLE)
        (directory / "testdata" / "open.yaml").write_text(OPEN % "Ready")
        (directory / "testdata" / "shut.yaml").write_text(OPEN % "Creating")
    result = testing.CliRunner().invoke(health.main, ["--argo", str(tmp_path), "--show", "--by-kind"])
    assert result.exit_code == 0, result.output
    shown, *lines = result.output.splitlines()
    assert shown.endswith("Progressing, not Failed (status.phase is Creating; phase is Creating)")
    assert lines[:2] == ["x.io/Bakery: 1 of 2", "x.io/Shop: 1 of 2"]
    totals = " ".join(lines[2].split())
    assert totals == (
        "all 4 objects, 50.0% the same, 100.0% with Progressing and Failed as one, "
        "0 healthy ones called otherwise"
    )
    assert [line.split()[0] for line in lines[3:]] in (["seen", "unseen"], ["unseen", "seen"])
