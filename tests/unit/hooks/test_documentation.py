"""The reference of hooks says what the code does."""

import json
import pathlib
import re

import pytest

from addon_operator.hooks import config, metric_operations, object_operations, object_schemas, schemas

PAGE = (pathlib.Path(__file__).parents[3] / "docs" / "reference" / "hooks.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.splitlines()[1])
def test_every_example_of_a_configuration_is_valid(example: str) -> None:
    assert config.parse(example, config.HookKind.MODULE, "the example").warnings == ()


@pytest.mark.parametrize("kind", list(config.HookKind), ids=lambda kind: kind.value)
def test_every_key_of_a_configuration_is_described(kind: config.HookKind) -> None:
    properties = schemas.CURRENT[kind]["properties"]
    keys = {
        *properties,
        *properties["settings"]["properties"],
        *properties["schedule"]["items"]["properties"],
        *properties["kubernetes"]["items"]["properties"],
    }
    assert {key for key in keys if key not in PAGE} == set()


def test_the_configuration_that_the_example_hook_prints_is_valid() -> None:
    match = re.search(r"echo '(\{\"configVersion.*?\})'", PAGE)
    assert match is not None
    assert config.parse(match[1], config.HookKind.MODULE, "the example").before_helm == 10
    assert json.loads(match[1])["configVersion"] == "v1"


JSON_EXAMPLES = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_of_changes_of_objects_are_valid() -> None:
    assert len(object_operations.parse(JSON_EXAMPLES[0], "the example")) == 5


def test_the_examples_of_metrics_are_valid() -> None:
    assert len(metric_operations.parse(JSON_EXAMPLES[1], "the example")) == 5


def test_every_operation_and_its_fields_are_described() -> None:
    fields = {key for schema in object_schemas.BY_OPERATION.values() for key in schema["properties"]}
    assert {name for name in {*object_schemas.BY_OPERATION, *fields} if f"`{name}`" not in PAGE} == {
        "operation"
    }


def test_every_action_on_metrics_is_described() -> None:
    assert {action for action in metric_operations.Action if f"`{action}`" not in PAGE} == set()
