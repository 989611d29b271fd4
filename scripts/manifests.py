"""Writes ``deploy/manifests`` from the chart, and the chart's copies of ``crds/``.

``--check`` writes nothing and ends with code 1 when a file is not what it would write.
"""

import os
import pathlib
import shutil
import sys
from collections.abc import Iterator
from typing import Final

from addon_operator.devcluster import locations, reporters
from addon_operator.devcluster.binaries import binaries, components
from addon_operator.process import commands

CHECKOUT: Final = pathlib.Path(__file__).resolve().parents[1]
CHART: Final = CHECKOUT / "deploy" / "chart" / "addon-operator"
MANIFESTS: Final = CHECKOUT / "deploy" / "manifests"
CRDS: Final = CHECKOUT / "crds"
NAMESPACE: Final = "addon-operator"

_HEADER: Final = (
    "# Rendered from deploy/chart/addon-operator by 'make manifests'; change the chart instead.\n"
)
_NAMESPACE: Final = f"""\
---
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels:
    pod-security.kubernetes.io/enforce: restricted
    pod-security.kubernetes.io/warn: restricted
"""
_MONITORING: Final = ("metrics.serviceMonitor", "metrics.rules", "metrics.dashboard")
_MONITORING_FILES: Final = ("monitor", "rules", "dashboard")


def wanted(helm: pathlib.Path) -> Iterator[tuple[pathlib.Path, str]]:
    """Every generated file and what it should hold."""
    crds = {path.name: path.read_text(encoding="utf-8") for path in sorted(CRDS.glob("*.yaml"))}
    for name, text in crds.items():
        yield CHART / "crds" / name, text
    yield MANIFESTS / "crds.yaml", _HEADER + "".join(f"---\n{text}" for text in crds.values())
    yield MANIFESTS / "addon-operator.yaml", _HEADER + _NAMESPACE + _rendered(helm)
    # Of their own: a cluster without the Prometheus operator does not know these kinds.
    switches = [argument for name in _MONITORING for argument in ("--set", f"{name}.enabled=true")]
    shown = [argument for name in _MONITORING_FILES for argument in ("-s", f"templates/{name}.yaml")]
    yield MANIFESTS / "monitoring.yaml", _HEADER + _rendered(helm, *switches, *shown)


def _rendered(helm: pathlib.Path, *arguments: str) -> str:
    argv = [str(helm), "template", "addon-operator", str(CHART), "--namespace", NAMESPACE, *arguments]
    return commands.run(argv, timeout=60.0).stdout


def helm_binary() -> pathlib.Path:
    """Return the pinned Helm 3, built if there is none yet."""
    store = binaries.workshop(locations.locate(os.environ), os.environ, reporters.PlainReporter(print))
    with store as workshop:
        wanted = binaries.Wanted(components.CONTROL_PLANE, (components.HELM,))
        return workshop.ensure([wanted])[components.HELM]


def main() -> int:
    """Write, or check; the exit code."""
    files = dict(wanted(helm_binary()))
    stale = [path for path, text in files.items() if not path.is_file() or path.read_text("utf-8") != text]
    owned = [*(CHART / "crds").glob("*"), *MANIFESTS.glob("*")]
    surplus = [path for path in owned if path not in files]
    if "--check" in sys.argv[1:]:
        for path in (*stale, *surplus):
            print(f"{path.relative_to(CHECKOUT)} is not in step with the chart: run 'make manifests'")
        return 1 if stale or surplus else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], "utf-8")
    for path in surplus:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
