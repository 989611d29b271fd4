"""The example of docs/explanation/values.md is what really happens."""

import json
import pathlib
import re
from typing import Any

import pytest
import yaml

from addon_operator.documents import yaml_loader
from addon_operator.kernel import names
from addon_operator.values import checks, config_map_reader, sources, store
from addon_operator.values.patches import patches
from addon_operator.values.schema import schemas
from tests.support import rows

PAGE = pathlib.Path(__file__).parents[4] / "docs" / "explanation" / "values.md"
BLOCKS = re.findall(r"^```(?:yaml|json)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
SHOP = names.ModuleName("web-shop")


@pytest.fixture
def values() -> store.ValuesStore:
    common, own, config_schema, values_schema, config_map, patch = BLOCKS[:6]
    common_file = sources.parse_common_values(common, "modules/values.yaml")
    module = store.ModuleValues(
        SHOP,
        common_file,
        sources.parse_module_values(SHOP, own, "modules/001-web-shop/values.yaml"),
        schemas.load_schemas((config_schema, "config-values.yaml"), (values_schema, "values.yaml")),
    )
    made = store.ValuesStore([module], [common_file])
    config = config_map_reader.ConfigMapReader([SHOP]).read(yaml.safe_load(config_map)).usable()
    assert checks.Checks(made).config_violations(config) == []
    made.set_config(config)
    made.apply_values_patch(SHOP, patches.parse_patch(patch, "patch"))
    return made


def test_the_module_is_enabled(values: store.ValuesStore) -> None:
    assert values.flag(SHOP).reason == "enabled by webShopEnabled in modules/values.yaml"


def test_hooks_find_the_values_of_the_page(values: store.ValuesStore) -> None:
    assert values.values(SHOP, [SHOP]) == json.loads(BLOCKS[6])


def test_hooks_find_the_config_values_of_the_page(values: store.ValuesStore) -> None:
    assert values.config_values(SHOP) == json.loads(BLOCKS[7])


def test_patches_are_replayed_over_the_edited_config_map(values: store.ValuesStore) -> None:
    values.set_config(
        config_map_reader.ConfigMapReader([SHOP]).read({"webShop": "hosts: [shop, store]"}).usable()
    )
    section: Any = values.values(SHOP)["webShop"]
    assert section["hosts"] == json.loads(BLOCKS[8])["hosts"]


def test_the_page_has_no_other_examples() -> None:
    assert len(BLOCKS) == 9


@rows.each(
    ("words", "read"),
    [
        ("017 0o17", [15, 15]),
        ("0b11 0x1F", [3, 31]),
        ("1_000 1e3 1.0", [1000, 1000, 1]),
        ("~ null", [None, None]),
    ],
)
def test_the_table_of_words_is_right(words: str, read: list[object]) -> None:
    assert all(f"`{word}`" in PAGE.read_text() for word in words.split())
    assert [yaml_loader.plain(word) for word in words.split()] == read
