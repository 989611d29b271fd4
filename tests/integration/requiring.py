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


def break_api(site: operator_site.Site, api: str) -> None:
    """Register a server for the API that does not answer, in the place of who serves it."""
    group, _, version = api.partition("/")
    name, kind = f"{version}.{group}", ("apiservice.apiregistration.k8s.io",)
    spec = {
        "group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 100,
        "insecureSkipTLSVerify": True, "service": {"name": "nobody", "namespace": site.namespace},
    }  # fmt: skip
    if site.kubectl("get", *kind, name, "--ignore-not-found"):
        # Not the label is left by which the API server knows those that it makes for definitions.
        labels = {"kube-aggregator.kubernetes.io/automanaged": None}
        patch = json.dumps({"metadata": {"labels": labels}, "spec": spec})
        site.kubectl("patch", *kind, name, "--type=merge", f"--patch={patch}")
        return
    found = {
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": name}, "spec": spec,
    }  # fmt: skip
    site.cluster.run_kubectl("create", "-f", "-", stdin=json.dumps(found))


def answers(site: operator_site.Site, api: str) -> bool:
    """Whether the API is available."""
    group, _, version = api.partition("/")
    path = "--output=jsonpath={.status.conditions[0].status}"
    return site.kubectl("get", "apiservice", f"{version}.{group}", "--ignore-not-found", path) == "True"
