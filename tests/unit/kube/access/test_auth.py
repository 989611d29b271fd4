"""Which way to the cluster is taken, and what is said when there is none."""

import base64
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from addon_operator.kernel import errors as kernel_errors
from addon_operator.kube import api_errors
from addon_operator.kube.access import auth
from tests.support import rows
from tests.unit.kube import kubeconfigs

IN_CLUSTER = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def refusal(config: pathlib.Path | str | None, context: str | None = None, **environ: str) -> str:
    with pytest.raises(api_errors.AccessError) as refused:
        auth.load_access(config, context, None, environ)
    assert isinstance(refused.value, kernel_errors.ConfigurationError)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_the_setting_goes_before_everything(tmp_path: pathlib.Path) -> None:
    chosen = kubeconfigs.write(tmp_path / "chosen", kubeconfigs.document())
    other = kubeconfigs.write(tmp_path / "other", kubeconfigs.document())
    access = auth.load_access(chosen, None, None, {"KUBECONFIG": str(other), **IN_CLUSTER})
    assert access.kubeconfig == (chosen,)
    assert (access.server, access.context) == (kubeconfigs.SERVER, "one")
    assert access.description == f"context 'one' of {chosen}"


def test_the_variable_goes_before_the_service_account(tmp_path: pathlib.Path) -> None:
    path = kubeconfigs.write(tmp_path / "config", kubeconfigs.document())
    assert auth.load_access(None, None, None, {"KUBECONFIG": str(path), **IN_CLUSTER}).kubeconfig == (path,)


def test_the_service_account_goes_before_the_home_directory(tmp_path: pathlib.Path) -> None:
    kubeconfigs.write(tmp_path / ".kube" / "config", kubeconfigs.document())
    access = auth.load_access(None, None, None, {"HOME": str(tmp_path), **IN_CLUSTER})
    assert access.description == "the pod's service account"
    assert access.server == "https://10.96.0.1:443"
    assert (access.kubeconfig, access.context) == ((), None)


def test_a_context_is_looked_up_in_a_kubeconfig_even_in_a_pod(tmp_path: pathlib.Path) -> None:
    path = kubeconfigs.write(tmp_path / ".kube" / "config", kubeconfigs.document())
    access = auth.load_access(None, "one", None, {"HOME": str(tmp_path), **IN_CLUSTER})
    assert access.kubeconfig == (path,)


def test_a_path_may_start_at_the_home_directory(tmp_path: pathlib.Path) -> None:
    path = kubeconfigs.write(tmp_path / "my" / "config", kubeconfigs.document())
    assert auth.load_access("~/my/config", None, None, {"HOME": str(tmp_path)}).kubeconfig == (path,)


def test_the_server_can_be_set_apart(tmp_path: pathlib.Path) -> None:
    path = kubeconfigs.write(tmp_path / "config", kubeconfigs.document())
    access = auth.load_access(path, None, "https://other:6443", {})
    assert access.server == access.server_override == "https://other:6443"


def test_a_server_alone_is_a_way_without_credentials(tmp_path: pathlib.Path) -> None:
    access = auth.load_access(None, None, "http://127.0.0.1:8001", {"HOME": str(tmp_path)})
    assert access.description == "http://127.0.0.1:8001 without credentials"


def test_an_ipv6_service_address_is_bracketed() -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert auth.load_access(None, None, None, environ).server == "https://[fd00::1]:443"


def test_several_files_are_read_as_one_and_those_that_are_not_there_skipped(
    tmp_path: pathlib.Path,
) -> None:
    first, second = kubeconfigs.document(), kubeconfigs.document()
    del first["current-context"], second["clusters"], second["users"]
    second["contexts"][0]["name"] = second["current-context"] = "two"
    paths = [kubeconfigs.write(tmp_path / "1", first), kubeconfigs.write(tmp_path / "2", second)]
    variable = f"{paths[0]}:{tmp_path / 'gone'}:{paths[1]}"
    access = auth.load_access(None, None, None, {"KUBECONFIG": variable})
    assert (access.kubeconfig, access.context) == (tuple(paths), "two")


def test_without_any_way_the_ways_are_named(tmp_path: pathlib.Path) -> None:
    text = refusal(None, HOME=str(tmp_path))
    assert all(name in text for name in ("KUBE_CONFIG", "KUBECONFIG", "~/.kube/config", "service account"))


def test_a_file_that_is_not_there_is_named(tmp_path: pathlib.Path) -> None:
    text = refusal(tmp_path / "nope")
    assert text == (
        f"the kubeconfig {tmp_path / 'nope'} cannot be read: No such file or directory; name another one "
        "with KUBE_CONFIG or --kubeconfig"
    )


def test_a_directory_is_not_a_kubeconfig(tmp_path: pathlib.Path) -> None:
    assert "Is a directory" in refusal(tmp_path)


