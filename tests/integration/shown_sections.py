"""Modules whose charts show the section of values that they got."""

import json
import pathlib

from tests.integration import operator_site


def module(
    site: operator_site.Site, directory: str = "010-web", *, section: str = "color: green", schema: str = ""
) -> pathlib.Path:
    """A module that is on; ``section`` is what its ``values.yaml`` says."""
    name = directory.lstrip("0123456789-")
    path = site.module(
        directory,
        {"seen": f"{{{{ toJson .Values.{name} | quote }}}}"},
        values=f"{name}: {{{section}}}\n{name}Enabled: true\n",
    )
    if schema:
        (path / "openapi").mkdir()
        (path / "openapi" / "config-values.yaml").write_text(schema)
    return path


def seen(site: operator_site.Site, name: str = "web") -> object:
    """The section that the module's chart got."""
    data = site.data(name)
    return None if data is None else json.loads(data["seen"])
