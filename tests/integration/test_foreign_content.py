"""The walk: whatever somebody hands in, as large as it may be, holds nobody's loop, probe or signal.

All paths are walked with generated content, and what held the loop is named. The project's limit is 20 ms.
Measured is processor time, but a collection of garbage, and what the kernel counts for a page or a switch,
come on top: what counts here is five times the limit. The content is so large that what is done on the loop,
or takes more than linear time in a thread, takes several times as much.
"""

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import admitting, foreign_content, loop_holds, operator_process, operator_site

pytestmark = pytest.mark.integration

LIMIT: Final = 5 * loop_holds.NOTED
_KIB: Final = foreign_content.KIB
_SHARE: Final = 400 * _KIB
"""Of the ConfigMap and of the Secret, which may have 1 MiB each."""
_DEADLINE: Final = 120.0
_HOOK: Final = """\
#!/bin/bash
if [ "${1:-}" = --config ]; then echo 'CONFIG'; exit; fi
for file in VALUES_JSON_PATCH METRICS KUBERNETES_PATCH; do
  place="${file}_PATH"
  if [ -e $CONTENT/$file ]; then cat $CONTENT/$file > "${!place}"; fi
done
if [ -e $CONTENT/LOG ]; then cat $CONTENT/LOG; cat $CONTENT/LOG >&2; fi
echo run >> $CONTENT/runs
"""


class Walk:
    """An operator with all that content, and what has held it."""

    def __init__(self, site: operator_site.Site) -> None:
        self.site = site
        self.content = site.root / "content"
        self.content.mkdir()
        self.found: list[str] = []
        self._read = 0
        site.holds, site.first_retry = site.root / "holds", operator_site.SOON
        self._write_modules()
        shared = json.dumps(foreign_content.values(_SHARE))
        site.config(own=shared, stock=shared)
        site.secret(own=json.dumps({"secrets": {f"k{number}": f"s{number:06}" for number in range(20_000)}}))
        for number in range(3):
            self.put(f"bound{number}", bound="yes")
        self.operator = site.start(WATCH_MODULES="true", CONTENT=str(self.content))

    def _write_modules(self) -> None:
        own = self.site.modules / "010-own"
        foreign_content.module(own, "own")
        foreign_content.chart(self.site.modules / "020-stock" / "chart", "stock")
        self.site.values("stockEnabled: true")
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
        path = self.content / "object.json"
        path.write_text(json.dumps(foreign_content.config_map(name, self.site.namespace, size, **labels)))
        self.site.kubectl("apply", "--server-side", "--force-conflicts", f"--filename={path}")

    def runs(self) -> int:
        """How often the hook has run."""
        path = self.content / "runs"
        return path.read_text().count("\n") if path.exists() else 0

    def went(self, where: str) -> None:
        """Note what has held the loop since the last time."""
        assert self.site.holds is not None
        found = loop_holds.read(self.site.holds)
        self.found += [f"{where}: {hold}" for hold in found[self._read :] if hold.seconds >= LIMIT]
        self._read = len(found)

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


def test_whatever_is_handed_in_nothing_holds_the_loop(site: operator_site.Site) -> None:
    walk = Walk(site)
    operator = walk.operator
    with probing(operator) as unanswered:
        operator.wait_ready(_DEADLINE)
        walk.settle("start")
        hand_in_outputs(walk)
        edit(walk)
        look(walk)
        reload(walk)
        heal(walk)
    walk.operator.terminate()
    assert operator.wait_end(operator_process.STOP_DEADLINE).exit_code == 0
    walk.went("stop")
    assert walk.found == []
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
            *({"name": "given", "set": number, "labels": {"n": str(number)}} for number in range(8000))
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
    """Edits of the ConfigMap: one that is right, and one that is not."""
    errors = "config_values_errors_total"
    right = foreign_content.values(_SHARE) | {"edited": True}
    walk.site.config(own=json.dumps(right))
    walk.operator.wait_logged("activation=ConfigMapChanged")
    wrong = {f"property{number}": {"password": ["s" * 50], "name": 5} for number in range(1000)}
    before = walk.operator.metrics().total(errors)
    walk.site.config(own=json.dumps(right | wrong))
    walk.operator.wait_metric(before + 1, errors)
    walk.site.config(own=json.dumps(right))
    walk.settle("edits")


def look(walk: Walk) -> None:
    """What the operator shows of itself."""
    for path in ("/", "/metrics", "/readyz?verbose", "/status/converge"):
        assert walk.operator.get(path).status == 200
    walk.went("pages")
    for command in (
        "values own",
        "config own",
        "patches own",
        "snapshots own",
        "render own",
        "resource-monitor",
    ):
        done = walk.site.command("module", *command.split())
        assert done.returncode == 0, done.stderr
        walk.went(f"module {command}")


def reload(walk: Walk) -> None:
    """Files of a module change."""
    own = walk.site.modules / "010-own"
    (own / "values.yaml").write_text(
        json.dumps({"own": foreign_content.values(310 * _KIB), "ownEnabled": True})
    )
    walk.operator.wait_logged("activation=ModulesChanged")
    walk.settle("reload")


def heal(walk: Walk) -> None:
    """Objects of a release go."""
    walk.site.kubectl("delete", "configmap", *(f"stock-{number}" for number in range(20)), "--wait=false")
    walk.operator.wait_until(
        lambda: all(f"stock-{number}" in names(walk.site) for number in (0, 19)),
        "they are back",
        deadline=_DEADLINE,
    )
    walk.settle("healing")


def names(site: operator_site.Site) -> set[str]:
    """The ConfigMaps of the namespace."""
    return {each["metadata"]["name"] for each in site.objects("configmaps")}


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
    assert [str(hold) for hold in loop_holds.read(site.holds) if hold.seconds >= LIMIT] == []
    assert unanswered == []


def test_an_operator_that_reads_large_modules_ends_when_it_is_asked_to(site: operator_site.Site) -> None:
    for number in range(10):
        foreign_content.module(site.modules / f"{number:03}-m{number}", f"m{number}")
    operator = site.start()
    operator.wait_logged("starts")
    operator.terminate()
    assert operator.wait_end(10).exit_code == 0
