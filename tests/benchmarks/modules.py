"""What module.yaml costs at the start: those who have none, and those who have one."""

import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Final

from addon_operator.loading import module_files
from addon_operator.modules import module_config
from tests.benchmarks import measures

_MODULES: Final = 100
_ROUNDS: Final = 15
_AIM: Final = 0.1
_VALUES: Final = "".join(f"  key{number}: value {number}\n" for number in range(20))
_MODULE_YAML: Final = """\
description: One of many
releaseName: release-{number}
sensitive: [auth.password, "*.secretKey"]
chart:
  global: [domain]
"""


def run() -> list[measures.Row]:
    """All measurements; takes some seconds."""
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        plain, described = root / "plain", root / "described"
        for number in range(_MODULES):
            _write(plain, number)
            path = _write(described, number)
            (path / module_config.FILE).write_text(_MODULE_YAML.format(number=number))
        return [_without(plain), _with(described, plain)]


def _write(root: pathlib.Path, number: int) -> pathlib.Path:
    path = root / f"{number:03}-module{number}"
    (path / "templates").mkdir(parents=True)
    (path / "Chart.yaml").write_text(f"apiVersion: v2\nname: module{number}\nversion: 1.0.0\n")
    (path / "values.yaml").write_text(f"module{number}Enabled: true\nmodule{number}:\n{_VALUES}")
    return path


def _without(plain: pathlib.Path) -> measures.Row:
    """The operator asks for two files that are not there; nothing else is done."""
    paths = sorted(plain.iterdir())

    def ask() -> None:
        for path in paths:
            (path / module_config.FILE).exists()
            (path / module_config.CHART_DIRECTORY / "Chart.yaml").is_file()

    asking, loading = _median_ms(ask), _median_ms(lambda: module_files.load([plain], 1))
    return measures.Row(
        "modules",
        f"{_MODULES} modules without module.yaml: to see that there is none",
        "ms of CPU",
        asking,
        "load them",
        loading,
        f"<= {_AIM:g} baselines",
        asking <= _AIM * loading,
    )


def _with(described: pathlib.Path, plain: pathlib.Path) -> measures.Row:
    return measures.Row(
        "modules",
        f"load {_MODULES} modules with module.yaml",
        "ms of CPU",
        _median_ms(lambda: module_files.load([described], 1)),
        "without module.yaml",
        _median_ms(lambda: module_files.load([plain], 1)),
    )


def _median_ms(call: Callable[[], object]) -> float:
    found = []
    for _ in range(_ROUNDS):
        began = time.thread_time()
        call()
        found.append(time.thread_time() - began)
    return statistics.median(found) * 1000
