"""References that stay as they are, found by names alone."""

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from addon_operator import expansion
from addon_operator.expansion import services
from tests.support import rows

CONFIG_MAPS: dict[str, dict[str, str]] = {"c": {"A": "1", "B_A": "$(C)"}, "d": {"A=B": "x", "C": ""}}
SECRETS: dict[str, dict[str, str]] = {"s": {"B": "hunter2", "A": ""}}

NAMES = st.sampled_from(["A", "B", "C", "B_A", "B_B", "A=B", "B_", "", "x y", "DB_PORT", "KUBERNETES_PORT"])
TEXTS = st.lists(
    st.one_of(NAMES.map(lambda name: f"$({name})"), st.sampled_from(["$$", "$(", ")", "$", "a"])), max_size=4
).map("".join)
SOURCES = st.sampled_from(["c", "d", "s", "missing"])
OPTIONAL = st.sampled_from([True, False, None])


def references(field_names: tuple[str, str]) -> st.SearchStrategy[dict[str, Any]]:
    def named(field: str, name: str, optional: bool | None, **more: str) -> dict[str, Any]:
        return {field: {"name": name, "optional": optional, **more}}

    return st.builds(named, st.sampled_from(field_names), SOURCES, OPTIONAL)


def with_key(reference: dict[str, Any], key: str) -> dict[str, Any]:
    return {field: {**given, "key": key} for field, given in reference.items()}


KEYS = st.builds(with_key, references(("configMapKeyRef", "secretKeyRef")), st.sampled_from(["A", "B", "Z"]))
FIELDS = st.sampled_from(["status.podIP", "metadata.labels['a']", "metadata.labels['none']"]).map(
    lambda path: {"fieldRef": {"fieldPath": path}}
)
VARIABLES = st.one_of(
    st.builds(lambda name, value: {"name": name or "N", "value": value}, NAMES, TEXTS),
    st.builds(
        lambda name, source: {"name": name or "N", "valueFrom": source}, NAMES, st.one_of(KEYS, FIELDS)
    ),
)
PREFIXES = st.sampled_from(["", "B", "B_", "$"])
ENV_FROM = st.builds(
    lambda reference, prefix: {**reference, "prefix": prefix},
    references(("configMapRef", "secretRef")),
    PREFIXES,
)
CONTAINERS = st.fixed_dictionaries(
    {
        "env": st.lists(VARIABLES, max_size=6),
        "envFrom": st.lists(ENV_FROM, max_size=3),
        "command": st.one_of(st.lists(TEXTS, max_size=2), st.just(["sh", "-c"])),
        "args": st.lists(TEXTS, max_size=2),
        "volumeMounts": st.lists(
            TEXTS.map(lambda text: {"mountPath": "/v", "subPathExpr": text}), max_size=2
        ),
    }
)


def service(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}}


@settings(max_examples=max(50, settings().max_examples), deadline=None)
@given(CONTAINERS, st.sampled_from([[], ["db"], ["db", "kubernetes"]]), st.booleans())
def test_it_finds_what_building_the_environment_finds(
    container: dict[str, Any], own: list[str], links: bool
) -> None:
    objects, masters = [service(name) for name in own], [service("kubernetes")]
    pod = {"metadata": {"labels": {"a": "1", "none": ""}}, "spec": {"enableServiceLinks": links}}
    built = expansion.container_environment(
        pod,
        container,
        services=objects,
        config_maps=CONFIG_MAPS,
        secrets=SECRETS,
        master_services=masters,
    )
    visible = services.visible_names(
        frozenset(expansion.service_environment(objects if links else [])),
        frozenset(expansion.service_environment(masters)),
    )
    found = expansion.unresolved_references(
        pod,
        container,
        config_maps=CONFIG_MAPS,
        secrets=SECRETS,
        empty={("ConfigMap", "d", "C"), ("Secret", "s", "A")},
        service_variables=visible,
    )
    assert [everything(one) for one in found] == [everything(one) for one in built.unresolved]


def everything(one: expansion.UnresolvedReference) -> tuple[object, ...]:
    return one, one.pending, one.in_script, one.is_fatal


class Counted(frozenset[str]):
    """Keys that count how often they are asked about."""

    asked: int = 0

    @override
    def __contains__(self, key: object) -> bool:
        self.asked += 1
        return super().__contains__(key)


def unresolved(container: dict[str, Any], keys: Counted) -> list[str]:
    found = expansion.unresolved_references(
        {}, container, config_maps={"c": keys}, secrets={}, service_variables=()
    )
    return [one.name for one in found]


def test_variables_that_refer_to_variables_ten_times_each_are_never_expanded() -> None:
    names = [f"V{number}" for number in range(40)]
    env = [{"name": "V0", "value": "x"}]
    env += [{"name": name, "value": f"$({before})" * 10} for before, name in itertools.pairwise(names)]
    # Expanded, this would have 10^39 characters.
    assert unresolved({"env": env, "args": ["$(V39) $(W)"]}, Counted()) == ["W"]


def test_a_name_is_looked_up_once_however_often_it_is_referred_to() -> None:
    keys = Counted({"A"})
    container = {"envFrom": [{"configMapRef": {"name": "c"}}], "args": ["$(A) $(B)" * 1000] * 10}
    assert unresolved(container, keys) == ["B"] * 10
    assert keys.asked == 2


def test_no_more_references_are_looked_for_than_are_wanted() -> None:
    keys = Counted()
    container = {
        "env": [{"name": f"N{number}", "value": f"$(A{number})"} for number in range(100)],
        "envFrom": [{"configMapRef": {"name": "c"}}],
        "args": ["".join(f"$(B{number})" for number in range(100))],
    }
    for most in (1, 100, 130):
        keys.asked = 0
        found = expansion.unresolved_references(
            {}, container, config_maps={"c": keys}, secrets={}, service_variables=(), most=most
        )
        assert (len(found), keys.asked) == (most, most)


def test_a_name_is_looked_up_only_behind_prefixes_that_begin_it() -> None:
    keys = Counted({"K"})
    prefixes = [f"P{number}_" for number in range(1000)]
    container = {
        "envFrom": [{"prefix": prefix, "configMapRef": {"name": "c"}} for prefix in prefixes],
        "args": [f"$({prefix}K) $({prefix}L)" for prefix in prefixes],
    }
    assert len(unresolved(container, keys)) == 1000
    assert keys.asked == 2000


@rows.each("length", [253, 254])
def test_no_key_is_longer_than_those_of_config_maps(length: int) -> None:
    keys = Counted({"k" * 254})
    container = {"envFrom": [{"configMapRef": {"name": "c"}}], "args": [f"$({'k' * length})"]}
    assert len(unresolved(container, keys)) == 1
    assert keys.asked == (1 if length == 253 else 0)
