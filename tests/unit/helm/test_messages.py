"""Reading Helm's standard error; the lines are those of Helm 3.22 and 4.3."""

import pathlib

import pytest

from addon_operator.helm import messages
from tests.support import rows

API_WARNING = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"


@rows.each(
    ("stderr", "text"),
    [
        pytest.param("Error: UPGRADE FAILED: x not found", "UPGRADE FAILED: x not found", id="one line"),
        pytest.param("WARNING: x\nError: first\n  not found\n", "first not found", id="several lines"),
        pytest.param(
            "Error: x not found\n\nUse --debug flag to render out invalid YAML\n",
            "x not found",
            id="advice for a terminal",
        ),
        pytest.param("Error: x not found\ny\nx not found\ny", "x not found y", id="repeats"),
    ],
)
def test_the_explanation_is_found_and_put_on_one_line(stderr: str, text: str) -> None:
    assert messages.explanation(stderr, 1) == messages.Explanation(text, text)


@rows.each("stderr", ["panic: runtime error", 'Error: "a" is b: x'], ids=["no error line", "new"])
def test_what_has_no_known_form_is_for_the_log_only(stderr: str) -> None:
    found = messages.explanation(stderr, 1)
    assert (found.text, found.without_values) == (stderr.removeprefix("Error: "), None)


@rows.each(
    ("exit_code", "text"),
    [
        (-9, "helm failed without a message (killed by signal 9)"),
        (3, "helm failed without a message (exit code 3)"),
    ],
)
def test_helm_without_output_is_reported_by_how_it_ended(exit_code: int, text: str) -> None:
    assert messages.explanation(" \n", exit_code) == messages.Explanation(text, text)


@rows.each(
    ("said", "shown"),
    [
        ("parse error at (web/templates/a.yaml:2): unclosed action started at web/templates/a.yaml:1",
         "parse error at (m/web/templates/a.yaml:2): unclosed action started at m/web/templates/a.yaml:1"),
        ('template: web/charts/db/templates/_h.tpl:1:3: executing "web/templates/a.yaml" at <x>',
         'template: m/web/charts/db/templates/_h.tpl:1:3: executing "m/web/templates/a.yaml" at <x>'),
        ("execution error at (web/templates/a.yaml:1:6): see docs/templates/a.yaml",
         "execution error at (m/web/templates/a.yaml:1:6): see docs/templates/a.yaml"),
        ("/x/web/templates/a.yaml is gone", "/x/web/templates/a.yaml is gone"),
        ("web/templates.yaml", "web/templates.yaml"),
    ],
    ids=["parse", "subchart", "words of the chart", "a path on disk", "another file"],
)  # fmt: skip
def test_files_are_those_of_the_module(said: str, shown: str) -> None:
    assert messages.in_module(said, pathlib.Path("m/web")) == shown


def test_of_a_very_long_explanation_head_and_end_are_shown() -> None:
    found = messages.explanation("Error: begin not found " + "x " * 5000 + "end", 1)
    assert found.text.startswith("begin not found x x ")
    assert " … " in found.text
    assert found.text.endswith(" x end")
    assert len(found.text) == 1903


def test_missing_dependencies_come_with_the_command_that_brings_them() -> None:
    text = "found in Chart.yaml, but missing in charts/ directory: dep"
    assert (
        messages.advice(text, "/modules/010-web", "addons")
        == "; run 'helm dependency build /modules/010-web'"
    )


