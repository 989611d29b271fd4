"""A life of two modules in which upgrades fail, are taken back and mended, and people interfere."""

import datetime as dt
import time
from types import MappingProxyType
from typing import Final

from typing_extensions import override

from tests.integration import crash_scenario
from tests.integration.crash_scenario import Json

FAIL: Final = "fail"
BREAK: Final = "break"
MEND: Final = "mend"
TOUCH: Final = "touch"
_SETTLES: Final = 3.0
"""Seconds."""
_WRONG: Final = """\
{{{{ if .Values.{name}.fails }}}}
---
apiVersion: v1
kind: Service
metadata: {{name: wrong{name}}}
spec: {{ports: [{{port: 99999}}]}}
{{{{ end }}}}
"""
_CHECK: Final = """\
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: check{name}, annotations: {{helm.sh/hook: test}}}}
data: {{checked: "yes"}}
"""
_YAML: Final = "health: {test: true}\nremediation: {rollback: true}\ndrift: {mode: correct}\n"


class Remedies(crash_scenario.Scenario):
    """What fails is taken back, what was tested is known, and what was asked for is done once.

    A first install fails while another module is installed and tested. Then an upgrade of that one fails
    while the first is mended. Then it is mended, too. At last somebody changes a resource of it, has the
    other module run, and suspends it for a moment.
    """

    phases = (FAIL, BREAK, MEND, TOUCH)
    variables = MappingProxyType({"CONVERGE_ON_FAILURE": "continue"})

    @override
    def _write(self) -> None:
        web, api = self.name("web"), self.name("api")
        self.site.values(
            f"{web}Enabled: true\n{api}Enabled: true\n{web}: {{color: green}}\n{api}: {{fails: true}}\n"
        )
        module = self.site.module(
            f"010-{web}",
            {
                "color": f"{{{{ .Values.{web}.color }}}}",
                "token": f"{{{{ .Values.{web}.token }}}}",
                "size": f'"{{{{ .Values.{web}.size }}}}"',
            },
        )
        (module / "templates" / "more.yaml").write_text(_WRONG.format(name=web) + _CHECK.format(name=web))
        (module / "module.yaml").write_text(_YAML)
        token = f'[{{"op": "add", "path": "/{web}/token", "value": "made-at-start"}}]'
        self.site.hook(module, "token.sh", {"onStartup": 1}, crash_scenario.give("VALUES_JSON", token))
        size = f'[{{"op": "add", "path": "/{web}/size", "value": 3}}]'
        self.site.hook(module, "size.sh", {"beforeHelm": 1}, crash_scenario.give("CONFIG_VALUES_JSON", size))
        other = self.site.module(f"020-{api}", {"color": "blue"})
        (other / "templates" / "more.yaml").write_text(_WRONG.format(name=api))
        (other / "module.yaml").write_text(_YAML)
        self.site.hook(other, "note.sh", {"afterHelm": 1}, self.note("noted", "yes"))

    @override
    def _do(self, phase: str) -> None:
        web, api = self.name("web"), self.name("api")
        if phase == BREAK:
            self.site.config(**{web: "color: red\nfails: true\nsize: 3\n", api: "fails: false\n"})
        elif phase == MEND:
            self.site.config(**{web: "color: blue\nsize: 3\n"})
        else:
            # What is changed sooner may be the work of the chart's own hooks, which is no drift.
            time.sleep(_SETTLES)
            until = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=3)).isoformat()
            asked = {"suspended": "a moment", "suspended-until": until, "run": "1"}
            self.site.annotate(
                "module", api, {f"addon-operator.io/{key}": text for key, text in asked.items()}
            )
            self.site.patch("configmap", web, {"data": {"color": "touched"}})

    @override
    def is_over(self, phase: str, objects: Json) -> bool:
        web, api = (objects["modules"][name] for name in ("web", "api"))
        told = (web["ready"], api["ready"])
        if phase == FAIL:
            return told == ("RunSucceeded", "RolledBack") and "api" not in objects["releases"]
        if phase == BREAK:
            return told == ("RolledBack", "RunSucceeded")
        color = crash_scenario.color(objects)
        is_mended = told == ("RunSucceeded", "RunSucceeded") and color == "blue"
        is_done = api["run"] == "1" and not api["suspended"] and not api["annotations"]
        return is_mended and (phase == MEND or is_done)

    @override
    def tells_apart(self, point: str) -> bool:
        """See :meth:`.Scenario.tells_apart`: of what is tried again and again, the first time counts.

        The status of Modules is written when there is time for it, as in :class:`.InstallEditDisable`; only
        what somebody asked for is sure to be answered there.
        """
        is_status = " modules/" in point and "annotations" not in point
        is_shared = "modules.addon-operator.io" in point
        is_first = point.endswith("#1")
        return is_first and not (": before " in point or "values of" in point or is_shared or is_status)

    @override
    def cost(self, point: str) -> int:
        """What was half taken back fails, and is taken back, once more."""
        return 2

    @override
    def _shown(self, body: Json) -> Json:
        status = body.get("status", {})
        reasons = {each["type"]: each["reason"] for each in status.get("conditions", ())}
        annotations = body.get("metadata", {}).get("annotations") or {}
        return {
            "ready": reasons.get("Ready"),
            "run": status.get("lastHandledRun"),
            "suspended": "suspended" in status,
            "annotations": [key for key in annotations if "suspended" in key],
        }
