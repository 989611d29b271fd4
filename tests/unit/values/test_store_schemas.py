"""The store with schemas: defaults, checks, and patches that build on defaults."""

import functools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addon_operator.kernel import names
from addon_operator.values import checks, config_map_reader, sources, store
from addon_operator.values.patches import patches
from addon_operator.values.schema import schema_violations, schemas
from tests.support import rows

SOME = names.ModuleName("some-module")

CONFIG_SCHEMA = """
    properties:
      replicas: {type: integer, default: 2, minimum: 1}
      name: {type: string}
      tls: {type: object, properties: {mode: {type: string, default: auto}}}
"""
VALUES_SCHEMA = """
    x-extend: {schema: config-values.yaml}
    x-required-for-helm: [internal]
    properties:
      internal:
        type: object
        default: {}
        x-required-for-helm: [ca]
        properties:
          ca: {type: string, x-sensitive: true}
          counter: {type: integer, default: 0}
          nodes:
            type: array
            items: {type: object, properties: {zone: {type: string, default: a}, rank: {}}}
          box: {type: object, properties: {size: {type: integer, default: 1}}}
"""


@functools.cache
def module_schemas() -> schemas.SectionSchemas:
    return schemas.load_schemas((CONFIG_SCHEMA, "config-values.yaml"), (VALUES_SCHEMA, "values.yaml"))


def make_store(files: str = "", global_schema: str | None = None) -> store.ValuesStore:
    common = sources.parse_common_values(files, "modules/values.yaml")
    global_schemas = schemas.load_schemas(None if global_schema is None else (global_schema, "global"))
    return store.ValuesStore(
        [store.ModuleValues(SOME, common, schemas=module_schemas())], [common], global_schemas
    )


def config_of(**data: str) -> sources.ConfigValues:
    return config_map_reader.ConfigMapReader([SOME]).read(data).usable()


def patch(*operations: dict[str, Any]) -> patches.ValuesPatch:
    return patches.parse_patch(json.dumps(operations), "patch")


def add(path: str, value: object) -> dict[str, Any]:
    return {"op": "add", "path": f"/someModule/{path}", "value": value}


def section(values: store.ValuesStore) -> Any:  # noqa: ANN401  # JSON
    return values.values(SOME)["someModule"]


def test_defaults_of_both_schemas_fill_what_is_missing() -> None:
    values = make_store("someModule: {name: x, tls: {}}")
    assert section(values) == {
        "name": "x",
        "tls": {"mode": "auto"},
        "replicas": 2,
        "internal": {"counter": 0},
    }


def test_config_values_have_no_defaults() -> None:
    assert make_store().config_values(SOME)["someModule"] == {}


def test_a_source_wins_over_a_default() -> None:
    values = make_store("someModule: {replicas: 5}")
    assert section(values)["replicas"] == 5
    values.set_config(config_of(someModule="replicas: 7"))
    assert section(values)["replicas"] == 7


def test_hooks_patch_what_defaults_made() -> None:
    values = make_store()
    values.apply_values_patch(
        SOME, patch(add("internal/ca", "x"), {"op": "remove", "path": "/someModule/replicas"})
    )
    assert section(values) == {"internal": {"counter": 0, "ca": "x"}, "replicas": 2}


@rows.each(
    "history",
    [
        [[add("internal/box", {})], [{"op": "replace", "path": "/someModule/internal/box/size", "value": 5}]],
        [[add("internal", {})], [{"op": "replace", "path": "/someModule/internal/counter", "value": 5}]],
        [
            [{"op": "remove", "path": "/someModule/internal"}],
            [
                {"op": "test", "path": "/someModule/internal/counter", "value": 0},
                add("internal/box", {"size": 4}),
            ],
        ],
        [
            [add("internal/nodes", []), add("internal/nodes/-", {})],
            [{"op": "replace", "path": "/someModule/internal/nodes/0/zone", "value": "b"}],
        ],
        [
            [add("internal/box", {}), {"op": "test", "path": "/someModule/internal/box", "value": {}}],
            [{"op": "remove", "path": "/someModule/internal/box/size"}, add("internal/counter", 3)],
        ],
    ],
    ids=[
        "in an object of the hook",
        "in a replaced object",
        "after a removal",
        "in a list item",
        "with a test",
    ],
)
def test_later_patches_build_on_defaults_that_earlier_ones_brought_and_survive_a_replay(
    history: list[list[dict[str, Any]]],
) -> None:
    values = make_store()
    for operations in history:
        values.apply_values_patch(SOME, patch(*operations))
    before = section(values)
    values.set_config(config_of(someModule="name: changed"))
    assert section(values) == {**before, "name": "changed"}


