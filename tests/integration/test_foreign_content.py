"""The walk: whatever somebody hands in, as large as it may be, holds nobody's loop, probe or signal.

All paths are walked with generated content, and what held the loop is named with its place in the code.
Measured is processor time, so that other work of the machine does not count, against the project's limit of
20 ms; on a machine that is slower than the one that the limit is for, it is as much more.
"""

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Final

import pytest

from addon_operator.debug import debug_client
from addon_operator.devcluster import handle
from tests.integration import admitting, foreign_content, loop_holds, operator_process, operator_site

pytestmark = pytest.mark.integration

_KIB: Final = foreign_content.KIB
_SHARE: Final = 400 * _KIB
"""Of the ConfigMap and of the Secret, which may have 1 MiB each."""
_DEADLINE: Final = 120.0
_SHOWN: Final = (
    "/global/values.yaml",
    "/module/list.text",
    "/module/own/describe.json",
    "/module/own/values.yaml?global=true",
    "/module/own/config.json",
    "/module/own/patches.yaml",
    "/module/own/snapshots.yaml",
    "/module/own/render",
    "/module/stock/render?diff=true",
    "/module/resource-monitor.json",
    "/queue/list.text?showEmpty=true",
    "/hook-values.json?showSensitive=true",
)
_RULE: Final = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "healthy": "self.data.all(a, self.data.exists(b, self.data[b].size() > 0 && a != b + 'x'))",
}
"""Takes long for many keys."""
_NOTIFY: Final = "addon-operator-notify"
_NO_TIME: Final = "9999-12-31T23:59:59-23:59"
_HOOK: Final = """\
#!/bin/bash
if [ "${1:-}" = --config ]; then echo 'CONFIG'; exit; fi
for file in VALUES_JSON_PATCH METRICS KUBERNETES_PATCH; do
  place="${file}_PATH"
  if [ -e $CONTENT/$file ]; then cat $CONTENT/$file > "${!place}"; fi
done
if [ -e $CONTENT/LOG ]; then cat $CONTENT/LOG; cat $CONTENT/LOG >&2; fi
rm -f $CONTENT/METRICS $CONTENT/KUBERNETES_PATCH $CONTENT/LOG
echo run >> $CONTENT/runs
"""


class Walk:
    """An operator with all that content, and what has held it."""

    def __init__(self, site: operator_site.Site) -> None:
        self.site = site
        self.content = site.root / "content"
        self.content.mkdir()
        self.found: list[tuple[str, loop_holds.Hold]] = []
        self._slowness = 1.0
        site.holds, site.first_retry = site.root / "holds", operator_site.SOON
        self._write_modules()
        shared = json.dumps(foreign_content.values(_SHARE))
        site.config(own=shared, stock=shared)
        site.secret(own=json.dumps({"secrets": {f"k{number}": f"s{number:06}" for number in range(20_000)}}))
        for number in range(3):
            self.put(f"bound{number}", bound="yes")
        self.operator = site.start(
            WATCH_MODULES="true", CONTENT=str(self.content), HEALTH_RULES=json.dumps([_RULE])
        )

    def _write_modules(self) -> None:
        own = self.site.modules / "010-own"
        foreign_content.module(own, "own")
        foreign_content.chart(self.site.modules / "020-stock" / "chart", "stock")
        foreign_content.failing_chart(self.site.modules / "030-broken" / "chart")
        self.site.values("stockEnabled: true")
        said = foreign_content.text(100 * _KIB)
        self.site.script(
            own / "enabled", f"cat <<'END'\n{said}\nEND\ncat $0 >&2\necho true > $MODULE_ENABLED_RESULT"
        )
        binding = {
            "name": "maps",
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "jqFilter": "[.metadata.annotations, .data]",
            "namespace": {"nameSelector": {"matchNames": [self.site.namespace]}},
            "labelSelector": {"matchLabels": {"bound": "yes"}},
        }
        config = json.dumps({"configVersion": "v1", "beforeHelm": 1, "kubernetes": [binding]})
        (own / "hooks").mkdir()
        self.site.script(own / "hooks" / "writes.sh", _HOOK.replace("CONFIG", config), exact=True)

    def put(self, name: str, size: int = 700 * _KIB, **labels: str) -> None:
        """Write a ConfigMap."""
        self.site.apply(foreign_content.config_map(name, self.site.namespace, size, **labels))

    def patch(self, kind: str, name: str, patch: foreign_content.Object) -> None:
        """Change an object as its users do."""
        self.site.patch(kind, name, patch)

    def shown(self, path: str) -> str:
        """What the debug endpoint answers."""
        return debug_client.DebugClient(self.site.root / "debug.socket", _DEADLINE).get_text(path)

    def runs(self) -> int:
        """How often the hook has run."""
        path = self.content / "runs"
        return path.read_text().count("\n") if path.exists() else 0

    def went(self, where: str) -> None:
        """Note what has held the loop since the last time."""
        assert self.site.holds is not None
        self._slowness = max(self._slowness, loop_holds.slowness())
        new = loop_holds.read(self.site.holds)[len(self.found) :]
        self.found += ((where, hold) for hold in new)

    def too_long(self) -> list[str]:
        """What has held the loop for longer than anything may."""
        found = loop_holds.too_long([hold for _, hold in self.found], self._slowness)
        return [f"{where}: {hold}" for where, hold in self.found if hold in found]

    def settle(self, where: str) -> None:
        """Wait until everything is done, and note what has held the loop."""
        self.operator.wait_idle(_DEADLINE)
        self.went(where)


