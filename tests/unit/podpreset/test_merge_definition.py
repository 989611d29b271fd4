"""The merge comes to what its definition says, whatever is merged and in whatever order."""

import datetime as dt
import functools
import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import jsonpatch
import msgspec

from addon_operator.podpreset import merge, model
from addon_operator.podpreset.model import SourceRef
from tests.unit.podpreset import builders, definition
from tests.unit.podpreset.builders import config_map, container, env, pod, preset, secret

CASES = 200
KEYS = {
    SourceRef("ConfigMap", "c"): ["A", "B"],
    SourceRef("Secret", "c"): ["A", "P_A"],
    SourceRef("Secret", "s"): [],
}
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


class Case:
    """Few names and values, so that entries meet."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        volumes = self._some(3, self._volume)
        self.pod = pod(*(self._container() for _ in range(self._up_to(2) or 1)), volumes=volumes)
        self.presets = [self._preset(number) for number in range(1 + self._up_to(3))]

    def _up_to(self, most: int) -> int:
        return self._random.randint(0, most)

    def _one_of(self, *choices: Any) -> Any:  # noqa: ANN401 - of whatever is given
        return self._random.choice(choices)

    def _some(self, most: int, make: Any) -> list[Any]:  # noqa: ANN401 - one of the methods
        return [make() for _ in range(self._up_to(most))]

    def _env(self) -> dict[str, Any]:
        return env(self._one_of("A", "B", "P_A", "P_B", "P_P_A"), self._one_of("1", "1", "2"))

    def _source(self) -> dict[str, Any]:
        made: dict[str, Any] = self._one_of(config_map, secret)(self._one_of("c", "c", "s", "gone"))
        return {**made, **self._one_of({}, {"prefix": "P_"})}

    def _volume(self, name: str = "") -> dict[str, Any]:
        content = self._one_of({}, {"emptyDir": {}}, {"secret": {"secretName": "s"}})
        return {"name": name or self._one_of("u", "v", "w"), **content}

    def _mount(self) -> dict[str, Any]:
        more = self._one_of({}, {"readOnly": False}, {"readOnly": True})
        return {"name": self._one_of("u", "v", "w"), "mountPath": self._one_of("/a", "/b", "/c"), **more}

    def _container(self) -> dict[str, Any]:
        mounts = self._some(3, self._mount)
        return container(
            env=self._some(3, self._env), envFrom=self._some(2, self._source), volumeMounts=mounts
        )

    def _preset(self, number: int) -> model.Preset:
        mounts = list({mount["mountPath"]: mount for mount in self._some(2, self._mount)}.values())
        volumes = [self._volume(name) for name in sorted({mount["name"] for mount in mounts})]
        lists: dict[str, Any] = {"env": [env("ALWAYS"), *self._some(2, self._env)]}
        lists["envFrom"] = self._some(2, self._source)
        if mounts:
            lists |= {"volumeMounts": mounts, "volumes": volumes}
        return preset(f"p{number}", **lists)


@functools.cache
def case_of(seed: int) -> Case:
    """Nothing changes a case, and every test wants the same."""
    return Case(seed)


def injected(given: builders.Pod, presets: Sequence[model.Preset]) -> merge.Injection | merge.Conflicted:
    return merge.inject(given, presets, KEYS.get)


def found(result: merge.Injection | merge.Conflicted) -> dict[str, list[str]]:
    if isinstance(result, merge.Injection):
        return {}
    return {str(conflict.preset): sorted(conflict.problems) for conflict in result.conflicts}


def in_every_order(presets: Sequence[model.Preset]) -> Iterator[list[model.Preset]]:
    for order in itertools.permutations(presets):
        yield [
            msgspec.structs.replace(one, created=START + dt.timedelta(days=day))
            for day, one in enumerate(order)
        ]


def test_the_conflicts_are_those_of_the_definition() -> None:
    sizes = set()
    for seed in range(CASES):
        case = case_of(seed)
        expected = definition.conflicts(case.pod, case.presets, KEYS)
        assert found(injected(case.pod, case.presets)) == expected, f"case {seed}"
        sizes.add(len(expected))
    assert sizes >= {0, 1, 2}


def test_which_preset_is_older_does_not_decide_whether_there_is_a_conflict() -> None:
    for seed in range(CASES // 3):
        case = case_of(seed)
        verdicts = {type(injected(case.pod, presets)) for presets in in_every_order(case.presets)}
        assert len(verdicts) == 1, f"case {seed}"


def test_what_was_injected_once_is_left_alone_the_second_time() -> None:
    injections = 0
    for seed in range(CASES):
        case = case_of(seed)
        first = injected(case.pod, case.presets)
        if isinstance(first, merge.Injection):
            changed = jsonpatch.apply_patch(case.pod, list(first.patch))
            again = injected(changed, case.presets)
            assert isinstance(again, merge.Injection), f"case {seed}"
            assert again.patch == (), f"case {seed}"
            injections += 1
    assert injections > 20
