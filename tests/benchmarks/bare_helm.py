"""The charts of the lifecycle benchmark, and what Helm alone needs for them."""

import concurrent.futures
import dataclasses
import pathlib
import resource
import subprocess
import time
from collections.abc import Callable
from typing import Final

from addon_operator.devcluster import handle
from tests.integration import operator_site

AT_A_TIME: Final = 2
"""Calls of the bare loop side by side."""

_UNCHECKED: Final = "--disable-openapi-validation"
_TEMPLATES: Final = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  text: {{ .Values.KEY.text | quote }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {app: {{ .Release.Name }}}
  ports: [{port: 80}]
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Release.Name }}
"""


def name(number: int) -> str:
    """The module's name."""
    return f"module-n{number:03}"


def key(number: int) -> str:
    """Its key in the values."""
    return f"moduleN{number:03}"


def write_chart(path: pathlib.Path, number: int) -> None:
    """A chart with a ConfigMap, a Service and a ServiceAccount."""
    (path / "templates").mkdir(parents=True)
    (path / "Chart.yaml").write_text(f"apiVersion: v2\nname: {name(number)}\nversion: 0.1.0\n")
    (path / "templates" / "all.yaml").write_text(_TEMPLATES.replace("KEY", key(number)))


@dataclasses.dataclass(slots=True)
class Spent:
    """Time of some calls."""

    seconds: float = 0.0
    processor_seconds: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Edit:
    """Seconds of what an edit needs at least."""

    template: float
    upgrade: float
    unchecked_upgrade: float
    """With ``--disable-openapi-validation``, as the operator upgrades when values alone changed."""


class BareHelm:
    """Helm with the flags of the operator, in a namespace of its own."""

    def __init__(self, cluster: handle.DevCluster, site: operator_site.Site, modules: int) -> None:
        self._cluster = cluster
        self._site = site
        self._charts = site.root / "charts"
        for number in range(modules):
            write_chart(self._charts / name(number), number)
            self._values(number).write_text(f"global: {{}}\n{key(number)}: {{text: first}}\n")
        self.installed = Spent()

    def install(self, numbers: range) -> None:
        """Install modules in a bare loop, :data:`AT_A_TIME`; adds to :attr:`installed`."""
        began, processor = time.perf_counter(), _processor_seconds()
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            list(pool.map(lambda number: self._helm("upgrade", number), numbers))
        self.installed.seconds += time.perf_counter() - began
        self.installed.processor_seconds += _processor_seconds() - processor

    def edit(self, number: int) -> Edit:
        """Render and upgrade one module with other values."""
        self._values(number).write_text(f"global: {{}}\n{key(number)}: {{text: edit}}\n")
        return Edit(
            _seconds(lambda: self._helm("template", number)),
            _seconds(lambda: self._helm("upgrade", number)),
            _seconds(lambda: self._helm("upgrade", number, _UNCHECKED)),
        )

    def _values(self, number: int) -> pathlib.Path:
        return self._charts / f"{name(number)}.yaml"

    def _helm(self, verb: str, number: int, *flags: str) -> None:
        """One call, through the same script that counts the operator's calls."""
        module = name(number)
        common = [module, str(self._charts / module), "--values", str(self._values(number)), "--skip-crds"]
        if verb == "upgrade":
            common += ["--install", "--take-ownership", "--reset-values", "--history-max", "10", *flags]
        target = ["--namespace", self._site.namespace, "--kubeconfig", str(self._cluster.kubeconfig)]
        subprocess.run([self._site.helm, verb, *common, *target], check=True, capture_output=True)


def _seconds(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
