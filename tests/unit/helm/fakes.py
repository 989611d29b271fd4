"""A helm that works on records in memory, and the API server that keeps them."""

import asyncio
import base64
import copy
import dataclasses
import gzip
import itertools
import json
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from typing_extensions import override

from addon_operator.helm import binary, capabilities, command, memory, places, release_types, remembered
from addon_operator.helm.releases import (
    live_objects,
    release_planning,
    release_records,
    releases,
    rendering,
)
from addon_operator.kernel import names
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.modules import manifests, model
from addon_operator.process.children import children
from tests.support import api_server, kinds, programs

NAMESPACE = "addons"
MEMORY = "addon-operator-state"
"""The Secret with what is remembered."""
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"


def storage_text(
    manifest: str,
    hooks: Sequence[str] = (),
    description: str = "",
    values: Mapping[str, Any] | None = None,
    version: int = 0,
) -> str:
    """A release as Helm stores it in a Secret: what is empty is left out."""
    content = {
        "name": "x",
        "manifest": manifest,
        "hooks": [{"manifest": hook} for hook in hooks],
        "info": {"description": description},
        "config": values,
        "version": version,
    }
    content = {key: value for key, value in content.items() if value}
    inner = base64.b64encode(gzip.compress(json.dumps(content).encode()))
    return base64.b64encode(inner).decode()


class Others(release_types.Others):
    """Other releases: they have the objects of these names."""

    def __init__(self, *names: str, known: Sequence[str] = ()) -> None:
        """``known``: names of releases of which it is known what they have."""
        self._names = names
        self._known = known
        self.asked: list[str] = []

    @override
    async def give_up(
        self, dropped: Sequence[manifests.ManifestResource]
    ) -> list[manifests.ManifestResource]:
        self.asked += [each.name for each in dropped]
        return [each for each in dropped if each.name in self._names]

    @override
    def is_known(self, place: places.ReleaseLocation) -> bool:
        return place.name in self._known


