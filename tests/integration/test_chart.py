"""The chart: what it renders to, what it refuses, and what the API server says to it."""

import copy
import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Final

import pytest
import yaml

from addon_operator.devcluster import handle
from addon_operator.process import commands
from tests.integration import charts, operator_process, operator_site
from tests.support import rows

pytestmark = pytest.mark.integration

MONITORING = {
    "metrics.serviceMonitor.enabled": True,
    "metrics.rules.enabled": True,
    "metrics.dashboard.enabled": True,
}
EVERYTHING = {
    "admission.separate": True,
    "podPresets.readSecrets": True,
    "webhook.clientCA.configMapName": "apiserver",
    "metrics.dashboard.enabled": True,
    "valuesConfigMap.create": True,
    "valuesConfigMap.data": {"global": "a: 1\n", "someModuleEnabled": "false"},
    "rbac.modules": "cluster-admin",
    "rbac.moduleCRDs": True,
    "rbac.extraRules": [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}],
    "serviceAccount.annotations": {"example.com/role": "add-ons"},
    "settings": {"LOG_LEVEL": "debug", "KUBE_CLIENT_QPS": 1000000},
    "tmp.medium": "Memory",
    "tolerations": [{"operator": "Exists"}],
    "priorityClassName": "system-cluster-critical",
}
OFF = {
    "podPresets.enabled": False,
    "moduleStatus.enabled": False,
    "highAvailability.enabled": False,
    "replicas": 1,
}
RESTRICTED = "pod-security.kubernetes.io/{}=restricted"


@pytest.fixture(scope="module")
def helms() -> Mapping[str, pathlib.Path]:
    return charts.helm_binaries()


@pytest.fixture(params=[pytest.param("helm3", marks=pytest.mark.slow), "helm4"])
def helm(request: pytest.FixtureRequest, helms: Mapping[str, pathlib.Path]) -> pathlib.Path:
    return helms[request.param]


def rights(objects: list[charts.Object]) -> set[str]:
    rules = [
        rule
        for kind in ("Role", "ClusterRole")
        for role in charts.of_kind(objects, kind)
        for rule in role["rules"]
    ]
    return {resource for rule in rules for resource in rule["resources"]}


def test_the_chart_passes_the_linter(helm: pathlib.Path) -> None:
    for values in ({}, EVERYTHING | MONITORING, OFF):
        argv = [str(helm), "lint", "--strict", str(charts.CHART), *charts.flags(values)]
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_both_versions_of_helm_render_the_same(helms: Mapping[str, pathlib.Path]) -> None:
    for values in ({}, EVERYTHING | MONITORING, OFF):
        rendered = [
            sorted(charts.render(helm, values), key=lambda found: (found["kind"], found["metadata"]["name"]))
            for helm in helms.values()
        ]
        assert rendered[0] == rendered[1]


