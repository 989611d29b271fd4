"""What the chart gives to whom: rights, ports, and admission apart from the operator."""

import pathlib

import pytest

from addon_operator.devcluster import handle
from addon_operator.helm.releases import record_format
from tests.integration import charts, operator_site

pytestmark = pytest.mark.integration

SEPARATE: dict[str, object] = {"admission.separate": True}
ENGINE_ONLY: dict[str, object] = {
    "extraEnv": [{"name": "TOKEN", "value": "x"}],
    "extraVolumes": [{"name": "x", "emptyDir": {}}],
}


@pytest.fixture(scope="module")
def helm(devcluster: handle.DevCluster) -> pathlib.Path:
    return devcluster.helm


def named(objects: list[charts.Object], kind: str, name: str) -> charts.Object:
    (found,) = [one for one in charts.of_kind(objects, kind) if one["metadata"]["name"] == name]
    return found


def rules_of(objects: list[charts.Object], account: str) -> list[charts.Object]:
    """All rules that are bound to a ServiceAccount."""
    roles = {(one["kind"], one["metadata"]["name"]): one for one in objects if one["kind"].endswith("Role")}
    bindings = [one for one in objects if one["kind"].endswith("RoleBinding")]
    bound = [one for one in bindings if account in {subject["name"] for subject in one["subjects"]}]
    return [rule for one in bound for rule in roles[one["roleRef"]["kind"], one["roleRef"]["name"]]["rules"]]


def creatable(rules: list[charts.Object]) -> set[str]:
    """What may be created under any name."""
    free = [rule for rule in rules if "create" in rule["verbs"] and not rule.get("resourceNames")]
    return {resource for rule in free for resource in rule["resources"]}


def test_what_the_chart_makes_nobody_needs_to_create(helm: pathlib.Path) -> None:
    objects = charts.render(helm)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        made = charts.of_kind(objects, kind)
        names = ["addon-operator-addons", "addon-operator-addons-hooks"]
        assert [each["metadata"]["name"] for each in made] == names
        assert not any("webhooks" in each for each in made)
    assert "data" not in named(objects, "Secret", "addon-operator-admission")
    env = charts.env_of(charts.only(objects, "Deployment"))
    assert env["WEBHOOK_CONFIGURATION"] == "addon-operator-addons"
    rules = rules_of(objects, "addon-operator")
    assert creatable(rules) == {
        "configmaps",
        "secrets",
        "events",
        "leases",
        "modules",
        "subjectaccessreviews",
    }
    of_cluster = [rule for role in charts.of_kind(objects, "ClusterRole") for rule in role["rules"]]
    assert not any({"secrets", "modules"} & set(rule["resources"]) for rule in of_cluster)
    assert {role["metadata"]["namespace"] for role in charts.of_kind(objects, "Role")} == {"addons"}


@pytest.mark.parametrize(
    ("values", "readable"),
    [
        pytest.param({}, ["addon-operator", "addon-operator-notify"], id="the ConfigMap's name"),
        pytest.param({"valuesConfigMap": {"name": "mine"}}, ["mine", "mine-notify"], id="another ConfigMap"),
        pytest.param(
            {"valuesSecret": {"name": "passwords"}, "notifications": {"secretName": "people"}},
            ["passwords", "people"],
            id="names of their own",
        ),
        pytest.param(
            {"valuesSecret": {"name": "none"}, "notifications": {"secretName": "none"}}, [], id="none"
        ),
    ],
)
def test_without_records_in_secrets_only_certificates_and_values_are_touched(
    helm: pathlib.Path, values: charts.Object, readable: list[str]
) -> None:
    objects = charts.render(helm, {"settings": {"HELM_DRIVER": "configmap"}} | values)
    rules = [rule for rule in rules_of(objects, "addon-operator") if "secrets" in rule["resources"]]
    name = values.get("valuesConfigMap", {}).get("name", "addon-operator")
    assert [(rule["resourceNames"], rule["verbs"]) for rule in rules] == [
        *(([name], ["get", "list", "watch"]) for name in readable),
        ([f"{name}-state"], ["get", "update", "patch"]),
        (["addon-operator-admission"], ["get", "update"]),
    ]
    assert "data" not in named(objects, "Secret", f"{name}-state")
    env = charts.env_of(charts.only(objects, "Deployment"))
    assert env.get("VALUES_SECRET") == values.get("valuesSecret", {}).get("name")
    assert env.get("NOTIFY_SECRET") == values.get("notifications", {}).get("secretName")


