"""Edits at any moment, failing hooks, removed objects, kills: in the end the last edit is in force."""

import contextlib
import dataclasses
import json
import os
import pathlib
import random
import re
import secrets
import signal
import time
from collections.abc import Callable, Mapping
from typing import Final

import pytest

from addon_operator.process import commands, daemons
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
    objects: set[str] = dataclasses.field(default_factory=set)
    versions: dict[str, str] = dataclasses.field(default_factory=lambda: dict.fromkeys(MODULES, "1"))
    colors: dict[str, str] = dataclasses.field(default_factory=lambda: dict.fromkeys(MODULES, "green"))
    enabled: dict[str, bool] = dataclasses.field(default_factory=lambda: dict.fromkeys(MODULES, True))

    def data(self) -> dict[str, dict[str, str]]:
        """The object of each module that is on."""
        return {
            name: {
                "color": self.colors[name],
                "size": str(self.size),
                "version": self.versions[name],
                "count": str(len(self.objects)),
            }
            for name in MODULES
            if self.enabled[name]
        }


class Storm:
    """A site with three modules, and somebody who cannot make up their mind."""

    def __init__(
        self,
        site: operator_site.Site,
        seed: int,
        replicas: int = 1,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.site = site
        self.random = random.Random(seed)
        self.wanted = Wanted()
        self.replicas = replicas
        self.environment = environment or {}
        self.operators: list[operator_process.OperatorProcess] = []
        self.overlaps = site.root / "overlaps"
        site.values("global: {size: 0}")
        for name, directory in MODULES.items():
            self._module(name, directory)

    def _module(self, name: str, directory: str) -> None:
        values = f"{name}: {{color: green}}\n{name}Enabled: true\n"
        module = self.site.module(directory, self._template(name), values=values)
        body = f"""
            exec 9> {self.site.root}/{name}-lock
            flock -n 9 || echo {name} >> {self.overlaps}
            sleep 0.$((RANDOM % 3))
            [[ ! -e {self.site.root}/{name}-fails ]] || exit 1
        """
        self.site.hook(module, f"{name}.sh", BINDINGS, body)
        self._counting_hook(module, name)

    def _counting_hook(self, module: pathlib.Path, name: str) -> None:
        """A hook that puts the number of objects into the values of its module."""
        binding = {
            "name": "counted",
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "queue": "main" if name == "late" else f"of-{name}",
            "includeSnapshotsFrom": ["counted"],
            "labelSelector": {"matchLabels": {"counted": "yes"}},
            "namespace": {"nameSelector": {"matchNames": [self.site.namespace]}},
        }
        body = f"""
            count="$(jq '.[-1].snapshots.counted | length' "$BINDING_CONTEXT_PATH")"
            sleep 0.$((RANDOM % 3))
            echo '{{"op": "add", "path": "/{name}/count", "value": '$count'}}' > "$VALUES_JSON_PATCH_PATH"
        """
        self.site.hook(module, f"count-{name}.sh", {"kubernetes": [binding]}, body)

    def _template(self, name: str) -> Mapping[str, str]:
        return {
            "color": f"{{{{ .Values.{name}.color }}}}",
            "size": '"{{ .Values.global.size }}"',
            "version": f'"{self.wanted.versions[name]}"',
            "count": f'"{{{{ .Values.{name}.count }}}}"',
        }

    def blow(self, steps: int, kinds: list[str]) -> None:
        """Do so many things, one after another or nearly at once."""
        for _ in range(steps):
            getattr(self, f"_{self.random.choice(kinds)}")()
            time.sleep(self.random.choice(PAUSES))
            self._replace()
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
        self._wait_until_one_leads()
        self.site.config(lateEnabled="maybe")
        self.site.config(lateEnabled=str(self.wanted.enabled["late"]).lower())

    def _fail(self) -> None:
        (self.site.root / f"{self._any()}-fails").touch()

    def _mend(self) -> None:
        (self.site.root / f"{self._any()}-fails").unlink(missing_ok=True)

    def _remove(self) -> None:
        self.site.delete("configmap", self._any(), waits=False)

    def _uninstall(self) -> None:
        # There may be none, or Helm may be at work on it.
        with contextlib.suppress(commands.CommandError):
            self.site.uninstall(self._any())

    def _objects(self) -> None:
        """Some more or less of what the hooks count."""
        for _ in range(self.random.randrange(1, 4)):
            name = f"counted-{self.random.randrange(6)}"
            if name in self.wanted.objects:
                self.wanted.objects.discard(name)
                self.site.delete("configmap", name, waits=False)
            else:
                self.wanted.objects.add(name)
                self.site.create("configmap", name, {"metadata": {"labels": {"counted": "yes"}}})

    def _chart(self) -> None:
        """A change on disk, which ``WATCH_MODULES`` applies."""
        name = self._any()
        self.wanted.versions[name] = str(self.random.randrange(100))
        self.site.chart(self.site.modules / MODULES[name], self._template(name))

    def _kill(self) -> None:
        self.random.choice(self.operators).kill()

    def _restart(self) -> None:
        ending = self.random.choice(self.operators)
        ending.terminate()
        ending.wait_end()

    def _pause(self) -> None:
        """Long enough for a Lease to be lost."""
        paused = self.random.choice(self.operators)
        with contextlib.suppress(ProcessLookupError):
            os.kill(paused.pid, signal.SIGSTOP)
            time.sleep(operator_site.LEASE_SECONDS + 2.0)
            os.kill(paused.pid, signal.SIGCONT)

    def start(self) -> None:
        """Start as many operators as there are to be."""
        while len(self.operators) < self.replicas:
            own = {"ADDON_OPERATOR_POD": secrets.token_hex(3)}
            own["DEBUG_UNIX_SOCKET"] = str(self.site.root / f"{own['ADDON_OPERATOR_POD']}.socket")
            self.operators.append(self.site.start(**{**own, **self.environment}))

    def _replace(self) -> None:
        """Start others for those that have ended, as Kubernetes does."""
        table = daemons.ProcessTable()
        self.operators = [each for each in self.operators if table.identify(each.pid) is not None]
        self.start()

    def _wait_until_one_leads(self) -> None:
        self._wait(lambda: any("converge begins" in each.log for each in self.operators), "somebody leads")

    def _any(self) -> str:
        return self.random.choice(list(MODULES))

    def check(self) -> None:
        """What the last edit asks for is there, and nothing else."""
        self._wait(lambda: self._data() == self.wanted.data(), f"there is {self.wanted.data()}")
        self._wait(self._is_at_rest, "everything is done")
        assert self._data() == self.wanted.data()
        assert not self.overlaps.exists(), "a module was worked on twice at once"
        statuses: dict[str, list[str]] = {}
        for secret in self.site.objects("secrets", labelSelector="owner=helm"):
            labels = secret["metadata"]["labels"]
            statuses.setdefault(labels["name"], []).append(labels["status"])
        assert statuses.keys() == self.wanted.data().keys()
        for found in statuses.values():
            assert found.count("deployed") == 1
            assert set(found) <= {"deployed", "superseded", "failed", "uninstalled"}

    def _wait(self, probe: Callable[[], bool], what: str) -> None:
        def is_so() -> bool:
            self._replace()
            return probe()

        def tails() -> str:
            return "\n".join(each.tail() for each in self.operators)

        operator_process.wait_until(is_so, what, deadline=DEADLINE, explain=tails)

    def _is_at_rest(self) -> bool:
        """Whether all are ready, and the one that leads has nothing to do."""
        converges = [each.get("/status/converge").text for each in self.operators]
        metrics = [each.get("/metrics").text for each in self.operators]
        ready = all(each.get("/readyz").status == 200 for each in self.operators)
        busy = [line for text in metrics for line in text.splitlines() if BUSY.match(line)]
        return ready and sum("CONVERGE_DONE" in text for text in converges) == 1 and not busy

    def _data(self) -> dict[str, dict[str, str] | None]:
        found = {name: self.site.data(name) for name in MODULES}
        return {name: data for name, data in found.items() if data is not None}


def check_order(site: operator_site.Site) -> None:
    """The runs of each module are those of modules that start, run and end."""
    for name in MODULES:
        runs = [run.contexts[0]["binding"] for run in site.runs() if run.hook == f"{name}.sh"]
        for before, after in zip(["afterDeleteHelm", *runs], runs, strict=False):
            assert after in FOLLOWERS[before], f"{name}: {after} follows {before} in {json.dumps(runs)}"


BUSY: Final = re.compile(r"addon_operator_tasks_queue_length\{.*\} [1-9]")
PAUSES: Final = (0.0, 0.0, 0.2, 1.0)
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
TROUBLE: Final = [*EDITS, *["objects"] * 4, "fail", "mend", "mend", "remove", "uninstall"]
DEATHS: Final = [*TROUBLE, "chart", "chart", "kill", "restart"]
PAIR: Final = [*DEATHS, "kill", "pause"]
ON_DISK: Final = {"WATCH_MODULES": "yes"}


@pytest.mark.parametrize(
    ("seed", "kinds"),
    [
        pytest.param(1, TROUBLE, id="trouble", marks=pytest.mark.slow),
        pytest.param(2, EDITS, id="edits", marks=pytest.mark.slow),
        *(pytest.param(seed, TROUBLE, id=f"trouble-{seed}", marks=pytest.mark.slow) for seed in range(3, 8)),
        *(pytest.param(seed, DEATHS, id=f"deaths-{seed}", marks=pytest.mark.slow) for seed in range(8, 13)),
    ],
)
def test_whatever_happens_the_last_edit_is_what_there_is_in_the_end(
    site: operator_site.Site, seed: int, kinds: list[str]
) -> None:
    go_through(Storm(site, seed, environment=ON_DISK), kinds)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 25))
def test_two_replicas_that_are_killed_and_paused_never_work_at_once(
    site: operator_site.Site, helm4: pathlib.Path, seed: int
) -> None:
    site.use_helm(helm4)
    environment = {**ON_DISK, **operator_site.SHORT_LEASE}
    go_through(Storm(site, seed, replicas=2, environment=environment), PAIR)


def go_through(storm: Storm, kinds: list[str]) -> None:
    storm.start()
    storm.blow(20, kinds)
    storm.check()
    check_order(storm.site)
    for each in storm.operators:
        each.stop()
