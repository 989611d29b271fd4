"""Hooks that convert custom resources, with a real API server."""

import contextlib
import json
import shutil
import ssl
import sys
import textwrap
import urllib.request
from collections.abc import Iterator
from typing import Any, Final

import pytest

from addon_operator.admission.conversions import conversion_specs
from addon_operator.devcluster import api, handle, layout
from tests.integration import admitting, operator_process, operator_site

pytestmark = pytest.mark.integration

_VERSION: Final = """\
- name: {name}
  served: true
  storage: {storage}
  schema:
    openAPIV3Schema:
      type: object
      properties:
        spec:
          type: object
          properties: {{{fields}}}
"""
_FIELDS: Final = {
    "v1alpha1": "cron: {type: array, items: {type: string}}",
    "v1beta1": "cron: {type: string}",
    "v1": "schedule: {type: string}",
}
_HOOK: Final = """\
#!/usr/bin/env bash
source "$FRAMEWORK_DIR/shell_lib.sh"

function __config__() {
  cat <<END
configVersion: v1
kubernetesCustomResourceConversion:
- name: up
  crdName: GROUPNAME
  conversions:
  - {fromVersion: v1alpha1, toVersion: v1beta1}
  - {fromVersion: GROUP/v1beta1, toVersion: v1}
- name: down
  crdName: GROUPNAME
  conversions:
  - {fromVersion: v1, toVersion: v1beta1}
  - {fromVersion: v1beta1, toVersion: v1alpha1}
END
}

function __on_conversion::up::v1alpha1::v1beta1() {
  conversion::convert '.spec.cron |= join(" ")'
}

function __on_conversion::up() {
  if context::jq -e '.review.request.objects[0].spec.cron == "odd"' > /dev/null; then
    conversion::fail "spec.cron is odd"
    return
  fi
  if context::jq -e '.review.request.objects[0].spec.cron == "rename"' > /dev/null; then
    context::jq '{convertedObjects: [.review.request.objects[]
      | .apiVersion = "GROUP/v1" | .metadata.name = "other"]}' > "$CONVERSION_RESPONSE_PATH"
    return
  fi
  conversion::convert '.spec = {schedule: .spec.cron}'
}

function __on_conversion::down::v1::v1beta1() {
  if context::jq -e '[.review.request.objects[].spec.schedule] | index("hang") != null' > /dev/null; then
    sleep 60
  fi
  conversion::convert '.spec = {cron: .spec.schedule}'
}

function __on_conversion::down() {
  if converted=$(context::jq -r '[.review.request.objects[] | .apiVersion = "GROUP/v1alpha1"
    | .spec.cron = (.spec.cron | split(" "))]')
  then
    cat <<END >$CONVERSION_RESPONSE_PATH
{"convertedObjects": $converted}
END
  else
    cat <<END >$CONVERSION_RESPONSE_PATH
{"failedMessage": "spec.cron cannot be split"}
END
  fi
}

hook::run "$@"
"""
_DIRECT: Final = """\
#!PYTHON
from addon_operator import hook

STEP = {"fromVersion": "v1alpha1", "toVersion": "v1"}
BINDING = {"name": "direct", "crdName": "GROUPNAME", "conversions": [STEP]}


@hook.convert("v1alpha1", "v1")
def directly(cron):
    cron["metadata"]["annotations"]["converted"] = "directly"
    return {**cron, "spec": {"schedule": " ".join(cron["spec"]["cron"])}}


if __name__ == "__main__":
    hook.run({"configVersion": "v1", "kubernetesCustomResourceConversion": [BINDING]})
"""