@rows.each(
    ("text", "words"),
    [
        pytest.param(
            'create: failed to create: Secret "sh.helm.release.v1.web.v1" is invalid: data: Too long: '
            "may not be more than 1048576 bytes",
            "about 1 MiB, compressed",
            id="record refused by the API server",
        ),
        pytest.param("create: failed to create: etcdserver: request is too large", ".helmignore", id="etcd"),
        pytest.param("failed pre-install: timed out waiting for the condition", "HELM_TIMEOUT", id="helm 3"),
        pytest.param(
            "failed pre-install: resource Job/a/slow not ready. status: InProgress context deadline exceeded",
            "HELM_TIMEOUT",
            id="helm 4",
        ),
        pytest.param(
            'create: failed to create: secrets is forbidden: User "x" cannot create resource "secrets" '
            'in API group "" in the namespace "addons"',
            "allow the operator to get, list, create, update, patch, delete them in namespace addons",
            id="no right to keep releases",
        ),
        pytest.param(
            'Unable to continue with install: could not get information about the resource ConfigMap "web": '
            'configmaps "web" is forbidden: User "x" cannot get resource "configmaps" in API group "" in the '
            'namespace "addons"',
            'add to the operator\'s Role the rule apiGroups: [""], resources: ["configmaps"], '
            'verbs: ["get", "list", "watch", "create", "update", "patch", "delete"]',
            id="no right to what the chart holds",
        ),
        pytest.param(
            'clusterroles.rbac.authorization.k8s.io "web" is forbidden: User "x" cannot patch resource '
            '"clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope',
            'add to the operator\'s ClusterRole the rule apiGroups: ["rbac.authorization.k8s.io"], '
            'resources: ["clusterroles"]',
            id="no right to what the chart holds in the cluster",
        ),
        pytest.param(
            'chart file "a.bin" is larger than the maximum file size 5242880',
            ".helmignore",
            id="a large file",
        ),
        pytest.param(
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number '
            "into Go struct field ConfigMap.data of type string",
            "'addon-operator module lint' names the file and the field",
            id="a field of a wrong type",
        ),
        pytest.param(
            "chart requires kubeVersion: >=1.99.0 which is incompatible with Kubernetes v1.37.1",
            "use a version of the chart that is made for this cluster",
            id="another cluster",
        ),
        pytest.param(
            "chart requires kubeVersion: >=1.30.0 which is incompatible with Kubernetes v1.33.5-gke.100",
            "the suffix of the cluster's version makes it a pre-release",
            id="a vendor's suffix",
        ),
        pytest.param(
            'template: x/a.yaml:4:55: executing "x/a.yaml" at <.Values.global.domain>: nil pointer '
            "evaluating interface {}.domain",
            "chart.global in module.yaml",
            id="global values that the chart does not get",
        ),
        pytest.param(
            'cannot patch "db" with kind StatefulSet: StatefulSet.apps "db" is invalid: spec: Forbidden: '
            "updates to statefulset spec for fields other than 'replicas', 'ordinals' are forbidden",
            "--cascade=orphan",
            id="an object that cannot be changed",
        ),
        pytest.param(
            'cannot patch "x.y" with kind CustomResourceDefinition: it is invalid: '
            "[spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to "
            "Webhook]",
            "take that out of the chart",
            id="a definition that hooks convert",
        ),
        pytest.param(
            'create: failed to create: namespaces "addons" not found',
            "kubectl create namespace addons', or set createNamespace: true in module.yaml",
            id="the namespace of the release is missing",
        ),
        pytest.param(
            'server-side apply failed for object shop/door v1, Kind=Service: namespaces "shop" not found',
            "objects of the chart are in namespace shop: create it with 'kubectl create namespace shop'",
            id="the namespace of an object is missing",
        ),
        pytest.param(
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.name of type string",
            "; put quotes around the value of that field",
            id="a value that YAML does not read as a text",
        ),
        pytest.param(
            "failed post-install: warning: Hook post-install web/templates/sa.yaml failed: 1 error occurred: "
            '* serviceaccounts "check" already exists',
            "; an earlier try of the hook left it: delete it",
            id="what a hook that failed left",
        ),
    ],
)
def test_what_helm_leaves_open_is_added(text: str, words: str) -> None:
    assert words in messages.advice(text, "/modules/010-web", "addons")


def test_other_errors_need_no_advice() -> None:
    assert messages.advice("connection refused", "/modules/010-web", "addons") == ""


def test_a_kind_that_the_cluster_does_not_know_needs_its_definition() -> None:
    text = 'resource mapping not found: no matches for kind "Door" in version "doors.example.com/v1"'
    assert messages.advice(text, "/modules/010-web", "addons") == (
        "; is the CustomResourceDefinition of Door installed? Put it into crds/ of the module, or enable the "
        "module that brings it"
    )


