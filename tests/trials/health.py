"""``python -m tests.trials health --argo DIR``: score the verdicts of health against those of Argo CD.

``DIR`` is a checkout of Argo CD. Its ``resource_customizations`` have objects of some 240 kinds, each with
the verdict that is expected. Healthy and Suspended (somebody wishes it so) are Healthy here, Progressing is
Progressing, Degraded is Failed; Unknown and Missing are left out. Objects count as just made. What is being
deleted is Progressing for Argo CD before it asks for any verdict (``gitops-engine/pkg/health/health.go``).

The kinds fall into two halves by a seed. The words of :mod:`.health_words` are written from the first half
alone; only its objects are shown with ``--show``.
"""

import collections
import dataclasses
import pathlib
import random
from collections.abc import Iterator
from typing import Any, Final

import click

from addon_operator.commands import health_explain
from addon_operator.documents import yaml_reading
from addon_operator.modules.health import resource_health
from addon_operator.values.schema import cel_rules

_STATES: Final = {
    "Healthy": resource_health.HealthState.HEALTHY,
    "Suspended": resource_health.HealthState.HEALTHY,
    "Progressing": resource_health.HealthState.PROGRESSING,
    "Degraded": resource_health.HealthState.FAILED,
}
_HEALTHY: Final = resource_health.HealthState.HEALTHY


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """One object, and what Argo CD says of it."""

    kind: str
    """Its group and kind, as directories."""
    file: pathlib.Path
    theirs: resource_health.HealthState
    ours: resource_health.ResourceHealth


@dataclasses.dataclass(slots=True)
class Score:
    """What came of the objects of some kinds."""

    objects: int = 0
    same: int = 0
    same_trouble: int = 0
    """With Progressing and Failed taken as one."""
    healthy_called_otherwise: int = 0

    def count(self, case: Case) -> None:
        """Take one more object."""
        ours = case.ours.state
        self.objects += 1
        self.same += ours is case.theirs
        self.same_trouble += (ours is _HEALTHY) == (case.theirs is _HEALTHY)
        self.healthy_called_otherwise += case.theirs is _HEALTHY and ours is not _HEALTHY

    def line(self) -> str:
        """Say it in one line."""
        return (
            f"{self.objects:5} objects, {self.same / self.objects:6.1%} the same, "
            f"{self.same_trouble / self.objects:6.1%} with Progressing and Failed as one, "
            f"{self.healthy_called_otherwise} healthy ones called otherwise"
        )


def cases(checkout: pathlib.Path, *, rules: bool) -> Iterator[Case]:
    """Judge all objects."""
    root = checkout / "resource_customizations"
    evaluator = cel_rules.CelEvaluator()
    for table in sorted(root.glob("**/health_test.yaml")):
        for test in _load(table).get("tests") or ():
            theirs = _STATES.get(str((test.get("healthStatus") or {}).get("status")))
            file = table.parent / test.get("inputPath", "")
            if theirs is not None and file.is_file():
                kind = str(table.parent.relative_to(root))
                resource = _load(file)
                resource.get("metadata", {}).pop("creationTimestamp", None)
                if resource.get("metadata", {}).get("deletionTimestamp"):
                    theirs = resource_health.HealthState.PROGRESSING
                yield Case(
                    kind, file, theirs, health_explain.explained(resource, evaluator, with_kinds=rules)
                )


def _load(file: pathlib.Path) -> Any:  # noqa: ANN401 - whatever the file has
    documents = yaml_reading.load_documents(file.read_text(encoding="utf-8"), file.name, last_wins=True)
    return next((one.value for one in documents if one.value), {})


def seen(kinds: set[str], seed: int) -> frozenset[str]:
    """Return the half of the kinds from which the words are written."""
    shuffled = sorted(kinds)
    random.Random(seed).shuffle(shuffled)
    return frozenset(shuffled[: (len(shuffled) + 1) // 2])


@click.command()
@click.option("--argo", type=click.Path(exists=True, path_type=pathlib.Path), required=True)
@click.option("--seed", default=44, show_default=True, help="Which half of the kinds is seen.")
@click.option("--rules/--no-rules", default=True, help="Whether the rules of kinds.yaml count.")
@click.option("--show", is_flag=True, help="Show what differs, of the seen half.")
@click.option("--by-kind", is_flag=True, help="Show the score of each kind.")
def main(argo: pathlib.Path, seed: int, *, rules: bool, show: bool, by_kind: bool) -> None:
    """Score the verdicts of health against those of Argo CD."""
    found = list(cases(argo, rules=rules))
    first = seen({case.kind for case in found}, seed)
    halves = collections.defaultdict[str, Score](Score)
    kinds = collections.defaultdict[str, Score](Score)
    for case in found:
        for name in ("all", "seen" if case.kind in first else "unseen"):
            halves[name].count(case)
        kinds[case.kind].count(case)
        if show and case.kind in first and case.ours.state is not case.theirs:
            file = case.file.relative_to(argo / "resource_customizations")
            because = f"{case.ours.rule}; {case.ours.message[:80]}"
            click.echo(f"{file}: {case.ours.state}, not {case.theirs} ({because})")
    if by_kind:
        for name, score in sorted(kinds.items()):
            click.echo(f"{name}: {score.same} of {score.objects}")
    for name, score in halves.items():
        click.echo(f"{name:6} {score.line()}")


if __name__ == "__main__":
    main()