@contextlib.contextmanager
def probing(operator: operator_process.OperatorProcess) -> Iterator[list[operator_process.Answer]]:
    """Ask for ``/healthz`` as a probe does, all the time; what was wrong, once it has answered first."""
    wrong: list[operator_process.Answer] = []
    over = threading.Event()

    def ask() -> None:
        is_there = False
        while not over.wait(0.2):
            answer = operator.get("/healthz")
            is_there = is_there or answer.status == 200
            if is_there and answer.status != 200 and not over.is_set():
                wrong.append(answer)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield wrong
    finally:
        over.set()
        asking.join()


@pytest.mark.slow
def test_whatever_is_handed_in_nothing_holds_the_loop(site: operator_site.Site) -> None:
    walk = Walk(site)
    operator = walk.operator
    with probing(operator) as unanswered:
        operator.wait_ready(_DEADLINE)
        walk.settle("start")
        hand_in_outputs(walk)
        edit(walk)
        look(walk)
        repair(walk)
        reload(walk)
        meddle(walk)
        heal(walk)
        remove(walk)
    walk.operator.terminate()
    assert operator.wait_end(operator_process.STOP_DEADLINE).exit_code == 0
    walk.went("stop")
    assert walk.too_long() == []
    assert unanswered == []


def hand_in_outputs(walk: Walk) -> None:
    """A hook gives back as much as it may, and says as much."""
    content, before = walk.content, walk.runs()
    value = foreign_content.values(1536 * _KIB)
    (content / "VALUES_JSON_PATCH").write_text(
        json.dumps([{"op": "add", "path": "/own/given", "value": value}])
        + json.dumps(
            [{"op": "add", "path": f"/own/single{number}", "value": number} for number in range(2000)]
        )
    )
    (content / "METRICS").write_text(
        foreign_content.lines(
            *({"name": "given", "set": number, "labels": {"n": str(number)}} for number in range(2000))
        )
    )
    (content / "KUBERNETES_PATCH").write_text(
        foreign_content.lines(
            *(
                {
                    "operation": "CreateOrUpdate",
                    "object": foreign_content.config_map(f"made{number}", walk.site.namespace, 20_000),
                }
                for number in range(20)
            )
        )
    )
    said = {"level": "info", "msg": foreign_content.text(5000), "more": foreign_content.values(20_000)}
    (content / "LOG").write_text(
        foreign_content.lines(said) + (foreign_content.text(9000) + "\n") * 50 + "short\n" * 10_000
    )
    walk.put("bound0", 600 * _KIB, bound="yes")
    walk.operator.wait_until(lambda: walk.runs() > before, "the hook runs", deadline=_DEADLINE)
    walk.settle("outputs of a hook")
    assert "given{" in walk.operator.get("/metrics").text


def edit(walk: Walk) -> None:
    """Edits of the ConfigMap: one that is not right, and one that is, but for a chart that fails."""
    errors, failures = "config_values_errors_total", "module_run_errors_total"
    right = foreign_content.values(_SHARE) | {"edited": True}
    wrong = {f"property{number}": {"password": ["s" * 50], "name": 5} for number in range(1000)}
    before = walk.operator.metrics().total(errors)
    walk.site.config(own=json.dumps(right | wrong))
    walk.operator.wait_metric(before + 1, errors, _DEADLINE)
    walk.went("wrong edit")
    walk.site.config(own=json.dumps(right), brokenEnabled="true")
    walk.operator.wait_metric(1, failures, _DEADLINE, module="broken")
    walk.went("edit")