@rows.each(
    "version",
    [
        "policy/v1beta1",
        "extensions/v1beta1",
        "v2",
        "networking.k8s.io/v1beta1",
        "flowcontrol.apiserver.k8s.io/v1beta3",
    ],
)
def test_a_kind_of_kubernetes_that_is_no_longer_served_has_no_definition(version: str) -> None:
    text = f'resource mapping not found: no matches for kind "Door" in version "{version}" ensure CRDs'
    advice = messages.advice(text, "/modules/010-web", "addons")
    assert f"this cluster does not serve Door of {version}: " in advice
    assert "definition" not in advice.lower()


@rows.each(
    ("line", "text"),
    [
        pytest.param("WARNING: This chart is deprecated", "This chart is deprecated", id="helm"),
        pytest.param(f'I1121 11:12:53.327623   26197 warnings.go:107] "Warning: {API_WARNING}"', API_WARNING,
                     id="API server, by quoted klog"),
        pytest.param(
            'I1121 11:12:52.051989   26041 warnings.go:107] "Warning: unknown field \\"spec.porrts\\""',
            'unknown field "spec.porrts"',
            id="API server, with quotes inside",
        ),
        pytest.param(f"W1121 10:15:01.123456    42 warnings.go:70] {API_WARNING}", API_WARNING,
                     id="API server, by plain klog"),
        pytest.param("E1121 10:15:01.1    4 memcache.go:2] no x", "no x", id="klog error"),
        pytest.param("2026/11/21 10:15:01 warning: cannot merge", "cannot merge", id="log"),
        pytest.param("2026/11/21 10:15:01 coalesce.go:286: warning: skipped", "skipped", id="log with file"),
        pytest.param("coalesce.go:237: warning: skipped", "skipped", id="log without date, since Helm 3.19"),
        pytest.param('level=INFO msg="warning: skipped"', "skipped", id="log, passed on by Helm 4"),
        pytest.param('level=WARN msg="this chart is deprecated"', '"this chart is deprecated"', id="slog"),
    ],
)  # fmt: skip
def test_warnings_are_recognised(line: str, text: str) -> None:
    assert messages.warning_text(line) == text


@rows.each(
    "line",
    [
        "Error: no",
        "I1121 11:12:53.3   26197 request.go:1] Waited for 1s",
        "level=INFO msg=hello",
        "warning",
        "",
    ],
)
def test_other_lines_are_no_warnings(line: str) -> None:
    assert messages.warning_text(line) is None


@rows.each(
    ("text", "is_so"),
    [
        ('Kubernetes cluster unreachable: Get "https://[::1]:6443/version": x', True),
        ('Post "https://api:6443/api": dial tcp 10.0.0.1:6443: connect: connection refused', True),
        ('failed calling webhook "a.b": Post "https://a.b.svc/": connect: connection refused', False),
        ('Service "wrong" is invalid: spec.ports[0].port', False),
    ],
)
def test_an_outage_of_the_api_server_is_told_from_what_it_refuses(text: str, is_so: bool) -> None:
    assert messages.is_outage(text) is is_so


def test_a_namespace_that_is_being_deleted_is_not_said_to_be_missing() -> None:
    missing = 'create: failed to create: namespaces "web" not found'
    assert "is created when this is tried again" in messages.advice(missing, "", "web", creates=True)
    ends = (
        "secrets is forbidden: unable to create new content in namespace web because it is being terminated"
    )
    assert "tried again when that has ended" in messages.advice(ends, "", "web")


def test_a_warning_of_helm_4_that_its_error_repeats_is_not_reported() -> None:
    line = 'level=WARN msg="upgrade failed" name=web error="X: Secret \\"s\\" is invalid: Invalid value: 1"'
    assert messages.warning_text(line) is None


def test_a_warning_is_reported_without_the_tables_that_it_quotes() -> None:
    line = "coalesce.go:289: warning: cannot overwrite table with non table for web.a (map[password:s3cret])"
    assert messages.warning_text(f"2026/11/21 10:15:01 {line}") == (
        "cannot overwrite table with non table for web.a ***"
    )