_SIZES = range(4)
_CHANGES = st.sampled_from(
    [
        *(add("internal/box", box) for box in ({}, *({"size": size} for size in _SIZES))),
        *({"op": "replace", "path": "/someModule/internal/box/size", "value": size} for size in _SIZES),
        {"op": "remove", "path": "/someModule/internal/box"},
        {"op": "remove", "path": "/someModule/internal"},
        {"op": "remove", "path": "/someModule/internal/counter"},
        *(add("internal/nodes/-", {"rank": rank}) for rank in _SIZES),
        add("internal/nodes", [{}]),
        {"op": "copy", "from": "/someModule/internal/box", "path": "/someModule/internal/nodes/0/rank"},
        {"op": "test", "path": "/someModule/replicas", "value": 2},
    ]
)


@given(st.lists(st.lists(_CHANGES, min_size=1, max_size=2), max_size=8))
def test_a_replay_over_the_same_sources_gives_the_same_values(history: list[list[dict[str, Any]]]) -> None:
    values = make_store()
    for operations in history:
        try:
            values.apply_values_patch(SOME, patch(*operations))
        except patches.PatchError:
            continue
    before = section(values)
    values.set_config(config_of(someModule="name: changed"))
    values.set_config(config_of())
    assert section(values) == before


def test_a_values_patch_that_breaks_the_schema_is_refused_whole() -> None:
    values = make_store()
    with pytest.raises(schema_violations.InvalidValuesError) as caught:
        values.apply_values_patch(
            SOME, patch(add("internal/counter", "many"), add("internal/ca", 7), add("name", "x"))
        )
    assert {(v.path, v.value) for v in caught.value.violations} == {
        ("someModule.internal.counter", '"many"'),
        ("someModule.internal.ca", "***"),
    }
    assert "7" not in str(caught.value)
    assert section(values) == {"replicas": 2, "internal": {"counter": 0}}
    assert values.patches(SOME) == []


def test_a_config_patch_is_checked_over_the_merged_sources() -> None:
    values = make_store("someModule: {tls: {mode: auto}}")
    with pytest.raises(
        schema_violations.InvalidValuesError, match=r"someModule\.replicas: must be at least 1, not 0"
    ):
        values.config_patched(SOME, patch(add("replicas", 0)))
    with pytest.raises(
        schema_violations.InvalidValuesError, match=r"someModule\.internal: the schema does not know this key"
    ):
        values.config_patched(SOME, patch(add("internal", {})))
    assert values.config_patched(SOME, patch(add("replicas", 1))).section == {"replicas": 1}


def test_a_config_map_is_checked_for_global_and_enabled_modules() -> None:
    values = make_store(global_schema="required: [project]\nproperties: {project: {type: string}}")
    bad = {"someModule": "replicas: 0", "someModuleEnabled": "true"}
    assert [v.path for v in checks.Checks(values).config_violations(config_of(**bad))] == [
        "global",
        "someModule.replicas",
    ]
    fine = {"global": "project: x", "someModule": "replicas: 0"}
    assert checks.Checks(values).config_violations(config_of(**fine)) == []
    assert [v.path for v in checks.Checks(values).config_violations(config_of(**fine), [SOME])] == [
        "someModule.replicas"
    ]


def test_files_are_checked_together_with_the_config_map() -> None:
    values = make_store("someModule: {replicas: none}\nsomeModuleEnabled: true")
    assert [v.path for v in checks.Checks(values).config_violations(config_of())] == ["someModule.replicas"]
    assert checks.Checks(values).config_violations(config_of(someModule="replicas: 3")) == []


def test_what_helm_requires_is_checked_before_helm_only() -> None:
    values = make_store()
    values.apply_values_patch(SOME, patch(add("internal/counter", 1)))
    with pytest.raises(
        schema_violations.InvalidValuesError, match=r"someModule\.internal: must have the key 'ca'"
    ):
        checks.Checks(values).checking_helm_values(SOME)()
    values.apply_values_patch(SOME, patch(add("internal/ca", "pem")))
    checks.Checks(values).checking_helm_values(SOME)()


def test_sensitive_values_are_hidden_from_people_but_not_from_hooks() -> None:
    values = make_store()
    values.apply_values_patch(SOME, patch(add("internal/ca", "pem")))
    assert section(values)["internal"]["ca"] == "pem"
    masked: Any = values.masked_values(SOME)
    assert masked["someModule"]["internal"]["ca"] == "***"


def test_sensitive_config_values_are_hidden_too() -> None:
    values = make_store(global_schema="properties: {key: {x-sensitive: true}}")
    values.set_config(config_of(**{"global": "key: secret"}))
    frozen = values.frozen(None)
    assert frozen.masked(frozen.config) == {"key": "***"}
    assert values.config_values(None) == {"global": {"key": "secret"}}


