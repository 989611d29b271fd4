"""Hooks that answer the API server, with a real one."""

import concurrent.futures
import json
import pathlib
import re
import ssl
import sys
import urllib.request

import pytest

from addon_operator.devcluster import handle
from tests.integration import admitting, operator_process, operator_site, receivers
from tests.integration.guarded import binding, create, forbid, snapshots

pytestmark = pytest.mark.integration


@pytest.mark.slow
def test_a_hook_answers_the_api_server(site: operator_site.Site, devcluster: handle.DevCluster) -> None:
    module = site.module("010-shop", values="shopEnabled: true\n")
    forbid(site, module)
    site.config()
    with admitting.admitting(site, devcluster) as operator:
        operator.wait_logged("module run ended")
        operator.wait_until(lambda: "not this one" in create(site, "forbidden").text, "it is denied")
        assert create(site, "fine").is_success
        [context] = site.runs()[-1].contexts
        assert (context["binding"], context["type"]) == ("guard.shop.example", "Validating")
        assert context["review"]["request"]["object"]["metadata"]["name"] == "fine"
        assert context["snapshots"] == {}


def ask(port: int, path: str) -> str:
    """Ask a replica as the API server does; what it answers."""
    request = {"uid": "1-2", "operation": "CREATE", "object": {"metadata": {"name": "x"}}}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    asked = urllib.request.Request(
        f"https://127.0.0.1:{port}{path}?timeout=10s",
        json.dumps(review).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(asked, timeout=15, context=context) as response:  # noqa: S310
            return str(response.read().decode())
    except OSError as error:
        return str(error)


def write_hosts(site: operator_site.Site, other: str) -> None:
    """A module that refuses a host that is taken in either namespace, and paints what has no color."""
    module = site.module("010-shop", values="shopEnabled: true\n")
    everywhere = {
        "namespace": {
            "labelSelector": {
                "matchExpressions": [
                    {
                        "key": "kubernetes.io/metadata.name",
                        "operator": "In",
                        "values": [site.namespace, other],
                    }
                ]
            }
        }
    }
    site.hook(
        module,
        "hosts.sh",
        {
            "kubernetes": [snapshots("hosts", jqFilter=".data.host", keepFullObjectsInMemory=False)],
            "kubernetesValidating": [
                binding(
                    site, "hosts.shop.example", includeSnapshotsFrom=["hosts"], timeoutSeconds=8, **everywhere
                )
            ],
        },
        """
        host=$(jq -r '.[0].review.request.object.data.host' "$BINDING_CONTEXT_PATH")
        case $host in
          hang) sleep 60 ;;
          fail) echo "the reason, for the log" >&2; exit 3 ;;
          odd) echo '{"alowed": true}' > "$VALIDATING_RESPONSE_PATH"; exit 0 ;;
          killed) kill -KILL $$ ;;
          chatty) seq 20000; sleep 300 & echo "left $! behind" ;;
        esac
        jq -c --arg host "$host" 'if any(.[0].snapshots.hosts[]; .filterResult == $host)
          then {allowed: false, message: "\\($host) is taken"} else {allowed: true} end' \\
          "$BINDING_CONTEXT_PATH" > "$VALIDATING_RESPONSE_PATH"
        """,
    )
    site.hook(
        module,
        "default.sh",
        {"kubernetesMutating": [binding(site, "default.shop.example")]},
        """
        if [[ $contexts == *'"unpatched"'* ]]; then
          patch='[{"op": "remove", "path": "/data/none"}]'
          echo '{"allowed": true, "patch": '"$patch"'}' > "$VALIDATING_RESPONSE_PATH"
        elif [[ $contexts != *'"color"'* ]]; then
          patch='[{"op": "add", "path": "/data/color", "value": "green"}]'
          echo '{"allowed": true, "patch": "'"$(base64 -w 0 <<< "$patch")"'"}' > "$VALIDATING_RESPONSE_PATH"
        else
          echo '{"allowed": true}' > "$VALIDATING_RESPONSE_PATH"
        fi
        """,
    )
    site.config()


def test_a_hook_with_snapshots_refuses_a_second_host_in_another_namespace(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    other = devcluster.namespace("other")
    write_hosts(site, other)
    with admitting.admitting(site, devcluster) as operator:
        operator.wait_logged("module run ended")
        assert create(site, "first", host="shop.example").is_success
        operator.wait_until(
            lambda: (
                "shop.example is taken" in create(site, "again", host="shop.example", namespace=other).text
            ),
            "the second one is refused",
        )
        assert create(site, "free", host="free.example", namespace=other).is_success
        operator.wait_until(lambda: (site.data("first") or {}).get("host"), "it is stored")
        assert create(site, "painted", host="paint.example").is_success
        assert site.data("painted") == {"host": "paint.example", "color": "green"}
        unpatched = create(site, "unpatched", host="unpatched.example").text
        assert "hook default.sh of module shop gave a wrong answer: patch[0] (remove /data/none)" in unpatched


@pytest.mark.slow
def test_a_hook_that_cannot_answer_says_why(site: operator_site.Site, devcluster: handle.DevCluster) -> None:
    write_hosts(site, site.namespace)
    with receivers.receiving() as receiver, admitting.admitting(site, devcluster) as operator:
        receivers.write_targets(site, [receivers.target(receiver, "chat", "slack")])
        operator.wait_logged("module run ended")
        assert create(site, "first", host="why.example").is_success
        operator.wait_until(
            lambda: "why.example is taken" in create(site, "again", host="why.example").text, "it is asked"
        )
        said = {host: create(site, host, host=host).text for host in ("hang", "fail", "odd", "killed")}
        assert "hook hosts.sh of module shop did not answer within 7.5s" in said["hang"]
        assert "hook hosts.sh of module shop failed; the operator's log says more" in said["fail"]
        assert "gave a wrong answer" in said["odd"]
        assert "hook hosts.sh of module shop failed" in said["killed"]
        assert all("the reason" not in text for text in said.values())
        operator.wait_logged("failed with exit code 3: the reason, for the log")
        operator.wait_logged("the key 'alowed' of the hook's answer is not known; did you mean 'allowed'?")
        assert receiver.wait("/chat", 1)[0].startswith("shop has trouble with its hooks")
        assert "hosts.sh did not answer the last request" in receiver.bodies("/chat")[0]["text"]
        assert create(site, "chatty", host="chatty").is_success
        operator.wait_logged("and 19501 more lines of the hook")
        left = re.search(r"left (\d+) behind", operator.wait_logged("behind", "hosts.sh"))
        assert left is not None
        assert not pathlib.Path(f"/proc/{left[1]}").exists()
        metric = "webhook_hook_requests_total"
        labels = {"module": "shop", "hook": "hosts.sh", "binding": "hosts.shop.example"}
        operator.wait_metric(2, metric, **labels, result="error")
        operator.wait_metric(1, metric, **labels, result="timeout")
        assert receiver.wait("/chat", 2)[1].startswith("shop has no trouble with its hooks any more, after ")


@pytest.mark.slow
def test_requests_are_answered_while_their_module_is_disabled_under_load(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    module = site.module("010-shop", values="shopEnabled: true\n")
    forbid(site, module, afterDeleteHelm=1)
    site.config()
    with admitting.admitting(site, devcluster) as operator:
        operator.wait_logged("module run ended")
        operator.wait_until(lambda: "not this one" in create(site, "forbidden").text, "it is denied")
        before = len(site.runs())
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            answers = [pool.submit(create, site, f"burst-{number}") for number in range(500)]
            site.config(shopEnabled="false")
            failed = [answer.result().text for answer in answers if not answer.result().is_success]
        assert failed == []
        assert len(site.runs()) > before
        path = f"{admitting.CONFIGURATIONS[1]}/addon-operator-{site.namespace}-hooks"
        operator.wait_until(
            lambda: json.loads(site.request("GET", path).text).get("webhooks", []) == [],
            "it is not registered",
        )
        operator.wait_until(lambda: create(site, "forbidden").is_success, "nobody is asked any more")


def test_a_registration_that_somebody_edits_or_deletes_comes_back(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    module = site.module("010-shop", values="shopEnabled: true\n")
    site.hook(
        module,
        "guard.sh",
        {"kubernetesValidating": [binding(site, "guard.shop.example")]},
        """echo '{"allowed": false, "message": "no"}' > "$VALIDATING_RESPONSE_PATH" """,
    )
    site.config()
    path = f"{admitting.CONFIGURATIONS[1]}/addon-operator-{site.namespace}-hooks"
    with admitting.admitting(site, devcluster) as operator:

        def names() -> list[str]:
            found = json.loads(site.request("GET", path).text).get("webhooks") or []
            return [f"{each['name']} {each['failurePolicy']}" for each in found]

        right = ["guard.shop.example Fail"]
        operator.wait_until(lambda: names() == right, "it is registered")
        live = json.loads(site.request("GET", path).text)
        live["webhooks"][0]["failurePolicy"] = "Ignore"
        assert site.request("PUT", path, live).is_success
        operator.wait_until(lambda: names() == right, "it is corrected")
        assert site.request("DELETE", path).is_success
        operator.wait_until(lambda: names() == right, "it is there again")


@pytest.mark.slow
def test_a_replica_that_stands_by_answers_and_goes_on_when_the_leader_dies(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    module = site.module("010-shop", values="shopEnabled: true\nshop: {color: green}\n")
    site.hook(
        module,
        "guard.sh",
        {
            "kubernetes": [snapshots("all")],
            "kubernetesValidating": [binding(site, "guard.shop.example", includeSnapshotsFrom=["all"])],
        },
        """
        jq -c --slurpfile values "$VALUES_PATH" '{allowed: false,
          message: "\\(.[0].snapshots.all | length) objects, \\($values[0].shop.color)"}' \\
          "$BINDING_CONTEXT_PATH" > "$VALIDATING_RESPONSE_PATH"
        """,
    )
    site.config()
    # What is registered leads to the second one, which stands by at first.
    with admitting.admitting(site, devcluster, **operator_site.SHORT_LEASE) as leader:
        leader.wait_logged("module run ended")
        port = operator_process.free_port()
        second = site.start(
            **{
                **admitting.webhook_environment(port),
                **operator_site.SHORT_LEASE,
                "DEBUG_UNIX_SOCKET": str(site.root / "second.socket"),
            }
        )
        second.wait_logged("standing by")
        # It needs the certificate first, without which no Service leads to it.
        second.wait_until(lambda: second.get("/readyz/admission").status == 200, "it may be asked")
        path = "/hooks/validating/guard.shop.example"
        second.wait_until(
            lambda: "objects, green" in ask(port, f"/{admitting.path_key(site)}{path}"),
            "its hook answers while it stands by",
        )
        former = admitting.path_key(site)
        leader.kill()
        second.wait_logged("module run ended")
        second.wait_until(lambda: admitting.path_key(site) != former, "the next leader changes the path")
        for key in (former, admitting.path_key(site)):
            assert "objects, green" in ask(port, f"/{key}{path}")


@pytest.mark.slow
def test_who_reaches_the_port_and_does_not_know_the_path_runs_nothing(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    module = site.module("010-shop", values="shopEnabled: true\n")
    forbid(site, module)
    site.config()
    port = operator_process.free_port()
    with admitting.admitting(site, devcluster, **admitting.webhook_environment(port)) as operator:
        operator.wait_until(lambda: "not this one" in create(site, "forbidden").text, "it is denied")
        ran = len(site.runs())
        for path in (
            "/hooks/validating/guard.shop.example",
            "/hooks/mutating/guard.shop.example",
            "/convert/things.shop.example",
            "/check-config",
        ):
            for key in ("", "/x", f"/{'0' * 32}"):
                assert "403" in ask(port, f"{key}{path}"), path
        assert len(site.runs()) == ran
        assert operator.metrics().total("admission_requests_refused_total") >= 12
        key = admitting.path_key(site)
        assert '"allowed":true' in ask(port, f"/{key}/hooks/validating/guard.shop.example")
        # The API server may have quoted the path in its error.
        operator.kill()
    with admitting.admitting(site, devcluster, **admitting.webhook_environment(port)) as again:
        again.wait_until(lambda: admitting.path_key(site) != key, "a leader that starts changes it")
        assert "not this one" in create(site, "forbidden").text


OF_SHELL_OPERATOR = """\
#!/usr/bin/env bash
source "$ADDON_OPERATOR_SHELL_LIBRARY"

function __config__() {
  cat <<EOF
configVersion: v1
kubernetesValidating:
- name: images.shop.example
  namespace:
    labelSelector:
      matchLabels:
        kubernetes.io/metadata.name: @NAMESPACE@
  rules:
  - apiGroups: [""]
    apiVersions: ["v1"]
    operations: ["CREATE"]
    resources: ["configmaps"]
    scope: "Namespaced"
kubernetesMutating:
- name: sizes.shop.example
  labelSelector: {matchLabels: {size: wanted}}
  namespace: {labelSelector: {matchLabels: {kubernetes.io/metadata.name: @NAMESPACE@}}}
  rules:
  - {apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"]}
- name: marks.shop.example
  labelSelector: {matchLabels: {mark: wanted}}
  namespace: {labelSelector: {matchLabels: {kubernetes.io/metadata.name: @NAMESPACE@}}}
  rules:
  - {apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"]}
EOF
}

function __on_mutating::sizes.shop.example() {
  hook::patch_object '[{"op": "add", "path": "/data/size", "value": "large"}]'
}

function __on_mutating::marks.shop.example() {
  PATCH=$(echo '[{"op": "add", "path": "/metadata/labels/mark", "value": "yes"}]' | base64 -w 0)
  cat <<EOF > $VALIDATING_RESPONSE_PATH
{"allowed":true, "patch": "$PATCH"}
EOF
}

function __on_validating::images.shop.example() {
  image=$(context::jq -r '.review.request.object.data.image')
  echo "image: $image"
  if [[ $image == registry.example/* ]]; then
    cat <<EOF > $VALIDATING_RESPONSE_PATH
{"allowed":true}
EOF
  elif [[ $image == two/* ]]; then
    hook::allow "first"
    hook::deny "said by the library about $(review::jq -r .object.metadata.name)"
  else
    cat <<EOF > $VALIDATING_RESPONSE_PATH
{"allowed":false, "message":"only images of registry.example"}
EOF
  fi
}

hook::run $@
"""
IN_PYTHON = """\
#!PYTHON
from addon_operator import hook

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
NAMESPACES = {"labelSelector": {"matchLabels": {"kubernetes.io/metadata.name": "@NAMESPACE@"}}}
UNLESS = {"name": "not-exempt", "expression": "object.metadata.name != 'exempt'"}
BINDING = {"name": "default.shop.example", "rules": [RULE], "namespace": NAMESPACES}
CONFIG = {
    "configVersion": "v1",
    "kubernetesMutating": [{**BINDING, "failurePolicy": "Ignore", "matchConditions": [UNLESS]}],
}


def main(run):
    request = run.contexts[0].review
    if request["object"].get("data", {}).get("color") == "none":
        return hook.deny("none is not a color")
    if "color" in request["object"].get("data", {}):
        return hook.allow(warnings=["it has a color"])
    run.metrics.add("addon_operator_colors_total", 1, {"dry": str(request["dryRun"])})
    return hook.patch_object([{"op": "add", "path": "/data/color", "value": "green"}])


if __name__ == "__main__":
    hook.run(CONFIG, main)
"""


def test_hooks_made_for_shell_operator_and_by_the_libraries_answer(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    module = site.module("010-shop", values="shopEnabled: true\n")
    (module / "hooks").mkdir()
    for name, text in (("images.sh", OF_SHELL_OPERATOR), ("default.py", IN_PYTHON)):
        written = text.replace("@NAMESPACE@", site.namespace).replace("PYTHON", sys.executable, 1)
        site.script(module / "hooks" / name, written, exact=True)
    site.config()
    with admitting.admitting(site, devcluster) as operator:
        operator.wait_logged("module run ended")
        operator.wait_until(
            lambda: "only images of registry.example" in create(site, "x", image="other/x").text, "it denies"
        )
        assert "said by the library about y" in create(site, "y", image="two/x").text
        assert create(site, "fine", image="registry.example/x").is_success
        assert site.data("fine") == {"image": "registry.example/x", "color": "green"}
        before = operator.metrics().total("colors_total", dry="False")
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dry"}}
        body["data"] = {"image": "registry.example/x"}
        path = f"/api/v1/namespaces/{site.namespace}/configmaps?dryRun=All"
        assert json.loads(site.request("POST", path, body).text)["data"]["color"] == "green"
        assert before >= 1
        assert operator.metrics().total("colors_total", dry="True") == 0, (
            "of a dry run, nothing else is taken"
        )
        assert "none is not a color" in create(site, "none", image="registry.example/x", color="none").text
        assert create(site, "exempt", image="registry.example/x").is_success
        assert site.data("exempt") == {"image": "registry.example/x"}, "its matchConditions do not hold"
        body["metadata"] = {"name": "red", "labels": {"size": "wanted", "mark": "wanted"}}
        body["data"] = {"image": "registry.example/x", "color": "red"}
        told = site.cluster.run_kubectl("create", "-n", site.namespace, "-f", "-", stdin=json.dumps(body))
        assert "Warning: it has a color" in told.stderr.splitlines()
        [red] = site.objects("configmaps", fieldSelector="metadata.name=red")
        assert (red["data"]["size"], red["metadata"]["labels"]["mark"]) == ("large", "yes")

        path = f"{admitting.CONFIGURATIONS[0]}/addon-operator-{site.namespace}-hooks"
        registered = json.loads(site.request("GET", path).text)
        [default] = [each for each in registered["webhooks"] if each["name"] == "default.shop.example"]
        assert default["failurePolicy"] == "Ignore"
        assert default["matchConditions"][0] == {
            "name": "not-exempt",
            "expression": "object.metadata.name != 'exempt'",
        }
        owners = json.loads(registered["metadata"]["annotations"]["admission.addon-operator.io/hooks"])
        assert owners["default.shop.example"] == {"module": "shop", "hook": "default.py"}
        assert owners["sizes.shop.example"] == {"module": "shop", "hook": "images.sh"}
        labels = {"module": "shop", "hook": "default.py", "binding": "default.shop.example"}
        operator.wait_metric(2, "webhook_hook_seconds_count", **labels)
