"""The environment of a container, in the order in which the kubelet builds it."""

import copy
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from addon_operator import expansion
from tests.support import rows

DATABASE = {"metadata": {"name": "db"}, "spec": {"clusterIP": "10.0.0.7", "ports": [{"port": 5432}]}}
MASTER = {"metadata": {"name": "kubernetes"}, "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 443}]}}
CONFIG_MAPS = {"settings": {"HOST": "cm-host", "RAW": "$(HOST)"}, "more": {"HOST": "more-host", "EXTRA": "x"}}
SECRETS = {"login": {"USER": "me", "PASSWORD": "pa$$(ss)"}}


def build(container: dict[str, Any], **spec: object) -> expansion.ContainerEnvironment:
    return expansion.container_environment(
        {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec},
        {"name": "web", **container},
        services=[DATABASE],
        config_maps=CONFIG_MAPS,
        secrets=SECRETS,
        master_services=[MASTER],
    )


def declared(container: dict[str, Any]) -> dict[str, str]:
    return {
        name: value
        for name, value in build(container).env.items()
        if not name.startswith(("DB_", "KUBERNETES_"))
    }


def variables(*entries: tuple[str, str | dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"name": name, "value": value} if isinstance(value, str) else {"name": name, "valueFrom": value}
        for name, value in entries
    ]


def config(name: str, key: str, **more: object) -> dict[str, Any]:
    return {"configMapKeyRef": {"name": name, "key": key, **more}}


def secret(name: str, key: str, **more: object) -> dict[str, Any]:
    return {"secretKeyRef": {"name": name, "key": key, **more}}


def unresolved(found: expansion.ContainerEnvironment) -> list[tuple[str, str]]:
    return [(each.name, each.where) for each in found.unresolved]


def missing(found: expansion.ContainerEnvironment) -> list[tuple[str, str | None, str]]:
    return [(each.source, each.key, each.where) for each in found.missing]


@rows.each(
    ("entries", "env"),
    [
        ([("A", "1"), ("B", "$(A)-2"), ("C", "$(B)-3")], {"A": "1", "B": "1-2", "C": "1-2-3"}),
        ([("A", "1"), ("B", "$(A)"), ("A", "2")], {"A": "2", "B": "1"}),
        ([("B", "$(A)"), ("A", "1")], {"B": "$(A)", "A": "1"}),
        ([("A", "$(A)")], {"A": "$(A)"}),
        ([("A", "1"), ("A", "$(A)2")], {"A": "12"}),
        ([("A", "$$(B)"), ("B", "b"), ("C", "$(A)")], {"A": "$(B)", "B": "b", "C": "$(B)"}),
        ([("A", ""), ("B", "[$(A)]")], {"A": "", "B": "[]"}),
    ],
    ids=["chain", "twice", "forward", "itself, unknown", "itself, known", "escaped", "empty"],
)
def test_each_entry_of_env_sees_those_before_it(entries: list[tuple[str, str]], env: dict[str, str]) -> None:
    assert declared({"env": variables(*entries)}) == env


def test_an_entry_without_value_and_source_is_empty() -> None:
    assert declared({"env": [{"name": "A"}, {"name": "B", "value": None}]}) == {"A": "", "B": ""}


def test_an_entry_refers_to_the_service_of_its_own_name() -> None:
    assert declared({"env": variables(("X", "$(DB_PORT)"))}) == {"X": "tcp://10.0.0.7:5432"}
    assert build({"env": variables(("DB_PORT", "<$(DB_PORT)>"))}).env["DB_PORT"] == "<tcp://10.0.0.7:5432>"


def test_a_variable_of_the_container_hides_that_of_a_service() -> None:
    found = build({"env": variables(("DB_PORT", "mine")), "args": ["$(DB_PORT)", "$(DB_SERVICE_HOST)"]})
    assert found.env["DB_PORT"] == "mine"
    assert found.args == ["mine", "10.0.0.7"]


def test_a_variable_from_env_from_hides_that_of_a_service() -> None:
    found = expansion.container_environment(
        {},
        {"envFrom": [{"configMapRef": {"name": "c"}}], "env": variables(("X", "$(DB_PORT)"))},
        services=[DATABASE],
        config_maps={"c": {"DB_PORT": "mine"}},
        secrets={},
        master_services=[],
    )
    assert (found.env["DB_PORT"], found.env["X"]) == ("mine", "mine")


@rows.each(
    ("links", "expected"),
    [
        ({}, True),
        ({"enableServiceLinks": None}, True),
        ({"enableServiceLinks": True}, True),
        ({"enableServiceLinks": False}, False),
    ],
    ids=["unset", "null", "true", "false"],
)
def test_service_links_are_on_unless_switched_off(links: dict[str, Any], *, expected: bool) -> None:
    found = build({"args": ["$(DB_SERVICE_HOST)"]}, **links)
    assert ("DB_SERVICE_HOST" in found.env) is expected
    assert unresolved(found) == ([] if expected else [("DB_SERVICE_HOST", "args[0]")])
    assert found.env["KUBERNETES_SERVICE_HOST"] == "10.0.0.1"


def test_later_sources_of_env_from_overwrite_earlier_ones_and_env_overwrites_them() -> None:
    container = {
        "envFrom": [{"configMapRef": {"name": "settings"}}, {"configMapRef": {"name": "more"}}],
        "env": variables(("EXTRA", "$(EXTRA)-$(HOST)")),
    }
    assert declared(container) == {"HOST": "more-host", "RAW": "$(HOST)", "EXTRA": "x-more-host"}


def test_values_of_env_from_are_never_expanded_but_may_be_referred_to() -> None:
    container = {
        "envFrom": [{"secretRef": {"name": "login"}}],
        "env": variables(("LOGIN", "$(USER):$(PASSWORD)")),
    }
    assert declared(container) == {"USER": "me", "PASSWORD": "pa$$(ss)", "LOGIN": "me:pa$$(ss)"}
    assert unresolved(build(container)) == []


def test_values_of_value_from_are_never_expanded_but_may_be_referred_to() -> None:
    entries = variables(("HOST", "h"), ("RAW", config("settings", "RAW")), ("URL", "$(RAW)/$(PW)"))
    entries[2:2] = variables(("PW", secret("login", "PASSWORD")))
    assert declared({"env": entries}) == {
        "HOST": "h",
        "RAW": "$(HOST)",
        "PW": "pa$$(ss)",
        "URL": "$(HOST)/pa$$(ss)",
    }


def test_a_prefix_is_put_before_each_key() -> None:
    container = {"envFrom": [{"prefix": "CM_", "configMapRef": {"name": "settings"}}], "args": ["$(CM_HOST)"]}
    assert declared(container) == {"CM_HOST": "cm-host", "CM_RAW": "$(HOST)"}
    assert build(container).args == ["cm-host"]


@rows.each("name", ["a b", "1", "-.", "a.b", "~", "!", "..", "UPPER lower"], ids=repr)
def test_a_key_of_printable_ascii_is_a_variable(name: str) -> None:
    found = build_with_keys({name: "v"})
    assert found.env == {name: "v"}
    assert found.skipped == []


@rows.each("name", ["a=b", "é", "a\tb", "a\n", "", "\x7f", "日"], ids=repr)
def test_any_other_key_is_skipped_and_reported(name: str) -> None:
    found = build_with_keys({"A": "1", name: "v", "B": "2"})
    assert found.env == {"A": "1", "B": "2"}
    assert found.skipped == [expansion.SkippedKey(source="ConfigMap c", key=name, name=name)]


def build_with_keys(keys: dict[str, str], prefix: str = "") -> expansion.ContainerEnvironment:
    return expansion.container_environment(
        {},
        {"envFrom": [{"prefix": prefix, "configMapRef": {"name": "c"}}]},
        services=[],
        config_maps={"c": keys},
        secrets={},
        master_services=[],
    )


def test_a_prefix_may_make_a_key_unfit() -> None:
    skipped = build_with_keys({"A": "1"}, prefix="p=").skipped
    assert skipped == [expansion.SkippedKey(source="ConfigMap c", key="A", name="p=A")]


@rows.each(
    ("ref", "source"),
    [
        ({"configMapRef": {"name": "none"}}, "ConfigMap none"),
        ({"secretRef": {"name": "none"}}, "Secret none"),
    ],
    ids=["ConfigMap", "Secret"],
)
def test_a_required_source_that_does_not_exist_is_missing(ref: dict[str, Any], source: str) -> None:
    assert missing(build({"envFrom": [{"secretRef": {"name": "login"}}, ref]})) == [
        (source, None, "envFrom[1]")
    ]


@rows.each(
    ("value_from", "expected"),
    [
        (config("none", "k"), ("ConfigMap none", None, "env A")),
        (config("settings", "k"), ("ConfigMap settings", "k", "env A")),
        (secret("none", "k"), ("Secret none", None, "env A")),
        (secret("login", "k"), ("Secret login", "k", "env A")),
        (secret("login", "k", optional=False), ("Secret login", "k", "env A")),
    ],
    ids=["ConfigMap", "key of a ConfigMap", "Secret", "key of a Secret", "optional: false"],
)
def test_a_required_key_that_does_not_exist_is_missing(
    value_from: dict[str, Any], expected: tuple[str, str | None, str]
) -> None:
    container = {"env": variables(("A", value_from))}
    assert missing(build(container)) == [expected]
    assert declared(container) == {}


@rows.each(
    "value_from",
    [
        config("none", "k", optional=True),
        config("settings", "k", optional=True),
        secret("none", "k", optional=True),
        secret("login", "k", optional=True),
    ],
    ids=["ConfigMap", "key of a ConfigMap", "Secret", "key of a Secret"],
)
def test_an_optional_source_that_does_not_exist_leaves_the_variable_out(value_from: dict[str, Any]) -> None:
    container = {"env": variables(("A", value_from), ("B", "$(A)"))}
    assert declared(container) == {"B": "$(A)"}
    assert missing(build(container)) == []
    assert unresolved(build(container)) == [("A", "env B")]
    assert not build(container).unresolved[0].pending


def test_an_optional_source_that_does_not_exist_leaves_the_earlier_value() -> None:
    assert declared({"env": variables(("A", "1"), ("A", config("none", "k", optional=True)))}) == {"A": "1"}


def test_an_optional_source_of_env_from_may_be_absent() -> None:
    found = build({"envFrom": [{"configMapRef": {"name": "none", "optional": True}}], "args": ["$(X)"]})
    assert missing(found) == []
    assert [each.pending for each in found.unresolved] == [False]


def test_a_key_with_an_empty_text_is_there() -> None:
    found = expansion.container_environment(
        {},
        {"env": variables(("A", secret("s", "k")))},
        services=[],
        config_maps={},
        secrets={"s": {"k": ""}},
        master_services=[],
    )
    assert (found.env, found.missing) == ({"A": ""}, [])


def test_a_reference_to_a_variable_that_the_container_waits_for_is_pending() -> None:
    entries = variables(("EARLY", "$(A)"), ("A", secret("none", "k")), ("LATE", "$(A)"))
    found = build({"env": entries, "args": ["$(A)", "$(OTHER)"]})
    assert [(each.name, each.where, each.pending) for each in found.unresolved] == [
        ("A", "env EARLY", False),
        ("A", "env LATE", True),
        ("A", "args[0]", True),
        ("OTHER", "args[1]", False),
    ]


def test_a_variable_that_the_container_waits_for_has_no_other_value() -> None:
    entries = variables(("A", "old"), ("A", secret("none", "k")), ("DB_PORT", secret("none", "k")))
    found = build({"env": entries, "args": ["$(A)", "$(DB_PORT)"]})
    assert {"A", "DB_PORT"}.isdisjoint(found.env)
    assert found.args == ["$(A)", "$(DB_PORT)"]


def test_a_later_entry_ends_the_wait_for_a_variable() -> None:
    found = build({"env": variables(("A", secret("none", "k")), ("A", "new")), "args": ["$(A)"]})
    assert found.args == ["new"]
    assert found.unresolved == []


def test_whatever_a_missing_source_of_env_from_may_bring_is_pending() -> None:
    found = build(
        {"envFrom": [{"prefix": "CM_", "configMapRef": {"name": "none"}}], "args": ["$(CM_X)", "$(X)"]}
    )
    assert [(each.name, each.pending) for each in found.unresolved] == [("CM_X", True), ("X", False)]


def test_command_and_args_are_expanded_with_the_final_environment() -> None:
    container = {
        "command": ["run", "", "$(B)", "two words $(A)"],
        "args": ["$(A)$(A)", "$$(A)", "--x=$(NONE)"],
        "env": variables(("A", "1 2"), ("B", "$(LATER)"), ("LATER", "l"), ("A", "3 4")),
    }
    found = build(container)
    assert found.command == ["run", "", "$(LATER)", "two words 3 4"]
    assert found.args == ["3 43 4", "$(A)", "--x=$(NONE)"]
    assert unresolved(found) == [("LATER", "env B"), ("NONE", "args[2]")]


def test_a_container_without_command_and_args_has_none() -> None:
    assert (build({}).command, build({}).args) == ([], [])


def test_unresolved_references_are_distinct_and_in_the_order_of_the_container() -> None:
    container = {
        "args": ["$(Z)", "$(A)$(B)$(A)"],
        "command": ["$(C)"],
        "env": variables(("FOO", "$(Y)$(X)$(Y)"), ("FOO", "$(Y)"), ("BAR", "$(Y)")),
    }
    assert unresolved(build(container)) == [
        ("Y", "env FOO"),
        ("X", "env FOO"),
        ("Y", "env BAR"),
        ("C", "command[0]"),
        ("Z", "args[0]"),
        ("A", "args[1]"),
        ("B", "args[1]"),
    ]


@rows.each("name", ["PATH", "HOSTNAME", "", "date +%s"], ids=repr)
def test_what_the_image_or_a_shell_would_know_is_unresolved(name: str) -> None:
    assert unresolved(build({"args": [f"$({name})"]})) == [(name, "args[0]")]


def test_a_key_of_a_file_is_known_only_in_the_container() -> None:
    ref = {"fileKeyRef": {"volumeName": "v", "path": "env", "key": "TOKEN"}}
    found = build({"env": variables(("T", ref), ("U", "$(T)"))})
    assert (found.env["T"], found.env["U"]) == ("<fileKeyRef TOKEN>", "<fileKeyRef TOKEN>")
    assert found.unresolved == []


def test_a_value_wins_over_a_source() -> None:
    assert declared({"env": [{"name": "A", "value": "v", "valueFrom": config("settings", "HOST")}]}) == {
        "A": "v"
    }


def test_an_empty_value_gives_way_to_a_source() -> None:
    entry = {"name": "A", "value": "", "valueFrom": config("settings", "HOST")}
    assert declared({"env": [entry]}) == {"A": "cm-host"}


def test_nothing_that_is_given_is_changed() -> None:
    container = {
        "envFrom": [{"configMapRef": {"name": "settings"}}],
        "env": variables(("A", "$(HOST)"), ("HOST", secret("none", "k"))),
        "args": ["$(A)"],
    }
    before = copy.deepcopy((container, CONFIG_MAPS, SECRETS, DATABASE, MASTER))
    build(container)
    assert (container, CONFIG_MAPS, SECRETS, DATABASE, MASTER) == before


PIECES = st.lists(
    st.sampled_from(["$(A)", "$(B)", "$(HOST)", "$(DB_PORT)", "$(NONE)", "$$", "x"]), max_size=5
)
TEXTS = PIECES.map("".join)


@given(
    st.lists(st.tuples(st.sampled_from(["A", "B", "HOST"]), TEXTS), max_size=6), st.lists(TEXTS, max_size=3)
)
@settings(deadline=None)
def test_args_are_the_text_with_the_final_environment_and_every_gap_is_reported(
    entries: list[tuple[str, str]], args: list[str]
) -> None:
    found = build(
        {"envFrom": [{"configMapRef": {"name": "settings"}}], "env": variables(*entries), "args": args}
    )
    mapping = expansion.mapping_func_for(None, found.env)
    assert found.args == [expansion.expand(arg, mapping) for arg in args]
    gaps = {
        name for arg in args for name in re.findall(r"\$\(([^)]*)\)", arg.replace("$$", ""))
    } - found.env.keys()
    assert {name for name, where in unresolved(found) if where.startswith("args")} == gaps


def mounted(expression: str, **more: object) -> dict[str, Any]:
    return {"volumeMounts": [{"name": "v", "mountPath": "/v", "subPathExpr": expression}], **more}


def test_where_a_mount_begins_is_expanded_with_the_final_environment() -> None:
    found = build(
        mounted("logs/$(POD)/$$(POD)", env=[{"name": "POD", "value": "a"}, {"name": "POD", "value": "b"}])
    )
    assert [(each.mount_path, each.value) for each in found.sub_paths] == [("/v", "logs/b/$(POD)")]
    assert found.unresolved == []


def test_a_mount_without_an_expression_begins_nowhere_else() -> None:
    found = build({"volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "$(A)"}]})
    assert (found.sub_paths, found.unresolved) == ([], [])


def test_any_name_without_a_value_in_the_path_of_a_mount_is_fatal() -> None:
    found = build(mounted("$(NOPE)/$()/$(EMPTY)", env=[{"name": "EMPTY", "value": ""}]))
    assert [(each.name, each.where, each.is_fatal, each.is_variable) for each in found.unresolved] == [
        (name, "subPathExpr of volumeMounts[0]", True, True) for name in ("NOPE", "", "EMPTY")
    ]
    assert found.sub_paths[0].value == "$(NOPE)/$()/$(EMPTY)"
