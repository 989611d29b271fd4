"""The store: sources on each other, what hooks see, and what changes tell."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addon_operator.kernel import names
from addon_operator.values import config_map_reader, sources, store
from addon_operator.values.patches import patch_log, patches
from tests.support import rows
from tests.unit.values.json_strategies import OBJECTS

SOME = names.ModuleName("some-module")
OTHER = names.ModuleName("other")
KNOWN = (SOME, OTHER)


def make_store(common: str = "", own: str = "") -> store.ValuesStore:
    common_file = sources.parse_common_values(common, "modules/values.yaml")
    own_file = sources.parse_module_values(SOME, own, "modules/001-some-module/values.yaml")
    modules = [store.ModuleValues(SOME, common_file, own_file), store.ModuleValues(OTHER, common_file)]
    return store.ValuesStore(modules, [common_file])


def configure(values: store.ValuesStore, **data: str) -> sources.ConfigChange:
    return values.set_config(
        config_map_reader.ConfigMapReader(KNOWN, "ConfigMap ns/values").read(data).usable()
    )


def patch(*operations: dict[str, Any]) -> patches.ValuesPatch:
    return patches.parse_patch(json.dumps(operations), "patch")


def add(path: str, value: object) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def test_the_documented_example_gives_the_documented_files() -> None:
    values = make_store('global:\n  param1: 100\n  param2: "YES"\n', 'someModule:\n  param1: "String"\n')
    configure(values, **{"global": "param1: 200", "someModule": 'param1: "Long string"\nparam2: "FOO"\n'})
    assert values.config_values(SOME) == {
        "global": {"param1": 200},
        "someModule": {"param1": "Long string", "param2": "FOO"},
    }
    assert values.values(SOME) == {
        "global": {"param1": 200, "param2": "YES"},
        "someModule": {"param1": "Long string", "param2": "FOO"},
    }


def test_sources_lie_on_each_other_in_their_order() -> None:
    values = make_store(
        "someModule: {a: common, b: common, c: common, d: common}", "someModule: {b: own, c: own, d: own}"
    )
    configure(values, someModule="c: config\nd: config\n")
    values.apply_values_patch(SOME, patch(add("/someModule/d", "hook")))
    assert values.values(SOME)["someModule"] == {"a": "common", "b": "own", "c": "config", "d": "hook"}


def test_each_directorys_file_serves_its_own_modules_and_their_globals_merge_in_order() -> None:
    first = sources.parse_common_values("global: {a: 1, b: 1}\nsomeModule: {x: 1}\nother: {x: 1}", "first")
    second = sources.parse_common_values("global: {b: 2}\nsomeModule: {x: 2}\nother: {x: 2}", "second")
    modules = [store.ModuleValues(SOME, first), store.ModuleValues(OTHER, second)]
    values = store.ValuesStore(modules, [first, second])
    assert values.values(SOME) == {"global": {"a": 1, "b": 2}, "someModule": {"x": 1}}
    assert values.values(OTHER) == {"global": {"a": 1, "b": 2}, "other": {"x": 2}}


def test_global_hooks_see_global_values_only() -> None:
    values = make_store("global: {a: 1}\nsomeModule: {b: 1}")
    configure(values, someModule="c: 1")
    assert values.values(None) == {"global": {"a": 1}}
    assert values.config_values(None) == {"global": {}}


def test_modules_see_no_other_modules_values() -> None:
    assert set(make_store("someModule: {a: 1}\nother: {b: 1}").values(OTHER)) == {"global", "other"}


def test_sections_exist_even_if_no_source_has_them() -> None:
    assert make_store().values(SOME) == {"global": {}, "someModule": {}}


def test_enabled_modules_are_added_to_global_values_on_demand_in_their_order() -> None:
    values = make_store("global: {a: 1}")
    assert values.values(SOME, [OTHER, SOME])["global"] == {
        "a": 1,
        "enabledModules": ["other", "some-module"],
    }
    assert values.values(SOME)["global"] == {"a": 1}


def test_without_a_list_nobody_sees_enabled_modules_and_another_section() -> None:
    values = make_store("global: {a: 1}\nsomeModule: {b: 1}\nother: {c: 1}")
    values.values(SOME, [SOME])
    assert values.values(SOME) == {"global": {"a": 1}, "someModule": {"b": 1}}


def test_values_are_given_out_as_json_too() -> None:
    values = make_store("global: {b: 1, a: 2}\nsomeModule: {c: 1}")
    assert values.values_json(SOME) == b'{"global":{"b":1,"a":2},"someModule":{"c":1}}'


@rows.each(
    "read",
    [
        lambda values: values.values(SOME),
        lambda values: values.config_values(SOME),
    ],
    ids=["values", "config values"],
)
def test_what_is_given_out_does_not_let_a_caller_change_the_store(
    read: Callable[[store.ValuesStore], dict[str, Any]],
) -> None:
    values = make_store("someModule: {a: {b: 1}}")
    configure(values, someModule="a: {c: [1]}")
    before = read(values)
    document = read(values)
    document["someModule"]["a"]["c"].append(2)
    document["global"]["x"] = 1
    assert read(values) == before


def test_a_key_removed_from_the_config_map_falls_back_to_the_sources_below() -> None:
    values = make_store("someModule: {a: 1}")
    configure(values, someModule="a: 2\nb: 3")
    assert values.values(SOME)["someModule"] == {"a": 2, "b": 3}
    configure(values)
    assert values.values(SOME)["someModule"] == {"a": 1}
    assert values.config_values(SOME) == {"global": {}, "someModule": {}}


def shown(value: object) -> str:
    """Like ``repr``, but the same in every process: sets are sorted."""
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))})"
    return repr(sorted(value)) if isinstance(value, set) else repr(value)


@rows.each(
    ("before", "after", "change"),
    [
        ({}, {}, (False, set(), set(), set())),
        ({"global": "a: 1"}, {"global": "a:    1 # same"}, (False, set(), set(), set())),
        ({"global": "{a: 1, b: 2}"}, {"global": "{b: 2, a: 1}"}, (False, set(), set(), set())),
        ({"global": "a: 1"}, {"global": "a: true"}, (True, set(), set(), set())),
        ({"global": "a: 1"}, {}, (True, set(), set(), set())),
        ({}, {"someModule": ""}, (False, set(), set(), set())),
        ({}, {"someModule": "a: 1"}, (False, set(), {SOME}, set())),
        ({}, {"someModule": "a: 1", "other": "a: 1"}, (False, set(), {SOME, OTHER}, set())),
        ({}, {"someModuleEnabled": "true"}, (False, {SOME}, set(), set())),
        ({"someModuleEnabled": "true"}, {}, (False, {SOME}, set(), set())),
        ({}, {"someModuleEnabled": "false"}, (False, set(), set(), set())),
        ({}, {"otherEnabled": "true"}, (False, set(), set(), set())),
        ({}, {"otherEnabled": "false"}, (False, {OTHER}, set(), set())),
        ({}, {"someModuleMaintenance": "NoResourceReconciliation"}, (False, set(), set(), {SOME})),
        ({}, {"someModuleMaintenance": ""}, (False, set(), set(), set())),
    ],
    ids=shown,
)
def test_a_new_config_map_tells_what_it_changed_by_content(
    before: dict[str, str], after: dict[str, str], change: tuple[bool, set[str], set[str], set[str]]
) -> None:
    values = make_store("otherEnabled: true")
    configure(values, **before)
    told = configure(values, **after)
    assert told == sources.ConfigChange(
        change[0], *(frozenset(map(names.ModuleName, part)) for part in change[1:])
    )
    assert bool(told) == any(change)


def test_the_maintenance_mode_of_a_module_is_known() -> None:
    values = make_store()
    configure(values, someModuleMaintenance="NoResourceReconciliation")
    assert (values.maintenance(SOME), values.maintenance(OTHER)) == ("NoResourceReconciliation", "")


def test_a_module_is_disabled_by_default() -> None:
    flag = make_store().flag(SOME)
    assert (flag.enabled, flag.reason) == (False, "disabled by default: no source sets someModuleEnabled")


@rows.each(
    ("common", "own", "hook", "config", "enabled", "reason"),
    [
        ("true", None, None, None, True, "enabled by someModuleEnabled in modules/values.yaml"),
        (
            "true",
            "false",
            None,
            None,
            False,
            "disabled by someModuleEnabled in modules/001-some-module/values.yaml",
        ),
        ("true", "false", True, None, True, "enabled by someModuleEnabled of a global hook"),
        ("true", "true", True, "false", False, "disabled by someModuleEnabled in ConfigMap ns/values"),
        (None, None, False, "true", True, "enabled by someModuleEnabled in ConfigMap ns/values"),
    ],
    ids=[
        "common file",
        "module's file over it",
        "hook over files",
        "ConfigMap over all",
        "ConfigMap over hook",
    ],
)
def test_the_highest_source_with_a_switch_decides_and_is_named(
    common: str | None, own: str | None, hook: bool | None, config: str | None, enabled: bool, reason: str
) -> None:
    values = make_store(
        f"someModuleEnabled: {common}" if common else "", f"someModuleEnabled: {own}" if own else ""
    )
    if hook is not None:
        values.apply_values_patch(None, patch(add("/someModuleEnabled", hook)))
    if config is not None:
        configure(values, someModuleEnabled=config)
    flag = values.flag(SOME)
    assert (flag.enabled, flag.reason) == (enabled, reason)


def test_an_unknown_module_is_an_error() -> None:
    with pytest.raises(store.UnknownModuleError, match="'missing'"):
        make_store().flag(names.ModuleName("missing"))


def test_a_values_patch_tells_whether_it_changed_content() -> None:
    values = make_store("someModule: {a: 1}")
    assert values.apply_values_patch(SOME, patch(add("/someModule/a", 1))) == (False, False)
    assert values.apply_values_patch(SOME, patch(add("/someModule/a", True))) == (True, False)


def test_a_global_patch_changes_values_and_switches_together() -> None:
    values = make_store()
    outcome = values.apply_values_patch(None, patch(add("/global/a", 1), add("/someModuleEnabled", True)))
    assert outcome == (True, True)
    assert values.values(None) == {"global": {"a": 1}}
    assert values.flag(SOME).enabled


def test_a_switch_that_the_config_map_overrides_changes_no_verdict() -> None:
    values = make_store()
    configure(values, someModuleEnabled="false")
    outcome = values.apply_values_patch(None, patch(add("/someModuleEnabled", True)))
    assert outcome == (False, False)
    configure(values)
    assert values.flag(SOME).enabled


def test_a_switch_that_a_hook_takes_back_falls_back_to_the_files() -> None:
    values = make_store("someModuleEnabled: true")
    values.apply_values_patch(None, patch(add("/someModuleEnabled", False)))
    assert not values.flag(SOME).enabled
    values.apply_values_patch(None, patch({"op": "remove", "path": "/someModuleEnabled"}))
    assert values.flag(SOME).enabled


def test_a_value_can_become_a_switch() -> None:
    values = make_store("global: {wanted: true}")
    values.apply_values_patch(
        None, patch({"op": "move", "from": "/global/wanted", "path": "/someModuleEnabled"})
    )
    assert values.flag(SOME).enabled
    assert values.values(None) == {"global": {}}


@rows.each(
    ("owner", "operation", "message"),
    [
        (SOME, add("/global/x", 1), "hooks of module 'some-module' may only change /someModule"),
        (SOME, add("/otherEnabled", True), "hooks of module 'some-module' may only change /someModule"),
        (None, add("/someModule/x", 1), "global hooks may only change /global and switches"),
        (SOME, {"op": "remove", "path": "/someModule/x"}, "there is nothing at '/someModule/x'"),
        (SOME, {"op": "test", "path": "/someModule/a", "value": 2}, "is different"),
        (None, add("/someModuleEnabled", "true"), "a switch must be true or false"),
        (None, {"op": "remove", "path": "/someModuleEnabled"}, "there is nothing at '/someModuleEnabled'"),
    ],
    ids=repr,
)
def test_a_patch_that_fails_in_the_middle_leaves_the_store_untouched(
    owner: names.ModuleName | None, operation: dict[str, Any], message: str
) -> None:
    values = make_store("global: {a: 1}\nsomeModule: {a: 1}")
    root = "/global" if owner is None else "/someModule"
    good = [add(f"{root}/new", {"x": 1}), add(f"{root}/a", 5)]
    if owner is None:
        good.append(add("/otherEnabled", True))
    with pytest.raises(patches.PatchError, match=message):
        values.apply_values_patch(owner, patch(*good, operation))
    assert values.values(SOME) == {"global": {"a": 1}, "someModule": {"a": 1}}
    assert values.patches(owner) == []
    assert not values.flag(OTHER).enabled


def test_checking_a_patch_changes_nothing() -> None:
    values = make_store()
    values.frozen(SOME).patched(patch(add("/someModule/a", 1)))
    assert values.values(SOME)["someModule"] == {}
    assert values.patches(SOME) == []
    with pytest.raises(patches.PatchError):
        values.frozen(SOME).patched(patch({"op": "remove", "path": "/someModule/a"}))


def test_patches_stay_when_the_config_map_changes() -> None:
    values = make_store("someModule: {list: [a]}")
    values.apply_values_patch(SOME, patch(add("/someModule/list/-", "hook")))
    configure(values, someModule="list: [b, c]")
    assert values.values(SOME)["someModule"] == {"list": ["b", "c", "hook"]}


def test_accumulated_patches_can_be_listed_and_dropped() -> None:
    values = make_store("someModule: {a: 1}")
    values.apply_values_patch(SOME, patch(add("/someModule/b", 2)))
    values.apply_values_patch(None, patch(add("/global/c", 3), add("/otherEnabled", False)))
    assert values.patches(SOME) == [add("/someModule/b", 2)]
    assert values.patches(None) == [add("/global/c", 3), add("/otherEnabled", False)]
    values.drop_patches(SOME)
    assert values.patches(SOME) == []
    assert values.values(SOME) == {"global": {"c": 3}, "someModule": {"a": 1}}


def test_a_config_patch_gives_the_section_to_write_and_changes_nothing() -> None:
    values = make_store("someModule: {a: 1}")
    configure(values, someModule="b: 2")
    result = values.config_patched(SOME, patch(add("/someModule/c", 3)))
    assert (result.key, result.section, result.changed) == ("someModule", {"b": 2, "c": 3}, True)
    assert values.config_values(SOME)["someModule"] == {"b": 2}


def test_a_config_patch_does_not_see_values_of_files() -> None:
    values = make_store("someModule: {a: 1}")
    with pytest.raises(patches.PatchError, match="there is nothing at '/someModule/a'"):
        values.config_patched(SOME, patch({"op": "remove", "path": "/someModule/a"}))


def test_a_config_patch_applies_to_a_fresher_config_map_after_a_conflict() -> None:
    fresh = config_map_reader.ConfigMapReader(KNOWN).read({"someModule": "z: 1"}).usable()
    result = make_store().config_patched(SOME, patch(add("/someModule/c", 3)), fresh)
    assert result.section == {"z": 1, "c": 3}


def test_reloaded_files_keep_patches_and_config_of_modules_that_stay() -> None:
    values = make_store("someModule: {a: 1}")
    configure(values, someModule="b: 2")
    values.apply_values_patch(SOME, patch(add("/someModule/c", 3)))
    values.set_files([store.ModuleValues(SOME, sources.parse_common_values("someModule: {a: 9}", "f"))], [])
    assert values.values(SOME)["someModule"] == {"a": 9, "b": 2, "c": 3}
    assert values.modules == (SOME,)


@given(OBJECTS, st.lists(OBJECTS, min_size=1, max_size=3))
def test_values_are_the_same_whether_the_config_map_came_before_or_after_the_patch(
    written: dict[str, Any], configs: list[dict[str, Any]]
) -> None:
    late, early = make_store("someModule: {}"), make_store("someModule: {}")
    change = patch(add("/someModule/hook", written))
    late.apply_values_patch(SOME, change)
    for config in configs:
        configure(late, someModule=json.dumps(config))
    configure(early, someModule=json.dumps(configs[-1]))
    early.apply_values_patch(SOME, change)
    assert late.values(SOME) == early.values(SOME)


def test_many_patches_of_one_hook_keep_the_store_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patch_log, "MIN_WEIGHT", 1_024)
    values = make_store("someModule: {ring: [0, 0], count: 0}")
    for number in range(80):
        values.apply_values_patch(
            SOME,
            patch(
                add("/someModule/ring/-", number),
                {"op": "remove", "path": "/someModule/ring/0"},
                {"op": "replace", "path": "/someModule/count", "value": number},
            ),
        )
    assert values.values(SOME)["someModule"] == {"ring": [78, 79], "count": 79}
    assert len(values.patches(SOME)) < 60
    configure(values, someModule="x: 1")
    assert values.values(SOME)["someModule"] == {"ring": [78, 79], "count": 79, "x": 1}


def test_many_compare_and_swaps_keep_the_store_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patch_log, "MAX_GUARDS", 20)
    values = make_store("someModule: {count: 0}")
    for number in range(80):
        values.apply_values_patch(
            SOME,
            patch(
                {"op": "test", "path": "/someModule/count", "value": number},
                {"op": "replace", "path": "/someModule/count", "value": number + 1},
            ),
        )
    assert values.values(SOME)["someModule"] == {"count": 80}
    assert len(values.patches(SOME)) < 50


def configure_both(
    values: store.ValuesStore, config: dict[str, str], secret: dict[str, str]
) -> sources.ConfigChange:
    modules = values.modules
    said = config_map_reader.ConfigMapReader(modules).read(config).usable()
    above = config_map_reader.ConfigMapReader(modules, "Secret a/b", is_secret=True).read(secret).usable()
    return values.set_config(dataclasses.replace(said, secret=above))


def test_the_secret_lies_between_the_config_map_and_patches() -> None:
    values = make_store()
    configure_both(values, {"someModule": "a: 1\nb: 1\nc: 1"}, {"someModule": "b: 2\nc: 2"})
    values.apply_values_patch(SOME, patch(add("/someModule/c", 3)))
    assert values.values(SOME)["someModule"] == {"a": 1, "b": 2, "c": 3}
    assert values.config_values(SOME)["someModule"] == {"a": 1, "b": 2, "c": 2}
    assert values.masked_values(SOME)["someModule"] == {"a": 1, "b": "***", "c": "***"}


def test_a_value_that_moves_into_the_secret_changes_nothing_and_is_hidden() -> None:
    values = make_store()
    configure_both(values, {"someModule": "a: 1"}, {})
    assert not configure_both(values, {}, {"someModule": "a: 1"})
    assert values.masked_values(SOME)["someModule"] == {"a": "***"}


def test_switches_and_maintenance_of_the_secret_win() -> None:
    values = make_store()
    mode = "NoResourceReconciliation"
    config = {"someModuleEnabled": "false", "someModuleMaintenance": mode}
    configure_both(values, config, {"someModuleEnabled": "true", "someModuleMaintenance": ""})
    assert values.flag(SOME) == sources.Flag(True, "enabled by someModuleEnabled in Secret a/b")
    assert values.maintenance(SOME) == ""
    change = configure_both(values, config, {})
    assert change.flags_changed == {SOME}
    assert change.maintenance_changed == {SOME}
    assert values.maintenance(SOME) == mode


def test_accumulated_patches_are_shown_without_what_the_secret_sets() -> None:
    values = make_store()
    configure_both(values, {}, {"someModule": "auth: {password: s3cret}"})
    values.apply_values_patch(
        SOME, patch(add("/someModule/auth/password", "by-hook"), add("/someModule/auth/user", "u"))
    )
    shown = values.frozen(SOME).masked_operations(values.patches(SOME))
    assert [(one["path"], one["value"]) for one in shown] == [
        ("/someModule/auth/password", "***"), ("/someModule/auth/user", "u")
    ]  # fmt: skip


def test_a_hooks_config_patch_is_checked_with_the_secret_and_gives_the_config_maps_part() -> None:
    values = make_store()
    configure_both(values, {"someModule": "a: 1"}, {"someModule": "auth: {password: s3cret}"})
    result = values.config_patched(SOME, patch(add("/someModule/auth/user", "u")))
    assert result.section == {"a": 1, "auth": {"user": "u"}}


def test_a_snapshot_stays_as_it_was_although_nobody_has_looked_at_it_yet() -> None:
    values = make_store("global: {a: 1}", "someModule: {a: 1, b: {c: 1}}")
    values.apply_values_patch(SOME, patch(add("/someModule/b", {"c": 2})))
    configure(values, someModule="d: 1")
    before = values.snapshot(SOME)
    values.apply_values_patch(SOME, patch(add("/someModule/b/c", 3)))
    values.apply_values_patch(None, patch(add("/global/a", 2)))
    configure(values, someModule="d: 2")
    values.drop_patches(SOME)
    expected = {"global": {"a": 1}, "someModule": {"a": 1, "b": {"c": 2}, "d": 1}}
    assert before.values(SOME) == before.masked_values(SOME) == expected
    assert before.config_values(SOME)["someModule"] == {"d": 1}
    assert before.patches(SOME) == [add("/someModule/b", {"c": 2})]


def test_what_a_snapshot_works_out_is_not_worked_out_again() -> None:
    values = make_store(own="someModule: {a: 1}")
    values.snapshot(SOME).values(SOME)
    assert values.frozen(SOME).present is values.frozen(SOME).present


def test_what_files_and_objects_say_is_merged_in_the_thread_that_reads_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = make_store()
    common = sources.parse_common_values("someModule: {a: 1}", "values.yaml")
    own = sources.parse_module_values(SOME, "someModule: {b: 1}", "values.yaml")
    key = names.values_key(SOME)
    config = sources.ConfigValues({key: {"c": 1}}, secret=sources.ConfigValues({key: {"d": 1}}))
    config.laid_together()
    with monkeypatch.context() as loop:
        loop.setattr(sources, "merge", None)
        values.set_files([store.ModuleValues(SOME, common, own)], [common])
        values.set_config(config)
    assert values.values(SOME)["someModule"] == {"a": 1, "b": 1, "c": 1, "d": 1}


def test_a_list_of_enabled_modules_that_a_source_has_wins() -> None:
    values = make_store("global: {enabledModules: [a]}")
    assert values.values(SOME, [SOME])["global"] == {"enabledModules": ["a"]}
    configure(values, **{"global": "enabledModules: [b]"})
    assert values.values(SOME, [SOME])["global"] == {"enabledModules": ["b"]}


@rows.each(
    ("crd_names", "listed"),
    [(False, ["some-module", "other"]), (True, ["some-module-crd", "some-module", "other"])],
)
def test_names_of_definitions_are_listed_if_the_setting_says_so(crd_names: bool, listed: list[str]) -> None:
    modules = [store.ModuleValues(SOME, has_crds=True), store.ModuleValues(OTHER)]
    values = store.ValuesStore(modules, crd_names=crd_names)
    values.enabled = [SOME, OTHER]
    assert values.enabled_modules() == listed
    assert values.values(OTHER, [SOME, OTHER])["global"] == {"enabledModules": listed}
