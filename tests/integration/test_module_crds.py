"""CustomResourceDefinitions of modules, seen in the cluster."""

import json
import random
import time
from collections.abc import Callable
from typing import Any, Final

import pytest
import yaml

from addon_operator.modules import crd_fields
from tests.integration import admitting, definitions, operator_site

pytestmark = pytest.mark.integration


@pytest.fixture
def group(site: operator_site.Site) -> str:
    """An API group of this test's own: definitions belong to the whole cluster."""
    return f"{site.namespace}.example.com"


@pytest.fixture
def read(site: operator_site.Site, group: str) -> Callable[[str], dict[str, Any]]:
    def read(plural: str) -> dict[str, Any]:
        found = site.get("crd", f"{plural}.{group}")
        assert isinstance(found, dict)
        return found

    return read


def test_definitions_are_there_before_hooks_and_charts_and_survive_the_module(
    site: operator_site.Site, group: str, read: Callable[[str], dict[str, Any]]
) -> None:
    module = site.module("010-crons", {"a": "b"}, values="cronsEnabled: true")
    definitions.write(
        module,
        "b.yaml",
        definitions.definition(group, "widgets", "v1")
        + "---\n"
        + definitions.definition(group, "gadgets", "v1"),
    )
    definitions.write(module, "doc-ru.yaml", "translated: true\n")
    (module / "templates" / "widget.yaml").write_text(
        definitions.custom_object(group, "v1", "Widget", "from-chart")
    )
    site.hook(
        module,
        "start.sh",
        {"onStartup": 1},
        f"""
        cat > "$KUBERNETES_PATCH_PATH" <<'PATCH'
        {{"operation": "CreateOrUpdate", "object": {{"apiVersion": "{group}/v1", "kind": "Gadget",
          "metadata": {{"name": "from-hook", "namespace": "{site.namespace}"}}}}}}
        PATCH
        """,
    )
    site.values("global: {}")
    operator = site.start().wait_ready()
    assert site.get(f"widgets.{group}", "from-chart")
    assert site.get(f"gadgets.{group}", "from-hook")
    crd = read("widgets")
    assert crd["metadata"]["labels"]["heritage"] == "addon-operator"
    assert site.labels().count("start.sh onStartup") == 1

    # A change of the files comes with the next run of the module; what does not differ is not written.
    before = read("gadgets")["metadata"]["resourceVersion"]
    changed = definitions.definition(group, "widgets", "v1").replace("size:", "length:")
    definitions.write(module, "b.yaml", changed + "---\n" + definitions.definition(group, "gadgets", "v1"))
    site.config(crons="a: 1")

    def properties() -> set[str]:
        return set(read("widgets")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"])

    operator.wait_until(lambda: properties() == {"length"}, "the changed definition was applied")
    operator.wait_idle()
    assert read("gadgets")["metadata"]["resourceVersion"] == before

    # Never deleted with the module; a restart writes nothing.
    before = read("widgets")["metadata"]["resourceVersion"]
    operator.stop()
    again = site.start(LOG_LEVEL="debug").wait_ready()
    assert read("widgets")["metadata"]["resourceVersion"] == before
    site.config(cronsEnabled="false")
    again.wait_until(lambda: "crons" not in site.revisions(), "uninstalled")
    assert read("widgets")["metadata"]["resourceVersion"] == before
    again.stop()


def test_a_wrong_definition_holds_up_its_own_module_only_and_is_reported(
    site: operator_site.Site, group: str, read: Callable[[str], dict[str, Any]]
) -> None:
    site.first_retry = operator_site.SOON
    broken = site.module("010-broken", {"a": "b"}, values="brokenEnabled: true")
    definitions.write(
        broken,
        "x.yaml",
        definitions.definition(group, "doors", "v1") + "---\nkind: Service\napiVersion: v1\n",
    )
    listed = site.module("010-listed", {"a": "b"}, values="listedEnabled: true")
    items = yaml.safe_dump([yaml.safe_load(definitions.definition(group, "doors", "v1"))])
    definitions.write(listed, "x.yaml", f"kind: List\napiVersion: v1\nitems:\n{items}")
    site.module("020-web", {"a": "b"}, values="webEnabled: true")
    site.values("global: {}")
    operator = site.start()
    line = operator.wait_logged("broken", "x.yaml, document 2", "Service of v1")
    assert "next try in" in line
    operator.wait_logged("listed", "x.yaml", "List of v1")
    operator.wait_until(lambda: site.data("web"), "a later module is installed")
    assert site.data("broken") is None
    assert "applying of definitions failed" in line
    # The mistake is mended on disk: the retry finds it.
    definitions.write(broken, "x.yaml", definitions.definition(group, "doors", "v1"))
    (listed / "crds" / "x.yaml").unlink()
    operator.wait_ready()
    assert site.data("broken") == {"a": "b"}
    assert read("doors")["status"]["storedVersions"] == ["v1"]
    operator.stop()


@pytest.mark.slow
def test_a_dropped_version_is_left_by_its_objects_and_the_live_conversion_stays(
    site: operator_site.Site, group: str, read: Callable[[str], dict[str, Any]]
) -> None:
    site.create("crd", f"lamps.{group}", yaml.safe_load(definitions.definition(group, "lamps", "v1alpha1")))
    admitting.wait_established(site.cluster, f"lamps.{group}")
    lamp = site.root / "lamp.yaml"
    lamp.write_text(definitions.custom_object(group, "v1alpha1", "Lamp", "old"))
    site.kubectl("create", f"--filename={lamp}")
    module = site.module("010-lamps", values="lampsEnabled: true")
    definitions.write(module, "lamps.yaml", definitions.definition(group, "lamps", "v1"))
    site.values("global: {}")
    operator = site.start("--crd-extra-labels=heritage=mine,scope=x").wait_ready()
    crd = read("lamps")
    assert crd["status"]["storedVersions"] == ["v1"]
    assert [version["name"] for version in crd["spec"]["versions"]] == ["v1"]
    assert crd["metadata"]["labels"] == {"heritage": "mine", "scope": "x"}
    moved = site.get(f"lamps.{group}", "old")
    assert (moved["apiVersion"], moved["size"]) == (f"{group}/v1", 3)
    operator.stop()

    webhook = {
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://127.0.0.1:1/convert"},
        },
    }
    site.patch("crd", f"lamps.{group}", {"spec": {"conversion": webhook}})
    changed = definitions.definition(group, "lamps", "v1").replace("integer", "number")
    definitions.write(module, "lamps.yaml", changed)
    site.start().wait_ready().stop()
    crd = read("lamps")
    assert crd["spec"]["conversion"] == webhook
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["properties"]["size"] == {"type": "number"}


