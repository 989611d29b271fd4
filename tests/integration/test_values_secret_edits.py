"""Edits of the values Secret and of the ConfigMap below it: what is refused, and what stays in force."""

import base64

import pytest

from addon_operator.devcluster import handle
from tests.integration import admitting, operator_site, shown_sections
from tests.integration.shown_sections import seen

pytestmark = pytest.mark.integration

_SCHEMA = """\
type: object
required: [password]
properties:
  color: {type: string}
  size: {type: integer}
  password: {type: string, minLength: 8}
"""


def refused(site: operator_site.Site, **data: str) -> str:
    """What the API server says to an edit of the ConfigMap; empty if it takes it."""
    try:
        site.config(**data)
    except operator_site.RefusedError as error:
        return str(error)
    return ""


@pytest.mark.slow
def test_the_webhook_checks_an_edit_of_the_config_map_with_the_secret_in_force(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    shown_sections.module(site, schema=_SCHEMA)
    site.secret(web="password: s3cret-one\nsize: 3\n")
    with admitting.admitting(site, devcluster) as operator:
        operator.wait_until(lambda: "web.color" in refused(site, web="color: [1]"), "edits are checked")
        # What is required stands in the Secret alone, and hides a wrong type below it.
        assert refused(site, web="color: red\nsize: many") == ""
        expected = {"color": "red", "size": 3, "password": "s3cret-one"}
        operator.wait_until(lambda: seen(site) == expected, "the Secret lies over it")
        # A wrong Secret stays out of force, and holds up no innocent edit of the ConfigMap.
        site.secret(web="password: short\nsize: 3\n")
        operator.wait_metric(1, "config_values_invalid")
        assert refused(site, web="color: blue\nsize: many") == ""
        operator.wait_until(lambda: seen(site) == expected | {"color": "blue"}, "the edit is in force")
        site.secret(web="password: s3cret-two\n")
        operator.wait_logged("web.size: must be an integer")
        assert seen(site) == expected | {"color": "blue"}, "both together are wrong"
        assert refused(site, web="color: blue\nsize: 5") == "", "this is what the Secret waits for"
        mended = {"color": "blue", "size": 5, "password": "s3cret-two"}
        operator.wait_until(lambda: seen(site) == mended, "both are in force")
        site.secret(web="size: 3\n")
        operator.wait_logged("web: must have the key 'password'")
        assert seen(site) == mended
        assert "s3cret" not in operator.log
        operator.stop()


@pytest.mark.slow
def test_what_no_secret_should_hold_changes_nothing_and_is_never_quoted(site: operator_site.Site) -> None:
    shown_sections.module(site)
    site.module("020-off", {"never": "rendered"})
    site.secret(web="password: s3cret-good")
    operator = site.start().wait_ready()
    encoded = base64.b64encode(b"s3cret: \xff\xfe").decode()
    site.patch("secret", operator_site.CONFIG_MAP, {"data": {"web": encoded}})
    operator.wait_metric(1, "config_values_errors_total")
    aliases = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    wrong = (f"a0: &a0 s3cret\n{aliases}", "{s3cret", "- s3cret", "s3cret", "true")
    for number, text in enumerate(wrong, start=2):
        site.secret(web=text)
        operator.wait_metric(number, "config_values_errors_total")
    assert seen(site) == {"color": "green", "password": "s3cret-good"}
    site.secret(web="password: s3cret-null\nnone: null", off="password: s3cret-off", wep="a: s3cret-typo")
    operator.wait_logged("did you mean 'web'?")
    operator.wait_until(lambda: "s3cret-null" in str(seen(site)), "what is right is taken")
    assert operator.metrics().total("config_values_invalid") == 0
    large = "x" * 700_000
    site.secret(web=f"password: s3cret-large\nlarge: {large}", off=None, wep=None)
    operator.wait_until(lambda: "s3cret-large" in str(seen(site)), "a large one is taken, too")
    site.secret(web=None)
    operator.wait_until(lambda: seen(site) == {"color": "green"}, "an empty Secret says nothing")
    assert [line for line in operator.log.splitlines() if "s3cret" in line or "xxxx" in line] == []
    operator.stop()


def test_a_start_without_the_config_map_that_was_there_does_nothing_until_it_is_back(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    shown_sections.module(site)
    extra = site.module("030-extra", {"color": "green"})
    bound = {"matchLabels": {"bound": "yes"}}
    here = {"nameSelector": {"matchNames": [site.namespace]}}
    binding = {"kind": "ConfigMap", "labelSelector": bound, "namespace": here}
    site.hook(extra, "look.sh", {"kubernetes": [binding]})
    gone = site.module("040-gone", {"color": "green"}, values="goneEnabled: true")
    site.secret(web="password: s3cret-one")
    site.config(extraEnabled="true")
    site.start().wait_ready().stop()
    gone.rename(site.root / "away")
    start_without(site, devcluster, "configmap")
    site.start().wait_ready().wait_until(lambda: "gone" not in site.revisions(), "what has no module goes")
    assert seen(site) == {"color": "green", "password": "s3cret-one"}


@pytest.mark.slow
def test_a_start_without_the_secret_that_was_there_does_nothing_until_it_is_back(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    shown_sections.module(site)
    shown_sections.module(site, "020-api")
    site.module("030-extra", {"color": "green"})
    site.secret(web="password: s3cret-one")
    site.config(extraEnabled="true")
    site.start().wait_ready().stop()
    site.delete("secret", operator_site.CONFIG_MAP)
    site.secret(web="password: s3cret-two")
    site.start().wait_ready().stop()
    assert seen(site) == {"color": "green", "password": "s3cret-two"}

    start_without(site, devcluster, "secret")
    assert seen(site) == {"color": "green", "password": "s3cret-two"}


def start_without(site: operator_site.Site, devcluster: handle.DevCluster, kind: str) -> None:
    before, calls = site.revisions(), len(site.helm_calls())
    body = site.get(kind, operator_site.CONFIG_MAP)
    site.kubectl("delete", kind, operator_site.CONFIG_MAP)
    with admitting.opened(site, devcluster, False) as shop:
        operator = shop.operator
        operator.wait_until(lambda: "WaitsForConfigMap" in operator.get("/readyz").text, "it waits")
        operator.wait_logged("is missing: it was there before")
        runs = site.labels()
        site.create("configmap", "bound", {"metadata": {"labels": {"bound": "yes"}}})
        site.delete("configmap", "extra")
        operator.wait_until(lambda: site.data("extra"), "healing goes on")
        operator.wait_until(lambda: waits_by_its_module(site, "extra"), "its Module says so")
        shop.preset()
        operator.wait_until(lambda: admitting.is_injected(shop, operator), "admission goes on")
        assert operator.get("/readyz").status == 503
        assert site.revisions() == before
        assert len(site.helm_calls()) == calls
        assert site.labels() == runs, "no hook runs on an event"
        site.create(kind, operator_site.CONFIG_MAP, {"data": body["data"]})
        operator.wait_ready().stop()
    assert before.items() - site.revisions().items() <= {("gone", 1)}


def waits_by_its_module(site: operator_site.Site, name: str) -> bool:
    status = (site.find("module", name) or {}).get("status") or {}
    return any(each["reason"] == "WaitsForConfigMap" for each in status.get("conditions") or ())
