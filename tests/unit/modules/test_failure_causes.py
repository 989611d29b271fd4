"""What a failed run waits for, by the texts of the API server and of Helm."""

import pytest

from addon_operator.modules import failure_causes
from tests.support import rows
from tests.unit import costs

WEBHOOK = 'failed calling webhook "x.y.z": failed to call webhook: Post '
CASES = {
    "a webhook without endpoints": (
        WEBHOOK
        + '"https://ingress-admission.ingress.svc:443/networking?timeout=10s": no endpoints available',
        "endpoints of Service ingress/ingress-admission",
    ),
    "a webhook that nobody serves": (
        WEBHOOK
        + '"https://cert.cert-manager.svc/mutate": dial tcp 10.0.0.1:443: connect: connection refused',
        "endpoints of Service cert-manager/cert",
    ),
    "a namespace that ends": (
        "unable to create new content in namespace shop because it is being terminated",
        "the end of namespace shop",
    ),
    "a missing namespace": ('namespaces "shop" not found', "namespace shop"),
    "a quota": (
        'pods "web" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=3, limited: pods=3',
        "room in ResourceQuota addons/compute",
    ),
    "a quota of a namespace that is named": (
        'refuses to create services in namespace "far": services "web" is forbidden: exceeded quota: few, ',
        "room in ResourceQuota far/few",
    ),
    "a missing kind": (
        'no matches for kind "ServiceMonitor" in version "monitoring.coreos.com/v1"',
        "the kind ServiceMonitor",
    ),
    "a registry that is away": (
        "cannot pull chart up 1.2.3 of oci://reg.example.com:5000/charts: 10.0.0.1:5000 refuses connections",
        "the repository at reg.example.com:5000",
    ),
    "a missing Secret": ('secrets "db" not found', "Secret addons/db"),
    "a missing ConfigMap": ('configmap "settings" not found', "ConfigMap addons/settings"),
    "nothing of the cluster": ("execution error at (web/templates/x.yaml:1:2): no host", ""),
}


@rows.each("case", CASES)
def test_what_a_run_waits_for_is_what_its_error_names(case: str) -> None:
    text, waits_for = CASES[case]
    assert ", ".join(map(str, failure_causes.causes(text, "addons"))) == waits_for


@rows.each("case", CASES)
def test_what_a_template_says_with_fail_makes_nobody_wait_or_connect(case: str) -> None:
    text = f"execution error at (web/templates/x.yaml:1:2): {CASES[case][0]}"
    assert failure_causes.causes(text, "addons") == ()
    first = f"{CASES[case][0]}, says the chart at web/templates/x.yaml:1:2 (helm upgrade)"
    assert failure_causes.causes(first, "addons") == ()


def test_a_quota_tells_what_it_allowed() -> None:
    text = "exceeded quota: few, requested: cpu=1,pods=1, used: cpu=3,pods=2, limited: cpu=3500m,pods=2"
    (cause,) = failure_causes.causes(f"{text}\nand more", "x")
    assert cause.limits == (("cpu", "3500m"), ("pods", "2"))


def test_each_cause_counts_once_and_some_at_most() -> None:
    assert len(failure_causes.causes('secrets "a" not found; ' * 3, "x")) == 1
    many = "".join(f'secrets "a{number}" not found; ' for number in range(9))
    assert len(failure_causes.causes(many, "x")) == failure_causes.MOST_CAUSES


@pytest.mark.slow
@rows.each(
    "piece",
    [
        "failed calling webhook https://", "exceeded quota: x, requested: a=1, used: ",
        'in namespace "x": a "b" is forbidden: ',
        "failed calling webhook https://" + "a." * 130, "failed calling webhook " + "https://a.a.a" * 20,
        'in namespace "a": ' + '"' * 90, "exceeded quota: " + "a." * 100, 'secret "' + "a." * 120,
        "cannot pull chart a a of https://a/", "cannot pull chart " + "a" * 300 + " ",
        "in namespace " + "a" * 250, 'namespaces "' + "a." * 120,
    ],
)  # fmt: skip
def test_a_long_error_costs_no_more_than_its_size(piece: str) -> None:
    def text(size: int) -> str:
        return piece * (size // len(piece))

    assert costs.is_linear(text, lambda given: failure_causes.causes(given, "x"), 8000)