@pytest.mark.slow
def test_definitions_of_more_than_a_release_can_hold_and_of_charts_within_the_chart(
    site: operator_site.Site, group: str, read: Callable[[str], dict[str, Any]]
) -> None:
    module = site.module("010-web", {"a": "b"}, values="webEnabled: true")
    (module / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 1.0.0\n" + _DEPENDENCIES)
    # What is random does not shrink in the record of the release, which has room for 1 MiB.
    large = (
        definitions.definition(group, "boxes", "v1") + f"# {random.Random(1).randbytes(1_500_000).hex()}\n"
    )
    definitions.write(module, "large.yaml", large)
    definitions.write(module, "more.yaml", definitions.definition(group, "tables", "v1"))
    for name in ("inner", "quiet"):
        below = module / "charts" / name
        (below / "templates").mkdir(parents=True)
        (below / "Chart.yaml").write_text(f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n")
        (below / "values.yaml").write_text("enabled: false\n")
        definitions.write(below, "crd.yaml", definitions.definition(group, f"{name}s", "v1"))
    (module / "charts" / "inner" / "templates" / "inner.yaml").write_text(
        definitions.custom_object(group, "v1", "Inner", "from-chart")
    )
    (module / "charts" / "inner" / "values.yaml").write_text("enabled: true\n")
    site.values("global: {}")
    operator = site.start().wait_ready().wait_idle()
    assert site.revisions() == {"web": 1}
    site.get(f"inners.{group}", "from-chart")
    plurals = ("boxes", "tables", "inners", "quiets")
    assert [name for name in plurals if site.find("crd", f"{name}.{group}")] == ["boxes", "tables", "inners"]
    record = site.get("secret", "sh.helm.release.v1.web.v1")
    assert len(record["data"]["release"]) < 20_000

    # A deleted definition comes back at once, and so does what it took with it; neither makes a revision.
    uid = read("inners")["metadata"]["uid"]
    site.delete("crd", f"inners.{group}", f"tables.{group}")
    operator.wait_until(
        lambda: site.find("crd", f"inners.{group}") and site.find("crd", f"tables.{group}"),
        "the definitions are back",
    )
    assert read("inners")["metadata"]["uid"] != uid
    operator.wait_until(lambda: site.find(f"inners.{group}", "from-chart"), "the object is back")
    operator.wait_idle()
    assert site.data("web") == {"a": "b"}
    operator.stop()

    # A restart reads no definition of the cluster, only their metadata; a change by hand is mended.
    revisions = site.revisions()
    before = read("boxes")["metadata"]["resourceVersion"]
    site.patch("crd", f"inners.{group}", {"spec": {"names": {"shortNames": ["tt"]}}})
    site.delete("crd", f"tables.{group}")
    again = site.start().wait_ready().wait_idle()
    assert read("boxes")["metadata"]["resourceVersion"] == before
    assert read("tables")["status"]["storedVersions"] == ["v1"]
    assert site.revisions() == revisions
    again.stop()


@pytest.mark.slow
def test_objects_of_a_deleted_definition_wait_for_its_return_without_a_run(
    site: operator_site.Site, group: str
) -> None:
    module = site.module("010-web", {"a": "b"}, values="webEnabled: true")
    short = "kind: Widget, shortNames: [wdg]"
    definitions.write(
        module, "crd.yaml", definitions.definition(group, "widgets", "v1").replace("kind: Widget", short)
    )
    (module / "templates" / "widget.yaml").write_text(
        definitions.custom_object(group, "v1", "Widget", "from-chart")
    )
    site.hook(module, "before.sh", {"beforeHelm": 1})
    operator = site.start().wait_ready().wait_idle()
    # Its short name is taken by another one as soon as it is gone: it is back, and not served.
    rival = definitions.definition(group, "rivals", "v1").replace(
        "kind: Rival", "kind: Rival, shortNames: [wdg]"
    )
    site.create("crd", f"rivals.{group}", yaml.safe_load(rival))
    site.delete("crd", f"widgets.{group}")
    time.sleep(_LONGER_THAN_WHAT_PASSES)
    assert "the module runs" not in operator.log
    site.delete("crd", f"rivals.{group}")
    operator.wait_until(
        lambda: site.find(f"widgets.{group}", "from-chart"),
        "the object is back",
    )
    operator.wait_idle()
    assert site.labels() == ["before.sh beforeHelm"]
    assert site.revisions() == {"web": 1}
    operator.stop()


_LONGER_THAN_WHAT_PASSES: Final = 4.0
"""Seconds; what may pass is waited for three times for a second."""
_DEPENDENCIES: Final = """\
dependencies:
- {name: inner, version: 1.0.0, condition: inner.enabled}
- {name: quiet, version: 1.0.0, condition: quiet.enabled}
"""


@pytest.mark.slow
def test_a_definition_with_fields_that_the_api_does_not_know_is_applied_without_them(
    site: operator_site.Site, group: str, read: Callable[[str], dict[str, Any]]
) -> None:
    module = site.module("010-crons", {"a": "b"}, values="cronsEnabled: true")
    text = definitions.definition(group, "widgets", "v1")
    odd = text.replace("scope:", "subscription: x\n  scope:", 1)
    odd = odd.replace("served: true", "served: true\n    subresources: {status: {}, download: {}}", 1)
    definitions.write(module, "a.yaml", text + "# another definition of the same, which does not count\n")
    definitions.write(module, "b.yaml", odd)
    site.values("global: {}")
    operator = site.start().wait_ready()
    assert read("widgets")["spec"]["versions"][0]["subresources"] == {"status": {}}
    said = [line for line in operator.log.splitlines() if "module crons: " in line and "/crds/b.yaml" in line]
    assert any("spec.subscription: apiextensions.k8s.io/v1 has no such field" in line for line in said)
    assert any("subresources.download: apiextensions.k8s.io/v1 has no such field" in line for line in said)
    assert any("is defined by" in line and "/crds/a.yaml, too" in line for line in said)


def _with_every_field(schemas: dict[str, Any], schema: dict[str, Any], above: tuple[str, ...] = ()) -> object:
    """Return a document with every field that a schema of the API server has, each kind of mapping once."""
    reference = schema.get("$ref") or (schema.get("allOf") or [{}])[0].get("$ref")
    if reference in above:
        return {}
    if reference is not None:
        return _with_every_field(schemas, schemas[reference.rpartition("/")[2]], (*above, reference))
    if "items" in schema:
        return [_with_every_field(schemas, schema["items"], above)]
    fields = {
        name: _with_every_field(schemas, each, above) for name, each in schema.get("properties", {}).items()
    }
    if isinstance(values := schema.get("additionalProperties"), dict):
        fields["any"] = _with_every_field(schemas, values, above)
    return fields


def test_every_field_of_definitions_that_the_api_server_knows_is_known(site: operator_site.Site) -> None:
    api = json.loads(site.request("GET", "/openapi/v3/apis/apiextensions.k8s.io/v1").text)
    schemas = api["components"]["schemas"]
    (name,) = (each for each in schemas if each.endswith(".CustomResourceDefinitionSpec"))
    spec = _with_every_field(schemas, schemas[name])
    assert isinstance(spec, dict)
    properties = spec["versions"][0]["schema"]["openAPIV3Schema"]
    assert "externalDocs" in properties, "the schema of schemas was walked"
    assert crd_fields.known(spec) == (spec, [])
