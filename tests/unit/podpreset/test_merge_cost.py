"""What merging presets into a pod costs, and how much it may."""

from typing import Any

import pytest
from typing_extensions import override

from addon_operator.podpreset import merge, model
from addon_operator.podpreset.model import SourceRef
from tests.support import rows
from tests.unit.podpreset.builders import config_map, container, env, inject, pod, preset


class Counted(dict[str, Any]):
    """An entry that counts how often somebody looks into it."""

    looks = 0

    @override
    def get(self, key: str, default: object = None) -> Any:
        Counted.looks += 1
        return super().get(key, default)


def mounting(number: int, mounts: int) -> model.Preset:
    names = [f"v-{number}-{mount}" for mount in range(mounts)]
    return preset(
        f"p{number}",
        volumes=[{"name": name, "emptyDir": {}} for name in names],
        volumeMounts=[{"name": name, "mountPath": f"/{name}"} for name in names],
    )


def test_the_mounts_of_a_pod_are_not_looked_through_for_each_mount_of_each_preset() -> None:
    own = [Counted(name="v", mountPath=f"/own-{number}") for number in range(100)]
    Counted.looks = 0
    result = inject(pod(container(volumeMounts=own)), *(mounting(number, 10) for number in range(10)))
    assert isinstance(result, merge.Injection)
    assert Counted.looks <= 4 * len(own)


def test_many_mounts_at_the_path_of_a_preset_are_compared_once() -> None:
    # The API server refuses such a pod, but not before it was asked about.
    own = [Counted(name="v", mountPath="/same", subPath=str(number)) for number in range(100)]
    presets = [
        preset(f"p{number}", volumes=[{"name": "v"}], volumeMounts=[{"name": "v", "mountPath": "/same"}])
        for number in range(10)
    ]
    Counted.looks = 0
    result = inject(pod(container(volumeMounts=own)), *presets)
    assert isinstance(result, merge.Conflicted)
    assert len(result.conflicts) == len(presets)
    assert Counted.looks <= 4 * len(own)


def test_sources_are_asked_for_once_for_all_containers_and_presets() -> None:
    presets = [
        preset(f"p{number}", env=[env(f"A{number}")], envFrom=[config_map(f"c{number % 10}")])
        for number in range(50)
    ]
    asked: list[SourceRef] = []
    merge.inject(pod(*(container(f"c{number}") for number in range(10))), presets, asked.append)
    assert len(asked) == len(set(asked)) == 10


def test_the_variables_of_a_preset_that_a_source_sets_are_not_reported_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("addon_operator.podpreset.env_sources.CLASHES_MAX", 3)
    names = [f"A{number}" for number in range(10)]
    given = pod(container(envFrom=[config_map("c")]))
    result = inject(given, preset(env=[env(name) for name in names]), keys={("ConfigMap", "c"): names})
    assert isinstance(result, merge.Conflicted)
    assert len(result.conflicts[0].problems) == 3


def many(count: int, entries: int, size: int = 1) -> list[model.Preset]:
    variables = [env(f"A{number}", "x" * size) for number in range(entries)]
    return [preset(f"p{number}", env=variables) for number in range(count)]


TOO_MUCH = {
    "too many presets": (
        [1, merge.PRESETS_MAX + 1, 1],
        "No preset was injected: 1001 presets match the pod, and 1000 may.",
    ),
    "too many entries": (
        [11, 5, 1000],
        (
            "No preset was injected: the presets that match the pod have 55000 entries for its containers, "
            "and 50000 may be."
        ),
    ),
    "too many characters": (
        [11, 1, 8, 100_000],
        "No preset was injected: the presets that match the pod add more than 8388608 characters to it.",
    ),
}


@rows.each(("numbers", "message"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_more_than_may_be_merged_is_an_error(numbers: list[int], message: str) -> None:
    containers, *of = numbers
    given = pod(*(container(f"c{number}") for number in range(containers)))
    with pytest.raises(merge.MergeCostError) as raised:
        inject(given, *many(*of))
    assert str(raised.value) == message


def test_as_much_as_may_be_merged_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    presets = many(3, 2)
    monkeypatch.setattr(merge, "PRESETS_MAX", 3)
    monkeypatch.setattr(merge, "ENTRIES_MAX", 3 * 2)
    monkeypatch.setattr(merge, "CHARACTERS_MAX", sum(each.characters(1) for each in presets))
    merge.check_cost(pod(), presets)


def test_entries_of_all_lists_count_for_each_container_and_volumes_once_for_the_pod() -> None:
    def sized(volumes: int) -> model.Preset:
        return preset(
            env=[env(f"A{number}") for number in range(2000)],
            envFrom=[config_map(f"c{number}") for number in range(1990)],
            volumes=[{"name": f"v{number}"} for number in range(volumes)],
            volumeMounts=[{"name": f"v{n % volumes}", "mountPath": f"/{n}"} for n in range(1000)],
        )

    given = pod(*(container(f"c{number}") for number in range(10)))
    merge.check_cost(given, [sized(100)])
    with pytest.raises(merge.MergeCostError, match="have 50001 entries"):
        merge.check_cost(given, [sized(101)])


def test_an_entry_that_a_preset_adds_is_not_prepared_anew_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    presets = [preset(f"p{number}", env=[env("A")]) for number in range(3)]
    asked: list[object] = []
    monkeypatch.setattr("addon_operator.podpreset.crd.canonical", lambda *what: asked.append(what))
    assert isinstance(inject(pod(), *presets), merge.Injection)
    assert asked == []
