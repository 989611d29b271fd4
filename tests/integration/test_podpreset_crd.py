"""The PodPreset resource on a real API server, with no operator running."""

import json
import pathlib
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pytest

from addon_operator.devcluster import api, layout, pytest_plugin
from addon_operator.podpreset import merge, model
from tests.integration import admitting, cluster_objects
from tests.support import rows
from tests.unit.podpreset import cases

pytestmark = pytest.mark.integration

ROOT: Final = pathlib.Path(__file__).parents[2]
CRD: Final = ROOT / "crds" / "podpresets.yaml"
MANIFEST: Final = {
    "apiVersion": "settings.k8s.io/v1alpha1",
    "kind": "PodPreset",
    "metadata": {"name": "allow-database"},
}
IMMUTABLE: Final = "is immutable: to change a PodPreset, delete it and create it again"

NOT_COMPARED: Final = {
    "the same variable twice",  # conflicts with itself
    "trust bundle",  # the API server drops it unless its feature gate is on
}

Answer: TypeAlias = dict[str, Any]
Create: TypeAlias = Callable[[str, Answer], Answer]


def client_of(cluster: pytest_plugin.DevCluster) -> api.ApiClient:
    return api.ApiClient(layout.Layout(cluster.kubeconfig.parent), cluster.url)


@pytest.fixture(scope="module")
def crd(devcluster: pytest_plugin.DevCluster) -> pytest_plugin.DevCluster:
    cluster_objects.Objects(client_of(devcluster), "default").apply(CRD.read_text("utf-8"))
    admitting.wait_established(devcluster, "podpresets.settings.k8s.io")
    return devcluster


@pytest.fixture(scope="module")
def create(crd: pytest_plugin.DevCluster) -> Create:
    """Has an object of the namespace ``default`` created without storing it, and gives the answer."""
    client = client_of(crd)

    def post(path: str, body: Answer) -> Answer:
        query = "?dryRun=All&fieldValidation=Strict"
        answer: Answer = json.loads(client.request("POST", path + query, body).text)
        return answer

    return post


def create_preset(create: Create, spec: object) -> Answer:
    return create("/apis/settings.k8s.io/v1alpha1/namespaces/default/podpresets", {**MANIFEST, "spec": spec})


@pytest.fixture
def objects(crd: pytest_plugin.DevCluster, namespace: str) -> cluster_objects.Objects:
    return cluster_objects.Objects(client_of(crd), namespace)


def without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@rows.each("spec", cases.ACCEPTED)
def test_a_valid_spec_is_accepted_and_nothing_of_it_is_pruned(create: Create, spec: cases.Spec) -> None:
    answer = create_preset(create, spec)
    assert answer.get("spec") == without_nulls(spec), answer.get("message")


@rows.each("case", cases.REFUSED)
def test_an_invalid_spec_is_refused_with_place_and_reason(create: Create, case: cases.Refused) -> None:
    answer = create_preset(create, case.spec)
    assert answer["kind"] == "Status", "the API server accepted it"
    assert case.path in answer["message"]
    assert case.says in answer["message"]


def test_a_spec_cannot_be_changed(objects: cluster_objects.Objects) -> None:
    objects.apply({**MANIFEST, "spec": cases.DESIGN_EXAMPLE})
    with pytest.raises(AssertionError, match=IMMUTABLE):
        objects.apply({**MANIFEST, "spec": {**cases.DESIGN_EXAMPLE, "env": cases.ENV}})


@pytest.mark.parametrize("value", [6380, "6379", True])
def test_not_even_the_type_of_a_value_can_be_changed(objects: cluster_objects.Objects, value: object) -> None:
    objects.apply({**MANIFEST, "spec": cases.with_env(value=6379)})
    with pytest.raises(AssertionError, match=IMMUTABLE):
        objects.apply({**MANIFEST, "spec": cases.with_env(value=value)})


