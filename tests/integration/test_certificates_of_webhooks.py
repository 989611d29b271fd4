"""Hooks answer and convert while the certificate of the admission server changes hands."""

import base64
import datetime as dt
import json
import pathlib
import socket
import ssl
import threading
from typing import Final

import pytest
from typing_extensions import override

from addon_operator.admission.certificates import certificates
from addon_operator.devcluster import handle
from tests.integration import admitting, guarded, operator_process, operator_site

pytestmark = [pytest.mark.integration, pytest.mark.slow]

LIFE: Final = dt.timedelta(days=1)
CONVERTS: Final = """\
#!/usr/bin/env bash
source "$ADDON_OPERATOR_SHELL_LIBRARY"
__config__() {
  echo '{"configVersion": "v1", "kubernetesCustomResourceConversion": [
    {"name": "c", "crdName": "things.NAME.example",
     "conversions": [{"fromVersion": "v1", "toVersion": "v2"}]}]}'
}
__on_conversion::c() { conversion::convert '.spec.converted = "yes"'; }
hook::run "$@"
"""
DEFINITION: Final = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.NAME.example}
spec:
  group: NAME.example
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing}
  versions:
  - &version
    name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {converted: {type: string}}}}
  - <<: *version
    name: v2
    storage: false
"""


class Files:
    """What an administrator puts beside the operator."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        directory.mkdir()

    def write(self, signer: certificates.KeyPair, *trusted: certificates.KeyPair) -> None:
        now = dt.datetime.now(dt.UTC)
        pair = certificates.make_server(signer, ["127.0.0.1"], now, LIFE)
        for name, content in (
            ("ca.crt", b"".join(each.certificate for each in trusted)),
            ("tls.crt", pair.certificate),
            ("tls.key", pair.key),
        ):
            (self.directory / name).write_bytes(content)


class Asking(threading.Thread):
    """Asks about ConfigMaps and for converted objects, all the time."""

    def __init__(self, site: operator_site.Site, thing: str) -> None:
        super().__init__(daemon=True)
        self._site = site
        self._thing = thing
        self.ended = threading.Event()
        self.failures: list[str] = []
        self.answers = 0

    @override
    def run(self) -> None:
        while not self.ended.wait(0.1):
            self.answers += 1
            made = guarded.create(self._site, f"asked-{self.answers}")
            read = self._site.request("GET", self._thing)
            if not made.is_success or '"converted":"yes"' not in read.text:
                self.failures.append(f"{made.is_success}, {read.text}")


def test_hooks_answer_and_convert_while_the_certificate_changes_hands(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    now = dt.datetime.now(dt.UTC)
    first, second = (certificates.make_authority(now - dt.timedelta(hours=age), LIFE) for age in (2, 1))
    files = Files(site.root / "certs")
    files.write(first, first)
    module = site.module("010-shop", values="shopEnabled: true\n")
    site.hook(
        module,
        "guard.sh",
        {"kubernetesValidating": [guarded.binding(site, "guard.shop.example")]},
        """echo '{"allowed": true}' > "$VALIDATING_RESPONSE_PATH" """,
    )
    name = site.namespace
    site.script(module / "hooks" / "convert.sh", CONVERTS.replace("NAME", name), exact=True)
    (module / "crds").mkdir()
    (module / "crds" / "things.yaml").write_text(DEFINITION.replace("NAME", name))
    site.config()
    port = operator_process.free_port()
    environment = admitting.webhook_environment(port) | {"ADMISSION_SERVER_CERTS_DIR": str(files.directory)}
    with admitting.admitting(site, devcluster, **environment) as operator:
        operator.wait_logged("module run ended")
        things = f"/apis/{name}.example/{{}}/namespaces/{site.namespace}/things"
        body = {"apiVersion": f"{name}.example/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": {}}
        assert site.request("POST", things.format("v1"), body).is_success
        asking = Asking(site, f"{things.format('v2')}/x")
        asking.start()
        files.write(first, first, second)
        operator.wait_until(
            lambda: trusts(site, second), "both authorities are trusted everywhere", deadline=90
        )
        files.write(second, first, second)
        operator.wait_until(lambda: is_of(port, second), "the new certificate is used", deadline=60)
        before = asking.answers
        operator.wait_until(lambda: asking.answers > before + 5, "it is asked with the new one")
        asking.ended.set()
        asking.join()
    assert asking.failures == [], asking.failures[0]


def trusts(site: operator_site.Site, authority: certificates.KeyPair) -> bool:
    """Whether the API server was told so for webhooks and conversions."""
    webhooks = site.request("GET", f"{admitting.CONFIGURATIONS[1]}/addon-operator-{site.namespace}-hooks")
    crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{site.namespace}.example"
    conversion = json.loads(site.request("GET", crd).text)["spec"]["conversion"]
    clients = [each["clientConfig"] for each in json.loads(webhooks.text)["webhooks"]]
    clients.append(conversion["webhook"]["clientConfig"])
    return all(authority.certificate in base64.b64decode(client["caBundle"]) for client in clients)


def is_of(port: int, authority: certificates.KeyPair) -> bool:
    """Whether that authority signed what the server shows."""
    try:
        context = ssl.create_default_context(cadata=authority.certificate.decode())
        with socket.create_connection(("127.0.0.1", port), 5) as raw:
            context.wrap_socket(raw, server_hostname="127.0.0.1").close()
    except ssl.SSLError:
        return False
    return True
