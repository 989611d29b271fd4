"""What tests of modules cost: renders and runs of hooks, beside the bare processes; and ``module why``."""

import asyncio
import contextlib
import os
import pathlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator

from addon_operator.commands import offline_why
from addon_operator.testing.modules import module, places, runtime
from tests.benchmarks import measures

_RENDERS = 100
_RUNS = 30
_RENDERS_AIM = 10.0
_RUN_AIM = 20.0
_WHYS = 7
_WHY_AIM = 2.0
_WEB = pathlib.Path(__file__).parents[2] / "modules" / "010-web"
_HOOK = _WEB / "hooks" / "replicas.py"


def run() -> list[measures.Row]:
    """All measurements; takes half a minute."""
    with runtime.Runtime() as running:
        web = module.Modules(running, places.of_module(_WEB))("web")
        return [_renders(running, web), *_hook_runs(web), _why()]


@contextlib.contextmanager
def _timed(samples: list[float]) -> Iterator[None]:
    began = time.perf_counter()
    yield
    samples.append(time.perf_counter() - began)


def _renders(running: runtime.Runtime, web: module.Module) -> measures.Row:
    values = web.hook("replicas.py").run().values
    binary = running.call(running.helm()).binary.path
    ours: list[float] = []
    bare: list[float] = []
    with tempfile.TemporaryDirectory() as directory:
        given = pathlib.Path(directory, "values.yaml")
        given.write_text("global: {}\nweb: {title: x, links: [], image: x, internal: {replicas: 1}}\n")
        command = [str(binary), "template", "web", str(_WEB), "--values", str(given)]
        for _ in range(_RENDERS):
            with _timed(ours):
                web.render(values)
            with _timed(bare):
                subprocess.run(command, check=True, capture_output=True)
    total = sum(ours)
    case, quantity = "a chart with three objects", f"{_RENDERS} renders [s]"
    aim = f"< {_RENDERS_AIM:g} s"
    return measures.Row(
        "tests", case, quantity, total, "helm template alone", sum(bare), aim, total < _RENDERS_AIM
    )


def _hook_runs(web: module.Module) -> list[measures.Row]:
    hook = web.hook("replicas.py")
    values = web.values()
    ours: list[float] = []
    bare: list[float] = []
    with tempfile.TemporaryDirectory() as directory:
        given = pathlib.Path(directory, "values.json")
        given.write_text('{"global": {}, "web": {}}')
        written = pathlib.Path(directory, "patch.json")
        environ = os.environ | {"VALUES_PATH": str(given), "VALUES_JSON_PATCH_PATH": str(written)}
        hook.run(values=values)
        before = time.process_time()
        for _ in range(_RUNS):
            hook.run(values=values)
        processor = (time.process_time() - before) * 1000 / _RUNS
        for _ in range(_RUNS):
            with _timed(ours):
                hook.run(values=values)
            with _timed(bare):
                subprocess.run([_HOOK], check=True, capture_output=True, env=environ)
    mine, alone = statistics.median(ours) * 1000, statistics.median(bare) * 1000
    aim = f"< {_RUN_AIM:g} ms more"
    case = "a hook in Python"
    return [
        measures.Row("tests", case, "run [ms]", mine, "the hook alone", alone, aim, mine - alone < _RUN_AIM),
        # This one tells the same on a busy machine.
        measures.Row(
            "tests",
            case,
            "processor time beside the hook [ms]",
            processor,
            "",
            None,
            f"< {_RUN_AIM:g} ms",
            processor < _RUN_AIM,
        ),
    ]


def _why() -> measures.Row:
    """Where all fields of a Deployment come from, by files, and with the start of what renders."""
    ours: list[float] = []
    flags = {"modules_dirs": str(_WEB.parent), "global_hooks_dir": str(_WEB.parents[1] / "global-hooks")}
    with tempfile.TemporaryDirectory() as directory:
        config = pathlib.Path(directory, "values.yaml")
        config.write_text("web: {internal: {replicas: 1}}\n")
        given = offline_why.Given(flags, config)
        for _ in range(_WHYS):
            with _timed(ours):
                asyncio.run(offline_why.of(given, os.environ, "web", "Deployment/web", ""))
    median, aim = statistics.median(ours), f"< {_WHY_AIM:g} s"
    case = "a Deployment with 35 fields"
    return measures.Row("tests", case, "module why [s]", median, "", None, aim, median < _WHY_AIM)
