"""Finding the presets of a pod among many."""

import itertools

import hypothesis
from hypothesis import strategies
from typing_extensions import override

from addon_operator.podpreset import model, selection
from tests.unit.podpreset.builders import env, preset


def selecting(name: str, selector: object, namespace: str = "n") -> model.Preset:
    return preset(name, namespace=namespace, selector=selector, env=[env("A")])


def equal(**labels: str) -> dict[str, object]:
    return {"matchLabels": labels}


def required(operator: str, *values: str) -> dict[str, object]:
    one = {"key": "a", "operator": operator, **({"values": list(values)} if values else {})}
    return {"matchExpressions": [one]}


def filled(*presets: model.Preset) -> selection.PresetIndex:
    presets_of = selection.PresetIndex()
    for one in presets:
        presets_of.put(one)
    return presets_of


def names(found: tuple[model.Preset, ...]) -> list[str]:
    return [one.name for one in found]


def test_presets_of_another_namespace_are_not_found() -> None:
    held = filled(selecting("p", equal(a="1")), selecting("q", equal(a="1"), namespace="other"))
    assert names(held.match("n", {"a": "1"})) == ["p"]
    assert names(held.match("nowhere", {"a": "1"})) == []


def test_a_preset_replaces_the_one_of_its_name() -> None:
    held = filled(selecting("p", equal(a="1")), selecting("p", equal(b="2")))
    assert names(held.match("n", {"a": "1"})) == []
    assert names(held.match("n", {"b": "2"})) == ["p"]


def test_a_removed_preset_is_not_found_and_removing_it_twice_is_fine() -> None:
    held = filled(selecting("p", equal(a="1")), selecting("q", equal(a="1")))
    for _ in range(2):
        held.remove("n", model.PresetName("p"))
    held.remove("nowhere", model.PresetName("p"))
    assert names(held.match("n", {"a": "1"})) == ["q"]
    held.remove("n", model.PresetName("q"))
    assert held.match("n", {"a": "1"}) == ()


def test_a_preset_being_deleted_is_not_found() -> None:
    assert (
        filled(preset(env=[env("A")], deleted="2024-01-01T00:00:00Z")).match("n", {"role": "frontend"}) == ()
    )


def test_presets_come_in_the_order_of_their_application() -> None:
    old = preset("z", env=[env("A")], created="2023-01-01T00:00:00Z")
    assert names(
        filled(preset("b", env=[env("A")]), preset("a", env=[env("A")]), old).match("n", {"role": "frontend"})
    ) == ["z", "a", "b"]


def test_a_label_that_few_presets_share_leads_to_them() -> None:
    held = filled(*(selecting(f"p{number}", equal(team="a", role=f"r{number}")) for number in range(100)))
    compared: list[str] = []

    class Counting(dict[str, str]):
        @override
        def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]  # one use
            compared.append(key)
            return super().get(key, default)

    assert names(held.match("n", Counting(team="a", role="r7"))) == ["p7"]
    assert len(compared) <= 4


SELECTORS = (
    equal(a="1"),
    equal(a="1", b="2"),
    required("In", "1", "2"),
    required("NotIn", "1"),
    required("Exists"),
    required("DoesNotExist"),
    {**equal(b="1"), **required("NotIn", "2")},
)
LABELS = [
    {key: value for key, value in (("a", a), ("b", b)) if value is not None}
    for a, b in itertools.product((None, "", "1", "2"), repeat=2)
]


@hypothesis.given(
    strategies.lists(strategies.tuples(strategies.integers(0, 9), strategies.sampled_from(SELECTORS)))
)
def test_the_index_finds_what_a_look_at_each_preset_finds(
    changes: list[tuple[int, dict[str, object]]],
) -> None:
    held, plain = selection.PresetIndex(), dict[str, model.Preset]()
    for number, selector in changes:
        one = selecting(f"p{number}", selector)
        held.put(one)
        plain[one.name] = one
    for labels in LABELS:
        pod = {"metadata": {"labels": labels}}
        assert held.match("n", labels) == selection.select(pod, plain.values())


def test_a_selector_that_requires_nothing_is_compared_with_every_pod() -> None:
    held = filled(selecting("p", required("DoesNotExist")))
    assert names(held.match("n", {})) == ["p"]
    assert model.compile_selector(required("DoesNotExist")).matches({})
