"""``python -m tests.trials.kept_objects``: random sequences, after which all that holds data has its uid.

A sequence is edits, changes of charts, objects that move between modules, failures, modules that are
disabled, removed or renamed, and faults around the operator: crashes, killed calls of Helm, outages, records,
memories and objects that somebody deletes or writes over. Claims, definitions and namespaces keep their uids
all the time; so does an object that was there before, until a deployed revision has it, and one that moves
between two modules that are well. In the end everything is mended, and each module has to be ready with all
of its objects as its chart has them.

``make faults N=500 SEED=1`` goes on until that many faults were made; a seed that failed is made again with
``make faults N=1 SEED=…``.
"""

import base64
import collections
import concurrent.futures
import dataclasses
import gzip
import itertools
import json
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from typing import Any, Final

import click

from addon_operator.devcluster import handle
from tests.benchmarks import surroundings
from tests.integration import helm_site, operator_process, operator_site
from tests.trials import faults

_MODULES: Final = ("web", "db", "net")
_KEPT: Final = ("claim-1", "claim-2", "things", "space")
_PLAIN: Final = ("plain-1", "plain-2")
_FOREIGN: Final = ("foreign-1", "foreign-2")
_PAUSE: Final = 0.3
_PATIENCE: Final = 5.0
"""Seconds that a step may take until the next one is made in any case."""
_HANDED_OVER: Final = 30.0
"""Seconds until an object is as the chart that has it alone says."""
_END: Final = 300.0
"""Seconds until all is ready when everything is mended; a busy machine takes a minute for a start alone."""
_STEPS: Final = {
    "edit": 1,
    "drop": 1,
    "add": 1,
    "move": 4,
    "swap": 2,
    "fail": 3,
    "switch": 3,
    "away": 1,
    "rename": 1,
    "restart": 1,
    "crash": 1,
    "erase": 1,
    "overwrite": 1,
    **dict.fromkeys(faults.FAULTS, 1),
}
"""What may be done, and how often beside the others."""
_FAULTS: Final = frozenset({"fail", "crash", "erase", "overwrite", *faults.FAULTS})
_OF_TWO: Final = frozenset({"move", "swap"})
_WAITS: Final = 0.7
"""How often the next step waits for the one before it."""
_WRONG: Final = "apiVersion: v1\nkind: Service\nmetadata: {name: wrong}\nspec: {ports: [{port: 99999}]}\n"


@dataclasses.dataclass(slots=True)
class Result:
    """What came of all sequences."""

    sequences: int = 0
    steps: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    wrong: list[str] = dataclasses.field(default_factory=list)

    @property
    def faults(self) -> int:
        """How many faults were made."""
        return sum(self.steps[each] for each in _FAULTS)


