"""Absence is no decision: what is missing removes nothing, empties nothing, and hooks hear of nothing."""

import contextlib
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from addon_operator.process import commands
from tests.integration import definitions, gateway, operator_process, operator_site

pytestmark = pytest.mark.integration

VALUES = operator_site.CONFIG_MAP


def module(site: operator_site.Site, directory: str, **data: str) -> pathlib.Path:
    """A module that only the ConfigMap switches on, and whose chart shows its values."""
    name = directory.lstrip("0123456789-")
    made = site.module(directory, {"seen": f"{{{{ .Values.{name} | toJson | quote }}}}"} | data)
    (made / "values.yaml").write_text(f"{name}: {{color: green}}\n")
    return made


def seen(site: operator_site.Site, name: str) -> dict[str, Any]:
    data = site.data(name)
    return {} if data is None else dict(json.loads(data["seen"]))


def uid(site: operator_site.Site, kind: str, name: str) -> str:
    return str(site.get(kind, name)["metadata"]["uid"])


@contextlib.contextmanager
def untouched(site: operator_site.Site, *names: str) -> Iterator[None]:
    """Check that nothing happens to the releases, and that their objects stay the same."""
    before = site.revisions(), [uid(site, "configmap", name) for name in names], len(site.helm_calls())
    yield
    now = site.revisions(), [uid(site, "configmap", name) for name in names], len(site.helm_calls())
    assert now == before


WRITES = """\
read -r -d '' wanted < {wanted} || true
[[ -z "$wanted" ]] || echo "$wanted" > "$CONFIG_VALUES_JSON_PATCH_PATH"
"""


def test_values_that_are_missing_empty_nothing_and_hooks_wait_until_they_are_back(
    site: operator_site.Site,
) -> None:
    db, web = module(site, "010-db"), module(site, "020-web")
    (web / "module.yaml").write_text("requires: {modules: [db]}\n")
    wanted = site.root / "wanted"
    wanted.write_text('{"op": "add", "path": "/db/token", "value": "by-a-hook"}')
    site.hook(db, "write.sh", {"schedule": [{"crontab": "* * * * * *"}]}, WRITES.format(wanted=wanted))
    site.first_retry = operator_site.SOON
    config = {"dbEnabled": "true", "webEnabled": "true", "db": "color: red\n"}
    site.config(**config)
    site.secret(web="password: s3cret-one")
    operator = site.start().wait_ready()
    operator.wait_until(lambda: seen(site, "db").get("token") == "by-a-hook", "the hook has written")
    wanted.write_text("")
    operator.wait_idle()

    # A sync tool replaces the ConfigMap by force.
    whole = site.root / "config.yaml"
    whole.write_text(site.kubectl("get", "configmap", VALUES, "--output=yaml"))
    with untouched(site, "db", "web"):
        site.kubectl("replace", "--force", "-f", str(whole))
        operator.wait_logged("is there again")
        operator.wait_idle()

    # Somebody deletes it, and the Secret.
    with untouched(site, "db", "web"):
        site.kubectl("delete", "configmap,secret", VALUES)
        missing = f"ConfigMap {site.namespace}/{VALUES} is missing"
        check_shown(site, operator, missing)
        # Its one key does not become all of the ConfigMap.
        wanted.write_text('{"op": "add", "path": "/db/size", "value": 7}')
        operator.wait_logged("run of a hook failed", f"{missing}, and nothing can be written to it")
        wanted.write_text('{"op": "add", "path": "/db/size", "value": 8}')
        assert site.data(VALUES) is None

    # It comes back from Git, without what hooks had written, and the Secret as it was.
    site.secret(web="password: s3cret-one")
    site.config(**config)
    loss = operator.wait_logged("is there again without what hooks had written", "db.token")
    operator.wait_until(lambda: seen(site, "db") == {"color": "red", "size": 8}, "the hook is tried again")
    operator.wait_until(lambda: "missing" not in operator.get("/readyz?verbose").text, "nothing is missing")
    wanted.write_text("")
    operator.wait_idle()
    assert site.revisions()["web"] == 1, "there was never an empty password"
    assert seen(site, "web") == {"color": "green", "password": "s3cret-one"}
    assert "by-a-hook" not in loss
    assert "s3cret" not in operator.log
    operator.stop()


def check_shown(site: operator_site.Site, operator: operator_process.OperatorProcess, missing: str) -> None:
    operator.wait_logged("level=warn", missing, "its last values stay in force")
    operator.wait_logged("level=warn", f"Secret {site.namespace}/{VALUES} is missing")
    operator.wait_until(lambda: missing in operator.get("/readyz?verbose").text, "it is shown")
    assert operator.get("/readyz").status == 200
    assert missing in site.command("module", "list").stdout
    operator.wait_until(
        lambda: (
            {
                each["involvedObject"]["kind"]
                for each in site.objects("events", fieldSelector="reason=Missing,type=Warning")
            }
            == {"ConfigMap", "Secret"}
        ),
        "Events",
    )


