"""``kubernetesCustomResourceConversion`` in the configuration of hooks."""

from typing import Any

import orjson
import pytest

from addon_operator.hook_contract.configuration import conversion_bindings, hook_config

CRD = "crontabs.stable.example.com"
WHERE = "kubernetesCustomResourceConversion[0]"


def parse(*items: object, **more: object) -> hook_config.HookConfig:
    document = {"configVersion": "v1", "kubernetesCustomResourceConversion": list(items), **more}
    return hook_config.parse(orjson.dumps(document).decode(), hook_config.HookKind.MODULE, "hook x")


def mistakes(*items: object, **more: object) -> list[str]:
    with pytest.raises(hook_config.HookConfigError) as raised:
        parse(*items, **more)
    return list(raised.value.violations)


def converting(*pairs: tuple[str, str], **more: object) -> dict[str, Any]:
    listed = [{"fromVersion": before, "toVersion": after} for before, after in pairs]
    return {"crdName": CRD, "conversions": listed, **more}


def test_all_fields_are_read() -> None:
    kubernetes = [{"name": "pods", "kind": "Pod"}, {"name": "jobs", "kind": "Job", "group": "all"}]
    item = converting(("v1alpha1", "stable.example.com/v1"), name="up", group="all")
    read = parse(item | {"includeSnapshotsFrom": ["pods"]}, kubernetes=kubernetes)
    rule = conversion_bindings.ConversionRule("v1alpha1", "stable.example.com/v1")
    assert read.conversions == (conversion_bindings.ConversionBinding(CRD, (rule,), "up", ("pods", "jobs")),)
    assert rule.full(CRD) == ("stable.example.com/v1alpha1", "stable.example.com/v1")
    assert read.warnings == ()


def test_a_binding_without_name_has_that_of_its_key() -> None:
    assert parse(converting(("v1", "v2"))).conversions[0].name == "kubernetesCustomResourceConversion"


WRONG: list[tuple[Any, str]] = [
    ({}, f"{WHERE}: the key 'crdName' is missing"),
    ({"crdName": CRD}, f"{WHERE}: the key 'conversions' is missing"),
    (converting(), f"{WHERE}.conversions: it needs at least 1 item"),
    (converting(("v1", "v2")) | {"crdName": "crontabs"}, f"{WHERE}.crdName: 'crontabs' is not the name of a"),
    (converting(("", "v2")), f"{WHERE}.conversions[0].fromVersion: '' is not an apiVersion"),
    (converting(("v1", "a/b/c")), f"{WHERE}.conversions[0].toVersion: 'a/b/c' is not an apiVersion"),
    (converting(("v1", "v2"), queue="x"), f"{WHERE}: the key 'queue' is not known here"),
    (converting(("v1", "stable.example.com/v1")), f"{WHERE}.conversions[0]: it converts stable.example"),
    (
        converting(("v1", "v2"), includeSnapshotsFrom=["pods"]),
        f"{WHERE}.includeSnapshotsFrom[0]: no kubernetes binding has the name 'pods'",
    ),
]  # fmt: skip


def test_a_mistake_names_its_field() -> None:
    told = [(item, message, mistakes(item)) for item, message in WRONG]
    assert [row for row in told if not row[2][0].startswith(row[1])] == []


def test_a_pair_of_versions_is_converted_once_in_a_hook() -> None:
    twice = converting(("v1", "v2")), converting(("v2", "v1"), ("stable.example.com/v1", "v2"))
    assert mistakes(*twice) == [
        (
            "kubernetesCustomResourceConversion[1].conversions[1]: kubernetesCustomResourceConversion[0]"
            ".conversions[0] converts stable.example.com/v1 to stable.example.com/v2, too; remove one"
        )
    ]
    assert (
        len(parse(converting(("v1", "v2")), converting(("v1", "v2")) | {"crdName": "a.b"}).conversions) == 2
    )


def test_there_are_no_more_conversions_than_can_be_looked_at() -> None:
    many = converting(*((f"v{number}", f"v{number + 1}") for number in range(1, 502)))
    assert mistakes(many) == [
        "kubernetesCustomResourceConversion: it has 501 conversions, and may have 500; use several hooks"
    ]


def test_a_row_shows_the_definition_and_the_steps() -> None:
    (row,) = hook_config.rows(parse(converting(("v1", "v2"), ("v2", "v1"), name="up")))
    assert hook_config.row_document(row) == {
        "binding": "kubernetesCustomResourceConversion",
        "name": "up",
        "crdName": CRD,
        "conversions": ["v1 to v2", "v2 to v1"],
    }
