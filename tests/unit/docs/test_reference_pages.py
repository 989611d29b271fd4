"""The tables of settings and metrics are what the code makes of them."""

import pathlib
import re
import types

import pytest

from tests.unit.scripts import scripts_loaded

ROOT = pathlib.Path(__file__).parents[3]
PAGES = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def reference() -> types.ModuleType:
    return scripts_loaded.load("reference")


@pytest.mark.parametrize("name", ["settings", "metrics"])
def test_a_page_is_in_step_with_the_code(reference: types.ModuleType, name: str) -> None:
    page = (PAGES / f"{name}.md").read_text("utf-8")
    assert getattr(reference, f"{name}_page")(page) == page, "run 'make reference'"


def test_the_chart_has_a_readme_of_all_values_and_the_names_of_all_settings(
    reference: types.ModuleType,
) -> None:
    readme = (reference.CHART / "README.md").read_text("utf-8")
    assert reference.chart_page(readme) == readme, "run 'make reference'"
    names = (reference.CHART / "settings.txt").read_text("utf-8")
    assert reference.settings_of_the_chart("") == names, "run 'make reference'"
    row = '| `metrics.serviceMonitor.interval` | `"30s"` | |'
    assert row in readme
    assert row in reference.chart_page(readme.replace(row, "| `metrics.gone` | | |"))
    assert "SHELL_OPERATOR_HOOKS_DIR" in names.splitlines()


@pytest.mark.parametrize(
    ("name", "was", "becomes"),
    [
        ("settings", "| `HELM_TIMEOUT` | `--helm-timeout` | `20m` |", "| `HELM_TIMEOUT` | `--wait` | `1m` |"),
        ("settings", "| `WATCH_MODULES` | ", "| `WATCH_EVERYTHING` | "),
        ("metrics", "| `module_run_seconds` | `module` | histogram |", "| `module_run_seconds` | | gauge |"),
        ("metrics", "| `convergence_total` | ", "| `divergence_total` | "),
    ],
    ids=["flag and default", "unknown setting", "labels and type", "unknown metric"],
)
def test_what_differs_is_written_anew(reference: types.ModuleType, name: str, was: str, becomes: str) -> None:
    page = (PAGES / f"{name}.md").read_text("utf-8")
    assert page.count(was) == 1
    made = getattr(reference, f"{name}_page")(page.replace(was, becomes))
    assert was in made
    assert becomes not in made


def test_words_of_the_page_are_kept(reference: types.ModuleType) -> None:
    page = (PAGES / "settings.md").read_text("utf-8")
    reworded = page.replace("Longest time of one operation of Helm.", "A time, as in \\| `1m`.")
    assert reworded != page
    assert reference.settings_page(reworded) == reworded


def flags(text: str) -> set[str]:
    return set(re.findall(r"[\"`' ](--[a-z][a-z-]+)", text))


def test_the_page_about_helm_has_every_flag_that_helm_is_called_with() -> None:
    package = ROOT / "operator" / "addon_operator" / "helm"
    calls = ("command", "verbs", "repositories/chart_pull")
    used = set().union(*(flags((package / f"{name}.py").read_text("utf-8")) for name in calls))
    assert "--take-ownership" in used
    named = flags((PAGES / "helm.md").read_text("utf-8"))
    assert named - {"--wait", "--atomic"} == used, "the page says that the other two are not used"