def test_a_frozen_section_hides_what_is_sensitive_in_patches_too() -> None:
    values = make_store()
    values.apply_values_patch(SOME, patch(add("internal", {"ca": "pem"}), add("internal/counter", 1)))
    frozen = values.frozen(SOME)
    masked = frozen.masked_operations(values.patches(SOME))
    assert "pem" in json.dumps(values.patches(SOME))
    assert "pem" not in json.dumps(masked)
    assert json.dumps(masked).count("***") == 1
    assert frozen.masked(frozen.present)["internal"] == {"ca": "***", "counter": 1}


def test_a_frozen_section_stays_as_it_was() -> None:
    values = make_store()
    frozen = values.frozen(SOME)
    values.apply_values_patch(SOME, patch(add("internal/counter", 7)))
    assert frozen.present["internal"] == {"counter": 0}


def test_operations_without_a_value_and_of_other_sections_are_shown_as_they_are() -> None:
    operations: list[patches.Operation] = [
        {"op": "remove", "path": "/someModule/internal/ca"},
        {"op": "add", "path": "/otherEnabled", "value": True},
    ]
    assert make_store().frozen(SOME).masked_operations(operations) == operations


def test_a_plan_that_was_made_beside_is_taken_over_as_it_is() -> None:
    values = make_store()
    change = patch(add("internal/counter", 1))
    plan = values.frozen(SOME).patched(change)
    assert section(values)["internal"] == {"counter": 0}, "nothing is changed by planning"
    assert values.apply_values_patch(SOME, change, plan) == (True, False)
    assert values.values(SOME)["someModule"] == plan.value


def test_a_plan_from_which_the_values_have_moved_on_is_made_again() -> None:
    values = make_store()
    change = patch(add("internal/counter", 1))
    plan = values.frozen(SOME).patched(change)
    values.set_config(config_of(someModule="name: later"))
    values.apply_values_patch(SOME, patch(add("internal/ca", "pem")))
    values.apply_values_patch(SOME, change, plan)
    made = section(values)
    assert (made["name"], made["internal"]) == ("later", {"counter": 1, "ca": "pem"})


def test_a_plan_from_which_the_switches_have_moved_on_is_made_again() -> None:
    values = make_store()
    on = patch({"op": "add", "path": "/someModuleEnabled", "value": True})
    other = patch({"op": "add", "path": "/global/a", "value": 1})
    plan = values.frozen(None).patched(other)
    values.apply_values_patch(None, on)
    values.apply_values_patch(None, other, plan)
    assert values.flag(SOME).enabled


def test_a_plan_that_breaks_the_schema_is_refused_when_it_is_made() -> None:
    with pytest.raises(schema_violations.InvalidValuesError, match="patch makes values that are not valid"):
        make_store().frozen(SOME).patched(patch(add("name", 1)))


def test_a_hook_is_not_blamed_for_values_that_were_not_valid_before() -> None:
    values = make_store()
    values.set_config(config_of(someModule="name: 1"))
    with pytest.raises(
        schema_violations.InvalidValuesError, match=r"someModule were not valid before .* changed them"
    ):
        values.frozen(SOME).patched(patch(add("replicas", 5)))
    with pytest.raises(schema_violations.InvalidValuesError, match="patch makes values that are not valid"):
        values.frozen(SOME).patched(patch(add("replicas", "many")))


def test_what_was_wrong_before_is_not_blamed_on_a_hook_that_makes_something_else_wrong() -> None:
    values = make_store("someModule: {name: 1}")
    with pytest.raises(schema_violations.InvalidValuesError) as caught:
        values.frozen(SOME).patched(patch(add("tls", {"mode": "x"}), add("replicas", "many")))
    assert str(caught.value) == (
        "patch makes values that are not valid: "
        'someModule.replicas: must be an integer, not "many" (values.yaml; by operation [1], add '
        "/someModule/replicas); "
        "someModule.name: must be a string, not 1 (values.yaml; so before the hook ran)"
    )
    assert "by operation [1], add /someModule/replicas" in caught.value.without_values
    assert "many" not in caught.value.without_values


def test_a_config_patch_is_blamed_for_what_it_writes_and_not_the_config_map() -> None:
    values = make_store()
    values.set_config(config_of(someModule="name: x"))
    with pytest.raises(schema_violations.InvalidValuesError) as caught:
        values.config_patched(SOME, patch(add("name", "y"), add("replicas", "many")))
    assert "(config-values.yaml; by operation [1], add /someModule/replicas)" in str(caught.value)


