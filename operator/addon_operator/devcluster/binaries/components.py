"""What the local control plane is made of: binaries, how they are built, and where they are released."""

import hashlib
import pathlib
import platform
import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from addon_operator.devcluster import errors

_REQUIREMENT: Final = re.compile(
    r"^[ \t]*(?:require[ \t]+)?(?P<module>[^\s()]+)[ \t]+(?P<version>v\d\S*)[ \t]*(?://.*)?$", re.MULTILINE
)
_GO: Final = re.compile(r"^go (?P<major>\d+)\.(?P<minor>\d+)", re.MULTILINE)


class Pin(msgspec.Struct, frozen=True):
    """What a component's folder says."""

    folder: pathlib.Path
    """Where its ``go.mod`` and ``go.sum`` are."""
    version: str
    """Version of the component's own module, as in ``v1.37.1``."""
    go: tuple[int, int]
    """The oldest Go that can build it, major and minor."""
    requirements: Mapping[str, str]
    """Version of every module it is built from."""
    digest: str
    """Changes whenever a pin changes: hexadecimal SHA-256 of both files."""

    @property
    def minor(self) -> str:
        """Major and minor version, as in ``1.37``."""
        return ".".join(self.version.removeprefix("v").split(".")[:2])


def read_pins(folder: pathlib.Path, module: str) -> Pin:
    """Return the pins in a folder whose component is the Go module ``module``.

    Raises :class:`.PinsError` when a file is missing or does not pin it.
    """
    go_mod, go_sum = (_content(folder / name) for name in ("go.mod", "go.sum"))
    text = go_mod.decode("utf-8", errors="replace")
    requirements = {match["module"]: match["version"] for match in _REQUIREMENT.finditer(text)}
    go = _GO.search(text)
    if module not in requirements or go is None:
        raise errors.PinsError(
            f"{folder / 'go.mod'} does not pin {module} and a Go version; restore the file"
        )
    digest = hashlib.sha256(go_mod + b"\0" + go_sum).hexdigest()
    return Pin(folder, requirements[module], (int(go["major"]), int(go["minor"])), requirements, digest)