def test_admission_apart_has_rights_that_the_operator_has_not(helm: pathlib.Path) -> None:
    together = rules_of(charts.render(helm), "addon-operator")
    objects = charts.render(helm, SEPARATE)
    admission, operator = (rules_of(objects, name) for name in ("addon-operator-admission", "addon-operator"))
    assert creatable(admission) == {"events", "subjectaccessreviews"}
    only_operator = {"leases", "modules", "modules/status"}
    resources = [
        {resource for rule in rules for resource in rule["resources"]} for rules in (admission, operator)
    ]
    assert only_operator.isdisjoint(resources[0])
    assert resources[1].isdisjoint(
        resources[0] - {"secrets", "events", "namespaces", "configmaps", "customresourcedefinitions"}
    )
    assert [rule for rule in together if rule not in operator and rule not in admission] == [
        rule
        for rule in together
        if "customresourcedefinitions" in rule["resources"]
        and ("create" in rule["verbs"] or rule["verbs"] == ["list"])
    ]


def test_requests_about_pods_reach_those_pods_alone_that_admit(helm: pathlib.Path) -> None:
    objects = charts.render(helm, SEPARATE | ENGINE_ONLY)
    pods = {
        name: named(objects, "Deployment", name)["spec"]["template"]
        for name in ("addon-operator", "addon-operator-admission")
    }
    labels = {name: pod["metadata"]["labels"].items() for name, pod in pods.items()}
    selectors = {
        one["metadata"]["name"]: one["spec"]["selector"].items() for one in charts.of_kind(objects, "Service")
    }
    assert {name: [pod for pod in pods if wanted <= labels[pod]] for name, wanted in selectors.items()} == {
        "addon-operator": ["addon-operator"],
        "addon-operator-admission": ["addon-operator-admission"],
        "addon-operator-webhook": ["addon-operator-admission"],
    }
    ports = {
        name: [port["name"] for port in pod["spec"]["containers"][0]["ports"]] for name, pod in pods.items()
    }
    assert ports == {"addon-operator": ["http"], "addon-operator-admission": ["http", "webhook"]}
    assert "x" not in [volume["name"] for volume in pods["addon-operator-admission"]["spec"]["volumes"]]


def test_each_part_knows_what_it_is(helm: pathlib.Path) -> None:
    objects = charts.render(helm, SEPARATE | ENGINE_ONLY)
    operator, admission = (
        charts.env_of(named(objects, "Deployment", name))
        for name in ("addon-operator", "addon-operator-admission")
    )
    assert (operator["ADMISSION_SERVER_ENABLED"], admission["ADMISSION_SERVER_ENABLED"]) == ("false", "true")
    assert admission["ADMISSION_ONLY"] == "true"
    assert set(operator) - set(admission) == {
        "ADDON_OPERATOR_HA", "HELM_IGNORE_RELEASE", "SHUTDOWN_GRACE", "TOKEN",
    }  # fmt: skip
    assert not any(name.startswith("WEBHOOK") for name in operator)


def test_admission_is_not_apart_where_there_is_none(helm: pathlib.Path) -> None:
    objects = charts.render(helm, SEPARATE | {"podPresets.enabled": False})
    assert objects == charts.render(helm, {"podPresets.enabled": False})


@pytest.mark.parametrize("values", [{}, SEPARATE], ids=["together", "apart"])
def test_all_ports_but_two_are_closed(helm: pathlib.Path, values: dict[str, object]) -> None:
    policies = charts.of_kind(charts.render(helm, values), "NetworkPolicy")
    open_ports = {
        policy["metadata"]["name"]: [entry["ports"] for entry in policy["spec"]["ingress"]]
        for policy in policies
    }
    http, webhook = [{"port": "http"}], [{"port": "webhook"}]
    if values:
        assert open_ports == {"addon-operator": [http], "addon-operator-admission": [http, webhook]}
    else:
        assert open_ports == {"addon-operator": [http, webhook]}
    assert all(policy["spec"]["policyTypes"] == ["Ingress"] for policy in policies)


def test_the_ports_are_open_to_those_alone_that_are_named(helm: pathlib.Path) -> None:
    api_server = [{"ipBlock": {"cidr": "10.0.0.0/28"}}]
    objects = charts.render(helm, {"networkPolicy.webhookFrom": api_server})
    metrics, webhook = charts.only(objects, "NetworkPolicy")["spec"]["ingress"]
    assert ("from" in metrics, webhook["from"]) == (False, api_server)
    assert charts.of_kind(charts.render(helm, {"networkPolicy.enabled": False}), "NetworkPolicy") == []


