"""The operator's own definitions: found in a checkout and in an installed package."""

import pathlib

import pytest
import yaml

from addon_operator.kernel import errors
from addon_operator.kube.objects import own_crds
from tests.fakes import api_server

DEFINITIONS = {
    own_crds.PODPRESETS: "podpresets.settings.k8s.io",
    own_crds.MODULES: "modules.addon-operator.io",
}


@pytest.mark.parametrize(("file", "name"), DEFINITIONS.items(), ids=DEFINITIONS.values())
def test_the_definition_of_a_checkout_is_found(file: str, name: str) -> None:
    assert yaml.load(own_crds.file(file).read_text(), Loader=yaml.CSafeLoader)["metadata"]["name"] == name


def test_the_definition_of_an_installed_package_is_found(tmp_path: pathlib.Path) -> None:
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "modules.yaml").write_text("")
    assert own_crds.file(own_crds.MODULES, tmp_path) == tmp_path / "crds" / "modules.yaml"


def test_a_missing_definition_is_one_sentence(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.ConfigurationError, match=r"modules\.yaml is missing .* install the package"):
        own_crds.file(own_crds.MODULES, tmp_path / "a" / "b")


async def test_a_definition_is_applied_whole() -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/modules.addon-operator.io"
    server = api_server.ApiServer()
    kube = api_server.client_of(server, api_server.Pauses())
    server.on("PATCH", path, {})
    await own_crds.apply(kube, own_crds.MODULES)
    (asked,) = server.asked
    assert asked.query == {"fieldManager": "addon-operator", "force": "true"}
    assert asked.body == yaml.load(own_crds.file(own_crds.MODULES).read_text(), Loader=yaml.CSafeLoader)