class Crons:
    """A definition with three versions, the last one stored, and a module whose hook converts."""

    def __init__(self, site: operator_site.Site) -> None:
        self.site = site
        self.group = f"{site.namespace}.example"
        self.name = f"crontabs.{self.group}"
        self.module = site.module("010-cron", values="cronEnabled: true\n")
        path = self.module / "hooks" / "convert.sh"
        path.parent.mkdir(exist_ok=True)
        path.write_text(_HOOK.replace("GROUPNAME", self.name).replace("GROUP", self.group))
        path.chmod(0o755)
        crds = self.module / "crds"
        crds.mkdir(exist_ok=True)
        self.define("v1")

    def shortcut(self) -> None:
        """Add a hook that needs one step for what takes two with the other one."""
        text = _DIRECT.replace("PYTHON", sys.executable, 1).replace("GROUPNAME", self.name)
        self.site.script(self.module / "hooks" / "direct.py", text, exact=True)

    def define(self, stored: str, *, without: str = "") -> None:
        """Write the definition, whose objects are stored in that version, in one go."""
        path = self.module / "crds" / "crontabs.yaml"
        new = path.with_suffix(".new")
        new.write_text(self.definition(stored, without))
        new.rename(path)

    def definition(self, stored: str, without: str) -> str:
        head = f"""\
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: {{name: {self.name}}}
        spec:
          group: {self.group}
          scope: Namespaced
          names: {{plural: crontabs, singular: crontab, kind: CronTab}}
          versions:
        """
        versions = "".join(
            _VERSION.format(name=name, storage=str(name == stored).lower(), fields=fields)
            for name, fields in _FIELDS.items()
            if name != without
        )
        return textwrap.dedent(head) + textwrap.indent(versions, "  ")

    def path(self, version: str, name: str = "") -> str:
        root = f"/apis/{self.group}/{version}/namespaces/{self.site.namespace}/crontabs"
        return f"{root}/{name}".rstrip("/")

    def create(self, version: str, name: str, **spec: object) -> str:
        """Create an object; what the API server says if it does not."""
        body = {
            "apiVersion": f"{self.group}/{version}",
            "kind": "CronTab",
            "metadata": {"name": name, "annotations": {"a": "b"}},
            "spec": spec,
        }
        answer = self.site.request("POST", self.path(version), body)
        return "" if answer.is_success else answer.text

    def get(self, version: str, name: str) -> dict[str, Any]:
        answer = self.site.request("GET", self.path(version, name))
        assert answer.is_success, answer.text
        found: dict[str, Any] = json.loads(answer.text)
        return found

    def spec(self, version: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(version, name)["spec"]
        return found

    def live(self) -> dict[str, Any]:
        answer = self.site.request(
            "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{self.name}"
        )
        assert answer.is_success, answer.text
        found: dict[str, Any] = json.loads(answer.text)
        return found

    @property
    def conversion(self) -> dict[str, Any]:
        found: dict[str, Any] = self.live()["spec"]["conversion"]
        return found

    def patch(self, conversion: dict[str, Any]) -> None:
        self.site.patch("crd", self.name, {"spec": {"conversion": conversion}})


@pytest.fixture
def crons(site: operator_site.Site) -> Crons:
    made = Crons(site)
    site.config()
    return made


def wait_converted(operator: operator_process.OperatorProcess, crons: Crons) -> None:
    operator.wait_logged("module run ended")
    assert crons.conversion["strategy"] == "Webhook"


@contextlib.contextmanager
def stored_in_the_first(
    crons: Crons, devcluster: handle.DevCluster
) -> Iterator[operator_process.OperatorProcess]:
    """An operator that takes in new definitions; the object ``a`` is stored in v1alpha1."""
    crons.define("v1alpha1")
    with admitting.admitting(crons.site, devcluster, WATCH_MODULES="yes") as operator:
        wait_converted(operator, crons)
        assert crons.create("v1alpha1", "a", cron=["1", "2"]) == ""
        yield operator


def test_custom_resources_are_converted(crons: Crons, devcluster: handle.DevCluster) -> None:
    crons.shortcut()
    with admitting.admitting(crons.site, devcluster) as operator:
        wait_converted(operator, crons)
        assert crons.create("v1alpha1", "old", cron=["*", "*/5"]) == ""
        assert crons.create("v1beta1", "middle", cron="1 2") == ""
        assert crons.create("v1", "new", schedule="3 4") == ""
        assert crons.spec("v1", "old") == {"schedule": "* */5"}
        assert crons.get("v1", "old")["metadata"]["annotations"] == {"a": "b", "converted": "directly"}, (
            "by the shortest chain"
        )
        assert crons.get("v1", "middle")["metadata"]["annotations"] == {"a": "b"}
        assert crons.spec("v1beta1", "old") == {"cron": "* */5"}
        assert crons.spec("v1alpha1", "old") == {"cron": ["*", "*/5"]}
        assert crons.spec("v1alpha1", "new") == {"cron": ["3", "4"]}
        listed = json.loads(crons.site.request("GET", crons.path("v1alpha1")).text)
        assert [item["spec"]["cron"] for item in listed["items"]] == [
            ["1", "2"],
            ["3", "4"],
            ["*", "*/5"],
        ]

        message = crons.create("v1beta1", "odd", cron="odd")
        assert (
            f"conversion webhook for {crons.group}/v1beta1, Kind=CronTab failed: spec.cron is odd" in message
        )
        message = crons.create("v1beta1", "renamed", cron="rename")
        assert "failed: hook convert.sh of module cron: its convertedObjects[0] (" in message
        assert "/renamed) changes metadata.name; only labels and annotations may change" in message
        message = crons.create("v1alpha1", "broken", cron=[1])
        assert "Invalid value" in message

        before = crons.conversion
        crons.patch({"webhook": {"clientConfig": {"caBundle": None}}})
        operator.wait_until(lambda: crons.conversion == before, "caBundle is as before")
        crons.patch({"strategy": "None", "webhook": None})
        operator.wait_until(lambda: crons.conversion == before, "the strategy is as before")

        crons.site.config(cronEnabled="false")
        operator.wait_until(lambda: crons.conversion["strategy"] == "None", "the conversion is set back")
        assert conversion_specs.note_of(crons.live()) is None
        crons.site.config(cronEnabled="true")
        operator.wait_until(lambda: crons.conversion == before, "objects are converted again")
        assert crons.spec("v1alpha1", "old") == {"cron": ["*", "*/5"]}


@pytest.mark.slow
def test_objects_are_moved_to_another_version_and_hooks_that_fail_say_so(
    crons: Crons, devcluster: handle.DevCluster
) -> None:
    with stored_in_the_first(crons, devcluster) as operator:
        assert crons.create("v1", "b", schedule="3 4") == ""
        crons.define("v1", without="v1alpha1")
        operator.wait_until(
            lambda: crons.live()["status"]["storedVersions"] == ["v1"], "all objects are stored in v1"
        )
        assert crons.spec("v1", "a") == {"schedule": "1 2"}
        assert crons.spec("v1beta1", "b") == {"cron": "3 4"}
        assert crons.conversion["strategy"] == "Webhook"

        assert crons.create("v1", "hangs", schedule="hang") == ""
        patient = api.ApiClient(layout.Layout(devcluster.kubeconfig.parent), devcluster.url, 30.0)
        answer = patient.request("GET", crons.path("v1beta1", "hangs"))
        assert "failed: hook convert.sh of module cron did not answer within 9.5s" in answer.text


def wait_stored_in_both(operator: operator_process.OperatorProcess, crons: Crons) -> None:
    crons.define("v1")
    operator.wait_until(
        lambda: crons.live()["status"]["storedVersions"] == ["v1alpha1", "v1"], "v1 is stored, too"
    )


@pytest.mark.slow
def test_a_module_stays_until_nothing_is_stored_that_only_its_hook_could_convert(
    crons: Crons, devcluster: handle.DevCluster
) -> None:
    with stored_in_the_first(crons, devcluster) as operator:
        wait_stored_in_both(operator, crons)
        crons.site.config(cronEnabled="false")
        operator.wait_until(
            lambda: (
                "may be stored in v1alpha1, where only hooks can convert them"
                in " ".join(crons.site.command("module", "describe", "cron").stdout.split())
            ),
            "the removal waits and says why",
            deadline=100,
        )
        assert crons.conversion["strategy"] == "Webhook"
        assert crons.spec("v1", "a") == {"schedule": "1 2"}, "nothing is lost, and it is converted still"
        answer = crons.site.request("PUT", crons.path("v1", "a"), crons.get("v1", "a"))
        assert answer.is_success, answer.text
        crons.site.patch("crd", crons.name, {"status": {"storedVersions": ["v1"]}}, subresource="status")
        operator.wait_until(
            lambda: crons.conversion["strategy"] == "None", "the conversion is set back", deadline=100
        )
        assert crons.spec("v1", "a") == {"schedule": "1 2"}
        operator.wait_metric(1, "module_info", module="cron", state="Disabled")


def ask(port: int, crons: Crons) -> str:
    """Have an object converted by the replica that listens there; its answer."""
    item = {
        "apiVersion": f"{crons.group}/v1",
        "kind": "CronTab",
        "metadata": {"name": "a"},
        "spec": {"schedule": "1 2"},
    }
    review = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": {"uid": "1", "desiredAPIVersion": f"{crons.group}/v1alpha1", "objects": [item]},
    }
    request = urllib.request.Request(
        f"https://127.0.0.1:{port}/{admitting.path_key(crons.site)}/convert/{crons.name}",
        json.dumps(review).encode(),
        {"Content-Type": "application/json"},
    )
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:  # noqa: S310
            return str(answer.read().decode())
    except OSError as error:
        return str(error)