@rows.each(
    ("values", "words"),
    [
        ({"replica": 2}, ["replica"]),
        ({"replicas": 0}, ["replicas"]),
        ({"image.digest": "abc"}, ["digest"]),
        ({"rbac.modules": "all"}, ["modules", "namespace-admin"]),
        (
            {"settings": {"ADDON_OPERATOR_NAMESPACE": "x"}},
            ["settings.ADDON_OPERATOR_NAMESPACE", "--namespace"],
        ),
        ({"settings": {"SHELL_OPERATOR_LISTEN_PORT": 1}}, ["set service.port"]),
        ({"metrics.rules.runbookBase": "foo"}, ["metrics.rules.runbookBase is foo", "https://"]),
        ({"settings": {"log-level": "debug"}}, ["/settings", "log-level"]),
        ({"podPresets.failurePolicy": "ignore"}, ["failurePolicy", "Ignore"]),
        ({"rbac.extraRules": [{"resources": ["pods"]}]}, ["extraRules", "verbs"]),
        ({"settings": {"SHUTDOWN_GRACE": "5s"}}, ["settings.SHUTDOWN_GRACE", "shutdownGraceSeconds"]),
        ({"highAvailability.enabled": False}, ["replicas", "elect a leader"]),
        ({"settings": {"WEBHOOK_CONFIGURATION": "x"}}, ["settings.WEBHOOK_CONFIGURATION", "remove it"]),
        ({"settings": {"ADMISSION_ONLY": True}}, ["settings.ADMISSION_ONLY", "set admission.separate"]),
        ({"admission.replicas": 0}, ["admission", "replicas"]),
        ({"webhook.certificates.source": "secret"}, ["webhook.certificates.secretName", "tls.crt"]),
        ({"metrics.serviceMonitor.enabled": True, "metrics.podMonitor.enabled": True}, ["scraped twice"]),
        ({"settings": {"LOG_LEVLE": "debug"}}, ["settings.LOG_LEVLE is not a setting", "extraEnv"]),
        ({"fullnameOverride": "a.b"}, ["fullnameOverride"]),
        ({"nameOverride": "a.b"}, ["nameOverride"]),
        ({"commonLabels": {"helm.sh/chart": "x"}}, ["commonLabels has helm.sh/chart"]),
        ({"dnsPolicy": "Custom"}, ["dnsPolicy"]),
        ({"networkPolicy.egress.enabled": True}, ["networkPolicy.egress.rules", "API server"]),
        (
            {
                "webhook.certificates.source": "cert-manager",
                "webhook.certificates.certManager.issuerRef": {"kind": "AWSPCAClusterIssuer", "name": "ca"},
            },
            ["kind"],
        ),
    ],
)
def test_wrong_values_are_refused_with_the_name_of_the_value(
    helms: Mapping[str, pathlib.Path], values: dict[str, object], words: list[str]
) -> None:
    said = charts.refusal(helms["helm3"], values)
    assert all(word in said for word in words), said


DEPENDENT: Final = yaml.safe_load((charts.CHART / "dependent-values.yaml").read_text("utf-8"))
OTHERS: Final = {
    "IfNotPresent": "Always",
    "ca.crt": "other.crt",
    "modules.tar.gz": "other.tgz",
    "HEAD": "main",
    "": "other",
    "30s": "77h",
    "8760h": "77h",
    "2920h": "77h",
}


def another(path: str) -> object:
    """A value that is not the default."""
    default = DEPENDENT[path]["default"]
    match default:
        case str():
            return OTHERS[default]
        case int():
            return default + 1
        case list():
            return [{"name": "A", "value": "b"}]
        case _:
            return {"name": "x"}


@rows.each("path", DEPENDENT)
def test_a_value_without_the_one_that_gives_it_an_effect_is_refused(
    helms: Mapping[str, pathlib.Path], path: str
) -> None:
    about, values = DEPENDENT[path], {path: another(path)}
    if about["needs"] == ["serviceAccount.create"]:
        values["serviceAccount.create"] = False
    said = charts.refusal(helms["helm3"], values)
    assert f"{path} is set and has no effect: set {about['needs'][0]}" in said
    assert "or remove it" in said


SWITCHED: Final = (
    ("modules.git.image", "modules.git.securityContext", "modules.sizeLimit", "modules.resources"),
    ("admission.",),
    ("metrics.", "networkPolicy.egress.rules"),
)
"""What may stay set without an effect, as values.yaml says: a mirror of images, and what switches turn on."""


