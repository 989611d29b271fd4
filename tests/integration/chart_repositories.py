"""Repositories of charts on loopback: an OCI registry, and an ``index.yaml`` that is served over HTTP."""

import contextlib
import dataclasses
import os
import pathlib
import socket
import subprocess
from collections.abc import Iterator, Mapping
from typing import Final

from addon_operator.devcluster import locations, reporters
from addon_operator.devcluster.binaries import binaries, components
from tests.integration import operator_process

USER: Final = "reader"
PASSWORD: Final = "canary-of-a-password"
_SEEN: Final = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-seen}
data:
  values: {{ toJson .Values | quote }}
  version: {{ .Chart.Version | quote }}
"""


def registry_binary() -> pathlib.Path:
    """The program of the registry, built once per machine."""
    with binaries.workshop(locations.locate(os.environ), os.environ, reporters.Reporter()) as store:
        return store.ensure([binaries.Wanted(components.CHART_REGISTRY)])[components.REGISTRY]


def package(
    root: pathlib.Path, helm: pathlib.Path, version: str = "1.2.3", more: Mapping[str, str] | None = None
) -> pathlib.Path:
    """The archive of a chart that shows the values that it gets; ``more`` are further files."""
    chart = root / version / "upstream"
    files = {
        "Chart.yaml": f"apiVersion: v2\nname: upstream\nversion: {version}\n",
        "values.yaml": "replicas: 1\n",
        "templates/seen.yaml": _SEEN,
        **(more or {}),
    }
    for name, text in files.items():
        (chart / name).parent.mkdir(parents=True, exist_ok=True)
        (chart / name).write_text(text)
    _helm(helm, root, "package", str(chart), "--destination", str(root))
    return root / f"upstream-{version}.tgz"


def _helm(helm: pathlib.Path, home: pathlib.Path, *arguments: str) -> str:
    """Run helm with nothing of this user's; what it said."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
    done = subprocess.run([helm, *arguments], env=environ, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


@dataclasses.dataclass(slots=True)
class Registry:
    """A registry in memory, which can be stopped."""

    helm: pathlib.Path
    home: pathlib.Path
    port: int = dataclasses.field(default_factory=operator_process.free_port)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def address(self) -> str:
        return f"oci://localhost:{self.port}/charts"

    def start(self) -> None:
        self.process = subprocess.Popen(
            [registry_binary(), "-port", str(self.port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        operator_process.wait_until(self._answers, "the registry answers")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def push(self, archive: pathlib.Path) -> str:
        """The digest of the manifest."""
        said = _helm(self.helm, self.home, "push", str(archive), self.address, "--plain-http")
        return said.partition("Digest: ")[2].split()[0]

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("localhost", self.port), timeout=1):
            return True
        return False


@contextlib.contextmanager
def registry(helm: pathlib.Path, home: pathlib.Path) -> Iterator[Registry]:
    """A registry that runs."""
    made = Registry(helm, home)
    made.start()
    try:
        yield made
    finally:
        made.stop()
