"""What the upgrade guide tells to do: a plan in the cluster, and a rename that keeps the objects."""

import pathlib
import re
from typing import Any

import pytest

from addon_operator.devcluster import handle
from addon_operator.process import commands
from tests.integration import charts, operator_process, operator_site

pytestmark = pytest.mark.integration

_TEMPLATE = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: data\n"
_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "how-to" / "upgrade.md"


def uid(site: operator_site.Site) -> str:
    return str(site.get("configmap", "data")["metadata"]["uid"])


@pytest.mark.slow
def test_a_renamed_module_keeps_its_objects(site: operator_site.Site) -> None:
    module = site.module("010-old-name", values="oldNameEnabled: true\n")
    (module / "templates").mkdir()
    (module / "templates" / "data.yaml").write_text(_TEMPLATE)
    site.start().wait_ready().stop()
    before = uid(site)

    module.rename(site.modules / "010-new-name")
    (site.modules / "010-new-name" / "values.yaml").write_text("newNameEnabled: true\n")
    assert "HELM_IGNORE_RELEASE: old-name" in GUIDE.read_text("utf-8")
    site.start(HELM_IGNORE_RELEASE="old-name").wait_ready().stop()
    assert site.revisions() == {"old-name": 1, "new-name": 1}

    site.start().wait_ready().stop()
    assert site.revisions() == {"new-name": 1}
    assert uid(site) == before


def planning_pod(cluster: handle.DevCluster, site: operator_site.Site) -> dict[str, Any]:
    """The pod that the guide's Job makes, as the API server stored it."""
    (block,) = re.findall(r"^```bash\n(.*?)^```$", GUIDE.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    environment = {
        "HOME": str(site.root),
        "PATH": f"{cluster.kubectl.parent}:/usr/local/bin:/usr/bin:/bin",
        "KUBECONFIG": str(cluster.kubeconfig),
    }
    typed = block.replace("-n addons", f"-n {site.namespace}")
    commands.run(["bash", "-euo", "pipefail", "-c", typed], cwd=site.root, timeout=30, env=environment)
    selector = "batch.kubernetes.io/job-name=plan"
    (pod,) = operator_process.wait_until(lambda: site.listed("pod", labelSelector=selector), "its pod")
    found: dict[str, Any] = pod["spec"]
    return found


@pytest.mark.slow
def test_the_job_of_the_guide_plans_as_the_operator_would(
    devcluster: handle.DevCluster, site: operator_site.Site
) -> None:
    module = site.module("010-hello", values="helloEnabled: true\n")
    site.chart(module, {"text": "hello"})
    values = {"rbac.modules": "namespace-admin", "settings": {"HELM_PURGE": "off"}}
    site.label("namespace", site.namespace, {"pod-security.kubernetes.io/enforce": "restricted"})
    with charts.installed(devcluster, site, values) as installation:
        deployed = site.get("deployment", charts.RELEASE)
        pod = planning_pod(devcluster, site)
        (container,) = pod["containers"]
        (operator,) = deployed["spec"]["template"]["spec"]["containers"]
        assert container["env"] == operator["env"]
        assert container["image"] == "registry.example/my-addons:2.0.0"
        assert _TOKEN in {mount["mountPath"] for mount in container["volumeMounts"]}
        assert pod["serviceAccountName"] == charts.RELEASE
        assert container["args"] == ["plan"]
        planned = site.command(*container["args"], **installation.environment(operator_process.free_port()))
    assert planned.returncode == 3, planned.stderr
    assert "Releases: 1 to install." in planned.stdout
