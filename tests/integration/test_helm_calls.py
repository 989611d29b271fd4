"""Helm calls of a running operator: ended with what they are for, and never for what is not its own."""

import pathlib

import pytest

from tests.integration import operator_process, operator_site
from tests.integration.helm_site import SLOW_HOOK

pytestmark = pytest.mark.integration

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: operator-0}
spec: {containers: [{name: operator, image: example.com/operator}]}
"""


def slow_module(site: operator_site.Site, directory: str) -> pathlib.Path:
    """A module whose Helm call does not end by itself."""
    module = site.module(directory, {"color": "green"})
    (module / "templates" / "slow.yaml").write_text(SLOW_HOOK)
    return module


def wait_for_slow_call(site: operator_site.Site, operator: operator_process.OperatorProcess) -> None:
    operator.wait_until(lambda: site.listed("job"), "Helm waits for its hook")


def helm_processes(site: operator_site.Site) -> list[str]:
    """Command lines of all helm processes of this site."""
    found = []
    for directory in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if site.namespace in command and "upgrade" in command:
            found.append(command)
    return found


def test_disabling_a_module_ends_its_helm_call_and_its_retries_at_once(site: operator_site.Site) -> None:
    site.values("webEnabled: true\napiEnabled: true\nbadEnabled: true")
    web = slow_module(site, "010-web")
    site.hook(web, "hook.sh", {"afterDeleteHelm": 1})
    bad = site.module("010-bad", {"color": "green"})
    (bad / "templates" / "bad.yaml").write_text('{{ fail "no way" }}')
    site.module("020-api", {"color": "green"})
    operator = site.start()
    wait_for_slow_call(site, operator)
    operator.wait_logged("module bad", "no way")
    assert helm_processes(site)

    site.config(webEnabled="false", badEnabled="false")
    operator.wait_ready(deadline=30)

    assert helm_processes(site) == []
    assert site.revisions() == {"api": 1}
    assert site.labels() == ["hook.sh afterDeleteHelm"]
    assert operator.metrics().total("tasks_queue_length") == 0
    operator.stop()


@pytest.mark.slow
def test_the_end_of_the_operator_ends_helm_after_the_grace_period_and_the_next_start_recovers(
    site: operator_site.Site,
) -> None:
    site.values("webEnabled: true")
    web = slow_module(site, "010-web")
    operator = site.start(SHUTDOWN_GRACE="1s")
    wait_for_slow_call(site, operator)
    operator.stop()
    assert helm_processes(site) == []
    (web / "templates" / "slow.yaml").unlink()
    site.start().wait_ready()
    assert site.data("web") == {"color": "green"}


def test_the_operators_own_release_and_ignored_ones_are_never_removed(site: operator_site.Site) -> None:
    site.values("webEnabled: true")
    site.module("010-web", {"color": "green"})
    charts = site.root / "charts"
    for release in ("ours", "ignored", "foreign"):
        chart = charts / release
        chart.mkdir(parents=True)
        site.chart(chart, {"a": "b"})
        if release == "ours":
            (chart / "templates" / "pod.yaml").write_text(POD)
        site.install(release, chart)
    operator = site.start(HELM_PURGE="all", HELM_IGNORE_RELEASE="ignored", ADDON_OPERATOR_POD="operator-0")
    operator.wait_ready()
    operator.wait_until(lambda: "foreign" not in site.revisions(), "its release is purged")
    assert site.revisions() == {"web": 1, "ours": 1, "ignored": 1}
