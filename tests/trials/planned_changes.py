"""``python -m tests.trials.planned_changes``: over random changes, a plan without the cluster comes true.

A state is recorded, modules are changed, the plan says which releases get a revision and which go, and an
operator shows whether they do. Then the next state is recorded. Each change of a round is of another module.
"""

import base64
import collections
import contextlib
import dataclasses
import json
import pathlib
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Mapping
from typing import Any

import click

from addon_operator.devcluster import handle
from tests.benchmarks import surroundings
from tests.integration import operator_site
from tests.trials import random_changes

_BLIND = {"KUBE_CONFIG": "", "KUBECONFIG": "/nowhere", "KUBE_SERVER": "", "ADDON_OPERATOR_NAMESPACE": ""}
_PATIENCE = 240.0
_LEFT = 60.0
"""Seconds after which what is still there was not removed."""
_MAKES = frozenset({"install", "upgrade"})
_TAKES = frozenset({"delete", "purge"})


@dataclasses.dataclass(slots=True)
class Result:
    """What came of a trial."""

    changes: int = 0
    rounds: int = 0
    revisions: int = 0
    removals: int = 0
    without_effect: int = 0
    kinds: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    unknown: int = 0
    """Releases of which the plan said that it cannot know."""
    wrong: list[str] = dataclasses.field(default_factory=list)


@click.command()
@click.option("--changes", default=500, show_default=True, help="How many changes to make.")
@click.option("--seed", default=1, show_default=True, help="Which ones.")
@click.option("--at-once", default=6, show_default=True, help="Changes between two converges.")
@click.option("--directory", type=click.Path(path_type=pathlib.Path), help="Keep modules and logs there.")
def main(changes: int, seed: int, at_once: int, directory: pathlib.Path | None) -> None:
    """Compare plans with what an operator then does; the exit code is 1 if they differ."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with surroundings.control_plane() as cluster, tempfile.TemporaryDirectory() as passing:
        result = run(cluster, directory or pathlib.Path(passing), changes, seed, at_once)
    for kind, count in sorted(result.kinds.items()):
        click.echo(f"{count:5} {kind}")
    click.echo(
        f"{result.changes} changes in {result.rounds} rounds: {result.revisions} revisions and "
        f"{result.removals} removals were predicted and made; {result.without_effect} releases stayed; of "
        f"{result.unknown} the plan said that it cannot know."
    )
    for text in result.wrong:
        click.echo(f"NOT as predicted: {text}")
    sys.exit(bool(result.wrong))


def run(cluster: handle.DevCluster, root: pathlib.Path, changes: int, seed: int, at_once: int) -> Result:
    """Try it; ``seed`` decides which changes are made."""
    site = operator_site.Site(cluster, cluster.namespace(), root)
    site.use_helm(cluster.helm, validates=True)
    modules = random_changes.RandomModules(site.modules, seed)
    result = Result()
    try:
        _configure(site, modules)
        _converge(site)
        while result.changes < changes:
            _round(site, modules, min(at_once, changes - result.changes), result)
    finally:
        site.close()
    return result


def _configure(site: operator_site.Site, modules: random_changes.RandomModules) -> None:
    config, secret = modules.secrets()
    site.config(**config)
    site.secret(**secret)


def _converge(site: operator_site.Site, gone: Collection[str] = ()) -> None:
    """``gone``: releases that are to go, which begins when the converge is done."""
    operator = site.start(CONVERGE_ON_FAILURE="continue")
    operator.wait_until(lambda: operator.get("/readyz").status == 200, "it is ready", deadline=_PATIENCE)
    with contextlib.suppress(AssertionError):
        operator.wait_until(lambda: site.deployed().keys().isdisjoint(gone), "they are gone", deadline=_LEFT)
    operator.stop()


def _round(
    site: operator_site.Site, modules: random_changes.RandomModules, count: int, result: Result
) -> None:
    began = time.monotonic()
    _record(site)
    said = modules.change(count)
    before = site.deployed()
    predicted, reasons = _predicted(site, before)
    _converge(site, [release for release, number in predicted.items() if number is None])
    after = site.deployed()
    result.rounds += 1
    result.changes += count
    result.kinds.update(text.partition(" ")[0] for text in said)
    for release in sorted(before.keys() | after.keys() | predicted.keys()):
        expected, real = predicted.get(release, before.get(release)), after.get(release)
        if reasons.get(release, "").startswith("unknown: whether"):
            result.unknown += 1
        elif expected != real:
            result.wrong.append(
                f"round {result.rounds}, {release}: revision {before.get(release)} → {real}, and the plan "
                f"says {expected} ({reasons.get(release)}); changes: {', '.join(said)}"
            )
        elif real == before.get(release):
            result.without_effect += 1
        elif real is None:
            result.removals += 1
        else:
            result.revisions += 1
    _configure(site, modules)
    took = time.monotonic() - began
    click.echo(
        f"round {result.rounds}: {result.changes} changes, {len(result.wrong)} wrong, {took:.0f} s", err=True
    )


def _record(site: operator_site.Site) -> None:
    done = site.command("plan", "--record", "state.json")
    text = (site.root / "state.json").read_text()
    encoded = base64.b64encode(random_changes.CANARY.encode()).decode()[:-4]
    if done.returncode or random_changes.CANARY in text or encoded in text:
        raise click.ClickException(f"the state was not recorded, or with a secret in it: {done.stderr}")


def _predicted(
    site: operator_site.Site, before: Mapping[str, int]
) -> tuple[dict[str, int | None], dict[str, str]]:
    """Return the last revision of each release that is to change, ``None`` for none, and why."""
    done = site.command("plan", "--state", "state.json", "-o", "json", **_BLIND)
    if not done.stdout:
        raise click.ClickException(f"the plan failed: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    steps = {
        each["release"].rpartition("/")[2]: (each["action"], each["reason"]) for each in found["modules"]
    }
    steps |= {each["release"].rpartition("/")[2]: ("purge", each["reason"]) for each in found["purges"]}
    predicted: dict[str, int | None] = {}
    for release, (action, _) in steps.items():
        if action in _MAKES:
            predicted[release] = before.get(release, 0) + 1
        elif action in _TAKES:
            predicted[release] = None
    return predicted, {release: ": ".join(step) for release, step in steps.items()}


if __name__ == "__main__":
    main()
