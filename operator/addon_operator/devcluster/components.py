"""What the local control plane is made of: binaries, how they are built, and where they are released."""

import dataclasses
import platform
from collections.abc import Callable, Mapping
from typing import Final

from addon_operator.devcluster import errors, pins

KUBERNETES_MODULE: Final = "k8s.io/kubernetes"
DEFAULT_VERSION: Final = "1.36"
"""Minor version of Kubernetes when none is asked for."""
VERSIONS: Final = (DEFAULT_VERSION, "1.35", "1.34")
"""Minor versions of Kubernetes that can be asked for."""

KUBE_APISERVER: Final = "kube-apiserver"
KUBE_CONTROLLER_MANAGER: Final = "kube-controller-manager"
KUBE_SCHEDULER: Final = "kube-scheduler"
KUBECTL: Final = "kubectl"
ETCD: Final = "etcd"
KWOK: Final = "kwok"
HELM: Final = "helm"

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclasses.dataclass(frozen=True, slots=True)
class Binary:
    """One program of a component."""

    name: str
    """Its file name."""
    package: str
    """The Go package that it is built from."""


@dataclasses.dataclass(frozen=True, slots=True)
class Release:
    """A file that the component's project publishes, and the checksum beside it."""

    url: str
    """The binary itself, or a ``.tar.gz`` with it."""
    checksum_url: str
    """Text with the file's SHA-256, alone or in lines of ``sum  name``."""
    member: str | None = None
    """Path of the binary inside the archive; ``None`` when the file is the binary."""


Stamps = Callable[[pins.Pin], Mapping[str, str]]
"""Gives the Go string variables that tell a binary its version."""
Releases = Callable[[str, str, str], Release]
"""Gives the release file of a version (``v1.36.3``), an architecture (``amd64``) and a binary's name."""


@dataclasses.dataclass(frozen=True, slots=True)
class Component:
    """Binaries that are pinned, built and cached together."""

    name: str
    """Also the name of its folder of pins."""
    module: str
    """The Go module whose version is the component's."""
    binaries: tuple[Binary, ...]
    """In the order in which they are built: the one with most packages first."""
    stamps: Stamps
    releases: Releases | None = None
    """``None`` when its project publishes no checksums."""

    def binary(self, name: str) -> Binary:
        """The binary of that name."""
        return next(binary for binary in self.binaries if binary.name == name)


def architecture(machine: str | None = None) -> str:
    """The name that Go and the release pages have for this machine's processor."""
    name = machine or platform.machine()
    return _ARCHITECTURES.get(name, name)


def kubernetes(minor: str = DEFAULT_VERSION) -> Component:
    """The Kubernetes component of a minor version, as in ``1.35``."""
    folder = "kubernetes" if minor == DEFAULT_VERSION else f"kubernetes-{minor}"
    names = (KUBE_APISERVER, KUBE_CONTROLLER_MANAGER, KUBECTL, KUBE_SCHEDULER)
    binaries = tuple(Binary(name, f"{KUBERNETES_MODULE}/cmd/{name}") for name in names)
    return Component(folder, KUBERNETES_MODULE, binaries, _kubernetes_stamps, _kubernetes_release)


def find(name: str) -> Component:
    """The component of that name.

    Raises :class:`~addon_operator.devcluster.errors.DevClusterError` when there is none.
    """
    for component in ALL:
        if component.name == name:
            return component
    known = ", ".join(component.name for component in ALL)
    raise errors.DevClusterError(f"there is no component {name!r}; there are {known}")


def _kubernetes_stamps(pin: pins.Pin) -> dict[str, str]:
    major, minor = pin.minor.split(".")
    package = "k8s.io/component-base/version"
    return {
        f"{package}.gitVersion": pin.version,
        f"{package}.gitMajor": major,
        f"{package}.gitMinor": minor,
        f"{package}.gitTreeState": "clean",
    }


def _kubernetes_release(version: str, arch: str, name: str) -> Release:
    url = f"https://dl.k8s.io/release/{version}/bin/linux/{arch}/{name}"
    return Release(url, f"{url}.sha256")


def _etcd_release(version: str, arch: str, name: str) -> Release:
    base = f"https://github.com/etcd-io/etcd/releases/download/{version}"
    folder = f"etcd-{version}-linux-{arch}"
    return Release(f"{base}/{folder}.tar.gz", f"{base}/SHA256SUMS", f"{folder}/{name}")


def _helm_release(version: str, arch: str, name: str) -> Release:
    url = f"https://get.helm.sh/helm-{version}-linux-{arch}.tar.gz"
    return Release(url, f"{url}.sha256sum", f"linux-{arch}/{name}")


def _helm3_stamps(pin: pins.Pin) -> dict[str, str]:
    # What `helm template` and `helm lint` take for the cluster's version when they talk to none.
    _, minor, _ = pin.requirements["k8s.io/client-go"].split(".", 2)
    capabilities = {
        f"{pin_package}.k8sVersion{part}": value
        for pin_package in ("helm.sh/helm/v3/pkg/chartutil", "helm.sh/helm/v3/pkg/lint/rules")
        for part, value in (("Major", "1"), ("Minor", minor))
    }
    return {"helm.sh/helm/v3/internal/version.version": pin.version, **capabilities}


def _helm4_stamps(pin: pins.Pin) -> dict[str, str]:
    return {"helm.sh/helm/v4/internal/version.version": pin.version}


def _no_stamps(_: pins.Pin) -> dict[str, str]:
    return {}


def _helm(major: int, stamps: Stamps) -> Component:
    module = f"helm.sh/helm/v{major}"
    return Component(f"helm{major}", module, (Binary(HELM, f"{module}/cmd/helm"),), stamps, _helm_release)


_ETCD_MODULE: Final = "go.etcd.io/etcd/server/v3"
_KWOK_MODULE: Final = "sigs.k8s.io/kwok"

ETCD_COMPONENT: Final = Component(
    "etcd", _ETCD_MODULE, (Binary(ETCD, _ETCD_MODULE),), _no_stamps, _etcd_release
)
HELM3: Final = _helm(3, _helm3_stamps)
HELM4: Final = _helm(4, _helm4_stamps)
KWOK_COMPONENT: Final = Component(
    "kwok", _KWOK_MODULE, (Binary(KWOK, f"{_KWOK_MODULE}/cmd/kwok"),), _no_stamps
)

DEFAULT: Final = (kubernetes(), ETCD_COMPONENT, HELM3, HELM4, KWOK_COMPONENT)
"""What the tests and the demo need."""
ALL: Final = (*DEFAULT, *(kubernetes(minor) for minor in VERSIONS if minor != DEFAULT_VERSION))
