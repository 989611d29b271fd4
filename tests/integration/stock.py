"""Charts as upstream publishes them, for tests."""

import json
import pathlib
from typing import Any

from tests.integration import operator_site

_VALUES = """
replicas: 1
auth: {user: admin, database: app}
tcp: {"53": dns}
global: {domain: cluster.local, image: {registry: docker.io}}
"""
_TEMPLATE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-seen}
data:
  values: {{ toJson .Values | quote }}
"""


def write_chart(path: pathlib.Path, name: str = "upstream", more: str = "") -> pathlib.Path:
    """A chart that shows the values that it gets."""
    (path / "templates").mkdir(parents=True)
    (path / "Chart.yaml").write_text(f"apiVersion: v2\nname: {name}\nversion: 1.2.3\n{more}")
    (path / "values.yaml").write_text(_VALUES)
    (path / "templates" / "seen.yaml").write_text(_TEMPLATE)
    return path


def seen(site: operator_site.Site, release: str = "web") -> dict[str, Any]:
    """The values that the chart got."""
    data = site.data(f"{release}-seen")
    assert data is not None
    found: dict[str, Any] = json.loads(data["values"])
    return found
