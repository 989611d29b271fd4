"""What config values patches make of the ConfigMap."""

import pytest

from addon_operator.kernel import names
from addon_operator.values import config_map, sources
from addon_operator.values.patches import patches

SOME = names.ModuleName("some-module")
DATA = {
    "global": "# mine\nparam1:   200\n",
    "someModule": 'param1: "Long string"\nparam2: "FOO"\n',
    "someModuleEnabled": "true",
    "unknown": "{broken",
}


def patched(data: dict[str, str], owner: names.ModuleName | None, patch: str) -> dict[str, str]:
    config = sources.ConfigMapReader([SOME]).read(data).usable()
    return config_map.render(
        data, config_map.patch_section(owner, patches.parse_patch(patch, "patch"), config)
    )


def test_only_the_patched_section_is_written_anew() -> None:
    rendered = patched(DATA, SOME, '[{"op":"add", "path":"/someModule/param3", "value":"newValue"}]')
    assert rendered == {**DATA, "someModule": "param1: Long string\nparam2: FOO\nparam3: newValue\n"}


def test_a_patch_that_changes_nothing_leaves_every_byte() -> None:
    assert patched(DATA, None, '[{"op":"replace", "path":"/global/param1", "value":200}]') == DATA


def test_a_section_that_is_missing_is_made() -> None:
    assert patched({}, None, '{"op":"add", "path":"/global/a", "value":"yes"}') == {"global": "a: 'yes'\n"}


@pytest.mark.parametrize(
    "patch",
    ['[{"op":"remove","path":"/someModule"}]', '[{"op":"replace","path":"/someModule","value":{}}]'],
    ids=["removed", "replaced by nothing"],
)
def test_an_emptied_section_loses_its_key(patch: str) -> None:
    rendered = patched(DATA, SOME, patch)
    assert rendered == {key: text for key, text in DATA.items() if key != "someModule"}


def test_a_section_that_only_disabled_its_module_moves_that_to_the_switch() -> None:
    rendered = patched({"someModule": "false"}, SOME, '{"op":"add","path":"/someModule/a","value":1}')
    assert rendered == {"someModule": "a: 1\n", "someModuleEnabled": "false"}


def test_the_data_that_was_given_is_not_changed() -> None:
    data = dict(DATA)
    patched(data, SOME, '{"op":"remove","path":"/someModule/param1"}')
    assert data == DATA


@pytest.mark.parametrize(
    ("owner", "path"),
    [(SOME, "/global/a"), (None, "/someModule/a"), (None, "/someModuleEnabled"), (SOME, "")],
)
def test_a_hook_may_only_write_its_own_section(owner: names.ModuleName | None, path: str) -> None:
    with pytest.raises(patches.PatchError, match="is not permitted"):
        patched(DATA, owner, f'{{"op":"add","path":"{path}","value":true}}')


def test_a_patch_that_does_not_apply_is_an_error() -> None:
    with pytest.raises(patches.PatchError, match="nothing at '/someModule/absent'"):
        patched(DATA, SOME, '{"op":"remove","path":"/someModule/absent"}')
