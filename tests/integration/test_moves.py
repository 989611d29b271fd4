"""Objects that two modules have, and objects that move from one module to another."""

import pathlib

import pytest

from tests.integration import operator_site

pytestmark = pytest.mark.integration


def add(module: pathlib.Path, name: str, **data: str) -> None:
    """Put a ConfigMap with this data into the module's chart."""
    lines = "".join(f"  {key}: {value}\n" for key, value in data.items())
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n{lines}"
    (module / "templates" / f"{name}.yaml").write_text(text)


def uid(site: operator_site.Site, name: str, kind: str = "configmap") -> str:
    return str(site.get(kind, name)["metadata"]["uid"])


def owner(site: operator_site.Site, name: str) -> str:
    return str(site.get("configmap", name)["metadata"]["annotations"]["meta.helm.sh/release-name"])


def test_an_object_of_two_modules_is_the_later_ones_and_then_again_the_others(
    site: operator_site.Site, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    web = site.module("010-web", {"a": "b"}, values="webEnabled: true")
    db = site.module("020-db", {"a": "b"}, values="dbEnabled: true")
    for name in ("dropped", "left"):
        add(web, name, of="web", both="web")
        add(db, name, of="db", both="db", only="db")
    of_web, of_db = {"of": "web", "both": "web"}, {"of": "db", "both": "db", "only": "db"}
    operator = site.start(DRIFT_MODE="ignore").wait_ready()
    assert (site.data("dropped"), site.data("left")) == (of_db, of_db)
    before = [uid(site, name) for name in ("dropped", "left")]
    (db / "templates" / "dropped.yaml").unlink()
    site.config(db="{a: c}")
    operator.wait_until(lambda: site.data("dropped") == of_web, "it is as the other chart has it")
    assert (owner(site, "dropped"), site.data("left")) == ("web", of_db)
    site.config(dbEnabled="false")
    operator.wait_until(lambda: site.data("left") == of_web, "it is as the other chart has it")
    operator.wait_until(lambda: site.revisions() == {"web": 1}, "the later one is gone")
    assert [uid(site, name) for name in ("dropped", "left")] == before
    operator.stop()
