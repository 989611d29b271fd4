"""What the control plane is made of."""

import pathlib

import pytest

from addon_operator.devcluster import locations
from addon_operator.devcluster.binaries import components
from tests.support import rows


def pin_of(component: components.Component) -> components.Pin:
    return components.read_pins(locations.locate({}).pins / component.name, component.module)


@rows.each(
    ("minor", "folder"), [("1.37", "control-plane"), ("1.36", "kubernetes-1.36"), ("1.35", "kubernetes-1.35")]
)
def test_each_version_of_kubernetes_has_its_own_pins(minor: str, folder: str) -> None:
    component = components.kubernetes(minor)
    assert component.name == folder
    assert pin_of(component).minor == minor


def test_kubernetes_says_its_version() -> None:
    component = components.kubernetes("1.35")
    stamps = component.stamps(pin_of(component))
    assert stamps["k8s.io/component-base/version.gitVersion"] == pin_of(component).version
    assert stamps["k8s.io/component-base/version.gitMajor"] == "1"
    assert stamps["k8s.io/component-base/version.gitMinor"] == "35"


def test_helm_templates_for_the_kubernetes_version_of_its_client() -> None:
    pin = pin_of(components.CONTROL_PLANE)
    stamps = components.CONTROL_PLANE.stamps(pin)
    minor = pin.requirements["k8s.io/client-go"].split(".")[1]
    assert stamps["helm.sh/helm/v3/internal/version.version"] == pin.requirements["helm.sh/helm/v3"]
    assert stamps["helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor"] == minor


@rows.each(
    ("component", "binary", "release"),
    [
        pytest.param(
            components.kubernetes(),
            "kubectl",
            components.Release(
                "https://dl.k8s.io/release/v9.8.7/bin/linux/arm64/kubectl",
                "https://dl.k8s.io/release/v9.8.7/bin/linux/arm64/kubectl.sha256",
            ),
            id="kubernetes",
        ),
        pytest.param(
            components.CONTROL_PLANE,
            "etcd",
            components.Release(
                "https://github.com/etcd-io/etcd/releases/download/v9.8.7/etcd-v9.8.7-linux-arm64.tar.gz",
                "https://github.com/etcd-io/etcd/releases/download/v9.8.7/SHA256SUMS",
                "etcd-v9.8.7-linux-arm64/etcd",
            ),
            id="etcd",
        ),
        pytest.param(
            components.HELM4,
            "helm",
            components.Release(
                "https://get.helm.sh/helm-v9.8.7-linux-arm64.tar.gz",
                "https://get.helm.sh/helm-v9.8.7-linux-arm64.tar.gz.sha256sum",
                "linux-arm64/helm",
            ),
            id="helm",
        ),
    ],
)
def test_a_release_has_its_checksum_beside_it(
    component: components.Component, binary: str, release: components.Release
) -> None:
    found = next(one for one in component.binaries if one.name == binary)
    assert found.releases is not None
    assert found.releases("v9.8.7", "arm64", binary) == release


def test_what_go_calls_a_binary_is_known() -> None:
    built_as = {binary.name: binary.built_as for binary in components.CONTROL_PLANE.binaries}
    assert built_as.pop("etcd") == "server"
    assert all(name == built for name, built in built_as.items())


@rows.each(("machine", "expected"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("s390x", "s390x")])
def test_processors_have_the_names_that_go_gives_them(machine: str, expected: str) -> None:
    assert components.architecture(machine) == expected


def test_no_pins_are_left_over_from_a_component_that_is_gone() -> None:
    folders = {path.name for path in pathlib.Path(locations.locate({}).pins).iterdir() if path.is_dir()}
    assert folders == {component.name for component in components.ALL}