class FakeApi(client.KubeClient):
    """Secrets of one namespace, with resource versions, preconditions and metadata-only lists."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.lists: list[str] = []
        self.patches: list[str] = []
        self.patch_error: Exception | None = None
        self._versions = itertools.count(1)

    def put(
        self,
        name: str,
        number: int,
        status: str,
        labels: Mapping[str, str],
        manifest: str = "",
        hooks: Sequence[str] = (),
        description: str = "",
        values: Mapping[str, Any] | None = None,
    ) -> None:
        system = {"name": name, "owner": "helm", "status": status, "version": str(number)}
        object_name = f"sh.helm.release.v1.{name}.v{number}"
        metadata = {"name": object_name, "labels": dict(labels) | system, "resourceVersion": self._version()}
        self.objects[object_name] = {
            "metadata": metadata,
            "data": {"release": storage_text(manifest, hooks, description, values, number)},
        }

    def rewrite(self, name: str, number: int, content: Mapping[str, Any]) -> None:
        """Have a record hold something else."""
        inner = base64.b64encode(gzip.compress(json.dumps(content).encode()))
        stored = {"release": base64.b64encode(inner).decode()}
        self.objects[f"sh.helm.release.v1.{name}.v{number}"]["data"] = stored

    def labels(self, name: str, number: int) -> dict[str, str]:
        labels: dict[str, str] = self.objects[f"sh.helm.release.v1.{name}.v{number}"]["metadata"]["labels"]
        return labels

    def content(self, name: str, number: int) -> dict[str, Any]:
        """What Helm reads in a record."""
        stored = self.objects[f"sh.helm.release.v1.{name}.v{number}"]["data"]["release"]
        text = gzip.decompress(base64.b64decode(base64.b64decode(stored)))
        content: dict[str, Any] = json.loads(text)
        return content

    def last(self, name: str) -> int:
        return max((int(labels["version"]) for labels in self._labels_of(name)), default=0)

    def set_status(self, name: str, number: int, status: str) -> None:
        self.labels(name, number)["status"] = status

    def remove(self, name: str) -> None:
        gone = [key for key, stored in self.objects.items() if stored["metadata"]["labels"]["name"] == name]
        for key in gone:
            del self.objects[key]

    @override
    async def list_all(
        self,
        path: str,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        metadata_only: bool = False,
        page_size: int = client.PAGE_SIZE,
    ) -> client.ObjectList:
        assert path == SECRETS
        assert metadata_only
        assert label_selector is not None
        self.lists.append(label_selector)
        wanted = dict(part.split("=", 1) for part in label_selector.split(","))
        metadata = [{"metadata": copy.deepcopy(stored["metadata"])} for stored in self.objects.values()]
        return client.ObjectList(
            [each for each in metadata if wanted.items() <= each["metadata"]["labels"].items()], "1"
        )

    @override
    async def get(
        self, path: str, *, query: Mapping[str, str] | None = None, metadata_only: bool = False
    ) -> client.Object:
        return self._stored(path, "GET")

    @override
    async def patch(
        self,
        path: str,
        patch: Mapping[str, Any] | list[Any],
        type_: client.PatchType = client.PatchType.MERGE,
        *,
        query: Mapping[str, str] | None = None,
    ) -> client.Object:
        if self.patch_error is not None:
            raise self.patch_error
        assert isinstance(patch, Mapping)
        self.patches.append(path.rpartition("/")[2])
        stored = self._stored(path, "PATCH", patch["metadata"].get("resourceVersion"))
        labels = stored["metadata"]["labels"] | patch["metadata"].get("labels", {})
        stored["metadata"]["labels"] = {key: value for key, value in labels.items() if value is not None}
        stored["metadata"].setdefault("annotations", {}).update(patch["metadata"].get("annotations", {}))
        stored["data"] |= patch.get("data", {})
        stored["metadata"]["resourceVersion"] = self._version()
        return copy.deepcopy(stored)

    @override
    async def delete(
        self,
        path: str,
        *,
        propagation: str = "Background",
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> client.Object:
        self._stored(path, "DELETE", resource_version)
        return self.objects.pop(path.rpartition("/")[2])

    def _stored(self, path: str, method: str, resource_version: str | None = None) -> dict[str, Any]:
        stored = self.objects.get(path.rpartition("/")[2])
        if stored is None:
            raise api_errors.NotFound(paths.target(method, path), 404, "NotFound", "gone")
        if resource_version not in (None, stored["metadata"]["resourceVersion"]):
            raise api_errors.Conflict(paths.target(method, path), 409, "Conflict", "changed")
        return stored

    def _labels_of(self, name: str) -> list[dict[str, str]]:
        labels = [stored["metadata"]["labels"] for stored in self.objects.values()]
        return [each for each in labels if each["name"] == name]

    def _version(self) -> str:
        return str(next(self._versions))


def call_of(verb: str, number: int) -> remembered.CallUnderWay:
    return remembered.CallUnderWay(verb=verb, number=number)


def memory_of(server: api_server.ApiServer | None = None) -> memory.Memory:
    """A memory that nobody has read yet."""
    kube = api_server.client_of(server or api_server.ApiServer())
    return memory.Memory(kube, NAMESPACE, "addon-operator", print)


def records(api: FakeApi) -> release_records.ReleaseRecords:
    return release_records.ReleaseRecords(api, places.ReleaseLocations(NAMESPACE), memory_of())


class FakeHelm(children.Children):
    """A helm without a process: it renders ``render(values)`` and keeps its records in the API."""

    def __init__(self, api: FakeApi, render: Callable[[Any], str] = json.dumps) -> None:
        self.api = api
        self.render = render
        self.calls: list[list[str]] = []
        self.fail: dict[str, str] = {}
        """Verb → text of the error it ends with."""
        self.leaves_pending = False
        """Whether the last write of a verb that succeeds is refused."""
        self.stores_failed = True
        """Whether a verb that fails has come so far that there is a record of it."""
        self.stderr: list[str] = []
        self.values_files: list[pathlib.Path] = []
        self.running: set[str] = set()
        self.hold: asyncio.Event | None = None

    @property
    def verbs(self) -> list[str]:
        return [call[0] for call in self.calls]

    @override
    async def run(
        self,
        argv: Sequence[str | pathlib.Path],
        *,
        env: Mapping[str, str],
        cwd: pathlib.Path | None = None,
        timeout: float | None = None,
        on_stdout_line: Callable[[str], None] | None = None,
        on_stderr_line: Callable[[str], None] | None = None,
        capture_stdout: int | None = None,
        capture_stderr: int = 0,
        kill_grace: float = children.KILL_GRACE,
        leaves_nothing: bool = False,
        bounds: children.ChildBounds | None = None,
    ) -> children.ChildResult:
        arguments = [str(argument) for argument in argv[1:]]
        verb, name = arguments[0], arguments[1]
        assert name not in self.running, "two helm at once for one release"
        self.calls.append(arguments)
        for line in self.stderr:
            assert on_stderr_line is not None
            on_stderr_line(line)
        self.running.add(name)
        try:
            if self.hold is not None:
                await self.hold.wait()
            return self._do(verb, name, arguments)
        finally:
            self.running.discard(name)

    def _do(self, verb: str, name: str, arguments: list[str]) -> children.ChildResult:
        if verb in self.fail:
            if verb in ("install", "upgrade") and self.stores_failed:
                self._store(name, "failed", arguments)
            return programs.result(1, stderr=f"Error: {self.fail[verb]}")
        if verb == "template":
            return programs.result(stdout=self._rendered(arguments).encode())
        if verb in ("install", "upgrade"):
            printed = "pending-upgrade" if self.leaves_pending else "deployed"
            self._store(name, printed, arguments)
            return programs.result(stdout=self._printed(name))
        if verb == "rollback":
            self._roll_back(name, int(arguments[2]))
        elif "--keep-history" in arguments:
            self.api.set_status(name, self.api.last(name), "uninstalled")
        else:
            self.api.remove(name)
        return programs.result()

    def _printed(self, name: str) -> bytes:
        try:
            return json.dumps(self.api.content(name, self.api.last(name))).encode()
        except ValueError:
            return b""

    def _roll_back(self, name: str, number: int) -> None:
        last = self.api.last(name)
        labels = self.api.labels(name, number)
        for earlier in range(1, last + 1):
            if self.api.labels(name, earlier)["status"] == "deployed":
                self.api.set_status(name, earlier, "superseded")
        self.api.put(name, last + 1, "deployed", labels)
        self.api.rewrite(name, last + 1, {**self.api.content(name, number), "version": last + 1})

    def _rendered(self, arguments: list[str]) -> str:
        path = pathlib.Path(arguments[arguments.index("--values") + 1])
        self.values_files.append(path)
        assert path.stat().st_mode & 0o077 == 0, "others may read the values"
        return self.render(json.loads(path.read_bytes()))

    def _store(self, name: str, status: str, arguments: list[str]) -> None:
        labels = dict(part.split("=", 1) for part in arguments[arguments.index("--labels") + 1].split(","))
        last = self.api.last(name)
        if arguments[0] == "install":
            assert not last or self.api.labels(name, last)["status"] in ("failed", "uninstalled")
        elif last:
            # Helm copies what the revision before has, and takes away what is null.
            merged = self.api.labels(name, last) | labels
            labels = {key: value for key, value in merged.items() if value != "null"}
        if last and self.api.labels(name, last)["status"] == "deployed" and status == "deployed":
            self.api.set_status(name, last, "superseded")
        rendered = self._rendered(arguments)
        values = json.loads(self.values_files[-1].read_bytes())
        self.api.put(name, last + 1, status, labels, rendered, values=values)


class FakeClock:
    def __init__(self) -> None:
        self.now = 10_000_000_000.0

    def monotonic(self) -> float:
        self.now += 0.5
        return self.now

    def time(self) -> float:
        return self.now


class LiveCluster(client.KubeClient):
    """ConfigMaps as they are in the cluster, for looks, dry runs, changes by merge patches, and deletions."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.refusal: api_errors.ApiError | None = None
        self.asked: list[str] = []
        self.changed: list[tuple[str, dict[str, Any]]] = []
        """Names and merge patches."""
        self.deleted: list[str] = []

    def put_own(self, name: str, policy: str = "", plural: str = "configmaps") -> None:
        """As Helm made it for the release ``web``."""
        annotations = {
            "meta.helm.sh/release-name": "web",
            "meta.helm.sh/release-namespace": NAMESPACE,
            "helm.sh/resource-policy": policy,
        }
        labels = {"app.kubernetes.io/managed-by": "Helm"}
        metadata = {"name": name, "labels": labels, "annotations": annotations}
        self.objects[f"/api/v1/namespaces/{NAMESPACE}/{plural}/{name}"] = {"metadata": metadata}

    def put(self, name: str, labels: Mapping[str, str] | None = None, **annotations: str) -> None:
        dashed = {f"meta.helm.sh/{key.replace('_', '-')}": value for key, value in annotations.items()}
        metadata = {"name": name, "labels": dict(labels or {}), "annotations": dashed}
        self.objects[f"/api/v1/namespaces/{NAMESPACE}/configmaps/{name}"] = {"metadata": metadata}

    @override
    async def get(
        self, path: str, *, query: Mapping[str, str] | None = None, metadata_only: bool = False
    ) -> client.Object:
        return self._found("GET", path)

    @override
    async def patch(
        self,
        path: str,
        patch: Mapping[str, Any] | list[Any],
        type_: client.PatchType = client.PatchType.MERGE,
        *,
        query: Mapping[str, str] | None = None,
    ) -> client.Object:
        if "dryRun" not in (query or {}):
            self.changed.append((path.rpartition("/")[2], self._answer(patch)))
            return self._found("PATCH", path)
        self.asked.append(f"{type_.name} {path}")
        if type_ is client.PatchType.MERGE:
            self._found("PATCH", path)
        return self._answer(patch)

    @override
    async def create(
        self, path: str, body: Mapping[str, Any], *, query: Mapping[str, str] | None = None
    ) -> client.Object:
        assert query is not None
        assert query["dryRun"] == "All"
        self.asked.append(f"CREATE {path}")
        return self._answer(body)

    @override
    async def delete(
        self,
        path: str,
        *,
        propagation: str = "Background",
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> client.Object:
        if self.refusal is not None:
            raise self.refusal
        self.deleted.append(path.rpartition("/")[2])
        return self.objects.pop(path)

    def _found(self, method: str, path: str) -> dict[str, Any]:
        if path not in self.objects:
            raise api_errors.NotFound(paths.target(method, path), 404, "NotFound", "gone")
        return self.objects[path]

    def _answer(self, body: Mapping[str, Any] | list[Any]) -> client.Object:
        assert isinstance(body, Mapping)
        if self.refusal is not None:
            raise self.refusal
        return dict(body)


@dataclasses.dataclass
class World:
    """A release manager with everything around it."""

    api: FakeApi
    helm: FakeHelm
    workspace: pathlib.Path
    version: str = "v3.19.0"
    cluster: capabilities.Capabilities = dataclasses.field(
        default_factory=lambda: capabilities.Capabilities("v1.36.3", frozenset({"v1", "apps/v1"}))
    )
    warnings: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    doubts: list[str] = dataclasses.field(default_factory=list)
    """Those of them that are true of a release as it is."""
    capability_reads: int = 0
    take_ownership: release_types.TakeOwnership = release_types.TakeOwnership.ALWAYS
    live: "LiveCluster" = dataclasses.field(default_factory=LiveCluster)
    server: api_server.ApiServer = dataclasses.field(default_factory=api_server.ApiServer)
    """Of the Secret with what is remembered."""
    remembered: memory.Memory | None = None
    """``None``: nothing is known, so every record counts as the operator's own."""

    def manager(self) -> releases.ReleaseManager:
        """A new manager, as a restarted operator has it."""
        return releases.ReleaseManager(self.planner())

    async def restarted(self, *modules: model.Module) -> releases.ReleaseManager:
        """A new manager, as a restarted operator has it that leads."""
        self.remembered = memory_of(self.server)
        await self.remembered.load()
        manager = self.manager()
        manager.assign(modules)
        await manager.observe_all()
        await manager.remember()
        return manager

    def planner(self) -> release_planning.ReleasePlanner:
        major, minor = (int(part) for part in self.version.removeprefix("v").split(".")[:2])
        found = binary.HelmBinary(pathlib.Path("/bin/helm"), self.version, major, minor)
        target = command.HelmTarget(NAMESPACE)
        helm = command.Helm(found, target, {}, self.workspace, self.helm, self._warn, self._doubt)
        clock = FakeClock()
        reader = capabilities.CapabilityReader(self._capabilities, clock)
        return release_planning.ReleasePlanner(
            helm=helm,
            records=release_records.ReleaseRecords(self.api, helm.places, self.remembered or memory_of()),
            renderer=rendering.ChartRenderer(helm, reader, 1200.0, clock),
            options=release_types.Options(history_max=10, timeout=1200.0, take_ownership=self.take_ownership),
            live=live_objects.LiveObjects(
                self.live,
                kinds.Kinds(),
                helm.places,
                {"heritage": "addon-operator"},
            ),
            clock=clock,
        )

    async def _capabilities(self) -> capabilities.Capabilities:
        self.capability_reads += 1
        return self.cluster

    def _warn(self, module: names.ModuleName, text: str) -> None:
        self.warnings.append((module, text))

    def _doubt(self, _: names.ModuleName, text: str) -> None:
        self.doubts.append(text)
