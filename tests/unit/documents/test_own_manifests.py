"""The manifests that come with the operator."""

import pathlib

import pytest

from addon_operator.documents import own_manifests
from addon_operator.kernel import errors
from tests.support import rows

DEFINITIONS = {
    own_manifests.PODPRESETS: "podpresets.settings.k8s.io",
    own_manifests.MODULES: "modules.addon-operator.io",
}


@rows.each(("file", "name"), DEFINITIONS.items(), ids=DEFINITIONS.values())
def test_the_definition_of_a_checkout_is_found(file: str, name: str) -> None:
    assert own_manifests.load(file)["metadata"]["name"] == name


def test_the_definition_of_an_installed_package_is_found(tmp_path: pathlib.Path) -> None:
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "modules.yaml").write_text("")
    assert own_manifests.path_of(own_manifests.MODULES, tmp_path) == tmp_path / "crds" / "modules.yaml"


def test_a_missing_definition_is_one_sentence(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.ConfigurationError, match=r"modules\.yaml is missing .* install the package"):
        own_manifests.path_of(own_manifests.MODULES, tmp_path / "a" / "b")
