"""What hooks inherit of the operator's environment."""

import pathlib

import pytest

from addon_operator.app import hook_environment
from addon_operator.kube.access import auth
from tests.support import rows

CREDENTIALS = {
    "DEBUG_UNIX_SOCKET": "/s",
    "ADDON_OPERATOR_DEBUG_UNIX_SOCKET": "/s",
    "ADMISSION_SERVER_CERTS_DIR": "/c",
    "HELM_KUBETOKEN": "t",
    "HELM_REGISTRY_CONFIG": "/r",
}
KUBECONFIG = """\
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: a, user: {token: t}}]
"""
OPERATORS = {"PATH": "/bin", "HOME": "/h", "HELM_DRIVER": "secret", "MY_TOKEN": "t", "MY_NAME": "n"}


@rows.each(
    ("wanted", "names"),
    [
        pytest.param(("*",), set(OPERATORS), id="all but credentials"),
        pytest.param((), {"PATH"}, id="nothing but the way to interpreters"),
        pytest.param(("MY_*", "HOME"), {"PATH", "HOME", "MY_TOKEN", "MY_NAME"}, id="names and patterns"),
        pytest.param(("HELM_*",), {"PATH", "HELM_DRIVER"}, id="a pattern brings no credentials"),
        pytest.param(
            ("*", "HELM_KUBETOKEN"), {*OPERATORS, "HELM_KUBETOKEN"}, id="a credential that is named"
        ),
        pytest.param(("my_name",), {"PATH"}, id="case counts"),
    ],
)
def test_hooks_inherit_what_is_allowed(wanted: tuple[str, ...], names: set[str]) -> None:
    assert set(hook_environment.inherited(CREDENTIALS | OPERATORS, wanted)) == names


def test_every_name_of_a_setting_that_leads_to_a_credential_is_one() -> None:
    assert {
        *CREDENTIALS,
        "SHELL_OPERATOR_DEBUG_UNIX_SOCKET",
        "ADDON_OPERATOR_ADMISSION_SERVER_CERTS_DIR",
    } <= (hook_environment.CREDENTIALS | {"HELM_KUBETOKEN"})


def test_what_the_operator_gives_hooks_need_not_be_allowed(tmp_path: pathlib.Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    access = auth.load_access(kubeconfig, None, None, {})
    made = hook_environment.of_hooks({"KUBECONFIG": "/other", "A": "a"}, access, tmp_path, ())
    assert set(made) == {"KUBECONFIG", "PYTHONPATH", "ADDON_OPERATOR_SHELL_LIBRARY", "FRAMEWORK_DIR"}
    assert made["KUBECONFIG"] == str(kubeconfig)
