"""What the README tells a newcomer to type is typed here."""

import os
import pathlib
import re

import pytest

from tests.integration import operator_process
from tests.integration.typing_pages import ENVIRONMENT_LINE, ROOT, typed

pytestmark = pytest.mark.integration


def first_module() -> str:
    """All that is to be typed for the first module, as one script."""
    section = (ROOT / "README.md").read_text().split("## Your first module")[1].split("\n## ")[0]
    return "\n".join(re.findall(r"^```bash\n(.*?)^```$", section, flags=re.DOTALL | re.MULTILINE))


def test_the_first_module_of_the_readme_works_as_typed(tmp_path: pathlib.Path) -> None:
    script = first_module()
    assert ENVIRONMENT_LINE in script
    port = operator_process.free_port()
    script = script.replace(ENVIRONMENT_LINE, "").replace("localhost:9650", f"localhost:{port}")
    printed = typed(script, tmp_path, port)
    host = os.uname().nodename
    assert f"Hello, world, from {host}!" in printed
    assert f"Hello, Kubernetes, from {host}!" in printed
    assert re.findall(r"^\d(?=\s)", printed, flags=re.MULTILINE) == ["1", "2"], "revisions in Helm's history"
    assert not (tmp_path / "my-addons").exists()
    assert list((tmp_path / "clusters").iterdir()) == []
