"""The debug commands against an operator at work."""

import base64
import json
import stat
import subprocess
import sys
from typing import Any

import pytest

from tests.integration import operator_site, terminals

pytestmark = pytest.mark.integration

SECRET = "hunter2-and-more"
_SCHEMA = """\
type: object
properties:
  password: {type: string, x-sensitive: true}
  size: {type: integer}
"""


class Commands:
    """The command line beside an operator."""

    def __init__(self, site: operator_site.Site, **environment: str) -> None:
        self._site = site
        self._environment = environment

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, whatever that is."""
        return self._site.command(*arguments, **self._environment)

    def text(self, *arguments: str) -> str:
        """What a command that succeeds prints."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, *arguments: str) -> Any:  # noqa: ANN401  # JSON
        """The document that a command prints."""
        return json.loads(self.text(*arguments, "-o", "json"))

    def error(self, *arguments: str) -> str:
        """The one sentence that a command fails with."""
        done = self.run(*arguments)
        assert done.returncode == 1, done.stdout
        assert done.stdout == ""
        (line,) = done.stderr.splitlines()
        return line


def make_modules(site: operator_site.Site) -> None:
    values = f"webEnabled: true\nweb: {{password: {SECRET}, size: 2}}\n"
    web = site.module("020-web", {"size": "{{ .Values.web.size | quote }}"}, values=values)
    (web / "templates" / "secret.yaml").write_text(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: web}\n"
        "stringData: {password: {{ .Values.web.password | quote }}}\n"
    )
    (web / "openapi").mkdir()
    (web / "openapi" / "config-values.yaml").write_text(_SCHEMA)
    (web / "openapi" / "values.yaml").write_text("x-extend: {schema: config-values.yaml}\n")
    site.hook(web, "more.sh", {"beforeHelm": 10}, """\
        echo '[{"op": "add", "path": "/web/size", "value": 3}]' > "$VALUES_JSON_PATCH_PATH"
    """)  # fmt: skip
    mine = {"namespace": {"nameSelector": {"matchNames": [site.namespace]}}}
    secrets = {"name": "secrets", "apiVersion": "v1", "kind": "Secret", "jqFilter": ".data", **mine}
    maps = {"name": "maps", "apiVersion": "v1", "kind": "ConfigMap", "jqFilter": ".metadata.name", **mine}
    site.hook(web, "watches.sh", {"kubernetes": [secrets, maps]})
    site.module("030-dns", values="dnsEnabled: false\n")
    site.hook(site.global_hooks, "start.sh", {"onStartup": 1})


def test_an_operator_is_looked_at_from_the_outside(site: operator_site.Site) -> None:
    make_modules(site)
    site.config(web="size: 2\n")
    operator = site.start().wait_ready().wait_idle()
    ask = Commands(site)
    socket = site.root / "debug.socket"
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600

    check_lists(ask)
    check_values(ask)
    check_objects(ask)
    check_renders(ask, site)
    assert ask.error("module", "values", "wbe") == "Error: there is no module 'wbe'; did you mean 'web'?"
    assert ask.text("config", "set", "log.level", "debug", "10m").startswith("log.level is debug for ")
    assert ask.json("config", "list")[0]["value"] == "debug"
    assert "debug endpoint is alive" in ask.text("raw", "/")

    second = site.start().wait_end()
    assert second.exit_code == 1
    assert "another operator answers on the debug socket" in second.output
    operator.stop()
    assert not socket.exists()
    assert ask.error("queue", "list").startswith("Error: no operator runs: there is no socket ")


def check_lists(ask: Commands) -> None:
    listed = ask.json("module", "list")
    web, dns = listed["modules"]
    assert listed["enabledModules"] == ["web"]
    assert (web["name"], web["state"], web["order"], web["lastError"]) == ("web", "Ready", 20, "")
    assert web["lastRun"] is not None
    assert (dns["name"], dns["state"], dns["enabled"]) == ("dns", "Disabled", False)
    table = ask.text("module", "list").splitlines()
    assert table[0].split() == [
        "MODULE",
        "ORDER",
        "STATE",
        "HEALTHY",
        "REVISION",
        "LAST",
        "RUN",
        "MESSAGE",
    ]
    assert (
        ask.json("module", "list")["modules"][0]["revision"]
        == ask.json("module", "describe", "web")["revision"]
    )
    assert [line.split()[:3] for line in table[1:]] == [["web", "20", "Ready"], ["dns", "30", "Disabled"]]
    assert ask.text("global", "list") == "start.sh\n"
    assert ask.text("queue", "list") == "main: no tasks\n"
    assert ask.json("queue", "main")["tasksCount"] == 0


def check_values(ask: Commands) -> None:
    assert ask.json("module", "values", "web") == {"size": 3, "password": "***"}
    assert ask.json("module", "values", "web", "--show-sensitive")["password"] == SECRET
    assert set(ask.json("module", "values", "-g", "web")) == {"global", "web"}
    assert ask.json("module", "config", "web") == {"size": 2}
    assert ask.json("module", "patches", "web") == [{"op": "add", "path": "/web/size", "value": 3}]


