"""Modules with ``requires``, and what becomes of them."""

import json
import pathlib
import textwrap
from typing import Any

from tests.integration import operator_process, operator_site


def module(
    site: operator_site.Site, directory: str, requires: str = "", *, is_on: bool = True
) -> pathlib.Path:
    """A module whose chart is one ConfigMap of its name."""
    name = directory.lstrip("0123456789-")
    values = f"{name}: {{color: green}}\n{name}Enabled: {json.dumps(is_on)}\n"
    made = site.module(directory, {"color": f"{{{{ .Values.{name}.color }}}}"}, values=values)
    if requires:
        require(made, requires)
    return made


def require(directory: pathlib.Path, requires: str) -> None:
    (directory / "module.yaml").write_text(f"requires:\n{textwrap.indent(requires, '  ')}\n")


def planned(site: operator_site.Site) -> dict[str, dict[str, Any]]:
    found = json.loads(site.command("plan", "-o", "json").stdout)
    return {row["name"]: row for row in found["modules"]}


def wait_for(site: operator_site.Site, name: str, state: str, *words: str) -> None:
    def is_so() -> bool:
        row = site.module_rows().get(name)
        return (
            row is not None
            and row["state"] == state
            and all(word in row["reason"] + row["lastError"] for word in words)
        )

    operator_process.wait_until(is_so, f"{name} is {state} {words}")
