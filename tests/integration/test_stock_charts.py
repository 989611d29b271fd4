"""Charts as upstream publishes them, beside the module's own files."""

import pytest

from tests.integration import definitions, operator_process, operator_site
from tests.integration.stock import seen, write_chart

pytestmark = pytest.mark.integration


def test_a_stock_chart_gets_its_values_as_helm_would_get_them(site: operator_site.Site) -> None:
    site.values("global: {domain: example.com, clusterName: c1}\nwebEnabled: true")
    module = site.module("010-web", values="web: {replicas: 2}")
    write_chart(module / "chart")
    (module / "module.yaml").write_text("chart: {global: [clusterName]}")
    every = site.module("020-every", values="everyEnabled: true\nevery: {global: {domain: own}}")
    write_chart(every / "chart")
    (every / "module.yaml").write_text("chart: {global: all}")
    site.config(web="auth: {database: null}\ntcp: {8080: web}")
    operator = site.start().wait_ready().wait_idle()
    try:
        assert seen(site) == {
            "replicas": 2,
            "auth": {"user": "admin"},
            "tcp": {"53": "dns", "8080": "web"},
            "global": {"domain": "cluster.local", "clusterName": "c1", "image": {"registry": "docker.io"}},
        }
        expected = {"domain": "own", "clusterName": "c1", "image": {"registry": "docker.io"}}
        assert seen(site, "every")["global"] == expected, (
            "a global in the section lies over all that is shared"
        )
        site.config(web="auth: {database: null}\nglobal: {domain: own}")
        operator_process.wait_until(lambda: seen(site)["global"]["domain"] == "own", "the edit is released")
        assert site.revisions() == {"web": 2, "every": 1}
    finally:
        operator.stop()


@pytest.mark.slow
def test_definitions_of_a_stock_chart_and_of_subcharts_that_are_enabled_at_any_time_are_applied(
    site: operator_site.Site,
) -> None:
    group = f"{site.namespace}.example.com"
    module = site.module("010-web", values="webEnabled: true\nweb: {used: {enabled: true}}")
    dependencies = "".join(
        f"- {{name: {n}, version: 1.2.3, condition: {n}.enabled}}\n" for n in ("used", "spare")
    )
    chart = write_chart(module / "chart", more=f"dependencies:\n{dependencies}")
    (chart / "values.yaml").write_text("used: {enabled: false}\nspare: {enabled: false}\n")
    for place, name in (
        (chart, "own"),
        (chart / "charts" / "used", "used"),
        (chart / "charts" / "spare", "spare"),
    ):
        if name != "own":
            write_chart(place, name)
            (place / "templates" / "seen.yaml").unlink()
        (place / "crds").mkdir()
        (place / "crds" / "things.yaml").write_text(definitions.things(f"{name}.{group}"))
    policy = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: policy}\n"
    thing = f"{{apiVersion: used.{group}/v1, kind: Thing, metadata: {{name: policy}}}}"
    thing = f"apiVersion: v1\nkind: List\nitems: [{thing}]\n"
    (chart / "charts" / "used" / "crds" / "policies.yaml").write_text(f"{policy}---\n{thing}")
    operator = site.start().wait_ready().wait_idle()
    try:

        def defined() -> list[bool]:
            names = (f"things.{name}.{group}" for name in ("own", "used", "spare"))
            return [site.find("crd", name) is not None for name in names]

        assert defined() == [True, True, False]
        # What lies beside definitions is created with them, belongs to nobody, and is not made again.
        assert site.get("configmap", "policy")["metadata"].get("labels") is None
        site.kubectl("get", "-n", site.namespace, f"things.used.{group}", "policy")
        policies = chart / "charts" / "used" / "crds" / "policies.yaml"
        policies.write_text(
            policies.read_text().replace("{name: policy}", "{name: policy, labels: {new: x}}")
        )
        site.delete("configmap", "policy")
        site.config(web="used: {enabled: true}\nmore: x")
        operator_process.wait_until(lambda: site.deployed() == {"web": 2}, "the edit is released")
        assert site.data("policy") is None
        site.config(web="used: {enabled: false}\nspare: {enabled: true}")
        operator_process.wait_until(lambda: site.deployed() == {"web": 3}, "the edit is released")
        assert defined() == [True, True, True], "enabled by an edit, and never deleted"
        site.config(webEnabled="false")
        operator_process.wait_until(lambda: site.revisions() == {}, "the module is removed")
        assert site.get(f"things.used.{group}", "policy")["metadata"].get("labels") is None
    finally:
        operator.stop()