def check_objects(ask: Commands) -> None:
    (resources,) = ask.json("module", "resource-monitor").values()
    assert {row["kind"] for row in resources} == {"ConfigMap", "Secret"}
    assert {row["state"] for row in resources} == {"present"}
    held = ask.json("module", "snapshots", "web")["watches.sh"]
    assert "web" in [entry["filterResult"] for entry in held["maps"]]
    assert {entry["filterResult"] for entry in held["secrets"]} == {"***"}
    encoded = base64.b64encode(SECRET.encode()).decode()
    assert encoded not in ask.text("module", "snapshots", "web")
    assert encoded in ask.text("module", "snapshots", "web", "--show-sensitive")


def check_renders(ask: Commands, site: operator_site.Site) -> None:
    manifest = ask.text("module", "render", "web")
    assert 'size: "3"' in manifest
    assert SECRET not in manifest
    assert SECRET in ask.text("module", "render", "web", "--show-sensitive")
    assert ask.text("module", "render", "web", "--diff") == "No differences.\n"
    site.chart(site.modules / "020-web", {"size": "'9'"})
    shown = site.command("module", "render", "web", "--diff")
    assert shown.returncode == 1
    difference = shown.stdout
    assert "-  size: '3'\n+  size: '9'\n" in difference
    assert SECRET not in difference


@pytest.mark.slow
def test_a_list_is_watched_on_a_terminal_until_ctrl_c(site: operator_site.Site) -> None:
    site.module("020-web", values="webEnabled: true\n")
    operator = site.start().wait_ready()
    command = [sys.executable, "-m", "addon_operator", "module", "list", "--watch", "-t", "100ms"]
    with terminals.Terminal(command, site.root, site.environment({"NO_COLOR": "1"})) as terminal:
        operator.wait_until(lambda: terminal.written.count(b"MODULE") >= 3, "it is drawn again and again")
        terminal.type("\x03")
        assert terminal.ended() == 0
    assert b"Traceback" not in terminal.written
    assert terminal.afterwards() == "", "the screen is given back"
    operator.stop()


def test_a_failing_module_shows_in_module_and_queue(site: operator_site.Site) -> None:
    web = site.module("020-web", {"size": "'1'"}, values="webEnabled: true\n")
    site.hook(web, "fails.sh", {"beforeHelm": 10}, "echo 'it went wrong' >&2; exit 1")
    site.hook(web, "waits.sh", {"kubernetes": [{"name": "shops", "apiVersion": "none/v1", "kind": "Shop"}]})
    operator = site.start()
    ask = Commands(site)
    operator.wait_metric(1, "module_run_errors_total")
    (row,) = ask.json("module", "list")["modules"]
    assert row["state"] in ("Failed", "Running")
    (waiting,) = row["waitingBindings"]
    assert (waiting["hook"], waiting["binding"]) == ("waits.sh", "shops")
    assert "no kind 'Shop'" in waiting["reason"]
    assert "it went wrong; binding shops (Shop) of hook waits.sh waits: " in ask.text("module", "list")
    (queue,) = ask.json("queue", "list")["active"]
    assert (queue["name"], queue["tasks"][0]["module"]) == ("main", "web")
    assert queue["headTries"] >= 1
    assert "it went wrong" in queue["tasks"][0]["lastError"]
    assert "it went wrong" in ask.text("queue", "list")
    operator.stop()


def test_a_module_is_run_and_tried_again_when_somebody_asks(site: operator_site.Site) -> None:
    web = site.module("020-web", {"size": "'1'"}, values="webEnabled: true\n")
    broken = site.root / "broken"
    site.hook(web, "run.sh", {"afterHelm": 1}, f"""\
        echo run >> {site.root}/runs
        if [ -e {broken} ]; then echo "the disk is full" >&2; exit 1; fi
    """)  # fmt: skip
    site.first_retry = 600.0
    operator = site.start().wait_ready().wait_idle()
    ask, runs = Commands(site), site.root / "runs"
    assert "nothing of it waits for another try" in ask.error("module", "retry", "web")
    assert ask.text("module", "run", "web", "--wait") == "module web is Ready\n"
    assert runs.read_text().count("run") == 2
    assert ask.json("module", "describe", "web")["revision"] == 1, "nothing differs"

    broken.touch()
    error = ask.error("module", "run", "web", "--wait")
    assert error.startswith("Error: the run of module web failed: hook ")
    assert "the disk is full" in error
    assert ask.json("module", "describe", "web")["nextTry"] is not None
    broken.unlink()
    ask.text("module", "retry", "web")
    operator.wait_idle()
    assert ask.json("module", "describe", "web")["state"] == "Ready"
    assert runs.read_text().count("run") == 4
    operator.stop()


@pytest.mark.slow
def test_a_stale_socket_is_replaced_and_a_starting_operator_answers(site: operator_site.Site) -> None:
    first = site.start().wait_ready()
    first.kill()
    assert (site.root / "debug.socket").exists()
    second = site.start().wait_ready()
    assert Commands(site).text("raw", "discovery")
    second.stop()