def defaults(values: object, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(values, dict) and values and path != "settings":
        for key, below in values.items():
            yield from defaults(below, f"{path}.{key}" if path else key)
    else:
        yield path, values


def changed(path: str, default: object) -> object:
    """Something else than the default that the schema takes, where that is easy."""
    if isinstance(default, bool):
        return not default
    if isinstance(default, int):
        return default + 1
    if isinstance(default, list):
        return ["other"] if path == "releaseNamespaces" else [{"name": "x"}]
    if isinstance(default, dict):
        return {"x": "y"}
    first = {
        "repo": "https://git.example/x", "digest": f"sha256:{0:064}", "sizeLimit": "3Gi", "medium": "Memory",
        "runbookBase": "https://x/y", "pullPolicy": "Always", "failurePolicy": "Fail",
        "modules": "cluster-admin", "source": "cert-manager", "dnsPolicy": "None", "modulesDir": "/x",
        "globalHooksDir": "/x",
    }  # fmt: skip
    return first.get(path.rpartition(".")[2]) or ("77h" if str(default)[:1].isdigit() else "other")


@pytest.mark.slow
def test_each_value_has_an_effect_or_is_refused_or_belongs_to_a_switch(
    helms: Mapping[str, pathlib.Path],
) -> None:
    def rendered(values: Mapping[str, object]) -> str | None:
        argv = [str(helms["helm3"]), "template", "x", str(charts.CHART), *charts.flags(values)]
        done = commands.run(argv, timeout=60.0, check=False)
        return done.stdout if done.exit_code == 0 else None

    usual = rendered({})
    values = yaml.safe_load((charts.CHART / "values.yaml").read_text("utf-8"))
    silent = [path for path, default in defaults(values) if rendered({path: changed(path, default)}) == usual]
    switched = tuple(each for group in SWITCHED for each in group)
    assert [path for path in silent if not path.startswith(switched)] == []
    assert len(silent) > len(switched), "they were tried"


NAMED: Final = (
    "fullnameOverride",
    "nameOverride",
    "serviceAccount.name",
    "admission.serviceAccount.name",
    "valuesConfigMap.name",
    "valuesSecret.name",
    "notifications.secretName",
    "chartCredentialsSecret",
    "priorityClassName",
    "image.repository",
    "webhook.clientCA.configMapName",
    "metrics.dashboard.namespace",
    "modules.configMap.name",
)
PLAIN: Final = "plain"


def leaves(found: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Each value in a document, and where it stands; keys of mappings, too."""
    if isinstance(found, dict):
        for key, value in found.items():
            yield f"{path}: the key", key
            yield from leaves(value, f"{path}.{key}")
    elif isinstance(found, list):
        for index, value in enumerate(found):
            yield from leaves(value, f"{path}[{index}]")
    else:
        yield path, found


@pytest.mark.slow
def test_names_that_yaml_reads_as_something_else_stay_names(helms: Mapping[str, pathlib.Path]) -> None:
    def rendered(text: str) -> list[tuple[str, object]]:
        values = EVERYTHING | MONITORING | dict.fromkeys(NAMED, text) | {"networkPolicy.enabled": True}
        return list(leaves(charts.render(helms["helm3"], values, namespace=text, release=text)))

    plain = rendered(PLAIN)
    named = [(where, value) for where, value in plain if isinstance(value, str) and PLAIN in value]
    assert len(named) > 100
    wrong = [
        (name, where)
        for name in ("on", "y", "no", "null", "1e3", "0x1f", "123", "true")
        for (where, value), (_, other) in zip(plain, rendered(name), strict=True)
        if isinstance(value, str) and PLAIN in value and not isinstance(other, str)
    ]
    assert wrong == []


TEAM: Final = {"example.com/team": "platform"}
PLACES: Final = {
    "commonLabels": TEAM,
    "hostNetwork": True,
    "admission.separate": True,
    "extraContainers": [{"name": "proxy", "image": "proxy:1"}],
    "networkPolicy.egress.enabled": True,
    "networkPolicy.egress.rules": [{"to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}], "ports": [{"port": 6443}]}],
    "metrics.dashboard.enabled": True,
    "metrics.dashboard.namespace": "grafana",
    "metrics.serviceMonitor.enabled": True,
    "metrics.serviceMonitor.scrapeTimeout": "10s",
    "metrics.serviceMonitor.relabelings": [{"action": "labeldrop", "regex": "pod"}],
    "metrics.serviceMonitor.metricRelabelings": [{"action": "drop", "regex": "x"}],
    "webhook.certificates.source": "cert-manager",
    "webhook.certificates.certManager.issuerRef": {
        "group": "awspca.cert-manager.io", "kind": "AWSPCAClusterIssuer", "name": "ca",
    },
}  # fmt: skip


def test_the_chart_fits_into_networks_monitoring_and_rules_of_others(
    helm: pathlib.Path, devcluster: handle.DevCluster, namespace: str
) -> None:
    objects = charts.render(helm, PLACES, namespace)
    unlabelled = [
        each["metadata"]["name"]
        for each in objects
        if not TEAM.items() <= (each["metadata"].get("labels") or {}).items()
    ]
    assert unlabelled == []
    operator, admission = sorted(
        charts.of_kind(objects, "Deployment"), key=lambda each: len(each["metadata"]["name"])
    )
    assert TEAM.items().isdisjoint(operator["spec"]["selector"]["matchLabels"].items()), "they may change"
    for deployment, containers in ((operator, ["addon-operator", "proxy"]), (admission, ["addon-operator"])):
        pod = deployment["spec"]["template"]
        assert TEAM.items() <= pod["metadata"]["labels"].items()
        assert (pod["spec"]["hostNetwork"], pod["spec"]["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
        assert [each["name"] for each in pod["spec"]["containers"]] == containers
        assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}
    for policy in charts.of_kind(objects, "NetworkPolicy"):
        assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
        dns, server = policy["spec"]["egress"]
        assert {port["port"] for port in dns["ports"]} == {53}
        assert server == {"to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}], "ports": [{"port": 6443}]}
    (endpoint,) = charts.only(objects, "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["scrapeTimeout"] == "10s"
    assert endpoint["relabelings"] == [{"action": "labeldrop", "regex": "pod"}]
    assert endpoint["metricRelabelings"] == [{"action": "drop", "regex": "x"}]
    (dashboard,) = [each for each in objects if each["metadata"]["name"].endswith("-dashboard")]
    assert dashboard["metadata"]["namespace"] == "grafana"
    issuer = charts.only(objects, "Certificate")["spec"]["issuerRef"]
    assert issuer == {"group": "awspca.cert-manager.io", "kind": "AWSPCAClusterIssuer", "name": "ca"}
    known = [
        each
        for each in objects
        if "monitoring" not in each["apiVersion"]
        and "cert-manager" not in each["apiVersion"]
        and each is not dashboard
    ]
    bundle = json.dumps({"apiVersion": "v1", "kind": "List", "items": known})
    done = devcluster.run_kubectl("apply", "--dry-run=server", "-f", "-", stdin=bundle)
    assert done.stdout.count("(server dry run)") == len(known)


@pytest.mark.parametrize("values", [{}, EVERYTHING, OFF], ids=["default", "everything", "off"])
def test_every_object_is_accepted_by_the_api_server_without_a_warning(
    devcluster: handle.DevCluster, namespace: str, values: dict[str, object]
) -> None:
    devcluster.run_kubectl(
        "label", "namespace", namespace, RESTRICTED.format("enforce"), RESTRICTED.format("warn")
    )
    objects = charts.render(devcluster.helm, values, namespace)
    bundle = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    done = devcluster.run_kubectl("apply", "--dry-run=server", "-f", "-", stdin=bundle)
    assert done.stdout.count("(server dry run)") == len(objects)
    assert "Warning" not in done.stderr


def test_the_pod_fits_the_restricted_pod_security_standard(
    devcluster: handle.DevCluster, namespace: str
) -> None:
    devcluster.run_kubectl("label", "namespace", namespace, RESTRICTED.format("enforce"))
    objects = charts.render(
        devcluster.helm, {"serviceAccount.create": False, "serviceAccount.name": "default"}, namespace
    )
    template = copy.deepcopy(charts.only(objects, "Deployment")["spec"]["template"])
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    pod["metadata"]["name"] = "operator"
    done = devcluster.run_kubectl(
        "create", "--dry-run=server", "-n", namespace, "-o", "json", "-f", "-", stdin=json.dumps(pod)
    )
    (container,) = json.loads(done.stdout)["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_monitoring_is_rendered_only_when_it_is_asked_for(devcluster: handle.DevCluster) -> None:
    plain = {found["apiVersion"] for found in charts.render(devcluster.helm)}
    assert not any(version.startswith("monitoring.coreos.com") for version in plain)
    objects = charts.render(devcluster.helm, {**MONITORING, "settings": {"PROMETHEUS_METRICS_PREFIX": "ao_"}})
    assert charts.only(objects, "ServiceMonitor")["spec"]["endpoints"][0]["port"] == "http"
    (group,) = charts.only(objects, "PrometheusRule")["spec"]["groups"]
    assert {rule["annotations"]["runbook_url"].split("/")[-1] for rule in group["rules"]} == {
        f"{rule['alert']}.md" for rule in group["rules"]
    }
    dashboard = json.loads(charts.only(objects, "ConfigMap")["data"]["addon-operator.json"])
    assert dashboard["title"] == "addon-operator"
    assert "addon_operator_" not in json.dumps([group, dashboard])
    assert "ao_module_enabled" in json.dumps(dashboard)


def test_each_part_that_is_switched_off_takes_its_rights_along(devcluster: handle.DevCluster) -> None:
    everything = rights(charts.render(devcluster.helm))
    assert {"podpresets", "modules", "leases", "secrets", "services", "pods"} <= everything
    always = {"namespaces", "configmaps", "secrets", "events", "apiservices", "leases"}
    assert rights(charts.render(devcluster.helm, OFF)) == always
    without = {"podPresets.expansionEvents": False, "moduleStatus.enabled": False, "crds.update": False}
    assert everything - rights(charts.render(devcluster.helm, without)) == {
        "services", "modules", "modules/status",
    }  # fmt: skip


@pytest.mark.parametrize("wanted", [False, True])
def test_secrets_of_the_cluster_are_out_of_reach_unless_the_value_says_so(
    devcluster: handle.DevCluster, wanted: bool
) -> None:
    objects = charts.render(devcluster.helm, {"podPresets.readSecrets": True} if wanted else {})
    roles = charts.of_kind(objects, "ClusterRole")
    (role,) = (each for each in roles if each not in charts.user_roles(objects))
    assert ("secrets" in {resource for rule in role["rules"] for resource in rule["resources"]}) is wanted
    read = charts.env_of(charts.only(objects, "Deployment"))["ENVFROM_SOURCES"]
    assert read == ("configmaps,secrets" if wanted else "configmaps")


def test_users_of_a_namespace_may_use_presets_with_the_roles_of_the_cluster(
    devcluster: handle.DevCluster, site: operator_site.Site
) -> None:
    site.apply((charts.ROOT / "crds" / "podpresets.yaml").read_text("utf-8"))
    roles = charts.user_roles(charts.render(devcluster.helm, {}, site.namespace))
    site.apply(*roles)
    group = "rbac.authorization.k8s.io"
    for role in ("view", "edit", "admin"):
        user = {"apiGroup": group, "kind": "User", "name": f"{role}-user"}
        reference = {"apiGroup": group, "kind": "ClusterRole", "name": role}
        site.create("rolebinding", role, {"roleRef": reference, "subjects": [user]})

    def may(role: str, verb: str) -> bool:
        return site.may(f"{role}-user", verb, "podpresets.settings.k8s.io")

    # A controller adds the rules to the roles.
    operator_process.wait_until(lambda: may("admin", "deletecollection"), "the roles are aggregated")
    operator_process.wait_until(lambda: may("edit", "delete"), "the roles are aggregated")
    operator_process.wait_until(lambda: may("view", "get"), "the roles are aggregated")
    assert {
        role: [verb for verb in ("get", "create", "delete") if may(role, verb)] for role in ("view", "edit")
    } == {
        "view": ["get"],
        "edit": ["get", "create", "delete"],
    }
    site.delete("clusterrole", *map(charts.name_of, roles))
    assert charts.user_roles(charts.render(devcluster.helm, {"podPresets.userRoles": False})) == []


def test_settings_win_over_what_the_chart_sets_but_its_own_release_stays_out_of_reach(
    devcluster: handle.DevCluster,
) -> None:
    settings = {"HELM_IGNORE_RELEASE": "other", "KUBE_CLIENT_QPS": 1000000, "EXPANSION_EVENTS": False}
    env = charts.env_of(charts.only(charts.render(devcluster.helm, {"settings": settings}), "Deployment"))
    assert env["HELM_IGNORE_RELEASE"] == "addon-operator,other"
    assert env["KUBE_CLIENT_QPS"] == "1000000"
    assert env["EXPANSION_EVENTS"] == "false"


@pytest.mark.parametrize(
    ("given", "replaced"),
    [
        ("SHELL_OPERATOR_HOOKS_DIR", "GLOBAL_HOOKS_DIR"),
        ("ADDON_OPERATOR_MODULES_DIR", "MODULES_DIR"),
        ("SHELL_OPERATOR_TMP_DIR", "ADDON_OPERATOR_TMP_DIR"),
    ],
    ids=["the other prefix and name", "with the prefix", "the other prefix"],
)
def test_a_setting_under_another_name_takes_the_place_of_what_the_chart_sets(
    devcluster: handle.DevCluster, given: str, replaced: str
) -> None:
    env = charts.env_of(
        charts.only(charts.render(devcluster.helm, {"settings": {given: "/mine"}}), "Deployment")
    )
    assert env[given] == "/mine"
    assert replaced not in env


def test_the_pod_has_more_time_to_end_than_what_runs_in_it(devcluster: handle.DevCluster) -> None:
    deployment = charts.only(charts.render(devcluster.helm, {"shutdownGraceSeconds": 60}), "Deployment")
    assert charts.env_of(deployment)["SHUTDOWN_GRACE"] == "60s"
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 75


def test_certificates_of_cert_manager_are_mounted_and_no_secret_is_written(
    devcluster: handle.DevCluster,
) -> None:
    objects = charts.render(devcluster.helm, {"webhook.certificates.source": "cert-manager"})
    certificate = charts.only(objects, "Certificate")["spec"]
    deployment = charts.only(objects, "Deployment")
    (volume,) = [one for one in deployment["spec"]["template"]["spec"]["volumes"] if "secret" in one]
    assert volume["secret"]["secretName"] == certificate["secretName"]
    env = charts.env_of(deployment)
    assert f"{env['WEBHOOK_SERVICE']}.addons.svc" in certificate["dnsNames"]
    assert env["ADMISSION_SERVER_CERTS_DIR"]
    assert charts.only(objects, "Issuer")["metadata"]["name"] == certificate["issuerRef"]["name"]


def test_without_a_lease_the_old_operator_ends_before_a_new_one_begins(
    devcluster: handle.DevCluster,
) -> None:
    deployment = charts.only(charts.render(devcluster.helm, OFF), "Deployment")
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert charts.env_of(deployment)["ADDON_OPERATOR_HA"] == "false"


def test_edits_of_the_values_configmap_outlive_upgrades_and_the_release_and_the_memory_upgrades(
    devcluster: handle.DevCluster, site: operator_site.Site
) -> None:
    given = OFF | {"valuesConfigMap.create": True, "valuesConfigMap.data": {"global": "a: 1\n"}}

    def helm(*arguments: str) -> None:
        devcluster.run_helm(*arguments, f"--namespace={site.namespace}")

    chart = ("addon-operator", str(charts.CHART), "--skip-crds", charts.UNCHECKED)
    helm("install", *chart, *charts.flags(given))
    assert site.data("addon-operator") == {"global": "a: 1\n"}
    memory = site.get("secret", "addon-operator-state")
    assert "data" not in memory, "the chart makes it, and the operator fills it"
    site.patch("secret", "addon-operator-state", {"stringData": {"a": "remembered"}})
    site.config(**{"global": "a: 2\n"})
    helm("upgrade", *chart, *charts.flags(given | {"service.port": 9750}))
    same = site.get("secret", "addon-operator-state")
    assert (same["metadata"]["uid"], len(same["data"])) == (memory["metadata"]["uid"], 1)
    assert site.data("addon-operator") == {"global": "a: 2\n"}
    helm("uninstall", "addon-operator")
    assert site.data("addon-operator") == {"global": "a: 2\n"}
    helm("install", *chart, *charts.flags(given))
    assert site.data("addon-operator") == {"global": "a: 2\n"}
    helm("uninstall", "addon-operator")


def test_the_rendered_manifests_are_in_step_with_the_chart() -> None:
    script = charts.ROOT / "scripts" / "manifests.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")
