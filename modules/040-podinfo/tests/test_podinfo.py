"""Tests of a module whose chart is in a registry: what the operator checks before it pulls the chart."""

import pytest

from addon_operator.testing import Module


def test_it_is_off_by_default_and_can_be_switched_on(module: Module) -> None:
    assert not module.enabled()
    assert module.enabled({"podinfoEnabled": True})


def test_keys_of_the_chart_are_passed_on(module: Module) -> None:
    values = module.values(podinfo={"ui": {"color": "#34577c"}})

    assert values["podinfo"]["ui"] == {"color": "#34577c", "message": "Installed by addon-operator"}


def test_too_many_replicas_are_refused(module: Module) -> None:
    with pytest.raises(Exception, match=r"podinfo\.replicaCount"):
        module.values(podinfo={"replicaCount": 100})