def test_a_wrong_module_yaml_fails_that_module_alone_and_nothing_is_purged(site: operator_site.Site) -> None:
    site.values("webEnabled: true\ndbEnabled: true")
    module = site.module("010-web", {"a": "b"})
    site.module("020-db", {"a": "b"})
    site.start().wait_ready().wait_idle().stop()
    (module / "module.yaml").write_text("releaseNam: other")
    lost = site.module("020-lost", {"a": "b"}, values="lostEnabled: true")
    (lost / "module.yaml").write_text(f"namespace: {site.namespace}-missing")
    operator = site.start()

    def said(name: str) -> str:
        return str(site.module_rows().get(name, {}).get("lastError"))

    try:
        operator.wait_until(lambda: "did you mean 'releaseName'?" in said("web"), "the mistake is shown")
        text = site.command("module", "list", "-o", "wide").stdout
        assert f"{module / 'module.yaml'}, line 1, column 1, releaseNam" in text
        operator.wait_until(lambda: site.module_rows()["db"]["state"] == "Ready", "the other module runs")
        operator.wait_until(
            lambda: "createNamespace: true" in said("lost"), "a namespace is missing: it says what to do"
        )
        assert site.revisions() == {"web": 1, "db": 1}
        assert "Traceback" not in operator.log
    finally:
        operator.kill()


def test_a_release_lives_under_the_name_and_in_the_namespace_that_module_yaml_says(
    site: operator_site.Site,
) -> None:
    edge = f"{site.namespace}-edge"
    module = site.module("010-web", values="webEnabled: true")
    write_chart(module / "chart")
    (module / "module.yaml").write_text(
        f"namespace: {edge}\ncreateNamespace: true\nreleaseName: front\ndescription: The front door"
    )
    # By mistake it names the same release: it neither takes its record nor removes it.
    mistaken = site.module("020-other", {"a": "b"}, values="otherEnabled: false")
    (mistaken / "module.yaml").write_text(f"namespace: {edge}\nreleaseName: front")
    operator = site.start().wait_ready().wait_idle()
    try:
        site.get("configmap", "front-seen", edge)
        assert site.revisions() == {}
        site.delete("configmap", "front-seen", namespace=edge)
        operator.wait_metric(1, "resources_healed_total", module="web")
        annotations = site.get("configmap", "front-seen", edge)["metadata"]["annotations"]
        assert annotations["meta.helm.sh/release-namespace"] == edge
        operator.wait_until(
            lambda: site.module_rows()["web"]["health"] == "Healthy", "there is nothing else to say"
        )
        assert "The front door" in site.command("module", "list").stdout
        assert "The front door" in site.command("module", "describe", "web").stdout
        assert "configmap" not in site.command("module", "render", "web", "--diff").stdout.lower()
    finally:
        operator.stop()
    calls = len(site.helm_calls())
    operator = site.start().wait_ready().wait_idle()
    try:
        assert len(site.helm_calls()) == calls
        site.config(webEnabled="false")
        operator_process.wait_until(
            lambda: site.listed("secret", edge, labelSelector="owner=helm") == [],
            "the release is removed, its record last",
        )
        assert site.find("configmap", "front-seen", edge) is None
    finally:
        operator.stop()