def test_the_same_manifest_applies_again_and_metadata_may_change(
    crd: pytest_plugin.DevCluster, namespace: str
) -> None:
    manifest = json.dumps({**MANIFEST, "spec": cases.DESIGN_EXAMPLE})
    for said in ("created", "unchanged"):
        applied = crd.run_kubectl("apply", "-n", namespace, "-f", "-", stdin=manifest)
        assert applied.stdout.strip().endswith(said)
    crd.run_kubectl("label", "-n", namespace, "podpreset", "allow-database", "team=a")


def test_an_unknown_field_is_refused_like_in_a_pod(create: Create) -> None:
    answer = create_preset(create, cases.with_volume(secretName="config-details"))
    assert 'unknown field "spec.volumes[0].secretName"' in answer["message"]


def test_the_status_is_written_apart_from_the_spec_and_shown(
    crd: pytest_plugin.DevCluster, objects: cluster_objects.Objects
) -> None:
    objects.apply({**MANIFEST, "spec": cases.DESIGN_EXAMPLE})
    condition = {
        "type": "Valid",
        "status": "True",
        "reason": "Accepted",
        "message": "",
        "lastTransitionTime": "2024-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
    status = {"observedGeneration": 1, "injected": 5, "conflicts": 2, "conditions": [condition]}
    patch = {"status": status, "spec": {"env": []}}
    stored = objects.patch("podpreset", "allow-database", patch, subresource="status")
    assert stored["status"] == status
    assert stored["spec"] == cases.DESIGN_EXAMPLE
    header, row = crd.run_kubectl("get", "-n", objects.namespace, "pp", "allow-database").stdout.splitlines()
    assert header.split() == ["NAME", "SELECTOR", "INJECTED", "CONFLICTS", "AGE"]
    assert row.split()[:4] == ["allow-database", '{"matchLabels":{"role":"frontend"}}', "5", "2"]


def test_the_definition_is_accepted_without_warnings(crd: pytest_plugin.DevCluster) -> None:
    applied = crd.run_kubectl(
        "apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", str(CRD)
    )
    assert applied.stderr == ""


@rows.each("spec", [case for case in cases.ACCEPTED if case.id not in NOT_COMPARED])
def test_what_a_preset_adds_is_equal_to_itself_after_the_api_servers_defaults(
    create: Create, spec: cases.Spec
) -> None:
    preset = model.parse({**MANIFEST, "spec": spec})
    assert isinstance(preset, model.Preset)
    admitted = create("/api/v1/namespaces/default/pods", pod_of(preset))
    assert admitted["kind"] == "Pod", admitted.get("message")
    result = merge.inject(admitted, [preset], lambda source: None)
    assert isinstance(result, merge.Injection), result
    assert [operation["path"] for operation in result.patch] == ["/metadata/annotations"]


def pod_of(preset: model.Preset) -> Answer:
    """A pod that has all that a preset adds."""
    container = {
        "name": "c",
        "image": "i",
        "env": [one.entry for one in preset.env],
        "envFrom": [one.entry for one in preset.env_from],
        "volumeMounts": [one.entry for one in preset.volume_mounts],
    }
    volumes = [one.entry for one in preset.volumes]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [container], "volumes": volumes},
    }


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (20, '["nope"] names a volume that this preset does not have'),
        (128, "a volumeMount names a volume that this preset does not have"),
    ],
)
def test_a_volume_that_the_preset_lacks_is_named_unless_there_are_very_many(
    create: Create, number: int, said: str
) -> None:
    volumes: list[Answer] = [{"name": f"v{index}", "emptyDir": {}} for index in range(number)]
    mounts = [{"name": one["name"], "mountPath": f"/{one['name']}"} for one in volumes]
    spec: Answer = {"selector": {"matchLabels": {"a": "b"}}, "volumes": volumes, "volumeMounts": mounts}
    assert "status" not in create_preset(create, spec)
    spec["volumeMounts"][0]["name"] = "nope"
    causes = [cause["message"] for cause in create_preset(create, spec)["details"]["causes"]]
    assert any(said in cause for cause in causes), causes
