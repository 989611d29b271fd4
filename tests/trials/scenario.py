"""What happens to all charts of a trial: installed, restarted, damaged, edited, switched off."""

import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import yaml

from addon_operator.kernel import names
from tests.integration import operator_process, operator_site
from tests.trials import other_writers, packed, release_view

PATIENCE: Final = 240.0
"""Seconds that one step may take for all charts together."""
_POLL: Final = 0.2
_QUIET: Final = 4.0
"""Seconds after a step in which nothing more may happen."""
_COMPARED: Final = ("data", "rules")
_CHANGED_EACH_TIME: Final = "at each write"
_DONE: Final = ("Ready", "Failed")
_PULLED_YET: Final = "is still being pulled"
_INSTALLED: Final = 20.0
"""Seconds that a chart may take more to be installed, as they are installed one after another."""

Told = dict[str, str]
"""What became of each chart, by its name; what is wrong begins with :data:`BAD`."""
BAD: Final = "NOT "


@dataclasses.dataclass(frozen=True, slots=True)
class Trial:
    """Charts, the operator's site, and the releases."""

    charts: list[packed.Chart]
    """Those that go on: one that cannot be installed is left out."""
    site: operator_site.Site
    releases: release_view.Releases
    edits: dict[str, dict[packed.Edit, dict[str, Any]]]
    """What to set, by chart."""
    said: dict[tuple[str, str], str]
    """Errors of the operator, by chart and edit."""

    @property
    def names(self) -> list[str]:
        """Return the names of all charts."""
        return [chart.name for chart in self.charts]

    def key(self, chart: str) -> str:
        """Return the key of the chart's section."""
        return names.values_key(names.ModuleName(chart))

    def write_modules(self, repository: str) -> None:
        """Write a module for each chart."""
        self.site.values("".join(f"{self.key(name)}Enabled: true\n" for name in self.names))
        for chart in self.charts:
            values = yaml.safe_dump({self.key(chart.name): dict(chart.values)}) if chart.values else ""
            module = self.site.module(f"100-{chart.name}", values=values)
            about = {
                "namespace": self.releases.namespace(chart.name),
                "createNamespace": True,
                "chart": {"repository": repository, "name": chart.name, "version": chart.version},
            }
            (module / "module.yaml").write_text(yaml.safe_dump(about))

    def states(self) -> dict[str, str]:
        """Return the state of each module."""
        path = f"/apis/addon-operator.io/v1alpha1/namespaces/{self.site.namespace}/modules"
        items = self.releases.api.request("GET", path).get("items", ())
        return {each["metadata"]["name"]: each.get("status", {}).get("state", "") for each in items}

    def error(self, chart: str) -> str:
        """Return the last error of a module."""
        path = f"/apis/addon-operator.io/v1alpha1/namespaces/{self.site.namespace}/modules/{chart}"
        return str(self.releases.api.request("GET", path).get("status", {}).get("lastError", ""))

    def lint(self) -> Told:
        """Look for mistakes in the modules on disk."""
        answer = self.site.command("module", "lint", "--output=json", str(self.site.modules))
        found = json.loads(answer.stdout)
        problems = {each["subject"]: each["problem"] for each in found if each["level"] == "error"}
        return {name: f"{BAD}{problems[name]}" if name in problems else "ok" for name in self.names}

    def plan(self, wanted: str) -> Told:
        """Ask what the operator would do; each chart has to be told ``wanted``."""
        answer = self.site.command("plan", "--output=json")
        if not answer.stdout:
            return dict.fromkeys(self.names, f"{BAD}{answer.stderr.strip()}")
        steps = {
            each["name"]: (each["action"], each["reason"]) for each in json.loads(answer.stdout)["modules"]
        }
        return {
            name: "ok" if steps[name][0] == wanted else f"{BAD}{': '.join(steps[name])}"
            for name in self.names
        }

    def install(self, **settings: str) -> tuple[operator_process.OperatorProcess, Told]:
        """Start an operator."""
        operator = self.site.start(CONVERGE_ON_FAILURE="continue", LOG_TYPE="json", **settings)
        told = self._until(
            self.names,
            lambda name, states: (
                states.get(name) == "Ready"
                or (states.get(name) == "Failed" and _PULLED_YET not in self.error(name))
            ),
            patience=PATIENCE + _INSTALLED * len(self.charts),
        )
        for chart in list(self.charts):
            if self.states().get(chart.name) != "Ready":
                told[chart.name] = f"{BAD}{self.error(chart.name)}"
                self.charts.remove(chart)
                self.site.config(**{f"{self.key(chart.name)}Enabled": "false"})
        operator.wait_until(lambda: operator.get("/readyz").status == 200, "it is ready", deadline=PATIENCE)
        return operator, told

    def restart(
        self, operator: operator_process.OperatorProcess, **settings: str
    ) -> tuple[operator_process.OperatorProcess, Told]:
        """End the operator and start another one: no release may get a revision."""
        before = self.releases.revisions()
        operator.stop()
        calls = len(self.site.helm_calls())
        began = time.monotonic()
        after = self.site.start(CONVERGE_ON_FAILURE="continue", LOG_TYPE="json", **settings)
        after.wait_until(lambda: after.get("/readyz").status == 200, "it is ready", deadline=PATIENCE)
        text = f"ok {time.monotonic() - began:.0f}s, {len(self.site.helm_calls()) - calls} calls of helm"
        self._until(self.names, lambda name, states: states.get(name) in _DONE)
        now, states = self.releases.revisions(), self.states()
        told = dict.fromkeys(self.names, text)
        for name in self.names:
            if now.get(name) != before.get(name):
                told[name] = f"{BAD}revisions {before.get(name)} → {now.get(name)}"
            elif states.get(name) != "Ready":
                told[name] = f"{BAD}{states.get(name)}: {self.error(name)}"
        return after, told

    def leave_alone(
        self, others: other_writers.Others, operator: operator_process.OperatorProcess, seconds: float
    ) -> Told:
        """Let others do what is theirs for so long: nothing of that is drift, nor makes a revision."""
        before = self.releases.revisions()
        things = {name: [*self.releases.things(name), *self.releases.claims(name)] for name in self.names}
        told: Told = {}
        until = time.monotonic() + seconds
        others.arrive()
        while time.monotonic() < until:
            for name in self.names:
                others.write(things[name])
            time.sleep(_QUIET)
            told |= {name: f"{BAD}{text}" for name, text in self.drifted().items()}
        others.leave()
        if others.refused > others.writes:
            told["others"] = f"{BAD}{others.refused} writes were refused, {others.writes} were not"
        log, now = operator.log.splitlines(), self.releases.revisions()
        for name in self.names:
            said = [line for line in log if _CHANGED_EACH_TIME in line and f'"{name}"' in line]
            if len(said) != len(set(map(_message, said))):
                told[name] = f"{BAD}told more than once: {said}"
            if now[name] != before[name]:
                told[name] = f"{BAD}revisions {before[name]} → {now[name]}"
            told.setdefault(name, f"ok, {len(said)} changed at each write")
        return told

    def drifted(self) -> Told:
        """Return what the modules say of drift, of those that say so."""
        path = f"/apis/addon-operator.io/v1alpha1/namespaces/{self.site.namespace}/modules"
        return {
            each["metadata"]["name"]: condition["message"]
            for each in self.releases.api.request("GET", path).get("items", ())
            for condition in each.get("status", {}).get("conditions", ())
            if condition["type"] == "Drifted" and condition["status"] == "True"
        }

    def heal(self) -> Told:
        """Delete all objects of all releases: they come back without a revision, and with their data."""
        revisions = self.releases.revisions()
        things = {name: self.releases.things(name) for name in self.names}
        before = {
            name: {thing: body for thing in things[name] if (body := self.releases.read(thing))}
            for name in self.names
        }
        for name in self.names:
            for thing in before[name]:
                self.releases.api.request("DELETE", thing.path)

        def back(name: str, _: object) -> bool:
            return all(
                _uid(self.releases.read(each)) not in ("", _uid(body)) for each, body in before[name].items()
            )

        told = self._until(self.names, back)
        time.sleep(_QUIET)
        now = self.releases.revisions()
        for name in self.names:
            differ = [
                thing.path
                for thing, body in before[name].items()
                for field in _COMPARED
                if body.get(field) != self.releases.read(thing).get(field)
            ]
            if differ or now[name] != revisions[name]:
                told[name] = f"{BAD}differ: {differ}, revisions {revisions[name]} → {now[name]}"
            else:
                told[name] += f", {len(before[name])} objects"
        return told

    def edit(self) -> Told:
        """Set something in all charts that they use: one revision each."""
        charts = self._with(packed.Edit.USED)
        before = self.releases.revisions()
        self._set({name: self.edits[name][packed.Edit.USED] for name in charts})
        told = self._until(
            charts,
            lambda name, states: (
                states[name] == "Failed" or _is_deployed(self.releases, name, max(before[name]) + 1)
            ),
        )
        time.sleep(_QUIET)
        states = self.states()
        for name, found in self.releases.revisions().items():
            if name in charts and (max(found) != max(before[name]) + 1 or states[name] == "Failed"):
                told[name] = f"{BAD}{found} after {max(before[name])}; {self.error(name)}"
                del self.edits[name][packed.Edit.USED]
                self._set({name: {}})
        return told

    def wrong(self, sort: packed.Edit, operator: operator_process.OperatorProcess) -> Told:
        """Set something wrong, and undo it: the last good release stays, and an error says what is wrong."""
        charts = self._with(sort)
        if sort is not packed.Edit.SCHEMA:
            return self._wrong(sort, charts, operator) if charts else {}
        # An edit with a mistake that the schema finds counts for nothing as a whole.
        told: Told = {}
        for name in charts:
            told |= self._wrong(sort, [name], operator)
        return told

    def _wrong(
        self, sort: packed.Edit, charts: list[str], operator: operator_process.OperatorProcess
    ) -> Told:
        before = self.releases.revisions()
        deployed = {name: self.releases.deployed(name) for name in charts}
        seen = len(operator.log)
        self._set(
            {
                name: packed.merged(self.edits[name].get(packed.Edit.USED, {}), self.edits[name][sort])
                for name in charts
            }
        )

        def refused(name: str, states: Mapping[str, str]) -> bool:
            error = self.error(name) if states.get(name) == "Failed" else ""
            self.said[name, sort] = error or _logged(operator.log[seen:], f" {self.key(name)}")
            return bool(self.said[name, sort])

        told = self._until(charts, refused)
        time.sleep(_QUIET)
        now = self.releases.revisions()
        for name in charts:
            new = {number: status for number, status in now[name].items() if number > max(before[name])}
            gone = [each.path for each in self.releases.things(name) if not self.releases.read(each)]
            kept = self.releases.deployed(name) == deployed[name] and not gone
            if not kept or len(new) > 1 or set(new.values()) - {"failed"}:
                told[name] = f"{BAD}new revisions {new}, gone {gone}"
        self._set({name: self.edits[name].get(packed.Edit.USED, {}) for name in charts})
        healthy = self._until(
            charts, lambda name, states: states.get(name) == "Ready" and _is_deployed(self.releases, name, 0)
        )
        time.sleep(_QUIET if sort is not packed.Edit.SCHEMA else 0)
        told |= {name: text for name, text in healthy.items() if text.startswith(BAD)}
        for name, found in self.releases.revisions().items():
            if name in charts and len([each for each in found if each > max(now[name])]) > 1:
                told[name] = f"{BAD}revisions {found} after {now[name]}"
        return told

    def switch_off(self, before: Mapping[str, set[str]]) -> Told:
        """Disable all modules: what is left are definitions, volumes, and objects of Helm's hooks."""
        hooks = {name: self.releases.hook_objects(name) for name in self.names}
        self.site.config(**{f"{self.key(name)}Enabled": "false" for name in self.names})
        told = self._until(self.names, lambda name, _: name not in self.releases.revisions())
        time.sleep(_QUIET)
        now = self.releases.all_objects()
        usual = {"ConfigMap/kube-root-ca.crt", "ServiceAccount/default"}
        for name in self.names:
            left = now.get(self.releases.namespace(name), set()) - usual - hooks[name]
            if left:
                told[name] = f"{BAD}left: {sorted(left)}"
        elsewhere = {
            f"{space}/{each}"
            for space, objects in now.items()
            if space != self.site.namespace and space not in map(self.releases.namespace, self.names)
            for each in objects - before.get(space, set()) - set().union(*hooks.values())
        }
        return told | ({"elsewhere": f"{BAD}left: {sorted(elsewhere)}"} if elsewhere else {})

    def _with(self, sort: packed.Edit) -> list[str]:
        return [name for name in self.names if sort in self.edits[name]]

    def _set(self, sections: Mapping[str, Mapping[str, Any]]) -> None:
        self.site.config(**{self.key(name): yaml.safe_dump(dict(each)) for name, each in sections.items()})

    def _until(
        self,
        charts: Iterable[str],
        reached: Callable[[str, Mapping[str, str]], bool],
        patience: float = PATIENCE,
    ) -> Told:
        """Wait for each chart; what is told is the time."""
        began, told, waiting = time.monotonic(), {}, list(charts)
        while waiting and time.monotonic() - began < patience:
            states = self.states()
            for name in list(waiting):
                if reached(name, states):
                    told[name] = f"ok {time.monotonic() - began:.1f}s"
                    waiting.remove(name)
            time.sleep(_POLL)
        return told | {
            name: f"{BAD}in {patience:g} s: {self.states().get(name)} {self.error(name)}" for name in waiting
        }


def _uid(body: Mapping[str, Any]) -> str:
    return str(body.get("metadata", {}).get("uid", ""))


def _message(line: str) -> str:
    return str(json.loads(line)["msg"]) if line.startswith("{") else line


def _is_deployed(releases: release_view.Releases, chart: str, number: int) -> bool:
    found = releases.revisions().get(chart, {})
    return max(found, default=0) >= number and found[max(found)] == "deployed"


def _logged(log: str, place: str) -> str:
    """Return the first error about the ConfigMap that names the section."""
    for line in log.splitlines():
        said = json.loads(line)["msg"] if line.startswith("{") else ""
        if said.startswith("ConfigMap ") and f"{place}." in said.replace(":", "."):
            return str(said)
    return ""
