"""Values from a Secret: a source between the ConfigMap and the patches of hooks."""

import json
import pathlib

import pytest

from tests.integration import operator_process, operator_site, shown_sections
from tests.integration.shown_sections import seen

pytestmark = pytest.mark.integration

_SCHEMA = """\
type: object
properties:
  color: {type: string}
  size: {type: integer, maximum: 9}
  auth:
    type: object
    properties:
      user: {type: string}
      password: {type: string, minLength: 8}
"""


def module(site: operator_site.Site, directory: str = "010-web", *, schema: str = "") -> pathlib.Path:
    section = "color: green, auth: {user: admin}"
    return shown_sections.module(site, directory, section=section, schema=schema)


def auth(password: str) -> str:
    return f"auth: {{password: {password}}}\n"


def hook_writes(site: operator_site.Site, directory: str) -> None:
    """A module whose hook writes to the ConfigMap what the Secret has, too."""
    path = module(site, directory)
    patch = [
        {"op": "test", "path": "/db/auth/password", "value": "s3cret-db"},
        {"op": "replace", "path": "/db/auth/password", "value": "by-hook"},
        {"op": "add", "path": "/db/auth/user", "value": "by-hook"},
    ]
    site.hook(
        path, "write.sh", {"beforeHelm": 1}, f"echo '{json.dumps(patch)}' > $CONFIG_VALUES_JSON_PATCH_PATH"
    )


def test_the_secret_lies_over_the_config_map_below_patches_of_hooks_and_its_edits_run_what_they_change(
    site: operator_site.Site,
) -> None:
    patch = [{"op": "add", "path": "/web/size", "value": 3}]
    path = module(site)
    site.hook(path, "size.sh", {"beforeHelm": 1}, f"echo '{json.dumps(patch)}' > $VALUES_JSON_PATCH_PATH")
    module(site, "020-api")
    hook_writes(site, "030-db")
    site.config(web="color: red\nsize: 1\nauth: {user: root}\n")
    site.secret(web="size: 2\n" + auth("s3cret-one"), db=auth("s3cret-db"))
    operator = site.start().wait_ready().wait_idle()
    assert seen(site) == {
        "color": "red",
        "size": 3,
        "auth": {"user": "root", "password": "s3cret-one"},
    }
    (run,) = [each for each in site.runs() if each.hook == "size.sh"]
    assert run.config["web"] == {
        "color": "red", "size": 2, "auth": {"user": "root", "password": "s3cret-one"}
    }  # fmt: skip

    # What a hook writes goes below the Secret, which is never copied.
    assert seen(site, "db") == {"color": "green", "auth": {"user": "by-hook", "password": "s3cret-db"}}
    written = site.data(operator_site.CONFIG_MAP)
    assert written is not None
    assert "s3cret" not in str(written)
    assert "user: by-hook" in written["db"]
    assert "changes /db/auth/password without effect: Secret" in operator.log

    # An edit runs what it changes, and where nothing is left the ConfigMap counts.
    before = site.revisions()
    site.secret(api=auth("s3cret-one"))
    operator.wait_until(lambda: "s3cret-one" in str(seen(site, "api")), "the new section is in force")
    site.secret(api=auth("s3cret-two"))
    operator.wait_until(lambda: "s3cret-two" in str(seen(site, "api")), "the edit is in force")
    site.secret(api=None)
    fallen = {"color": "green", "auth": {"user": "admin"}}
    operator.wait_until(lambda: seen(site, "api") == fallen, "it falls back")
    operator.wait_idle()
    assert site.revisions() == {**before, "api": 4}
    assert "s3cret" not in operator.log


