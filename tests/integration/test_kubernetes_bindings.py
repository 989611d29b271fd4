"""Hooks bound to objects of the cluster: real hooks, real control plane."""

import json
import pathlib
from typing import Any

import pytest

from tests.integration import operator_site

pytestmark = pytest.mark.integration

JQ_DATA = {"jqFilter": ".data", "keepFullObjectsInMemory": False}


def config_maps(site: operator_site.Site, name: str = "maps", **more: object) -> dict[str, object]:
    """A binding to the ConfigMaps of the test that carry the label ``bound``."""
    return {
        "name": name,
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": {"nameSelector": {"matchNames": [site.namespace]}},
        "labelSelector": {"matchLabels": {"bound": "yes"}},
        **more,
    }


def put(site: operator_site.Site, name: str, **data: str) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"bound": "yes"}},
        "data": data,
    }
    path = site.root / "put.json"
    path.write_text(json.dumps(manifest))
    site.kubectl("apply", f"--filename={path}")


def contexts(site: operator_site.Site, hook: str) -> list[dict[str, Any]]:
    """All contexts that the hook was given, run after run."""
    return [context for run in site.runs() if run.hook == hook for context in run.contexts]


def brief(context: dict[str, Any]) -> str:
    """``maps Synchronization a b``, ``maps Added c``."""
    words = [context["binding"], context.get("watchEvent") or context.get("type", "")]
    listed = context.get("objects", [context] if "object" in context else [])
    return " ".join([*words, *(item["object"]["metadata"]["name"] for item in listed)]).strip()


def told(site: operator_site.Site, hook: str) -> list[str]:
    return [brief(context) for context in contexts(site, hook)]


def module(site: operator_site.Site) -> pathlib.Path:
    site.values("webEnabled: true")
    return site.module("010-web")


def test_a_hook_gets_all_objects_first_and_then_every_change(site: operator_site.Site) -> None:
    web = module(site)
    site.hook(web, "maps.sh", {"kubernetes": [config_maps(site)], "onStartup": 1, "beforeHelm": 1})
    put(site, "b", x="1")
    put(site, "a", x="1")
    operator = site.start().wait_ready()
    assert told(site, "maps.sh") == ["onStartup", "maps Synchronization a b", "beforeHelm"]
    put(site, "c", x="1")
    put(site, "a", x="2")
    site.kubectl("delete", "configmap", "b")
    operator.wait_until(lambda: len(told(site, "maps.sh")) >= 6, "three events")
    assert told(site, "maps.sh")[3:] == ["maps Added c", "maps Modified a", "maps Deleted b"]
    site.config(web="x: 1")
    operator.wait_until(lambda: len(told(site, "maps.sh")) >= 7, "another run of the module")
    last = contexts(site, "maps.sh")[-1]
    assert last["binding"] == "beforeHelm"
    assert [item["object"]["metadata"]["name"] for item in last["snapshots"]["maps"]] == ["a", "c"]
    operator.stop()