def look(walk: Walk) -> None:
    """What the operator shows of itself."""
    for path in ("/", "/metrics", "/readyz?verbose", "/status/converge"):
        assert walk.operator.get(path).status == 200
    walk.went("pages")
    client = debug_client.DebugClient(walk.site.root / "debug.socket", _DEADLINE)
    for path in _SHOWN:
        assert client.get_text(path)
        walk.went(path)


def repair(walk: Walk) -> None:
    """What fails goes, before it was ever there."""
    walk.site.config(brokenEnabled="false")
    walk.settle("repair")


def reload(walk: Walk) -> None:
    """Files of a module change."""
    own = walk.site.modules / "010-own"
    (own / "values.yaml").write_text(
        json.dumps({"own": foreign_content.values(310 * _KIB), "ownEnabled": True})
    )
    walk.operator.wait_logged("activation=ModulesChanged")
    walk.settle("reload")


def meddle(walk: Walk) -> None:
    """Others write as much as they may to what the operator and its modules have in the cluster."""
    annotated = {"suspended": 200_000, "suspended-by": 20_000, "run": 10_000, "now": 10_000}
    said = {f"addon-operator.io/{key}": foreign_content.text(size) for key, size in annotated.items()}
    times = {f"addon-operator.io/suspended-{key}": _NO_TIME for key in ("since", "until")}
    walk.patch("module", "own", {"metadata": {"annotations": {**said, **times}}})
    walk.operator.wait_until(
        lambda: '"suspended":""' not in walk.shown("/module/own/describe.json"),
        "it is suspended",
        deadline=_DEADLINE,
    )
    walk.went("annotations")
    walk.patch("module", "own", {"metadata": {"annotations": dict.fromkeys((*said, *times))}})
    data = {f"k{number}": "x" for number in range(5000)} | {"large": foreign_content.text(300 * _KIB)}
    for number in range(3):
        walk.patch("configmap", f"stock-{number}", {"data": data})
    walk.operator.wait_until(
        lambda: walk.operator.metrics().total("module_drifted_resources", module="stock") == 3,
        "the differences are found",
        deadline=_DEADLINE,
    )
    walk.went("live objects")
    mistakes = json.dumps({"targets": [1] * 10_000, "x": foreign_content.text(9000)})
    walk.site.create("secret", _NOTIFY, {"stringData": {"notify.yaml": mistakes}})
    walk.operator.wait_metric(1, "notifications_config_invalid", _DEADLINE)
    walk.settle("notify.yaml")


def heal(walk: Walk) -> None:
    """Objects of a release go."""
    walk.site.delete("configmap", *(f"stock-{number}" for number in range(20)), waits=False)
    walk.operator.wait_until(
        lambda: all(f"stock-{number}" in names(walk.site) for number in (0, 19)),
        "they are back",
        deadline=_DEADLINE,
    )
    walk.settle("healing")


def remove(walk: Walk) -> None:
    """A release goes."""
    walk.site.config(stockEnabled="false")
    walk.operator.wait_until(lambda: "stock-0" not in names(walk.site), "it is gone", deadline=_DEADLINE)
    walk.settle("removal")


def names(site: operator_site.Site) -> set[str]:
    """The ConfigMaps of the namespace."""
    return {each["metadata"]["name"] for each in site.objects("configmaps")}


@pytest.mark.slow
def test_pods_and_presets_as_large_as_they_may_be_hold_nobody(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    site.holds = site.root / "holds"
    with admitting.opened(site, devcluster) as shop:
        with probing(shop.operator) as unanswered:
            liked = foreign_content.text(100)
            shop.preset(
                env=[{"name": f"P{number}", "value": f"$(P{number - 1}) {liked}"} for number in range(1000)]
            )
            own = [{"name": f"V{number}", "value": f"$(V{number - 1}) $(V {liked}"} for number in range(1000)]
            pod = shop.pod(admitting.container(env=own))
            assert len(pod["spec"]["containers"][0]["env"]) == 2000
            shop.wait_events("UnresolvedVariable", 1)
        shop.operator.stop()
    holds = loop_holds.read(site.holds)
    assert [str(hold) for hold in loop_holds.too_long(holds, loop_holds.slowness())] == []
    assert unanswered == []


@pytest.mark.slow
def test_an_operator_that_reads_large_modules_ends_when_it_is_asked_to(site: operator_site.Site) -> None:
    for number in range(10):
        foreign_content.module(site.modules / f"{number:03}-m{number}", f"m{number}")
    operator = site.start()
    operator.wait_logged("starts")
    operator.terminate()
    assert operator.wait_end(10).exit_code == 0
