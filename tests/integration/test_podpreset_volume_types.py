"""Types of volumes that presets may have, with an operator that answers and without one."""

import json
import pathlib
from collections.abc import Iterator
from typing import Final

import pytest

from addon_operator.devcluster import api, handle, layout
from addon_operator.process import commands
from tests.integration import admitting, operator_site
from tests.integration.admitting import Object, Shop

pytestmark = pytest.mark.integration

CRD: Final = pathlib.Path(__file__).parents[2] / "crds" / "podpresets.yaml"
RULE: Final = (
    "spec.volumes[0].hostPath: volumes of this type are not allowed in presets here, only configMap, csi, "
)


def manifest(name: str, **volume: Object) -> Object:
    return {
        "apiVersion": "settings.k8s.io/v1alpha1",
        "kind": "PodPreset",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": admitting.LABELS},
            "volumes": [{"name": "v", **volume}],
            "volumeMounts": [{"name": "v", "mountPath": f"/{name}"}],
        },
    }


@pytest.fixture
def shop(devcluster: handle.DevCluster, tmp_path: pathlib.Path) -> Iterator[Shop]:
    """A shop with a preset that was stored before there was an operator."""
    site = operator_site.Site(devcluster, devcluster.namespace("operator"), tmp_path)
    site.apply(CRD.read_text())
    admitting.wait_established(devcluster, "podpresets.settings.k8s.io")
    namespace = devcluster.namespace("shop")
    stored = manifest("stored", hostPath={"path": "/"})
    site.apply({**stored, "metadata": {**stored["metadata"], "namespace": namespace}})
    with admitting.admitting(site, devcluster) as operator:
        client = api.ApiClient(layout.Layout(devcluster.kubeconfig.parent), devcluster.url)
        yield Shop(namespace, operator, devcluster, client)
    site.close()
    for each in (namespace, site.namespace):
        devcluster.delete_namespace(each)


def test_a_type_that_is_not_allowed_is_refused_at_apply_and_ignored_where_it_is_stored(shop: Shop) -> None:
    shop.apply(manifest("empty", emptyDir={}))
    for dry_run in ((), ("--dry-run=server",)):
        with pytest.raises(commands.CommandError, match="is invalid") as raised:
            shop.cluster.run_kubectl(
                "apply", "-n", shop.namespace, *dry_run, "-f", "-",
                stdin=json.dumps(manifest("refused", hostPath={"path": "/"})),
            )  # fmt: skip
        assert RULE in str(raised.value)
    (event,) = shop.wait_events("InvalidSpec", 1)
    assert event["involvedObject"]["name"] == "stored"
    assert RULE in event["message"]
    conditions = shop.stored_preset("stored")["status"]["conditions"]
    assert [(each["type"], each["status"]) for each in conditions] == [("Valid", "False")]
    spec = shop.pod()["spec"]
    assert [each["name"] for each in spec["volumes"] if "hostPath" in each] == []
    assert [each["mountPath"] for each in spec["containers"][0]["volumeMounts"]][-1] == "/empty"
