"""Which presets apply to a pod."""

from typing import Any

from addon_operator.podpreset import selection
from tests.support import rows
from tests.unit.podpreset.builders import env, pod, preset

MATCHING = preset(env=[env("A")])


@rows.each("value", ["x", "", "true"])
def test_a_mirror_pod_is_left_alone_whatever_the_value(value: str) -> None:
    assert selection.select(pod(annotations={selection.MIRROR: value}), [MATCHING]) == ()


def test_a_pod_that_opts_out_is_left_alone() -> None:
    assert selection.select(pod(annotations={selection.EXCLUDE: "true"}), [MATCHING]) == ()


@rows.each("value", ["True", "TRUE", "1", "yes", "", " true", "false"])
def test_only_the_exact_text_true_opts_out(value: str) -> None:
    assert selection.select(pod(annotations={selection.EXCLUDE: value}), [MATCHING]) == (MATCHING,)


def test_a_label_does_not_opt_out() -> None:
    given = pod()
    given["metadata"]["labels"][selection.EXCLUDE] = "true"
    assert selection.select(given, [MATCHING]) == (MATCHING,)


@rows.each("given", [{}, {"metadata": None}, {"metadata": {"labels": None}}])
def test_a_pod_without_labels_matches_no_required_label(given: dict[str, Any]) -> None:
    assert selection.select(given, [MATCHING]) == ()


def test_only_matching_presets_are_selected_wherever_they_stand_in_the_list() -> None:
    others = [
        preset(name, env=[env("A")], selector={"matchLabels": {"role": "backend"}}) for name in ("a", "z")
    ]
    assert selection.select(pod(), [others[0], MATCHING, others[1]]) == (MATCHING,)


def test_a_preset_that_is_being_deleted_is_not_selected() -> None:
    assert selection.select(pod(), [preset(env=[env("A")], deleted="2024-01-02T00:00:00Z")]) == ()


def test_the_oldest_preset_comes_first_and_the_name_decides_among_equals() -> None:
    b, a = preset("b", env=[env("A")]), preset("a", env=[env("A")])
    oldest = preset("z", env=[env("A")], created="2023-12-31T23:59:59Z")
    newest = preset("0", env=[env("A")], created=None)
    assert selection.select(pod(), [newest, b, a, oldest]) == (oldest, a, b, newest)