def _content(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise errors.PinsError(f"the pins in {path} cannot be read: {error.strerror}") from error


KUBERNETES_MODULE: Final = "k8s.io/kubernetes"
DEFAULT_VERSION: Final = "1.37"
"""Minor version of Kubernetes when none is asked for."""
VERSIONS: Final = (DEFAULT_VERSION, "1.36", "1.35")
"""Minor versions of Kubernetes that can be asked for."""

KUBE_APISERVER: Final = "kube-apiserver"
KUBE_CONTROLLER_MANAGER: Final = "kube-controller-manager"
KUBE_SCHEDULER: Final = "kube-scheduler"
KUBECTL: Final = "kubectl"
ETCD: Final = "etcd"
KWOK: Final = "kwok"
HELM: Final = "helm"
REGISTRY: Final = "registry"

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_MAJOR: Final = re.compile(r"v\d+")


class Release(msgspec.Struct, frozen=True):
    """A file that a binary's project publishes, and the checksum beside it."""

    url: str
    """The binary itself, or a ``.tar.gz`` with it."""
    checksum_url: str
    """Text with the file's SHA-256, alone or in lines of ``sum  name``."""
    member: str | None = None
    """Path of the binary inside the archive; ``None`` when the file is the binary."""


Stamps = Callable[[Pin], Mapping[str, str]]
"""Gives the Go string variables that hold the version of a binary."""
Releases = Callable[[str, str, str], Release]
"""Gives the release file of a version (``v1.37.1``), an architecture (``amd64``) and a binary's name."""


class Binary(msgspec.Struct, frozen=True):
    """One program of a component."""

    name: str
    """Its file name."""
    package: str
    """The Go package that it is built from."""
    module: str
    """The Go module of that package; its version is the binary's."""
    releases: Releases | None = None
    """``None`` when its project publishes no checksums."""

    @property
    def built_as(self) -> str:
        """The file name that ``go build`` gives it: the last part of the path that is not a major version."""
        return next(part for part in reversed(self.package.split("/")) if not _MAJOR.fullmatch(part))


class Component(msgspec.Struct, frozen=True):
    """Binaries that are pinned, built and cached together."""

    name: str
    """Also the name of its folder of pins."""
    module: str
    """The Go module whose version is the component's."""
    binaries: tuple[Binary, ...]
    stamps: Stamps


def architecture(machine: str | None = None) -> str:
    """Return the name that Go and the release pages have for this machine's processor."""
    name = machine or platform.machine()
    return _ARCHITECTURES.get(name, name)


def kubernetes(minor: str = DEFAULT_VERSION) -> Component:
    """Return the component with the Kubernetes of a minor version, as in ``1.36``."""
    if minor == DEFAULT_VERSION:
        return CONTROL_PLANE
    return Component(f"kubernetes-{minor}", KUBERNETES_MODULE, _KUBERNETES_BINARIES, _kubernetes_stamps)


def _kubernetes_stamps(pin: Pin) -> dict[str, str]:
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


def _helm3_stamps(pin: Pin) -> dict[str, str]:
    # What `helm template` and `helm lint` take for the cluster's version when they talk to none.
    _, minor, _ = pin.requirements["k8s.io/client-go"].split(".", 2)
    capabilities = {
        f"{pin_package}.k8sVersion{part}": value
        for pin_package in ("helm.sh/helm/v3/pkg/chartutil", "helm.sh/helm/v3/pkg/lint/rules")
        for part, value in (("Major", "1"), ("Minor", minor))
    }
    version = pin.requirements["helm.sh/helm/v3"]
    return {"helm.sh/helm/v3/internal/version.version": version, **capabilities}


def _helm4_stamps(pin: Pin) -> dict[str, str]:
    return {"helm.sh/helm/v4/internal/version.version": pin.version}


def _control_plane_stamps(pin: Pin) -> dict[str, str]:
    return {**_kubernetes_stamps(pin), **_helm3_stamps(pin)}


def _helm(major: int) -> Binary:
    module = f"helm.sh/helm/v{major}"
    return Binary(HELM, f"{module}/cmd/helm", module, _helm_release)


_ETCD_MODULE: Final = "go.etcd.io/etcd/server/v3"
_KWOK_MODULE: Final = "sigs.k8s.io/kwok"
_KUBERNETES_BINARIES: Final = tuple(
    Binary(name, f"{KUBERNETES_MODULE}/cmd/{name}", KUBERNETES_MODULE, _kubernetes_release)
    for name in (KUBE_APISERVER, KUBE_CONTROLLER_MANAGER, KUBECTL, KUBE_SCHEDULER)
)

CONTROL_PLANE: Final = Component(
    "control-plane",
    KUBERNETES_MODULE,
    (
        *_KUBERNETES_BINARIES,
        Binary(ETCD, _ETCD_MODULE, _ETCD_MODULE, _etcd_release),
        _helm(3),
        Binary(KWOK, f"{_KWOK_MODULE}/cmd/kwok", _KWOK_MODULE),
    ),
    _control_plane_stamps,
)
"""Everything that a cluster of the default version runs: built together, it shares what it has in common."""
HELM4: Final = Component("helm4", "helm.sh/helm/v4", (_helm(4),), _helm4_stamps)
_REGISTRY_MODULE: Final = "github.com/google/go-containerregistry"
CHART_REGISTRY: Final = Component(
    "registry",
    _REGISTRY_MODULE,
    (Binary(REGISTRY, f"{_REGISTRY_MODULE}/cmd/registry", _REGISTRY_MODULE),),
    lambda _: {},
)
"""An OCI registry in memory: tests push charts to it."""

DEFAULT: Final = (CONTROL_PLANE, HELM4, CHART_REGISTRY)
"""What the tests need; the demo does without Helm 4 and the registry."""
ALL: Final = (*DEFAULT, *(kubernetes(minor) for minor in VERSIONS if minor != DEFAULT_VERSION))
