"""Reading Helm's standard error; the lines are those of Helm 3.22 and 4.3."""

import pytest

from addon_operator.helm import messages

API_WARNING = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"


@pytest.mark.parametrize(
    ("stderr", "text"),
    [
        pytest.param("Error: UPGRADE FAILED: no", "UPGRADE FAILED: no", id="one line"),
        pytest.param("WARNING: x\nError: first\n  second\n", "first second", id="several lines"),
        pytest.param(
            "Error: bad\n\nUse --debug flag to render out invalid YAML\n", "bad", id="advice for a terminal"
        ),
        pytest.param("Error: a\nError: b", "b", id="the last error counts"),
        pytest.param("panic: runtime error", "panic: runtime error", id="no error line"),
    ],
)
def test_the_explanation_is_found_and_put_on_one_line(stderr: str, text: str) -> None:
    assert messages.error_text(stderr, 1) == text


@pytest.mark.parametrize(
    ("exit_code", "text"),
    [
        (-9, "helm failed without a message (ended by signal 9)"),
        (3, "helm failed without a message (exit code 3)"),
    ],
)
def test_silence_is_told_by_how_helm_ended(exit_code: int, text: str) -> None:
    assert messages.error_text(" \n", exit_code) == text


def test_a_very_long_explanation_is_cut() -> None:
    assert len(messages.error_text("Error: " + "x" * 5000, 1)) == 2001


def test_missing_dependencies_come_with_the_command_that_brings_them() -> None:
    text = "found in Chart.yaml, but missing in charts/ directory: dep"
    assert messages.advice(text, "/modules/010-web") == "; run 'helm dependency build /modules/010-web'"


@pytest.mark.parametrize(
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
    ],
)
def test_what_helm_leaves_open_is_told(text: str, words: str) -> None:
    assert words in messages.advice(text, "/modules/010-web")


def test_other_errors_need_no_advice() -> None:
    assert messages.advice("no matches for kind", "/modules/010-web") == ""


@pytest.mark.parametrize(
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
        pytest.param('level=WARN msg="this chart is deprecated"', '"this chart is deprecated"', id="slog"),
    ],
)  # fmt: skip
def test_warnings_are_recognised(line: str, text: str) -> None:
    assert messages.warning_text(line) == text


@pytest.mark.parametrize(
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


def test_a_secret_that_the_api_server_refuses_is_not_quoted() -> None:
    said = 'Error: X: Secret "web" is invalid: patch: Invalid value: "{\\"data\\":\\"s3cret\\"}": odd\n'
    text = messages.error_text(said, 1)
    assert text == 'X: Secret "web" is invalid: patch: Invalid value: ***: odd'
