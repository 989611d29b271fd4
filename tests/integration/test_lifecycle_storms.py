"""Edits at any moment, failing hooks, removed objects, kills: in the end the last edit is in force."""

import contextlib
import dataclasses
import json
import random
import time
from collections.abc import Callable
from typing import Final

import pytest

from addon_operator.process import commands
from tests.integration import operator_process, operator_site

pytestmark = pytest.mark.integration

MODULES: Final = {"web": "010-web", "api": "010-api", "late": "020-late"}
BINDINGS: Final = {
    "onStartup": 1,
    "beforeHelm": 1,
    "afterHelm": 1,
    "beforeDeleteHelm": 1,
    "afterDeleteHelm": 1,
}
DEADLINE: Final = 120.0


@dataclasses.dataclass
class Wanted:
    """What the edits so far ask for."""

    size: int = 0
    colors: dict[str, str] = dataclasses.field(default_factory=lambda: dict.fromkeys(MODULES, "green"))
    enabled: dict[str, bool] = dataclasses.field(default_factory=lambda: dict.fromkeys(MODULES, True))

    def data(self) -> dict[str, dict[str, str]]:
        """The object of each module that is on."""
        return {
            name: {"color": self.colors[name], "size": str(self.size)}
            for name in MODULES
            if self.enabled[name]
        }


class Storm:
    """A site with three modules, and somebody who cannot make up their mind."""

    def __init__(self, site: operator_site.Site, seed: int) -> None:
        self.site = site
        self.random = random.Random(seed)
        self.wanted = Wanted()
        self.operator: operator_process.OperatorProcess
        site.values("global: {size: 0}")
        for name, directory in MODULES.items():
            self._module(name, directory)

    def _module(self, name: str, directory: str) -> None:
        data = {"color": f"{{{{ .Values.{name}.color }}}}", "size": '"{{ .Values.global.size }}"'}
        module = self.site.module(directory, data, values=f"{name}: {{color: green}}\n{name}Enabled: true\n")
        fails = f"[[ ! -e {self.site.root}/{name}-fails ]] || exit 1"
        self.site.hook(module, f"{name}.sh", BINDINGS, f"sleep 0.$((RANDOM % 3))\n{fails}")

    def blow(self, steps: int, kinds: list[str]) -> None:
        """Do so many things, one after another or nearly at once."""
        for _ in range(steps):
            getattr(self, f"_{self.random.choice(kinds)}")()
            pause = self.random.choice([0.0, 0.0, 0.2, 1.0])
            time.sleep(pause)
        for name in MODULES:
            (self.site.root / f"{name}-fails").unlink(missing_ok=True)

    def _color(self) -> None:
        name = self._any()
        self.wanted.colors[name] = f"c{self.random.randrange(100)}"
        self.site.config(**{name: f"color: {self.wanted.colors[name]}\n"})

    def _flag(self) -> None:
        name = self._any()
        self.wanted.enabled[name] = self.random.random() < 0.5
        self.site.config(**{f"{name}Enabled": str(self.wanted.enabled[name]).lower()})

    def _size(self) -> None:
        self.wanted.size = self.random.randrange(100)
        self.site.config(**{"global": f"size: {self.wanted.size}\n"})

    def _wrong(self) -> None:
        """An edit that nobody can take, and its end."""
        # At its start an operator would end because of it.
        self.operator.wait_logged("converge begins")
        self.site.config(lateEnabled="maybe")
        self.site.config(lateEnabled=str(self.wanted.enabled["late"]).lower())

    def _fail(self) -> None:
        (self.site.root / f"{self._any()}-fails").touch()

    def _mend(self) -> None:
        (self.site.root / f"{self._any()}-fails").unlink(missing_ok=True)

    def _remove(self) -> None:
        self.site.kubectl("delete", "configmap", self._any(), "--ignore-not-found", "--wait=false")

    def _uninstall(self) -> None:
        # There may be none, or Helm may be at work on it.
        with contextlib.suppress(commands.CommandError):
            self.site.uninstall(self._any())

    def _kill(self) -> None:
        self.operator.kill()
        self.start()

    def _restart(self) -> None:
        self.operator.terminate()
        self.operator.wait_end()
        self.start()

    def start(self) -> None:
        """Start an operator."""
        self.operator = self.site.start()

    def _any(self) -> str:
        return self.random.choice(list(MODULES))

    def check(self) -> None:
        """What the last edit asks for is there, and nothing else."""
        self._wait(lambda: self._data() == self.wanted.data(), f"there is {self.wanted.data()}")
        self.operator.wait_ready(DEADLINE).wait_idle()
        assert self._data() == self.wanted.data()
        statuses: dict[str, list[str]] = {}
        for secret in self.site.objects("secrets", labelSelector="owner=helm"):
            labels = secret["metadata"]["labels"]
            statuses.setdefault(labels["name"], []).append(labels["status"])
        assert statuses.keys() == self.wanted.data().keys()
        for found in statuses.values():
            assert found.count("deployed") == 1
            assert set(found) <= {"deployed", "superseded", "failed", "uninstalled"}

    def _wait(self, probe: Callable[[], bool], what: str) -> None:
        self.operator.wait_until(lambda: probe() or None, what, deadline=DEADLINE)

    def _data(self) -> dict[str, dict[str, str] | None]:
        found = {name: self.site.data(name) for name in MODULES}
        return {name: data for name, data in found.items() if data is not None}


def check_order(site: operator_site.Site) -> None:
    """The runs of each module are those of modules that start, run and end."""
    for name in MODULES:
        runs = [run.contexts[0]["binding"] for run in site.runs() if run.hook == f"{name}.sh"]
        for before, after in zip(["afterDeleteHelm", *runs], runs, strict=False):
            assert after in FOLLOWERS[before], f"{name}: {after} follows {before} in {json.dumps(runs)}"


RUN: Final = {"beforeHelm", "afterHelm"}
END: Final = {"beforeDeleteHelm", "afterDeleteHelm"}
FOLLOWERS: Final = {
    "onStartup": {"onStartup", "beforeHelm"} | END,
    "beforeHelm": {"onStartup"} | RUN | END,
    "afterHelm": {"onStartup"} | RUN | END,
    "beforeDeleteHelm": {"onStartup"} | END,
    "afterDeleteHelm": {"onStartup"} | END,
}

EDITS: Final = ["color", "color", "flag", "flag", "size", "wrong"]
TROUBLE: Final = [*EDITS, "fail", "mend", "mend", "remove", "uninstall"]
DEATHS: Final = [*TROUBLE, "kill", "restart"]


@pytest.mark.parametrize(
    ("seed", "kinds"),
    [
        pytest.param(1, TROUBLE, id="trouble"),
        pytest.param(2, EDITS, id="edits", marks=pytest.mark.slow),
        *(pytest.param(seed, TROUBLE, id=f"trouble-{seed}", marks=pytest.mark.slow) for seed in range(3, 8)),
        *(pytest.param(seed, DEATHS, id=f"deaths-{seed}", marks=pytest.mark.slow) for seed in range(8, 13)),
    ],
)
def test_whatever_happens_the_last_edit_is_what_there_is_in_the_end(
    site: operator_site.Site, seed: int, kinds: list[str]
) -> None:
    storm = Storm(site, seed)
    storm.start()
    storm.blow(20, kinds)
    storm.check()
    check_order(site)
    storm.operator.stop()