@rows.each(
    ("said", "is_so"),
    [
        pytest.param(
            "spec: Forbidden: updates to statefulset spec for fields other than 'x'", True, id="claim"
        ),
        pytest.param("spec.clusterIPs[0]: Invalid value: []string: may not change once set", True, id="IP"),
        pytest.param('roleRef: Invalid value: {"name":"b"}: cannot change roleRef', True, id="roleRef"),
        pytest.param("parameters: Forbidden: updates to parameters are forbidden.", True, id="StorageClass"),
        pytest.param("spec: Forbidden: spec is immutable after creation", True, id="volume claim"),
        pytest.param("value: Forbidden: may not be changed in an update.", True, id="priority"),
        pytest.param(
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
            True,
            id="strategy",
        ),
        pytest.param(
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0", False, id="wrong"
        ),
        pytest.param('roles "x" is forbidden: user "y" is attempting to grant more', False, id="no right"),
    ],
)
def test_immutable_fields_are_distinguished_from_invalid_ones(said: str, *, is_so: bool) -> None:
    text = (
        f'cannot patch "db" with kind X: X.apps "db" is invalid: {said} && cannot patch "b" with kind Y: no'
    )
    found = messages.unchangeable(text)
    assert found == (frozenset({messages.ObjectName("X", "db", None)}) if is_so else frozenset())


def test_an_object_of_the_cluster_that_nobody_may_change_has_no_namespace() -> None:
    text = 'server-side apply failed for object /db v1, Kind=X: X "db" is invalid: a: field is immutable'
    assert messages.unchangeable(text) == {messages.ObjectName("X", "db", "")}


AT = 'template: m/a.yaml:5:13: executing "m/a.yaml" at '


def test_a_pipe_in_a_chart_is_told_to_everybody() -> None:
    said = "Error: cannot load irregular file /m/web/templates/p.yaml as it has file mode type bits set\n"
    found = messages.explanation(said, 1)
    assert found.without_values == found.text
    assert found.text == "/m/web/templates/p.yaml cannot be read: it is not a regular file; remove it"


BUILD = "unable to build kubernetes objects from release manifest: "
DEPENDENCIES = (
    "An error occurred while checking for chart dependencies. You may need to run `helm dependency build` to "
    "fetch missing dependencies: "
)
MAPPING = (
    'resource mapping not found for name: "w" namespace: "" from "": no matches for kind "Widget" in version '
    '"acme.org/v1" ensure CRDs are installed first'
)
TOLD = 'no matches for kind "Widget" in version "acme.org/v1" (object \'w\')'


@rows.each(
    ("said", "told"),
    [
        (f"{BUILD}{MAPPING}", TOLD),
        (f"UPGRADE FAILED: {BUILD}{MAPPING}", TOLD),
        (f"{BUILD}[{MAPPING}, {MAPPING}]", f"[{TOLD}, {TOLD}]"),
        (f'{BUILD}unable to decode "": json: cannot', "json: cannot"),
        (f"{DEPENDENCIES}found in Chart.yaml, but missing", "found in Chart.yaml, but missing"),
    ],
    ids=["a kind", "a kind of an upgrade", "two kinds", "a type", "a dependency"],
)
def test_the_cause_stands_before_what_helm_says_at_length(said: str, told: str) -> None:
    assert messages.cause_first("install", said) == f"{told}, says helm install"


@rows.each(
    ("said", "told"),
    [
        (f"{AT}<.x.y>: nil pointer", "nil pointer at <.x.y> in m/a.yaml:5:13, says helm install"),
        (
            f'X FAILED: {AT}<include "h" .>: template: _h.tpl:3:4: executing "h" at <.x>: nil pointer',
            "nil pointer at <.x> in _h.tpl:3:4, says helm install",
        ),
        ('template: no template "h"', 'helm install: template: no template "h"'),
        ("its template: is wrong", "helm install: its template: is wrong"),
        (
            "execution error at (a.yaml:1:3): no host",
            "no host, says the chart at a.yaml:1:3 (helm install)",
        ),
        (
            "UPGRADE FAILED: execution error at (a.yaml:1:3): a: b",
            "a: b, says the chart at a.yaml:1:3 (helm install)",
        ),
        (
            "x: execution error at (a.yaml:1:3): no host",
            "helm install: x: execution error at (a.yaml:1:3): no host",
        ),
    ],
)
def test_the_cause_of_an_error_in_a_template_stands_before_its_place(said: str, told: str) -> None:
    assert messages.cause_first("install", said) == told
