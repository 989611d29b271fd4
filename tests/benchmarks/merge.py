"""What merging many presets into a pod costs, beside comparing every entry with every other one."""

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from addon_operator.kernel import json_types
from addon_operator.podpreset import merge, model
from tests.benchmarks import measures
from tests.unit.podpreset import definition

BASELINE: Final = "every entry with every other"
_MOUNTS: Final = 128
_PRESETS: Final = 40
_ROUNDS: Final = 20
_LINEAR: Final = 3.0
"""How much longer twice as many presets may take; if it were quadratic, it would be 4."""


def run() -> list[measures.Row]:
    """All measurements; takes about five seconds."""
    pod = {"metadata": {}, "spec": {"containers": [{"name": "web", "image": "web"}]}}
    few, many = _presets(_PRESETS), _presets(2 * _PRESETS)
    quadratic = _milliseconds(lambda: definition.conflicts(pod, few, {}), 1)
    ours, twice = (_milliseconds(functools.partial(_merge, pod, presets), _ROUNDS) for presets in (few, many))
    quantity = "processor time (ms)"
    return [
        measures.Row("merge", f"{_PRESETS} presets, {_MOUNTS} mounts each", quantity, ours,
                     BASELINE, quadratic, "< 0.2 baselines", ours < 0.2 * quadratic),
        measures.Row("merge", f"{2 * _PRESETS} presets, {_MOUNTS} mounts each", quantity, twice,
                     f"{_PRESETS} presets", ours, f"< {_LINEAR} baselines", twice < _LINEAR * ours),
    ]  # fmt: skip


def _merge(pod: json_types.KubernetesObject, presets: Sequence[model.Preset]) -> object:
    return merge.inject(pod, presets, lambda _: None)


def _presets(count: int) -> list[model.Preset]:
    return [_preset(number) for number in range(count)]


def _preset(number: int) -> model.Preset:
    names = [f"v-{number}-{mount}" for mount in range(_MOUNTS)]
    spec: dict[str, Any] = {
        "selector": {"matchLabels": {"role": "frontend"}},
        "env": [{"name": f"A_{number}", "value": "x"}],
        "volumes": [{"name": name, "emptyDir": {}} for name in names],
        "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in names],
    }
    parsed = model.parse({"metadata": {"name": f"p{number}", "namespace": "shop"}, "spec": spec})
    if not isinstance(parsed, model.Preset):
        raise TypeError(str(parsed))
    return parsed


def _milliseconds(call: Callable[[], object], rounds: int) -> float:
    """Processor time, the least of some rounds."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return min(found) * 1000