@pytest.mark.parametrize(
    ("monitor", "kind", "field"),
    [
        ("serviceMonitor", "ServiceMonitor", "endpoints"),
        ("podMonitor", "PodMonitor", "podMetricsEndpoints"),
    ],
)
def test_what_is_scraped_cannot_pass_for_another_job(
    helm: pathlib.Path, monitor: str, kind: str, field: str
) -> None:
    objects = charts.render(helm, SEPARATE | {f"metrics.{monitor}.enabled": True})
    (endpoint,) = charts.only(objects, kind)["spec"][field]
    assert endpoint["honorLabels"] is False


def test_both_parts_are_scraped(helm: pathlib.Path) -> None:
    scraped = {"metrics.serviceMonitor.enabled": True}
    objects = charts.render(helm, SEPARATE | scraped)
    wanted = charts.only(objects, "ServiceMonitor")["spec"]["selector"]["matchLabels"].items()
    services = charts.of_kind(objects, "Service")
    assert [one["metadata"]["name"] for one in services if wanted <= one["metadata"]["labels"].items()] == [
        "addon-operator-admission", "addon-operator",
    ]  # fmt: skip
    objects = charts.render(helm, SEPARATE | {"metrics.podMonitor.enabled": True})
    (expression,) = charts.only(objects, "PodMonitor")["spec"]["selector"]["matchExpressions"]
    assert expression["values"] == ["addon-operator", "addon-operator-admission"]


def test_the_authority_of_the_api_servers_certificate_is_mounted_where_pods_are_admitted(
    helm: pathlib.Path,
) -> None:
    given: dict[str, object] = {
        "webhook.clientCA.configMapName": "apiserver",
        "webhook.clientCA.key": "client.pem",
    }
    objects = charts.render(helm, SEPARATE | given)
    pod = named(objects, "Deployment", "addon-operator-admission")["spec"]["template"]["spec"]
    (volume,) = [one for one in pod["volumes"] if one["name"] == "client-ca"]
    (mount,) = [one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "client-ca"]
    assert volume["configMap"] == {"name": "apiserver"}
    env = charts.env_of(named(objects, "Deployment", "addon-operator-admission"))
    assert env["WEBHOOK_CLIENT_CA"] == f"{mount['mountPath']}/client.pem"
    assert "client-ca" not in str(named(objects, "Deployment", "addon-operator"))
    both = given | {"webhook.clientCA.secretName": "apiserver"}
    assert "webhook.clientCA.secretName" in charts.refusal(helm, both)


def test_the_notes_tell_to_create_the_values_configmap_as_long_as_there_is_none(
    devcluster: handle.DevCluster, namespace: str
) -> None:
    def notes(**values: object) -> str:
        where = ("--namespace", namespace, "--dry-run=server", "--skip-crds", charts.UNCHECKED)
        argv = ("install", charts.RELEASE, str(charts.CHART), *where, *charts.flags(values))
        return devcluster.run_helm(*argv).stdout.split("\nNOTES:\n")[1]

    create, edit = (f"{verb} configmap addon-operator" for verb in ("create", "edit"))
    assert create in notes()
    made = notes(**{"valuesConfigMap.create": True})
    assert (create in made, edit in made) == (False, True)
    devcluster.run_kubectl("-n", namespace, "create", "configmap", "addon-operator")
    assert (create in notes(), edit in notes()) == (False, True)
    assert "podPresets.readSecrets" in notes()
    assert "create secret generic passwords" in notes(**{"valuesSecret.name": "passwords"})
    assert "create secret" not in notes(**{"valuesSecret.name": "none"})
    assert "webhookconfigurations" not in notes()


@pytest.mark.slow
def test_who_may_view_a_namespace_reads_records_that_are_config_maps(site: operator_site.Site) -> None:
    site.module("010-web", {"a": "b"}, values="webEnabled: true\n")
    site.secret(web="password: canary")
    site.start(HELM_DRIVER="configmap").wait_ready().wait_idle().stop()
    site.kubectl("create", "rolebinding", "viewer", "--clusterrole=view", "--user=viewer")
    asked = (
        "get",
        "configmap",
        "sh.helm.release.v1.web.v1",
        "--output=jsonpath={.data.release}",
        "--as=viewer",
    )
    decoded = record_format.decode(site.kubectl(*asked), is_secret=False)
    assert record_format.content_of(decoded).values["web"]["password"] == "canary"
