"""What the HTTP site tells of a whole operator, with admission, bindings and a failing module."""

import pytest

from tests.integration import operator_process, operator_site

pytestmark = pytest.mark.integration


def test_an_operator_with_all_its_watches_lives_and_shows_itself(site: operator_site.Site) -> None:
    web = site.module("020-web", {"size": "'1'"}, values="webEnabled: true\n")
    site.hook(web, "pods.sh", {"kubernetes": [{"apiVersion": "v1", "kind": "Pod"}]})
    broken = site.module("030-broken", values="brokenEnabled: true\n")
    site.hook(broken, "fails.sh", {"beforeHelm": 1}, "echo 'the password is hunter2' >&2; exit 1")
    port = operator_process.free_port()
    operator = site.start(
        WEBHOOK_URL=f"https://127.0.0.1:{port}",
        ADMISSION_SERVER_LISTEN_ADDRESS="127.0.0.1",
        ADMISSION_SERVER_LISTEN_PORT=str(port),
    )
    operator.wait_until(lambda: operator.get("/readyz/admission").status == 200, "pods are admitted")
    operator.wait_metric(1, "module_run_errors_total", module="broken")
    assert operator.get("/healthz") == operator_process.Answer(200, "ok\n")
    page = operator.get("/").text
    assert '<span class="word">Ready</span> <span class="name">web</span>' in page
    assert '<span class="word">Failed</span> <span class="name">broken</span>' in page
    assert "<p>the first converge is not done: " in page
    assert "hunter2" not in page
    ready = operator.get("/readyz")
    assert ready.status == 503
    assert "module broken failed" in ready.text
    assert "hook fails.sh failed with exit code 1" in ready.text
    assert "hunter2" not in ready.text
    for shown in (page.replace("&#x27;", "'"), ready.text):
        assert "'addon-operator module describe broken' shows the end of what it wrote" in shown
    assert "the password is hunter2" in site.command("module", "describe", "broken").stdout
    assert "GET /healthz" in operator.get("/discovery").text.splitlines()
    operator.stop()
