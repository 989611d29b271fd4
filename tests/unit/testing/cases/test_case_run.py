"""What objects have to be, and how it reads if they are not."""

from typing import Any

from addon_operator.testing.cases import case_run
from addon_operator.testing.modules import manifests
from tests.support import rows

WEB = {"kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"replicas": 1}}
THERE = manifests.Manifests(
    [WEB, *({"kind": "Service", "metadata": {"name": f"web-{n}", "labels": {"app": "x"}}} for n in range(6))]
)


@rows.each(
    "expect",
    [
        {"count": {"Service": 6, "Deployment": 1, "Ingress": 0}},
        {"every": [{"metadata": {"labels": {"app": {"$not": None}}}}]},
        {"every": [{"kind": "Service", "metadata": {"name": {"$matches": "^web-"}}}]},
        {"absent": [{"kind": "Ingress"}, {"kind": "Service", "name": "web"}]},
        {"objects": [{"kind": "Deployment", "spec": {"replicas": 1, "paused": None}}]},
    ],
    ids=str,
)
def test_objects_are_as_expected(expect: dict[str, Any]) -> None:
    assert case_run.of_objects(expect, THERE) == []


@rows.each(
    ("expect", "said"),
    [
        ({"count": {"Service": 2}}, "2 of the kind Service are expected, but there are 6: Service web-0, "),
        ({"count": {"Servise": 2}}, "there is none; did you mean Service web-5? There are: Deployment web"),
        ({"every": [{"kind": "Ingress", "spec": {}}]}, "every: there is no Ingress; there are: "),
        ({"every": [{"metadata": {"labels": {"app": "web"}}}]}, "and so do Service web-3, Service web-4"),
        ({"absent": [{"kind": "Deployment"}]}, "expected is none, but there is Deployment web"),
        ({"objects": [{"kind": "Ingress", "name": "x"}]}, "there is no Ingress x; there are: Deployment web"),
    ],
    ids=str,
)
def test_what_is_not_as_expected_is_told_with_what_there_is(expect: dict[str, Any], said: str) -> None:
    assert said in "\n".join(case_run.of_objects(expect, THERE))


def test_nothing_is_as_all_objects_have_to_be_if_there_are_none() -> None:
    found = case_run.of_objects({"every": [{"metadata": {}}]}, manifests.Manifests([]))

    assert found == ["every: there is no object; there are no objects at all"]
