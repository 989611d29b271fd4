"""The tables of settings, metrics and bounds are what the code makes of them."""

import pathlib
import re
import types

import pytest

from addon_operator.admission import admission_log, review_budget, review_shapes
from addon_operator.admission.pods import env_sources_reader, expansion_check, pod_check
from addon_operator.admission.presets import preset_notices
from addon_operator.admission.server import connections, site
from addon_operator.podpreset import merge
from addon_operator.status import http_site
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


def numbers(page: str, row: str) -> list[list[float]]:
    """The numbers in the cells of a row of the bounds of ports."""
    (line,) = [line for line in page.splitlines() if line.startswith(f"| {row}")]
    texts = [cell.replace("\u202f", " ") for cell in line.split("|")[2:4]]
    return [
        [float(found.replace(" ", "")) for found in re.findall(r"\d+(?: \d{3})*", text)] for text in texts
    ]


def test_the_bounds_of_the_ports_are_those_of_the_servers() -> None:
    page = (ROOT / "docs" / "explanation" / "security.md").read_text("utf-8")
    admission, metrics = site.CONNECTIONS, http_site.CONNECTIONS

    def idle(bounds: connections.Bounds) -> list[float]:
        return [bounds.idle, bounds.idle_when_crowded, bounds.unused_when_crowded]

    assert numbers(page, "connections, ") == [[admission.connections], [metrics.connections]]
    assert numbers(page, "TLS handshake")[0] == [admission.handshake]
    assert numbers(page, "header of a request")[0][0] == admission.header == metrics.header
    answered, taken = numbers(page, "a request, until")
    assert (answered[0], taken) == (admission.request, [metrics.request, metrics.unread_when_crowded])
    assert numbers(page, "an idle connection") == [idle(admission), idle(metrics)]
    mib = 1 << 20
    assert numbers(page, "body ")[0][1] * mib == site.MAX_BODY_BYTES
    assert numbers(page, "memory of one review")[0] == [site.MAX_REVIEW_MEMORY / mib]
    assert numbers(page, "memory of all reviews")[0] == [review_budget.Limits().memory_bytes / mib]
    assert numbers(page, "data of a ConfigMap")[0] == [review_shapes.MAX_DATA_BYTES / mib]
    one = numbers(page, "ConfigMaps and Secrets that are read")[0]
    assert one[:2] == [env_sources_reader.SOURCES_MAX, env_sources_reader.KEYS_WEIGHT_MAX / mib]
    assert one[-1] == expansion_check.SECONDS
    of_all = [env_sources_reader.AT_ONCE, env_sources_reader.WAITING_MAX]
    assert numbers(page, "the same for all pods")[0] == of_all
    merged = [merge.PRESETS_MAX, merge.ENTRIES_MAX, merge.CHARACTERS_MAX / mib]
    assert numbers(page, "presets that are merged")[0] == merged
    assert numbers(page, "unresolved references")[0] == [expansion_check.REFERENCES_MAX]
    assert numbers(page, "pods that wait for Events")[0] == [pod_check.PENDING_MAX]
    assert numbers(page, "notices of presets")[0] == [preset_notices.PENDING_MAX]
    assert numbers(page, "namespaces in `podpreset")[0] == [admission_log.NAMESPACES_MAX]
