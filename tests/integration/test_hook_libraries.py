"""Hooks with the libraries, in a real operator and cluster."""

import textwrap

import pytest

from tests.integration import operator_site

pytestmark = pytest.mark.integration

# -S: like the Python of a module's own, which has nothing of the operator's environment.
PYTHON_HOOK = """\
#!/usr/bin/env -S python3 -S
from addon_operator import hook

CONFIG = {
    "configVersion": "v1",
    "beforeHelm": 10,
    "kubernetes": [
        {"name": "maps", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"counted": "yes"}},
         "namespace": {"nameSelector": {"matchNames": ["NAMESPACE"]}}, "jqFilter": ".data.n"},
    ],
}

def main(run: hook.Run) -> None:
    entries = run.contexts[0].objects or run.snapshots["maps"]
    numbers = [int(entry.filter_result) for entry in entries]
    run.values.set("web.internal.sum", sum(numbers))
    if "web.chosen" not in run.config_values:
        run.config_values.set("web.chosen", "by the hook")
    run.metrics.set("counted_maps", len(numbers), {"from": "python"})

if __name__ == "__main__":
    hook.run(CONFIG, main)
"""
BASH_HOOK = """\
#!/usr/bin/env bash
source "$ADDON_OPERATOR_SHELL_LIBRARY"

__config__() {
  echo '{configVersion: v1, beforeHelm: 20, afterHelm: 1}'
}

__on_before_helm() {
  values::set web.internal.double "$(($(values::get web.internal.sum) * 2))"
  values::set --config web.seen "$(values::get --config web.chosen)"
}

__on_after_helm() {
  kubernetes::apply <<YAML
apiVersion: v1
kind: ConfigMap
metadata: {name: from-bash, namespace: NAMESPACE}
data: {chosen: "$(values::get web.chosen)"}
YAML
  metrics::add runs_in_bash 1 "hook_of=web"
}

hook::run "$@"
"""
ENABLED = """\
source "$ADDON_OPERATOR_SHELL_LIBRARY"
values::get --default false global.webIsWanted > "$MODULE_ENABLED_RESULT"
"""


def test_hooks_with_the_libraries_work_with_values_objects_and_metrics(site: operator_site.Site) -> None:
    data = {
        "sum": "{{ .Values.web.internal.sum | quote }}",
        "double": "{{ .Values.web.internal.double | quote }}",
    }
    module = site.module("010-web", data, enabled=ENABLED)
    site.values("global: {webIsWanted: true}\nwebEnabled: true")
    for name, text in (("count.py", PYTHON_HOOK), ("double.sh", BASH_HOOK)):
        site.script(module / "hooks" / name, text.replace("NAMESPACE", site.namespace), exact=True)
    for number in ("3", "4"):
        site.create("configmap", f"n{number}", {"data": {"n": number}})
        site.label("configmap", f"n{number}", {"counted": "yes"})
    operator = site.start().wait_ready()
    operator.wait_until(
        lambda: site.data("from-bash") == {"chosen": "by the hook"}, "the object of the bash hook"
    )
    assert site.data("web") == {"sum": "7", "double": "14"}
    config = site.data(operator_site.CONFIG_MAP)
    assert config is not None
    assert sorted(textwrap.dedent(config["web"]).splitlines()) == ["chosen: by the hook", "seen: by the hook"]
    series = operator.get("/metrics").text
    assert 'counted_maps{from="python",hook="count.py",module="web"} 2.0' in series
    assert 'runs_in_bash{hook="double.sh",hook_of="web",module="web"}' in series
    operator.stop()
    assert list((site.root / "tmp").iterdir()) == []