def test_a_variable_that_names_nothing_is_reported(tmp_path: pathlib.Path) -> None:
    assert f"KUBECONFIG names {tmp_path / 'nope'}" in refusal(None, KUBECONFIG=str(tmp_path / "nope"))


def test_a_context_that_is_not_there_names_those_that_are(tmp_path: pathlib.Path) -> None:
    path = kubeconfigs.write(tmp_path / "config", kubeconfigs.document())
    assert refusal(path, "two") == (
        f"the context 'two' is not in {path}: it has 'one'; choose one of them with --context, or another "
        "kubeconfig with --kubeconfig or KUBECONFIG"
    )
    path.write_text(path.read_text().replace("current-context", "former-context"))
    assert refusal(path) == (
        f"{path} has no current-context: choose a context with --context or KUBE_CONTEXT; it has 'one'"
    )


def test_a_context_without_any_kubeconfig_is_reported(tmp_path: pathlib.Path) -> None:
    assert "no kubeconfig to find the context 'two' in" in refusal(None, "two", HOME=str(tmp_path))


@rows.each(
    ("text", "complaint"),
    [
        ("a: [", "line 2, column 1"),
        ("a: b: c", "line 1, column 5"),
        ("- a", "does not hold a mapping"),
        ("", "is not a valid kubeconfig: it is empty; name another one with --kubeconfig or KUBECONFIG"),
        ("contexts: 1", "'contexts' is not a list"),
        ("contexts: [{}]", "contexts[0] has no name"),
        ("contexts: [{name: a, context: b}]", "contexts[0].context is not a mapping"),
        ("{}", "has no contexts: name another kubeconfig with --kubeconfig or KUBECONFIG"),
        ("\x00", "is not a valid kubeconfig"),
    ],
)
def test_a_broken_file_is_reported_with_its_place(tmp_path: pathlib.Path, text: str, complaint: str) -> None:
    path = kubeconfigs.write(tmp_path / "config", text)
    refused = refusal(path)
    assert complaint in refused
    assert str(path) in refused


def _without_cluster(config: dict[str, Any]) -> None:
    config["clusters"] = []


def _without_user(config: dict[str, Any]) -> None:
    config["users"] = []


def _without_reference(config: dict[str, Any]) -> None:
    del config["contexts"][0]["context"]["cluster"]


def _server(server: object) -> Callable[[dict[str, Any]], None]:
    def change(config: dict[str, Any]) -> None:
        config["clusters"][0]["cluster"]["server"] = server

    return change


def _user(**user: object) -> Callable[[dict[str, Any]], None]:
    def change(config: dict[str, Any]) -> None:
        config["users"][0]["user"] = user

    return change


def _authority(path: str) -> Callable[[dict[str, Any]], None]:
    def change(config: dict[str, Any]) -> None:
        config["clusters"][0]["cluster"]["certificate-authority"] = path

    return change


@rows.each(
    ("change", "complaint"),
    [
        (_without_cluster, "names the cluster 'c', which is not there"),
        (_without_user, "names the user 'u', which is not there"),
        (_without_reference, "names no cluster"),
        (_server(None), "is not an http or https URL"),
        (_server("10.0.0.1:6443"), "is not an http or https URL"),
        (_server("https://host:port"), "is not an http or https URL"),
        (_authority("gone.crt"), "gone.crt is not a readable file"),
        (_user(tokenFile="gone"), "gone is not a readable file"),
        (_user(**{"client-certificate-data": "YQ=="}), "must be given together"),
        (_user(**{"client-certificate-data": "?", "client-key-data": "YQ=="}), "data is not base64"),
        (_user(exec={"apiVersion": "client.authentication.k8s.io/v1"}), "exec plugin has no command"),
        (_user(**{"auth-provider": {"name": "azure"}}), "auth-provider is not served"),
    ],
)  # fmt: skip
def test_an_entry_that_cannot_be_used_is_reported(
    tmp_path: pathlib.Path, change: Callable[[dict[str, Any]], None], complaint: str
) -> None:
    config = kubeconfigs.document(token="t")
    change(config)
    text = refusal(kubeconfigs.write(tmp_path / "config", config))
    assert complaint in text
    assert "context 'one'" in text


def test_files_beside_the_kubeconfig_are_found(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ca.crt").write_text("x")
    config = kubeconfigs.document()
    config["clusters"][0]["cluster"]["certificate-authority"] = "ca.crt"
    assert auth.load_access(kubeconfigs.write(tmp_path / "config", config), None, None, {}).context == "one"


def test_data_goes_before_a_file_that_is_not_there(tmp_path: pathlib.Path) -> None:
    config = kubeconfigs.document()
    config["clusters"][0]["cluster"] |= {
        "certificate-authority": "gone",
        "certificate-authority-data": base64.b64encode(b"x").decode(),
    }
    assert auth.load_access(kubeconfigs.write(tmp_path / "config", config), None, None, {}).context == "one"
