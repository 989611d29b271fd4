"""The operator at work on a local control plane, from nothing to a restart, in about half a minute.

Every fact that is announced is checked. On a terminal the cluster then stays up to be played with; without
one, or with ``CI=true``, the demo ends. Its exit code is 0 only if everything was as announced.
"""

import contextlib
import os
import pathlib
import signal
import sys
import time
from collections.abc import Mapping
from typing import Final, NoReturn

import demo_operator
import demo_screen
import demo_stage
import rich.console

from addon_operator.kernel import errors

CHECKOUT: Final = pathlib.Path(__file__).resolve().parents[1]

WEB: Final = "web"
"""The example that the edits are about."""
OFF: Final = "http-echo"
"""The example that is off by default."""
INSTALLED: Final = frozenset({WEB, "web-guard"})
"""The examples that have a chart and are on by default."""
EDIT: Final = {"web": "replicas: 3\n"}
EDIT_WITHOUT_EFFECT: Final = {"web": "replicas: 3\nnote: ask the platform team\n"}
SWITCH_ON: Final = {"httpEchoEnabled": "true"}

_SHOWN_METRICS: Final = (
    "convergence_total",
    "helm_upgrades_skipped_total",
    "module_enabled",
    "module_run_seconds_count",
)


class Story:
    """The steps of the demo, in their order."""

    def __init__(self, screen: demo_screen.Screen, stage: demo_stage.Stage) -> None:
        self._screen = screen
        self._stage = stage

    def first_converge(self) -> demo_operator.Operator:
        """Start the operator in an empty namespace."""
        self._screen.step("Start the operator for the example modules, in an empty namespace")
        self._stage.kubectl("create", "namespace", demo_stage.NAMESPACE)
        operator = self._stage.start_operator()
        with self._screen.waiting("the first converge"):
            seconds = operator.wait_ready()
        self._screen.seen(f"/readyz says that the first converge is done, after {seconds:.1f} s")
        self._check_revisions("each enabled module with a chart has a release", dict.fromkeys(INSTALLED, 1))
        return operator

    def look(self) -> None:
        """Show what there is."""
        self._screen.step("Look at what it has made")
        with self._screen.waiting("the pods"):
            self._stage.kubectl("wait", "deployments", "--all", "--for=condition=Available", "--timeout=30s")
        self._stage.kubectl("get", "deployments,pods,services,configmaps", show=True)
        self._screen.seen("all deployments are available")

    def edit(self) -> None:
        """Change a value that the chart uses."""
        self._screen.step(f"Change a value of the module {WEB} in the ConfigMap")
        before = self._stage.revisions()
        self._stage.edit(EDIT)
        after = before | {WEB: before[WEB] + 1}
        demo_operator.wait_for(lambda: self._stage.revisions() == after, "a new revision")
        self._check_revisions("exactly one release got a new revision", after)

    def edit_without_effect(self, operator: demo_operator.Operator) -> None:
        """Change a value that the chart does not use."""
        self._screen.step("Change a value that no template uses")
        before, calls = self._stage.revisions(), len(self._stage.helm.calls())
        skipped = f'helm_upgrades_skipped_total{{by="manifest",module="{WEB}"}}'
        wanted = operator.metrics().get(skipped, 0) + 1
        self._stage.edit(EDIT_WITHOUT_EFFECT)
        demo_operator.wait_for(lambda: operator.metrics().get(skipped, 0) >= wanted, "a skipped upgrade")
        self._check_revisions("no release got a new revision", before)
        made = self._stage.helm.calls()[calls:]
        self._screen.check(
            "Helm rendered the chart once, and did nothing else", holds=made == ["template"], instead=made
        )

    def switch_on(self) -> None:
        """Enable a module."""
        self._screen.step(f"Switch on the module {OFF}, which is off by default")
        before = self._stage.revisions()
        self._screen.check(f"{OFF} has no release yet", holds=OFF not in before, instead=before)
        self._stage.edit(SWITCH_ON)
        after = before | {OFF: 1}
        demo_operator.wait_for(lambda: self._stage.revisions() == after, f"a release of {OFF}")
        self._check_revisions("it is installed, and nothing else was touched", after)

    def metrics(self, before: Mapping[str, float], operator: demo_operator.Operator) -> None:
        """Show the metrics that moved meanwhile."""
        self._screen.step("See what its metrics tell of all that")
        demo_operator.wait_for(operator.is_idle, "an operator with nothing to do")
        now = operator.metrics()
        moved = {name: value - before.get(name, 0) for name, value in now.items()}
        self._screen.note(f"{operator.url}/metrics (addon_operator_…)")
        for name in sorted(name for name in moved if moved[name] and name.startswith(_SHOWN_METRICS)):
            self._screen.output(f"{name}  {before.get(name, 0):g} → {now[name]:g}")
        skipped = "helm_upgrades_skipped_total"
        for fact, series, steps in (
            ("ran three times: for two edits, and in a converge", "module_run_seconds_count{%s}", 3),
            ("was skipped once because its manifest was the same", skipped + '{by="manifest",%s}', 1),
            ("was skipped once because its inputs were the same", skipped + '{by="inputs",%s}', 1),
        ):
            seen = moved.get(series.replace("%s", f'module="{WEB}"'))
            self._screen.check(f"{WEB} {fact}", holds=seen == steps, instead=seen)

    def restart(self, operator: demo_operator.Operator) -> demo_operator.Operator:
        """Stop the operator and start another one."""
        self._screen.step("Restart the operator with nothing changed")
        before, calls = self._stage.revisions(), len(self._stage.helm.calls())
        begun, code = time.monotonic(), operator.stop()
        self._screen.check(
            f"SIGTERM ended it in {time.monotonic() - begun:.1f} s with exit code 0",
            holds=code == 0,
            instead=code,
        )
        successor = self._stage.start_operator()
        with self._screen.waiting("the first converge"):
            seconds = successor.wait_ready()
        self._screen.seen(f"the first converge is done after {seconds:.1f} s")
        made = self._stage.helm.calls()[calls:]
        self._screen.check("Helm was not called", holds=not made, instead=made)
        self._check_revisions("no release got a new revision", before)
        return successor

    def stay(self, operator: demo_operator.Operator) -> None:
        """Tell what to try next, and wait for Ctrl-C."""
        self._screen.step("Now it is yours")
        for line in (
            "In another shell, in this directory:",
            "  source .demo/env",
            f"  kubectl -n {demo_stage.NAMESPACE} edit configmap {demo_stage.CONFIG_MAP}",
            f"  kubectl -n {demo_stage.NAMESPACE} get all",
            f"  helm -n {demo_stage.NAMESPACE} list",
            "  tail -f .demo/operator.log",
            "  .venv/bin/addon-operator module list --debug-unix-socket .demo/debug.socket",
            f"  {operator.url}/ in a browser: what it does; {operator.url}/metrics for Prometheus",
            "Ctrl-C ends the operator and removes the cluster.",
        ):
            self._screen.note(line)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()

    def _check_revisions(self, fact: str, wanted: dict[str, int]) -> None:
        found = self._stage.revisions()
        text = ", ".join(f"{name} {revision}" for name, revision in sorted(found.items()))
        self._screen.check(f"{fact}: {text}", holds=found == wanted, instead=text)