@pytest.mark.slow
def test_replicas_that_stand_by_convert_and_the_next_leader_sets_back_what_went_meanwhile(
    crons: Crons, devcluster: handle.DevCluster
) -> None:
    site = crons.site
    with admitting.admitting(site, devcluster, **operator_site.SHORT_LEASE) as leader:
        wait_converted(leader, crons)
        assert crons.create("v1", "a", schedule="1 2") == ""
        port = operator_process.free_port()
        environment = {**admitting.webhook_environment(port), **operator_site.SHORT_LEASE}
        second = site.start(**environment, DEBUG_UNIX_SOCKET=str(site.root / "second.socket"))
        second.wait_logged("standing by")
        # It needs the certificate first, without which no Service leads to it.
        second.wait_until(lambda: '"cron":["1","2"]' in ask(port, crons), "it converts while it stands by")
        former = crons.conversion
        leader.kill()
        second.wait_until(lambda: crons.conversion != former, "the definition points to the next leader")
        second.wait_until(lambda: site.request("GET", crons.path("v1beta1", "a")).is_success, "it converts")
        second.kill()
    shutil.rmtree(crons.module)
    with admitting.admitting(site, devcluster) as operator:
        operator.wait_until(lambda: crons.conversion["strategy"] == "None", "the conversion is set back")
