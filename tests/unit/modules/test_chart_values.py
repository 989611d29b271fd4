"""What a chart gets of the values, and where it finds them."""

import pathlib
from typing import Any

from addon_operator.kernel.names import ModuleName
from addon_operator.modules import chart_values, model
from addon_operator.modules.module_config import ValuesScope
from tests.support import rows

VALUES: dict[str, Any] = {
    "global": {"domain": "example.com", "registry": {"host": "r", "port": 1}, "enabledModules": []},
    "someDb": {"replicas": 2, "auth": None},
}


def module(values: ValuesScope, global_keys: tuple[str, ...] | None = ()) -> model.Module:
    stock = model.StockChart(pathlib.Path("some-db/chart"), values, global_keys)
    return model.Module(ModuleName("some-db"), 1, pathlib.Path("some-db"), has_chart=True, stock=stock)


def test_a_module_that_is_a_chart_itself_reads_global_and_its_section() -> None:
    own = model.Module(ModuleName("some-db"), 1, pathlib.Path("some-db"), has_chart=True)
    assert chart_values.arranged(own, VALUES) is VALUES


def test_a_chart_can_read_the_section_under_the_key_of_its_module() -> None:
    assert chart_values.arranged(module(ValuesScope.SECTION), VALUES) is VALUES


def test_a_stock_chart_reads_the_section_at_the_root_and_nothing_of_the_shared_global() -> None:
    assert chart_values.arranged(module(ValuesScope.ROOT), VALUES) == {"replicas": 2, "auth": None}


@rows.each(
    ("keys", "expected"),
    [
        (("domain",), {"domain": "example.com"}),
        (("domain", "absent"), {"domain": "example.com"}),
        (None, VALUES["global"]),
    ],
    ids=["one key", "a key that is absent", "all"],
)
def test_a_stock_chart_gets_the_keys_of_global_that_it_names(
    keys: tuple[str, ...] | None, expected: object
) -> None:
    found = chart_values.arranged(module(ValuesScope.ROOT, keys), VALUES)
    assert found["global"] == expected


def test_a_global_in_the_section_lies_over_the_shared_one() -> None:
    values = {**VALUES, "someDb": {"global": {"registry": {"host": "own"}, "imagePullSecrets": ["x"]}}}
    found = chart_values.arranged(module(ValuesScope.ROOT, ("registry",)), values)
    assert found == {"global": {"registry": {"host": "own", "port": 1}, "imagePullSecrets": ["x"]}}


def test_a_module_without_values_gives_an_empty_mapping() -> None:
    assert chart_values.arranged(module(ValuesScope.ROOT), {"global": {}}) == {}
