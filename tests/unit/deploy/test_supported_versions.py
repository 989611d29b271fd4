"""The page about the installation names the versions of Kubernetes that the tests start."""

import pathlib
import re

import yaml

from addon_operator.devcluster.binaries import components
from addon_operator.kernel import version_ranges

ROOT = pathlib.Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "install.md").read_text("utf-8")


def test_the_page_names_exactly_the_versions_that_are_tested() -> None:
    found = re.search(r"\*\*Supported versions of Kubernetes: ([\d., ]+)\.\*\*", PAGE)
    assert found is not None
    assert tuple(found[1].split(", ")) == components.VERSIONS


def test_the_chart_takes_these_versions_and_refuses_what_the_page_says() -> None:
    chart = yaml.safe_load((ROOT / "deploy" / "chart" / "addon-operator" / "Chart.yaml").read_text("utf-8"))
    wanted = chart["kubeVersion"]
    assert all(version_ranges.fits(wanted, f"v{version}.0") for version in components.VERSIONS)
    lowest = re.search(r"The chart also installs on (1\.\d+) to", PAGE)
    assert lowest is not None
    assert version_ranges.fits(wanted, f"v{lowest[1]}.0")
    assert not version_ranges.fits(wanted, "v1.29.9")
