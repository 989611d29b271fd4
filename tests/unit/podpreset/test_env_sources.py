"""Variables that one side sets with env and another with envFrom."""

from typing import Any

from addon_operator.podpreset import env_sources, merge, model
from addon_operator.podpreset.model import SourceRef
from tests.support import rows
from tests.unit.podpreset.builders import (
    config_map,
    container,
    env,
    injected,
    messages,
    only,
    pod,
    preset,
    secret,
)

C_HAS_A = {("ConfigMap", "c"): ["A"]}


def test_a_variable_of_the_preset_that_the_pods_envfrom_defines_is_a_conflict() -> None:
    given = pod(container(envFrom=[config_map("c")]))
    assert messages(given, preset(env=[env("A")]), keys=C_HAS_A) == only(
        "Env A is also set by envFrom ConfigMap c."
    )


def test_a_variable_of_the_pod_that_the_presets_envfrom_defines_is_a_conflict() -> None:
    given = pod(container(env=[env("A")]))
    found = messages(given, preset(envFrom=[secret("s")]), keys={("Secret", "s"): ["B", "A"]})
    assert found == only("Env A is also set by envFrom Secret s.")


@rows.each("third", ["0", "z"], ids=["the oldest", "the youngest"])
def test_a_third_preset_does_not_excuse_two_others(third: str) -> None:
    both = preset(third, env=[env("A")], envFrom=[config_map("c")])
    found = messages(
        pod(), preset("a", env=[env("A")]), preset("p", envFrom=[config_map("c")]), both, keys=C_HAS_A
    )
    assert found == only("Env A is also set by envFrom ConfigMap c.")


@rows.each("both_is_older", [True, False])
def test_a_variable_of_the_pod_that_one_preset_has_with_its_source_is_not_a_conflict_of_another(
    both_is_older: bool,
) -> None:
    both: dict[str, Any] = {"env": [env("A")], "envFrom": [config_map("c")]}
    ages = ("2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z")
    presets = (
        preset("both", created=ages[not both_is_older], **both),
        preset("from-only", created=ages[both_is_older], envFrom=[config_map("c")]),
    )
    injected(pod(container(env=[env("A")])), *presets, keys=C_HAS_A)


@rows.each("env_is_older", [True, False], ids=["env is older", "envFrom is older"])
def test_a_preset_that_repeats_a_variable_of_the_pod_is_not_in_conflict_about_it(env_is_older: bool) -> None:
    sets, reads = ("a", "p") if env_is_older else ("p", "a")
    presets = preset(sets, env=[env("A")]), preset(reads, envFrom=[config_map("c")])
    found = messages(pod(container(env=[env("A")])), *presets, keys=C_HAS_A)
    assert found == {reads: "Conflict on pod preset. Env A is also set by envFrom ConfigMap c."}


def test_the_prefix_is_part_of_the_name() -> None:
    given = pod(container(envFrom=[config_map("c", prefix="P_")]))
    injected(given, preset(env=[env("A")]), keys=C_HAS_A)
    assert messages(given, preset(env=[env("P_A")]), keys=C_HAS_A) == only(
        "Env P_A is also set by envFrom ConfigMap c."
    )


def test_each_container_is_judged_for_itself() -> None:
    given = pod(container("one"), initContainers=[container("init", envFrom=[config_map("c")])])
    assert messages(given, preset(env=[env("A")]), keys=C_HAS_A) == only(
        "Env A is also set by envFrom ConfigMap c."
    )


def needed(*presets: model.Preset, **own: object) -> set[tuple[str, str]]:
    return {
        (source.kind, source.name) for source in env_sources.sources_needed(pod(container(**own)), presets)
    }


def test_no_source_is_needed_when_no_other_side_sets_variables() -> None:
    assert needed(preset(env=[env("A")], envFrom=[config_map("c")])) == set()
    assert needed(preset(envFrom=[config_map("c")]), envFrom=[secret("s")]) == set()


def test_the_sources_of_other_sides_are_needed() -> None:
    first = preset("a", env=[env("A")], envFrom=[config_map("a")])
    second = preset("b", env=[env("B")], envFrom=[secret("b")])
    assert needed(first, second, envFrom=[config_map("own")]) == {
        ("ConfigMap", "a"),
        ("Secret", "b"),
        ("ConfigMap", "own"),
    }


def test_a_source_whose_prefix_fits_no_variable_is_not_needed() -> None:
    assert needed(preset(envFrom=[config_map("c", prefix="P_")]), env=[env("A")]) == set()
    assert needed(preset(envFrom=[config_map("c", prefix="P_")]), env=[env("P_A")]) == {("ConfigMap", "c")}


def test_merging_asks_for_the_needed_sources_and_no_others() -> None:
    presets = (
        preset("a", env=[env("A")], envFrom=[config_map("a"), config_map("x", prefix="X_")]),
        preset("b", env=[env("B")], envFrom=[secret("b")]),
    )
    given = pod(container(env=[env("C")], envFrom=[config_map("own")]))
    asked: list[SourceRef] = []
    result = merge.inject(given, presets, asked.append)
    assert isinstance(result, merge.Injection)
    assert set(asked) == env_sources.sources_needed(given, presets)
    assert {source.name for source in asked} == {"a", "b", "own"}


def test_a_source_is_named_as_in_messages() -> None:
    assert str(SourceRef("Secret", "s")) == "Secret s"


def test_an_entry_without_a_source_is_of_no_account() -> None:
    given = pod(container(envFrom=[{"prefix": "A"}]))
    injected(given, preset(env=[env("A")]), keys=C_HAS_A)