@click.command()
@click.option("--sequences", default=200, show_default=True, help="How many sequences to try.")
@click.option("--faults", "wanted", type=int, help="Try sequences until so many faults were made, instead.")
@click.option("--at-once", default=1, show_default=True, help="How many sequences go on side by side.")
@click.option("--again", is_flag=True, help="Make what goes wrong again: it counts if it does so twice.")
@click.option(
    "--seed", default=1, show_default=True, help="The seed of the first; the next has the next one."
)
@click.option(
    "--helm", type=click.Choice(["3", "4"]), default="4", show_default=True, help="With which Helm."
)
@click.option("--directory", type=click.Path(path_type=pathlib.Path), help="Keep modules and logs there.")
def main(
    sequences: int,
    wanted: int | None,
    at_once: int,
    seed: int,
    helm: str,
    directory: pathlib.Path | None,
    *,
    again: bool,
) -> None:
    """Try sequences; the exit code is 1 if one lost something, or left something stuck."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with surroundings.control_plane() as cluster, tempfile.TemporaryDirectory() as passing:
        binary = cluster.helm if helm == "3" else helm_site.helm4_binary()
        seeds = range(seed, seed + sequences) if wanted is None else itertools.count(seed)
        root = directory or pathlib.Path(passing)
        result = run(cluster, binary, root, seeds, faults_wanted=wanted, at_once=at_once, again=again)
    for step, count in sorted(result.steps.items()):
        click.echo(f"{count:5} {step}")
    click.echo(f"{result.sequences} sequences, {result.faults} faults, {len(result.wrong)} of them wrong")
    sys.exit(bool(result.wrong))


def run(
    cluster: handle.DevCluster,
    helm: pathlib.Path,
    root: pathlib.Path,
    seeds: Iterable[int],
    *,
    faults_wanted: int | None = None,
    at_once: int = 1,
    again: bool = False,
) -> Result:
    """Try one sequence for each seed, or until so many faults were made; so many sequences ``at_once``.

    With ``again``, one that goes wrong is made once more, and counts if it goes wrong then, too.
    """
    result = Result()
    # Asked for one by one: whether there are enough faults is known only when a sequence has ended.
    pending = iter(seeds)

    def work() -> None:
        for seed in iter(lambda: next(pending, None), None):
            if faults_wanted is not None and result.faults >= faults_wanted:
                return
            wrong = _try(cluster, helm, root / f"seed-{seed}", seed, result)
            if wrong and again:
                click.echo(f"{wrong}\nIt is made again, and counts if it goes wrong once more.", err=True)
                wrong = _try(cluster, helm, root / f"seed-{seed}-again", seed, result)
            if wrong:
                result.wrong.append(wrong)
                click.echo(wrong, err=True)

    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for worker in [pool.submit(work) for _ in range(at_once)]:
            worker.result()
    return result


def _try(
    cluster: handle.DevCluster, helm: pathlib.Path, root: pathlib.Path, seed: int, result: Result
) -> str:
    """Try the sequence of a seed; return what went wrong, or an empty text."""
    began = time.monotonic()
    site = operator_site.Site(cluster, cluster.namespace(), root)
    site.first_retry = operator_site.SOON
    site.use_helm(helm)
    sequence, wrong = _Sequence(site, random.Random(seed)), ""
    try:
        sequence.run()
    except (_LostError, AssertionError) as error:
        wrong = f"seed {seed}: {error}; steps: {', '.join(sequence.said)}"
    finally:
        site.close()
    result.sequences += 1
    result.steps.update(text.partition(" ")[0] for text in sequence.said)
    click.echo(f"seed {seed}: {len(sequence.said)} steps, {time.monotonic() - began:.0f} s", err=True)
    return wrong


class _LostError(Exception):
    """Something is lost or stuck."""


@dataclasses.dataclass(slots=True)
class _Module:
    name: str
    order: int
    objects: set[str] = dataclasses.field(default_factory=set)
    is_enabled: bool = True
    fails: bool = False
    is_away: bool = False

    @property
    def directory(self) -> str:
        return f"{self.order:03}-{self.name}"

    @property
    def is_well(self) -> bool:
        return self.is_enabled and not self.is_away and not self.fails


class _Sequence:
    """One namespace with modules, and what was done to them."""

    def __init__(self, site: operator_site.Site, chance: random.Random) -> None:
        self.said: list[str] = []
        self._site = site
        self._chance = chance
        self._modules = [_Module(name, 10 * (1 + number)) for number, name in enumerate(_MODULES)]
        self._uids: dict[str, str] = {}
        self._foreign = set(_FOREIGN)
        """Those that no deployed revision had yet."""
        self._moving: dict[str, str] = {}
        """Uids of objects that the step moves between two modules that are well."""
        self._color = 0
        self._faults = faults.Faults(site, chance)
        self._operator: operator_process.OperatorProcess | None = None

    def run(self) -> None:
        """Make all steps, and mend everything in the end."""
        for name in _FOREIGN:
            self._site.create("configmap", name, {"data": {"of": "platform"}})
        for word in (*_KEPT, *_PLAIN):
            self._chance.choice(self._modules).objects.add(word)
        for module in self._modules:
            self._write(module)
        self._switch()
        self._start()
        for _ in range(self._chance.randint(5, 10)):
            self._step()
        self.said.append("mend")
        for module in self._modules:
            module.is_enabled, module.fails, module.is_away = True, False, False
            self._write(module)
        # All run anew: what somebody wrote over is not corrected by these modules before.
        self._color += 1
        self._switch()
        self._end(is_killed=False)
        self._settle(_END, until_ready=True)
        for module in self._modules:
            for word in module.objects:
                self._check_as_chart(module, word)
        self._current.stop()

    def _check_as_chart(self, module: _Module, word: str) -> None:
        """Raise if an object is not there, or does not become what its module's chart says.

        What the later of two modules drops is put right by a comparison after its run.
        """
        give_up = time.monotonic() + _HANDED_OVER
        while True:
            found = self._site.find(*self._kind(word))
            if found is None:
                raise _LostError(f"{word} of {module.name} is not there in the end")
            if found.get("data", {}).get("color") in {None, f"c{self._color}"}:
                return
            if time.monotonic() > give_up:
                raise _LostError(f"{word} of {module.name} is not as its chart: {found['data']}")
            time.sleep(_PAUSE)

    def _step(self) -> None:
        module, other = self._chance.sample(self._modules, 2)
        step = self._chance.choices([*_STEPS], [*_STEPS.values()])[0]
        self._moving.clear()
        self.said.append(f"{step} {module.name}" + (f" {other.name}" if step in _OF_TWO else ""))
        if step in {"crash", "restart"}:
            self._end(is_killed=step == "crash")
        elif step in {"erase", "overwrite"}:
            self._meddle(step)
        elif step in faults.FAULTS:
            self._color += 1
            self._switch()
            self._faults.make(step, self._current)
        elif step in {"drop", *_OF_TWO}:
            self._move(module, other if step in _OF_TWO else None)
            if step == "swap":
                self._move(other, module)
        else:
            self._change(step, module)
        if self._chance.random() < _WAITS:
            self._settle(_PATIENCE)
        else:
            time.sleep(self._chance.random() * 2)
            self.said.append("hurry")
        self._check()

    def _change(self, step: str, module: _Module) -> None:
        match step:
            case "edit":
                self._color += 1
            case "add":
                module.objects.add(self._chance.choice([*_KEPT, *_PLAIN, *_FOREIGN]))
            case "fail":
                module.fails = not module.fails
            case "switch":
                module.is_enabled = not module.is_enabled
            case "away":
                module.is_away = not module.is_away
            case "rename":
                shutil.rmtree(self._site.modules / module.directory, ignore_errors=True)
                module.name = module.name.rstrip("0123456789") + str(self._chance.randint(2, 99))
        if step not in {"edit", "switch"}:
            self._write(module)
        self._switch()

    def _end(self, *, is_killed: bool) -> None:
        """End the operator, in the middle of an edit if it is killed, and start another one."""
        if is_killed:
            self._color += 1
            self._switch()
            time.sleep(self._chance.random())
            self._current.kill()
        else:
            self._current.terminate()
            self._current.wait_end()
        self._start()

    def _move(self, module: _Module, other: _Module | None) -> None:
        if not module.objects:
            return
        word = self._chance.choice(sorted(module.objects))
        self.said[-1] += f" {word}"
        module.objects.discard(word)
        if other is not None:
            other.objects.add(word)
        if other is not None:
            self._write(other)
            if module.is_well and other.is_well and word in _PLAIN and word in self._deployed():
                self._moving[word] = self._site.get(*self._kind(word))["metadata"]["uid"]
        self._write(module)

    def _meddle(self, step: str) -> None:
        """Delete a plain object of a release by hand, or write over it."""
        there = [word for word in _PLAIN if self._site.find(*self._kind(word)) is not None]
        if not there:
            return
        word = self._chance.choice(there)
        self.said[-1] += f" {word}"
        if step == "erase":
            self._site.delete("configmap", word)
        else:
            self._site.patch("configmap", word, {"data": {"color": "of somebody"}})

    def _start(self) -> None:
        # The only module that has a release may be renamed.
        self._operator = self._site.start(
            WATCH_MODULES="yes",
            ALLOW_EMPTY_MODULES="true",
            CONVERGE_ON_FAILURE=self._chance.choice(["wait", "continue"]),
        )

    @property
    def _current(self) -> operator_process.OperatorProcess:
        assert self._operator is not None
        return self._operator

    def _switch(self) -> None:
        """Write the values ConfigMap."""
        data: dict[str, str | None] = {"global": f"color: c{self._color}"}
        for module in self._modules:
            data[f"{module.name}Enabled"] = str(module.is_enabled).lower()
        self._site.config(**data)

    def _write(self, module: _Module) -> None:
        """Write the directory of a module as a whole, or remove it."""
        path = self._site.modules / module.directory
        if module.is_away:
            shutil.rmtree(path, ignore_errors=True)
            return
        new = self._site.root / "new"
        (new / "templates").mkdir(parents=True)
        (new / "Chart.yaml").write_text(f"apiVersion: v2\nname: {module.name}\nversion: 0.1.0\n")
        if self._chance.random() < 0.5:
            (new / "module.yaml").write_text("remediation: {rollback: true}\n")
        texts = {word: self._text(word, module.name) for word in module.objects}
        texts["own"] = _config_map("{{ .Release.Name }}", module.name)
        if module.fails:
            texts["wrong"] = _WRONG
        for word, text in texts.items():
            (new / "templates" / f"{word}.yaml").write_text(text)
        old = self._site.root / "old"
        if path.exists():
            path.rename(old)
        new.rename(path)
        shutil.rmtree(old, ignore_errors=True)

    def _text(self, word: str, owner: str) -> str:
        kind, name = self._kind(word)
        if kind == "configmap":
            return _config_map(name, owner)
        if kind == "pvc":
            spec = "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
            return f"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\nspec: {spec}\n"
        if kind == "namespace":
            return f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n"
        return (
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
            f"metadata: {{name: {name}}}\nspec:\n  group: {self._site.namespace}.example\n"
            "  names: {kind: Thing, plural: things}\n"
            "  scope: Namespaced\n  versions:\n"
            "  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n"
        )

    def _kind(self, word: str) -> tuple[str, str]:
        """Return kind and name of an object."""
        if word.startswith("claim"):
            return "pvc", word
        if word == "space":
            return "namespace", f"{self._site.namespace}-space"
        if word == "things":
            return "crd", f"things.{self._site.namespace}.example"
        return "configmap", word

    def _settle(self, seconds: float, *, until_ready: bool = False) -> None:
        """Wait until nothing is at work, with looks at all objects meanwhile."""
        give_up = time.monotonic() + seconds
        while not (is_done := self._is_done(until_ready=until_ready)):
            self._check()
            if time.monotonic() > give_up:
                if until_ready:
                    states = {each["name"]: (each["state"], each["lastError"]) for each in self._rows()}
                    raise _LostError(f"after {seconds:.0f} s, still not ready: {states}")
                break
            time.sleep(_PAUSE)
        for word, uid in self._moving.items() if is_done else ():
            if ((self._site.find(*self._kind(word)) or {}).get("metadata") or {}).get("uid") != uid:
                raise _LostError(f"{word} did not keep its uid when it moved")

    def _is_done(self, *, until_ready: bool) -> bool:
        converge = self._current.get("/status/converge").text
        if "CONVERGE_DONE" not in converge or "REMOVALS" in converge:
            return False
        if self._current.metrics().total("tasks_queue_length"):
            return False
        return not until_ready or all(each["state"] == "Ready" for each in self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = json.loads(self._site.command("module", "list", "-o", "json").stdout)[
            "modules"
        ]
        return listed

    def _check(self) -> None:
        """Raise for what is not what it was."""
        deployed = self._deployed()
        self._foreign = {name for name in self._foreign if f"name: {name}\n" not in deployed}
        for word in (*_KEPT, *self._foreign):
            found = self._site.find(*self._kind(word))
            metadata = (found or {}).get("metadata", {})
            if (before := self._uids.get(word)) is None:
                if found is not None and "deletionTimestamp" not in metadata:
                    self._uids[word] = metadata["uid"]
            elif metadata.get("uid") != before or "deletionTimestamp" in metadata:
                raise _LostError(
                    f"{word} was {before}, and is {metadata.get('uid')}, {metadata.get('deletionTimestamp')}"
                )

    def _deployed(self) -> str:
        """Return the manifests of all deployed revisions."""
        records = self._site.objects("secrets", labelSelector="owner=helm,status=deployed")
        packed = (base64.b64decode(base64.b64decode(each["data"]["release"])) for each in records)
        return "".join(json.loads(gzip.decompress(each))["manifest"] for each in packed)


def _config_map(name: str, owner: str) -> str:
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"
        f"data: {{of: {owner}, color: {{{{ .Values.global.color | quote }}}}}}\n"
    )


if __name__ == "__main__":
    main()
