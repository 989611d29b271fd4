"""Hooks bound to schedules: real hooks, real time."""

import pytest

from tests.integration import operator_site

pytestmark = pytest.mark.integration

EVERY_SECOND = "* * * * * *"


def runs_of(site: operator_site.Site, hook: str) -> list[operator_site.HookRun]:
    return [run for run in site.runs() if run.hook == hook]


def test_hooks_tick_from_the_end_of_the_first_converge_to_the_end_of_their_module(
    site: operator_site.Site,
) -> None:
    site.config(webEnabled="true")
    web = site.module("010-web", {"ticks": "{{ .Values.web.ticks | default 0 | quote }}"})
    ticks = {"schedule": [{"name": "often", "crontab": EVERY_SECOND}]}
    site.hook(web, "slow.sh", {"beforeHelm": 1}, body="sleep 1.5")
    patch = """echo '{"op": "add", "path": "/web/ticks", "value": "7"}' > "$VALUES_JSON_PATCH_PATH\""""
    site.hook(web, "web.sh", ticks, body=patch)
    site.hook(site.global_hooks, "all.sh", {**ticks, "afterAll": 1})
    every = {"schedule": [{"crontab": "@every 1s", "queue": "other", "allowFailure": True}]}
    site.hook(site.global_hooks, "fail.sh", every, body="exit 1")
    operator = site.start().wait_ready()
    operator.wait_until(lambda: site.data("web") == {"ticks": "7"}, "a tick changes the values of the chart")
    allowed = {"hook": "fail.sh", "queue": "other"}
    operator.wait_metric(2, "global_hook_run_allowed_errors_total", **allowed)
    labels = site.labels()
    assert labels.index("web.sh often") > labels.index("all.sh afterAll")
    assert labels.index("all.sh often") > labels.index("all.sh afterAll")
    assert runs_of(site, "web.sh")[0].contexts == [{"binding": "often", "type": "Schedule"}]
    metrics = operator.metrics()
    assert metrics.total("global_hook_run_errors_total", hook="fail.sh") == 0
    assert metrics.total("module_hook_run_success_total", hook="web.sh", activation="Schedule") >= 1

    site.config(webEnabled="false")
    operator.wait_until(lambda: site.data("web") is None, "the module is gone")
    operator.wait_idle()
    ended, before = len(runs_of(site, "web.sh")), len(runs_of(site, "all.sh"))
    operator.wait_until(lambda: len(runs_of(site, "all.sh")) >= before + 2, "global hooks tick on")
    assert len(runs_of(site, "web.sh")) == ended
    operator.stop()


@pytest.mark.slow
def test_ticks_that_come_while_a_hook_runs_are_one_and_other_hooks_go_on(site: operator_site.Site) -> None:
    gate = site.root / "gate"
    ticks = {"schedule": [{"crontab": EVERY_SECOND, "queue": "busy"}]}
    site.hook(
        site.global_hooks, "busy.sh", ticks, body=f"until test -e {gate}; do sleep 0.05; done; sleep 0.3"
    )
    free = {"schedule": [{"crontab": EVERY_SECOND}]}
    limited = {**free, "settings": {"executionMinInterval": "1h", "executionBurst": 2}}
    site.hook(site.global_hooks, "free.sh", free)
    site.hook(site.global_hooks, "limited.sh", limited)
    site.values("badEnabled: true")
    site.hook(site.module("010-bad"), "bad.sh", {"beforeHelm": 1}, body="exit 1")
    operator = site.start()
    operator.wait_until(lambda: len(runs_of(site, "busy.sh")) == 1, "a module that fails stops no ticks")
    start = len(runs_of(site, "free.sh"))
    operator.wait_until(lambda: len(runs_of(site, "free.sh")) >= start + 3, "the other hook ticks")
    assert operator.metrics().total("tasks_queue_length", queue="busy") <= 2
    gate.touch()
    operator.wait_until(lambda: len(runs_of(site, "busy.sh")) >= 3, "it goes on")
    assert all(len(run.contexts) == 1 for run in runs_of(site, "busy.sh"))
    assert len(runs_of(site, "limited.sh")) == 2, "its burst"
    operator.stop()
