"""One real control plane per test run, and a namespace per test."""

import os

import pytest

from addon_operator.devcluster import handle
from addon_operator.devcluster.pytest_plugin import devcluster, devcluster_options
from tests.integration.helm_site import helm, helm4, helm_site
from tests.integration.operator_site import site
from tests.integration.pulling import archive, gate, registry

__all__ = [
    "archive",
    "devcluster",
    "devcluster_options",
    "gate",
    "helm",
    "helm4",
    "helm_site",
    "namespace",
    "registry",
    "site",
]

# Programs in Go that end soon need not collect garbage: that is a quarter of the time of Helm and kubectl.
os.environ.setdefault("GOGC", "off")


@pytest.fixture
def namespace(devcluster: handle.DevCluster) -> str:
    """A fresh namespace that goes with the control plane.

    The fixture of the plugin has it deleted, which takes the control plane a quarter of a second of processor
    time: as much as many a test.
    """
    return devcluster.namespace()
