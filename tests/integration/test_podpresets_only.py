"""The installation for people who want PodPresets and no modules, as its page says."""

import pathlib
import re

import pytest
import yaml

from addon_operator.devcluster import handle
from tests.integration import charts, operator_site

pytestmark = pytest.mark.integration

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "how-to" / "podpresets-only.md").read_text("utf-8")


def documents() -> list[dict[str, object]]:
    """The YAML of the page: values of the chart, and a preset."""
    found = re.findall(r"^ *```yaml\n(.*?)^ *```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    return [yaml.safe_load(text) for text in found]


def typed(verb: str) -> list[str]:
    """The arguments of the page's command with that verb in the namespace ``shop``."""
    (found,) = re.findall(rf"^\$ kubectl -n shop ({verb} .*)$", PAGE, flags=re.MULTILINE)
    return str(found).replace("'", "").replace('{"\\n"}', "").split()


@pytest.mark.slow
def test_pods_get_presets_from_an_operator_without_modules(
    devcluster: handle.DevCluster, site: operator_site.Site
) -> None:
    values, preset = documents()
    shop = devcluster.namespace("shop")
    manifest = yaml.safe_dump(preset).replace("namespace: shop", f"namespace: {shop}")

    def is_injected() -> bool:
        tried = devcluster.run_kubectl(*typed("run"), "-n", shop, "--dry-run=server", "-o", "yaml")
        return "DB_PORT" in tried.stdout

    with (
        charts.installed(devcluster, site, values) as installation,
        charts.operating(installation) as operator,
    ):
        operator.wait_ready()
        devcluster.run_kubectl("apply", "-f", "-", stdin=manifest)
        operator.wait_until(is_injected, "the webhook answers")
        devcluster.run_kubectl(*typed("run"), "-n", shop)
        printed = devcluster.run_kubectl(*typed("get"), "-n", shop).stdout
    assert printed in PAGE.splitlines()
    warnings = [line for line in operator.log.splitlines() if '"level":"warn"' in line]
    assert len(warnings) == 1, warnings
    assert "not shown as Module objects" in warnings[0]
