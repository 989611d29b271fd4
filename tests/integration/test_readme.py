"""What the README tells a newcomer to type is typed here."""

import os
import pathlib
import re

import pytest

from addon_operator.devcluster import handle
from tests.integration import chart_repositories, operator_process
from tests.integration.typing_pages import ENVIRONMENT_LINE, ROOT, typed

pytestmark = pytest.mark.integration


def script_of(title: str) -> str:
    """All that is to be typed in a section, as one script."""
    section = (ROOT / "README.md").read_text().split(f"## {title}")[1].split("\n## ")[0]
    return "\n".join(re.findall(r"^```bash\n(.*?)^```$", section, flags=re.DOTALL | re.MULTILINE))


@pytest.mark.slow
def test_the_first_module_of_the_readme_works_as_typed(tmp_path: pathlib.Path) -> None:
    script = script_of("Your first module")
    assert ENVIRONMENT_LINE in script
    port = operator_process.free_port()
    script = script.replace(ENVIRONMENT_LINE, "").replace("localhost:9650", f"localhost:{port}")
    printed = typed(script, tmp_path, port)
    host = os.uname().nodename
    assert f"Hello, world, from {host}!" in printed
    assert f"Hello, Kubernetes, from {host}!" in printed
    assert re.findall(r"^\d(?=\s)", printed, flags=re.MULTILINE) == ["1", "2"], "revisions in Helm's history"
    assert not (tmp_path / "checkout" / "my-addons").exists()
    assert list((tmp_path / "clusters").iterdir()) == []


@pytest.mark.slow
def test_the_public_chart_of_the_readme_works_as_typed(
    devcluster: handle.DevCluster, tmp_path: pathlib.Path
) -> None:
    script = script_of("A public chart")
    assert ENVIRONMENT_LINE in script
    version = re.search(r"version: (\S+)", script)
    assert version is not None
    port = operator_process.free_port()
    script = script.replace(ENVIRONMENT_LINE, "").replace("localhost:9650", f"localhost:{port}")
    assert chart_repositories.PODINFO_ADDRESS in script
    with chart_repositories.registry(devcluster.helm, tmp_path) as registry:
        registry.push(chart_repositories.podinfo(tmp_path, devcluster.helm, version[1]))
        printed = typed(script.replace(chart_repositories.PODINFO_ADDRESS, registry.address), tmp_path, port)
    assert re.search(r"^podinfo +\d/2 ", printed, flags=re.MULTILINE), printed
    assert "3 replicas" in printed
    assert not (tmp_path / "checkout" / "my-charts").exists()
