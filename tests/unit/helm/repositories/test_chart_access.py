"""Credentials and CAs of repositories of charts."""

import base64
import json
import pathlib

import pytest

from addon_operator.helm.repositories import chart_access
from addon_operator.kernel import errors
from tests.support import rows

PASSWORD = "canary"


def auth(user: str, password: str = PASSWORD) -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}


def access(root: pathlib.Path, auths: object) -> chart_access.Access:
    path = root / "config.json"
    path.write_text(json.dumps({"auths": auths}))
    return chart_access.Access(path)


@rows.each(
    ("repository", "user"),
    [
        pytest.param("https://charts.example.com/stable", "stable", id="longest address"),
        pytest.param("https://charts.example.com/stable-2", "host", id="another path"),
        pytest.param("https://charts.example.com", "host", id="host"),
        pytest.param("https://charts.example.com:8443", "", id="another port"),
        pytest.param("https://example.com", "", id="another host"),
        pytest.param("https://plain.example.com/x", "plain", id="user and password"),
    ],
)
def test_a_repository_gets_the_credentials_whose_address_fits_best(
    tmp_path: pathlib.Path, repository: str, user: str
) -> None:
    auths = {
        "charts.example.com": auth("host"),
        "https://charts.example.com/stable/": auth("stable"),
        "plain.example.com": {"username": "plain", "password": PASSWORD},
    }
    found = access(tmp_path, auths).of(repository)
    assert (found.username, found.password) == (user, PASSWORD if user else "")
    assert PASSWORD not in repr(found)


def test_all_that_must_not_be_shown_is_known(tmp_path: pathlib.Path) -> None:
    auths = {"a": auth("me"), "b": {"identitytoken": "token-1", "auth": "%%%"}}
    assert set(access(tmp_path, auths).secrets()) == {PASSWORD, auth("me")["auth"], "token-1"}
    assert chart_access.Access().secrets() == []


@rows.each("text", ["{canary", "[1]", '{"auths": {"a": 1}}'], ids=["JSON", "list", "entry"])
def test_a_wrong_docker_configuration_is_named_and_not_quoted(tmp_path: pathlib.Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(errors.ConfigurationError, match="not a Docker configuration") as caught:
        chart_access.Access(path).secrets()
    assert "canary" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("setting", ["CHART_CREDENTIALS", "CHART_CA_FILE"])
def test_a_missing_file_is_named_with_its_setting(tmp_path: pathlib.Path, setting: str) -> None:
    missing = tmp_path / "missing"
    made = chart_access.Access(missing, missing)
    with pytest.raises(
        errors.ConfigurationError, match=f"{setting} names {missing}, which cannot be read: No"
    ):
        made.text() if setting == "CHART_CREDENTIALS" else made.bundle({})


def test_a_private_ca_is_trusted_beside_those_of_the_system(tmp_path: pathlib.Path) -> None:
    (tmp_path / "own").write_text("OWN")
    (tmp_path / "system").write_text("SYSTEM")
    environ = {"SSL_CERT_FILE": str(tmp_path / "system")}
    assert chart_access.Access(ca_file=tmp_path / "own").bundle(environ) == "OWN\nSYSTEM"
    assert chart_access.Access().bundle(environ) == "SYSTEM"
    with pytest.raises(errors.ConfigurationError, match="no CA certificates"):
        chart_access.Access().bundle({"SSL_CERT_FILE": str(tmp_path / "missing")})
