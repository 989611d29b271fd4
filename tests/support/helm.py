"""A helm in memory: it renders what a test says, and keeps its records in the API server.

What real charts render to, and what Helm makes of objects that others changed, is tested with the real one.
"""

import asyncio
import base64
import contextlib
import gzip
import json
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import yaml

from addon_operator.helm import binary
from addon_operator.kernel import json_types
from addon_operator.modules import manifests
from tests.support import api_server, programs

PATH: Final = pathlib.Path("/bin/helm")
VERSION: Final = "v3.19.0"
_RECORD: Final = "sh.helm.release.v1."

Render = Callable[[json_types.JsonObject], str | Sequence[api_server.Object]]
"""What a chart renders to with these values: a manifest, or the objects in it."""


def found(version: str = VERSION) -> binary.HelmBinary:
    """The binary as the operator finds it."""
    major, minor = (int(part) for part in version.removeprefix("v").split(".")[:2])
    return binary.HelmBinary(PATH, version, major, minor)


def stored(content: Mapping[str, Any]) -> str:
    """A release as Helm stores it in a Secret, as its data has it."""
    inner = base64.b64encode(gzip.compress(json.dumps(content).encode()))
    return base64.b64encode(inner).decode()


class Helm:
    """Releases in the API server; add its :meth:`run` to :class:`.Programs` at :data:`PATH`."""

    def __init__(self, server: api_server.ApiServer, tell: Callable[[str], object] = str) -> None:
        """``tell`` is told of each call that is no render."""
        self.server = server
        self._tell = tell
        self.charts: dict[str, Render] = {}
        """What charts render to, by their release; others have one ConfigMap that holds their values."""
        self.calls: list[list[str]] = []
        self.fail: dict[str, str] = {}
        """Text with which a verb, or a verb and release such as ``upgrade web``, fails."""
        self.stores_failed = True
        """Whether a verb that fails has come so far that there is a record of it."""
        self.writes_objects = False
        """Whether the objects of a manifest are put into the API server, and taken out of it."""
        self.says: list[str] = []
        """Lines on its standard error."""
        self.gate: asyncio.Event | None = None
        """What each call waits for."""
        self.running: set[str] = set()

    @property
    def verbs(self) -> list[str]:
        """Verb and release of each call, such as ``upgrade web``."""
        return [" ".join(call[:2]) for call in self.calls]

    @property
    def changes(self) -> list[str]:
        """The same without renders."""
        return [verb for verb in self.verbs if not verb.startswith("template")]

    # What a test does with records.

    def put(
        self,
        name: str,
        number: int,
        status: str,
        labels: Mapping[str, str] | None = None,
        manifest: str = "",
        namespace: str = api_server.NAMESPACE,
        **content: Any,  # noqa: ANN401 - JSON
    ) -> None:
        """Have a record of a revision; ``content`` is what it holds beside its manifest."""
        system = {"name": name, "owner": "helm", "status": status, "version": str(number)}
        release = {"name": name, "namespace": namespace, "version": number, "manifest": manifest, **content}
        self.server.put(
            api_server.an_object(
                "Secret",
                f"{_RECORD}{name}.v{number}",
                namespace,
                labels={**(labels or {}), **system},
                type="helm.sh/release.v1",
                data={"release": stored({key: value for key, value in release.items() if value})},
            )
        )

    def records(self, name: str, namespace: str = api_server.NAMESPACE) -> dict[int, api_server.Object]:
        """The records of a release by number."""
        found = {
            int(body["metadata"]["labels"]["version"]): body
            for body in self.server.objects("Secret")
            if body["metadata"]["namespace"] == namespace
            and body["metadata"]["name"].startswith(f"{_RECORD}{name}.v")
        }
        return dict(sorted(found.items()))

    def statuses(self, name: str, namespace: str = api_server.NAMESPACE) -> dict[int, str]:
        return {number: _labels(record)["status"] for number, record in self.records(name, namespace).items()}

    def content(self, name: str, number: int, namespace: str = api_server.NAMESPACE) -> dict[str, Any]:
        """What a record holds."""
        return _content(self.records(name, namespace)[number])

    # The program.

    async def run(self, call: programs.Call) -> None:
        arguments = call.arguments
        if arguments[0] == "version":
            call.stdout.append(VERSION)
            return
        verb, name = arguments[:2]
        assert name not in self.running, f"two helm at once for the release {name}"
        self.calls.append(arguments)
        if verb != "template":
            self._tell(f"{verb} {name}")
        call.stderr += self.says
        self.running.add(name)
        try:
            if self.gate is not None:
                await self.gate.wait()
            self._do(call, verb, name)
        finally:
            self.running.discard(name)

    def _do(self, call: programs.Call, verb: str, name: str) -> None:
        error = self.fail.get(f"{verb} {name}", self.fail.get(verb))
        makes_revision = verb in ("install", "upgrade")
        if error is not None:
            if makes_revision and self.stores_failed:
                self._store(call, name, "failed")
            raise programs.ProgramError(f"Error: {error}")
        if verb == "template":
            call.stdout += self._rendered(call, name).splitlines()
        elif makes_revision:
            self._store(call, name, "deployed")
        elif verb == "rollback":
            self._roll_back(call, name, int(call.arguments[2]))
        elif verb == "uninstall":
            self._uninstall(call, name)
        else:
            raise api_server.NotKnown(f"the helm of tests/support has no verb {verb}")

    def _rendered(self, call: programs.Call, name: str) -> str:
        path = pathlib.Path(call.option("--values"))
        assert path.stat().st_mode & 0o077 == 0, "others may read the values"
        values = json.loads(path.read_bytes())
        made = self.charts[name](values) if name in self.charts else _rendered(name, values)
        return made if isinstance(made, str) else manifest(*made)

    def _store(self, call: programs.Call, name: str, status: str) -> None:
        namespace = call.option("--namespace")
        given = dict(part.split("=", 1) for part in call.option("--labels").split(","))
        records = self.records(name, namespace)
        last = max(records, default=0)
        labels = (_labels(records[last]) if last else {}) | given
        # Helm copies the labels of the revision before, and takes away what is null.
        labels = {key: value for key, value in labels.items() if value != "null"}
        before = self._deployed(records)
        rendered = self._rendered(call, name)
        if status == "deployed":
            self._supersede(records)
            self._write(rendered, before, name, namespace)
        values = json.loads(pathlib.Path(call.option("--values")).read_bytes())
        self.put(name, last + 1, status, labels, rendered, namespace, config=values)
        if status == "deployed":
            call.stdout.append(json.dumps(self.content(name, last + 1, namespace)))

    def _roll_back(self, call: programs.Call, name: str, number: int) -> None:
        namespace = call.option("--namespace")
        records = self.records(name, namespace)
        content, before = self.content(name, number, namespace), self._deployed(records)
        self._supersede(records)
        self._write(content.get("manifest", ""), before, name, namespace)
        kept = {key: value for key, value in content.items() if key not in ("name", "namespace", "version")}
        self.put(name, max(records) + 1, "deployed", _labels(records[number]), namespace=namespace, **kept)

    def _uninstall(self, call: programs.Call, name: str) -> None:
        namespace = call.option("--namespace")
        records = self.records(name, namespace)
        self._write("", self._deployed(records), name, namespace)
        for number, record in records.items():
            if "--keep-history" not in call.arguments:
                self.server.delete("Secret", record["metadata"]["name"], namespace)
            elif number == max(records):
                self._relabel(record, "uninstalled")

    def _deployed(self, records: Mapping[int, api_server.Object]) -> str:
        for record in records.values():
            if _labels(record)["status"] == "deployed":
                return str(_content(record).get("manifest", ""))
        return ""

    def _supersede(self, records: Mapping[int, api_server.Object]) -> None:
        for record in records.values():
            if _labels(record)["status"] == "deployed":
                self._relabel(record, "superseded")

    def _relabel(self, record: api_server.Object, status: str) -> None:
        labels = _labels(record) | {"status": status}
        self.server.put({**record, "metadata": {**record["metadata"], "labels": labels}})

    def _write(self, text: str, before: str, name: str, namespace: str) -> None:
        if not self.writes_objects:
            return
        kept = {_key(body, namespace): body for body in objects(text)}
        for body in objects(before):
            key = _key(body, namespace)
            # An upgrade looks at the live object, and an uninstallation at the record.
            if key not in kept and not manifests.is_kept(self._there(*key) if text else body):
                self.server.delete(*key)
        for key, body in kept.items():
            metadata, there, (_, _, place) = body["metadata"], self._there(*key)["metadata"], key
            marked = {
                "labels": {
                    **(there.get("labels") or {}),
                    **(metadata.get("labels") or {}),
                    "app.kubernetes.io/managed-by": "Helm",
                },
                "annotations": {
                    **(there.get("annotations") or {}),
                    **(metadata.get("annotations") or {}),
                    "meta.helm.sh/release-name": name,
                    "meta.helm.sh/release-namespace": namespace,
                },
            }
            self.server.put({**body, "metadata": {"namespace": place, **metadata, **marked}})

    def _there(self, kind: str, name: str, namespace: str | None) -> api_server.Object:
        with contextlib.suppress(KeyError):
            return self.server.get(kind, name, namespace)
        return {"metadata": {}}


def manifest(*bodies: Mapping[str, Any]) -> str:
    """A manifest as Helm renders it."""
    return "".join(f"---\n{json.dumps(body)}\n" for body in bodies)


def objects(text: str) -> list[api_server.Object]:
    """The objects in a manifest."""
    return [body for body in yaml.safe_load_all(text) if body]


def _rendered(name: str, values: json_types.JsonObject) -> str:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"values": json.dumps(values)},
    }
    return manifest(body)


def _labels(record: api_server.Object) -> dict[str, str]:
    labels: dict[str, str] = record["metadata"]["labels"]
    return labels


def _content(record: api_server.Object) -> dict[str, Any]:
    packed = base64.b64decode(base64.b64decode(record["data"]["release"]))
    content: dict[str, Any] = json.loads(gzip.decompress(packed))
    return content


def _key(body: api_server.Object, namespace: str) -> tuple[str, str, str]:
    metadata = body["metadata"]
    return body["kind"], metadata["name"], metadata.get("namespace", namespace)
