"""Where an operator is looked for, by flags and variables."""

import pathlib

import pytest

from addon_operator.commands.outside import place
from addon_operator.kube import api_errors
from addon_operator.settings import settings

CONFIG = """
apiVersion: v1
kind: Config
current-context: one
clusters: [{name: c, cluster: {server: "https://one.example"}}]
users: [{name: u, user: {token: t}}]
contexts:
- {name: one, context: {cluster: c, user: u, namespace: addons}}
- {name: two, context: {cluster: c, user: u}}
"""


@pytest.fixture
def config(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "config"
    path.touch(0o600)
    path.write_text(CONFIG)
    return str(path)


def test_flags_win_over_the_context(config: str) -> None:
    variables = {"HOME": "/nowhere"}
    assert place.named(config, None, None, variables).namespace == "addons"
    assert place.named(config, None, "other", variables).namespace == "other"
    assert place.named(config, "two", None, variables).namespace == "default"
    chosen = place.named(config, "two", None, variables | {"ADDON_OPERATOR_NAMESPACE": "named"})
    assert str(chosen) == f"namespace named of context 'two' of {config}"
    assert (chosen.lease, chosen.is_lease_named) == (settings.TABLE["lease_name"].default, False)
    named = place.named(config, None, None, variables | {"LEASE_NAME": "mine"})
    assert (named.lease, named.is_lease_named) == ("mine", True)


def test_what_is_not_there_is_said(config: str) -> None:
    with pytest.raises(api_errors.AccessError, match="three"):
        place.named(config, "three", None, {})
    with pytest.raises(api_errors.AccessError, match="/nowhere/config"):
        place.named("/nowhere/config", None, None, {})


def test_a_kubeconfig_may_be_anywhere(tmp_path: pathlib.Path) -> None:
    nothing = {"HOME": str(tmp_path)}
    assert not place.has_kubeconfig(nothing)
    assert place.has_kubeconfig(nothing | {"KUBECONFIG": "/x"})
    assert place.has_kubeconfig(nothing | {"KUBE_CONFIG": "/x"})
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").touch()
    assert place.has_kubeconfig(nothing)