@pytest.mark.slow
def test_with_config_map_missing_empty_one_that_stays_away_counts_as_empty(site: operator_site.Site) -> None:
    module(site, "010-db")
    site.config(dbEnabled="true")
    operator = site.start(CONFIG_MAP_MISSING="empty", ABSENCE="2s").wait_ready().wait_idle()
    with untouched(site, "db"):
        site.kubectl("delete", "configmap", VALUES)
        operator.wait_logged("its last values stay in force for 2s")
        site.config(dbEnabled="true")
        operator.wait_logged("is there again")
        operator.wait_idle()
    site.kubectl("delete", "configmap", VALUES)
    operator.wait_until(lambda: site.revisions() == {}, "what it switched on goes")
    operator.stop()


def heard(site: operator_site.Site) -> list[str]:
    """What the hook heard of objects after the first snapshots."""
    events = [context for run in site.runs() for context in run.contexts if "watchEvent" in context]
    return [f"{each['watchEvent']} {each['object']['metadata']['name']}" for each in events]


@pytest.fixture
def group(site: operator_site.Site) -> Iterator[str]:
    """An API group with one Thing, served in v1beta1."""
    name = f"{site.namespace}.example.com"
    define(site, name, "v1beta1")
    (site.root / "thing.yaml").write_text(definitions.custom_object(name, "v1beta1", "Thing", "one"))
    create = ("create", "-f", str(site.root / "thing.yaml"))
    operator_process.wait_until(lambda: attempt(site, *create), "the object is there")
    yield name
    site.kubectl("delete", "crd", f"things.{name}")


def define(site: operator_site.Site, group: str, *versions: str) -> None:
    path = site.root / "crd.yaml"
    verb = "replace" if path.exists() else "create"
    path.write_text(definitions.definition(group, "things", *versions))
    site.kubectl(verb, "--validate=false", "-f", str(path))


def attempt(site: operator_site.Site, *arguments: str) -> bool:
    """Try it once: a definition takes its time."""
    try:
        site.kubectl(*arguments)
    except commands.CommandError:
        return False
    return True


def following(site: operator_site.Site, group: str) -> None:
    """A module that requires the kind, has an object of it, and follows that and a ConfigMap."""
    db = module(site, "010-db")
    (db / "module.yaml").write_text(f"requires: {{apis: [{group}/v1beta1]}}\n")
    here = {"namespace": {"nameSelector": {"matchNames": [site.namespace]}}}
    bound = {"kind": "ConfigMap", "labelSelector": {"matchLabels": {"bound": "yes"}}}
    bindings = [here | bound | {"name": "maps"}, here | {"kind": "Thing", "name": "things"}]
    site.hook(db, "look.sh", {"kubernetes": bindings})
    site.kubectl("create", "configmap", "bound")
    site.kubectl("label", "configmap", "bound", "bound=yes")
    site.config(dbEnabled="true")
    site.secret(db="password: s3cret-one")


def requires(site: operator_site.Site) -> str:
    jsonpath = '{.status.conditions[?(@.type=="Requires")].status}'
    return site.kubectl("get", "module", "db", f"--output=jsonpath={jsonpath}")


@pytest.mark.slow
def test_paths_that_a_gateway_does_not_find_and_versions_that_change_are_no_deletions(
    site: operator_site.Site, group: str
) -> None:
    following(site, group)
    with gateway.Gateway(site.cluster).running() as way:
        operator = site.start(KUBE_CONFIG=way.kubeconfig(site.root / "gateway.yaml"))
        operator.wait_ready().wait_idle()
        with untouched(site, "db"):
            for lost in ("/things", ""):
                way.lose(lost)
                operator.wait_until(lambda: way.refused > 2, f"{lost} is not found")
                way.lose(None)
            operator.wait_idle()
            site.kubectl("label", "configmap", "bound", "now=seen")
            operator.wait_until(lambda: heard(site) == ["Modified bound"], "the binding goes on")
        assert "is missing" not in operator.log
        operator.wait_logged("binding things (Thing) of hook look.sh follows all of its objects again")

        # A chart moves the definition to v1, and its objects with it.
        with untouched(site, "db"):
            define(site, group, "v1beta1", "v1")
            thing = ("patch", f"things.v1.{group}", "one", "--type=merge")
            operator_process.wait_until(lambda: attempt(site, *thing, '--patch={"size": 4}'), "it is stored")
            stored = '--patch={"status": {"storedVersions": ["v1"]}}'
            site.kubectl("patch", "crd", f"things.{group}", "--subresource=status", "--type=merge", stored)
            define(site, group, "v1")
            operator.wait_until(lambda: requires(site) == "False", "the version that it requires is gone")
            site.kubectl(*thing, '--patch={"size": 5}')
            operator.wait_until(lambda: "Modified one" in heard(site), "the object is followed in v1")
            operator.wait_idle()
        assert set(heard(site)) == {"Modified bound", "Modified one"}
        operator.kill()
