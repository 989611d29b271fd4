"""What kwok is told to make of nodes and pods; what comes of it is tested with the local control plane."""

import yaml

from addon_operator.devcluster.controlplane import simulation


def test_nodes_and_pods_have_stages_and_only_the_deletion_writes_no_status() -> None:
    documents = list(yaml.safe_load_all(simulation.stages()))
    assert {one["kind"] for one in documents} == {"Stage"}
    kinds = {one["metadata"]["name"]: one["spec"]["resourceRef"]["kind"] for one in documents}
    assert kinds == {"node-ready": "Node", "pod-ready": "Pod", "pod-of-a-job": "Pod", "pod-deleted": "Pod"}
    without_status = [
        one["metadata"]["name"] for one in documents if "statusTemplate" not in one["spec"]["next"]
    ]
    assert without_status == ["pod-deleted"]
