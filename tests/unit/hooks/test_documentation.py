"""The reference of hooks says what the code does."""

import json
import pathlib
import re

import pytest

from addon_operator.hooks import config, schemas

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
