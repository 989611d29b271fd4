"""One real control plane per test run, and a namespace per test."""

from addon_operator.devcluster.pytest_plugin import devcluster, devcluster_options, namespace
from tests.integration.helm_site import helm, helm4, helm_site
from tests.integration.operator_site import site

__all__ = ["devcluster", "devcluster_options", "helm", "helm4", "helm_site", "namespace", "site"]
