"""Links in the directory of a public chart."""

import pathlib

import pytest

from addon_operator.helm.charts import chart_links


@pytest.fixture
def chart(tmp_path: pathlib.Path) -> pathlib.Path:
    made = tmp_path / "modules" / "010-web" / "chart"
    (made / "templates").mkdir(parents=True)
    (tmp_path / "modules" / "shared").mkdir()
    (tmp_path / "token").write_text("canary")
    return made


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("files/token", "../../../../../token"),
        ("templates/all", "/"),
        ("charts", "../../../.."),
        ("gone", "/nowhere"),
    ],
)
def test_a_link_that_leads_out_is_named(chart: pathlib.Path, link: str, target: str) -> None:
    (chart / "files").mkdir()
    (chart / link).symlink_to(target)
    said = chart_links.problem(chart, chart.parents[1])
    assert said.startswith(f"{chart / link} is a link that leads out of {chart.parents[1]}; ")


def test_a_link_behind_a_link_and_the_chart_itself_may_not_lead_out(
    chart: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    root = chart.parents[1]
    (chart / "files").symlink_to("../../shared")
    assert chart_links.problem(chart, root) == ""
    (root / "shared" / "token").symlink_to(tmp_path / "token")
    assert f"{chart / 'files' / 'token'} is a link" in chart_links.problem(chart, root)
    other = root / "020-other"
    other.symlink_to(tmp_path)
    assert f"{other} is a link" in chart_links.problem(other, root)


def test_links_within_the_modules_and_circles_are_allowed(chart: pathlib.Path) -> None:
    root = chart.parents[1]
    (chart / "templates" / "again").symlink_to("..")
    (chart / "files").symlink_to("../../shared")
    (root / "shared" / "back").symlink_to("../010-web/chart")
    assert chart_links.problem(chart, root) == ""


@pytest.mark.parametrize("link", ["README.md", "templates/gone.yaml", "files/deep/gone", "files/again"])
def test_a_link_that_leads_nowhere_is_named(chart: pathlib.Path, link: str) -> None:
    shared = chart.parents[1] / "shared"
    (chart / "files").symlink_to(shared)
    (shared / "deep").mkdir()
    assert chart_links.nowhere(chart) == ""
    (chart / link).symlink_to("nowhere")
    said = chart_links.nowhere(chart)
    assert said.startswith(f"{chart / link} is a link to nowhere, which does not exist; ")
    assert chart_links.problem(chart, chart.parents[1]) == ""
