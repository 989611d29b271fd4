"""Several modules bring one definition: one counts, the others say so, and a restart writes nothing."""

import json
import pathlib
from typing import Any

import pytest

from addon_operator.devcluster import handle
from tests.integration import definitions, module_objects, operator_site

pytestmark = pytest.mark.integration


class Definitions:
    def __init__(self, site: operator_site.Site, group: str) -> None:
        self._site = site
        self._group = group

    def read(self, plural: str) -> dict[str, Any]:
        found: dict[str, Any] = self._site.get("crd", f"{plural}.{self._group}")
        return found

    def served(self, plural: str) -> set[str]:
        return {each["name"] for each in self.read(plural)["spec"]["versions"] if each["served"]}

    def state(self, *plurals: str) -> list[str]:
        return [self.read(plural)["metadata"]["resourceVersion"] for plural in plurals]


def renumber(module: pathlib.Path, order: int) -> pathlib.Path:
    return module.rename(module.with_name(f"{order:03}-{module.name.partition('-')[2]}"))


@pytest.mark.slow
def test_the_newer_of_two_definitions_counts_in_any_order_and_a_restart_writes_none(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    group = f"{site.namespace}.example.com"
    found, shown = Definitions(site, group), module_objects.Modules(site, devcluster)
    old = site.module("010-old", {"a": "b"}, values="oldEnabled: true")
    definitions.write(old, "boxes.yaml", definitions.definition(group, "boxes", "v1beta1", "v1"))
    (old / "templates" / "box.yaml").write_text(
        definitions.custom_object(group, "v1beta1", "Boxe", "from-old")
    )
    new = site.module("020-new", {"a": "b"}, values="newEnabled: true")
    definitions.write(new, "boxes.yaml", definitions.definition(group, "boxes", "v1", "v2"))
    (new / "templates" / "box.yaml").write_text(definitions.custom_object(group, "v2", "Boxe", "from-new"))
    # What the templates of a module make is Helm's, whichever other module brings it, too.
    definitions.write(old, "tables.yaml", definitions.definition(group, "tables", "v1"))
    helm = site.module("030-helm", {"a": "b"}, values="helmEnabled: true")
    (helm / "templates" / "tables.yaml").write_text(definitions.definition(group, "tables", "v1", "v2"))
    site.values("global: {}")
    operator = site.start().wait_ready().wait_idle()
    assert site.revisions() == {"old": 1, "new": 1, "helm": 1}
    assert found.served("boxes") == {"v2", "v1", "v1beta1"}, "what old's chart uses stays served"
    assert found.read("boxes")["status"]["storedVersions"] == ["v2"], "it was written once"
    assert found.served("tables") == {"v1", "v2"}
    said = f"CustomResourceDefinition boxes.{group} is that of module new, not this module's: it serves newer"
    operator.wait_logged(f"module old: {said}")
    status = shown.wait(operator, "old", DefinitionsInForce="False", Ready="True")
    assert any(said in each["message"] for each in status["conditions"])
    shown.wait(operator, "new", DefinitionsInForce="True", Ready="True")
    operator.stop()
    before, revisions = found.state("boxes", "tables"), site.revisions()

    helms = f"tables.{group} is one of the objects of module helm, and stays with Helm"
    for orders in ((20, 10), (10, 20)):
        old, new = renumber(old, orders[0]), renumber(new, orders[1])
        again = site.start().wait_ready().wait_idle()
        assert found.state("boxes", "tables") == before
        assert site.revisions() == revisions
        again.wait_until(lambda: helms in json.dumps(shown.get("old")), "the condition names both")
        again.stop()
    planned = site.command("plan", "-o", "json")
    assert any(f"module old: {said}" in note for note in json.loads(planned.stdout)["notes"]), planned.stdout


@pytest.mark.slow
def test_neither_a_refused_definition_nor_a_disabled_module_ends_versions(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    group = f"{site.namespace}.example.com"
    found, shown = Definitions(site, group), module_objects.Modules(site, devcluster)
    old = site.module("010-old", {"a": "b"}, values="oldEnabled: true")
    definitions.write(old, "boxes.yaml", definitions.definition(group, "boxes", "v1beta1", "v1"))
    new = site.module("020-new", {"a": "b"}, values="newEnabled: true")
    definitions.write(new, "boxes.yaml", definitions.definition(group, "boxes", "v1", "v2"))
    site.values("global: {}")
    (old / "templates" / "box.yaml").write_text(
        definitions.custom_object(group, "v1beta1", "Boxe", "from-old")
    )
    operator = site.start().wait_ready()
    assert found.served("boxes") == {"v2", "v1", "v1beta1"}
    before = found.state("boxes")

    # The version that it added stays served, so that its objects can be deleted.
    site.config(oldEnabled="false")
    operator.wait_until(lambda: site.revisions() == {"new": 1}, "old is uninstalled")
    assert site.listed(f"boxes.{group}") == []
    operator.wait_idle()
    assert found.state("boxes") == before
    site.config(oldEnabled=None)
    operator.wait_until(lambda: site.revisions() == {"new": 1, "old": 1}, "old is back")
    operator.stop()
    assert found.state("boxes") == before

    # What is refused fails its own module alone.
    right = definitions.definition(group, "boxes", "v1", "v2")
    definitions.write(new, "boxes.yaml", right.replace("type: integer", "type: number of things"))
    operator = site.start()
    operator.wait_logged("module new", "boxes.yaml, document 1", "422 Invalid")
    shown.wait(operator, "old", Ready="True", DefinitionsInForce="False")
    assert found.state("boxes") == before
    operator.stop()
    definitions.write(new, "boxes.yaml", right)

    # The newer one is disabled: its definition stays, as the other serves less.
    site.config(newEnabled="false")
    operator = site.start().wait_ready().wait_idle()
    assert site.revisions().keys() == {"old"}
    assert found.state("boxes") == before
    operator.wait_logged("module old", f"boxes.{group} stays as module new left it: it serves v2")
    operator.stop()
