"""Selectors as the API server reads them."""

import pytest

from addon_operator.hook_contract.configuration import bindings
from addon_operator.hook_contract.configuration.bindings import LabelOperator, LabelRequirement
from tests.support import rows


@rows.each(
    ("selector", "query"),
    [
        pytest.param(bindings.LabelSelector(), "", id="everything"),
        pytest.param(bindings.LabelSelector((("a", "1"), ("b.c/d", ""))), "a=1,b.c/d=", id="labels"),
        pytest.param(
            bindings.LabelSelector(
                (("a", "1"),),
                (
                    LabelRequirement("b", LabelOperator.IN, ("x", "y")),
                    LabelRequirement("c", LabelOperator.NOT_IN, ("z",)),
                    LabelRequirement("d", LabelOperator.EXISTS),
                    LabelRequirement("e", LabelOperator.DOES_NOT_EXIST),
                ),
            ),
            "a=1,b in (x,y),c notin (z),d,!e",
            id="labels and expressions",
        ),
    ],
)
def test_a_label_selector_as_query(selector: bindings.LabelSelector, query: str) -> None:
    assert selector.to_query() == query


@rows.each(
    ("requirement", "query"),
    [
        (bindings.FieldRequirement("metadata.name", "x"), "metadata.name=x"),
        (bindings.FieldRequirement("status.phase", "Running", is_equal=False), "status.phase!=Running"),
        (bindings.FieldRequirement("a", "x,y=z\\"), "a=x\\,y\\=z\\\\"),
    ],
)
def test_a_field_requirement_as_query(requirement: bindings.FieldRequirement, query: str) -> None:
    assert requirement.to_query() == query