def test_a_plan_sees_what_the_config_map_will_say() -> None:
    values = make_store()
    change = patch({"op": "test", "path": "/someModule/name", "value": "new"}, add("replicas", 5))
    with pytest.raises(patches.PatchError, match="test"):
        values.frozen(SOME).patched(change)
    plan = values.frozen(SOME, {"name": "new"}).patched(change)
    assert plan.value["replicas"] == 5
    assert "name" not in section(values), "the section itself is as before"


def test_a_module_that_a_hook_switched_on_is_checked_before_helm() -> None:
    values = make_store()
    values.set_config(config_of(someModule="replicas: 0"))
    with pytest.raises(
        schema_violations.InvalidValuesError, match=r"some-module are not ready.*set in values ConfigMap"
    ):
        checks.Checks(values).checking_helm_values(SOME)()


def test_an_edit_is_checked_where_it_changes_something() -> None:
    values = make_store("someModule: {replicas: 0}\nsomeModuleEnabled: true")
    assert checks.Checks(values).edit_violations(config_of()) == [], "what is in force was checked before"
    edited = config_of(someModule="name: x")
    assert [v.path for v in checks.Checks(values).edit_violations(edited)] == ["someModule.replicas"]


def test_an_edit_that_switches_a_module_on_checks_all_of_it() -> None:
    values = make_store("someModule: {replicas: 0}")
    edited = config_of(someModuleEnabled="true")
    assert [v.path for v in checks.Checks(values).edit_violations(edited)] == ["someModule.replicas"]


GROWS = """
    properties: {min: {type: integer}, other: {}}
    x-kubernetes-validations: [{rule: self.min >= oldSelf.min}]
"""


def growing(files: str = "someModuleEnabled: true", *, values_only: bool = False) -> store.ValuesStore:
    """A store in which ``min`` may only grow; ``values_only``: as the values schema says alone."""
    common = sources.parse_common_values(files, "modules/values.yaml")
    part = (GROWS, "schema")
    loaded = schemas.load_schemas(None, part) if values_only else schemas.load_schemas(part)
    return store.ValuesStore([store.ModuleValues(SOME, common, schemas=loaded)], [common])


@rows.each("files", ["", "someModule: {min: 9}", "someModule: {other: 1}"])
def test_a_rule_about_a_change_takes_the_first_values_of_a_process(files: str) -> None:
    values = growing(files)
    assert (
        checks.Checks(values).config_violations(config_of(someModule="min: 3", someModuleEnabled="true"))
        == []
    )


def test_a_rule_about_a_change_compares_with_the_values_that_were_in_force() -> None:
    values = growing()
    values.set_config(config_of(someModule="min: 3"))
    assert checks.Checks(values).config_violations(config_of(someModule="min: 4")) == []
    assert [v.path for v in checks.Checks(values).config_violations(config_of(someModule="min: 2"))] == [
        "someModule"
    ]
    assert checks.Checks(values).config_violations(config_of(someModule="min: 3")) == []
    values.set_config(config_of(someModule="min: 5"))
    assert len(checks.Checks(values).config_violations(config_of(someModule="min: 4"))) == 1


def test_what_was_said_of_a_disabled_module_was_in_force_for_nobody() -> None:
    values = growing("")
    values.set_config(config_of(someModule="min: 5"))
    assert (
        checks.Checks(values).config_violations(config_of(someModule="min: 3", someModuleEnabled="true"))
        == []
    )


def test_the_first_patch_of_a_hook_has_no_old_value_and_the_next_one_has() -> None:
    values = growing(values_only=True)
    values.apply_values_patch(SOME, patch(add("min", 3)))
    values.apply_values_patch(SOME, patch(add("min", 4)))
    with pytest.raises(schema_violations.InvalidValuesError):
        values.apply_values_patch(SOME, patch(add("min", 2)))


def test_the_check_before_helm_compares_with_what_it_allowed_last() -> None:
    values = growing(values_only=True)
    values.set_config(config_of(someModule="min: 5"))
    checks.Checks(values).checking_helm_values(SOME)()
    values.set_config(config_of(someModule="min: 3"))
    for _ in range(2):
        with pytest.raises(schema_violations.InvalidValuesError, match="not ready for Helm"):
            checks.Checks(values).checking_helm_values(SOME)()
    values.set_config(config_of(someModule="min: 6"))
    checks.Checks(values).checking_helm_values(SOME)()


def test_a_module_that_was_removed_begins_with_first_values_again() -> None:
    values = growing(values_only=True)
    values.set_config(config_of(someModule="min: 5"))
    checks.Checks(values).checking_helm_values(SOME)()
    values.drop_patches(SOME)
    values.set_config(config_of(someModule="min: 3"))
    checks.Checks(values).checking_helm_values(SOME)()
