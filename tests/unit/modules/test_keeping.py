"""What of a release's objects may be deleted."""

from addon_operator.modules import keeping, manifests
from tests.support import rows

PLAIN = {"metadata": {"name": "x"}}
KEPT = {"metadata": {"name": "x", "annotations": {"helm.sh/resource-policy": "keep"}}}
MARKED = {"metadata": {**KEPT["metadata"], "labels": {"addon-operator.io/kept-from": "web"}}}
DATA, POLICY = keeping.Why.DATA, keeping.Why.POLICY


@rows.each(
    ("kind", "body", "live", "data_goes", "why"),
    [
        ("v1/PersistentVolumeClaim", PLAIN, PLAIN, False, DATA),
        ("v1/PersistentVolume", PLAIN, PLAIN, False, DATA),
        ("v1/Namespace", PLAIN, PLAIN, False, DATA),
        ("apiextensions.k8s.io/v1/CustomResourceDefinition", PLAIN, PLAIN, False, DATA),
        ("apiextensions.k8s.io/v1beta1/CustomResourceDefinition", PLAIN, PLAIN, False, DATA),
        ("example.com/v1/Namespace", PLAIN, PLAIN, False, None),
        ("v1/ConfigMap", PLAIN, PLAIN, False, None),
        ("v1/PersistentVolumeClaim", PLAIN, None, False, None),
        ("v1/PersistentVolumeClaim", PLAIN, {}, False, DATA),
        ("v1/PersistentVolumeClaim", PLAIN, PLAIN, True, None),
        ("v1/PersistentVolumeClaim", PLAIN, MARKED, True, None),
        ("v1/PersistentVolumeClaim", KEPT, PLAIN, True, POLICY),
        ("v1/PersistentVolumeClaim", PLAIN, KEPT, True, POLICY),
        ("v1/ConfigMap", KEPT, PLAIN, False, POLICY),
        ("v1/ConfigMap", PLAIN, KEPT, False, POLICY),
        ("v1/ConfigMap", PLAIN, MARKED, False, None),
    ],
)
def test_what_holds_data_and_what_somebody_keeps_stays(
    kind: str,
    body: manifests.Object,
    live: manifests.Object | None,
    data_goes: bool,
    why: keeping.Why | None,
) -> None:
    api_version, _, name = kind.rpartition("/")
    resource = manifests.ManifestResource(api_version, name, None, "x")
    assert keeping.decide(resource, body, live, data_goes=data_goes) is why


@rows.each(
    ("policy", "claim", "stays"),
    [
        ({}, "data-db-0", True),
        ({}, "data-db-12", True),
        ({}, "data-db-x", False),
        ({}, "data-db-0-copy", False),
        ({}, "my-data-db-0", False),
        ({"whenScaled": "Delete"}, "data-db-0", True),
        ({"whenDeleted": "Delete"}, "data-db-0", False),
    ],
)
def test_claims_of_a_statefulset_stay_unless_it_has_them_deleted(
    policy: dict[str, str],
    claim: str,
    stays: bool,
) -> None:
    spec = {
        "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
        "persistentVolumeClaimRetentionPolicy": policy,
    }
    names = keeping.claim_names({"metadata": {"name": "db"}, "spec": spec})
    assert any(name.fullmatch(claim) for name in names) is stays
    told = keeping.deleted_by_chart({"kind": "StatefulSet", "spec": spec})
    assert bool(told) is ("whenDeleted" in policy)


def test_what_stays_is_told_with_why_and_what_removes_it() -> None:
    definition = keeping.Kept("CustomResourceDefinition", "", "bells.example.com", DATA, 1)
    secret = keeping.Kept("Secret", "web", "password", keeping.Why.NEEDED)
    assert keeping.told([definition, secret]) == (
        "CustomResourceDefinition bells.example.com with 1 object stays: it holds data; "
        "remove it with 'kubectl delete crd bells.example.com'; "
        "Secret web/password stays: a claim that stays may need it; "
        "remove it with 'kubectl delete secret password --namespace web'"
    )


def test_the_chart_s_own_policy_outlives_our_mark() -> None:
    gone = {"metadata": {"labels": {"addon-operator.io/kept-from": None}}}
    assert keeping.unmark(KEPT) == gone
    assert keeping.unmark(PLAIN)["metadata"]["annotations"] == {"helm.sh/resource-policy": None}