@pytest.mark.slow
def test_apis_that_a_chart_does_not_ask_for_make_no_helm_process_after_a_restart(
    site: operator_site.Site,
) -> None:
    group = f"{site.namespace}.example.com"
    chart = write_chart(site.module("010-web", values="webEnabled: true") / "chart")
    asks = '{{ if .Capabilities.APIVersions.Has "monitoring.example.com/v1" }}{{ fail "not now" }}{{ end }}'
    (chart / "templates" / "monitor.yaml").write_text(asks)
    site.start().wait_ready().wait_idle().stop()
    calls = len(site.helm_calls())
    definition = site.root / "crd.yaml"
    definition.write_text(definitions.things(group))
    site.apply(definitions.things(group))
    operator_process.wait_until(
        lambda: site.request("GET", f"/apis/{group}/v1").is_success, "the API is served"
    )
    site.start().wait_ready().wait_idle().stop()
    assert len(site.helm_calls()) == calls


@pytest.mark.parametrize(
    "adds",
    [
        pytest.param(False, id="renders the same", marks=pytest.mark.slow),
        pytest.param(True, id="adds an object"),
    ],
)
def test_a_chart_that_asks_for_apis_that_it_defines_itself(site: operator_site.Site, adds: bool) -> None:
    group = f"{site.namespace}.example.com"
    chart = write_chart(site.module("010-web", values="webEnabled: true") / "chart")
    (chart / "templates" / "crd.yaml").write_text(definitions.things(group))
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: added}\n" if adds else ""
    asks = f'{{{{ if .Capabilities.APIVersions.Has "{group}/v1" }}}}\n{body}{{{{ end }}}}\n'
    (chart / "templates" / "added.yaml").write_text(asks)
    site.start().wait_ready().wait_idle().stop()
    calls = len(site.helm_calls())
    site.start().wait_ready().wait_idle().stop()
    assert site.revisions() == {"web": 2 if adds else 1}
    assert (site.data("added") is not None) is adds
    assert adds or len(site.helm_calls()) == calls


@pytest.mark.slow
def test_what_module_yaml_or_its_name_calls_sensitive_is_shown_nowhere(site: operator_site.Site) -> None:
    secrets = ("tango-4711", "kilo-4712", "lima-4713", "mike-4714", "november-4715")
    module = site.module("010-web", values="webEnabled: true")
    write_chart(module / "chart")
    (module / "module.yaml").write_text('sensitive: [smtp.sender, "*.pin"]')
    by_name = (
        f"auth: {{adminPassword: {secrets[2]}}}\nusers: [{{apiToken: {secrets[3]}}}]\n"
        f'tls: {{crt: public-4716, other: "-----BEGIN PRIVATE KEY-----\\n{secrets[4]}"}}\n'
    )
    site.config(web=f"{by_name}smtp: {{sender: {secrets[0]}}}\ndoor: {{pin: {secrets[1]}}}")
    operator = site.start(LOG_LEVEL="debug").wait_ready().wait_idle()
    try:
        assert seen(site)["door"] == {"pin": secrets[1]}
        site.config(
            web=f"{by_name}smtp: {{sender: {secrets[0]}}}\ndoor: {{pin: {secrets[1]}}}\nreplicas: [wrong]"
        )
        shown = [
            site.command(*arguments).stdout
            for arguments in (
                ("module", "values", "web"),
                ("module", "render", "web"),
                ("module", "render", "web", "--diff"),
                ("module", "describe", "web"),
                ("values", "show", "web"),
                ("plan",),
            )
        ]
        events = str(site.listed("event"))
        shown += [operator.log, events, operator.get("/metrics").text, operator.get("/").text]
        assert all(shown)
        assert "***" in shown[0]
        assert "public-4716" in shown[0]
        assert [text for text in shown for secret in secrets if secret in text] == []
    finally:
        operator.stop()
