"""Signals at every moment of an operator's life, seen from outside: exit code, log, children, releases."""

import os
import pathlib
import signal
import threading

import pytest

from addon_operator.process import daemons
from tests.integration import crash_points, operator_process, operator_site

pytestmark = pytest.mark.integration

_SLOW_HELM = """\
#!/bin/sh
if [ "$1" = "{verb}" ]; then
  echo $$ > "{pid}"
  {body}
fi
exec "{helm}" "$@"
"""


def slow_helm(site: operator_site.Site, verb: str, body: str) -> pathlib.Path:
    """Have Helm do ``body`` before that verb; the file that gets its process id."""
    pid = site.root / "helm-pid"
    helm = site.helm.rename(site.root / "real-helm")
    site.script(site.helm, _SLOW_HELM.format(verb=verb, pid=pid, body=body, helm=helm), exact=True)
    return pid


def written(operator: operator_process.OperatorProcess, pid: pathlib.Path) -> int:
    """The process id in the file, as soon as it is there."""

    def text() -> str:
        return pid.read_text().strip() if pid.exists() else ""

    return int(operator.wait_until(text, f"{pid.name} is there"))


def is_gone(pid: int) -> bool:
    return daemons.ProcessTable().identify(pid) is None


@pytest.mark.slow
def test_a_running_helm_call_ends_by_itself_within_the_grace(site: operator_site.Site) -> None:
    site.values("webEnabled: true\napiEnabled: true")
    site.module("010-web", {"color": "green"})
    site.module("020-api", {"color": "green"})
    pid = slow_helm(site, "upgrade", "sleep 0.5")
    operator = site.start()
    written(operator, pid)
    operator.stop()
    assert site.revisions() == {"web": 1}, "the call went through, and no other module began"


def test_a_helm_call_that_takes_longer_is_ended_and_the_next_start_makes_up_for_it(
    site: operator_site.Site,
) -> None:
    site.values("webEnabled: true")
    site.module("010-web", {"color": "green"})
    pid = slow_helm(site, "upgrade", f"[ -e {site.root}/open ] || sleep 60")
    operator = site.start(SHUTDOWN_GRACE="300ms")
    helm = written(operator, pid)
    operator.stop()
    assert is_gone(helm)
    (site.root / "open").touch()
    operator = site.start().wait_ready()
    assert site.revisions() == {"web": 1}
    assert site.data("web") == {"color": "green"}
    # As Ctrl-C does.
    os.kill(operator.pid, signal.SIGINT)
    ended = operator.wait_end()
    assert ended.exit_code == 0
    assert "addon-operator stopped" in ended.output.splitlines()[-1]
    assert "Traceback" not in ended.output


@pytest.mark.slow
def test_a_second_signal_ends_the_grace_and_a_double_key_press_does_not(site: operator_site.Site) -> None:
    site.values("webEnabled: true")
    web = site.module("010-web", {"color": "green"})
    pid = site.root / "pid"
    site.hook(web, "slow.sh", {"onStartup": 1}, f"echo $$ > {pid}; exec sleep 60")
    operator = site.start(SHUTDOWN_GRACE="30s")
    hook = written(operator, pid)
    for _ in range(2):
        os.kill(operator.pid, signal.SIGINT)
    operator.wait_logged("stopping", "get their time")
    assert operator.get("/readyz").text == "the operator is stopping\n"
    assert operator.get("/healthz").status == 200
    # A second has to pass until a further signal is one of its own.
    assert not threading.Event().wait(1.2)
    assert not is_gone(hook), "it has its grace"
    os.kill(operator.pid, signal.SIGTERM)
    ended = operator.wait_end(deadline=15)
    assert ended.exit_code == 0
    assert "stopping at once" in ended.output
    assert is_gone(hook)


def test_sigterm_while_modules_are_discovered_ends_it_cleanly(site: operator_site.Site) -> None:
    pid = site.root / "pid"
    site.values("webEnabled: true")
    site.module("010-web", {"color": "green"}, enabled=f"echo $$ > {pid}; exec sleep 60")
    operator = site.start(SHUTDOWN_GRACE="300ms")
    script = written(operator, pid)
    operator.stop()
    assert is_gone(script)


@pytest.mark.slow
def test_sigterm_while_a_module_is_removed_leaves_the_rest_to_the_next_start(
    site: operator_site.Site,
) -> None:
    site.values("webEnabled: true")
    site.module("010-web", {"color": "green"})
    site.start().wait_ready().stop()
    pid = slow_helm(site, "uninstall", f"[ -e {site.root}/open ] || sleep 60")
    site.config(webEnabled="false")
    operator = site.start(SHUTDOWN_GRACE="300ms")
    helm = written(operator, pid)
    operator.stop()
    assert is_gone(helm)
    (site.root / "open").touch()
    site.start().wait_ready().wait_idle()
    assert site.revisions() == {}


@pytest.mark.slow
def test_sigterm_at_any_moment_of_the_start_ends_it_cleanly(site: operator_site.Site) -> None:
    """Whatever it is doing then: imports, the first requests, hooks' configurations, the first converge."""
    site.values("webEnabled: true")
    web = site.module("010-web", {"color": "green"})
    site.hook(web, "look.sh", {"onStartup": 1})
    for words in (("starts",), ("API server",), ("converge begins",)):
        operator = site.start()
        operator.wait_logged(*words)
        operator.stop()


@pytest.mark.slow
def test_a_part_that_crashes_ends_the_process_with_one_sentence(site: operator_site.Site) -> None:
    """The defect is made by a module that Python loads at its start, before the operator."""
    crash = site.root / "crash"
    crash.mkdir()
    environment = crash_points.prelude(crash, "crash_the_converger", site.environment())
    ended = site.start_with((), environment).wait_end()
    assert ended.exit_code == 1
    last = ended.output.splitlines()[-1]
    assert "level=error" in last
    assert "the operator stops because of a bug in its part engine (ValueError: a defect); report it" in last