def test_a_wrong_edit_of_the_secret_is_refused_without_its_values(site: operator_site.Site) -> None:
    module(site, schema=_SCHEMA)
    site.secret(web=auth("s3cret-good"))
    operator = site.start().wait_ready()
    wrong = (auth("s3cret") + "size: 77\n", "auth: {password: s3cret-dup, password: s3cret-dup}\n")
    for number, text in enumerate(wrong, start=1):
        site.secret(web=text)
        operator.wait_metric(number, "config_values_errors_total")
    operator.wait_metric(1, "config_values_invalid")
    site.config(web="color: blue")
    operator.wait_until(lambda: "blue" in str(seen(site)), "the ConfigMap's edit is taken all the same")
    assert "s3cret-good" in str(seen(site))
    events = operator_process.wait_until(
        lambda: [
            event["message"]
            for event in site.objects("events")
            if event["reason"] == "InvalidValues" and event["involvedObject"]["kind"] == "Secret"
        ],
        "the Event",
    )
    assert any("web.auth.password" in message for message in events), events
    named = f"Secret {site.namespace}/{operator_site.CONFIG_MAP}"
    assert "web.auth.password: must have at least 8 characters, not *** (" in operator.log
    assert f"set in {named}" in operator.log
    assert "key 'web', line 1, column" in operator.log
    assert "s3cret" not in operator.log + str(events)
    site.secret(web=auth("s3cret-mended"))
    operator.wait_until(lambda: "s3cret-mended" in str(seen(site)), "the mended Secret is in force")
    operator.wait_until(
        lambda: operator.metrics().total("config_values_invalid") == 0, "nothing is refused any more"
    )


@pytest.mark.slow
def test_a_module_whose_section_of_the_secret_is_wrong_at_a_start_waits_for_another(
    site: operator_site.Site,
) -> None:
    module(site, schema=_SCHEMA)
    site.secret(web=auth("s3cret"))
    operator = site.start()
    operator.wait_until(
        lambda: "web.auth.password" in site.command("module", "describe", "web").stdout, "it says why"
    )
    told = site.command("module", "describe", "web").stdout
    assert f"Secret {site.namespace}/{operator_site.CONFIG_MAP}" in told
    assert "s3cret" not in told + operator.log
    assert site.revisions() == {}
    site.secret(web=auth("s3cret-mended"))
    operator.wait_until(lambda: "s3cret-mended" in str(seen(site)), "the mended one is in force")


@pytest.mark.slow
def test_switches_and_maintenance_of_the_secret_outdo_those_of_the_config_map(
    site: operator_site.Site,
) -> None:
    module(site)
    module(site, "020-api")
    site.config(webEnabled="false", apiEnabled="true", apiMaintenance="NoResourceReconciliation")
    site.secret(webEnabled="true", apiMaintenance="")
    operator = site.start().wait_ready()
    assert site.revisions() == {"web": 1, "api": 1}
    assert "in Secret" in site.command("module", "list", "-o", "json").stdout
    site.secret(webEnabled="false", apiMaintenance="NoResourceReconciliation", api="color: red")
    operator.wait_until(lambda: seen(site) is None, "it is uninstalled")
    operator.wait_idle()
    assert "green" in str(seen(site, "api")), "it is in maintenance"


@pytest.mark.slow
def test_a_restart_with_an_unchanged_secret_makes_no_revision_and_starts_no_helm(
    site: operator_site.Site,
) -> None:
    module(site)
    site.secret(web=auth("s3cret-one"))
    site.start().wait_ready().wait_idle().stop()
    calls = site.helm_calls()
    site.start().wait_ready().wait_idle()
    assert site.revisions() == {"web": 1}
    assert site.helm_calls() == calls


@pytest.mark.slow
def test_no_secret_is_read_if_the_setting_says_so_and_another_one_may_be_named(
    site: operator_site.Site,
) -> None:
    module(site)
    site.secret(web=auth("s3cret-one"))
    operator = site.start(VALUES_SECRET="none").wait_ready()
    assert seen(site) == {"color": "green", "auth": {"user": "admin"}}
    assert operator.metrics().total("watch_up", watch="values_secret") == 0
    operator.stop()
    site.create("secret", "other", {"stringData": {"web": "color: blue"}})
    operator = site.start(VALUES_SECRET="other").wait_ready()
    assert seen(site) == {"color": "blue", "auth": {"user": "admin"}}
    operator.wait_metric(1, "watch_up", watch="values_secret")
