"""What config values patches make of the ConfigMap."""

import dataclasses

import pytest

from addon_operator.kernel import json_types, names
from addon_operator.values import config_map, config_map_reader
from addon_operator.values.patches import patches
from tests.support import rows

SOME = names.ModuleName("some-module")
DATA = {
    "global": "# mine\nparam1:   200\n",
    "someModule": 'param1: "Long string"\nparam2: "FOO"\n',
    "someModuleEnabled": "true",
    "unknown": "{broken",
}


def patched(data: dict[str, str], owner: names.ModuleName | None, patch: str) -> dict[str, str]:
    config = config_map_reader.ConfigMapReader([SOME]).read(data).usable()
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


@rows.each(
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


@rows.each(
    ("owner", "path"),
    [(SOME, "/global/a"), (None, "/someModule/a"), (None, "/someModuleEnabled"), (SOME, "")],
)
def test_a_hook_may_only_write_its_own_section(owner: names.ModuleName | None, path: str) -> None:
    with pytest.raises(patches.PatchError, match="is not permitted"):
        patched(DATA, owner, f'{{"op":"add","path":"{path}","value":true}}')


def test_a_patch_that_does_not_apply_is_an_error() -> None:
    with pytest.raises(patches.PatchError, match="nothing at '/someModule/absent'"):
        patched(DATA, SOME, '{"op":"remove","path":"/someModule/absent"}')


def below_secret(
    operations: str, config: str = "{}", secret: str = ""
) -> tuple[json_types.JsonObject, tuple[str, ...]]:
    """The ConfigMap's section, and what the Secret hides of the patch."""
    reader = config_map_reader.ConfigMapReader([SOME])
    said = [reader.read({"someModule": text}).usable() for text in (config, secret)]
    merged = dataclasses.replace(said[0], secret=said[1])
    result = config_map.patch_section(SOME, patches.parse_patch(operations, "patch"), merged)
    return result.section, result.hidden


SECRET = "auth: {password: s3cret, deep: {key: s3cret}}\nlist: [s3cret]"


@rows.each(
    ("operations", "config", "section", "hidden"),
    [
        pytest.param(
            '{"op":"add","path":"/someModule/auth/user","value":"u"}', "{}", {"auth": {"user": "u"}}, (),
            id="a mapping that only the Secret has",
        ),
        pytest.param(
            '{"op":"replace","path":"/someModule/auth/password","value":"w"}', "{}",
            {"auth": {"password": "w"}}, ("/someModule/auth/password",), id="a value of the Secret",
        ),
        pytest.param(
            '{"op":"remove","path":"/someModule/auth/password"}', "a: 1", {"a": 1},
            ("/someModule/auth/password",), id="removal of what only the Secret has",
        ),
        pytest.param(
            '{"op":"remove","path":"/someModule/auth/password"}', "auth: {password: open}", {"auth": {}},
            ("/someModule/auth/password",), id="removal of what both have",
        ),
        pytest.param(
            '[{"op":"test","path":"/someModule/auth/password","value":"s3cret"},'
            '{"op":"add","path":"/someModule/a","value":1}]',
            "auth: {password: open}", {"auth": {"password": "open"}, "a": 1}, (),
            id="a test sees what the hook sees",
        ),
        pytest.param(
            '{"op":"copy","from":"/someModule/auth","path":"/someModule/b"}', "auth: {user: u}",
            {"auth": {"user": "u"}, "b": {"user": "u"}}, (), id="of a mapping the ConfigMap's part",
        ),
        pytest.param(
            '{"op":"add","path":"/someModule/list/-","value":"x"}', "list: [a]", {"list": ["a", "x"]},
            ("/someModule/list",), id="a list that both have",
        ),
    ],
)  # fmt: skip
def test_a_patch_made_over_both_changes_the_config_map_alone(
    operations: str, config: str, section: json_types.JsonObject, hidden: tuple[str, ...]
) -> None:
    assert below_secret(operations, config, SECRET) == (section, hidden)


@rows.each(
    ("operations", "problem"),
    [
        ('{"op":"copy","from":"/someModule/auth/password","path":"/someModule/b"}', "never copied"),
        ('{"op":"move","from":"/someModule/auth/password","path":"/someModule/b"}', "never copied"),
        ('{"op":"copy","from":"/someModule/auth/deep","path":"/someModule/b"}', "never copied"),
        ('{"op":"copy","from":"/someModule/list/0","path":"/someModule/b"}', "never copied"),
        ('{"op":"add","path":"/someModule/list/-","value":"x"}', "hooks change no part"),
        ('{"op":"test","path":"/someModule/auth/password","value":"x"}', "the value there is different"),
        ('{"op":"remove","path":"/someModule/nothing"}', "there is nothing at"),
    ],
)
def test_a_patch_never_takes_anything_out_of_the_secret(operations: str, problem: str) -> None:
    with pytest.raises(patches.PatchError, match=problem) as caught:
        below_secret(operations, "{}", SECRET)
    assert "s3cret" not in str(caught.value)