def tell(screen: demo_screen.Screen, ground: demo_stage.Ground) -> None:
    """Play the whole demo."""
    begun = time.monotonic()
    screen.step("Start a control plane: etcd, kube-apiserver, controllers, scheduler and a simulated node")
    stage = ground.build()
    screen.seen(f"Kubernetes {stage.cluster.version} answers at {stage.cluster.url}")
    try:
        operator = play(Story(screen, stage))
    except BaseException:
        screen.details(stage.log_tail())
        raise
    screen.note("")
    screen.note(f"All {screen.checked} facts were as announced, in {time.monotonic() - begun:.0f} s.")
    if screen.is_interactive and os.environ.get("CI", "").lower() not in {"true", "1"}:
        Story(screen, stage).stay(operator)


def play(story: Story) -> demo_operator.Operator:
    """Play the steps after the control plane; return the operator that runs at the end."""
    operator = story.first_converge()
    before = operator.metrics()
    story.look()
    story.edit()
    story.edit_without_effect(operator)
    story.switch_on()
    story.metrics(before, operator)
    return story.restart(operator)


def main() -> int:
    """Tell the story and clean up."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    screen = demo_screen.Screen(rich.console.Console(highlight=False))
    try:
        with demo_stage.opened(CHECKOUT, screen) as ground:
            tell(screen, ground)
    except errors.AddonOperatorError as error:
        screen.failed(str(error))
        return 1
    except KeyboardInterrupt:
        screen.note("Interrupted: everything that the demo had started is ended and removed.")
        return 130
    return 0


def _interrupt(number: int, _: object) -> NoReturn:
    raise KeyboardInterrupt(signal.Signals(number).name)


if __name__ == "__main__":
    sys.exit(main())
